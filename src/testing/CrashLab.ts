/**
 * A tool under every crash: kills the process at each of its steps, repeats and doubles its calls, loses replies and
 * leases, and tells how often the remote holds the effect then, and which fault it is.
 *
 * @since 0.1.0
 */
import { Clock, Duration, Effect, Layer, type Scope } from "effect"
import { ChildProcess, type ChildProcessSpawner } from "effect/process"
import { EffectStore } from "../EffectStore.ts"
import type { ApplyOnceOptions, ApplyOnceSchema } from "../Reconciliation.ts"
import type { RunOptions, ToolContext } from "../ToolContext.ts"
import { child, type ChildPlan } from "./crashLab/child.ts"
import { type ChildrenPlan, examineChildren } from "./crashLab/children.ts"
import { examine } from "./crashLab/examine.ts"
import { point } from "./crashLab/mark.ts"
import { assertOnce, type CrashLabError, type CrashReport, format } from "./crashLab/report.ts"
import { applyOnceSubject, type InputOf, type LabTool, type Subject, toolSubject } from "./crashLab/subject.ts"
import type { Plan } from "./crashLab/World.ts"

export {
  AppliedNotOnce,
  type AssertOnceOptions,
  type CrashCall,
  type CrashFault,
  type CrashFaultName,
  type CrashGroup,
  CrashLabError,
  type CrashPoint,
  type CrashReport,
  type CrashVerdict
} from "./crashLab/report.ts"

/**
 * Where a tool works.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashWorld<W, RW, RS> {
  /**
   * The remote, and the services of the tool: a layer that is built anew for each point. Its clock is the lab's, on which
   * waits cost no time. Default: none.
   */
  readonly world?: Layer.Layer<W, unknown, RW> | undefined
  /** The ledger, built anew for each point, out of the world. Default: `EffectStore.layerMemory`. */
  readonly store?: Layer.Layer<EffectStore, unknown, RS> | undefined
  /** The run that the calls are made for. Default: its id is `crash-lab`. */
  readonly run?: RunOptions | undefined
}

/**
 * What a lab looks at after each point.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashRemote<RC, RR> {
  /** How many effects the remote holds for the key; what strangers have put there does not count. */
  readonly count: (key: string) => Effect.Effect<number, unknown, RC>
  /** Empties the remote before each point, where it is in no layer. */
  readonly reset?: Effect.Effect<unknown, unknown, RR> | undefined
  /** Which points to try, by their names. Default: all. */
  readonly only?: ((point: string) => boolean) | undefined
}

/**
 * What a lab can do to the remote, with the help of whoever knows it. What is left out is not examined, and the report says
 * so.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashTrouble<RD, RP, RL> {
  /** Puts so many entries of strangers beside the effect. Shows a check that reads the first page only. */
  readonly crowd?: ((entries: number) => Effect.Effect<unknown, unknown, RD>) | undefined
  /**
   * Lets a stranger post the marker of the key, as everybody can write it who knows the key. Shows a check that believes
   * everybody.
   */
  readonly plant?: ((marker: string, key: string) => Effect.Effect<unknown, unknown, RP>) | undefined
  /**
   * Has the remote apply the next request and lose the reply: its client fails as it does then. Shows an `execute` that
   * takes that for a plain failure, after which nothing was applied, where there is no check.
   */
  readonly loseReply?: Effect.Effect<unknown, unknown, RL> | undefined
  /** By how much the remote may lag behind its own writes. Shows a check that is believed too early. */
  readonly lag?: Duration.Input | undefined
  /** How many processes are killed one after the other, at most. Default: 1. Each more multiplies the points. */
  readonly crashes?: number | undefined
}

/**
 * The tool that a lab examines.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashSubject<T extends LabTool, RT> {
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
 * The call of `applyOnce` that a lab examines.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashApplyOnce<A, E, RT, AE, AR> {
  /** What `applyOnce` is called with. */
  readonly effect: ApplyOnceOptions<A, E, RT, AE, AR> & ApplyOnceSchema<NoInfer<A>>
}

/**
 * Processes that a lab starts, and kills by SIGKILL.
 *
 * @category models
 * @since 0.1.0
 */
export interface CrashProcesses<W, RW, RM, RC, RR> extends CrashRemote<RC, RR> {
  /** How to start a process whose program is `CrashLab.child`. Its ledger and its remote must outlive it. */
  readonly command: Effect.Effect<ChildProcess.StandardCommand, unknown, RM> | ChildProcess.StandardCommand
  /** What the processes share, and `count` looks at: a folder, a server; a layer that is built anew for each point. */
  readonly world?: Layer.Layer<W, unknown, RW> | undefined
  /**
   * The lease of a process that is killed: the next one waits so long, in real time, where the ledger does not see a death
   * by itself. Default: 1 second.
   */
  readonly lease?: Duration.Input | undefined
}

