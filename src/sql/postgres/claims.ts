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
import { claimMany, claimOne, grantWidth } from "./claimSql.ts"
import { fencedSql } from "./fencedSql.ts"
import type { Names } from "./names.ts"
import { inRounds, type Numbered } from "./rounds.ts"
import { millis } from "./statements.ts"
import { digestOf, encodeText } from "./text.ts"

/** What is no whole number is no token that was ever given. */
const tokenText = (token: number): string => Number.isSafeInteger(token) ? String(token) : "-1"

const claimParams = (request: ClaimRequest): ReadonlyArray<string> => [
  request.key,
  request.tool,
  request.runId,
  request.claimId,
  request.owner,
  millis(request.lease),
  request.fingerprint
]

/** Values of items as the arrays that statements for many take. */
const columnsOf = (width: number, values: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: width }, (_, column) => values.map((row) => row[column]!))

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
  const sql = { ...fencedSql(names, now), claim: claimOne(names, now), claimMany: claimMany(names, now) }

  /** The reply in a row of a claim; nothing where the row looked free, and somebody else was faster. */
  const replyOf = (row: rows.Row, { claimId, key, tool }: ClaimRequest): ClaimReply | undefined => {
    if (row[0] !== null) return rows.granted(row)
    const found = row.slice(grantWidth)
    const look = rows.look(found[0] === null ? [] : [found], key, tool, claimId)
    return look._tag === "Answer" ? look.reply : undefined
  }

  const tooManyTurns = (key: string) =>
    new EffectStoreError({ operation: "claim", key, problem: "others always claimed it first" })

  const claim = (request: ClaimRequest, turn = 0): Effect.Effect<ClaimReply, SqlError | EffectStoreError> =>
    Effect.flatMap(
      executor.write({ sql: sql.claim, params: [digestOf(request.key), ...claimParams(request)] }),
      ([row]) => {
        const reply = replyOf(row!, request)
        return reply !== undefined
          ? Effect.succeed(reply)
          : turn < mostTurns
          ? claim(request, turn + 1)
          : Effect.fail(tooManyTurns(request.key))
      }
    )

  const claimEach = (
    requests: ReadonlyArray<Numbered<ClaimRequest>>
  ): Effect.Effect<ReadonlyArray<ClaimReply>, SqlError | EffectStoreError> =>
    Effect.flatMap(
      executor.write({
        sql: sql.claimMany,
        params: [
          requests.map(({ digest }) => digest),
          ...columnsOf(7, requests.map(({ item }) => claimParams(item)))
        ]
      }),
      (answers) => {
        const replies = new Array<ClaimReply | undefined>(requests.length)
        for (const [n, ...row] of answers) {
          const index = Number(n) - 1
          replies[index] = replyOf(row, requests[index]!.item)
        }
        return Effect.forEach(replies, (reply, index) =>
          reply === undefined ? claim(requests[index]!.item, 1) : Effect.succeed(reply))
      }
    )

  /** Whether the same token did it before, for those that the statement did not change. */
  const again = (
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
              return Effect.map(again([{ digest, token: item.token }], done), ([answer]) => answer!)
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
            params: [items.map(({ digest }) => digest), ...columnsOf(texts[0]!.length, texts)]
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
            return Effect.map(again(left, done), (answers) => {
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
          claim(request),
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
