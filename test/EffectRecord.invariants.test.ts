/**
 * What holds of a key's row after any sequence of operations, by holders that are alive, slow, dead or mistaken.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution } from "chamvi-effect"
import { Schema } from "effect"
import * as Row from "../src/EffectRecord.ts"
import * as RecordedResult from "../src/RecordedResult.ts"

const Who = Schema.Literals([0, 1, 2])
const Verdict = Schema.Literals(["clean", "tried", "inDoubt"])
const Operation = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("claim"), who: Who, again: Schema.Boolean, dead: Schema.Boolean }),
  Schema.Struct({ kind: Schema.Literal("claim"), who: Who, again: Schema.Literal(false), dead: Schema.Literal(false) }),
  Schema.Struct({ kind: Schema.Literal("complete"), who: Who, available: Schema.Boolean }),
  Schema.Struct({ kind: Schema.Literal("release"), who: Who, verdict: Verdict, cleared: Schema.Boolean }),
  Schema.Struct({ kind: Schema.Literal("renew"), who: Who }),
  Schema.Struct({
    kind: Schema.Literal("resolve"),
    as: Schema.Literals(["result", "applied", "notApplied", "unknown"])
  }),
  Schema.Struct({ kind: Schema.Literal("wait"), milliseconds: Schema.Literals([1, 99, 100, 101]) })
])
type Operation = typeof Operation.Type

const resolutions = {
  result: EffectResolution.applied(1),
  applied: EffectResolution.applied(),
  notApplied: EffectResolution.notApplied,
  unknown: EffectResolution.unknown
}

/** Runs the operations on a row, and beside it a plain account of what the holders know and may have done. */
class World {
  row: Row.EffectRecord | undefined
  now = 0
  claims = 0
  grants = 0
  readonly claimIds: Array<string> = ["", "", ""]
  readonly tokens: Array<number> = [0, 0, 0]
  /** Attempts of which it is not settled whether they applied the effect. */
  unsettled: Array<"tried" | "inDoubt"> = []

  step(operation: Operation): void {
    const before = this.row
    switch (operation.kind) {
      case "claim":
        this.claim(before, operation.who, operation.again, operation.dead)
        break
      case "complete":
        this.complete(before, this.tokens[operation.who]!, operation.available)
        break
      case "release": {
        const { cleared, verdict, who } = operation
        const [next] = Row.release(before, { key: "k", token: this.tokens[who]!, verdict, cleared }, this.now)
        if (next === undefined) break
        assert.strictEqual(this.tokens[who], before?.token)
        if (cleared) this.unsettled = []
        if (verdict !== "clean") this.unsettled.push(verdict)
        this.row = next
        break
      }
      case "renew": {
        const [next, reply] = Row.renew(before, { key: "k", token: this.tokens[operation.who]!, lease: 100 }, this.now)
        assert.strictEqual(reply === "ok", next !== undefined)
        this.row = next ?? before
        break
      }
      case "resolve":
        this.resolve(before, operation.as)
        break
      case "wait":
        this.now += operation.milliseconds
    }
    this.check(before)
  }

  private claim(before: Row.EffectRecord | undefined, who: number, again: boolean, dead: boolean): void {
    if (!again) this.claimIds[who] = `claim-${++this.claims}`
    const claimId = this.claimIds[who]!
    const request = { key: "k", tool: "t", runId: "r", owner: `${who}`, claimId, lease: 100, fingerprint: `${who}` }
    const [next, reply] = Row.claim(before, request, this.now, 1, dead)
    this.row = next ?? before
    if (reply._tag === "Recorded") {
      assert.strictEqual(before?.status, "recorded")
      return
    }
    assert.notStrictEqual(before?.status, "recorded")
    if (reply._tag !== "Claimed") {
      assert.isTrue(before!.status === "held" && before!.leaseEnd > this.now && !dead)
      return
    }
    if (before?.status === "held" && before.claimId === claimId) {
      assert.strictEqual(reply.token, before.token)
      return
    }
    this.grants++
    // whoever held the key before is dead, or had its time
    if (before?.status === "held") {
      assert.isTrue(before.leaseEnd <= this.now || dead)
      this.unsettled.push("inDoubt")
    }
    assert.isAbove(reply.token, before?.token ?? 0)
    assert.strictEqual(reply.takenOver, before?.status === "held")
    assert.strictEqual(reply.attempt, this.grants)
    this.tokens[who] = reply.token
  }

  private complete(before: Row.EffectRecord | undefined, token: number, available: boolean): void {
    const result = available ? RecordedResult.fromJson(`${token}`) : RecordedResult.unavailable("too large")
    const [next, reply] = Row.complete(
      before,
      { key: "k", token, result, outcome: "executed", fingerprint: "f" },
      this.now
    )
    assert.strictEqual(reply === "ok", before !== undefined && token === before.token && before.status !== "released")
    if (next !== undefined) this.unsettled = []
    this.row = next ?? before
  }

  private resolve(before: Row.EffectRecord | undefined, as: keyof typeof resolutions): void {
    const [next, reply] = Row.resolve(before, resolutions[as], "1", this.now)
    if (before?.status === "held" && before.leaseEnd > this.now) assert.strictEqual(reply, "held")
    if (next === undefined) return
    this.unsettled = as === "unknown" ? ["inDoubt"] : []
    this.row = next
  }

  private check(before: Row.EffectRecord | undefined): void {
    const { now, row, unsettled } = this
    if (row === undefined) {
      assert.strictEqual(before, undefined)
      return
    }
    assert.strictEqual(
      row.doubt,
      unsettled.includes("inDoubt") ? "inDoubt" : unsettled.length > 0 ? "tried" : "none"
    )
    assert.strictEqual(row.earlier !== undefined, row.status === "held" && row.doubt !== "none")
    assert.strictEqual(row.status === "recorded", row.result !== undefined)
    assert.strictEqual(row.status === "recorded", row.outcome !== undefined)
    assert.isAtMost(row.updatedAt, now)
    assert.isAtMost(row.seenAt, row.updatedAt)
    if (before === undefined) return
    assert.isAtLeast(row.token, before.token)
    assert.strictEqual(row.createdAt, before.createdAt)
    assert.strictEqual(row.tool, before.tool)
    if (before.status === "recorded") {
      assert.strictEqual(row.status, "recorded")
      if (!RecordedResult.isUnavailable(before.result!)) assert.strictEqual(row, before)
    }
  }
}

describe("EffectRecord invariants", () => {
  const runs = { arbitrary: { runs: 2_000, size: 40 } }

  it.prop("hold over any sequence of operations", [Schema.Array(Operation)], ([operations]) => {
    const world = new World()
    for (const operation of operations) world.step(operation)
  }, runs)

  it.prop("hold from a key in doubt on", [Schema.Array(Operation)], ([operations]) => {
    const world = new World()
    world.step({ kind: "claim", who: 0, again: false, dead: false })
    world.step({ kind: "wait", milliseconds: 100 })
    world.step({ kind: "claim", who: 1, again: false, dead: false })
    assert.strictEqual(world.row?.doubt, "inDoubt")
    for (const operation of operations) world.step(operation)
  }, runs)
})
