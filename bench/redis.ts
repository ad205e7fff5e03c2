/**
 * What the store in Redis adds to the least commands that could do its job, over the same client: a `SET NX` and a `SET` for a
 * claim and its record, and a `GET` for a replay. On the server of `REDIS_URL`, or a `redis-server` of the PATH.
 */
import { NodeRedis } from "@effect/platform-node"
import { applyOnce, EffectStore } from "chamvi-effect"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { Effect, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { randomUUID } from "node:crypto"
import { redisIsThere, redisServer } from "../test/support/redis.ts"
import { type Case, measure, print } from "./harness.ts"

const result = { ok: true, text: "x".repeat(200) }
const text = JSON.stringify({ value: result })
const prefix = `chamvi:bench:${randomUUID()}:`

let unique = 0
const fresh = () => (++unique).toString(16).padStart(64, "0")

/** An `execute` that takes none to three turns of the event loop, as remotes take different times. */
const mixed = (key: string) =>
  Effect.as(
    Effect.repeat(Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve))), {
      times: Number.parseInt(key.at(-1)!, 16) % 4
    }),
    result
  )

const casesOf = Effect.gen(function*() {
  const redis = yield* Redis
  const store = yield* RedisEffectStore.make({ prefix })
  const bareName = (key: string) => `${prefix}bare:${key}`
  const bareFresh = (key: string, execute: Effect.Effect<unknown> = Effect.succeed(result)) =>
    Effect.runPromise(
      redis.send("SET", bareName(key), "held", "NX").pipe(
        Effect.andThen(execute),
        Effect.andThen(redis.send("SET", bareName(key), text))
      )
    )
  const bareReplay = (key: string) => Effect.runPromise(redis.send("GET", bareName(key)))
  const apply = (key: string, execute: Effect.Effect<typeof result> = Effect.succeed(result)) =>
    Effect.runPromise(Effect.provideService(applyOnce({ key, execute: () => execute }), EffectStore, store))
  const known = Array.from({ length: 64 }, fresh)
  yield* Effect.promise(() => Promise.all(known.map((key) => bareFresh(key))))
  yield* Effect.promise(() => Promise.all(known.map((key) => apply(key))))
  const parallel = (one: (key: string) => Promise<unknown>, keys: () => ReadonlyArray<string>) => () =>
    Promise.all(keys().map((key) => one(key)))
  const freshKeys = () => Array.from({ length: 64 }, fresh)
  const alone = (name: string, run: Case["run"]): Case => ({ name, operations: 1, run })
  const many = (name: string, run: Case["run"]): Case => ({ name, operations: 64, run })
  return [
    alone("bare fresh", () => bareFresh(fresh())),
    alone("store fresh", () => apply(fresh())),
    alone("bare replay", () => bareReplay(known[0]!)),
    alone("store replay", () => apply(known[0]!)),
    many("bare fresh, 64 callers, mixed times", parallel((key) => bareFresh(key, mixed(key)), freshKeys)),
    many("store fresh, 64 callers, mixed times", parallel((key) => apply(key, mixed(key)), freshKeys)),
    many("bare replay, 64 callers", parallel(bareReplay, () => known)),
    many("store replay, 64 callers", parallel((key) => apply(key), () => known))
  ]
})

export const benchRedis = (rounds: number): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const given = process.env["REDIS_URL"]
    if (given === undefined && !redisIsThere) return
    const url = given ?? (yield* redisServer("--appendfsync", "everysec")).url
    yield* Effect.gen(function*() {
      const measured = yield* Effect.flatMap(casesOf, (cases) => Effect.promise(() => measure(cases, rounds)))
      const base = (name: string) =>
        measured.find((row) => row.name === name.replace(/^store/, "bare") && row.name !== name)
      print("Redis: applyOnce against bare commands", measured.map((row) => ({ ...row, base: base(row.name) })))
    }).pipe(Effect.scoped, Effect.provide(NodeRedis.layer({ url })))
  })
