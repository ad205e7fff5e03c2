/**
 * The store's operations over the statements of a dialect.
 */
import { Duration, Effect, Option, Result, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { ResolveReply } from "../EffectRecord.ts"
import * as EffectRecord from "../EffectRecord.ts"
import type { EffectResolution } from "../EffectResolution.ts"
import { EffectRecordError, EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import { encodeJson } from "../store/resolutionJson.ts"
import type { Changes } from "./changes.ts"
import type { Statements } from "./dialect.ts"
import { problemOf, type SqlExecutor } from "./executor.ts"
import * as rows from "./rows.ts"

/** Rows are read and removed in pages, so that no statement holds the database, or memory, for long. */
const pageSize = 100

/** Each turn that is lost was lost to somebody else's change; the next look sees it. */
export const mostTurns = 100

/** What the database said, as the error of the store's operation. */
export const storeError = (operation: string, key?: string) => (error: SqlError): EffectStoreError =>
  new EffectStoreError({
    operation,
    problem: problemOf(error),
    ...(key === undefined ? {} : { key }),
    cause: error
  })

const readableError = (key: string, { problem, tool }: EffectRecord.Unreadable): EffectRecordError =>
  new EffectRecordError({ key, tool, problem })

/** The operations that claim, and those of who holds a claim. */
export type Claims = Pick<IEffectStore, "batch" | "claim" | "complete" | "release" | "renew">

/** The store. It holds no state but its watchers. */
export const makeStore = (
  executor: SqlExecutor,
  statements: Statements,
  claims: Claims,
  changes: Changes
): IEffectStore => {
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
    ...claims,
    get: (key) =>
      Effect.flatMap(
        Effect.mapError(executor.read(statements.get(key)), storeError("get", key)),
        ([row]) =>
          row === undefined
            ? Effect.undefined
            : Effect.fromResult(Result.mapError(rows.record(row, key), (problem) => readableError(key, problem)))
      ),
    list: (filter = {}) =>
      Stream.paginate(undefined, (after: string | undefined) =>
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
                  page.length < pageSize ? Option.none<string>() : Option.some(String(page.at(-1)?.[0]))
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
