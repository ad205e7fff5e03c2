/**
 * Finding markers takes time in proportion to the text, whoever wrote it. By itself, since it is about real time: the
 * processor's, for ten times as much text, so that a slow or a busy machine makes no difference.
 */
import { assert, describe, it } from "@effect/vitest"
import { effectMarker, findMarker } from "chamvi-effect"

/** Microseconds that the process spends on it, the least of three times. */
const costOf = (work: () => void): number =>
  Math.min(...[1, 2, 3].map(() => {
    const before = process.cpuUsage()
    work()
    return process.cpuUsage(before).user
  }))

describe("EffectMarker", () => {
  // with a search that starts over at every opening, ten times the text takes a hundred times the time
  it("takes linear time on hostile texts", { timeout: 300_000 }, () => {
    const parts = {
      openings: "<!-- chamvi:effect=",
      "openings with keys": "<!-- chamvi:effect=a",
      "openings with signatures": "<!-- chamvi:effect=a hmac=",
      dashes: "-",
      "empty comments": "<!-->",
      "percent signs": "<!-- chamvi:effect=%%%%%%%%%%%%%%%%%%%%%%% -->",
      "sequences that are no UTF-8": "<!-- chamvi:effect=%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff%ff -->",
      "unsigned markers": effectMarker("k"),
      "markers with another key's signature": effectMarker("a", { secret: "s" }).replace("=a ", "=b ")
    }
    for (const [kind, part] of Object.entries(parts)) {
      for (const options of [{}, { secret: "s" }]) {
        const cost = (bytes: number) => {
          const text = `<!-- chamvi:effect=${part.repeat(bytes / part.length)}`
          return costOf(() => assert.isAtMost(findMarker(text, options).length, 1, kind))
        }
        const [one, ten] = [cost(40_000), cost(400_000)]
        // what costs next to nothing has no ratio
        assert.isBelow(ten, Math.max(one, 2_000) * 40, `${kind}: ${one} and ${ten} microseconds`)
      }
    }
  })
})
