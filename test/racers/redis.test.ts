import { Effect } from "effect"
import { redisIsThere, redisServer } from "../support/redis.ts"
import { races } from "./race.ts"

races(
  "RedisEffectStore",
  redisIsThere,
  Effect.map(redisServer("--appendfsync", "everysec"), ({ url }) => ({ store: "redis" as const, url, prefix: "race:" }))
)
