/**
 * The lab's points in words, and what came of them.
 */
import type { CrashPoint } from "chamvi-effect/testing"

/** A situation, and the points of the lab that are cases of it. */
interface Situation {
  readonly words: string
  readonly points: ReadonlyArray<string>
}

const calls: Situation = {
  words: "two calls, at once or after each other, in one process or in two",
  points: ["in one process", "in two processes"].flatMap((where) => [
    `two calls at once ${where}`,
    `two calls after each other ${where}`
  ])
}

const beforeClaim: Situation = {
  words: "killed before the key is claimed",
  points: ["killed before begin", "killed before claim"]
}

const unknown: Situation = {
  words: "the effect is applied, and `execute` fails with `EffectOutcomeUnknownError`: its reply was lost",
  points: [
    "execute does not know whether it applied",
    "execute does not know, killed before release",
    "execute does not know, killed after release"
  ]
}

const died: Situation = {
  words: "the effect is applied, and `execute` dies of a defect",
  points: ["execute dies after it applied"]
}

const failed: Situation = {
  words: "`execute` fails plainly, *although the effect was applied*",
  points: ["the remote has applied, and its reply is lost"]
}

const left: Situation = {
  words: "the effect is applied, and the last caller leaves (an abort, a timeout)",
  points: ["the caller leaves after it applied"]
}

/** In the order of the page. */
export const situations: ReadonlyArray<Situation> = [
  { words: "no trouble", points: ["no trouble"] },
  calls,
  beforeClaim,
  {
    words: "killed with the key claimed, before the effect",
    points: ["after claim", "before check", "after check", "before execute", "at request"].map((at) => `killed ${at}`)
  },
  {
    words: "killed after the effect, before its record",
    points: ["at stored", "after execute", "before record"].map((at) => `killed ${at}`)
  },
  { words: "killed after the record", points: ["killed after record"] },
  unknown,
  died,
  left,
  {
    words: "frozen for longer than the lease before the effect; the heartbeat tells it first",
    points: ["frozen past its lease before execute"]
  },
  { words: "frozen for longer than the lease after the effect", points: ["frozen past its lease after execute"] },
  {
    words: "killed after the effect, which stands among 250 entries of others",
    points: ["killed after execute, 250 older entries", "killed after execute, 250 newer entries"]
  },
  {
    words: "killed after the effect, which the remote shows 2 seconds late",
    points: ["killed after execute, the remote lags"]
  },
  { words: "a stranger has posted the key's marker", points: ["a stranger has posted the marker"] },
  failed
]

/** The same of a tool that has a transaction for a claim. */
export const transactionalSituations: ReadonlyArray<Situation> = [
  { words: "no trouble", points: ["no trouble"] },
  calls,
  beforeClaim,
  {
    words: "killed in the transaction, before or after its writes",
    points: [
      "after claim",
      "before execute",
      "at request",
      "at stored",
      "after execute",
      "before record",
      "after record"
    ]
      .map((at) => `killed ${at}`)
  },
  { words: "killed after the commit", points: ["killed after commit"] },
  { ...unknown, words: unknown.words.replace("is applied", "is written") },
  { ...died, words: died.words.replace("is applied", "is written") },
  { ...left, words: left.words.replace("is applied", "is written") },
  failed
]

/** What came of a situation. */
export interface Found extends Pick<CrashPoint, "verdict" | "applied"> {
  readonly asked: boolean
  /** What events say of it. */
  readonly flags: ReadonlyArray<string>
}

/** What the lab has found at a point. */
export const foundAt = ({ applied, calls, verdict }: CrashPoint): Found => {
  const told = new Set(calls.flatMap(({ flags }) => flags))
  const flags = (["executedInDoubt", "claimLost"] as const).filter((flag) => told.has(flag))
  return {
    verdict,
    applied,
    asked: calls.some(({ outcome }) => outcome === "reconciled"),
    // where nothing else is told of a second application
    flags: verdict === "twice" && flags.length === 0 && told.has("takenOver") ? ["takenOver"] : flags
  }
}

const verdictIn = ({ applied, asked, verdict }: Found): string => {
  switch (verdict) {
    case "once":
      return asked ? "once, asked" : "once"
    case "twice":
      return "**twice**"
    case "lost":
      return "**never**"
    case "inDoubt":
      return applied > 0 ? "in doubt, applied" : "in doubt, not applied"
  }
}

export const cellOf = (found: Found): string =>
  [verdictIn(found), ...found.flags.map((flag) => `\`${flag}\``)].join(", ")
