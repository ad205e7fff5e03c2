/**
 * One attempt in this process to settle a key: from its claim to its record or release, for all callers that share it.
 */
import { type Cause, Context, Effect, type Fiber } from "effect"
import { AsyncLocalStorage } from "node:async_hooks"
import type { Flags } from "../EffectEvent.ts"
import type { Applied, Call } from "./Call.ts"

/**
 * `Over` says nothing about the key: the attempt was interrupted, or lost its claim, and whoever still waits starts again.
 */
export type Ending =
  | { readonly _tag: "Applied"; readonly applied: Applied }
  | { readonly _tag: "Failed"; readonly cause: Cause.Cause<unknown> }
  | { readonly _tag: "Over" }

type ApplicationOptions = Pick<Call, "key" | "tool" | "fingerprint" | "transactional">

export class Application {
  readonly key: string
  readonly tool: string
  readonly fingerprint: string
  /** Whether its effect and record are one transaction. */
  readonly transactional: boolean
  private readonly waits = new Set<{ readonly on: Application }>()
  /** Those that are set. */
  flags: Partial<Flags> = {}
  ending: Ending | undefined = undefined
  /** Whether a hook may be running, so that leaving means to wait for its finalizers. */
  running = false
  /** Whether the last caller left: nobody joins any more. */
  cancelled = false
  /** Whether the claim was found taken over. */
  lost = false
  /** Asks the fiber to stop at its next interruptible point. */
  interrupt: () => void = () => {}
  /** The same for the fiber of its transaction, while there is one. */
  stopTransaction: (() => void) | undefined = undefined
  private controller: AbortController | undefined = undefined
  private readonly observers = new Set<(ending: Ending) => void>()
  private waiters = 0

  constructor({ fingerprint, key, tool, transactional }: ApplicationOptions) {
    this.key = key
    this.tool = tool
    this.fingerprint = fingerprint
    this.transactional = transactional
  }

  flag(flags: Partial<Flags>): void {
    this.flags = { ...this.flags, ...flags }
  }

  /** Aborts when the application is asked to stop: for hooks that are no Effects. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController()
    if (this.stopped) this.controller.abort()
    return this.controller.signal
  }

  get stopped(): boolean {
    return this.cancelled || this.lost
  }

  /** Asks the application to stop, since nobody waits for it any more, or its claim is lost. */
  stop(why: "cancelled" | "lost"): void {
    this[why] = true
    this.controller?.abort()
    this.interrupt()
    this.stopTransaction?.()
  }

  end(ending: Ending): void {
    this.ending = ending
    this.observers.forEach((observer) => observer(ending))
  }

  /** Waits for the end, whatever it will be, without a say in it. */
  get ended(): Effect.Effect<Ending> {
    return Effect.callback<Ending>((resume) => {
      if (this.ending !== undefined) return resume(Effect.succeed(this.ending))
      this.observers.add((ending) => resume(Effect.succeed(ending)))
    })
  }

  /**
   * Notes that a hook of this application waits for the end of another; answers how to take the note back. Two waits for
   * one application are two notes.
   */
  waitFor(on: Application): () => void {
    const wait = { on }
    this.waits.add(wait)
    return () => void this.waits.delete(wait)
  }

  get waitsFor(): ReadonlyArray<Application> {
    return Array.from(this.waits, ({ on }) => on)
  }

  /**
   * Joins those for whom the application runs. Answers how to leave them before the end, or `undefined` where it has ended
   * already. Who comes after the last one left is no more than told of the end.
   */
  join(observer: (ending: Ending) => void): Effect.Effect<void> | undefined {
    if (this.ending !== undefined) {
      observer(this.ending)
      return undefined
    }
    this.observers.add(observer)
    if (this.cancelled) return Effect.void
    this.waiters++
    return Effect.suspend(() => {
      this.observers.delete(observer)
      return this.leave
    })
  }

  // The last to leave stops the work and waits for its finalizers. While only a claim is pending there are none: the
  // application gives an unwanted grant back by itself.
  private get leave(): Effect.Effect<void> {
    if (--this.waiters > 0 || this.ending !== undefined) return Effect.void
    this.stop("cancelled")
    return this.running ? Effect.asVoid(this.ended) : Effect.void
  }
}

/**
 * The applications in whose `execute` the current fiber runs, the outermost first.
 */
export const Enclosing = Context.Reference<ReadonlyArray<Application>>("chamvi-effect/reconciliation/Enclosing", {
  defaultValue: () => []
})

/**
 * The same, for code between Promises: no fiber runs there, and an `execute` that reaches its own key over one would wait
 * for itself.
 */
export const across = new AsyncLocalStorage<ReadonlyArray<Application>>()

/** The applications in which the fiber runs, by its context, or by where its call came from. */
export const enclosingOf = (fiber: Fiber.Fiber<unknown, unknown>): ReadonlyArray<Application> => {
  const enclosing = fiber.getRef(Enclosing)
  return enclosing.length > 0 ? enclosing : across.getStore() ?? enclosing
}

/**
 * The circle that waiting for `target` from inside `enclosing` would close, as its keys, or `undefined`.
 */
export const circleOf = (
  enclosing: ReadonlyArray<Application>,
  target: Application
): ReadonlyArray<string> | undefined => {
  const seen = new Set<Application>()
  const search = (at: Application, path: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
    if (seen.has(at)) return undefined
    seen.add(at)
    const keys = [...path, at.key]
    if (enclosing.includes(at)) return keys
    for (const next of at.waitsFor) {
      const found = search(next, keys)
      if (found !== undefined) return found
    }
    return undefined
  }
  const found = search(target, [])
  if (found === undefined) return undefined
  const from = enclosing.findIndex((application) => application.key === found.at(-1))
  return [...enclosing.slice(from).map((application) => application.key), ...found]
}
