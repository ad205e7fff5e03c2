/**
 * How the processes of a cluster tell each other what was written: by NOTIFY and LISTEN of Postgres. Notices may be lost, so
 * that whoever waits for one also looks by itself now and then.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Queue, Schedule, type Scope } from "effect"

export class Notices extends Context.Service<Notices, {
  /** Tells everybody that there are messages for executions. */
  readonly written: Effect.Effect<void>
  /** Tells everybody that the run has changed. */
  readonly changed: (runId: string) => Effect.Effect<void>
  /** Runs `look` when there may be messages, until the scope closes. */
  readonly onWritten: (look: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
  /** Calls `hear` with runs that others have changed, until the scope closes. */
  readonly onChanged: (hear: (runId: string) => void) => Effect.Effect<void, never, Scope.Scope>
}>()("chamvi-effect/engineSql/notices") {}

/** One holds the locks, one listens, one may listen for the ledger: there must be one that is left. */
const enoughToListen = 4

/** Postgres takes notices of less than 8000 bytes. */
const mostBytes = 4000

const messages = "messages"
const runPrefix = "run "

const registered = <A>(all: Set<A>, one: A): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(Effect.sync(() => all.add(one)), () => Effect.sync(() => all.delete(one))))

/** Listens in the scope, on a connection of the client's pool if it has some to spare. */
export const make = Effect.fnUntraced(function*(
  client: PgClient.PgClient,
  channel: string,
  connections: number
): Effect.fn.Return<Notices["Service"], never, Scope.Scope> {
  const looks = new Set<Effect.Effect<void>>()
  const hears = new Set<(runId: string) => void>()
  const lookAll = Effect.suspend(() => Effect.forEach(looks, (look) => look, { discard: true }))

  const heard = (payload: string) => {
    if (payload === messages) return lookAll
    if (payload.startsWith(runPrefix)) hears.forEach((hear) => hear(payload.slice(runPrefix.length)))
    return Effect.void
  }
  const listening = Effect.scoped(Effect.gen(function*() {
    const queue = yield* client.listen(channel)
    // what was written before Postgres began to send notices
    yield* lookAll
    return yield* Effect.forever(Effect.flatMap(Queue.take(queue), ({ payload }) => heard(payload)))
  }))
  if (connections >= enoughToListen) {
    yield* Effect.forkScoped(
      Effect.repeat(Effect.ignoreCause(listening), Schedule.jittered(Schedule.spaced("1 second")))
    )
  }

  const tell = (payload: string) => Effect.ignoreCause(client.notify(channel, payload))
  return {
    // this process shall look where it cannot listen, too
    written: Effect.andThen(lookAll, tell(messages)),
    changed: (runId) => Buffer.byteLength(runId) > mostBytes ? Effect.void : tell(`${runPrefix}${runId}`),
    onWritten: (look) => registered(looks, look),
    onChanged: (hear) => registered(hears, hear)
  }
})
