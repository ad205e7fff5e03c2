/**
 * What the tests of transactional calls share: a ledger beside a table of the program's.
 */
import { assert } from "@effect/vitest"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import type { IEffectStore } from "chamvi-effect"
import { Cause, Effect, Exit, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { assertIdle, call, type CallOptions } from "../reconciliation/support.ts"

/** A ledger, and a table `notes (note text)` beside it; `another` is the same ledger as another process has it. */
export interface World {
  readonly sql: SqlClient.SqlClient
  readonly store: IEffectStore
  readonly another: IEffectStore
}

/** A call whose effect may use the client in context. */
export const transactional = (store: IEffectStore, options: CallOptions = {}) =>
  call(store, { transactional: true, ...options } as CallOptions)

export const notesOf = ({ sql }: World) =>
  Effect.map(
    sql<{ readonly note: string }>`SELECT note FROM notes ORDER BY note`,
    (rows) => rows.map(({ note }) => note)
  )

export const write = ({ sql }: World, note: string) => Effect.as(sql`INSERT INTO notes (note) VALUES (${note})`, note)

/** Nothing is left of the key: no row of it, and nothing in the process. */
export const untouched = Effect.fnUntraced(function*(world: World) {
  assert.deepStrictEqual(yield* notesOf(world), [])
  assert.isUndefined(yield* world.store.get("k"))
  yield* assertIdle(world.store)
})

export const claimOf = (store: IEffectStore, options: { readonly tool?: string; readonly lease?: number } = {}) =>
  Effect.map(
    store.claim([{
      key: "k",
      tool: "t",
      runId: "",
      owner: "somebody",
      claimId: crypto.randomUUID(),
      lease: 3_600_000,
      fingerprint: "",
      ...options
    }]),
    ([reply]) => reply?._tag === "Claimed" ? reply.token : assert.fail("it is not granted")
  )

export const inWorld = (open: OpenWorld) => (run: (world: World) => Effect.Effect<void, unknown, Scope.Scope>) => () =>
  Effect.scoped(Effect.flatMap(open, run))

export type InWorld = ReturnType<typeof inWorld>

export type OpenWorld = Effect.Effect<World, unknown, Scope.Scope>

export const failureName = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isFailure(exit)
    ? Cause.hasInterruptsOnly(exit.cause) ? "interrupt" : String(Cause.squash(exit.cause))
    : "success"

/** The world of a database whose client and ledger the layer gives; its schema is the connection's. */
export const worldOf = (sql: SqlClient.SqlClient, options: { readonly schema?: string }) =>
  Effect.gen(function*() {
    const { another, store } = yield* Effect.all({
      store: SqlEffectStore.make(options),
      another: SqlEffectStore.make(options)
    })
    return { sql, store, another } satisfies World
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
