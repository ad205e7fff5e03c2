import { expect, it } from "@effect/vitest"
import { NodeRedis } from "@effect/platform-node"
import { applyOnce, EffectResolution, EffectStore, type IEffectStore } from "chamvi-effect"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { Effect, Exit, Fiber, Layer, Logger, Queue, Stream } from "effect"
import { Redis, RedisError } from "effect/persistence/Redis"
import { randomUUID } from "node:crypto"
import { inspect } from "node:util"
import { describe } from "vitest"
import { redisIsThere, RedisLayer, redisServer } from "../support/redis.ts"

/** A client of a server that was started with the settings. */
const serverWith = (...settings: ReadonlyArray<string>) =>
  Layer.unwrap(Effect.map(redisServer(...settings), ({ url }) => NodeRedis.layer({ url })))

const claim = (store: IEffectStore, key: string, claimId = randomUUID() as string) =>
  store.claim([{ key, tool: "t", runId: "r", owner: "o", claimId, lease: 60_000, fingerprint: "f" }])

const complete = (store: IEffectStore, key: string, token: number) =>
  store.complete([{ key, token, result: `{"value":1}`, outcome: "executed", fingerprint: "f" }])

/** A prefix that nobody else uses. */
const freshPrefix = (): string => `test:${randomUUID()}:`

const applied = (key: string) => applyOnce({ key, execute: () => Effect.succeed("done") })

