/**
 * A reconciliation as its caller sees it: join what this process already does for the key, or start it.
 */
import { Cause, Effect, Exit, type Fiber, Predicate } from "effect"
import type { Outcome } from "../EffectEvent.ts"
import * as Event from "../EffectEvent.ts"
import { EffectInputChangedError, EffectKeyConflictError, EffectReentrantError, EffectStoreError } from "../errors.ts"
import { forkGently } from "../internal/gentleInterrupt.ts"
import { across, Application, circleOf, enclosingOf } from "./Application.ts"
import { apply, endingOf } from "./apply.ts"
import { type Applied, type Call, inputsDiffer, type Report } from "./Call.ts"
import { bindToStore } from "./closing.ts"
import { type Registry, registryOf } from "./Registry.ts"
import { applyInTransaction, misplaced } from "./transaction.ts"

/**
 * Settles the key for one caller, and notes in `report` how.
 *
 * **Details**
 *
 * Interrupting the caller only takes it off the application's waiters; if it was the last, the application stops at its
 * next interruptible point, and the caller waits for its finalizers.
 */
export const reconcile = (call: Call, report: Report): Effect.Effect<Applied, unknown> =>
  // All in one step of the fiber: an interruption comes before anything has begun, or finds the caller among the waiters.
  Effect.withFiber((fiber) => Effect.callback((resume) => enter(call, report, fiber, resume)))

type Resume = (effect: Effect.Effect<Applied, unknown>) => void

const enter = (
  call: Call,
  report: Report,
  fiber: Fiber.Fiber<unknown, unknown>,
  resume: Resume
): Effect.Effect<void> | void => {
  const registry = registryOf(call.store)
  if (registry.closing) return resume(Effect.fail(storeClosed(call)))
  const enclosing = enclosingOf(fiber)
  const present = registry.applications.get(call.key)
  if (present === undefined) {
    const wrong = misplaced(call, fiber, enclosing)
    if (wrong !== undefined) return resume(Effect.fail(wrong))
    return share(call, report, enclosing, start(call, registry, fiber, enclosing), false, resume)
  }
  // What a stopping application does is not for us, but it may leave a record, or nothing that a call could differ from.
  const refusal = present.cancelled && present.tool === call.tool
    ? undefined
    : refuse(call, report, present)
  if (refusal !== undefined) return resume(Effect.fail(refusal))
  const circle = circleOf(enclosing, present)
  if (circle !== undefined) {
    return resume(Effect.fail(new EffectReentrantError({ key: call.key, tool: call.tool, circle })))
  }
  const wrong = misplaced(call, fiber, enclosing)
  if (wrong !== undefined) return resume(Effect.fail(wrong))
  return share(call, report, enclosing, present, true, resume)
}

const storeClosed = ({ key }: Call) =>
  new EffectStoreError({ operation: "claim", key, problem: "its layer is being closed", permanent: true })

const start = (
  call: Call,
  registry: Registry,
  fiber: Fiber.Fiber<unknown, unknown>,
  enclosing: ReadonlyArray<Application>
): Application => {
  bindToStore(registry, call.settings.recordTimeout)
  const application = new Application(call)
  registry.applications.set(call.key, application)
  // also for what a hook does in Promises, where no fiber tells in which application it is
  const { fiber: running, interrupt } = across.run(
    [...enclosing, application],
    () => forkGently(fiber.context)((call.transactional ? applyInTransaction : apply)(application, call))
  )
  application.interrupt = interrupt
  running.addObserver((exit) => {
    registry.applications.delete(call.key)
    application.end(endingOf(application, exit))
  })
  return application
}

/** Whether the application's tool or input keeps this call from sharing it. */
const refuse = (call: Call, report: Report, { fingerprint, tool }: Application) => {
  if (tool !== call.tool) return new EffectKeyConflictError({ key: call.key, tool: call.tool, heldBy: tool })
  if (!inputsDiffer(call, fingerprint)) return undefined
  report.flags = { ...report.flags, inputChanged: true }
  return call.settings.onInputChange === "fail"
    ? new EffectInputChangedError({ key: call.key, tool: call.tool })
    : undefined
}

const share = (
  call: Call,
  report: Report,
  enclosing: ReadonlyArray<Application>,
  application: Application,
  joined: boolean,
  resume: Resume
): Effect.Effect<void> | void => {
  const tooLate = application.cancelled
  const done = enclosing.at(-1)?.waitFor(application)
  const leave = application.join((ending) => {
    done?.()
    if (tooLate) return resume(reconcile(call, report))
    report.flags = { ...report.flags, ...application.flags }
    switch (ending._tag) {
      case "Applied":
        report.outcome = joined ? "joined" : ending.applied.outcome
        return resume(Effect.succeed(ending.applied))
      case "Failed":
        return resume(Effect.failCause(ending.cause))
      case "Over":
        return resume(reconcile(call, report))
    }
  })
  return leave && Effect.ensuring(
    leave,
    Effect.sync(() => {
      // the last to leave waits for finalizers, which may close a circle too
      done?.()
      // who leaves tells what it knows: an effect that was applied once more must not go unseen
      report.flags = { ...report.flags, ...application.flags }
    })
  )
}

const outcomes: ReadonlyMap<unknown, Outcome> = new Map([
  ["EffectInDoubtError", "inDoubt"],
  ["EffectInProgressError", "inProgress"],
  ["EffectKeyConflictError", "conflict"],
  ["EffectInputChangedError", "conflict"],
  ["ToolNotAllowedError", "refused"]
])

// An error of ours may also come out of a hook that made a call of its own: that one speaks of another key.
const outcomeOf = (report: Report, cause: Cause.Cause<unknown>): Outcome => {
  if (Cause.hasInterruptsOnly(cause)) return "interrupted"
  const failure = Cause.squash(cause)
  if (!(failure instanceof Error)) return "failed"
  const { _tag: tag, key = report.key, tool } = failure as { readonly [field in "_tag" | "key" | "tool"]?: unknown }
  return key === report.key && tool === report.tool ? outcomes.get(tag) ?? "failed" : "failed"
}

/**
 * Publishes the call's event when `call` ends, however it ends.
 */
export const reporting = <A, E, R>(report: Report, call: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    Effect.onExitPrimitive(call, (exit) =>
      Event.publish(fiber, {
        key: report.key,
        tool: report.tool,
        runId: report.runId,
        outcome: Exit.isSuccess(exit) ? report.outcome! : outcomeOf(report, exit.cause),
        error: Exit.isSuccess(exit) ? undefined : nameOf(exit.cause),
        ...report.flags
      }))
  )

const nameOf = (cause: Cause.Cause<unknown>): string | undefined => {
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const failure = Cause.squash(cause)
  const { _tag: tag, name } = Predicate.isObject(failure)
    ? failure as { readonly _tag?: unknown; readonly name?: unknown }
    : {}
  return typeof tag === "string" ? tag : typeof name === "string" ? name : typeof failure
}
