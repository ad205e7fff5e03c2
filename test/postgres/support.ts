import type { IEffectStore } from "chamvi-effect"
import { SqlEffectStore, type SqlEffectStoreOptions } from "chamvi-effect/SqlEffectStore"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ClaimReply, Fenced } from "../../src/EffectRecord.ts"
import { freshSchema } from "../support/postgres.ts"

let claims = 0

export const request = (key: string, options: { readonly lease?: number; readonly claimId?: string } = {}) => ({
  key,
  tool: "tool",
  runId: "run",
  owner: "owner",
  claimId: `claim-${++claims}`,
  lease: 60_000,
  fingerprint: "fingerprint",
  ...options
})

export const claim = (
  store: IEffectStore,
  key: string,
  options: { readonly lease?: number; readonly claimId?: string } = {}
): Effect.Effect<ClaimReply, unknown> => Effect.map(store.claim([request(key, options)]), ([reply]) => reply!)

export const tokenOf = (reply: ClaimReply): number => reply._tag === "Claimed" ? reply.token : 0

export const item = (key: string, token: number, result = `{"value":1}`) => ({
  key,
  token,
  result,
  outcome: "executed" as const,
  fingerprint: "fingerprint"
})

export const complete = (
  store: IEffectStore,
  key: string,
  token: number,
  result?: string
): Effect.Effect<Fenced, unknown> => Effect.map(store.complete([item(key, token, result)]), ([reply]) => reply!)

/** A key with a record. */
export const recorded = (store: IEffectStore, key: string) =>
  Effect.flatMap(claim(store, key), (reply) => complete(store, key, tokenOf(reply)))

/** A ledger in a schema of its own, and the schema's name. */
export const ledger = Effect.fnUntraced(function*(options: SqlEffectStoreOptions = {}) {
  const schema = yield* freshSchema
  const store = yield* SqlEffectStore.make({ schema, ...options })
  return { schema, store, table: `"${schema}".${options.table ?? "chamvi_effect"}` }
})

/** The client in context, with each statement that it is sent noted. A statement is one round trip. */
export const noting = Effect.map(SqlClient.SqlClient, (sql) => {
  const statements: Array<string> = []
  // noted when it is run, since it may be run again
  const noted = <Statement extends object>(statement: Statement, text: string): Statement =>
    new Proxy(statement, {
      get: (target, property) =>
        property === "values"
          ? Effect.suspend(() => {
            statements.push(text)
            return Reflect.get(target, property, target) as Effect.Effect<unknown>
          })
          : Reflect.get(target, property, target)
    })
  const unsafe = ((text: string, params?: ReadonlyArray<unknown>) =>
    noted(sql.unsafe(text, params), text)) as SqlClient.SqlClient["unsafe"]
  // a client is a function with properties
  const client: SqlClient.SqlClient = Object.assign(sql.bind(undefined), sql, { unsafe })
  return { client, statements }
})

/** Waits until it holds: other processes take their time on a busy machine. */
export const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => holds() ? Effect.void : Effect.delay(eventually(holds), 10))
