/**
 * What a lab and the processes that it starts tell each other: an instruction in the environment, and lines on the standard
 * output, between whatever else the process prints.
 */
import { Config, Effect, Option, Schema } from "effect"
import type { StandardCommand } from "effect/process/ChildProcess"
import * as ChildProcess from "effect/process/ChildProcess"

const variable = "CHAMVI_CRASH_LAB"

/** What a child is to do. */
export const Instruction = Schema.Struct({
  /** The border at which it says so, and stands still until it is killed. */
  at: Schema.optionalKey(Schema.String),
  /** Whether it goes on to call until it is done, and then once more. */
  afterwards: Schema.Boolean,
  /** Whether other calls came before its own. */
  again: Schema.Boolean,
  /** Milliseconds of its lease, where it is not the tool's. */
  lease: Schema.optionalKey(Schema.Number)
})

/** How a call of a child ended: as in a report. */
const End = Schema.TaggedStruct("End", {
  outcome: Schema.Literals([
    "executed",
    "recorded",
    "reconciled",
    "joined",
    "inDoubt",
    "inProgress",
    "conflict",
    "refused",
    "interrupted",
    "failed",
    "killed",
    "unknown"
  ]),
  flags: Schema.Array(
    Schema.Literals(["takenOver", "executedInDoubt", "claimLost", "recordFailed", "inputChanged"])
  ),
  error: Schema.optional(Schema.String),
  done: Schema.Boolean
})

/** What a child tells. */
export const Told = Schema.Union([
  Schema.TaggedStruct("At", {}),
  End,
  Schema.TaggedStruct("Seen", {
    borders: Schema.Array(Schema.String),
    keys: Schema.Array(Schema.String),
    tool: Schema.String,
    checks: Schema.Boolean
  })
])

const prefix = "chamvi-effect crash lab: "

const encodeTold = Schema.encodeSync(Schema.fromJsonString(Told))
const decodeTold = Schema.decodeUnknownOption(Schema.fromJsonString(Told))

export const lineOf = (told: typeof Told.Type): string => prefix + encodeTold(told)

/** What a line tells, if it is one of ours. */
export const readLine = (line: string): Option.Option<typeof Told.Type> =>
  line.startsWith(prefix) ? decodeTold(line.slice(prefix.length)) : Option.none()

const json = Schema.fromJsonString(Instruction)

/** The command, with an instruction in its environment. */
export const instruct = (command: StandardCommand, instruction: typeof Instruction.Type): StandardCommand => {
  const { env, extendEnv } = command.options
  return ChildProcess.make(command.command, command.args, {
    ...command.options,
    env: { ...env, [variable]: Schema.encodeSync(json)(instruction) },
    // without an environment of its own a process gets that of its parent
    extendEnv: env === undefined || extendEnv === true
  })
}

/** The instruction of this process; one that nobody has started for a lab just does its work. */
export const instruction = Effect.flatMap(
  Config.option(Config.String(variable)),
  Option.match({
    onNone: () => Effect.succeed<typeof Instruction.Type>({ afterwards: true, again: false }),
    onSome: (text) => Schema.decodeEffect(json)(text)
  })
)