/** What is left of the services that the tool and the lab need: each call brings its own. */
type Left<R, W, RW> = RW | Exclude<R, W | EffectStore | ToolContext | Scope.Scope>

const placeOf = <W, RW, RS>(subject: Subject<never>, { run, store, world }: CrashWorld<W, RW, RS>): ChildPlan => ({
  subject,
  // both are built with the services that the lab itself runs with
  world: (world ?? Layer.empty) as ChildPlan["world"],
  store: (store ?? EffectStore.layerMemory) as ChildPlan["store"],
  run: run ?? { runId: "crash-lab" }
})

const planOf = <W, RW, RS, RC, RR, RD, RP, RL>(
  subject: Subject<never>,
  options: CrashWorld<W, RW, RS> & CrashRemote<RC, RR> & CrashTrouble<RD, RP, RL>,
  inRealTime = false
): Plan => {
  const { count, crowd, lag, loseReply, only, plant, reset } = options
  // these are run with the services of the world
  const remote = { count, crowd, loseReply, plant, reset } as unknown as Pick<
    Plan,
    "count" | "crowd" | "loseReply" | "plant" | "reset"
  >
  return {
    ...placeOf(subject, options),
    ...remote,
    lag: lag === undefined ? undefined : Duration.toMillis(lag),
    only: only ?? (() => true),
    inRealTime
  }
}

const subjectOf = <T extends LabTool, RT>(options: CrashSubject<T, RT>): Subject<never> => {
  const { context, inOtherWords, input, name = "tool", tool } = options
  return toolSubject({ tool, name, input, inOtherWords: inOtherWords ?? input, context }) as Subject<never>
}

const run = <
  T extends LabTool,
  RT = never,
  W = never,
  RW = never,
  RS = never,
  RC = never,
  RR = never,
  RD = never,
  RP = never,
  RL = never
>(
  options: CrashSubject<T, RT> & CrashWorld<W, RW, RS> & CrashRemote<RC, RR> & CrashTrouble<RD, RP, RL>
): Effect.Effect<CrashReport, CrashLabError, Left<RT | RS | RC | RR | RD | RP | RL, W, RW>> =>
  examine(planOf(subjectOf(options), options), options.crashes ?? 1)

const runApplyOnce = <
  A = never,
  E = never,
  RT = never,
  AE = never,
  AR = never,
  W = never,
  RW = never,
  RS = never,
  RC = never,
  RR = never,
  RD = never,
  RP = never,
  RL = never
>(
  options: CrashApplyOnce<A, E, RT, AE, AR> & CrashWorld<W, RW, RS> & CrashRemote<RC, RR> & CrashTrouble<RD, RP, RL>
): Effect.Effect<CrashReport, CrashLabError, Left<RT | AR | RS | RC | RR | RD | RP | RL, W, RW>> =>
  examine(planOf(applyOnceSubject(options.effect) as Subject<never>, options), options.crashes ?? 1)

const elsewhere: Subject<never> = {
  name: "of the child processes",
  call: () => Effect.die("it is called in other processes"),
  facts: { checks: false, transactional: false }
}

const runProcesses = <W = never, RW = never, RM = never, RC = never, RR = never>(
  options: CrashProcesses<W, RW, RM, RC, RR>
): Effect.Effect<
  CrashReport,
  CrashLabError,
  ChildProcessSpawner.ChildProcessSpawner | Left<RM | RC | RR, W, RW>
> => {
  const { command, count, lease, only, reset, world } = options
  const plan: ChildrenPlan = {
    ...planOf(elsewhere, { count, only, reset, world }, true),
    command: (ChildProcess.isCommand(command) ? Effect.succeed(command) : command) as ChildrenPlan["command"],
    lease: Duration.toMillis(lease ?? "1 second")
  }
  // a test's own clock stands still, and so would the time of its processes
  return Effect.provideService(examineChildren(plan), Clock.Clock, Clock.Clock.defaultValue())
}

const runChild = <T extends LabTool, RT = never, W = never, RW = never, RS = never>(
  options: CrashSubject<T, RT> & CrashWorld<W, RW, RS>
): Effect.Effect<void, CrashLabError, Left<RT | RS, W, RW>> => child(placeOf(subjectOf(options), options))

