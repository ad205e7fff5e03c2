/**
 * `npm run bench`: what reconciliation costs. Ratios within one run count; absolute figures are this machine's.
 */
import { Effect } from "effect"
import { benchEngine } from "./engine.ts"
import { benchKey } from "./key.ts"
import { benchPostgres } from "./postgres.ts"
import { benchRedis } from "./redis.ts"
import { benchStores } from "./stores.ts"
import { benchTools } from "./tools.ts"

await benchKey()
await Effect.runPromise(Effect.scoped(benchTools(150)))
await Effect.runPromise(Effect.scoped(benchStores(150)))
await Effect.runPromise(Effect.scoped(benchPostgres(150)))
await Effect.runPromise(Effect.scoped(benchRedis(150)))
await Effect.runPromise(Effect.scoped(benchEngine(30)))
