/**
 * Transactions that hold what the program writes over its own client, and the ledger's record of it.
 */
import { Cause, Context, Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { ConnectionError, isSqlError, SqlError } from "effect/sql/SqlError"
import { EffectStoreError } from "../errors.ts"
import type { EffectTransactions, LedgerInTransaction } from "../store/IEffectStore.ts"
import type { Query } from "./dialect.ts"
import type { Changes } from "./changes.ts"
import { problemOf } from "./executor.ts"
import type { Claims } from "./makeStore.ts"
import type { Row } from "./rows.ts"

const outside = new SqlError({
  reason: new ConnectionError({
    cause: undefined,
    message: "its transaction is not open any more",
    operation: "execute"
  })
})

/** The changes of a transaction, which nobody is told of before it commits. */
export const untold = (changes: Changes): Changes => ({ ...changes, wake: () => {} })

/** Statements on the connection of the transaction that the fiber is in. */
export const inTransaction =
  (client: SqlClient.SqlClient) => ({ params, sql }: Query): Effect.Effect<ReadonlyArray<Row>, SqlError> =>
    Effect.withFiber((fiber) => {
      const transaction = Context.getOrUndefined(fiber.context, client.transactionService)
      return transaction === undefined
        ? Effect.fail(outside)
        : Effect.provideService(transaction[0].executeValues(sql, params), SqlClient.SafeIntegers, false)
    })

/** What became of a transaction that did not commit, as far as its database said something. */
const notCommitted = (cause: Cause.Cause<unknown>): EffectStoreError => {
  const error = Cause.squash(cause)
  const said = isSqlError(error) ? problemOf(error) : String(error)
  const isRefused = isSqlError(error) && error.reason._tag !== "ConnectionError"
  return new EffectStoreError({
    operation: "commit",
    problem: isRefused
      ? `${said} (all was rolled back)`
      : `${said}; the effect and its record are both there, or both not: the next call finds out`,
    cause: error
  })
}

const notBegun = (cause: Cause.Cause<unknown>): EffectStoreError => {
  const error = Cause.squash(cause)
  return new EffectStoreError({
    operation: "begin a transaction",
    problem: isSqlError(error) ? problemOf(error) : String(error),
    cause: error
  })
}

/**
 * `claims` are over statements of `inTransaction`, `wake` wakes those who wait for a key. `begin` is what begins a
 * transaction where the program has not said it.
 */
export const transactionsOf = (
  client: SqlClient.SqlClient,
  claims: Claims,
  wake: (key: string) => void,
  begin: string | undefined
): EffectTransactions => {
  const first = <A>(replies: Effect.Effect<ReadonlyArray<A>, EffectStoreError>) =>
    Effect.map(replies, ([reply]) => reply as A)
  const { transactionService } = client

  const run = <A, E>(
    work: (ledger: LedgerInTransaction) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | EffectStoreError> =>
    Effect.withFiber((fiber) => {
      const recorded: Array<string> = []
      const ledger: LedgerInTransaction = {
        claim: (request) => first(claims.claim([request])),
        complete: (item) =>
          Effect.tap(first(claims.complete([item])), () => Effect.sync(() => void recorded.push(item.key)))
      }
      const given = fiber.getRef(SqlClient.BeginTransaction)
      let worked: Exit.Exit<A, E> | undefined
      // what the program says of its own transactions, on other clients too, stays as it was
      const inside = Effect.onExit(
        Effect.provideService(Effect.suspend(() => work(ledger)), SqlClient.BeginTransaction, given),
        (exit) =>
          Effect.sync(() => {
            worked = exit
          })
      )
      const transaction = client.withTransaction(inside)
      return Effect.matchCauseEffect(
        given === undefined && begin !== undefined
          ? Effect.provideService(transaction, SqlClient.BeginTransaction, begin)
          : transaction,
        {
          onSuccess: (value) => {
            recorded.forEach(wake)
            return Effect.succeed(value)
          },
          onFailure: (cause): Effect.Effect<A, E | EffectStoreError> =>
            worked === undefined
              ? Effect.fail(notBegun(cause))
              // its own cause: a rollback that fails too must not take the place of it
              : Exit.isFailure(worked)
              ? Effect.failCause(worked.cause)
              : Effect.fail(notCommitted(cause))
        }
      )
    })

  return {
    isInside: (services) => Context.getOrUndefined(services, transactionService) !== undefined,
    isElsewhere: (services) => {
      const own = Context.getOrUndefined(services as Context.Context<SqlClient.SqlClient>, SqlClient.SqlClient)
      return own !== undefined && own.transactionService.key !== transactionService.key
    },
    run
  }
}
