/**
 * The readers of a call as Effect has them: Streams, an Effect of the end, and web streams for the AI SDK's conversions.
 */
import { Cause, Effect, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { AiError } from "../AiError.ts"
import type { CallReader, End, LiveCall } from "./LiveCall.ts"
import { restored } from "./openStream.ts"
import type { Part } from "./PartLog.ts"

const isFailure = ({ type }: Part): boolean => type === "error" || type === "abort"

const failed = (live: LiveCall): Effect.Effect<never, unknown> =>
  Effect.failCause(live.failure ?? Cause.die(new Error("a call that has failed has no failure")))

/** A reader for as long as a scope is open: leaving it, and what that ends, is waited for. */
const joined = (live: LiveCall) =>
  Effect.acquireRelease(Effect.sync(() => live.join()), (reader) => Effect.promise(reader.leave))

/** Waits until `look` has something to say about what the reader has in front of it. */
const looking = <A, E>(
  reader: CallReader,
  look: () => Effect.Effect<A, E> | undefined
): Effect.Effect<A, E> =>
  Effect.callback((resume) => {
    let forget = () => {}
    const again = (): void => {
      const found = look()
      if (found === undefined) forget = reader.whenMore(again)
      else resume(found)
    }
    again()
    return Effect.sync(() => forget())
  })

const pull = (live: LiveCall, reader: CallReader) => {
  let hasFailed = false
  return looking<NonEmptyReadonlyArray<Part>, unknown>(reader, () => {
    if (hasFailed) return failed(live)
    const parts = reader.take()
    const failure = parts.findIndex(isFailure)
    if (failure >= 0) {
      hasFailed = true
      parts.length = failure
    }
    if (parts.length > 0) return Effect.succeed(parts.map(restored) as [Part, ...Array<Part>])
    if (hasFailed) return failed(live)
    if (!live.log.ended) return undefined
    return live.failure === undefined ? Cause.done() : failed(live)
  })
}

/** All parts. It fails where the call does. */
export const partsOf = (live: LiveCall): Stream.Stream<Part, unknown> =>
  Stream.unwrap(Effect.map(joined(live), (reader) => Stream.fromPull(Effect.succeed(pull(live, reader)))))

/** What the call has come to. Reads it to its end, and fails as soon as it fails. */
export const endOf = (live: LiveCall): Effect.Effect<End, unknown> =>
  Effect.scoped(Effect.flatMap(joined(live), (reader) =>
    looking<End, unknown>(reader, () => {
      // what nobody wants is not kept for this reader
      reader.take()
      if (live.failure !== undefined) return failed(live)
      return live.log.ended ? Effect.succeed(live.end!) : undefined
    })))

/** How a web stream says that the call has failed: as a part, or by breaking off. */
export type OnFailure = "part" | "break"

/** The parts as a web stream, as they come from the SDK. Cancelling it is leaving. */
export const webParts = (live: LiveCall, reader: CallReader, onFailure: OnFailure): ReadableStream<Part> =>
  new ReadableStream({
    async pull(controller) {
      const part = await reader.next()
      const broken = onFailure === "break" && (part === undefined ? live.failure !== undefined : isFailure(part))
      if (part !== undefined && !broken) return controller.enqueue(part)
      if (broken) controller.error(Cause.squash(live.failure!))
      else controller.close()
      await reader.leave()
    },
    cancel: () => reader.leave()
  }, { highWaterMark: 0 })

/** What `convert` makes of the parts, as a Stream. What the conversion itself fails with is an `AiError`. */
export const converted = <A>(
  live: LiveCall,
  onFailure: OnFailure,
  convert: (parts: ReadableStream<Part>) => ReadableStream<A>
): Stream.Stream<A, unknown> =>
  Stream.unwrap(Effect.map(joined(live), (reader) =>
    Stream.catch(
      Stream.fromReadableStream({
        evaluate: () => convert(webParts(live, reader, onFailure)),
        onError: (error) => error
      }),
      (error) =>
        onFailure === "break" && live.failure !== undefined
          ? Stream.failCause(live.failure)
          : Stream.fail(AiError.from(error))
    )))
