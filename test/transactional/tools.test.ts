/**
 * Tools with `transactional: true`, in `generateText` and wrapped.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Ai,
  defineEffectTool,
  type EffectEvent,
  EffectStore,
  generateText,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Data, Effect, Layer, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { told, withEvents } from "../reconciliation/support.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { call, settle, wrap } from "../support/wrapped.ts"

const Database = SqliteClient.layer({ filename: ":memory:" })

const layers = Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), SqlEffectStore.layer()).pipe(
  Layer.provideMerge(Database)
)

class TooMany extends Data.TaggedError("TooMany")<{ readonly amount: number }> {}

const Order = Schema.Struct({ article: Schema.String, amount: Schema.Int })

const order = defineEffectTool({
  description: "Orders an article.",
  inputSchema: Order,
  transactional: true,
  execute: ({ amount, article }) =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO orders (article, amount) VALUES (${article}, ${amount})`
      if (amount > 9) return yield* new TooMany({ amount })
      return { ordered: article }
    })
})

const world = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE orders (article TEXT, amount INTEGER)`
  return sql
})

const ordersIn = (sql: SqlClient.SqlClient) => sql`SELECT article, amount FROM orders`.values

describe("A transactional tool", () => {
  it.live("of generateText writes with its record, or not at all", () =>
    Effect.gen(function*() {
      const sql = yield* world
      const events: Array<EffectEvent> = []
      const model = scripted(
        calls(["order", { article: "tea", amount: 2 }], ["order", { article: "milk", amount: 10 }]),
        calls(["order", { article: "tea", amount: 2 }]),
        says("Done.")
      )
      const result = yield* withEvents(events)(
        generateText({
          model,
          prompt: "Order.",
          tools: { order: yield* order },
          stopWhen: ({ steps }) => steps.length > 2
        })
      )
      assert.strictEqual(result.text, "Done.")
      assert.deepStrictEqual(yield* ordersIn(sql), [["tea", 2]])
      assert.deepStrictEqual(events.map(told).sort(), ["executed", "failed", "recorded"])
      assert.deepStrictEqual(readBy(model).at(-1), { ordered: "tea" })
      const keys = yield* Stream.runCollect((yield* EffectStore).list())
      assert.deepStrictEqual(Array.from(keys, ({ status, tool }) => [tool, status]), [["order", "recorded"]])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.live("may stream: a Stream that fails midway leaves nothing", () =>
    Effect.gen(function*() {
      const sql = yield* world
      const note = (amount: number) =>
        Stream.fromEffect(Effect.as(sql`INSERT INTO orders (article, amount) VALUES ('tea', ${amount})`, amount))
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          inputSchema: Schema.Struct({ fails: Schema.Boolean }),
          transactional: true,
          streaming: true,
          execute: ({ fails }) =>
            Stream.concat(
              note(1),
              Stream.mapEffect(note(2), (last) => fails ? Effect.fail("no") : Effect.succeed(last))
            )
        })
      })
      const shown = (fails: boolean) =>
        Stream.runCollect(Stream.fromAsyncIterable(tools.made.execute({ fails }, call), (error) => error))
      yield* Effect.flip(shown(true))
      assert.deepStrictEqual(yield* ordersIn(sql), [])
      assert.deepStrictEqual(yield* shown(false), [1, 2])
      assert.deepStrictEqual(yield* ordersIn(sql), [["tea", 1], ["tea", 2]])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.live("lets no effect tool run inside of it, wrapped before or within", () =>
    Effect.gen(function*() {
      const sql = yield* world
      let ran = 0
      const label = yield* defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.sync(() => ++ran)
      })
      const ctx = yield* ToolContext
      const memory = yield* Effect.provide(EffectStore, EffectStore.layerMemory)
      const before = yield* wrapToolsForRun({ label }, ctx, memory)
      const within = Effect.flatMap(wrapToolsForRun({ label }, ctx, memory), (tools) =>
        settle(() => tools.label.execute({}, call)))
      const ways = {
        before: settle(() =>
          before.label.execute({}, call)
        ),
        within
      }
      for (const [way, nested] of Object.entries(ways)) {
        const tools = yield* wrap({
          outer: yield* defineEffectTool({
            inputSchema: Schema.Struct({}),
            transactional: true,
            effectKey: () => "outer",
            execute: () => Effect.andThen(sql`INSERT INTO orders (article, amount) VALUES ('tea', 1)`, nested)
          })
        })
        const failure = yield* Effect.flip(settle(() => tools.outer.execute({}, call)))
        assert.deepInclude(
          { ...(failure as object) },
          { _tag: "EffectNestedError", tool: "label", outerKey: "outer" },
          way
        )
      }
      assert.strictEqual(ran, 0)
      assert.deepStrictEqual(yield* ordersIn(sql), [])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.live("fails on a store that is elsewhere, and runs nothing", () =>
    Effect.gen(function*() {
      const sql = yield* world
      const tools = yield* wrapToolsForRun(
        { order: yield* order },
        yield* ToolContext,
        yield* Effect.provide(EffectStore, EffectStore.layerMemory)
      )
      const failure = yield* Effect.flip(settle(() => tools.order.execute({ article: "tea", amount: 1 }, call)))
      assert.deepInclude({ ...(failure as object) }, { _tag: "EffectStoreError", permanent: true })
      assert.deepStrictEqual(yield* ordersIn(sql), [])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.live("has no lease", () =>
    Effect.gen(function*() {
      const made = defineEffectTool({
        inputSchema: Order,
        transactional: true,
        lease: "1 minute",
        execute: () => Effect.succeed(1)
      })
      const defect = yield* Effect.catchDefect(Effect.flip(made), (defect) => Effect.succeed(defect))
      assert.match(String(defect), /The option lease of defineEffectTool is .*; give none beside transactional: true/)
    }))
})
