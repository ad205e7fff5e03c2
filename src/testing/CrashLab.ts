/**
 * A tool under every crash: kills the process at each of its steps, repeats and doubles its calls, loses replies and
 * leases, and tells how often the remote holds the effect then, and which fault it is.
 *
 * @since 0.1.0
 */
import { Duration, type Effect, Layer, type Scope } from "effect"
import { EffectStore } from "../EffectStore.ts"
import type { ApplyOnceOptions, ApplyOnceSchema } from "../Reconciliation.ts"
import type { RunOptions, ToolContext } from "../ToolContext.ts"
import { examine } from "./crashLab/examine.ts"
import { point } from "./crashLab/mark.ts"
import { assertOnce, type CrashLabError, type CrashReport, format } from "./crashLab/report.ts"
import { applyOnceSubject, type InputOf, type LabTool, type Subject, toolSubject } from "./crashLab/subject.ts"
import type { Plan } from "./crashLab/World.ts"

export {
  AppliedNotOnce,
  type AssertOnceOptions,
  type CrashFault,
  type CrashFaultName,
  type CrashGroup,
  CrashLabError,
  type CrashPoint,
  type CrashReport,
  type CrashVerdict
} from "./crashLab/report.ts"

/**
 * The remote, as a lab needs it.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashWorld<W, RW, R> {
  /**
   * The remote, and the services of the tool: a layer that is built anew for each point. Its clock is the lab's, on which
   * waits cost no time.
   */
  readonly world?: Layer.Layer<W, unknown, RW> | undefined
  /** The ledger, built anew for each point, out of the world. Default: `EffectStore.layerMemory`. */
  readonly store?: Layer.Layer<EffectStore, unknown, R> | undefined
  /** How many effects the remote holds for the key; what strangers have put there does not count. */
  readonly count: (key: string) => Effect.Effect<number, unknown, R>
  /** Empties the remote before each point, where it cannot be a layer. */
  readonly reset?: Effect.Effect<unknown, unknown, R> | undefined
  /** Puts so many entries of strangers beside the effect. With it the lab sees a check that reads the first page only. */
  readonly crowd?: ((entries: number) => Effect.Effect<unknown, unknown, R>) | undefined
  /**
   * Lets a stranger post the marker of the key, as everybody can write it who knows the key. With it the lab sees a check
   * that believes everybody.
   */
  readonly plant?: ((marker: string, key: string) => Effect.Effect<unknown, unknown, R>) | undefined
  /** By how much the remote may lag behind its own writes. With it the lab sees a check that is believed too early. */
  readonly lag?: Duration.Input | undefined
  /** The run that the calls are made for. Default: its id is `crash-lab`. */
  readonly run?: RunOptions | undefined
  /** How many processes are killed one after the other, at most. Default: 1. Each more multiplies the points. */
  readonly crashes?: number | undefined
}

/**
 * What `CrashLab.run` takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashLabOptions<T extends LabTool, RT, W, RW, R> extends CrashWorld<W, RW, R> {
  /** The tool, as `defineEffectTool` answers it. */
  readonly tool: Effect.Effect<T, never, RT>
  /** The tool's name in a set of tools; it is a part of default keys. Default: `"tool"`. */
  readonly name?: string | undefined
  /** What the model calls it with, in JSON form. */
  readonly input: InputOf<NoInfer<T>>
  /** The same effect in other words, as models say it after a crash: the input of all calls but the first. */
  readonly inOtherWords?: InputOf<NoInfer<T>> | undefined
  /** The tool's own context, if it has a `contextSchema`. */
  readonly context?: unknown
}

/**
 * What `CrashLab.runApplyOnce` takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashLabApplyOnceOptions<A, E, RT, AE, AR, W, RW, R> extends CrashWorld<W, RW, R> {
  /** What `applyOnce` is called with. */
  readonly effect: ApplyOnceOptions<A, E, RT, AE, AR> & ApplyOnceSchema<NoInfer<A>>
}

/** What is left of the services that the tool and the lab need: each call brings its own. */
type Left<R, W, RW> = RW | Exclude<R, W | EffectStore | ToolContext | Scope.Scope>

const planOf = <W, RW, R>(subject: Subject<never>, options: CrashWorld<W, RW, R>): Plan => {
  const { count, crowd, lag, plant, reset, run, store, world } = options
  // all are run with the services of the world, and those that the lab itself runs with
  const given = {
    subject,
    world: world ?? Layer.empty,
    store: store ?? EffectStore.layerMemory,
    run: run ?? { runId: "crash-lab" },
    lag: lag === undefined ? undefined : Duration.toMillis(lag),
    count,
    reset,
    crowd,
    plant
  }
  return given as unknown as Plan
}

const run = <T extends LabTool, RT = never, W = never, RW = never, R = never>(
  options: CrashLabOptions<T, RT, W, RW, R>
): Effect.Effect<CrashReport, CrashLabError, Left<RT | R, W, RW>> => {
  const { context, inOtherWords, input, name = "tool", tool } = options
  const subject = toolSubject({ tool, name, input, inOtherWords: inOtherWords ?? input, context })
  return examine(planOf(subject as Subject<never>, options), options.crashes ?? 1)
}

const runApplyOnce = <A = never, E = never, RT = never, AE = never, AR = never, W = never, RW = never, R = never>(
  options: CrashLabApplyOnceOptions<A, E, RT, AE, AR, W, RW, R>
): Effect.Effect<CrashReport, CrashLabError, Left<RT | AR | R, W, RW>> =>
  examine(planOf(applyOnceSubject(options.effect) as Subject<never>, options), options.crashes ?? 1)

/**
 * The lab.
 *
 * @category testing
 * @since 0.1.0
 */
export const CrashLab = { run, runApplyOnce, assertOnce, format, point } as const
