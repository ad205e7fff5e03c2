/**
 * What the lab has no point for, since nothing can be wrong with it: an `execute` that fails plainly, and tells the truth.
 */
import { EffectEvent, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Effect, Layer } from "effect"
import type { Store } from "./stores.ts"
import { Remote } from "./remote.ts"
import type { Column } from "./tools.ts"
import type { Found } from "./words.ts"

export const failing = "`execute` fails plainly, and nothing was applied"

/** Each time it is told in a run of its own: a ledger may have had the stories of others. */
let runs = 0

/** A call whose `execute` fails, and the same call once more. */
export const tell = ({ tool, world }: Column, store: Store) => {
  const events: Array<EffectEvent> = []
  const listening = EffectEvent.layer((event) => Effect.sync(() => void events.push(event)))
  const story = Effect.gen(function*() {
    const remote = yield* Remote
    const tools = yield* wrapToolsForRun({ tool: yield* tool("10 millis") }, yield* ToolContext, yield* EffectStore)
    const call = (toolCallId: string) =>
      Effect.tryPromise(() =>
        Promise.resolve(tools.tool.execute({ entry: 1 }, { toolCallId, messages: [], context: {} }))
      )
    yield* remote.failNext("before")
    yield* Effect.ignore(call("1"))
    yield* Effect.ignore(call("2"))
    const applied = yield* remote.count
    const last = events.at(-1)
    const found: Found = {
      applied,
      verdict: applied > 1 ? "twice" : last?.outcome === "inDoubt" ? "inDoubt" : applied === 1 ? "once" : "lost",
      asked: events.some(({ outcome }) => outcome === "reconciled"),
      flags: (["executedInDoubt", "claimLost"] as const).filter((flag) => events.some((event) => event[flag]))
    }
    return found
  })
  return story.pipe(
    Effect.scoped,
    Effect.provide([listening, ToolContext.layer({ runId: `run-${++runs}` }), Layer.provideMerge(store, world)])
  )
}
