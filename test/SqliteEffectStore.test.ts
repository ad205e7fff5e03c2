/**
 * What only real files and real processes show: durability, takeovers of the dead, and many processes at once.
 */
import { expect, it } from "@effect/vitest"
import { EffectStore, type IEffectStore } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Effect, Stream } from "effect"
import { existsSync, readdirSync, readFileSync, symlinkSync, utimesSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { describe, vi } from "vitest"
import type { ClaimReply } from "../src/EffectRecord.ts"
import { start } from "./fixtures/child.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const worker = "ledgerWorker.ts"

// processes start slowly on a busy machine
vi.setConfig({ testTimeout: 60_000 })

const filenameOf = Effect.map(temporaryDirectory, (directory) => `${directory}/ledger.sqlite`)

let claims = 0
const claim = (store: IEffectStore, key: string, lease = 60_000): Effect.Effect<ClaimReply, unknown> =>
  Effect.map(
    store.claim([{
      key,
      tool: "tool",
      runId: "run",
      owner: "test",
      claimId: `claim-${++claims}`,
      lease,
      fingerprint: "fingerprint"
    }]),
    ([reply]) => reply!
  )

const complete = (store: IEffectStore, key: string, token: number) =>
  store.complete([{ key, token, result: `{"value":1}`, outcome: "executed", fingerprint: "fingerprint" }])

/** Waits until it holds: other processes take their time on a busy machine. */
const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => holds() ? Effect.void : Effect.delay(eventually(holds), 10))

/** A file's ledger with one statement done to it behind the store's back. */
const tamper = (filename: string, sql: string) =>
  Effect.sync(() => {
    const handle = new DatabaseSync(filename)
    handle.exec(sql)
    handle.close()
  })

describe("several processes on one file", () => {
  it.live("many racers in two processes apply each key once, and all get its result", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const log = `${filename}.log`
      const [one, two] = yield* Effect.all([
        start(worker, "race", filename, log, "40", "5"),
        start(worker, "race", filename, log, "40", "5")
      ])
      const results = [yield* one.line, yield* two.line]
      expect(results[0]).toEqual(results[1])
      const applied = readFileSync(log, "utf8").trim().split("\n")
      expect(applied.length).toBe(40)
      expect(new Set(applied).size).toBe(40)
    }))

  it.live("a claim of a killed process is taken over at once, in doubt", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename })
      const holder = yield* start(worker, "hold", filename, "key", "600000")
      expect(yield* holder.line).toMatchObject({ _tag: "Claimed" })
      expect(yield* claim(store, "key")).toMatchObject({ _tag: "Held", owner: `worker ${holder.pid}` })
      yield* holder.kill("SIGKILL")
      yield* holder.ended
      yield* Effect.sleep(150)
      expect(yield* claim(store, "key")).toMatchObject({
        _tag: "Claimed",
        doubt: "inDoubt",
        takenOver: true,
        attempt: 2
      })
    }))

  it.live("a process that starts later takes over from one that was killed before", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const holder = yield* start(worker, "hold", filename, "key", "600000")
      yield* holder.line
      yield* holder.kill("SIGKILL")
      yield* holder.ended
      const store = yield* SqliteEffectStore.make({ filename })
      expect(yield* claim(store, "key")).toMatchObject({ _tag: "Claimed", doubt: "inDoubt", takenOver: true })
    }))

  it.live("whoever waits for a key is woken when its holder is killed", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename })
      const holder = yield* start(worker, "hold", filename, "key", "600000")
      yield* holder.line
      let wakings = 0
      yield* Effect.forkScoped(Stream.runForEach(store.changes("key"), () => Effect.sync(() => wakings++)))
      // the first look wakes in any case
      yield* eventually(() => wakings === 1)
      yield* Effect.sleep(500)
      expect(wakings).toBe(1)
      yield* holder.kill("SIGKILL")
      yield* eventually(() => wakings > 1)
    }))

  it.live("whoever waits for a key is woken once when another store records it", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename })
      const other = yield* SqliteEffectStore.make({ filename })
      const reply = yield* claim(other, "key")
      let wakings = 0
      yield* Effect.forkScoped(Stream.runForEach(store.changes("key"), () => Effect.sync(() => wakings++)))
      yield* eventually(() => wakings === 1)
      yield* complete(other, "key", reply._tag === "Claimed" ? reply.token : 0)
      yield* eventually(() => wakings > 1)
      yield* Effect.sleep(300)
      expect(wakings).toBe(2)
    }))

  it.live("a frozen process keeps its claim until the lease ends", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename })
      const holder = yield* start(worker, "hold", filename, "key", "3000")
      yield* holder.line
      yield* holder.kill("SIGSTOP")
      const { leaseEnd } = (yield* store.get("key"))!
      let reply: ClaimReply
      do {
        yield* Effect.sleep(130)
        reply = yield* claim(store, "key")
      } while (reply._tag === "Held")
      expect(reply).toMatchObject({ _tag: "Claimed", doubt: "inDoubt", takenOver: true })
      expect((yield* store.get("key"))!.seenAt).toBeGreaterThanOrEqual(leaseEnd)
    }))

  it.live("a claim that an orderly process left behind is taken over when its lease ends", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const leaver = yield* start(worker, "leave", filename, "key", "3000")
      yield* leaver.line
      yield* leaver.ended
      const store = yield* SqliteEffectStore.make({ filename })
      const { leaseEnd } = (yield* store.get("key"))!
      let reply: ClaimReply
      do reply = yield* Effect.delay(claim(store, "key"), 100)
      while (reply._tag === "Held")
      expect(reply).toMatchObject({ _tag: "Claimed", doubt: "inDoubt" })
      expect((yield* store.get("key"))!.seenAt).toBeGreaterThanOrEqual(leaseEnd)
    }))

  it.live("many processes that start at once make the tables once", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const lines = yield* Effect.forEach(
        Array.from({ length: 8 }),
        () => Effect.flatMap(start(worker, "open", filename), ({ line }) => line),
        { concurrency: "unbounded" }
      )
      expect(lines).toEqual(Array.from({ length: 8 }, () => "opened"))
    }))

  it.live("what a process recorded before it was killed is there", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const recorder = yield* start(worker, "record", filename, "key")
      const recorded: Array<unknown> = []
      while (recorded.length < 200) recorded.push(yield* recorder.line)
      yield* recorder.kill("SIGKILL")
      yield* recorder.ended
      const store = yield* SqliteEffectStore.make({ filename })
      for (const key of recorded) expect(yield* claim(store, String(key))).toMatchObject({ _tag: "Recorded" })
    }))
})

