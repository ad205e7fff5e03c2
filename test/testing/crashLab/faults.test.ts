/**
 * Tools with a fault each, and the name under which the lab convicts them; and tools without one, which pass.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineEffectTool, effectMarker, EffectOutcomeUnknownError, findMarker } from "chamvi-effect"
import { CrashLab, type CrashReport } from "chamvi-effect/testing"
import { Effect, Schema } from "effect"
import { agent, allComments, type Comment, remote, Tracker } from "./Tracker.ts"

const secret = "of the agent alone"
const input = { issue: 7, body: "Fixed in 1.4.2." }

const isOurs = (key: string) => ({ author, body }: Comment) =>
  author === agent && findMarker(body, { secret }).includes(key)

const found = (comments: ReadonlyArray<Comment>, is: (comment: Comment) => boolean) => {
  const comment = comments.find(is)
  return comment && { id: comment.id }
}

const post = (body: string) => Effect.flatMap(Tracker, (tracker) => tracker.post(agent, body))

/** A tool as it should be; a faulty one changes a part of it. */
const good = {
  description: "Posts a comment on an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, body: Schema.String }),
  effectKey: ({ issue }: typeof input) => `comment:${issue}`,
  settle: "5 seconds",
  alreadyApplied: (key: string) => Effect.map(allComments(), (comments) => found(comments, isOurs(key))),
  execute: ({ body }: typeof input, { effectKey }: { readonly effectKey: string }) =>
    post(`${body}\n${effectMarker(effectKey, { secret })}`)
} as const

const { alreadyApplied: _check, ...unchecked } = good
const { settle: _settle, ...hasty } = good
const { effectKey: _key, ...keyless } = good

const faultsAt = ({ points }: CrashReport) =>
  Object.fromEntries(points.flatMap(({ fault, name }) => fault === undefined ? [] : [[name, fault]]))

/** Where an effect is there that nobody has recorded. */
const afterTheEffect = [
  "killed at stored",
  "killed after execute",
  "killed before record",
  "execute does not know whether it applied",
  "execute does not know, killed before release",
  "execute does not know, killed after release",
  "execute dies after it applied",
  "the caller leaves after it applied",
  "frozen past its lease after execute"
]

const asked = [
  "killed after execute, 250 older entries",
  "killed after execute, 250 newer entries",
  "killed after execute, the remote lags"
]

const all = (points: ReadonlyArray<string>, fault: string) => Object.fromEntries(points.map((name) => [name, fault]))

