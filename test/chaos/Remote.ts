/**
 * The outside world of the agents: a server that has effects applied to it and counts them, and where models think. It is
 * slow, refuses, loses requests and loses replies, as the dice have it.
 */
import { Effect, Semaphore } from "effect"
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { json } from "node:stream/consumers"
import type { Applying, Asked, Finding } from "./protocol.ts"

/** An effect that was applied. */
export interface Application extends Applying {
  /** What the remote answered: no two applications have the same. */
  readonly receipt: string
}

/** A model call. */
export interface Generation extends Asked {
  /** Whether the step's tools had been at the remote already: then its answer was stored, and was not to be asked for again. */
  readonly again: boolean
}

/** Where something may strike: when all is ready for the effect and its request has not left yet, before the effect, before its reply. */
export type Moment = "prepared" | "before" | "after"

export interface Remote {
  readonly url: string
  readonly applications: ReadonlyArray<Application>
  readonly generations: ReadonlyArray<Generation>
  /** Requests that got no answer, or a refusal, by the dice. */
  readonly troubles: number
  /** Calls `strike` with the process that is the next one at that moment. */
  readonly arm: (moment: Moment, strike: (worker: number) => void) => void
  /** Nothing strikes any more. */
  readonly disarm: Effect.Effect<void>
  /** Waits until no request is left. */
  readonly quiet: Effect.Effect<void>
}

/** What the dice decide of a request: most go well. */
const fateOf = (roll: number) =>
  roll < 0.02
    ? "refused"
    : roll < 0.04
    ? "lost request"
    : roll < 0.07
    ? "lost reply"
    : roll < 0.1
    ? "slow reply"
    : "well"

export const makeRemote = (dice: () => number) =>
  Effect.gen(function*() {
    const applications: Array<Application> = []
    const generations: Array<Generation> = []
    /** The last step of each run whose tools have been here. */
    const reached = new Map<string, number>()
    const locks = new Map<string, Semaphore.Semaphore>()
    let armed: { readonly moment: Moment; readonly strike: (worker: number) => void } | undefined
    let troubles = 0
    let requests = 0

    const between = (least: number, most: number) => Effect.sleep(least + Math.floor(dice() * (most - least)))

    /** One after the other per key: so nobody is told "no" of an effect that is on its way. */
    const alone = (key: string) => {
      const lock = locks.get(key) ?? Semaphore.makeUnsafe(1)
      locks.set(key, lock)
      return lock.withPermit
    }

    const strikes = (moment: Moment, worker: number): boolean => {
      if (armed?.moment !== moment) return false
      const { strike } = armed
      armed = undefined
      strike(worker)
      return true
    }

    /** Answers `undefined` where there is no reply. */
    const apply = Effect.fnUntraced(function*(asked: Applying) {
      reached.set(asked.runId, Math.max(reached.get(asked.runId) ?? -1, asked.step))
      const fate = fateOf(dice())
      if (fate !== "well") troubles++
      const receipt = yield* alone(asked.key)(Effect.gen(function*() {
        yield* between(5, 100)
        if (fate === "refused" || fate === "lost request" || strikes("before", asked.worker)) return undefined
        const known = asked.idempotent ? applications.find(({ key }) => key === asked.key) : undefined
        if (known !== undefined) return known.receipt
        const receipt = `receipt-${applications.length + 1}`
        applications.push({ ...asked, receipt })
        return receipt
      }))
      if (fate === "refused") return { refused: true }
      if (receipt === undefined || strikes("after", asked.worker)) return undefined
      yield* fate === "slow reply" ? between(300, 1000) : between(5, 100)
      return fate === "lost reply" ? undefined : { receipt }
    })

    const prepare = ({ worker }: Asked) =>
      Effect.sync(() => {
        strikes("prepared", worker)
        return {}
      })

    const find = (asked: Finding) =>
      alone(asked.key)(Effect.sync(() => ({ receipt: applications.find(({ key }) => key === asked.key)?.receipt })))

    const think = (asked: Asked) =>
      Effect.suspend(() => {
        generations.push({ ...asked, again: (reached.get(asked.runId) ?? -1) >= asked.step })
        return Effect.as(between(10, 100), {})
      })

    const answer = (request: IncomingMessage, response: ServerResponse) =>
      Effect.flatMap(
        Effect.promise(() => json(request)),
        (asked): Effect.Effect<object | undefined> => {
          switch (request.url) {
            case "/apply":
              return apply(asked as Applying)
            case "/prepare":
              return prepare(asked as Asked)
            case "/find":
              return find(asked as Finding)
            default:
              return think(asked as Asked)
          }
        }
      ).pipe(
        Effect.flatMap((answer) =>
          Effect.sync(() => void (answer === undefined ? response.destroy() : response.end(JSON.stringify(answer))))
        ),
        // who died in the middle of a request gets no answer
        Effect.ignoreCause
      )

    const run = Effect.runForkWith(yield* Effect.context())
    const server = yield* Effect.acquireRelease(
      Effect.sync(() =>
        createServer((request, response) => {
          requests++
          run(Effect.ensuring(answer(request, response), Effect.sync(() => requests--)))
        }).listen(0, "127.0.0.1")
      ),
      (server) =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
    )
    yield* Effect.promise(() => once(server, "listening"))
    const address = server.address()
    const remote: Remote = {
      url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
      applications,
      generations,
      get troubles() {
        return troubles
      },
      arm: (moment, strike) => void (armed = { moment, strike }),
      disarm: Effect.sync(() => void (armed = undefined)),
      quiet: Effect.suspend(() => requests === 0 ? Effect.void : Effect.delay(remote.quiet, "20 millis"))
    }
    return remote
  })
