/**
 * `npm run prove [minutes] [part of a name]`: explores the real program for ten minutes, or as many as are given, with more
 * faults and processes than the tests have time for, and then by random schedules. Shows its progress, and exits with 1
 * where a schedule breaks a promise.
 */
import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import type { News, Orders } from "./proveWorker.ts"

const [minutes = "10", only = ""] = process.argv.slice(2)
const startedAt = Date.now()
const millis = Number(minutes) * 60_000
const threads = Math.min(availableParallelism(), 8)
const taken = new SharedArrayBuffer(4)

let schedules = 0
let states = 0
let bad = 0

const say = (text: string): void => {
  const seconds = String(Math.round((Date.now() - startedAt) / 1000)).padStart(4)
  console.log(`${seconds} s  ${text}`)
}

const work = (thread: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const orders: Orders = {
      thread,
      threads,
      only,
      // what is left is for random schedules
      exploredUntil: startedAt + millis * 0.8,
      deadline: startedAt + millis,
      taken
    }
    const worker = new Worker(new URL("proveWorker.ts", import.meta.url), { workerData: orders })
    worker.on("message", (news: News) => {
      schedules += news.schedules
      states += news.states
      say(news.text)
      if (news.finding === undefined) return
      bad++
      console.log(news.finding)
    })
    worker.on("error", reject)
    worker.on("exit", (code) => code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`)))
  })

await Promise.all(Array.from({ length: threads }, (_, thread) => work(thread)))
say(`${schedules} schedules, ${states} states, ${bad} bad`)
process.exitCode = bad === 0 ? 0 : 1
