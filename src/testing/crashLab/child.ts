/**
 * A process of its own in a lab: it makes the calls that it is told to make, and tells how they ended.
 */
import { Cause, Console, Context, Effect, Layer, References, type Scope } from "effect"
import { EffectEvent } from "../../EffectEvent.ts"
import { EffectStore } from "../../EffectStore.ts"
import { type RunOptions, ToolContext } from "../../ToolContext.ts"
import { sleepReally } from "../law.ts"
import { instruction, lineOf, type Told } from "./instruction.ts"
import { LabProcess } from "./LabProcess.ts"
import { Mark } from "./mark.ts"
import { mostAttempts } from "./points.ts"
import { CrashLabError } from "./report.ts"
import type { Hooks, Subject } from "./subject.ts"
import { type CallEnd, callOf, endOf, isInDoubt } from "./World.ts"

export interface ChildPlan {
  readonly subject: Subject<never>
  readonly world: Layer.Layer<never, unknown>
  readonly store: Layer.Layer<EffectStore, unknown>
  readonly run: RunOptions
}

/** A pipe takes a line at once, so that it is there even if the process is killed next. */
const tell = (told: typeof Told.Type): Effect.Effect<void> => Console.log(lineOf(told))

/** A timer, since a process without one would end. */
const standStill = Effect.forever(sleepReally("1 minute"))

const work = Effect.fnUntraced(function*(
  { run, store, subject, world }: ChildPlan
): Effect.fn.Return<void, unknown, Scope.Scope> {
  const { afterwards, again, at, lease } = yield* instruction
  const keys = new Set<string>()
  let process: LabProcess | undefined
  const mark = (name: string) => process?.border(`at ${name}`) ?? Effect.void
  const services = yield* Layer.build(Layer.provideMerge(Layer.merge(store, ToolContext.layer(run)), world)).pipe(
    Effect.provideService(Mark, mark)
  )
  const made = process = new LabProcess({
    clock: { sign: () => {} },
    ledger: Context.get(services, EffectStore),
    nameOf: (key) => key,
    keys,
    lease
  })
  if (at !== undefined) made.at(at, () => Effect.andThen(tell({ _tag: "At" }), standStill))
  const hooks: Hooks = { process: made, applied: () => {}, lags: () => false, asked: () => {} }

  const call = Effect.fnUntraced(function*(again: boolean): Effect.fn.Return<CallEnd> {
    let event: EffectEvent | undefined
    const context = services.pipe(
      Context.add(EffectStore, made.store),
      Context.add(Mark, mark),
      Context.add(References.CurrentLoggers, new Set()),
      Context.add(EffectEvent.Listener, (told) =>
        Effect.sync(() => {
          event ??= told
        }))
    )
    const exit = yield* Effect.exit(
      Effect.provideContext(Effect.scoped(subject.call(hooks, again)), context as Context.Context<never>)
    )
    const end = endOf(exit, event)
    yield* tell({ _tag: "End", ...callOf(end), done: end.done })
    return end
  })

  let end = yield* call(again)
  if (afterwards) {
    for (let attempt = 1; attempt < mostAttempts && !end.done && !isInDoubt(end); attempt++) end = yield* call(true)
    if (end.done) yield* call(true)
  }
  const { checks } = subject.facts
  yield* tell({ _tag: "Seen", borders: made.trace, keys: Array.from(keys), tool: subject.name, checks })
})

export const child = (plan: ChildPlan): Effect.Effect<void, CrashLabError> =>
  Effect.catchCause(
    Effect.scoped(work(plan)),
    (cause) =>
      Effect.fail(
        new CrashLabError({
          tool: plan.subject.name,
          problem: `its process failed: ${Cause.pretty(cause)}`,
          cause: Cause.squash(cause)
        })
      )
  )
