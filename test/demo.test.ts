/** The crash demo as its reader starts it: `npm start`, a process that starts and kills processes of its own. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

/** Who said what, in order, without the times. */
type Timeline = ReadonlyArray<readonly [who: string, what: string]>

const timelineOf = (text: string): Timeline =>
  [...text.matchAll(/^ *\d+\.\d\d s {2}(\S+(?: \d)?) +(.*)$/gm)].map(([, who, what]) => [who!, what!.trimEnd()])

const said = (timeline: Timeline, who: string): ReadonlyArray<string> =>
  timeline.flatMap(([name, what]) => name === who ? [what] : [])

describe("the crash demo", () => {
  let output = ""
  let plain: Timeline = []
  let guarded: Timeline = []
  let durable: Timeline = []

  beforeAll(async () => {
    // rejects where the demo ends with another exit code than 0
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=chamvi-source", "examples/demo/main.ts"],
      {
        cwd: root,
        timeout: 60_000,
        env: { ...process.env, AI_MODEL: undefined, DATABASE_URL: undefined, REDIS_URL: undefined }
      }
    )
    output = stdout
    const sections = stdout.split(/^(?=A plain tool|An effect tool|An agent on the engine)/m).map(timelineOf)
    plain = sections.at(-3)!
    guarded = sections.at(-2)!
    durable = sections.at(-1)!
  }, 120_000)

  it("ends with two comments of the plain tool and one of each of the others", () => {
    expect(output.trimEnd().split("\n").slice(-3)).toEqual([
      "plain tool:  2 comments of the agent on the tracker",
      "effect tool: 1 comment of the agent on the tracker",
      "engine:      1 comment of the agent on the tracker"
    ])
  })

  it.each([["plain tool", () => plain], ["effect tool", () => guarded], ["engine", () => durable]] as const)(
    "kills worker 1 of the %s with SIGKILL after the tracker has stored its comment",
    (_, timeline) => {
      const lines = timeline().map(([who, what]) => `${who}: ${what}`)
      const end = lines.indexOf("worker 1: is dead (SIGKILL)")
      expect(lines.slice(end - 3, end)).toEqual([
        "worker 1: tool: posting the comment",
        "tracker: stored comment 35, not answered yet",
        "main: kills worker 1 with SIGKILL: the effect happened, its record did not"
      ])
      // nothing came of the post in worker 1
      expect(said(timeline(), "worker 1").at(-2)).toBe("tool: posting the comment")
    }
  )

  it("finds the key held by the dead worker, without a record", () => {
    expect(said(guarded, "ledger")).toEqual([
      "run-1:comment:7: held (attempt 1)",
      "run-1:comment:7: recorded, reconciled (attempt 2)"
    ])
    expect(said(plain, "ledger")).toEqual([])
  })

  it("lets worker 2 find the comment on page 2, without waiting for the lease of worker 1", () => {
    expect(said(guarded, "worker 2").slice(1)).toEqual([
      "call: comment on issue 7: \"This is solved by version 1.4.2.\"",
      "check: found it, on page 2",
      "event: reconciled, claim taken over",
      "model: Done."
    ])
  })

  it("lets worker 2 of the plain tool post once more", () => {
    expect(said(plain, "worker 2")).toContain("tool: posting the comment")
  })

  it("lets worker 2 of the engine go on with the run, without generating what was generated", () => {
    const generated = (who: string) => said(durable, who).filter((line) => line.startsWith("model: "))
    expect(generated("worker 1")).toEqual(["model: generates step 1", "model: generates step 2"])
    expect(said(durable, "worker 2").slice(1)).toEqual([
      // a call that was cut off is called again
      "call: comment on issue 9: \"Fixed in 1.4.2, please upgrade.\"",
      "check: found it, on page 2",
      "event: reconciled, claim taken over",
      "model: generates step 3",
      "run: completed in 3 steps: Done."
    ])
    expect(said(durable, "ledger")).toEqual([
      "run-1:comment:9: held (attempt 1)",
      "run-1:comment:9: recorded, reconciled (attempt 2)"
    ])
  })
})
