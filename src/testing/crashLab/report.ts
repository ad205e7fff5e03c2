/**
 * What a lab finds, as data: every point that it tried, with a verdict, and the names of the faults.
 */
import { Schema } from "effect"
import type { Flags, Outcome } from "../../EffectEvent.ts"

/**
 * What came of a point:
 *
 * - `once`: the effect is at the remote once.
 * - `twice`: more than once.
 * - `lost`: it is not there, and the calls ended as if nothing more were to be done.
 * - `inDoubt`: the tool stopped with `EffectInDoubtError`, and a person has to look. The effect is there once, or not.
 *
 * @category models
 * @since 0.1.0
 */
export type CrashVerdict = "once" | "twice" | "lost" | "inDoubt"

/**
 * What kind of trouble a point is about.
 *
 * @category models
 * @since 0.1.0
 */
export type CrashGroup = "no trouble" | "crash" | "double call" | "lost reply" | "lost lease" | "remote"

/**
 * A fault that explains points, by its name:
 *
 * - `FirstPageOnly`: `alreadyApplied` finds its effect, and does not any more where the remote holds many entries.
 * - `MarkerNotEmbedded`: `alreadyApplied` never finds what `execute` wrote.
 * - `StrangerBelieved`: `alreadyApplied` takes a marker that somebody else posted for its own.
 * - `AskedTooEarly`: `alreadyApplied` is right, but later than it is believed.
 * - `NoCheck`: there is no `alreadyApplied`, and applying twice counts twice.
 * - `FailsAfterApplying`: `execute` fails as if nothing had been applied where only the reply was lost.
 * - `KeyChanges`: calls that are one effect have different keys.
 * - `SaysYesToNothing`: `alreadyApplied` says yes where nothing was ever applied.
 * - `Unexplained`: none of them.
 *
 * @category models
 * @since 0.1.0
 */
export type CrashFaultName =
  | "FirstPageOnly"
  | "MarkerNotEmbedded"
  | "StrangerBelieved"
  | "AskedTooEarly"
  | "NoCheck"
  | "FailsAfterApplying"
  | "KeyChanges"
  | "SaysYesToNothing"
  | "Unexplained"

/**
 * How a call ended.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashCall {
  /** The outcome of its `EffectEvent`; `killed` where its process died before, `unknown` where no event was told. */
  readonly outcome: Outcome | "killed" | "unknown"
  /** The flags of the event that are set. */
  readonly flags: ReadonlyArray<keyof Flags>
  /** The tag or the name of what it failed with. */
  readonly error?: string | undefined
}

/**
 * A point: a way in which things can go wrong, and how it went.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashPoint {
  readonly name: string
  readonly group: CrashGroup
  readonly verdict: CrashVerdict
  /** How many effects the remote holds more than before. */
  readonly applied: number
  /** How each call ended, in order. */
  readonly calls: ReadonlyArray<CrashCall>
  /** What explains a verdict of `twice` or `lost`. */
  readonly fault: CrashFaultName | undefined
}

/**
 * A fault, in words.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashFault {
  readonly name: CrashFaultName
  readonly what: string
  readonly remedy: string
}

/**
 * All that a lab found. It is JSON, but for members that are `undefined`.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashReport {
  readonly tool: string
  readonly key: string
  readonly points: ReadonlyArray<CrashPoint>
  readonly faults: ReadonlyArray<CrashFault>
  /** What was not looked at, and what the lab needs for it. */
  readonly notExamined: ReadonlyArray<string>
}

const texts: Readonly<Record<CrashFaultName, readonly [what: string, remedy: string]>> = {
  FirstPageOnly: [
    "alreadyApplied finds the effect while it is alone, and not among many entries",
    "Read all pages of the remote's list, or ask the remote to search."
  ],
  MarkerNotEmbedded: [
    "alreadyApplied does not find what execute wrote, at once or later",
    "Let execute write effectMarker(effectKey), or another trace of the key, and let alreadyApplied look for the same."
  ],
  StrangerBelieved: [
    "alreadyApplied takes a marker that somebody else posted for its own, and the effect never happens",
    "Look at the author of the entry, and sign markers: effectMarker(key, { secret })."
  ],
  AskedTooEarly: [
    "alreadyApplied is believed before the remote shows the effect",
    "Give the tool a settle that is longer than the remote lags behind its own writes."
  ],
  NoCheck: [
    "there is no alreadyApplied, and the remote counts a second application",
    `Give the tool an alreadyApplied, pass idempotencyKey(effectKey) to a remote that honours it, or say whenInDoubt: "fail".`
  ],
  FailsAfterApplying: [
    "execute fails plainly although the remote has applied the effect, and the next call applies it again",
    `Fail with EffectOutcomeUnknownError on timeouts and lost replies, and say whenInDoubt: "fail"; or give the tool an `
    + "alreadyApplied, which is asked after every failure."
  ],
  KeyChanges: [
    "calls that are one effect have different effect keys",
    "Make effectKey of what the effect is about, and of nothing that differs between attempts."
  ],
  SaysYesToNothing: [
    "alreadyApplied says that the effect is there, and it is not: it never happens",
    "Answer undefined for no. Every other value, null and Option.none() too, is a yes."
  ],
  Unexplained: [
    "no fault that this lab knows explains it",
    "Look at the points: how each call ended is told in its order."
  ]
}

