/**
 * Writes the parts of one pass of a run into the run's log: in order, in batches, and each finished thing once, however often the run
 * is replayed.
 */
import { Deferred, Duration, Effect, Latch, Queue, type Scope } from "effect"
import { randomUUID } from "node:crypto"
import type { Publisher } from "../ai/Publisher.ts"
import type { StepPart } from "../ai/StepPart.ts"
import type { LogOf, RunParts } from "./RunParts.ts"
import { type Mark, StreamLog } from "./StreamLog.ts"
import { untilStored, type Values } from "./values.ts"

export interface StreamWriter extends Publisher {
  /** Answers when all that was published is stored, or may not be stored any more. */
  readonly flush: Effect.Effect<void>
}

export interface StreamWriterOptions {
  readonly parts: RunParts
  readonly log: LogOf
  readonly values: Values
}

/** How many parts wait to be written before those who publish do. */
const mostWaiting = 256

/** Parts are put into one row up to this size, in characters. */
const largestRow = 256 * 1024

/** How long a pass that is interrupted tries to store what it has published. */
const lastTry = "2 seconds"

type Delta = Extract<StepPart, { readonly type: "text-delta" | "reasoning-delta" | "tool-input-delta" }>

type Entry =
  | { readonly _tag: "Delta"; readonly part: Delta }
  /** Parts and what is complete with them, in one row: they are there together, or not at all. */
  | { readonly _tag: "Group"; readonly texts: ReadonlyArray<string>; readonly marks: ReadonlyArray<Mark> }
  | { readonly _tag: "Flush"; readonly done: Deferred.Deferred<void> }

/** What is written in one row. */
interface Row {
  readonly texts: Array<string>
  readonly marks: Array<Mark>
  size: number
}

const isDelta = (part: StepPart): part is Delta =>
  part.type === "text-delta" || part.type === "reasoning-delta" || part.type === "tool-input-delta"

/** Deltas that follow each other are one. */
const joined = (a: Delta, b: Delta): Delta | undefined => {
  if (a.id !== b.id || a.providerMetadata !== undefined || b.providerMetadata !== undefined) return undefined
  if (a.type === "tool-input-delta") {
    return b.type === "tool-input-delta" ? { ...a, delta: a.delta + b.delta } : undefined
  }
  return a.type === b.type ? { ...a, text: a.text + b.text } : undefined
}

/**
 * Makes the run's log this writer's: it stands at the end now, and earlier writers write no more. Answers what the log holds.
 */
export const takeOver = ({ append, marks }: RunParts, log: LogOf) =>
  Effect.gen(function*() {
    const writer = randomUUID()
    while (true) {
      const found = yield* marks(log)
      const seq = found.last + 1
      if (yield* append(log, { seq, writer, marks: "", data: "[]" })) return { writer, seq, marks: found.marks }
    }
  })

