/**
 * Every kind of tool and every kind of ledger in the lab: what is safe passes, and stops in doubt where it says so.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineEffectTool, EffectOutcomeUnknownError, EffectStore, idempotencyKey, ToolContext } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import * as SqliteClient from "../../../src/SqliteClient.ts"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { AppliedNotOnce, CrashLab, type CrashPoint, type CrashReport } from "chamvi-effect/testing"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"

/** A bank that knows a charge by its idempotency key. */
class Bank extends Context.Service<Bank, {
  readonly charge: (key?: string) => Effect.Effect<string>
  readonly find: (key: string) => Effect.Effect<string | undefined>
  readonly count: Effect.Effect<number>
}>()("test/testing/Bank") {
  static readonly layer = Layer.sync(Bank, () => {
    const charges: Array<string | undefined> = []
    return Bank.of({
      charge: (key) =>
        Effect.sync(() => {
          const known = key === undefined ? -1 : charges.indexOf(key)
          return `charge ${known >= 0 ? known + 1 : charges.push(key)}`
        }),
      find: (key) =>
        Effect.sync(() => {
          const known = charges.indexOf(key)
          return known < 0 ? undefined : `charge ${known + 1}`
        }),
      count: Effect.sync(() => charges.length)
    })
  })
}

const remote = { world: Bank.layer, count: () => Effect.flatMap(Bank, ({ count }) => count) }
const inputSchema = Schema.Struct({ order: Schema.Int })
const base = { description: "Charges an order.", inputSchema } as const
const input = { order: 42 }
const charge = (key?: string) => Effect.flatMap(Bank, (bank) => bank.charge(key))
const find = (key: string) => Effect.flatMap(Bank, (bank) => bank.find(key))

const verdicts = ({ points }: CrashReport) => Array.from(new Set(points.map(({ verdict }) => verdict))).toSorted()

const outcomes = (point: CrashPoint | undefined) => point?.calls.map(({ outcome }) => outcome)

const safe = defineEffectTool({ ...base, alreadyApplied: find, execute: (_, { effectKey }) => charge(effectKey) })

