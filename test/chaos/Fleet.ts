/**
 * The workers of a scenario: real processes, each of which is followed by another one when it ends, unless it left for good.
 */
import type { EffectEvent } from "chamvi-effect"
import { Deferred, Effect, FiberSet } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { scriptArguments } from "./pace.ts"
import type { Orders, Told } from "./protocol.ts"

/** A process that executes runs. */
export interface Worker {
  readonly pid: number
  readonly process: ChildProcess
  readonly ended: Deferred.Deferred<void>
  /** Whether it has told that it executes runs. */
  ready: boolean
  frozen: boolean
  /** Whether it was sent a signal that ends it. */
  ending: boolean
  forGood: boolean
}

/** What a worker told of a call. */
export interface Heard extends EffectEvent {
  readonly worker: number
}

export interface Fleet {
  /** Those that execute runs now. */
  readonly ready: () => ReadonlyArray<Worker>
  /** Those that run, whether they are ready or frozen or neither. */
  readonly alive: () => ReadonlyArray<Worker>
  readonly find: (pid: number) => Worker | undefined
  /** One more worker. */
  readonly join: Effect.Effect<void>
  /** Ends a worker. Another one takes its place, unless it leaves for good. */
  readonly end: (worker: Worker, signal: "SIGKILL" | "SIGTERM", forGood?: boolean) => void
  readonly freeze: (worker: Worker) => void
  readonly thaw: (worker: Worker) => void
  /** Thaws all, asks all to leave for good, and waits for their ends. */
  readonly dismiss: Effect.Effect<void>
  /** Resolves when a worker tells that all runs have ended. */
  readonly done: Effect.Effect<void>
  readonly heard: ReadonlyArray<Heard>
  /** The workers that were ever frozen. */
  readonly everFrozen: ReadonlySet<number>
  /** Workers that ended by themselves. */
  readonly crashes: ReadonlyArray<string>
}

/** Starts `size` workers, in the environment `compiled`. */
export const makeFleet = (orders: Orders, size: number, compiled: NodeJS.ProcessEnv) =>
  Effect.gen(function*() {
    const workers = new Map<number, Worker>()
    const heard: Array<Heard> = []
    const everFrozen = new Set<number>()
    const crashes: Array<string> = []
    const done = yield* Deferred.make<void>()
    const places = yield* FiberSet.make()
    let dismissed = false

    const hear = (worker: Worker, told: Told): void => {
      switch (told._tag) {
        case "Ready":
          worker.ready = true
          return
        case "Called":
          heard.push({ ...told.event, worker: worker.pid })
          return
        case "Done":
          Deferred.doneUnsafe(done, Effect.void)
      }
    }

    const born = Effect.sync((): Worker => {
      const process = spawn(globalThis.process.execPath, scriptArguments("worker.ts", JSON.stringify(orders)), {
        stdio: ["ignore", "pipe", "inherit"],
        env: compiled
      })
      const worker: Worker = {
        pid: process.pid!,
        process,
        ended: Deferred.makeUnsafe(),
        ready: false,
        frozen: false,
        ending: false,
        forGood: false
      }
      workers.set(worker.pid, worker)
      createInterface(process.stdout).on("line", (line) => hear(worker, JSON.parse(line) as Told))
      // from then on nothing is heard of it any more
      process.on("close", (code) => {
        workers.delete(worker.pid)
        if (!worker.ending) {
          crashes.push(`worker ${worker.pid} ended by itself, with ${code}, ${worker.ready ? "" : "not yet "}ready`)
        }
        Deferred.doneUnsafe(worker.ended, Effect.void)
      })
      return worker
    })

    const life = Effect.acquireUseRelease(
      born,
      (worker) => Effect.as(Deferred.await(worker.ended), worker),
      (worker) => Effect.sync(() => void worker.process.kill("SIGKILL"))
    )

    /** One worker after the other. What does not come up is not tried again at once. */
    const place: Effect.Effect<void> = Effect.flatMap(life, (worker) =>
      worker.forGood || dismissed
        ? Effect.void
        : Effect.andThen(worker.ready ? Effect.void : Effect.sleep("500 millis"), place))

    const end: Fleet["end"] = (worker, signal, forGood = false) => {
      worker.ending = true
      worker.ready = false
      worker.forGood = forGood
      worker.process.kill(signal)
    }

    const thaw: Fleet["thaw"] = (worker) => {
      worker.frozen = false
      worker.process.kill("SIGCONT")
    }

    const join = Effect.asVoid(FiberSet.run(places, place))
    yield* Effect.replicateEffect(join, size, { discard: true })

    const fleet: Fleet = {
      ready: () => [...workers.values()].filter(({ frozen, ready }) => ready && !frozen),
      alive: () => [...workers.values()].filter(({ ending }) => !ending),
      find: (pid) => workers.get(pid),
      join,
      end,
      freeze: (worker) => {
        worker.frozen = true
        everFrozen.add(worker.pid)
        worker.process.kill("SIGSTOP")
      },
      thaw,
      dismiss: Effect.suspend(() => {
        dismissed = true
        for (const worker of workers.values()) {
          thaw(worker)
          end(worker, "SIGTERM", true)
        }
        return FiberSet.awaitEmpty(places)
      }),
      done: Deferred.await(done),
      heard,
      everFrozen,
      crashes
    }
    return fleet
  })
