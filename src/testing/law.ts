/**
 * What a law of a store is, and the words in which laws are written.
 */
import { Clock, Context, type Duration, Effect, Equal, Formatter, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { ClaimReply, ClaimRequest, CompleteItem, EffectRecord, Fenced, ReleaseItem } from "../EffectRecord.ts"
import { EffectStore, type IEffectStore } from "../EffectStore.ts"
import type { EffectRecordError, EffectStoreError } from "../errors.ts"
import * as RecordedResult from "../RecordedResult.ts"

/**
 * A law that a store broke, and how.
 *
 * @category errors
 * @since 0.1.0
 */
export class LawViolation
  extends Schema.TaggedError<LawViolation>("chamvi-effect/testing/LawViolation")("LawViolation", {
    /** What was looked at. */
    what: Schema.String,
    expected: Schema.String,
    actual: Schema.String
  })
{
  override get message(): string {
    return `${this.what}: expected ${this.expected}, got ${this.actual}`
  }
}

/**
 * The store's clock in the hands of a test: it stands still but for `advance`.
 *
 * @category services
 * @since 0.1.0
 */
export class StoreClock extends Context.Service<StoreClock, {
  /** Moves the clock of the store forward by whole milliseconds. */
  readonly advance: (milliseconds: number) => Effect.Effect<void>
}>()("chamvi-effect/testing/law/StoreClock") {
  /** For a store whose clock is Effect's `Clock`: a `TestClock`, which laws and store both have. */
  static readonly layerTestClock: Layer.Layer<StoreClock | TestClock.TestClock> = Layer.succeed(
    StoreClock,
    { advance: (milliseconds) => TestClock.adjust(milliseconds) }
  ).pipe(Layer.provideMerge(Layer.suspend(() => TestClock.layer())))
}

/**
 * A law: it succeeds where the store keeps it.
 *
 * @category models
 * @since 0.1.0
 */
export type Law = Effect.Effect<
  void,
  LawViolation | EffectStoreError | EffectRecordError,
  EffectStore | StoreClock
>

/**
 * Laws by what they say.
 *
 * @category models
 * @since 0.1.0
 */
export type Laws = Readonly<Record<string, Law>>

/** What a law works with. */
export interface Subject {
  readonly store: IEffectStore
  readonly advance: (milliseconds: number) => Effect.Effect<void>
  /** A name that no other law, and no other run, uses. */
  readonly fresh: (name?: string) => string
  /** Claims one key; `fresh` values for whatever is not given. */
  readonly claim: (
    request: Partial<ClaimRequest> & { readonly key: string }
  ) => Effect.Effect<ClaimReply, EffectStoreError>
  readonly complete: (
    item: Partial<CompleteItem> & Pick<CompleteItem, "key" | "token">
  ) => Effect.Effect<Fenced, EffectStoreError>
  readonly release: (
    item: Partial<ReleaseItem> & Pick<ReleaseItem, "key" | "token">
  ) => Effect.Effect<Fenced, EffectStoreError>
  readonly renew: (key: string, token: number, lease: number) => Effect.Effect<Fenced, EffectStoreError>
  /** A key that is claimed, and the claim's token. */
  readonly held: (
    request?: Partial<ClaimRequest>
  ) => Effect.Effect<{ readonly key: string; readonly token: number }, LawViolation | EffectStoreError>
  /** The row of a key, which must be there. */
  readonly row: (
    key: string
  ) => Effect.Effect<EffectRecord, LawViolation | EffectStoreError | EffectRecordError>
}

export const fail = (what: string, expected: string, actual: unknown): Effect.Effect<never, LawViolation> =>
  Effect.fail(
    new LawViolation({ what, expected, actual: typeof actual === "string" ? actual : Formatter.format(actual) })
  )

/** Fails unless the two are equal, deeply. */
export const same = <A>(what: string, actual: A, expected: A): Effect.Effect<void, LawViolation> =>
  Equal.equals(actual, expected) ? Effect.void : fail(what, Formatter.format(expected), actual)

/** Fails unless the reply is of this kind, and answers it. */
export const is = <Tag extends ClaimReply["_tag"]>(
  what: string,
  reply: ClaimReply,
  tag: Tag
): Effect.Effect<Extract<ClaimReply, { readonly _tag: Tag }>, LawViolation> =>
  reply._tag === tag
    ? Effect.succeed(reply as Extract<ClaimReply, { readonly _tag: Tag }>)
    : fail(what, tag, reply)

/** Sleeps in real time, for what no moved clock can bring about. */
export const sleepReally = (duration: Duration.Input): Effect.Effect<void> =>
  Effect.provideService(Effect.sleep(duration), Clock.Clock, Clock.Clock.defaultValue())

const first = <A>(operation: string, replies: ReadonlyArray<A>): Effect.Effect<A> =>
  replies.length === 1
    ? Effect.succeed(replies[0] as A)
    : Effect.die(new Error(`${operation} answered ${replies.length} replies to one item`))

/** The text of a recorded value. */
export const resultOf = (value: unknown): string => RecordedResult.fromJson(JSON.stringify(value))

const subject = Effect.gen(function*() {
  const store = yield* EffectStore
  const { advance } = yield* StoreClock
  // not of Effect's Random, which a test may have seeded: rows of an earlier run may still be there
  const run = globalThis.crypto.randomUUID()
  let names = 0
  const fresh = (name = "name") => `${name}-${++names}-${run}`
  const claim: Subject["claim"] = (request) =>
    Effect.flatMap(
      store.claim([{
        tool: "tool",
        runId: "run",
        owner: "owner",
        claimId: fresh("claim"),
        lease: 1_000,
        fingerprint: "fingerprint",
        ...request
      }]),
      (replies) => first("claim", replies)
    )
  const made: Subject = {
    store,
    advance,
    fresh,
    claim,
    complete: (item) =>
      Effect.flatMap(
        store.complete([{ result: resultOf("done"), outcome: "executed", fingerprint: "fingerprint", ...item }]),
        (replies) => first("complete", replies)
      ),
    release: (item) =>
      Effect.flatMap(
        store.release([{ verdict: "clean", cleared: false, ...item }]),
        (replies) => first("release", replies)
      ),
    renew: (key, token, lease) =>
      Effect.flatMap(store.renew([{ key, token, lease }]), (replies) => first("renew", replies)),
    held: (request = {}) => {
      const key = request.key ?? fresh("key")
      return Effect.flatMap(
        claim({ ...request, key }),
        (reply) => Effect.map(is("a claim of a new key", reply, "Claimed"), ({ token }) => ({ key, token }))
      )
    },
    row: (key) =>
      Effect.filterOrElse(
        store.get(key),
        (record) => record !== undefined,
        () => fail("get of a key that has a row", "the row", undefined)
      )
  }
  return made
})

/** A law out of what it does with a store. */
export const law = (
  body: (subject: Subject) => Effect.fn.Return<void, LawViolation | EffectStoreError | EffectRecordError>
): Law => Effect.flatMap(subject, Effect.fnUntraced(body))