describe("CrashLab", () => {
  it.effect("lets a tool pass whose remote honours an idempotency key", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({ ...base, execute: (_, { effectKey }) => charge(idempotencyKey(effectKey)) })
      const report = yield* CrashLab.run({ ...remote, tool, input })
      expect(verdicts(report)).toEqual(["once"])
      expect(report.points.find(({ name }) => name === "killed after execute")?.calls).toEqual([
        { outcome: "killed", flags: [] },
        { outcome: "executed", flags: ["takenOver", "executedInDoubt"] },
        { outcome: "recorded", flags: [] }
      ])
    }), 300_000)

  it.effect(
    "sees a tool stop in doubt that says so, and lets it pass unless that is refused",
    () =>
      Effect.gen(function*() {
        const tool = defineEffectTool({ ...base, whenInDoubt: "fail", execute: () => charge() })
        const report = yield* CrashLab.run({ ...remote, tool, input })
        expect(verdicts(report)).toEqual(["inDoubt", "once"])
        expect(report.points.find(({ name }) => name === "killed after execute")).toMatchObject({
          verdict: "inDoubt",
          applied: 1
        })
        CrashLab.assertOnce(report)
        expect(() => CrashLab.assertOnce(report, { inDoubt: "refuse" })).toThrow(/InDoubt/)
      }),
    300_000
  )

  it.effect("examines what applyOnce is called with", () =>
    Effect.gen(function*() {
      const effect = { key: "order:42", tool: "charge", alreadyApplied: find, execute: (key: string) => charge(key) }
      const report = yield* CrashLab.runApplyOnce({ ...remote, effect })
      expect([report.tool, report.key, verdicts(report)]).toEqual(["charge", "order:42", ["once"]])
      const { alreadyApplied: _, ...unchecked } = { ...effect, execute: () => charge() }
      const faulty = yield* CrashLab.runApplyOnce({ ...remote, effect: unchecked })
      expect(faulty.faults.map(({ name }) => name)).toEqual(["NoCheck"])
    }), 300_000)

  it.effect("examines a tool that streams", () =>
    Effect.gen(function*() {
      const streaming = (key: (effectKey: string) => string | undefined) =>
        defineEffectTool({
          ...base,
          streaming: true,
          execute: (_, { effectKey }) =>
            Stream.concat(Stream.succeed("soon"), Stream.fromEffect(charge(key(effectKey))))
        })
      const report = yield* CrashLab.run({ ...remote, tool: streaming((key) => key), input })
      expect(verdicts(report)).toEqual(["once"])
      expect(report.points.map(({ name }) => name)).toContain("killed after execute")
      const faulty = yield* CrashLab.run({ ...remote, tool: streaming(() => undefined), input })
      expect(faulty.faults.map(({ name }) => name)).toEqual(["NoCheck"])
    }), 300_000)

  it.effect("examines hooks that are no Effects", () =>
    Effect.gen(function*() {
      const charges: Array<string> = []
      const tool = defineEffectTool({
        ...base,
        alreadyApplied: (key) => Promise.resolve(charges.includes(key) ? "charged" : undefined),
        execute: ((_: typeof input, { effectKey }: { readonly effectKey: string }) =>
          Promise.resolve(charges.push(effectKey)).then(() => "charged")) as never
      })
      const report = yield* CrashLab.run({
        tool,
        input,
        count: () =>
          Effect.sync(() => charges.length),
        reset: Effect.sync(() => charges.splice(0))
      })
      expect(verdicts(report)).toEqual(["once"])
    }), 300_000)

  it.effect("kills several processes one after the other, where that is asked for", () =>
    Effect.gen(function*() {
      const report = yield* CrashLab.run({ ...remote, tool: safe, input, crashes: 2 })
      expect(verdicts(report)).toEqual(["once"])
      const crashes = report.points.filter(({ group }) => group === "crash").map(({ name }) => name)
      expect(crashes).toContain("killed after execute, next one killed after check")
      expect(crashes).toContain("killed before execute, next one killed after record")
      expect(new Set(crashes).size).toBe(crashes.length)
    }), 300_000)

  it.effect("stops a process that is dead at the next mark of whatever it does besides", () =>
    Effect.gen(function*() {
      const charges: Array<string> = []
      const tool = defineEffectTool({
        ...base,
        alreadyApplied: (key) => Effect.sync(() => charges.includes(key) ? "charged" : undefined),
        execute: (_, { effectKey }) => {
          const beside = Effect.gen(function*() {
            yield* Effect.yieldNow
            yield* CrashLab.point("beside")
            charges.push(effectKey)
          })
          return Effect.as(Effect.all([CrashLab.point("first"), beside], { concurrency: 2 }), "charged")
        }
      })
      const report = yield* CrashLab.run({
        tool,
        input,
        count: () => Effect.sync(() => charges.length),
        reset: Effect.sync(() => charges.splice(0)),
        only: (point) => point === "killed at first"
      })
      expect(report.points.at(-1)).toMatchObject({
        verdict: "once",
        calls: [{ outcome: "killed" }, { outcome: "executed", flags: ["takenOver"] }, { outcome: "recorded" }]
      })
    }))

  it.effect("works on a ledger in SQLite, on which its points leave nothing", () =>
    Effect.gen(function*() {
      const ledger = yield* SqliteEffectStore.make({ filename: ":memory:" })
      const store = Layer.succeed(EffectStore, ledger)
      const report = yield* CrashLab.run({ ...remote, tool: safe, input, store })
      expect(verdicts(report)).toEqual(["once"])
      expect(yield* Stream.runCollect(ledger.list())).toEqual([])
    }).pipe(Effect.scoped), 300_000)

  it.effect(
    "kills a transactional tool in the middle of its transaction, and after the commit",
    () =>
      Effect.gen(function*() {
        const table = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`CREATE TABLE charges (charge TEXT)`)
        const world = Layer.provideMerge(Layer.effectDiscard(table), SqliteClient.layer({ filename: ":memory:" }))
        const write = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`INSERT INTO charges VALUES ('one')`)
        const count = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT * FROM charges`)
        const lab = {
          world,
          store: SqlEffectStore.layer(),
          input,
          count: () => Effect.map(count, (rows) => rows.length)
        }
        const execute = () => Effect.as(write, "charged")
        const tool = defineEffectTool({ ...base, transactional: true, execute })
        const report = yield* CrashLab.run({ ...lab, tool })
        expect(verdicts(report)).toEqual(["once"])
        const calls = (name: string) => outcomes(report.points.find((point) => point.name === name))
        expect(calls("killed after record")).toEqual(["killed", "executed", "recorded"])
        expect(calls("killed after commit")).toEqual(["killed", "recorded", "recorded"])
        expect(report.points.filter(({ group }) => group === "lost lease")).toEqual([])
        // the same writes without a transaction
        const faulty = yield* CrashLab.run({ ...lab, tool: defineEffectTool({ ...base, execute }) })
        expect(faulty.faults.map(({ name }) => name)).toEqual(["NoCheck"])
      }),
    300_000
  )

  it.effect("gives the tool a run, with a state that outlives its processes", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({
        ...base,
        effectKey: ({ order }, ctx) => `${ctx.run.runId}:${order}`,
        alreadyApplied: (_, __, ctx) => Effect.map(ctx.state.get("done", Schema.String), (done) => done),
        execute: (_, { context }) => Effect.tap(charge(), (done) => context.state.set("done", Schema.String, done))
      })
      const report = yield* CrashLab.run({ ...remote, tool, input, run: { runId: "run-1" } })
      expect([report.key, verdicts(report)]).toEqual(["run-1:42", ["once"]])
      expect(ToolContext.key).toBe("chamvi-effect/ToolContext")
    }), 300_000)
})

describe("CrashLab", () => {
  it.effect("says what it has not examined, and what it would need for it", () =>
    Effect.gen(function*() {
      const report = yield* CrashLab.run({ ...remote, tool: safe, input, only: () => false })
      expect(report.points.map(({ name }) => name)).toEqual(["no trouble"])
      expect(report.notExamined).toEqual([
        "whether alreadyApplied reads beyond the first page: give crowd",
        "whether a stranger's marker is believed: give plant",
        "whether a remote that lags is asked too early: give lag",
        "crashes in the middle of execute: call CrashLab.point in the remote, where it matters"
      ])
      const unchecked = defineEffectTool({ ...base, execute: () => charge() })
      const { notExamined } = yield* CrashLab.run({ ...remote, tool: unchecked, input, only: () => false })
      expect(notExamined).toEqual([
        "whether execute fails plainly although the remote has applied: give loseReply",
        "crashes in the middle of execute: call CrashLab.point in the remote, where it matters"
      ])
    }))
})

describe("the time of a crash lab", () => {
  it.effect(
    "passes as it does while hooks, the world and the lab's own helpers work, and is skipped while all wait",
    () =>
      Effect.gen(function*() {
        const slowly = Effect.sleep("2 millis")
        const tool = defineEffectTool({
          ...base,
          settle: "2 hours",
          effectKey: ({ order }) => Effect.as(slowly, `order:${order}`),
          alreadyApplied: (key) => Effect.andThen(slowly, find(key)),
          execute: (_, { effectKey }) => Effect.tap(charge(effectKey), () => slowly)
        })
        const report = yield* CrashLab.run({
          ...remote,
          tool,
          input,
          lag: "1 hour",
          only: (point) => /^killed after execute|^frozen/.test(point),
          world: Layer.tap(Bank.layer, () => slowly),
          reset: slowly,
          count: () => Effect.andThen(slowly, remote.count())
        })
        expect(verdicts(report)).toEqual(["once"])
        expect(outcomes(report.points.at(-1))).toEqual(["killed", "reconciled", "recorded"])
      }),
    300_000
  )
})

describe("CrashLab.assertOnce", () => {
  it.effect("fails with the names of the faults and a table that can be read", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({ ...base, execute: () => charge() })
      const report = yield* CrashLab.run({ ...remote, tool, name: "charge", input })
      const error = yield* Effect.flip(Effect.try({
        try: () => CrashLab.assertOnce(report),
        catch: (error) => error as AppliedNotOnce
      }))
      expect(error).toBeInstanceOf(AppliedNotOnce)
      expect(error.faults).toEqual(["NoCheck"])
      const lines = error.message.split("\n")
      expect(lines[0]).toBe("NoCheck")
      expect(lines).toContainEqual(expect.stringMatching(/^NoCheck: there is no alreadyApplied/))
      expect(lines).toContainEqual(
        expect.stringMatching(
          /^ {2}killed after execute +TWICE +2 +killed, executed \(taken over, in doubt\), recorded +NoCheck$/
        )
      )
      expect(JSON.parse(JSON.stringify(report)).points).toHaveLength(report.points.length)
    }), 300_000)
})

describe("CrashLabError", () => {
  const failing = (options: Readonly<Record<string, unknown>>, tool = safe) =>
    Effect.map(Effect.flip(CrashLab.run({ ...remote, tool, input, ...options } as never)), ({ message }) => message)

  it.effect("says what a lab cannot be run with", () =>
    Effect.gen(function*() {
      const broken = defineEffectTool({ ...base, execute: () => Effect.fail(new EffectOutcomeUnknownError({})) })
      expect(yield* failing({}, broken as never)).toContain(
        "fails where there is no trouble: failed (EffectOutcomeUnknownError)"
      )
      expect(yield* failing({ count: () => Effect.fail("no") })).toContain("count failed")
      expect(yield* failing({ store: Layer.effect(EffectStore, Effect.fail("no")) })).toContain(
        "its store cannot be built"
      )
      expect(yield* failing({ world: Layer.effectDiscard(Effect.fail("no")) })).toContain("its world cannot be built")
    }))

  it.effect("asks for a remote that is empty at each point", () =>
    Effect.gen(function*() {
      const bank = yield* Effect.provide(Bank, Bank.layer)
      const world = Layer.succeed(Bank, bank)
      expect(yield* failing({ world })).toContain("the remote holds effects before the tool is called")
    }))
})