describe("CrashLab", () => {
  it.effect("lets a tool pass that is right, at every point", () =>
    Effect.gen(function*() {
      const report = yield* CrashLab.run({ ...remote, tool: defineEffectTool(good), name: "comment", input })
      expect(faultsAt(report)).toEqual({})
      expect(report.points.map(({ verdict }) => verdict)).toEqual(report.points.map(() => "once"))
      expect(report.points.map(({ name }) => name)).toEqual(expect.arrayContaining([...afterTheEffect, ...asked]))
      expect(report).toMatchObject({ tool: "comment", key: "comment:7", faults: [], notExamined: [] })
      expect(() => CrashLab.assertOnce(report, { inDoubt: "refuse" })).not.toThrow()
    }), 300_000)

  it.effect("convicts a check that reads page one only", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({
        ...good,
        alreadyApplied: (key) =>
          Effect.map(Effect.flatMap(Tracker, ({ page }) => page(1)), (comments) => found(comments, isOurs(key)))
      })
      const oldestFirst = yield* CrashLab.run({ ...remote, tool, input })
      expect(faultsAt(oldestFirst)).toEqual({ "killed after execute, 250 older entries": "FirstPageOnly" })
      const world = Tracker.layerOf({ newestFirst: true })
      const newestFirst = yield* CrashLab.run({ ...remote, world, tool, input })
      expect(faultsAt(newestFirst)).toEqual({ "killed after execute, 250 newer entries": "FirstPageOnly" })
    }), 300_000)

  it.effect("convicts a marker that is not embedded", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({ ...good, execute: ({ body }) => post(body) })
      const report = yield* CrashLab.run({ ...remote, tool, input })
      expect(faultsAt(report)).toEqual(all([...afterTheEffect, ...asked], "MarkerNotEmbedded"))
      expect(report.points.find(({ name }) => name === "killed after execute")).toMatchObject({
        verdict: "twice",
        applied: 2,
        calls: [{ outcome: "killed" }, { outcome: "executed", flags: ["takenOver"] }, { outcome: "recorded" }]
      })
    }), 300_000)

  it.effect("convicts a check that believes a stranger's marker", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({
        ...good,
        alreadyApplied: (key) =>
          Effect.map(allComments(), (comments) => found(comments, ({ body }) => findMarker(body).includes(key))),
        execute: ({ body }, { effectKey }) => post(`${body}\n${effectMarker(effectKey)}`)
      })
      const report = yield* CrashLab.run({ ...remote, tool, input })
      expect(faultsAt(report)).toEqual({ "a stranger has posted the marker": "StrangerBelieved" })
      expect(report.points.at(-1)).toMatchObject({
        verdict: "lost",
        applied: 0,
        calls: [{ outcome: "reconciled" }, { outcome: "recorded" }]
      })
    }), 300_000)

  it.effect("convicts a check that is asked too early of a remote that lags", () =>
    Effect.gen(function*() {
      const byTheLab = yield* CrashLab.run({ ...remote, tool: defineEffectTool(hasty), input })
      expect(faultsAt(byTheLab)).toEqual({ "killed after execute, the remote lags": "AskedTooEarly" })
      const tooShort = defineEffectTool({ ...good, settle: "1 second" })
      expect(faultsAt(yield* CrashLab.run({ ...remote, tool: tooShort, input }))).toEqual(faultsAt(byTheLab))
      // the same without the lab's help: the remote lags by itself
      const world = Tracker.layerOf({ lag: 3_000 })
      const byItself = yield* CrashLab.run({ ...remote, world, lag: undefined, tool: defineEffectTool(hasty), input })
      expect(faultsAt(byItself)).toEqual(all([...afterTheEffect, ...asked.slice(0, 2)], "AskedTooEarly"))
      expect(faultsAt(yield* CrashLab.run({ ...remote, world, tool: defineEffectTool(good), input }))).toEqual({})
    }), 300_000)

  it.effect("convicts a tool without a check whose remote counts twice", () =>
    Effect.gen(function*() {
      const report = yield* CrashLab.run({ ...remote, tool: defineEffectTool(unchecked), input })
      expect(faultsAt(report)).toEqual(all(afterTheEffect, "NoCheck"))
      expect(report.faults.map(({ name }) => name)).toEqual(["NoCheck"])
    }), 300_000)

  const lossy = {
    ...remote,
    world: Tracker.layer,
    loseReply: Effect.flatMap(Tracker, ({ loseReply }) => loseReply),
    only: (point: string) => point === "the remote has applied, and its reply is lost"
  }

  it.effect("convicts an execute that fails as if nothing had been applied", () =>
    Effect.gen(function*() {
      const report = yield* CrashLab.run({ ...lossy, tool: defineEffectTool(unchecked), input })
      expect(report.points.at(-1)).toEqual({
        name: "the remote has applied, and its reply is lost",
        group: "lost reply",
        verdict: "twice",
        applied: 2,
        calls: [
          { outcome: "failed", flags: [], error: "ReplyLost" },
          { outcome: "executed", flags: [] },
          { outcome: "recorded", flags: [] },
          { outcome: "recorded", flags: [] }
        ],
        fault: "FailsAfterApplying"
      })
      // to stop in doubt does not help where it is not told of the doubt
      const whenInDoubt = "fail"
      const stopping = yield* CrashLab.run({ ...lossy, tool: defineEffectTool({ ...unchecked, whenInDoubt }), input })
      expect(faultsAt(stopping)).toEqual(faultsAt(report))
    }))

  it.effect("lets a tool pass that says what it does not know, or asks after every failure", () =>
    Effect.gen(function*() {
      const honest = {
        ...unchecked,
        execute: (...call: Parameters<typeof good.execute>) =>
          Effect.mapError(good.execute(...call), (cause) => new EffectOutcomeUnknownError({ cause }))
      }
      const whenInDoubt = "fail"
      const stopping = yield* CrashLab.run({ ...lossy, tool: defineEffectTool({ ...honest, whenInDoubt }), input })
      expect(stopping.points.at(-1)).toMatchObject({ verdict: "inDoubt", applied: 1 })
      const checked = yield* CrashLab.run({ ...lossy, tool: defineEffectTool(good), input })
      expect(checked.points.at(-1)).toMatchObject({ verdict: "once", calls: [{ error: "ReplyLost" }, {}, {}, {}] })
      // what applies again knowingly, and what does so by itself, has no check
      const again = yield* CrashLab.run({ ...lossy, tool: defineEffectTool(honest), input })
      expect(faultsAt(again)).toEqual({ "the remote has applied, and its reply is lost": "NoCheck" })
      const execute = (...call: Parameters<typeof good.execute>) => Effect.retry(good.execute(...call), { times: 1 })
      const retrying = yield* CrashLab.run({ ...lossy, tool: defineEffectTool({ ...unchecked, execute }), input })
      expect(faultsAt(retrying)).toEqual(faultsAt(again))
    }))

  it.effect("convicts a key that changes with the call, and with the words of the model", () =>
    Effect.gen(function*() {
      const byCall = defineEffectTool({
        ...good,
        effectKey: ({ issue }, _, { toolCallId }) => `${issue}:${toolCallId}`
      })
      const report = yield* CrashLab.run({ ...remote, tool: byCall, input })
      expect(faultsAt(report)).toMatchObject({ "two calls after each other in one process": "KeyChanges" })
      expect(new Set(Object.values(faultsAt(report)))).toEqual(new Set(["KeyChanges"]))
      const inOtherWords = { ...input, body: "This is solved by 1.4.2." }
      const tool = defineEffectTool(keyless)
      const reworded = yield* CrashLab.run({ ...remote, tool, input, inOtherWords })
      expect(faultsAt(reworded)).toMatchObject({ "killed after record": "KeyChanges" })
      expect(faultsAt(yield* CrashLab.run({ ...remote, tool: defineEffectTool(good), input, inOtherWords }))).toEqual(
        {}
      )
    }), 300_000)

  it.effect("counts what the remote holds, whether it is asked by key or not", () =>
    Effect.gen(function*() {
      const byCall = {
        ...good,
        effectKey: (_: unknown, __: unknown, { toolCallId }: { readonly toolCallId: string }) => toolCallId,
        alreadyApplied: () => Effect.map(allComments(), (comments) => found(comments, ({ author }) => author === agent))
      }
      const tool = defineEffectTool(byCall)
      // two keys, and one comment all the same
      const only = (point: string) => point === "two calls after each other in two processes"
      const report = yield* CrashLab.run({ ...remote, tool, input, only })
      expect(report.points.map(({ applied }) => applied)).toEqual([1, 1])
      const count = (key: string) => Effect.map(allComments(), (comments) => comments.filter(isOurs(key)).length)
      const { alreadyApplied: _, ...twice } = byCall
      const byKey = yield* CrashLab.run({ ...remote, tool: defineEffectTool(twice), input, only, count })
      expect(byKey.points.map(({ applied }) => applied)).toEqual([1, 2])
    }), 300_000)

  it.effect("convicts a check that says yes to nothing", () =>
    Effect.gen(function*() {
      const always = defineEffectTool({ ...good, alreadyApplied: () => Effect.succeed({ id: 0 }) })
      const report = yield* CrashLab.run({ ...remote, tool: always, input })
      expect(report.points).toEqual([
        {
          name: "no trouble",
          group: "no trouble",
          verdict: "lost",
          applied: 0,
          calls: [{ outcome: "reconciled", flags: [] }],
          fault: "SaysYesToNothing"
        }
      ])
    }), 300_000)

  it.effect("says that it cannot explain what no fault explains", () =>
    Effect.gen(function*() {
      const tool = defineEffectTool({
        ...good,
        execute: (input, options) => Effect.andThen(post("Soon."), good.execute(input, options))
      })
      const report = yield* CrashLab.run({ ...remote, tool, input })
      expect(report.faults.map(({ name }) => name)).toEqual(["Unexplained"])
    }), 300_000)
})
