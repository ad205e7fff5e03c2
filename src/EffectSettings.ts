/**
 * Settings of reconciliation that hold for many tools at once.
 *
 * @since 0.1.0
 */
import { Context, Duration, Effect, Layer, Option } from "effect"
import { abbreviate } from "./internal/abbreviate.ts"

/**
 * What to do with a key in doubt that nothing can check: apply again, with a warning, or fail until someone resolves it.
 *
 * @category models
 * @since 0.1.0
 */
export type WhenInDoubt = "execute" | "fail"

/**
 * What to do when a key is called with another input than before: answer the record, or fail.
 *
 * @category models
 * @since 0.1.0
 */
export type OnInputChange = "replay" | "fail"

/**
 * The settings, with durations in milliseconds.
 *
 * @category models
 * @since 0.1.0
 */
export interface Settings {
  /** Default: `"execute"`. */
  readonly whenInDoubt: WhenInDoubt
  /** Default: `"replay"`. */
  readonly onInputChange: OnInputChange
  /** How long a claim is kept without a sign of life, in milliseconds. Default: 30 seconds. A third of it is the heartbeat. */
  readonly lease: number
  /** How long to wait for another process's claim, in milliseconds. Default: 60 seconds. */
  readonly waitFor: number
  /** How long to wait for an answer of the store before the effect, in milliseconds. Default: 10 seconds. */
  readonly storeTimeout: number
  /** How long a call waits for its record to be written, in milliseconds. Default: 10 seconds. */
  readonly recordTimeout: number
  /** The largest result that is recorded, in UTF-8 bytes of its text. Default: 1 MiB. */
  readonly largestResult: number
}

/**
 * The settings as they are given.
 *
 * @category models
 * @since 0.1.0
 */
export interface SettingsOptions {
  readonly whenInDoubt?: WhenInDoubt | undefined
  readonly onInputChange?: OnInputChange | undefined
  readonly lease?: Duration.Input | undefined
  readonly waitFor?: Duration.Input | undefined
  readonly storeTimeout?: Duration.Input | undefined
  readonly recordTimeout?: Duration.Input | undefined
  readonly largestResult?: number | undefined
}

const defaults: Settings = {
  whenInDoubt: "execute",
  onInputChange: "replay",
  lease: 30_000,
  waitFor: 60_000,
  storeTimeout: 10_000,
  recordTimeout: 10_000,
  largestResult: 1_048_576
}

const durations = ["lease", "waitFor", "storeTimeout", "recordTimeout", "settle"] as const

// Effect reads NaN as no time at all
const isDuration = (given: Duration.Input): boolean =>
  !Number.isNaN(given) && Option.exists(Duration.fromInput(given), (duration) => Duration.toMillis(duration) >= 0)

const choices = { whenInDoubt: ["execute", "fail"], onInputChange: ["replay", "fail"] } as const

/**
 * Throws a `TypeError` that names the option, for values that only JavaScript, a cast or a configuration lets through. A
 * choice that is none must not pass for the riskier one.
 *
 * @category validation
 * @since 0.1.0
 */
export const checkOptions = (
  owner: string,
  options: SettingsOptions & {
    readonly settle?: Duration.Input | undefined
    readonly transactional?: boolean | undefined
  }
): void => {
  const refuse = (name: string, wanted: string, given: unknown): never => {
    throw new TypeError(
      `The option ${name} of ${owner} is ${
        abbreviate(typeof given === "string" ? `"${given}"` : String(given))
      }; give ${wanted}.`
    )
  }
  for (const [name, allowed] of Object.entries(choices)) {
    const given: unknown = options[name as keyof typeof choices]
    if (given !== undefined && !(allowed as ReadonlyArray<unknown>).includes(given)) {
      refuse(name, allowed.map((choice) => `"${choice}"`).join(" or "), given)
    }
  }
  for (const name of durations) {
    const given = options[name]
    if (given !== undefined && !isDuration(given))
      refuse(name, `a duration such as "30 seconds", or milliseconds`, given)
  }
  const { largestResult, lease, transactional } = options
  if (transactional !== undefined && typeof transactional !== "boolean") {
    refuse("transactional", "true or false", transactional)
  }
  // ignored, it would seem to bound something
  if (transactional === true && lease !== undefined) {
    refuse(
      "lease",
      "none beside transactional: true, whose claim is the lock of a row and ends with its transaction",
      lease
    )
  }
  if (lease !== undefined && !Number.isFinite(Duration.toMillis(lease))) refuse("lease", "a duration that ends", lease)
  if (largestResult !== undefined && !(largestResult > 0))
    refuse("largestResult", "a number of bytes above 0", largestResult)
}

const millis = (input: Duration.Input | undefined, otherwise: number): number =>
  input === undefined ? otherwise : Duration.toMillis(input)

/**
 * The given settings over others.
 *
 * @category combinators
 * @since 0.1.0
 */
export const override = (settings: Settings, options: SettingsOptions): Settings => ({
  whenInDoubt: options.whenInDoubt ?? settings.whenInDoubt,
  onInputChange: options.onInputChange ?? settings.onInputChange,
  lease: millis(options.lease, settings.lease),
  waitFor: millis(options.waitFor, settings.waitFor),
  storeTimeout: millis(options.storeTimeout, settings.storeTimeout),
  recordTimeout: millis(options.recordTimeout, settings.recordTimeout),
  largestResult: options.largestResult ?? settings.largestResult
})

const Current = Context.Reference<Settings>("chamvi-effect/EffectSettings", { defaultValue: () => defaults })

/**
 * The settings of every call in a part of the program; a tool's own settings come before them.
 *
 * **Example** (Effects that nobody can check are never applied again by themselves)
 *
 * ```ts
 * import { applyOnce, EffectSettings, EffectStore } from "chamvi-effect"
 * import { Effect } from "effect"
 *
 * const program = applyOnce({ key: "letter:7", execute: () => Effect.succeed("sent") }).pipe(
 *   Effect.provide([EffectStore.layerMemory, EffectSettings.layer({ whenInDoubt: "fail", lease: "10 seconds" })])
 * )
 *
 * await Effect.runPromise(program) // => "sent"
 * ```
 *
 * @category references
 * @since 0.1.0
 */
export const EffectSettings = {
  /** The settings in force. */
  Current,
  /** Changes the settings given, and keeps the others. */
  layer: (options: SettingsOptions): Layer.Layer<never> =>
    Layer.effectContext(
      Effect.map(Current, (settings) => {
        checkOptions("EffectSettings.layer", options)
        return Context.make(Current, override(settings, options)) as Context.Context<never>
      })
    )
} as const
