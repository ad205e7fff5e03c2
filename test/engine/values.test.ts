/** What a run keeps: as it was, beside its rows where it is large, and within the limit of a row. */
import { describe, expect, it } from "@effect/vitest"
import { type Agent, defineAgent, tool } from "chamvi-effect"
import { Effect, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { createHash } from "node:crypto"
import * as Blobs from "../../src/engine/blobs.ts"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const digestOf = (content: Uint8Array | string) => createHash("sha256").update(content).digest("hex")
const file = (fill: number) => new Uint8Array(5 * 1024 * 1024).fill(fill)
const base64 = (fill: number) => Buffer.from(file(fill)).toString("base64")

describe("large files of a run, and values that JSON cannot carry", () => {
  it.live(
    "survive the process, in the prompt, in a model's answer and in results of tools, and stand beside the rows",
    () =>
      Effect.gen(function*() {
        const directory = yield* temporaryDirectory
        const first = yield* start("valuesWorker.ts", directory, "first")
        yield* first.ended
        const second = yield* start("valuesWorker.ts", directory, "second")
        const { lines, longest, text } = (yield* second.line) as {
          readonly text: string
          readonly lines: ReadonlyArray<unknown>
          readonly longest: Readonly<Record<string, number>>
        }
        expect(text).toBe("Seen.")
        expect(lines.length).toBe(2)
        expect(lines[1]).toEqual(lines[0])
        const read = JSON.stringify(lines[0])
        for (const content of [file(0), base64(1), base64(2), file(3), base64(4)]) {
          expect(read).toContain(digestOf(content))
        }
        expect(read).toContain("at: [object Date] 1970-01-01T00:00:00.000Z")
        expect(read).toContain("none: [object Undefined]")
        expect(read).toContain("map: [object Map] a=1")
        expect(read).toContain("floats: [object Float32Array] 0.5")
        const { chamvi_key_values, ...others } = longest
        expect(chamvi_key_values).toBeGreaterThan(1024 * 1024)
        expect(Math.max(...Object.values(others))).toBeLessThan(10_000)
        expect(Object.keys(others)).toContain("chamvi_engine_replies")
      }),
    { timeout: 240_000 }
  )
})

describe("Blobs", () => {
  it.effect("keeps bytes and texts of any size, in pieces, and knows when one is missing", () =>
    Effect.gen(function*() {
      const store = yield* KeyValueStore.KeyValueStore
      const blobs = Blobs.make(store, "run")
      const bytes = new Uint8Array(2 * Blobs.pieceSize + 1).map((_, index) => index % 251)
      // each piece ends within a pair, whatever the quotes and escapes before it
      const text = `\u{1f600}"\\\ud800${"\u{1f600}".repeat(Blobs.pieceSize / 2)}`
      for (
        const [name, content] of [["bytes", bytes], ["text", text], ["nothing", ""], [
          "none",
          new Uint8Array()
        ]] as const
      ) {
        yield* blobs.put(name, content)
        expect(
          (yield* blobs.get(name)) === content || Buffer.compare(
                Buffer.from((yield* blobs.get(name)) as Uint8Array),
                Buffer.from(content as Uint8Array)
              ) === 0
        ).toBe(true)
      }
      expect(yield* blobs.get("unknown")).toBe(undefined)
      expect(yield* Blobs.make(store, "another").get("bytes")).toBe(undefined)
    }).pipe(Effect.provide(KeyValueStore.layerMemory)))
})

describe.each(engines)("a row that would be too large, $where", ({ withAgents }) => {
  it.live("fails its own run, typed, wherever it is; the runs beside it complete", () => {
    const huge = "x".repeat(30_000)
    const inputSchema = Schema.Struct({})
    const answers = tool({ inputSchema, execute: () => Effect.succeed(huge) })
    const cases = {
      result: defineAgent({ name: "result", model: scripted(calls(["answers", {}])), tools: { answers } }),
      model: defineAgent({ name: "model", model: scripted(says(huge)) })
    }
    const broken = defineAgent({
      name: "broken",
      maxRetries: 0,
      model: scripted(() => Promise.reject(new Error(huge)))
    })
    const fine = defineAgent({ name: "fine", model: scripted(says("Hello.")) })
    return withAgents([...Object.values(cases), broken, fine], { maxRowSize: 20_000 })((engine) =>
      Effect.gen(function*() {
        const ended = (agent: Agent<string, undefined, string, never>, runId: string, prompt = "Go.") =>
          Effect.result(engine.run(agent, { runId, prompt }))
        const [result, model, words, input, ...others] = yield* Effect.all([
          ended(cases.result, "result"),
          ended(cases.model, "model"),
          ended(broken, "broken"),
          ended(fine, "input", huge),
          ended(fine, "fine-1"),
          ended(fine, "fine-2")
        ], { concurrency: "unbounded" })
        for (const one of [result, model]) {
          expect(one).toMatchObject({
            failure: { _tag: "RunFailedError", failure: { name: "RunRowTooLargeError", step: 0 } }
          })
        }
        // nothing was stored of it
        expect(input).toMatchObject({ failure: { _tag: "RunInputError" } })
        // words are cut short
        expect(words).toMatchObject({ failure: { _tag: "RunFailedError", failure: { name: "AiError" } } })
        expect(others).toMatchObject([{ success: { text: "Hello." } }, { success: { text: "Hello." } }])
      })
    )
  })
})
