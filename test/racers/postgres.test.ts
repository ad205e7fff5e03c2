import { Effect } from "effect"
import { databaseUrl, freshSchema, noPostgres } from "../support/postgres.ts"
import { races } from "./race.ts"

races(
  "SqlEffectStore on Postgres",
  !noPostgres,
  Effect.map(freshSchema, (schema) => ({ store: "postgres" as const, url: databaseUrl, schema }))
)
