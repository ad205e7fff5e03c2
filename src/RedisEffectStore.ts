/**
 * The ledger in Redis or Valkey, over `effect/persistence/Redis`.
 *
 * @since 0.1.0
 */
import { Effect, type Layer, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { EffectStore, type IEffectStore } from "./EffectStore.ts"
import { EffectStoreError } from "./errors.ts"
import * as Changes from "./redis/changes.ts"
import * as Durability from "./redis/durability.ts"
import { makeStore } from "./redis/makeStore.ts"
import { own } from "./store/lifetime.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface RedisEffectStoreOptions {
  /**
   * What the names of all keys in Redis begin with; the effect key follows verbatim. Ledgers with different prefixes are
   * apart, as long as none begins with another's. Default: `"chamvi:effect:"`.
   */
  readonly prefix?: string | undefined
  /**
   * Whether to refuse a server that may lose records, by its settings: no append-only file, or a `maxmemory-policy` other
   * than `noeviction`. Default: no, it is warned of in the log.
   */
  readonly requireDurable?: boolean | undefined
  /**
   * For tests: the time in milliseconds, in place of the server's.
   *
   * @internal
   */
  readonly now?: (() => number) | undefined
}

const make = Effect.fnUntraced(function*(
  options: RedisEffectStoreOptions = {}
): Effect.fn.Return<IEffectStore, EffectStoreError, Redis | Scope.Scope> {
  const prefix = options.prefix ?? "chamvi:effect:"
  if (typeof prefix !== "string" || prefix === "" || !prefix.isWellFormed()) {
    return yield* new EffectStoreError({
      operation: "open",
      problem: `the option "prefix" is ${
        typeof prefix === "string" ? "empty, or holds a lone surrogate" : `a ${typeof prefix}`
      }; give it a text that begins no other key of the server`,
      permanent: true
    })
  }
  const redis = yield* Redis
  yield* Durability.check(redis, options.requireDurable === true)
  const channel = `${prefix}changes`
  const changes = yield* Changes.make(redis, channel)
  const store = makeStore({ redis, prefix, channel, changes, now: options.now })
  yield* own(store)
  return store
})

/**
 * The ledger in the Redis server in context: Redis 7 or newer, or Valkey.
 *
 * **Details**
 *
 * - Every operation is one script on one key, so that it is atomic, and works on a cluster. Calls of one turn are sent
 *   together. A fresh call takes two round trips (claim, record), a replay one.
 * - Leases are on the server's clock.
 * - Who waits for a key is woken by a message of the server, over one subscription per process.
 * - When the layer is built it asks the server how it persists and evicts, and warns of what can be lost.
 *
 * **Gotchas**
 *
 * - A record is as durable as the server: with `appendfsync everysec` a power loss may take the last second, and a failover
 *   what the replica had not got yet. Effects of lost records can be applied again.
 * - Rows have no time to live. An `EXPIRE`, a `RENAME` or a `FLUSHDB` of somebody else's forgets effects that were applied.
 * - `list` and `prune` walk through the keys of the server (`SCAN`): on a cluster, those of the node that the client asks.
 *   `list` sorts by creation, for which it keeps the names of all matching keys in memory.
 *
 * **Example** (A ledger that several processes share)
 *
 * ```ts no-run
 * import { NodeRedis } from "@effect/platform-node"
 * import { applyOnce } from "chamvi-effect"
 * import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
 * import { Effect } from "effect"
 *
 * const program = applyOnce({ key: "letter:7", execute: () => Effect.succeed("sent") }).pipe(
 *   Effect.provide(RedisEffectStore.layer()),
 *   Effect.provide(NodeRedis.layer({ url: "redis://127.0.0.1:6379" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const RedisEffectStore = {
  /** The store as a service. */
  layer: (options?: RedisEffectStoreOptions): Layer.Layer<EffectStore, EffectStoreError, Redis> =>
    EffectStore.layerOf(make(options)),
  /** The store as a value, in use until the scope closes. */
  make
} as const
