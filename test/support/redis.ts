/**
 * A real Redis for tests: the `redis-server` of the PATH on a port and in a folder of its own, with an append-only file. A
 * server of your own comes by `REDIS_URL`.
 */
import { NodeRedis } from "@effect/platform-node"
import { Data, Effect, Layer, Schedule } from "effect"
import type { Redis } from "effect/persistence"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"

export class NoRedis extends Data.TaggedError("NoRedis")<{ readonly cause: unknown }> {}

const isThere = (): boolean => {
  if (process.env["REDIS_URL"] !== undefined || spawnSync("redis-server", ["--version"]).status === 0) return true
  const how = "put redis-server (7 or newer) on the PATH, or set REDIS_URL"
  if (process.env["CHAMVI_REQUIRE_SERVICES"] === "1") throw new Error(`There is no Redis for these tests: ${how}.`)
  console.warn(`SKIPPED: no Redis for these tests: ${how}.`)
  return false
}

/** Whether there is a server to be had; else its tests are skipped, with a line that says how to run them. */
export const redisIsThere: boolean = isThere()

const freePort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
})

/** A server that a test may stop, kill and start again. */
export interface RedisServer {
  readonly port: number
  readonly url: string
  readonly start: Effect.Effect<void, NoRedis>
  /** Stops it, with the signal, and waits for its end. */
  readonly stop: (signal: "SIGTERM" | "SIGKILL") => Effect.Effect<void>
}

const ended = (child: ChildProcess) =>
  child.exitCode !== null || child.signalCode !== null
    ? Effect.void
    : Effect.asVoid(Effect.promise(() => once(child, "exit")))

export const redisServer = (...settings: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const directory = yield* temporaryDirectory
    const port = yield* freePort
    const url = `redis://127.0.0.1:${port}`
    let child: ChildProcess | undefined
    const stop: RedisServer["stop"] = (signal) =>
      Effect.suspend(() => {
        const running = child
        child = undefined
        if (running === undefined) return Effect.void
        running.kill(signal)
        return ended(running)
      })
    const answers = Effect.scoped(Layer.build(Layer.fresh(NodeRedis.layer({ url }))))
    const start = Effect.gen(function*() {
      child = spawn("redis-server", [
        "--port",
        String(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        directory,
        "--save",
        "",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        ...settings
      ], { stdio: "ignore" })
      yield* Effect.retry(answers, { schedule: Schedule.spaced("20 millis"), times: 200 })
    }).pipe(Effect.mapError((cause) => new NoRedis({ cause })))
    yield* Effect.addFinalizer(() => stop("SIGKILL"))
    yield* start
    const server: RedisServer = { port, url, start, stop }
    return server
  })

/** A client of a server that lives as long as the layer, or of `REDIS_URL`. */
export const RedisLayer: Layer.Layer<Redis.Redis, unknown> = Layer.unwrap(
  Effect.gen(function*() {
    const url = process.env["REDIS_URL"] ?? (yield* redisServer()).url
    return NodeRedis.layer({ url })
  })
)