export const faultOf = (name: CrashFaultName): CrashFault => ({ name, what: texts[name][0], remedy: texts[name][1] })

export const isBad = ({ verdict }: Pick<CrashPoint, "verdict">): boolean => verdict === "twice" || verdict === "lost"

const shownVerdict: Readonly<Record<CrashVerdict, string>> = {
  once: "once",
  twice: "TWICE",
  lost: "LOST",
  inDoubt: "in doubt"
}

const shownFlag: Readonly<Record<keyof Flags, string>> = {
  takenOver: "taken over",
  executedInDoubt: "in doubt",
  claimLost: "claim lost",
  recordFailed: "record failed",
  inputChanged: "input changed"
}

/** How a call ended, as a text: an outcome, and in brackets what it failed with and what went aside. */
export const shownCall = ({ error, flags, outcome }: CrashCall): string => {
  const aside = [...error === undefined ? [] : [error], ...flags.map((flag) => shownFlag[flag])]
  return aside.length === 0 ? outcome : `${outcome} (${aside.join(", ")})`
}

const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd()}`)
    .join("\n")
}

const rowOf = ({ applied, calls, fault, name, verdict }: CrashPoint): ReadonlyArray<string> => [
  name,
  shownVerdict[verdict],
  String(applied),
  calls.map(shownCall).join(", "),
  fault ?? ""
]

/** The report as a text for people: what is wrong first, then a table of the points. */
export const format = (report: CrashReport): string => {
  const { faults, key, notExamined, points, tool } = report
  const bad = points.filter(isBad)
  const title = bad.length === 0
    ? `Tool "${tool}" (effect key "${key}"): never twice and never lost at ${points.length} points`
    : `Tool "${tool}" (effect key "${key}") does not apply its effect once at ${bad.length} of ${points.length} points`
  return [
    title,
    ...faults.map(({ name, remedy, what }) => `\n${name}: ${what}.\n  ${remedy}`),
    `\n${table([["point", "applied", "times", "calls", "fault"], ...points.map(rowOf)])}`,
    ...(notExamined.length === 0 ? [] : [`\nNot examined:\n${notExamined.map((what) => `  ${what}`).join("\n")}`])
  ].join("\n")
}

/**
 * A tool whose effect is applied twice, or lost, at some point. Its message names the faults, and is the whole table.
 *
 * @category errors
 * @since 0.1.0
 */
export class AppliedNotOnce
  extends Schema.TaggedError<AppliedNotOnce>("chamvi-effect/testing/AppliedNotOnce")("AppliedNotOnce", {
    /** The names of the faults. */
    faults: Schema.Array(Schema.String),
    /** The report as text. */
    table: Schema.String
  })
{
  override get message(): string {
    return `${this.faults.join(", ")}\n\n${this.table}`
  }
}

/**
 * A lab that could not be run: the tool fails where there is no trouble, or what the lab was given does.
 *
 * @category errors
 * @since 0.1.0
 */
export class CrashLabError
  extends Schema.TaggedError<CrashLabError>("chamvi-effect/testing/CrashLabError")("CrashLabError", {
    tool: Schema.String,
    problem: Schema.String,
    cause: Schema.optionalKey(Schema.Defect())
  })
{
  override get message(): string {
    return `The crash lab cannot examine tool "${this.tool}": ${this.problem}`
  }
}

/**
 * What `assertOnce` lets pass.
 *
 * @category models
 * @since 0.1.0
 */
export interface AssertOnceOptions {
  /** Whether a tool may leave a key in doubt, for a person to resolve. Default: `"allow"`. */
  readonly inDoubt?: "allow" | "refuse" | undefined
}

export const assertOnce = (report: CrashReport, options: AssertOnceOptions = {}): void => {
  const doubtful = options.inDoubt === "refuse" && report.points.some(({ verdict }) => verdict === "inDoubt")
  const faults = report.faults.map(({ name }) => name)
  if (!doubtful && !report.points.some(isBad)) return
  throw new AppliedNotOnce({ faults: faults.length > 0 ? faults : ["InDoubt"], table: format(report) })
}
