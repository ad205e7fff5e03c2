import { PgClient } from "@effect/sql-pg"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll } from "vitest"
import { networkFaults } from "../network/faults.ts"
import { startEmbedded } from "../support/embeddedPostgres.ts"
import { noPostgres } from "../support/postgres.ts"

// a server of its own, which flushes, and which the last test restarts
const server = noPostgres ? undefined : await startEmbedded()
afterAll(() => server?.stop())

const { port = 0, url = "" } = server ?? {}

const connect = (through: number) =>
  Effect.gen(function*() {
    const client = PgClient.layer({
      url: Redacted.make(url.replace(`:${port}/`, `:${through}/`)),
      maxConnections: 4
    })
    const context = yield* Layer.build(Layer.fresh(client))
    return yield* Effect.provideService(
      SqlEffectStore.make(),
      SqlClient.SqlClient,
      Context.get(context, SqlClient.SqlClient)
    )
  })

networkFaults(
  "SqlEffectStore on Postgres",
  !noPostgres,
  Effect.succeed({ port, restart: Effect.promise(async () => server?.restart()), connect })
)
