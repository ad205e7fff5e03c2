/**
 * An effect tool over any Stream, wrapped for a run.
 */
import { defineEffectTool, EffectStore, type EffectTool, ToolContext } from "chamvi-effect"
import { Effect, type Latch, Layer, Schema, Stream } from "effect"
import { wrap } from "../support/wrapped.ts"
import { options } from "./support.ts"

export const layers = Layer.mergeAll(EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))
export const empty = Schema.Struct({})

type Made = EffectTool<object, unknown, Record<string, unknown>, true>

// hooks without types, as JavaScript has them
const define = defineEffectTool as unknown as (options: object) => Effect.Effect<Made>

/** A tool of key "k" over a Stream, wrapped, with a count of its runs. */
export const streaming = (stream: () => unknown, allow?: () => boolean) =>
  Effect.gen(function*() {
    const seen = { runs: 0 }
    const execute = () => {
      seen.runs++
      return stream()
    }
    const made = yield* define({ streaming: true, inputSchema: empty, effectKey: () => "k", execute })
    const tools = yield* wrap({ made }, allow)
    return { call: (signal?: AbortSignal) => tools.made.execute({}, options(signal)), seen }
  })

export const entry = (key = "k") => Effect.flatMap(EffectStore, (store) => store.get(key))

/** One value at once, the other ones when the gate opens. */
export const gated = <O>(gate: Latch.Latch, first: O, ...others: ReadonlyArray<O>) =>
  Stream.concat(Stream.succeed(first), Stream.unwrap(Effect.as(gate.await, Stream.fromIterable(others))))
