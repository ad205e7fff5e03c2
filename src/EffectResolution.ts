/**
 * A verdict on an effect key: given by a person who looked at the remote (`store.resolve`), or by an `alreadyApplied` that
 * knows more than a result or `undefined` can say.
 *
 * @since 0.1.0
 */
import { Predicate } from "effect"

const TypeId: unique symbol = Symbol.for("chamvi-effect/EffectResolution") as never

interface Branded {
  readonly [TypeId]: typeof TypeId
}

/**
 * The effect was applied. With a `result`, replays answer it; without one they fail with `EffectResultUnavailableError`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Applied<out A = unknown> extends Branded {
  readonly _tag: "Applied"
  readonly result: { readonly value: A } | undefined
}

/**
 * The effect was not applied: the next call executes.
 *
 * @category models
 * @since 0.1.0
 */
export interface NotApplied extends Branded {
  readonly _tag: "NotApplied"
}

/**
 * It cannot be known now. The key is in doubt, and `whenInDoubt` decides.
 *
 * @category models
 * @since 0.1.0
 */
export interface Unknown extends Branded {
  readonly _tag: "Unknown"
}

/**
 * @category models
 * @since 0.1.0
 */
export type EffectResolution<A = unknown> = Applied<A> | NotApplied | Unknown

const applied: {
  (): Applied<never>
  <A>(result: A): Applied<A>
} = (...args: ReadonlyArray<unknown>): Applied<never> => ({
  [TypeId]: TypeId,
  _tag: "Applied",
  // how many arguments there were tells `applied(undefined)`, whose result is undefined, from `applied()`
  result: args.length === 0 ? undefined : { value: args[0] as never }
})

/**
 * The verdicts, and a guard.
 *
 * **Example** (A check that sees more than yes or no)
 *
 * ```ts
 * import { EffectResolution } from "chamvi-effect"
 *
 * const verdict = (status: "sent" | "none" | "queued") =>
 *   status === "sent"
 *     ? EffectResolution.applied()
 *     : status === "none"
 *     ? EffectResolution.notApplied
 *     : EffectResolution.unknown
 *
 * verdict("queued")._tag // => "Unknown"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const EffectResolution = {
  /** The effect was applied; give its result if it is known. */
  applied,
  /** The effect was not applied. */
  notApplied: { [TypeId]: TypeId, _tag: "NotApplied" } as NotApplied,
  /** It cannot be known now. */
  unknown: { [TypeId]: TypeId, _tag: "Unknown" } as Unknown,
  is: (value: unknown): value is EffectResolution => Predicate.hasProperty(value, TypeId) && value[TypeId] === TypeId
} as const
