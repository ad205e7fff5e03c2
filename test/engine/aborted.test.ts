import { expect, it } from "@effect/vitest"
import { generateText, jsonSchema } from "ai"
import { Deferred, Effect, Exit } from "effect"
import { type Journal, journaled, Loop } from "../../src/ai/journal.ts"
import type { Publisher } from "../../src/ai/Publisher.ts"
import { calls, scripted } from "../support/model.ts"

const silent: Publisher = {
  begin: () => Effect.succeed("answer"),
  live: () => Effect.void,
  written: () => Effect.void,
  answered: () => Effect.void,
  once: () => Effect.void
}

/** Fails with the reason of the signal, as requests do. */
const request = (reached: Deferred.Deferred<void>, signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason))
    Deferred.doneUnsafe(reached, Effect.void)
  })

for (const what of ["a model", "a tool"]) {
  it.live(`An activity that outlives its run keeps nothing of a request that was aborted in ${what}`, () =>
    Effect.gen(function*() {
      const reached = yield* Deferred.make<void>()
      const kept: Array<unknown> = []
      // as in a cluster, where it is not the run that executes an activity
      const activity = <A>(body: Effect.Effect<A, unknown>) =>
        Effect.callback<A, unknown>((resume) => {
          Effect.runFork(body).addObserver((exit) => {
            kept.push(Exit.isSuccess(exit) ? exit.value : exit.cause)
            resume(exit)
          })
        })
      const journal = {
        model: (_, call) => what === "a model" ? activity(call) : call,
        tool: (_, call) => activity(call),
        isOurs: () => false
      } as Pick<Journal, "model" | "tool" | "isOurs"> as Journal
      const stop = new AbortController()
      const model = scripted(({ abortSignal }) =>
        what === "a model" ? request(reached, abortSignal) : Promise.resolve(calls(["charge", {}]))
      )
      const charge = {
        inputSchema: jsonSchema({ type: "object" }),
        execute: (_: unknown, { abortSignal }: { readonly abortSignal?: AbortSignal }) => request(reached, abortSignal)
      }
      const loop = new Loop(yield* Effect.context())
      const options = journaled(
        {
          model,
          tools: { charge },
          prepareStep: undefined,
          toolApproval: undefined,
          callbacks: {},
          stream: false,
          allow: undefined,
          signal: stop.signal
        },
        journal,
        silent,
        loop
      )
      const call = generateText({ ...options, prompt: "Charge.", abortSignal: stop.signal } as never)
      yield* Deferred.await(reached)
      stop.abort()
      yield* Effect.exit(Effect.promise(() => Promise.resolve(call)))
      yield* Effect.promise(() => new Promise(setImmediate))
      expect(kept).toEqual([])
    }))
}
