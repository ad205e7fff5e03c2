/**
 * What the server may lose, by its own settings.
 */
import { Effect } from "effect"
import type { Redis, RedisError } from "effect/persistence/Redis"
import { EffectStoreError } from "../errors.ts"

/** The fields of the answer to `INFO`. */
const fieldsOf = (info: string): ReadonlyMap<string, string> =>
  new Map(
    info.split(/\r?\n/).flatMap((line) => {
      const at = line.indexOf(":")
      return at > 0 && !line.startsWith("#") ? [[line.slice(0, at), line.slice(at + 1)] as const] : []
    })
  )

/** `INFO`, and not `CONFIG GET`: hosted servers answer it too. */
const read = (redis: Redis["Service"], section: string): Effect.Effect<ReadonlyMap<string, string>, RedisError> =>
  Effect.map(redis.send("INFO", section), (info) => fieldsOf(typeof info === "string" ? info : ""))

/** What can be lost, in words; none where nothing can. */
const findLosses = Effect.fnUntraced(function*(redis: Redis["Service"]) {
  const persistence = yield* read(redis, "persistence")
  const memory = yield* read(redis, "memory")
  const losses: Array<string> = []
  const aof = persistence.get("aof_enabled")
  const policy = memory.get("maxmemory_policy")
  if (aof === undefined || policy === undefined) {
    losses.push("it does not tell how it persists and evicts, so that nobody knows what it loses")
  }
  if (aof === "0") {
    losses.push(
      "it keeps no append-only file (appendonly is no), so that a restart loses the records since its last snapshot, or all "
        + "of them: their effects would be applied again"
    )
  }
  if (policy !== undefined && policy !== "noeviction") {
    losses.push(
      `its maxmemory-policy is ${policy}, so that it may drop records when its memory is full: their effects would be `
        + "applied again; set noeviction"
    )
  }
  return losses
})

/** Warns of what the server may lose, or refuses it where durability is required. */
export const check = (redis: Redis["Service"], required: boolean): Effect.Effect<void, EffectStoreError> =>
  Effect.flatMap(
    Effect.catch(
      findLosses(redis),
      (error) =>
        Effect.succeed([`it does not answer INFO (${String(error.cause)}), so that nobody knows what it loses`])
    ),
    (losses) => {
      if (losses.length === 0) return Effect.void
      const problem = `the Redis server may lose records: ${losses.join("; ")}`
      return required
        ? Effect.fail(new EffectStoreError({ operation: "open", problem, permanent: true }))
        : Effect.logWarning(`The effect store: ${problem}.`)
    }
  )
