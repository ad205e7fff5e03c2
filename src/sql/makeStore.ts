/**
 * The store's operations over the statements of a dialect.
 */
import { Duration, Effect, Option, Result, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ClaimReply, ClaimRequest, Fenced, ResolveReply, Status } from "../EffectRecord.ts"
import * as EffectRecord from "../EffectRecord.ts"
import type { EffectResolution } from "../EffectResolution.ts"
import { EffectRecordError, EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import { encodeJson } from "../store/resolutionJson.ts"
import type { Changes } from "./changes.ts"
import type { Query, Statements } from "./dialect.ts"
import type { SqlExecutor } from "./executor.ts"
import type { Processes } from "./processes.ts"
import * as rows from "./rows.ts"

/** Rows are read and removed in pages, so that no statement holds the database, or memory, for long. */
const pageSize = 100

/** Each turn that is lost was lost to somebody else's claim; the next look sees it. */
const mostTurns = 100

/** What the database said, as the error of the store's operation. */
export const storeError = (operation: string, key?: string) => (error: SqlError): EffectStoreError =>
  new EffectStoreError({
    operation,
    problem: error.reason.message ?? error.message,
    ...(key === undefined ? {} : { key }),
    cause: error
  })

const readableError = (key: string, { problem, tool }: EffectRecord.Unreadable): EffectRecordError =>
  new EffectRecordError({ key, tool, problem })

/** Each item by itself, at once: the executor may bring their statements together. */
const each =
  <Item, Reply>(one: (item: Item) => Effect.Effect<Reply, EffectStoreError>) =>
  (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>, EffectStoreError> =>
    items.length === 1
      ? Effect.map(one(items[0]!), (reply) => [reply])
      : Effect.forEach(items, one, { concurrency: "unbounded" })

/** The store. It holds no state but its watchers. */
export const makeStore = (
  executor: SqlExecutor,
  statements: Statements,
  changes: Changes,
  processes?: Processes
): IEffectStore => {
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

  const resolve = Effect.fnUntraced(function*(
    key: string,
    resolution: EffectResolution
  ): Effect.fn.Return<ResolveReply, EffectStoreError> {
    const json = yield* encodeJson(key, resolution)
    // read, decide by the one rule, and write if nothing changed in between
    for (let turn = 0; turn < mostTurns; turn++) {
      const [row] = yield* Effect.mapError(executor.read(statements.get(key)), storeError("resolve", key))
      const record = row === undefined ? undefined : yield* Effect.fromResult(Result.mapError(
        rows.record(row, key),
        ({ problem }) =>
          new EffectStoreError({ operation: "resolve", key, problem: `${problem}; remove the key instead` })
      ))
      const now = Number(row?.at(-1))
      const [next, reply] = EffectRecord.resolve(record, resolution, json, now)
      if (record === undefined || next === undefined) return reply
      const [changed] = yield* Effect.mapError(
        executor.write(statements.replace(record, next)),
        storeError("resolve", key)
      )
      if (changed !== undefined) {
        changes.wake(key)
        return reply
      }
    }
    return yield* new EffectStoreError({ operation: "resolve", key, problem: "others always changed it first" })
  })

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
    renew: each((item) => fenced("renew", item.key, item.token, statements.renew(item), undefined)),
    get: (key) =>
      Effect.flatMap(
        Effect.mapError(executor.read(statements.get(key)), storeError("get", key)),
        ([row]) =>
          row === undefined
            ? Effect.undefined
            : Effect.fromResult(Result.mapError(rows.record(row, key), (problem) => readableError(key, problem)))
      ),
    list: (filter = {}) =>
      Stream.paginate(0, (after: number) =>
        Effect.flatMap(
          Effect.mapError(executor.read(statements.list(filter, after, pageSize)), storeError("list")),
          (page) =>
            Effect.map(
              Effect.forEach(page, ([, ...row]) =>
                Effect.fromResult(
                  Result.mapError(rows.record(row), (problem) => readableError(String(row[0]), problem))
                )),
              (records) =>
                [
                  records,
                  page.length < pageSize ? Option.none<number>() : Option.some(Number(page.at(-1)?.[0]))
                ] as const
            )
        )),
    resolve,
    remove: (key) =>
      Effect.mapError(
        Effect.map(executor.write(statements.remove(key)), ([removed]) => {
          if (removed !== undefined) changes.wake(key)
          return removed !== undefined
        }),
        storeError("remove", key)
      ),
    prune: Effect.fnUntraced(function*({ olderThan }) {
      const query = statements.prune(Duration.toMillis(olderThan), pageSize)
      let removed = 0
      for (let page = pageSize; page === pageSize; removed += page) {
        page = (yield* Effect.mapError(executor.write(query), storeError("prune"))).length
      }
      if (removed > 0) changes.wakeAll()
      return removed
    }),
    changes: changes.watch
  }
}
