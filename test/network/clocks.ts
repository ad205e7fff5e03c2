/**
 * A process whose time of day is wrong, by a million seconds either way, changes nothing: leases are on the store's clock.
 */
import { it } from "@effect/vitest"
import { applyOnce, EffectStore, type IEffectStore } from "chamvi-effect"
import { Clock, Effect, Exit, type Scope, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { describe, expect } from "vitest"

const off = 1_000_000_000

const clockOffBy = (milliseconds: number) =>
  Effect.map(Clock.Clock, (clock): Clock.Clock =>
    Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + milliseconds,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + milliseconds)
    }))

/** The tests, over two stores on one ledger. */
export const wrongClocks = (
  name: string,
  there: boolean,
  connect: Effect.Effect<readonly [wrong: IEffectStore, right: IEffectStore], unknown, Scope.Scope>
) =>
  describe.skipIf(!there)(`${name}, and a process whose clock is wrong`, () => {
    for (const [which, milliseconds] of [["ahead", off], ["behind", -off]] as const) {
      it.live(`${which} by a million seconds: it takes nothing over, and is not taken over`, () =>
        Effect.scoped(Effect.gen(function*() {
          const [wrong, right] = yield* connect
          const clock = yield* clockOffBy(milliseconds)
          const key = randomUUID()
          const claim = (store: IEffectStore, claimId: string) =>
            store.claim([{ key, tool: "t", runId: "r", owner: claimId, claimId, lease: 60_000, fingerprint: "" }])
          const off = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Clock.Clock, clock)
          const held = (remaining: number | undefined) => {
            expect(remaining).toBeGreaterThan(30_000)
            expect(remaining).toBeLessThanOrEqual(60_000)
          }
          // its own claim, looked at with the right clock
          const [mine] = yield* off(claim(wrong, "wrong"))
          const [theirs] = yield* claim(right, "right")
          expect(theirs).toMatchObject({ _tag: "Held", owner: "wrong" })
          held(theirs?._tag === "Held" ? theirs.remaining : undefined)
          yield* off(wrong.release([{
            key,
            token: mine?._tag === "Claimed" ? mine.token : 0,
            verdict: "clean",
            cleared: false
          }]))
          // another's claim, looked at with the wrong one
          expect(yield* claim(right, "right")).toMatchObject([{ _tag: "Claimed", takenOver: false, doubt: "none" }])
          const [seen] = yield* off(claim(wrong, "wrong again"))
          expect(seen).toMatchObject({ _tag: "Held", owner: "right" })
          held(seen?._tag === "Held" ? seen.remaining : undefined)
          expect(yield* off(wrong.prune({ olderThan: "1 hour" }))).toBe(0)
          const [row] = yield* Stream.runCollect(right.list({ runId: "r" })).pipe(
            Effect.map((rows) => rows.filter((row) => row.key === key))
          )
          expect(Math.abs((row?.createdAt ?? 0) - (yield* Clock.currentTimeMillis))).toBeLessThan(60_000)
          // and a whole call each way
          const call = (store: IEffectStore, value: string) =>
            applyOnce({ key: `${key} call`, execute: () => Effect.succeed(value) }).pipe(
              Effect.provideService(EffectStore, store)
            )
          expect(yield* Effect.exit(off(call(wrong, "wrong")))).toEqual(Exit.succeed("wrong"))
          expect(yield* call(right, "right")).toBe("wrong")
          expect(yield* off(call(wrong, "once more"))).toBe("wrong")
        })))
    }
  })
