/**
 * Finding markers takes time in proportion to the text, whoever wrote it. By itself, since it is about real time.
 */
import { assert, describe, it } from "@effect/vitest"
import { effectMarker, findMarker } from "chamvi-effect"

describe("EffectMarker", () => {
  // 10 MB each: with a search that starts over at every opening they take minutes
  it("takes linear time on hostile texts", { timeout: 60_000 }, () => {
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
      for (
        const text of [
          part.repeat(10_000_000 / part.length),
          `<!-- chamvi:effect=${part.repeat(10_000_000 / part.length)}`
        ]
      ) {
        for (const options of [{}, { secret: "s" }]) {
          const start = performance.now()
          assert.isAtMost(findMarker(text, options).length, 1, kind)
          assert.isBelow(performance.now() - start, 5_000, kind)
        }
      }
    }
  })
})