describe("several stores in one process", () => {
  it.live("a store in the same process is alive, however often others look", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const one = yield* SqliteEffectStore.make({ filename })
      const two = yield* SqliteEffectStore.make({ filename })
      expect(yield* claim(one, "key")).toMatchObject({ _tag: "Claimed" })
      for (let look = 0; look < 4; look++) {
        expect(yield* claim(two, "key")).toMatchObject({ _tag: "Held" })
        yield* Effect.sleep(110)
      }
      // the looks have not dropped the lock of the first either: another process still sees it
      const other = yield* start(worker, "leave", filename, "key", "1000")
      expect(yield* other.line).toMatchObject({ _tag: "Held" })
    }))

  it.live("a ledger that is reached over a link has the same owners", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const link = `${yield* temporaryDirectory}/link.sqlite`
      yield* SqliteEffectStore.make({ filename })
      symlinkSync(filename, link)
      yield* SqliteEffectStore.make({ filename: link })
      expect(existsSync(`${link}.owners`)).toBe(false)
      expect(readdirSync(`${filename}.owners`).length).toBe(2)
    }))
})

describe("the owners' files", () => {
  it.live("a store removes its own when it closes, and those of the dead when it opens", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const owners = () => readdirSync(`${filename}.owners`).map((name) => name.replace(/^.*\./, "")).toSorted()
      yield* Effect.scoped(SqliteEffectStore.make({ filename }))
      expect(owners()).toEqual([])
      const holder = yield* start(worker, "hold", filename, "key", "600000")
      yield* holder.line
      expect(owners()).toEqual(["lock"])
      yield* holder.kill("SIGKILL")
      yield* holder.ended
      yield* SqliteEffectStore.make({ filename })
      expect(owners()).toEqual(["dead", "lock"])
      // its claims are still taken over at once
      const store = yield* SqliteEffectStore.make({ filename })
      expect(yield* claim(store, "key")).toMatchObject({ _tag: "Claimed", doubt: "inDoubt" })
      for (const name of readdirSync(`${filename}.owners`).filter((entry) => entry.endsWith(".dead"))) {
        utimesSync(`${filename}.owners/${name}`, 0, 0)
      }
      yield* SqliteEffectStore.make({ filename })
      expect(owners()).toEqual(["lock", "lock", "lock"])
    }))

  it.live("a missing file is no proof of a death", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename })
      const holder = yield* start(worker, "hold", filename, "key", "600000")
      yield* holder.line
      yield* tamper(filename, "UPDATE chamvi_effect SET process = 'no-such-lock'")
      expect(yield* claim(store, "key")).toMatchObject({ _tag: "Held" })
    }))
})

