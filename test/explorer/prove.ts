/**
 * `npm run prove [minutes] [part of a name]`: explores the real program for ten minutes, or as many as are given, with more
 * faults and processes than the tests have time for, and then by random schedules. Shows its progress, and exits with 1
 * where a schedule breaks a promise.
 */
import { allTrouble, type Trouble } from "./choices.ts"
import { explore } from "./explore.ts"
import { describeFinding, type Finding } from "./replay.ts"
import type { Scenario } from "./model.ts"
import { type KindName, kinds } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"
import { wander } from "./wander.ts"

const [minutes = "10", only = ""] = process.argv.slice(2)
const startedAt = performance.now()
const deadline = startedAt + Number(minutes) * 60_000

let schedules = 0
let states = 0
const findings: Array<Finding> = []

const say = (text: string): void => {
  const seconds = String(Math.round((performance.now() - startedAt) / 1000)).padStart(4)
  console.log(`${seconds} s  ${text}`)
}

const report = (name: string, covered: string, finding: Finding | undefined): void => {
  say(`${name}: ${covered}${finding === undefined ? "" : ", and one of them is bad"}`)
  if (finding === undefined) return
  findings.push(finding)
  console.log(describeFinding(finding))
}

const kindNames = Object.keys(kinds) as ReadonlyArray<KindName>

interface Exploration {
  readonly name: string
  readonly at: Scenario
  readonly faults: number
  readonly trouble: ReadonlySet<Trouble>
}

const of = (kind: KindName, cast: Cast, faults: number, trouble = allTrouble): Exploration => {
  const at = scenario(kind, cast, { mostTicks: faults > 1 ? 6 : 8 })
  const which = trouble.size === allTrouble.size ? "any" : [...trouble].join(" and ")
  return { name: `${at.name}, ${faults} of ${which}`, at, faults, trouble }
}

/** Every two kinds of trouble, and each with itself. */
const pairs = [...allTrouble].flatMap((one, index) =>
  [...allTrouble].slice(index + 1).map((other): ReadonlySet<Trouble> => new Set([one, other]))
)

const explorations = [
  ...(["two", "together", "foreign", "strangers", "restarted", "joined", "three"] as const).flatMap((cast) =>
    kindNames.map((kind) => of(kind, cast, 1))
  ),
  ...(["together", "two"] as const).flatMap((cast) =>
    pairs.flatMap((pair) => kindNames.map((kind) => of(kind, cast, 2, pair)))
  )
].filter(({ name }) => name.includes(only))

const exploreFor = ({ at, faults, name, trouble }: Exploration, millis: number): void => {
  const until = performance.now() + millis
  let saidAt = performance.now()
  const { complete, finding, ...counts } = explore(at, {
    faults,
    trouble,
    progress: (so) => {
      const now = performance.now()
      if (now - saidAt > 10_000) {
        saidAt = now
        say(`... ${name}: ${so.schedules} schedules, ${so.states} states`)
      }
      return now < until
    }
  })
  schedules += counts.schedules
  states += counts.states
  const covered = `${complete ? "all" : "the first"} ${counts.schedules} schedules, ${counts.states} states`
  report(name, covered, finding)
}

// two thirds of the time; what is not done in its share is left, so that every exploration has its turn
const exploredUntil = startedAt + (deadline - startedAt) * 2 / 3
explorations.forEach((exploration, index) => {
  const left = exploredUntil - performance.now()
  if (left > 0) exploreFor(exploration, left / (explorations.length - index) * 4)
})

const walks = (["two", "joined", "restarted", "three"] as const).flatMap((cast) =>
  kindNames.map((kind) => scenario(kind, cast, { mostTicks: 12 }))
).filter(({ name }) => name.includes(only))

let seed = 0
const broken = new Set<string>()
while (performance.now() < deadline && broken.size < walks.length) {
  seed++
  for (const at of walks) {
    if (broken.has(at.name)) continue
    schedules++
    const finding = wander(at, seed, 5)
    if (finding === undefined) continue
    broken.add(at.name)
    report(`${at.name}, 5 faults`, `${seed} random schedules`, finding)
  }
  if (seed % 1_000 === 0) say(`... ${seed} random schedules of each of ${walks.length} scenarios`)
}

say(`${schedules} schedules, ${states} states, ${findings.length} bad`)
process.exitCode = findings.length === 0 ? 0 : 1
