/**
 * The ledger in a Postgres database.
 */
import { Context, Effect, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { EffectStoreError } from "../../errors.ts"
import type { IEffectStore } from "../../store/IEffectStore.ts"
import * as Changes from "../changes.ts"
import type { Query } from "../dialect.ts"
import { fromClient, type SqlExecutor } from "../executor.ts"
import { makeStore } from "../makeStore.ts"
import type { Row } from "../rows.ts"
import { inTransaction, transactionsOf, untold } from "../transactions.ts"
import { claimsOf } from "./claims.ts"
import { migrate, schemaOf } from "./migrate.ts"
import { namesOf } from "./names.ts"
import { sourceOf } from "./notices.ts"
import { databaseClock, statementsOf } from "./statements.ts"
import { anyText } from "./text.ts"

/**
 * A statement on a connection of the pool, never on that of the caller's transaction.
 *
 * The client lends a connection for one statement, which costs less than reserving one. Where it shares connections among
 * statements (`multiplex`) one is reserved: a commit would keep the others waiting.
 */
const lent = (client: SqlClient.SqlClient): SqlExecutor["write"] => {
  const { transactionService } = client
  const outside = (context: Context.Context<never>) => Context.omit(transactionService)(context)
  const run = ({ params, sql }: Query) => client.unsafe(sql, params).values
  return (query) =>
    Effect.withFiber((fiber) =>
      Context.getOrUndefined(fiber.context, transactionService) === undefined
        ? run(query)
        : Effect.updateContext(run(query), outside)
    )
}

/** How often what the database undid because of others is done again. */
const mostRetries = 20

/** The database undid the whole statement: it met another one that had to come first. */
const isUndone = ({ reason }: SqlError): boolean =>
  reason._tag === "DeadlockError" || reason._tag === "SerializationError"

const patient = (run: (query: Query) => Effect.Effect<ReadonlyArray<Row>, SqlError>): SqlExecutor => {
  const execute = (query: Query) =>
    Effect.catchIf(run(query), isUndone, () => Effect.retry(run(query), { while: isUndone, times: mostRetries }))
  return { read: execute, write: execute }
}

/** The largest message that `@effect/sql-pg` takes, where nothing else is said. */
const defaultMessageSize = 16 * 1024 * 1024

/** What else may stand in a message that carries a result: the key above all. */
const besideResult = 256 * 1024

interface ClientConfig {
  readonly maxMessageSize?: number | undefined
  readonly multiplex?: boolean | undefined
}

/** The settings of a client of `@effect/sql-pg`. */
const configOf = (client: object): ClientConfig => "config" in client ? client.config as ClientConfig : {}

export const open = Effect.fnUntraced(function*(
  client: SqlClient.SqlClient,
  table: string,
  options: {
    readonly schema: string | undefined
    /** Milliseconds. */
    readonly pollInterval: number | undefined
    readonly now: string | undefined
  }
): Effect.fn.Return<IEffectStore, EffectStoreError, Scope.Scope> {
  const schema = yield* schemaOf(client, options.schema)
  const names = namesOf(schema, table)
  yield* migrate(client, names, schema)
  const now = options.now ?? databaseClock
  const { maxMessageSize = defaultMessageSize, multiplex } = configOf(client)
  const executor = patient(anyText(multiplex === true ? fromClient(client, false).write : lent(client)))
  const changes = yield* Changes.make(sourceOf(client, executor, names), options.pollInterval ?? 1_000, undefined)
  const mostResultBytes = maxMessageSize - besideResult
  const claims = claimsOf(executor, names, now, changes, mostResultBytes)
  const within = anyText(inTransaction(client))
  const claimsWithin = claimsOf({ read: within, write: within }, names, now, untold(changes), mostResultBytes)
  return {
    ...makeStore(executor, statementsOf(names, now), claims, changes),
    transactions: transactionsOf(client, claimsWithin, changes.wake, undefined)
  }
})