const runChildApplyOnce = <A = never, E = never, RT = never, AE = never, AR = never, W = never, RW = never, RS = never>(
  options: CrashApplyOnce<A, E, RT, AE, AR> & CrashWorld<W, RW, RS>
): Effect.Effect<void, CrashLabError, Left<RT | AR | RS, W, RW>> =>
  child(placeOf(applyOnceSubject(options.effect) as Subject<never>, options))

/**
 * Examines a tool, or a call of `applyOnce`: each point is a way in which things go wrong, in a world of its own, and has a
 * verdict, `once`, `twice`, `lost` or `inDoubt`.
 *
 * **Details**
 *
 * - `run` and `runApplyOnce` run the tool's own hooks in simulated processes of this one: a process that is killed does
 *   nothing more, and the next one finds the ledger and the remote as it left them. Points: a crash before and after each
 *   operation of the store, the check and `execute`; double calls in one process and in two; an `execute` that does not know,
 *   dies, or loses its caller; a process that freezes past its lease; and what `crowd`, `plant`, `loseReply` and `lag` do to the remote.
 * - `point(name)` in a remote, or in a client, marks a place inside of `execute` where the process can be killed. Outside
 *   of a lab it does nothing.
 * - `runProcesses` kills processes of the operating system by SIGKILL. `child` and `childApplyOnce` are their programs.
 * - `assertOnce(report)` throws an `AppliedNotOnce` where an effect was applied twice, or lost. Its message has the name of
 *   the fault and a table of all points. `format(report)` is that table as a text. Neither needs a test runner.
 * - A verdict of `inDoubt` passes: the tool says so itself (`whenInDoubt: "fail"`). `{ inDoubt: "refuse" }` does not let
 *   it pass.
 *
 * Waits of the library and of the world (leases, `settle`, polls) take no time; hooks take theirs. Leases end when a
 * process dies. The ledger is kept apart for each point, and nothing is left in it.
 *
 * **Gotchas**
 *
 * - `world` must hold the remote, or `reset` empty it: an effect of the point before would be found.
 * - What `execute` does in parallel goes on where a simulated process dies, up to its next mark, as a request does that is on
 *   its way. Only `runProcesses` stops it at once.
 * - The lab says what the tool does in these points. It does not prove that there is no other.
 * - A tool that freezes past its lease just before its request leaves, and is not told, can apply its effect once more; the
 *   lab lets the heartbeat tell it. A remote that honours `idempotencyKey` closes that, too.
 *
 * Fails with `CrashLabError` where the tool does not work without any trouble, or what was given to the lab fails.
 *
 * **Example** (A tool that is right, and one without a check)
 *
 * ```ts
 * import { defineEffectTool } from "chamvi-effect"
 * import { CrashLab } from "chamvi-effect/testing"
 * import { Context, Effect, Layer, Schema } from "effect"
 *
 * class Outbox extends Context.Service<Outbox, Array<string>>()("app/Outbox") {
 *   static readonly layer = Layer.sync(Outbox, () => [])
 * }
 *
 * const letter = {
 *   description: "Sends a letter.",
 *   inputSchema: Schema.Struct({ to: Schema.String }),
 *   execute: (_: unknown, { effectKey }: { readonly effectKey: string }) =>
 *     Effect.map(Outbox, (outbox) => `letter ${outbox.push(effectKey)}`)
 * }
 * const checked = defineEffectTool({
 *   ...letter,
 *   alreadyApplied: (key) =>
 *     Effect.map(Outbox, (outbox) => outbox.includes(key) ? `letter ${outbox.indexOf(key) + 1}` : undefined)
 * })
 *
 * const lab = {
 *   input: { to: "ada" },
 *   world: Outbox.layer,
 *   count: () => Effect.map(Outbox, (outbox) => outbox.length)
 * }
 * const faults = Effect.forEach(
 *   [CrashLab.run({ ...lab, tool: checked }), CrashLab.run({ ...lab, tool: defineEffectTool(letter) })],
 *   (run) => Effect.map(run, (report) => report.faults.map(({ name }) => name))
 * )
 *
 * await Effect.runPromise(faults) // => [[], ["NoCheck"]]
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const CrashLab = {
  /** Examines a tool. */
  run,
  /** Examines a call of `applyOnce`. */
  runApplyOnce,
  /** Examines a tool in processes of the operating system. */
  runProcesses,
  /** The program of such a process, for a tool. */
  child: runChild,
  /** The program of such a process, for a call of `applyOnce`. */
  childApplyOnce: runChildApplyOnce,
  /** Throws where an effect was applied twice, or lost. */
  assertOnce,
  /** The report as a text for people. */
  format,
  /** A place at which a process can be killed. */
  point
} as const
