/**
 * Which context a hook runs in: the services that were captured when the tool was made, and everything that belongs to the
 * moment (References, tracer, parent span) from the fiber that makes the call.
 *
 * `generateText` knows its fiber and rebinds the tools to it; a direct `tool.execute(...)` inside an Effect finds the
 * fiber itself; a call that plain `ai` makes has none, and uses what was captured.
 */
import {
  Clock,
  ConfigProvider,
  Console,
  Context,
  ErrorReporter,
  Fiber,
  Metric,
  Random,
  References,
  Scheduler,
  Scope,
  Tracer
} from "effect"
import type { Ai } from "../Ai.ts"
import { EffectEvent } from "../EffectEvent.ts"
import { EffectSettings } from "../EffectSettings.ts"
import { copyTool, hideOnTool } from "../internal/toolCopy.ts"
import { Enclosing } from "../reconciliation/Application.ts"
import type { CallbackCall } from "./callbacks.ts"

/** Who calls: the fiber's context, and what a `generateText` keeps for its call. */
export interface Caller {
  readonly context: Context.Context<never>
  /** Whose fibers callbacks run in; without one they run in their own. */
  readonly ai: Ai["Service"] | undefined
  /** Starts an execution and keeps an eye on it, so that none outlives the call. */
  readonly track: <A>(start: () => Promise<A>) => Promise<A>
  /** What decisions of tools do to the call, if there is one. */
  readonly call: CallbackCall | undefined
}

// What is never captured, because it belongs to the moment of the call. A Reference of the user's own that is set both
// where the tool is made and where it is called cannot be told from a service, and the captured value is used.
const ofTheMoment: ReadonlyArray<Context.Service.Any> = [
  EffectSettings.Current,
  EffectEvent.Listener,
  Enclosing,
  ...Object.values(References).filter((value) => Context.isKey(value)),
  Clock.Clock,
  ConfigProvider.ConfigProvider,
  Console.Console,
  ErrorReporter.CurrentErrorReporters,
  Metric.CurrentMetricAttributes,
  Metric.MetricRegistry,
  Metric.FiberRuntimeMetrics,
  Random.Random,
  Scheduler.Scheduler,
  Scope.Scope,
  Tracer.ParentSpan,
  Tracer.Tracer,
  Tracer.DisablePropagation,
  Tracer.CurrentTraceLevel,
  Tracer.MinimumTraceLevel
]

/** The context of a tool, in its two parts. */
export interface Captured {
  /** All that there was when the tool was made. */
  readonly all: Context.Context<never>
  /** Of that, what stays with the tool. */
  readonly services: Context.Context<never>
}

export const capture = (context: Context.Context<never>, ...leftOut: ReadonlyArray<Context.Service.Any>): Captured => ({
  all: context,
  services: Context.omit(...ofTheMoment, ...leftOut)(context) as Context.Context<never>
})

/** The context of one call. */
export const contextOf = (captured: Captured, caller: Context.Context<never> | undefined): Context.Context<never> => {
  const context = caller ?? Fiber.getCurrent()?.context
  return context === undefined || context === captured.all ? captured.all : Context.merge(context, captured.services)
}

const Rebind: unique symbol = Symbol.for("chamvi-effect/rebind") as never

type Callback = (...args: never) => unknown

/**
 * A function of a tool that can be bound to the fiber that calls it. How to bind it hangs on the function itself, so that
 * it survives every copy and spread of the tool.
 */
export const rebindable = <F extends Callback>(make: (caller: Caller | undefined) => F): F =>
  hideOnTool(make(undefined), Rebind, make)

/** The functions of `tool` that can be bound, with how. */
const bindings = (
  tool: object
): ReadonlyArray<readonly [name: string, make: (caller: Caller | undefined) => Callback]> =>
  Object.entries(tool).flatMap(([name, value]) => {
    const make = typeof value === "function"
      ? (value as { readonly [Rebind]?: (caller: Caller | undefined) => Callback })[Rebind]
      : undefined
    return make === undefined ? [] : [[name, make] as const]
  })

const patched = <T extends object>(tool: T, patch: ReadonlyArray<readonly [name: string, value: Callback]>): T =>
  patch.length === 0 ? tool : copyTool(tool, Object.fromEntries(patch) as Partial<Record<keyof T, unknown>>)

/** The tool with all its rebindable functions bound to `caller`; a tool without one comes back as the identical object. */
export const bindTool = <T extends object>(tool: T, caller: Caller): T =>
  patched(tool, bindings(tool).map(([name, make]) => [name, make(caller)]))

/**
 * The tool with a service for all its rebindable functions, whoever calls. They can still be bound, and keep the service; bound
 * to another one of its kind, they begin anew.
 */
export const bindService = <T extends object, I, S>(tool: T, caller: Caller, key: Context.Key<I, S>, service: S): T => {
  const withService = (caller: Caller): Caller => ({ ...caller, context: Context.add(caller.context, key, service) })
  return patched(
    tool,
    bindings(tool).map(([name, make]) => {
      const first = (make as Remake)[Without] ?? make
      const remake = (later: Caller | undefined) => first(withService(later ?? caller))
      return [name, hideOnTool(remake(caller), Rebind, Object.assign(remake, { [Without]: first }))]
    })
  )
}

/** How a function was made before it had a service of its own. */
const Without: unique symbol = Symbol("chamvi-effect/without")

interface Remake {
  readonly [Without]?: (caller: Caller | undefined) => Callback
}
