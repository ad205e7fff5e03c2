/**
 * The ledger in a Postgres database.
 */
import { Effect, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { EffectStoreError } from "../../errors.ts"
import type { IEffectStore } from "../../store/IEffectStore.ts"
import * as Changes from "../changes.ts"
import type { Query } from "../dialect.ts"
import { fromClient, type SqlExecutor } from "../executor.ts"
import { makeStore } from "../makeStore.ts"
import type { Row } from "../rows.ts"
import { claimsOf } from "./claims.ts"
import { migrate, schemaOf } from "./migrate.ts"
import { namesOf } from "./names.ts"
import { sourceOf } from "./notices.ts"
import { databaseClock, statementsOf } from "./statements.ts"
import { anyText } from "./text.ts"

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

const messageSizeOf = (client: object): number => {
  const config = "config" in client ? client.config as { readonly maxMessageSize?: number | undefined } : undefined
  return config?.maxMessageSize ?? defaultMessageSize
}

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
  const executor = patient(anyText(fromClient(client, false).write))
  const changes = yield* Changes.make(sourceOf(client, executor, names), options.pollInterval ?? 1_000, undefined)
  const claims = claimsOf(executor, names, now, changes, messageSizeOf(client) - besideResult)
  return makeStore(executor, statementsOf(names, now), claims, changes)
})
