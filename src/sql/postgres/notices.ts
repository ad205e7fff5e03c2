/**
 * How changes are seen in Postgres: by LISTEN and NOTIFY where the client can listen, and by looking.
 *
 * **Details**
 *
 * - A row says whether anybody waits for it (`awaited`); only then a change of it sends a notice. Postgres commits
 *   transactions that notify one after the other, which the many records that nobody waits for shall not pay for.
 * - Listening takes one connection of the client's pool, for as long as somebody waits. It never takes the last one.
 */
import { Effect, Fiber, Option, Queue, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { Notices, Sign, Source } from "../changes.ts"
import type { SqlExecutor } from "../executor.ts"
import type { Names } from "./names.ts"
import { digestOf } from "./text.ts"

/** What a client of `@effect/sql-pg` has above others. */
interface Listener {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<{ readonly payload: string }, SqlError>, SqlError, Scope.Scope>
  readonly config?: { readonly maxConnections?: number | undefined } | undefined
}

const isListener = (client: object): client is Listener => "listen" in client && typeof client.listen === "function"

/** The largest pool of a client that does not say how large it is. */
const defaultConnections = 10

/** How many connections of a client's pool listen, over all stores. */
const listening = new WeakMap<object, number>()

const idOf = (key: string): string => Buffer.from(digestOf(key)).toString("hex")

/** Where changes are seen. */
export const sourceOf = (client: SqlClient.SqlClient, executor: SqlExecutor, { channel, table }: Names): Source => {
  const text = {
    look: `SELECT i.n, e.status || ' ' || e.token || ' ' || (e.result IS NULL), e.status = 'held' AND NOT e.awaited
      FROM unnest($1::bytea[]) WITH ORDINALITY AS i (digest, n) JOIN ${table} AS e ON e.digest = i.digest`,
    wait: `UPDATE ${table} AS e SET awaited = true WHERE e.digest = $1 AND e.status = 'held' RETURNING 1`
  }
  let isListening = false
  // a client whose only connection listens has none left for statements
  let isOnlyConnection = false

  const take = (client: Listener) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const taken = listening.get(client) ?? 0
        const most = client.config?.maxConnections ?? defaultConnections
        if (isOnlyConnection || taken + 1 >= most) return false
        listening.set(client, taken + 1)
        return true
      }),
      (taken) =>
        Effect.sync(() => {
          isListening = false
          if (taken) listening.set(client, listening.get(client)! - 1)
        })
    )

  const noticesOf = (listener: Listener): Notices => ({
    idOf,
    listen: Effect.fnUntraced(function*(ready, hear) {
      if (!(yield* take(listener))) return
      const queue = yield* listener.listen(channel)
      // Who waits for a connection cannot be interrupted: left alone it gets one, and gives it back, once listening is over.
      const other = yield* Effect.forkDetach(Effect.scoped(client.reserve))
      if (Option.isNone(yield* Effect.timeoutOption(Fiber.await(other), "2 seconds"))) {
        isOnlyConnection = true
        return
      }
      isListening = true
      yield* ready
      return yield* Effect.forever(Effect.map(Queue.take(queue), ({ payload }) => hear(payload)))
    })
  })

  const look = Effect.fnUntraced(function*(keys: ReadonlyArray<string>) {
    const signs = keys.map((): Sign => ({ sign: "" }))
    for (const [n, sign, mark] of yield* executor.read({ sql: text.look, params: [keys.map(digestOf)] })) {
      const index = Number(n) - 1
      signs[index] = { sign: String(sign) }
      if (mark !== true || !isListening) continue
      const [marked] = yield* executor.write({ sql: text.wait, params: [digestOf(keys[index]!)] })
      // nobody holds it any more
      if (marked === undefined) signs[index] = { sign: `${String(sign)}, changed` }
    }
    return signs
  })

  return { look, notices: isListener(client) ? noticesOf(client) : undefined }
}
