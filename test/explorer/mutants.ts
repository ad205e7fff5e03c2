/**
 * Bugs that are seeded into the program or its ledger, each with the scenario in which it shows.
 */
import type { Trouble } from "./choices.ts"
import { faults } from "./ledgerFaults.ts"
import type { LedgerFault } from "./Ledger.ts"
import type { Scenario } from "./model.ts"
import type { Replacement } from "./mutatedProgram.ts"
import type { KindName } from "./Remote.ts"
import type { Cast } from "./scenarios.ts"

export interface Mutant {
  readonly kind: KindName
  /** How many faults it takes to show. */
  readonly faults: number
  /** The kinds of trouble that it takes; default: all. */
  readonly trouble?: ReadonlyArray<Trouble>
  /** Default: one caller in each of two processes. */
  readonly cast?: Cast
  /** What else of the scenario is not as ever. */
  readonly change?: Partial<Scenario>
  readonly ledger?: LedgerFault
  readonly program?: ReadonlyArray<Replacement>
}

const claimed = `{ _tag: "Claimed", token: 1, attempt: 1, doubt: "none", takenOver: false, earlier: undefined }`

export const mutants: Readonly<Record<string, Mutant>> = {
  "effects without a claim": {
    kind: "default",
    faults: 0,
    program: [{
      file: "acquire.ts",
      text: "return chain(claim, ({ reply, sentAt }) =>",
      by: `return chain(Effect.map(claim, ({ sentAt }) => ({ reply: ${claimed}, sentAt })), ({ reply, sentAt }) =>`
    }]
  },
  "a check before the claim": {
    kind: "checked",
    faults: 1,
    program: [
      {
        file: "apply.ts",
        text: "chain(acquire(application, call), ({ reply, sentAt }) =>",
        by: "chain(Effect.andThen(Effect.map(askRemote(application, call), (early) => { application.early = early }), "
          + "acquire(application, call)), ({ reply, sentAt }) =>"
      },
      {
        file: "apply.ts",
        text: "return Effect.flatMap(checkRemote(application, call, claimed), (answer)",
        by: "return Effect.flatMap(Effect.sync(() => application.early), (answer)"
      }
    ]
  },
  "a record before the effect": {
    kind: "strict",
    faults: 0,
    program: [{
      file: "apply.ts",
      text: "chain(ensureLease(application, call, lease, clock), () =>",
      by: "chain(Effect.andThen(registryOf(call.store).ask.complete({ key: call.key, token: lease.token, "
        + "result: RecordedResult.fromJson('\"early\"'), outcome: \"executed\", fingerprint: \"\" }), "
        + "ensureLease(application, call, lease, clock)), () =>"
    }]
  },
  "a clean release after an interruption": {
    kind: "strict",
    faults: 2,
    trouble: ["slow", "interrupt"],
    program: [{
      file: "apply.ts",
      text: `if (before !== "inDoubt" && itsOwnWord) known.verdict = "tried"`,
      by: `if (Cause.hasInterrupts(cause)) known.verdict = "clean"`
    }]
  },
  "an unknown outcome that counts as a failure": {
    kind: "strict",
    faults: 1,
    program: [{
      file: "apply.ts",
      text: "Cause.isFailReason(reason) && !isOutcomeUnknown(reason.error)",
      by: "Cause.isFailReason(reason)"
    }]
  },
  "a sharing entry that is gone too early": {
    kind: "default",
    faults: 0,
    cast: "together",
    program: [{ file: "reconcile.ts", text: "  registry.applications.set(call.key, application)\n", by: "" }]
  },
  "a joiner that takes a foreign tool's result": {
    kind: "default",
    faults: 0,
    cast: "foreign",
    program: [{ file: "reconcile.ts", text: "if (tool !== call.tool) return new", by: "if (false) return new" }]
  },
  "a replay of a foreign tool's record": {
    kind: "default",
    faults: 0,
    cast: "strangers",
    program: [{
      file: "acquire.ts",
      text: "  if (reply.tool !== call.tool) return Effect.fail(conflict(call, reply.tool))\n  return typeof",
      by: "  return typeof"
    }]
  },
  "one leaver that stops the work of all": {
    kind: "default",
    faults: 2,
    trouble: ["slow", "interrupt"],
    cast: "together",
    program: [{ file: "Application.ts", text: "if (--this.waiters > 0 || ", by: "if (--this.waiters > 9 || " }]
  },
  "doubt that a failing check clears": {
    kind: "lagging",
    faults: 2,
    trouble: ["lost reply", "failure"],
    program: [{
      file: "apply.ts",
      text: "return Effect.flatMap(checkRemote(application, call, claimed), (answer)",
      by: "known.cleared = true\n  return Effect.flatMap(checkRemote(application, call, claimed), (answer)"
    }]
  },
  "a first no that is believed at once": {
    kind: "lagging",
    faults: 1,
    program: [{
      file: "remoteCheck.ts",
      text: `if (settle === undefined || claimed.doubt === "none") return ask`,
      by: "if (settle === undefined || claimed.doubt !== undefined) return ask"
    }]
  },
  "doubt that is not looked at": {
    kind: "strict",
    faults: 1,
    program: [{ file: "apply.ts", text: `claimed.doubt === "inDoubt" ? followPolicy`, by: "false ? followPolicy" }]
  },
  "a recording that can be interrupted": {
    kind: "strict",
    faults: 2,
    trouble: ["failure", "interrupt"],
    program: [{
      file: "apply.ts",
      text: "const recorded = record(application, call, item, () => heartbeats.delete(lease))",
      by: "const recorded = Effect.interruptible(record(application, call, item, () => heartbeats.delete(lease)))"
    }]
  },
  "a failed record that drops the claim": {
    kind: "default",
    faults: 1,
    program: [{
      file: "record.ts",
      text: "return Effect.as(writeInBackground(call, item, cause, done), mine)",
      by:
        `done()\n      return Effect.as(registryOf(call.store).ask.release({ ...item, verdict: "clean", cleared: false }), mine)`
    }]
  },
  "an execute with little lease left": {
    kind: "checked",
    faults: 1,
    program: [{
      file: "apply.ts",
      text: "if (!application.lost && lease.sentAt",
      by: "if (clock !== undefined || lease.sentAt"
    }]
  },
  "a heartbeat that does not stop the work of a lost claim": {
    kind: "checked",
    faults: 1,
    program: [{ file: "heartbeat.ts", text: "      if (!lease.recording) lease.onLost()\n", by: "" }]
  },
  "a close that does not stop what runs": {
    kind: "strict",
    faults: 2,
    cast: "alone",
    change: { closes: true },
    program: [{
      file: "closing.ts",
      text: `    running.forEach((application) => application.stop("cancelled"))\n`,
      by: ""
    }]
  },
  "a close that forgets a release that is due": {
    kind: "strict",
    faults: 3,
    trouble: ["failure", "close"],
    cast: "alone",
    change: { closes: true },
    program: [{ file: "closing.ts", text: ", flushReleases(registry, timeout)]", by: "]" }]
  },
  "a close that forgets a record that is due": {
    kind: "strict",
    faults: 2,
    trouble: ["failure", "close"],
    cast: "alone",
    change: { closes: true },
    program: [{ file: "record.ts", text: "Array.from(registry.unwritten.values()).filter", by: "[].filter" }]
  },
  "a caller who starts anew in a store that closes": {
    kind: "strict",
    faults: 2,
    trouble: ["slow", "close"],
    cast: "alone",
    change: { closes: true },
    program: [{ file: "reconcile.ts", text: "if (registry.closing) return", by: "if (false) return" }]
  },
  "a batch whose replies are mixed up": {
    kind: "strict",
    faults: 0,
    cast: "batched",
    change: { batch: true },
    program: [{ file: "Batcher.ts", text: "replies.slice(i, i + 1)", by: "replies.slice(0, 1)" }]
  },
  "a batch that leaves out all but its first": {
    kind: "strict",
    faults: 0,
    cast: "batched",
    change: { batch: true },
    program: [{ file: "Batcher.ts", text: "waiting.slice(from, from + largest)", by: "waiting.slice(from, from + 1)" }]
  },
  "a record's result for another input": {
    kind: "strict",
    faults: 0,
    cast: "changed",
    program: [{
      file: "apply.ts",
      text: `if (call.settings.onInputChange === "fail") return Effect.fail(inputChanged(call))\n  }\n  return supply`,
      by: "}\n  return supply"
    }]
  },
  "a joiner with another input": {
    kind: "strict",
    faults: 0,
    cast: "changing",
    program: [{ file: "reconcile.ts", text: `return call.settings.onInputChange === "fail"`, by: "return false" }]
  },
  "a remote's result for another input": {
    kind: "checked",
    faults: 1,
    cast: "changed",
    program: [{
      file: "apply.ts",
      text: `return differs && call.settings.onInputChange === "fail"`,
      by: "return false"
    }]
  },
  "another input of which no event tells": {
    kind: "strict",
    faults: 0,
    cast: "changing",
    program: [{
      file: "reconcile.ts",
      text: "report.flags = { ...report.flags, inputChanged: true }",
      by: "report.flags = { ...report.flags }"
    }]
  },
  "a missing result that is not asked for": {
    kind: "mute",
    faults: 1,
    program: [{
      file: "apply.ts",
      text: "call.alreadyApplied !== undefined && RecordedResult.isUnavailable(applied.text)",
      by: "false"
    }]
  },
  "a call within its own that waits": {
    kind: "reentrant",
    faults: 0,
    cast: "alone",
    program: [{ file: "reconcile.ts", text: "if (circle !== undefined) {", by: "if (false) {" }]
  },
  ...faults
}
