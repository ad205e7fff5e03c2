/**
 * The span of the model call or tool execution under way, for code that the AI SDK runs outside of any fiber.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { Clock, Context, Effect, type Exit, References, Tracer } from "effect"

/** Set while spans are made, and never otherwise. */
export const callSpan = new AsyncLocalStorage<Tracer.AnySpan>()

/** Says in the span of the call under way, if there is one, that its answer was stored. */
export const showReplay = (): void => {
  const span = callSpan.getStore()
  if (span?._tag === "Span") span.attribute("chamvi.replayed", true)
}

/**
 * Runs `evaluate` in a fiber of the call whose span is `span`. The fiber lasts for the synchronous part only, which is
 * enough: a tool that the SDK calls there finds its fiber, and a tracer that keeps a context of its own, as that of
 * OpenTelemetry does, hands it on to everything asynchronous that starts there.
 */
export const runIn = <A>(context: Context.Context<never>, span: Tracer.AnySpan, evaluate: () => A): A =>
  callSpan.run(
    span,
    () => Effect.runSyncWith(Context.add(context, Tracer.ParentSpan, span))(Effect.sync(evaluate))
  )

/** Ends `span` by the clock of the call, unless it has ended. */
export const endSpan = (
  context: Context.Context<never>,
  span: Tracer.Span,
  exit: Exit.Exit<unknown, unknown>
): void => {
  if (span.status._tag === "Ended") return
  const timed = Context.get(context, References.TracerTimingEnabled)
  span.end(timed ? Context.get(context, Clock.Clock).currentTimeNanosUnsafe() : 0n, exit)
}
