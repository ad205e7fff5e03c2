/** Calling wrapped tools directly, as the AI SDK does. */
import { type Allow, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Effect } from "effect"

export const call = { toolCallId: "1", messages: [], context: {} }

export const wrap = <T extends Parameters<typeof wrapToolsForRun>[0]>(
  tools: T,
  allow?: Allow
) =>
  Effect.gen(function*() {
    return yield* wrapToolsForRun(tools, yield* ToolContext, yield* EffectStore, allow)
  })

/** What the promise of a tool's `execute` came to. */
export const settle = <A>(promise: () => PromiseLike<A>): Effect.Effect<A, unknown> =>
  Effect.callback((resume) => {
    promise().then((value) => resume(Effect.succeed(value)), (error: unknown) => resume(Effect.fail(error)))
  })
