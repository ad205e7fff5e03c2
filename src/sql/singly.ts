/**
 * Claims one by one: a look, which is all that a replay costs, and a statement that claims if the look was promising. For
 * databases in this process, where a second statement costs less than a larger one.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ClaimReply, ClaimRequest, Fenced, Status } from "../EffectRecord.ts"
import { EffectStoreError } from "../errors.ts"
import type { Changes } from "./changes.ts"
import type { Query, SingleStatements } from "./dialect.ts"
import type { SqlExecutor } from "./executor.ts"
import { type Claims, mostTurns, storeError } from "./makeStore.ts"
import type { Processes } from "./processes.ts"
import * as rows from "./rows.ts"

/** Each item by itself, at once: the executor may bring their statements together. */
const each =
  <Item, Reply>(one: (item: Item) => Effect.Effect<Reply, EffectStoreError>) =>
  (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>, EffectStoreError> =>
    items.length === 1
      ? Effect.map(one(items[0]!), (reply) => [reply])
      : Effect.forEach(items, one, { concurrency: "unbounded" })

/** The operations over single statements. */
export const singly = (
  executor: SqlExecutor,
  statements: SingleStatements,
  changes: Changes,
  processes?: Processes
): Claims => {
  const process = processes?.id ?? null

  const claimRow = (
    request: ClaimRequest,
    deadProcess: string | null,
    turn: number
  ): Effect.Effect<ClaimReply, SqlError | EffectStoreError> =>
    Effect.flatMap(
      executor.write(statements.claim({ ...request, process, deadProcess })),
      ([row]) => row === undefined ? claim(request, turn + 1) : Effect.succeed(rows.granted(row))
    )

  // A replay is one read. Who finds the key free claims it; if somebody else was faster, the next look says who.
  const claim = (
    request: ClaimRequest,
    turn: number
  ): Effect.Effect<ClaimReply, SqlError | EffectStoreError> => {
    const { claimId, key, tool } = request
    return Effect.flatMap(executor.read(statements.look(key)), (found) => {
      const look = rows.look(found, key, tool, claimId)
      if (look._tag === "Answer") return Effect.succeed(look.reply)
      if (turn > mostTurns) {
        return Effect.fail(new EffectStoreError({ operation: "claim", key, problem: "others always claimed it first" }))
      }
      if (look._tag === "Claimable") return claimRow(request, null, turn)
      return processes === undefined || look.process === process
        ? Effect.succeed(look.reply)
        : Effect.flatMap(
          processes.isDead(look.process),
          (dead) => dead ? claimRow(request, look.process, turn) : Effect.succeed(look.reply)
        )
    })
  }

  /** A fenced write; without a row, `done` says whether the same token did it before. */
  const fenced = (
    operation: string,
    key: string,
    token: number,
    query: Query,
    done: Status | undefined
  ): Effect.Effect<Fenced, EffectStoreError> =>
    Effect.mapError(
      Effect.flatMap(executor.write(query), ([changed]): Effect.Effect<Fenced, SqlError> => {
        if (changed !== undefined) {
          if (done !== undefined) changes.wake(key)
          return Effect.succeed("ok")
        }
        return done === undefined ? Effect.succeed("lost") : Effect.map(
          executor.read(statements.fence(key)),
          ([row]) => row !== undefined && row[0] === done && Number(row[1]) === token ? "ok" : "lost"
        )
      }),
      storeError(operation, key)
    )

  return {
    batch: false,
    claim: each((request) =>
      Effect.mapError(
        claim(request, 0),
        (error) => error._tag === "EffectStoreError" ? error : storeError("claim", request.key)(error)
      )
    ),
    complete: each((item) => fenced("complete", item.key, item.token, statements.complete(item), "recorded")),
    release: each((item) => fenced("release", item.key, item.token, statements.release(item), "released")),
    renew: each((item) => fenced("renew", item.key, item.token, statements.renew(item), undefined))
  }
}