/** The messages that were logged while the effect ran. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const messages: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void messages.push([message].flat().join(" ")))
    return Effect.as(Effect.provide(effect, Logger.layer([logger])), messages)
  })

const open = (options?: Parameters<typeof RedisEffectStore.make>[0]) => Effect.scoped(RedisEffectStore.make(options))

describe.skipIf(!redisIsThere)("RedisEffectStore", () => {
  it.layer(RedisLayer, { excludeTestServices: true, timeout: 30_000 })((it) => {
    it.effect("costs two round trips for a fresh call and one for a replay", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        let calls = 0
        let counts = false
        const counting: Redis["Service"] = {
          ...redis,
          send: (command, ...args) =>
            Effect.suspend(() => {
              if (counts) calls++
              return redis.send(command, ...args)
            })
        }
        const program = Effect.gen(function*() {
          // the server has seen the scripts
          yield* applied("another")
          counts = true
          yield* applied("k")
          const fresh = calls
          yield* applied("k")
          return [fresh, calls - fresh]
        })
        const layer = Layer.provide(RedisEffectStore.layer({ prefix: freshPrefix() }), Layer.succeed(Redis, counting))
        expect(yield* Effect.provide(program, layer)).toEqual([2, 1])
      }))

    it.effect("wakes who waits in another process, over one subscription for all", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        let subscriptions = 0
        const counting: Redis["Service"] = {
          ...redis,
          subscribe: (channel) =>
            Effect.suspend(() => {
              subscriptions++
              return redis.subscribe(channel)
            })
        }
        const prefix = freshPrefix()
        const ours = yield* Effect.provideService(RedisEffectStore.make({ prefix }), Redis, counting)
        const theirs = yield* RedisEffectStore.make({ prefix })
        const woken = yield* Queue.unbounded<string>()
        const watch = (name: string, key: string) =>
          Effect.forkScoped(Stream.runForEach(ours.changes(key), () => Queue.offer(woken, name)), {
            startImmediately: true
          })
        yield* watch("a", "k")
        yield* watch("b", "k")
        yield* watch("other", "another key")
        // all are told once the subscription is there, in case they missed something
        expect((yield* Queue.takeN(woken, 3)).toSorted()).toEqual(["a", "b", "other"])
        const [granted] = yield* claim(theirs, "k")
        yield* complete(theirs, "k", granted?._tag === "Claimed" ? granted.token : 0)
        expect((yield* Queue.takeN(woken, 2)).toSorted()).toEqual(["a", "b"])
        expect(subscriptions).toBe(1)
      }))

    it.effect("gives another process's caller the record as soon as it is there", () =>
      Effect.gen(function*() {
        const prefix = freshPrefix()
        const theirs = yield* RedisEffectStore.make({ prefix })
        const ours = yield* RedisEffectStore.make({ prefix })
        const call = applyOnce({ key: "k", tool: "t", execute: () => Effect.die("not ours to execute") })
        const [granted] = yield* claim(theirs, "k")
        const waiting = yield* Effect.forkScoped(Effect.provideService(call, EffectStore, ours))
        yield* complete(theirs, "k", granted?._tag === "Claimed" ? granted.token : 0)
        expect(yield* Fiber.join(waiting)).toBe(1)
      }))

    /** Changes the value of a row at an index. */
    const pack = `local row = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'row'))
      row[tonumber(ARGV[1])] = ARGV[2]
      redis.call('HSET', KEYS[1], 'row', cmsgpack.pack(row))`

    for (
      const [what, problem, command, ...args] of [
        ["is no hash", "no hash", "SET", "KEY", "x"],
        ["says no version", "no version", "HDEL", "KEY", "v"],
        ["has a newer version", "version 2", "HSET", "KEY", "v", "2"],
        ["lacks its values", "unpacked", "HDEL", "KEY", "row"],
        ["has values that cannot be unpacked", "unpacked", "HSET", "KEY", "row", "garbage"],
        ["has a number for a text", "no text", "EVAL", pack.replace("ARGV[2]", "7"), "1", "KEY", "1"],
        ["has a text for a number", "no number", "EVAL", pack, "1", "KEY", "4", "first"],
        ["has an unknown status", "status", "HSET", "KEY", "status", "paused"],
        ["has an unknown doubt", "doubt", "EVAL", pack, "1", "KEY", "3", "maybe"],
        ["is recorded without a result", "result", "HDEL", "KEY", "result"],
        ["is recorded with an unknown outcome", "outcome", "EVAL", pack, "1", "KEY", "13", "guessed"]
      ] as const
    ) {
      it.effect(`never takes a row that ${what} for an absent one`, () =>
        Effect.gen(function*() {
          const redis = yield* Redis
          const prefix = freshPrefix()
          const store = yield* RedisEffectStore.make({ prefix })
          const call = Effect.provideService(applied("k"), EffectStore, store)
          yield* call
          yield* redis.send(command, ...args.map((arg) => arg === "KEY" ? `${prefix}k` : arg))
          const executed = Effect.provideService(
            applyOnce({ key: "k", execute: () => Effect.die("it must not run") }),
            EffectStore,
            store
          )
          for (const error of [yield* Effect.flip(executed), yield* Effect.flip(store.get("k"))]) {
            expect(error).toMatchObject({ _tag: "EffectRecordError", key: "k" })
            expect(error.message).toContain(problem)
          }
          expect(yield* Effect.flip(Stream.runCollect(store.list()))).toMatchObject({ _tag: "EffectRecordError" })
          expect(yield* Effect.flip(store.resolve("k", { _tag: "NotApplied" } as never))).toMatchObject({
            _tag: "EffectStoreError"
          })
          expect(yield* store.prune({ olderThan: 0 })).toBe(0)
          // a person can remove it
          expect(yield* store.remove("k")).toBe(true)
          expect(yield* call).toBe("done")
        }))
    }

    it.effect("keeps ledgers of different prefixes apart, whatever the prefixes mean to SCAN", () =>
      Effect.gen(function*() {
        const base = freshPrefix()
        let now = 1_000
        const wild = yield* RedisEffectStore.make({ prefix: `${base}*[a-z]?\\`, now: () => now })
        const plain = yield* RedisEffectStore.make({ prefix: `${base}xbx/` })
        yield* Effect.provideService(applied("k"), EffectStore, wild)
        yield* Effect.provideService(applied("k"), EffectStore, plain)
        yield* Effect.provideService(applied("only here"), EffectStore, plain)
        const keysOf = (store: IEffectStore) =>
          Effect.map(Stream.runCollect(store.list()), (rows) => rows.map(({ key }) => key))
        expect(yield* keysOf(wild)).toEqual(["k"])
        expect(yield* keysOf(plain)).toEqual(["k", "only here"])
        now++
        expect(yield* wild.prune({ olderThan: 0 })).toBe(1)
        expect(yield* keysOf(plain)).toEqual(["k", "only here"])
      }))

    for (const prefix of ["", "\ud800", 7]) {
      it.effect(`refuses the prefix ${JSON.stringify(prefix)}`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(open({ prefix: prefix as string }))
          expect(error).toMatchObject({ _tag: "EffectStoreError", isRetryable: false })
          expect(error.message).toContain("prefix")
        }))
    }

    for (
      const key of [
        "nul \0 in it",
        "emoji 🎉 and \u202e",
        "k".repeat(65_536),
        "{slot}",
        "']]; return redis.call('FLUSHALL') --"
      ]
    ) {
      it.effect(`keeps the key ${JSON.stringify(key.slice(0, 40))} verbatim`, () =>
        Effect.gen(function*() {
          const store = yield* RedisEffectStore.make({ prefix: freshPrefix() })
          const execute = () => Effect.succeed({ [key.slice(0, 9)]: key })
          const call = Effect.provideService(applyOnce({ key, execute }), EffectStore, store)
          expect(yield* call).toEqual({ [key.slice(0, 9)]: key })
          expect(yield* call).toEqual({ [key.slice(0, 9)]: key })
          expect(yield* store.get(key)).toMatchObject({ key, status: "recorded" })
          expect(yield* Stream.runCollect(store.list())).toMatchObject([{ key }])
        }))
    }

    it.effect("answers a token that is new after a removal, also to the claim that was removed", () =>
      Effect.gen(function*() {
        const store = yield* RedisEffectStore.make({ prefix: freshPrefix() })
        const [first] = yield* claim(store, "k", "id")
        yield* store.remove("k")
        const [second] = yield* claim(store, "k", "id")
        if (first?._tag !== "Claimed" || second?._tag !== "Claimed") return expect.fail("both are claims")
        expect(second.token).toBeGreaterThan(first.token)
        expect(yield* complete(store, "k", first.token)).toEqual(["lost"])
        expect(yield* complete(store, "k", second.token)).toEqual(["ok"])
      }))

    it.effect("never applies a verdict on a row to one that came in its place", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const prefix = freshPrefix()
        let now = 1_000
        const theirs = yield* RedisEffectStore.make({ prefix, now: () => now })
        const [first] = yield* claim(theirs, "k")
        now += 60_000
        let turns = 0
        // between the look at the row and the write of the verdict, it is removed, and another holder claims the key
        const meddling: Redis["Service"] = {
          ...redis,
          send: <A>(command: string, ...args: ReadonlyArray<string>) =>
            Effect.tap(redis.send<A>(command, ...args), () =>
              command === "EVALSHA" && turns++ === 0
                ? Effect.orDie(Effect.andThen(theirs.remove("k"), claim(theirs, "k")))
                : Effect.void)
        }
        const ours = yield* Effect.provideService(RedisEffectStore.make({ prefix, now: () => now }), Redis, meddling)
        expect(yield* ours.resolve("k", EffectResolution.notApplied)).toBe("held")
        const row = yield* theirs.get("k")
        expect(row).toMatchObject({ status: "held", attempt: 1 })
        expect(row?.token).toBeGreaterThan(first?._tag === "Claimed" ? first.token : Infinity)
      }))

    it.effect("keeps a claim on the mark of a removal for good, whatever the mark says", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const prefix = freshPrefix()
        const store = yield* RedisEffectStore.make({ prefix })
        for (const row of ["0", "garbage", ""]) {
          yield* claim(store, "k")
          yield* store.remove("k")
          yield* redis.send("HSET", `${prefix}k`, "row", row)
          const [granted] = yield* claim(store, "k")
          expect(granted?._tag).toBe("Claimed")
          expect(yield* redis.send("TTL", `${prefix}k`)).toBe(-1)
        }
      }))

    it.effect("does not call a row unreadable that it was not allowed to read", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const prefix = freshPrefix()
        const store = yield* RedisEffectStore.make({ prefix })
        yield* Effect.provideService(applied("k"), EffectStore, store)
        const user = randomUUID()
        yield* Effect.acquireRelease(
          redis.send("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", "-hmget"),
          () => Effect.ignore(redis.send("ACL", "DELUSER", user))
        )
        const theirs = yield* redis.reserve
        yield* theirs.send("AUTH", user, "secret")
        const limited = yield* Effect.provideService(
          RedisEffectStore.make({ prefix }),
          Redis,
          { ...redis, send: theirs.send }
        )
        const error = yield* Effect.flip(limited.get("k"))
        expect(error).toMatchObject({ _tag: "EffectStoreError", key: "k" })
        expect(yield* Effect.flip(limited.remove("k"))).toMatchObject({ _tag: "EffectStoreError" })
        expect(yield* store.get("k")).toMatchObject({ status: "recorded" })
      }))

    for (
      const [failing, applied, most] of [
        // in an outage each is asked once: asking again for the others after each that failed is n * n / 2 commands
        [100, 0, 100],
        // one that fails alone costs the others a repetition, and nothing else: claims twice, and then the results
        [1, 99, 100 + 99 + 99]
      ] as const
    ) {
      it.effect(`sends at most ${most} commands for 100 calls of one turn of which ${failing} cannot be claimed`, () =>
        Effect.gen(function*() {
          const redis = yield* Redis
          const prefix = freshPrefix()
          const refused = new Set(Array.from({ length: failing }, (_, index) => `${prefix}k${index}`))
          let sent = 0
          const refusing: Redis["Service"] = {
            ...redis,
            send: <A>(command: string, ...args: ReadonlyArray<string>) =>
              Effect.suspend(() => {
                if (command === "EVALSHA") sent++
                return refused.has(args[2] ?? "")
                  ? Effect.andThen(
                    redis.send("PING"),
                    Effect.fail(new RedisError({ cause: new Error("OOM command not allowed") }))
                  )
                  : redis.send<A>(command, ...args)
              })
          }
          const store = yield* Effect.provideService(RedisEffectStore.make({ prefix }), Redis, refusing)
          const call = (index: number) =>
            applyOnce({ key: `k${index}`, execute: () => Effect.succeed("done") }).pipe(
              Effect.provideService(EffectStore, store),
              Effect.exit
            )
          const exits = yield* Effect.forEach(Array.from({ length: 100 }, (_, index) => index), call, {
            concurrency: "unbounded"
          })
          expect(exits.filter(Exit.isSuccess).length).toBe(applied)
          expect(sent).toBeLessThanOrEqual(most)
        }))
    }
  })

  it.live("warns of a server without an append-only file, and of one that evicts", () =>
    Effect.gen(function*() {
      const [message, ...more] = yield* logged(open())
      expect(more).toEqual([])
      expect(message).toContain("appendonly")
      expect(message).toContain("allkeys-lru")
      const error = yield* Effect.flip(open({ requireDurable: true }))
      expect(error).toMatchObject({ _tag: "EffectStoreError", isRetryable: false })
      expect(error.message).toContain("noeviction")
    }).pipe(Effect.provide(serverWith("--appendonly", "no", "--maxmemory-policy", "allkeys-lru"))))

  it.live("says nothing of a server that loses nothing", () =>
    Effect.gen(function*() {
      expect(yield* logged(open({ requireDurable: true }))).toEqual([])
    }).pipe(Effect.provide(serverWith())))

  it.live("says that it does not know where the server does not tell", () =>
    Effect.gen(function*() {
      expect((yield* logged(open())).join()).toContain("nobody knows")
      expect(yield* Effect.flip(open({ requireDurable: true }))).toMatchObject({ _tag: "EffectStoreError" })
    }).pipe(Effect.provide(serverWith("--rename-command", "INFO", ""))))

  it.live("tells nothing of the caller's values where the server quotes what it was sent", () =>
    Effect.gen(function*() {
      const store = yield* RedisEffectStore.make({ prefix: freshPrefix() })
      const item = { key: "k", token: 1, result: "the secret", outcome: "executed", fingerprint: "f" } as const
      const error = yield* Effect.flip(store.complete([item]))
      expect(error.message).toContain("unknown command 'EVALSHA'")
      expect(inspect(error, { depth: 9 })).not.toContain("secret")
    }).pipe(Effect.provide(serverWith("--rename-command", "EVALSHA", ""))))

  it.live("works on a cluster", () =>
    Effect.gen(function*() {
      const redis = yield* Redis
      yield* redis.send("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
      yield* Effect.retry(
        Effect.filterOrFail(redis.send<string>("CLUSTER", "INFO"), (info) => info.includes("cluster_state:ok")),
        { while: () => true }
      )
      const program = Effect.gen(function*() {
        const store = yield* EffectStore
        const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
        yield* Effect.forEach(keys, applied, { concurrency: "unbounded" })
        expect(yield* Effect.forEach(keys, applied, { concurrency: "unbounded" })).toEqual(keys.map(() => "done"))
        expect((yield* Stream.runCollect(store.list({ status: "recorded" }))).length).toBe(20)
        now++
        expect(yield* store.prune({ olderThan: 0 })).toBe(20)
      })
      let now = 1_000
      yield* Effect.provide(program, RedisEffectStore.layer({ now: () => now }))
    }).pipe(Effect.provide(serverWith("--cluster-enabled", "yes"))))
})
