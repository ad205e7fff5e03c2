/**
 * A TCP proxy on loopback that does to a connection what networks do: at a point that a test names by bytes that pass, it
 * stalls, cuts or half-closes.
 */
import { Deferred, Effect } from "effect"
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"

export type Trouble = "stall" | "cut" | "half-close"

/** Where trouble strikes: at the request that holds the bytes, before it or before its reply arrives. */
export interface Point {
  readonly bytes: string
  readonly before: "request" | "reply"
}

export interface TcpProxy {
  readonly port: number
  /** The trouble that will strike, once, at the point; new connections get nowhere from then on, until `heal`. */
  readonly arm: (trouble: Trouble, point: Point) => Effect.Effect<{ readonly struck: Effect.Effect<void> }>
  /** The trouble strikes all connections now. */
  readonly strike: (trouble: Trouble) => Effect.Effect<void>
  /** What was stalled goes on; new connections are served. */
  readonly heal: Effect.Effect<void>
}

/** One connection, and what of it is held back. */
class Link {
  readonly client: Socket
  readonly server: Socket
  stalled = false
  expectsReply = false
  private readonly held: Array<() => void> = []

  constructor(client: Socket, port: number) {
    this.client = client
    this.server = connect(port, "127.0.0.1")
    for (const socket of [this.client, this.server]) socket.on("error", () => this.cut()).on("close", () => this.cut())
  }

  pass(send: () => void): void {
    if (this.stalled) this.held.push(send)
    else send()
  }

  suffer(trouble: Trouble): void {
    switch (trouble) {
      case "stall":
        this.stalled = true
        return
      case "cut":
        return this.cut()
      case "half-close":
        // the client reads an end, and may go on writing into the void
        this.server.destroy()
        this.client.end()
    }
  }

  cut(): void {
    this.client.destroy()
    this.server.destroy()
  }

  heal(): void {
    this.stalled = false
    this.held.splice(0).forEach((send) => send())
  }
}

export const tcpProxy = (target: number) =>
  Effect.gen(function*() {
    const links = new Set<Link>()
    let armed:
      | { readonly trouble: Trouble; readonly point: Point; readonly struck: Deferred.Deferred<void> }
      | undefined
    let down: Trouble | undefined

    const strike = (link: Link): void => {
      const { struck, trouble } = armed!
      armed = undefined
      down = trouble
      link.suffer(trouble)
      Deferred.doneUnsafe(struck, Effect.void)
    }

    const server = createServer((client) => {
      const link = new Link(client, target)
      links.add(link)
      client.on("close", () => links.delete(link))
      if (down !== undefined) link.suffer(down)
      client.on("data", (bytes) => {
        if (armed !== undefined && bytes.includes(armed.point.bytes)) {
          if (armed.point.before === "request") strike(link)
          else link.expectsReply = true
        }
        link.pass(() => link.server.write(bytes))
      })
      link.server.on("data", (bytes) => {
        if (link.expectsReply && armed !== undefined) strike(link)
        link.pass(() => link.client.write(bytes))
      })
    }).listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(server, "listening"))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        links.forEach((link) => link.cut())
        server.close()
      })
    )
    const address = server.address()
    const proxy: TcpProxy = {
      port: typeof address === "object" && address !== null ? address.port : 0,
      arm: (trouble, point) =>
        Effect.map(Deferred.make<void>(), (struck) => {
          armed = { trouble, point, struck }
          return { struck: Deferred.await(struck) }
        }),
      strike: (trouble) =>
        Effect.sync(() => {
          down = trouble
          links.forEach((link) => link.suffer(trouble))
        }),
      heal: Effect.sync(() => {
        down = undefined
        armed = undefined
        links.forEach((link) => link.heal())
      })
    }
    return proxy
  })
