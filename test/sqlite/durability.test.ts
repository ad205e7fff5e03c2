/**
 * When a ledger's connection flushes, as the connection itself says it.
 */
import { assert, describe, it } from "@effect/vitest"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Effect } from "effect"
import { DatabaseSync } from "node:sqlite"
import { vi } from "vitest"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"

const preparing = Effect.acquireRelease(
  Effect.sync(() => vi.spyOn(DatabaseSync.prototype, "prepare")),
  (spy) => Effect.sync(() => spy.mockRestore())
)

/** `PRAGMA synchronous` of the connection that a store on a file opens: 2 flushes every commit. */
const synchronousOf = Effect.fnUntraced(function*(mode: "durable" | "fast" | undefined) {
  const filename = `${yield* temporaryDirectory}/ledger.sqlite`
  const spy = yield* preparing
  yield* SqliteEffectStore.make({ filename, mode })
  const prepared = spy.mock.contexts as ReadonlyArray<DatabaseSync>
  const handles = new Set(prepared.filter((handle) => handle.location() === filename))
  return Array.from(handles, (handle) => handle.prepare("PRAGMA synchronous").get()?.["synchronous"])
}, Effect.scoped)

describe("SqliteEffectStore", () => {
  it.effect("flushes every record to the disk, unless it is told not to", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* synchronousOf(undefined), [2])
      assert.deepStrictEqual(yield* synchronousOf("durable"), [2])
      assert.deepStrictEqual(yield* synchronousOf("fast"), [1])
    }))
})