describe("rows that cannot be read", () => {
  const broken = {
    "an unknown status": "status = 'paused'",
    "an unknown doubt": "status = 'released', doubt = 'perhaps'",
    "an unknown outcome": "status = 'recorded', result = '{}', outcome = 'guessed'",
    "no result": "status = 'recorded', outcome = 'executed'",
    "another key": "key = 'other'"
  }
  for (const [what, change] of Object.entries(broken)) {
    it.live(`a row with ${what} is never taken for an absent one`, () =>
      Effect.gen(function*() {
        const filename = yield* filenameOf
        const store = yield* SqliteEffectStore.make({ filename })
        yield* claim(store, "key", 0)
        yield* tamper(filename, `UPDATE chamvi_effect SET ${change}`)
        expect(yield* claim(store, "key")).toMatchObject({ _tag: "Unreadable", tool: "tool" })
        expect(yield* Effect.flip(store.get("key"))).toMatchObject({ _tag: "EffectRecordError", key: "key" })
        if (what !== "another key") {
          expect(yield* Effect.flip(Stream.runDrain(store.list()))).toMatchObject({ _tag: "EffectRecordError" })
        }
        expect(yield* store.remove("key")).toBe(true)
        expect(yield* claim(store, "key")).toMatchObject({ _tag: "Claimed" })
      }))
  }
})

describe("opening", () => {
  it.live("rows survive a restart", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* SqliteEffectStore.make({ filename })
        const reply = yield* claim(store, "key")
        if (reply._tag === "Claimed") yield* complete(store, "key", reply.token)
      }))
      const store = yield* SqliteEffectStore.make({ filename, mode: "fast" })
      expect(yield* claim(store, "key")).toMatchObject({ _tag: "Recorded", result: `{"value":1}` })
    }))

  it.live("tables of a newer version are refused when the layer is built", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      yield* Effect.scoped(SqliteEffectStore.make({ filename }))
      yield* tamper(filename, "INSERT INTO chamvi_effect_migrations (migration_id, name) VALUES (99, 'future')")
      const error = yield* Effect.flip(Effect.provide(EffectStore, SqliteEffectStore.layer({ filename })))
      expect(error).toMatchObject({ _tag: "EffectStoreError" })
      expect(error.message).toContain("newer than this version")
    }))

  it.live("a file that cannot be opened fails the layer and names it", () =>
    Effect.gen(function*() {
      const filename = `${yield* temporaryDirectory}/missing/ledger.sqlite`
      const error = yield* Effect.flip(Effect.provide(EffectStore, SqliteEffectStore.layer({ filename })))
      expect(error).toMatchObject({ _tag: "EffectStoreError" })
      expect(error.message).toContain(filename)
    }))

  it.live("a writer of another program is waited for without blocking this one", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      for (const mode of ["durable", "fast"] as const) {
        const store = yield* SqliteEffectStore.make({ filename, mode })
        const writer = new DatabaseSync(filename)
        writer.exec("BEGIN IMMEDIATE")
        let turns = 0
        yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(() => turns++), 10)))
        yield* Effect.forkScoped(Effect.delay(Effect.sync(() => writer.exec("COMMIT")), 500))
        expect(yield* claim(store, `key-${mode}`)).toMatchObject({ _tag: "Claimed" })
        expect(turns).toBeGreaterThan(5)
        writer.close()
      }
    }))

  it.live("a writer that never ends is an EffectStoreError after the busy timeout", () =>
    Effect.gen(function*() {
      const filename = yield* filenameOf
      const store = yield* SqliteEffectStore.make({ filename, busyTimeout: 200 })
      const writer = new DatabaseSync(filename)
      writer.exec("BEGIN IMMEDIATE")
      const error = yield* Effect.flip(claim(store, "key"))
      expect(error).toMatchObject({ _tag: "EffectStoreError", operation: "claim", key: "key" })
      writer.close()
    }))
})
