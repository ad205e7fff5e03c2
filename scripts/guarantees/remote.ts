/**
 * The remotes that the page's tools work on. Each keeps a list of entries, the agent's among those of strangers, and differs
 * in what it makes of a request that it has had before.
 */
import * as SqliteClient from "../../src/SqliteClient.ts"
import { CrashLab } from "chamvi-effect/testing"
import { Context, Data, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"

/** What `execute` fails with where it takes nothing for applied. */
export class Refused extends Data.TaggedError("Refused")<{}> {}

/** A plain failure of the next request: before the effect, or after it, which the tool does not know. */
export type Failing = "before" | "after"

interface Shape {
  readonly send: (key: string) => Effect.Effect<string, Refused>
  readonly find: (key: string) => Effect.Effect<string | undefined>
  readonly count: Effect.Effect<number>
  readonly byStrangers: (texts: ReadonlyArray<string>) => Effect.Effect<void>
  readonly failNext: (failing: Failing) => Effect.Effect<void>
}

export class Remote extends Context.Service<Remote, Shape>()("scripts/guarantees/Remote") {}

interface Entries {
  readonly add: (key: string) => Effect.Effect<void>
  readonly count: Effect.Effect<number>
}

const remoteOf = ({ add, count }: Entries, find: Shape["find"], byStrangers: Shape["byStrangers"]): Shape => {
  let failing: Failing | undefined
  const fails = (when: Failing) =>
    Effect.suspend(() => {
      if (failing !== when) return Effect.void
      failing = undefined
      return Effect.fail(new Refused())
    })
  return {
    send: Effect.fnUntraced(function*(key) {
      yield* fails("before")
      yield* CrashLab.point("request")
      yield* add(key)
      yield* CrashLab.point("stored")
      yield* fails("after")
      return "applied"
    }),
    find,
    count,
    byStrangers,
    failNext: (next) =>
      Effect.sync(() => {
        failing = next
      })
  }
}

/** The program's own database, which a ledger may live in. */
const database = Layer.orDie(SqliteClient.layer({ filename: ":memory:" }))

/** A remote, and the database of the program that it works for. */
export type World = Layer.Layer<Remote | SqlClient.SqlClient>

const inMemory = (addsAgain: boolean): World =>
  Layer.merge(
    database,
    Layer.sync(Remote, () => {
      const entries: Array<{ readonly author: "agent" | "stranger"; readonly text: string }> = []
      const ours = (key: string) => entries.some(({ author, text }) => author === "agent" && text.includes(key))
      return remoteOf(
        {
          add: (key) =>
            Effect.sync(() => void (addsAgain || !ours(key) ? entries.push({ author: "agent", text: key }) : 0)),
          count: Effect.sync(() => entries.filter(({ author }) => author === "agent").length)
        },
        (key) => Effect.sync(() => ours(key) ? "applied" : undefined),
        (texts) => Effect.sync(() => texts.forEach((text) => entries.push({ author: "stranger", text })))
      )
    })
  )

/** Each request is another effect. */
export const adding = inMemory(true)

/** A request that it has had changes nothing: of a set, or by its idempotency key. */
export const once = inMemory(false)

/** A table in that database. */
export const table: World = Layer.effect(
  Remote,
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* Effect.orDie(sql`CREATE TABLE entries (text TEXT)`)
    const rows = Effect.orDie(sql`SELECT * FROM entries`)
    return remoteOf(
      {
        add: (key) => Effect.orDie(Effect.asVoid(sql`INSERT INTO entries VALUES (${key})`)),
        count: Effect.map(rows, ({ length }) => length)
      },
      () => Effect.succeed(undefined),
      () => Effect.void
    )
  })
).pipe(Layer.provideMerge(database))
