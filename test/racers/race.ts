/**
 * Races of several processes for the same keys: each key's effect is applied once, and every caller gets its result.
 */
import { it } from "@effect/vitest"
import { Effect, Queue, type Scope } from "effect"
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect } from "vitest"
import type { Round, Told } from "../fixtures/racer.ts"
import type { StoreSpec } from "../fixtures/storeSpec.ts"

const script = fileURLToPath(new URL("../fixtures/racer.ts", import.meta.url))

const racers = 50

/** Over two and four processes, one key and many: a hundred for each store. */
const rounds = 25

/** A racing process, and what it tells. */
const racer = (spec: StoreSpec, keys: number) =>
  Effect.gen(function*() {
    const told = yield* Queue.unbounded<Told>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        fork(script, [JSON.stringify(spec), String(racers), String(keys)], {
          execArgv: ["--conditions=chamvi-source", "--no-warnings"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    child.on("message", (message) => void Queue.offerUnsafe(told, message as Told))
    expect(yield* Queue.take(told)).toEqual({ _tag: "Ready" })
    return { told, start: (round: Round) => Effect.sync(() => child.send(round)) }
  })

/** What a process told of one round. */
const outcome = Effect.fnUntraced(function*(told: Queue.Dequeue<Told>) {
  const applied: Array<{ readonly key: string; readonly result: string }> = []
  while (true) {
    const message = yield* Queue.take(told)
    if (message._tag === "Applied") applied.push(message)
    if (message._tag === "Done") return { applied, results: message.results }
  }
})

const race = Effect.fnUntraced(function*(spec: StoreSpec, processes: number, keys: number) {
  const children = yield* Effect.forEach(Array.from({ length: processes }), () => racer(spec, keys), {
    concurrency: "unbounded"
  })
  for (let round = 0; round < rounds; round++) {
    // in half of the rounds the first holder of each key in the first process fails
    yield* Effect.forEach(children, ({ start }, index) => start({ round, failing: index === 0 && round % 2 === 0 }))
    const outcomes = yield* Effect.forEach(children, ({ told }) => outcome(told), { concurrency: "unbounded" })
    const applied = outcomes.flatMap((outcome) => outcome.applied)
    const resultOf = new Map(applied.map(({ key, result }) => [key, result]))
    expect([round, applied.length]).toEqual([round, keys])
    expect(resultOf.size).toBe(keys)
    for (const { results } of outcomes) {
      expect(Object.keys(results).length).toBe(keys)
      for (const [key, got] of Object.entries(results)) {
        expect(got.length).toBe(keys === 1 ? racers : 2)
        expect(new Set(got)).toEqual(new Set([resultOf.get(key)]))
      }
    }
  }
})

/** The races on a store that `spec` makes, 100 rounds in all. */
export const races = (name: string, there: boolean, spec: Effect.Effect<StoreSpec, unknown, Scope.Scope>) =>
  describe.skipIf(!there)(`${name}, raced for`, () => {
    for (const processes of [2, 4]) {
      for (const keys of [1, 200]) {
        it.live(
          `${processes} processes with ${racers} racers each on ${
            keys === 1 ? "one key" : `${keys} keys`
          }: one application per key, and all get its result`,
          () => Effect.scoped(Effect.flatMap(spec, (spec) => race(spec, processes, keys))),
          120_000
        )
      }
    }
  })
