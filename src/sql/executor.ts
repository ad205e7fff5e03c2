/**
 * How the store's statements reach a database: always on a connection of their own, never inside the caller's transaction.
 */
import { Context, Effect } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { SqlClient } from "effect/sql"
import type { Query } from "./dialect.ts"
import type { Row } from "./rows.ts"

/** Runs statements, each as a transaction of its own or in one that the executor makes for several. */
export interface SqlExecutor {
  /** A statement that changes nothing. */
  readonly read: (query: Query) => Effect.Effect<ReadonlyArray<Row>, SqlError>
  /** A statement that may change something; what it changed is durable when it answers. */
  readonly write: (query: Query) => Effect.Effect<ReadonlyArray<Row>, SqlError>
}

/** What went wrong, in the database's own words where it said something. */
export const problemOf = ({ message, reason }: SqlError): string => {
  const said = reason.message ?? message
  const { cause } = reason
  return cause instanceof Error && cause.message !== "" && !said.includes(cause.message)
    ? `${said}: ${cause.message}`
    : said
}

const insideTransaction = new SqlError({
  reason: new ConnectionError({
    cause: undefined,
    operation: "reserve",
    message: "it was called inside a transaction of the database that it lives in, which has one writer only, and "
      + "would wait for that transaction for ever; call it outside, or give the ledger a file of its own"
  })
})

/**
 * Statements over any `SqlClient`.
 *
 * **Details**
 *
 * A connection is reserved for each statement, past the statement builder of the client: the texts are fixed, there is
 * nothing to compile, and a reserved connection is never the caller's.
 */
export const fromClient = (client: SqlClient.SqlClient, oneWriter: boolean): SqlExecutor => {
  const run = ({ params, sql }: Query): Effect.Effect<ReadonlyArray<Row>, SqlError> =>
    Effect.provideService(
      Effect.scoped(Effect.flatMap(client.reserve, (connection) => connection.executeValues(sql, params))),
      SqlClient.SafeIntegers,
      false
    )
  const { transactionService } = client
  const execute = !oneWriter
    ? run
    : (query: Query) =>
      Effect.withFiber<ReadonlyArray<Row>, SqlError>((fiber) =>
        Context.getOrUndefined(fiber.context, transactionService) === undefined
          ? run(query)
          : Effect.fail(insideTransaction)
      )
  return { read: execute, write: execute }
}
