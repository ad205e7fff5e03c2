/**
 * How a call of an effect tool ended: as an event, a metric, and attributes of the call's span.
 *
 * @since 0.1.0
 */
import { Context, Effect, type Fiber, Layer, Metric } from "effect"

/**
 * - `executed`: `execute` ran and its result was recorded.
 * - `recorded`: the ledger had the result; nothing ran.
 * - `reconciled`: `alreadyApplied` found the effect; `execute` did not run.
 * - `joined`: another call of this process was at it; this one shares its result.
 * - `inDoubt`, `inProgress`, `conflict`, `refused`: nothing ran, and the error says why.
 * - `interrupted`: the call was interrupted.
 * - `failed`: a hook or the store failed.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome =
  | "executed"
  | "recorded"
  | "reconciled"
  | "joined"
  | "inDoubt"
  | "inProgress"
  | "conflict"
  | "refused"
  | "interrupted"
  | "failed"

/**
 * What a person may want to know of how it went.
 *
 * @category models
 * @since 0.1.0
 */
export interface Flags {
  /** The effect was applied, and its record is still being written. */
  readonly recordFailed: boolean
  /** The claim was taken over while the holder was at it: the effect may have been applied once more. */
  readonly claimLost: boolean
  /** The key was used before with another input. */
  readonly inputChanged: boolean
  /** The claim was taken from a holder that gave no sign of life. */
  readonly takenOver: boolean
  /** `execute` ran although an earlier attempt may have applied the effect (`whenInDoubt: "execute"`). */
  readonly executedInDoubt: boolean
}

/**
 * One call's end.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectEvent extends Flags {
  /** The effect key; empty where none could be computed. */
  readonly key: string
  readonly tool: string
  readonly runId: string
  readonly outcome: Outcome
  /** The tag or the name of what the call failed with; `undefined` where it succeeded or was interrupted. */
  readonly error: string | undefined
}

/**
 * @category models
 * @since 0.1.0
 */
export const noFlags: Flags = {
  recordFailed: false,
  claimLost: false,
  inputChanged: false,
  takenOver: false,
  executedInDoubt: false
}

const Listener = Context.Reference<((event: EffectEvent) => Effect.Effect<void>) | undefined>(
  "chamvi-effect/EffectEvent/Listener",
  { defaultValue: () => undefined }
)

const counter = (attributes?: Readonly<Record<string, string>>) =>
  Metric.counter("chamvi_effect_calls", {
    description: "Calls of effect tools, by tool and outcome",
    incremental: true,
    attributes
  })

const calls = counter()

/**
 * How to see the events.
 *
 * **Example** (Collecting events)
 *
 * ```ts
 * import { applyOnce, EffectEvent, EffectStore } from "chamvi-effect"
 * import { Effect } from "effect"
 *
 * const seen: Array<EffectEvent["outcome"]> = []
 * const greet = applyOnce({ key: "greet:ada", execute: () => Effect.succeed("hello") })
 * const program = Effect.andThen(greet, greet).pipe(
 *   Effect.provide([
 *     EffectStore.layerMemory,
 *     EffectEvent.layer((event) => Effect.sync(() => void seen.push(event.outcome)))
 *   ])
 * )
 *
 * await Effect.runPromise(program)
 * seen // => ["executed", "recorded"]
 * ```
 *
 * @category references
 * @since 0.1.0
 */
export const EffectEvent = {
  /** Who is told of every call's end, or `undefined`. A listener that dies changes nothing for the call. */
  Listener,
  /** Tells `listener` of the end of every call. */
  layer: (listener: (event: EffectEvent) => Effect.Effect<void>): Layer.Layer<never> =>
    Layer.succeedContext(Context.make(Listener, listener) as Context.Context<never>),
  /** Counts the calls, by the attributes `tool` and `outcome`. */
  calls
} as const

// A metric remembers the attributes of the update before; with others it makes them anew, which costs ten updates. So each
// series is a metric of its own, under the same name.
const prepared = new Map<string, typeof calls>()

const counterOf = (tool: string, outcome: Outcome): typeof calls => {
  const id = `${outcome} ${tool}`
  let made = prepared.get(id)
  if (made === undefined) {
    made = counter({ tool, outcome })
    if (prepared.size < 10_000) prepared.set(id, made)
  }
  return made
}

/**
 * Publishes the event: counts it, marks the current span, and answers how to tell the listener, if there is one.
 *
 * @category publishing
 * @since 0.1.0
 */
export const publish = (fiber: Fiber.Fiber<unknown, unknown>, event: EffectEvent): Effect.Effect<void> | undefined => {
  counterOf(event.tool, event.outcome).updateUnsafe(1, fiber.context)
  const { span } = fiber.cache
  if (span !== undefined && span._tag === "Span") annotate(span, event)
  const listener = fiber.getRef(Listener)
  return listener === undefined ? undefined : Effect.ignoreCause(Effect.suspend(() => listener(event)))
}

const annotate = (span: { attribute(key: string, value: unknown): void }, event: EffectEvent): void => {
  span.attribute("chamvi.effect.key", event.key)
  span.attribute("chamvi.effect.tool", event.tool)
  span.attribute("chamvi.effect.outcome", event.outcome)
  if (event.error !== undefined) span.attribute("chamvi.effect.error", event.error)
  for (const flag of ["recordFailed", "claimLost", "inputChanged", "takenOver", "executedInDoubt"] as const) {
    if (event[flag]) span.attribute(`chamvi.effect.${flag}`, true)
  }
}