/** The writer of one pass. As its scope closes, it stores what it can. */
export const make = Effect.fnUntraced(function*(
  { log, parts, values }: StreamWriterOptions
): Effect.fn.Return<StreamWriter, never, Scope.Scope> {
  const { marks, seq: first, writer } = yield* untilStored(takeOver(parts, log))
  const held = StreamLog.of(marks)
  const entries = yield* Queue.bounded<Entry>(mostWaiting)
  const hurry = Latch.makeUnsafe(false)
  let flushing = 0
  let next = first + 1
  let lost = false
  const closed = Deferred.makeUnsafe<void>()
  const isClosed = () => Deferred.isDoneUnsafe(closed)
  let answers = 0
  /** Steps that have begun in this pass, and of whose answer nothing was published. */
  const quiet = new Set<number>()

  const encode = (part: StepPart): Effect.Effect<ReadonlyArray<string>> =>
    Effect.matchEffect(values.write(`a part of type ${part.type}`, part), {
      onSuccess: (text) => Effect.succeed([text]),
      onFailure: (error) =>
        Effect.as(Effect.logWarning("A part of a run's stream cannot be kept, and is left out", error), [])
    })

  const writeRow = ({ marks, texts }: Row) =>
    Effect.suspend(() => {
      if (lost || texts.length === 0 && marks.length === 0) return Effect.void
      const row = {
        seq: next,
        writer,
        marks: marks.length === 0 ? "" : JSON.stringify(marks),
        data: `[${texts.join(",")}]`
      }
      return Effect.flatMap(untilStored(parts.append(log, row)), (ours) => {
        if (ours) {
          next++
          return Effect.void
        }
        lost = true
        return Effect.logDebug(`Another execution of run ${log.runId} has taken over; this one publishes no more`)
      })
    })

  const write = Effect.fnUntraced(function*(batch: ReadonlyArray<Entry>) {
    let row: Row = { texts: [], marks: [], size: 0 }
    let delta: Delta | undefined
    const add = (texts: ReadonlyArray<string>, marks: ReadonlyArray<Mark> = []) =>
      Effect.suspend(() => {
        const size = texts.reduce((sum, { length }) => sum + length, 0)
        const before = row
        const isFull = row.size > 0 && row.size + size > largestRow
        if (isFull) row = { texts: [], marks: [], size: 0 }
        row.texts.push(...texts)
        row.marks.push(...marks)
        row.size += size
        return isFull ? writeRow(before) : Effect.void
      })
    const addDelta = Effect.suspend(() => {
      const part = delta
      delta = undefined
      return part === undefined ? Effect.void : Effect.flatMap(encode(part), add)
    })
    for (const entry of batch) {
      const both = entry._tag === "Delta" ? delta && joined(delta, entry.part) : undefined
      if (both === undefined) yield* addDelta
      if (entry._tag === "Delta") delta = both ?? entry.part
      else if (entry._tag === "Group") yield* add(entry.texts, entry.marks)
    }
    yield* addDelta
    yield* writeRow(row)
    batch.forEach((entry) => entry._tag === "Flush" && Deferred.doneUnsafe(entry.done, Effect.void))
  })

  const pause = Duration.isZero(Duration.fromInputUnsafe(parts.interval))
    ? Effect.void
    : Effect.raceFirst(Effect.sleep(parts.interval), hurry.await)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.flatMap(Queue.takeAll(entries), write), pause)))

  const flush = Effect.suspend(() => {
    if (isClosed()) return Effect.void
    const done = Deferred.makeUnsafe<void>()
    flushing++
    hurry.openUnsafe()
    return Effect.ensuring(
      Effect.raceFirst(
        Effect.andThen(Queue.offer(entries, { _tag: "Flush", done }), Deferred.await(done)),
        Deferred.await(closed)
      ),
      Effect.sync(() => --flushing === 0 && hurry.closeUnsafe())
    )
  })
  // an activity may outlive the pass that asked for it: it publishes no more, and waits for nobody
  const close = Effect.gen(function*() {
    Deferred.doneUnsafe(closed, Effect.void)
    while ((yield* Queue.clear(entries)).length > 0) yield* Effect.yieldNow
  })
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.raceFirst(flush, Effect.sleep(lastTry)), close))

  const offer = (entry: Entry): Effect.Effect<void> =>
    Effect.suspend(() => isClosed() ? Effect.void : Effect.asVoid(Queue.offer(entries, entry)))

  /** What is complete with the parts counts once they are on their way. */
  const publish = (published: ReadonlyArray<StepPart>, ...marks: ReadonlyArray<Mark>) =>
    Effect.flatMap(Effect.forEach(published, encode), (texts) =>
      Effect.andThen(
        offer({ _tag: "Group", texts: texts.flat(), marks }),
        Effect.sync(() => marks.forEach((mark) => held.add(mark)))
      ))

  const once = (step: number, name: string, ...published: ReadonlyArray<StepPart>) =>
    Effect.suspend(() => held.hasOnce(step, name) ? Effect.void : publish(published, ["once", step, name]))

  const beginning = (step: number): StepPart => ({ type: held.hasBegun(step) ? "step-restarted" : "start-step", step })

  return {
    begin: (step) =>
      Effect.suspend(() => {
        quiet.add(step)
        return Effect.as(publish([beginning(step)], ["begin", step]), `${first}.${++answers}`)
      }),
    live: (step, part) =>
      Effect.suspend(() => {
        quiet.delete(step)
        // a delta cannot change until its batch is written, and may grow until then
        return isDelta(part) ? offer({ _tag: "Delta", part }) : publish([part])
      }),
    written: (step, answer) => Effect.andThen(publish([], ["answer", step, answer]), flush),
    answered: (step, answer, { rest, whole }) =>
      Effect.suspend(() => {
        if (held.hasAnswer(step, answer)) return once(step, "rest", ...rest)
        // what an earlier generation has published, or this one that was cut off, counts no more
        const begins = held.hasBegun(step) && quiet.has(step)
          ? Effect.void
          : publish([beginning(step)], ["begin", step])
        return Effect.andThen(begins, publish(whole, ["answer", step, answer], ["once", step, "rest"]))
      }),
    once,
    flush
  }
})
