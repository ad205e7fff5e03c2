/**
 * One thread of `npm run prove`: takes jobs as long as there are any, and then walks at random until the time is over.
 */
import { parentPort, workerData } from "node:worker_threads"
import { explore } from "./explore.ts"
import { jobs, walks } from "./jobs.ts"
import { describeFinding, type Finding } from "./replay.ts"
import { wander } from "./wander.ts"

/** What a thread is told. Times are in milliseconds since the epoch. */
export interface Orders {
  readonly thread: number
  readonly threads: number
  readonly only: string
  readonly exploredUntil: number
  readonly deadline: number
  /** The number of jobs that are taken, shared by all threads. */
  readonly taken: SharedArrayBuffer
}

/** What a thread tells. */
export interface News {
  readonly text: string
  readonly finding: string | undefined
  /** To be added to what was told before. */
  readonly schedules: number
  readonly states: number
}

const { deadline, exploredUntil, only, taken, thread, threads } = workerData as Orders

const tell = (text: string, counts = { schedules: 0, states: 0 }, finding?: Finding): void => {
  const news: News = {
    text: finding === undefined ? text : `${text}, and one of them is bad`,
    finding: finding && describeFinding(finding),
    schedules: counts.schedules,
    states: counts.states
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort!.postMessage(news)
}

const mine = jobs.filter(({ name }) => name.includes(only))

const counter = new Int32Array(taken)

const exploreNext = (): boolean => {
  const index = Atomics.add(counter, 0, 1)
  const job = mine[index]
  const left = exploredUntil - Date.now()
  if (job === undefined || left <= 0) return false
  // what is not done in its share is left, so that every exploration has its turn
  const until = Date.now() + Math.min(left, left / (mine.length - index) * threads * 2)
  let saidAt = Date.now()
  const { complete, finding, ...counts } = explore(job.at, {
    faults: job.faults,
    trouble: job.trouble,
    progress: ({ due, fault, schedules, states }) => {
      const now = Date.now()
      if (now - saidAt > 10_000) {
        saidAt = now
        tell(`... ${job.name}: ${schedules} schedules, ${states} states, ${due} steps due with ${fault} faults`)
      }
      return now < until
    }
  })
  const covered = `${complete ? "all" : "the first"} ${counts.schedules} schedules, ${counts.states} states`
  tell(`${job.name}: ${covered}`, counts, finding)
  return true
}

const walkOn = (): void => {
  const broken = new Set<string>()
  const at = walks.filter(({ name }) => name.includes(only))
  let walked = 0
  let saidAt = Date.now()
  for (let seed = thread + 1; Date.now() < deadline && broken.size < at.length; seed += threads) {
    for (const scenario of at) {
      if (broken.has(scenario.name)) continue
      walked++
      const finding = wander(scenario, seed, 5)
      if (finding === undefined) continue
      broken.add(scenario.name)
      tell(`${scenario.name}, 5 faults: random schedules`, undefined, finding)
    }
    if (Date.now() - saidAt > 10_000) {
      saidAt = Date.now()
      tell(`... ${walked} random schedules of ${at.length} scenarios, up to seed ${seed}`)
    }
  }
  tell(`${walked} random schedules of ${at.length} scenarios`, { schedules: walked, states: 0 })
}

while (exploreNext()) { /* the next */ }
walkOn()
