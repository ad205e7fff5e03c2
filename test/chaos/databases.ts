/**
 * Databases for the workers.
 */
import { Effect, type Scope } from "effect"
import { startEmbedded } from "../support/embeddedPostgres.ts"
import type { Database } from "./disturbances.ts"

/** A server of its own, with an empty schema. */
export const embedded: Effect.Effect<Database, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => startEmbedded(["fsync=off", "autovacuum=off"])),
    (server) => Effect.promise(() => server.stop())
  ),
  ({ restart, url }) => ({
    url,
    schema: "chaos",
    restart: (millis) => Effect.uninterruptible(Effect.promise(() => restart(millis)))
  })
)
