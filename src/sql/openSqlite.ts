/**
 * The ledger in a SQLite database of the program's own.
 */
import { Effect, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import * as Changes from "./changes.ts"
import { fromClient } from "./executor.ts"
import { makeStore } from "./makeStore.ts"
import { migrate } from "./migrate.ts"
import { singly } from "./singly.ts"
import * as Sqlite from "./sqliteDialect.ts"
import { inTransaction, transactionsOf, untold } from "./transactions.ts"

export const open = Effect.fnUntraced(function*(
  client: SqlClient.SqlClient,
  table: string,
  options: {
    /** Milliseconds. */
    readonly pollInterval: number | undefined
    readonly now: string | undefined
  }
): Effect.fn.Return<IEffectStore, EffectStoreError, Scope.Scope> {
  yield* Effect.provideService(migrate(table, Sqlite.migrations(table)), SqlClient.SqlClient, client)
  const executor = fromClient(client, true)
  const statements = Sqlite.statements(table, options.now)
  const changes = yield* Changes.make(Sqlite.source(executor, statements), options.pollInterval ?? 100, undefined)
  const within = inTransaction(client)
  const claims = singly({ read: within, write: within }, statements, untold(changes))
  return {
    ...makeStore(executor, statements, singly(executor, statements, changes), changes),
    // a transaction that reads first could not write any more after somebody else has
    transactions: transactionsOf(client, claims, changes.wake, "BEGIN IMMEDIATE")
  }
})
