/**
 * The operations that claim, and those of who holds a claim: one round trip each, for one item or for many.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type {
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  Fenced,
  ReleaseItem,
  RenewItem,
  Status
} from "../../EffectRecord.ts"
import { EffectStoreError } from "../../errors.ts"
import type { Changes } from "../changes.ts"
import type { SqlExecutor } from "../executor.ts"
import { type Claims, mostTurns, storeError } from "../makeStore.ts"
import * as rows from "../rows.ts"
import { claimSql } from "./claimSql.ts"
import { fencedSql } from "./fencedSql.ts"
import type { Names } from "./names.ts"
import { inRounds, type Numbered } from "./rounds.ts"
import { millis } from "./statements.ts"
import { digestOf, encodeText } from "./text.ts"

/** What is no whole number is no token that was ever given. */
const tokenText = (token: number): string => Number.isSafeInteger(token) ? String(token) : "-1"

const claimValues = (request: ClaimRequest): ReadonlyArray<string> => [
  request.key,
  request.tool,
  request.runId,
  request.claimId,
  request.owner,
  millis(request.lease),
  request.fingerprint
]

/** Values of items as the arrays that statements for many take. */
const columnsOf = (values: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> =>
  values[0]!.map((_, column) => values.map((row) => row[column]!))

interface Operation<Item> {
  readonly name: string
  readonly sql: { readonly one: string; readonly many: string }
  readonly values: (item: Item) => ReadonlyArray<string>
  /** The status of a row to which the same token did it before; `undefined` where only a held row can answer "ok". */
  readonly done: Status | undefined
}

const lengthOf = (...texts: ReadonlyArray<string>): number => texts.reduce((sum, text) => sum + text.length, 200)

/** `mostResultBytes` is the largest text of a result that the client could read again. */
export const claimsOf = (
  executor: SqlExecutor,
  names: Names,
  now: string,
  changes: Changes,
  mostResultBytes: number
): Claims => {
  const sql = { ...fencedSql(names, now), ...claimSql(names, now) }

  const params = (request: ClaimRequest): ReadonlyArray<unknown> => [digestOf(request.key), ...claimValues(request)]

  const manyParams = (requests: ReadonlyArray<Numbered<ClaimRequest>>): ReadonlyArray<unknown> => [
    requests.map(({ digest }) => digest),
    ...columnsOf(requests.map(({ item }) => claimValues(item)))
  ]

  /** What a claim read: a reply, or a row that can be taken over, or nothing where somebody was faster. */
  const readOf = ([token, ...found]: rows.Row, { claimId, key, tool }: ClaimRequest): ClaimReply | "free" | "again" => {
    if (token !== null) return rows.grantedNew(token)
    if (found[0] === null) return "again"
    const look = rows.look([found], key, tool, claimId)
    return look._tag === "Answer" ? look.reply : "free"
  }

  const again = (request: ClaimRequest, turn: number): Effect.Effect<ClaimReply, SqlError | EffectStoreError> =>
    turn < mostTurns ? claim(request, turn + 1) : Effect.fail(
      new EffectStoreError({ operation: "claim", key: request.key, problem: "others always claimed it first" })
    )

  const claim = (request: ClaimRequest, turn: number): Effect.Effect<ClaimReply, SqlError | EffectStoreError> =>
    Effect.flatMap(executor.write({ sql: sql.claim.one, params: params(request) }), ([row]) => {
      const read = row === undefined ? "again" : readOf(row, request)
      if (read === "again") return again(request, turn)
      return read !== "free" ? Effect.succeed(read) : Effect.flatMap(
        executor.write({ sql: sql.take.one, params: params(request) }),
        ([granted]) => granted === undefined ? again(request, turn) : Effect.succeed(rows.granted(granted))
      )
    })

  const claimEach = Effect.fnUntraced(function*(
    requests: ReadonlyArray<Numbered<ClaimRequest>>
  ): Effect.fn.Return<ReadonlyArray<ClaimReply>, SqlError | EffectStoreError> {
    const read: Array<ClaimReply | "free" | "again"> = requests.map(() => "again")
    for (const [n, ...row] of yield* executor.write({ sql: sql.claim.many, params: manyParams(requests) })) {
      const index = Number(n) - 1
      read[index] = readOf(row, requests[index]!.item)
    }
    const free = requests.flatMap((request, place) => read[place] === "free" ? [{ request, place }] : [])
    if (free.length > 0) {
      const taken = manyParams(free.map(({ request }) => request))
      for (const [n, ...row] of yield* executor.write({ sql: sql.take.many, params: taken })) {
        read[free[Number(n) - 1]!.place] = rows.granted(row)
      }
    }
    return yield* Effect.forEach(
      read,
      (reply, place) => reply === "free" || reply === "again" ? again(requests[place]!.item, 0) : Effect.succeed(reply)
    )
  })

  /** Whether the same token did it before, for those that the statement did not change. */
  const before = (
    items: ReadonlyArray<{ readonly digest: Uint8Array; readonly token: number }>,
    done: Status | undefined
  ): Effect.Effect<ReadonlyArray<Fenced>, SqlError> => {
    const lost = items.map((): Fenced => "lost")
    return done === undefined || items.length === 0 ? Effect.succeed(lost) : Effect.map(
      executor.read({ sql: sql.fences, params: [items.map(({ digest }) => digest)] }),
      (found) => {
        for (const [n, status, token] of found) {
          const index = Number(n) - 1
          if (status === done && Number(token) === items[index]!.token) lost[index] = "ok"
        }
        return lost
      }
    )
  }

  const fenced = <Item extends { readonly key: string; readonly token: number }>(operation: Operation<Item>) => {
    const { done, name, sql, values } = operation
    const wake = (key: string): void => {
      if (done !== undefined) changes.wake(key)
    }
    const one = (item: Item): Effect.Effect<Fenced, EffectStoreError> => {
      const digest = digestOf(item.key)
      return Effect.mapError(
        Effect.flatMap(
          executor.write({ sql: sql.one, params: [digest, tokenText(item.token), ...values(item)] }),
          ([changed]): Effect.Effect<Fenced, SqlError> => {
            if (changed === undefined) {
              return Effect.map(before([{ digest, token: item.token }], done), ([answer]) => answer!)
            }
            wake(item.key)
            return Effect.succeed("ok")
          }
        ),
        storeError(name, item.key)
      )
    }
    const many = (items: ReadonlyArray<Numbered<Item>>): Effect.Effect<ReadonlyArray<Fenced>, EffectStoreError> => {
      const texts = items.map(({ item }) => [tokenText(item.token), ...values(item)])
      return Effect.mapError(
        Effect.flatMap(
          executor.write({
            sql: sql.many,
            params: [items.map(({ digest }) => digest), ...columnsOf(texts)]
          }),
          (changed) => {
            const replies = new Array<Fenced>(items.length)
            for (const [n] of changed) {
              const index = Number(n) - 1
              replies[index] = "ok"
              wake(items[index]!.item.key)
            }
            const left = items.flatMap(({ digest, item }, place) =>
              replies[place] === undefined ? [{ digest, token: item.token, place }] : []
            )
            return Effect.map(before(left, done), (answers) => {
              left.forEach(({ place }, index) => replies[place] = answers[index]!)
              return replies
            })
          }
        ),
        storeError(name)
      )
    }
    return { one, many }
  }

  const complete = fenced<CompleteItem>({
    name: "complete",
    sql: sql.complete,
    values: ({ fingerprint, outcome, result }) => [result, outcome, fingerprint],
    done: "recorded"
  })
  const release = fenced<ReleaseItem>({
    name: "release",
    sql: sql.release,
    values: ({ cleared, verdict }) => [verdict, String(cleared)],
    done: "released"
  })
  const renew = fenced<RenewItem>({
    name: "renew",
    sql: sql.renew,
    values: ({ lease }) => [millis(lease)],
    done: undefined
  })

  const completeEach = inRounds(complete.one, complete.many, ({ fingerprint, result }) => lengthOf(fingerprint, result))

  const tooLarge = ({ key, result }: CompleteItem): EffectStoreError | undefined =>
    result.length <= mostResultBytes / 3 || Buffer.byteLength(encodeText(result)) <= mostResultBytes
      ? undefined
      : new EffectStoreError({
        operation: "complete",
        key,
        problem: `a result of more than ${mostResultBytes} bytes could not be read again through this client; set its `
          + `maxMessageSize higher, or largestResult lower`
      })

  return {
    batch: true,
    claim: inRounds(
      (request) =>
        Effect.mapError(
          claim(request, 0),
          (error) => error._tag === "EffectStoreError" ? error : storeError("claim", request.key)(error)
        ),
      (requests) =>
        Effect.mapError(
          claimEach(requests),
          (error) => error._tag === "EffectStoreError" ? error : storeError("claim")(error)
        ),
      ({ fingerprint, key, owner, runId, tool }) => lengthOf(fingerprint, key, owner, runId, tool)
    ),
    complete: (items) => {
      for (const item of items) {
        const error = tooLarge(item)
        if (error !== undefined) return Effect.fail(error)
      }
      return completeEach(items)
    },
    release: inRounds(release.one, release.many, () => 100),
    renew: inRounds(renew.one, renew.many, () => 100)
  }
}
