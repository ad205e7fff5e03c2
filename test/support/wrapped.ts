/** Calling wrapped tools directly, as the AI SDK does. */
import { EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Effect } from "effect"

export const call = { toolCallId: "1", messages: [], context: {} }

export const wrap = <T extends Readonly<Record<string, object>>>(
  tools: T,
  allow?: Parameters<typeof wrapToolsForRun>[3]
) =>
  Effect.gen(function*() {
    return yield* wrapToolsForRun(tools, yield* ToolContext, yield* EffectStore, allow)
  })

/** What the promise of a tool's `execute` came to. */
export const settle = <A>(promise: () => PromiseLike<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: promise, catch: (error) => error })
