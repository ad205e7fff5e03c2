/**
 * What the network may do to a store's process at every point of a call, and what must hold all the same: no second
 * application, no wrong result, typed errors, and a process that recovers by itself.
 */
import { it } from "@effect/vitest"
import { applyOnce, EffectSettings, EffectStore, type IEffectStore } from "chamvi-effect"
import { Cause, Deferred, Effect, Exit, Fiber, Logger, Schedule, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import { describe, expect } from "vitest"
import { type Point, type TcpProxy, tcpProxy, type Trouble } from "../support/tcpProxy.ts"

/** A server of the store's kind, and how to reach it through a port. */
export interface Subject {
  readonly port: number
  readonly connect: (port: number) => Effect.Effect<IEffectStore, unknown, Scope.Scope>
  /** Kills the server, and starts it again on what it has on the disk. */
  readonly restart: Effect.Effect<void, unknown>
}

// the lease is long: who is locked out by its own lost claim does not come back within the test
const Settings = EffectSettings.layer({ storeTimeout: 400, recordTimeout: 400, lease: "1 hour" })

/** A call, told from all others by the bytes that it sends. */
const makeCall = () => {
  const mark = randomUUID()
  const [key, tool, result] = [`key-${mark}`, `tool-${mark}`, `result-${mark}`]
  let applied = 0
  const callWith = (execute: () => Effect.Effect<string>) => (store: IEffectStore) =>
    applyOnce({ key, tool, execute }).pipe(Effect.provideService(EffectStore, store), Effect.provide(Settings))
  return {
    key,
    tool,
    result,
    applied: () => applied,
    call: callWith(() =>
      Effect.sync(() => {
        applied++
        return result
      })
    ),
    /** A call that must find the record. */
    replay: callWith(() => Effect.die(new Error("the effect must not be applied again")))
  }
}

/** Calls again while the store is out of reach. */
const insist = <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E>) =>
  Effect.retry(call, {
    while: ({ _tag }) => _tag === "EffectStoreError",
    schedule: Schedule.spaced("50 millis"),
    times: 200
  })

/** What goes wrong is meant to; the log would hide what is not. */
const quietly = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, Logger.layer([]))

const failureOf = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isFailure(exit) ? (Cause.squash(exit.cause) as { readonly _tag?: unknown })._tag : undefined

const troubles: ReadonlyArray<Trouble> = ["stall", "cut", "half-close"]

type World<A, E> = (
  world: { readonly proxy: TcpProxy; readonly near: IEffectStore; readonly far: IEffectStore }
) => Effect.Effect<A, E, Scope.Scope>

/** The tests, for a store that `subject` makes. */
export const networkFaults = (name: string, there: boolean, subject: Effect.Effect<Subject, unknown, Scope.Scope>) => {
  const inWorld = <A, E>(run: World<A, E>) => () =>
    Effect.scoped(quietly(Effect.gen(function*() {
      const { connect, port } = yield* subject
      const proxy = yield* tcpProxy(port)
      const near = yield* connect(proxy.port)
      const far = yield* connect(port)
      // scripts are loaded, connections are there: what comes now is the call alone
      yield* makeCall().call(near)
      return yield* run({ proxy, near, far })
    })))

  const points = {
    "before the claim's request": ({ tool }) => ({ bytes: tool, before: "request" }),
    "before the claim's reply": ({ tool }) => ({ bytes: tool, before: "reply" }),
    "before the record's request": ({ result }) => ({ bytes: result, before: "request" }),
    "before the record's reply": ({ result }) => ({ bytes: result, before: "reply" })
  } as const satisfies Record<string, (call: ReturnType<typeof makeCall>) => Point>

  describe.skipIf(!there)(`${name} in a bad network`, () => {
    for (const [where, pointOf] of Object.entries(points)) {
      for (const trouble of troubles) {
        it.live(
          `${trouble} ${where}: the effect is applied once, and the process recovers`,
          inWorld(({ far, near, proxy }) =>
            Effect.gen(function*() {
              const call = makeCall()
              const { struck } = yield* proxy.arm(trouble, pointOf(call))
              const first = yield* Effect.forkScoped(Effect.exit(call.call(near)))
              yield* struck
              const exit = yield* Fiber.join(first)
              const recording = where.includes("record")
              // once the effect is there, the caller gets its result, whatever becomes of the record
              if (recording) expect(exit).toEqual(Exit.succeed(call.result))
              else if (Exit.isFailure(exit)) expect(failureOf(exit)).toBe("EffectStoreError")
              if (recording) expect(yield* call.replay(near)).toBe(call.result)
              yield* proxy.heal
              expect(yield* insist(call.call(near))).toBe(call.result)
              expect(yield* call.replay(far)).toBe(call.result)
              expect(call.applied()).toBe(1)
              expect(yield* far.get(call.key)).toMatchObject({ status: "recorded", doubt: "none" })
            })
          ),
          30_000
        )
      }
    }

    for (const trouble of troubles) {
      it.live(
        `${trouble} during a wait: the waiter gets the record once the network is back`,
        inWorld(({ far, near, proxy }) =>
          Effect.gen(function*() {
            const call = makeCall()
            const [granted] = yield* far.claim([{
              key: call.key,
              tool: call.tool,
              runId: "",
              owner: "far",
              claimId: "far",
              lease: 3_600_000,
              fingerprint: ""
            }])
            if (granted?._tag !== "Claimed") return expect.fail("the claim is granted")
            const told = yield* Deferred.make<void>()
            const telling: IEffectStore = {
              ...near,
              claim: (requests) => Effect.tap(near.claim(requests), () => Deferred.succeed(told, undefined))
            }
            const waiting = yield* Effect.forkScoped(insist(call.replay(telling)))
            yield* Deferred.await(told)
            yield* proxy.strike(trouble)
            const item = { key: call.key, token: granted.token, fingerprint: "", outcome: "executed" } as const
            yield* far.complete([{ ...item, result: JSON.stringify({ value: call.result }) }])
            yield* proxy.heal
            expect(yield* Fiber.join(waiting)).toBe(call.result)
          })
        ),
        30_000
      )
    }

    it.live(
      "a server that is killed and started again under load loses nothing that is recorded",
      () =>
        Effect.scoped(quietly(Effect.gen(function*() {
          const { connect, port, restart } = yield* subject
          const store = yield* connect(port)
          const calls = Array.from({ length: 300 }, makeCall)
          const half = yield* Deferred.make<void>()
          let done = 0
          const load = yield* Effect.forkScoped(Effect.forEach(
            calls,
            ({ call }) =>
              Effect.tap(insist(call(store)), () => ++done === 100 ? Deferred.succeed(half, undefined) : Effect.void),
            { concurrency: 16 }
          ))
          yield* Deferred.await(half)
          // these are on the disk: their keys answer from the ledger, not from this process
          const recorded = yield* Effect.filter(
            calls,
            ({ key }) => Effect.map(store.get(key), (row) => row?.status === "recorded")
          )
          yield* restart
          expect(yield* Fiber.join(load)).toEqual(calls.map(({ result }) => result))
          const fresh = yield* connect(port)
          expect(recorded.length).toBeGreaterThan(0)
          for (const { applied, key, replay, result } of calls) {
            expect(yield* insist(replay(fresh))).toBe(result)
            expect([key, applied()]).toEqual([key, 1])
          }
        }))),
      60_000
    )
  })
}
