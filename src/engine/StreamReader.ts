/**
 * Reads a run's stream: what is stored, and then what comes, until the run rests. It reads from storage only, at its own pace: a
 * slow reader holds up nobody, and what it has seen is there for the next one.
 */
import { Effect, Option, Stream } from "effect"
import type { EngineStoreError, RunNotFoundError } from "./errors.ts"
import { isOver, type RunRow } from "./RunIndex.ts"
import type { RestPart, RunPart, StreamedPart } from "./RunPart.ts"
import type { RunParts } from "./RunParts.ts"
import type { Runs } from "./runs.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface StreamOptions {
  /**
   * Goes on behind the part of this cursor. One that is no cursor of this run (the `Last-Event-ID` of another one, a pruned run of
   * the same id) begins at the beginning.
   */
  readonly after?: string | undefined
  /**
   * Whether to go on where the run waits for a person, or has failed and may be retried; then only a completed or cancelled run
   * ends the stream. Default: `false`.
   */
  readonly follow?: boolean | undefined
}

/** How many rows are read at once. */
const rowsAtOnce = 64

/** How far a reader is. */
interface Position {
  readonly incarnation: string
  /** The next row to read, and how many of its parts were read before. */
  readonly seq: number
  readonly skip: number
  /** The last part's cursor. */
  readonly cursor: string
  /** The rest that was told there. */
  readonly rest: string | undefined
}

const tagOf = ({ incarnation }: RunRow): string => incarnation.slice(0, 8)

const cursorOf = (row: RunRow, seq: number, index: number): string => `${tagOf(row)}.${seq}.${index}`

const positionOf = (row: RunRow, cursor: string | undefined): Position => {
  const [, tag, seq = "0", skip = "0", rest] = cursor?.match(/^([^.]*)\.(\d{1,15})\.(\d{1,15})(?:\.([\w-]+))?$/) ?? []
  const { incarnation } = row
  return tag === tagOf(row)
    ? { incarnation, seq: Number(seq), skip: Number(skip), cursor: cursorOf(row, Number(seq), Number(skip)), rest }
    : { incarnation, seq: 0, skip: 0, cursor: cursorOf(row, 0, 0), rest: undefined }
}

/** How the run rests, and a name for it: the same rest is told once. */
const restOf = (row: RunRow): readonly [name: string, part: RestPart] | undefined => {
  switch (row.status) {
    case "completed":
      return ["completed", { type: "run-completed" }]
    case "cancelled":
      return ["cancelled", { type: "run-cancelled" }]
    case "failed":
      return [`failed-${row.retries}`, { type: "run-failed", failure: row.failure! }]
    case "waiting":
      return row.cancelling ? undefined : ["waiting", { type: "run-waiting", approvals: row.approvals }]
  }
  return undefined
}

export interface StreamReaderOptions {
  readonly runs: Pick<Runs, "found" | "valuesOf">
  readonly parts: Pick<RunParts, "read">
}

export const make = ({ parts, runs }: StreamReaderOptions) => {
  /** The parts from a position on, and where they end; nothing where the log ends. */
  const readFrom = Effect.fnUntraced(function*(row: RunRow, position: Position) {
    const rows = yield* parts.read(row, Math.max(position.seq - 1, 0), rowsAtOnce)
    if (rows.length === 0) return undefined
    const values = runs.valuesOf(row.runId)
    const streamed: Array<StreamedPart> = []
    for (const { data, seq } of rows) {
      const skip = seq === position.seq ? position.skip : 0
      const all = (yield* values.read(data)) as ReadonlyArray<RunPart>
      all.slice(skip).forEach((part, index) => streamed.push({ cursor: cursorOf(row, seq, skip + index + 1), part }))
    }
    const { seq } = rows.at(-1)!
    const cursor = streamed.at(-1)?.cursor ?? position.cursor
    const rest = streamed.length === 0 && seq === position.seq ? position.rest : undefined
    return { streamed, behind: { ...position, seq: seq + 1, skip: 0, cursor, rest } satisfies Position }
  })

  /** What there is for the reader on this row, if there is anything. */
  const look = Effect.fnUntraced(function*(row: RunRow, position: Position, follow: boolean) {
    // the row was read before the log is: where it says that the run rests, all parts are there
    const found = yield* readFrom(row, position)
    if (found !== undefined) return Option.some([found.streamed, Option.some(found.behind)] as const)
    const rest = restOf(row)
    if (rest === undefined) return Option.none()
    const [name, part] = rest
    const told = position.rest === name
    const ends = isOver(row) || !follow
    if (told && !ends) return Option.none()
    return Option.some(
      [
        told ? [] : [{ cursor: `${position.cursor}.${name}`, part } satisfies StreamedPart],
        ends ? Option.none<Position>() : Option.some({ ...position, rest: name })
      ] as const
    )
  })

  return (
    runId: string,
    { after, follow = false }: StreamOptions = {}
  ): Stream.Stream<StreamedPart, RunNotFoundError | EngineStoreError> =>
    Stream.paginate(
      undefined as Position | undefined,
      (position) =>
        runs.found(runId, (row) =>
          look(row, position?.incarnation === row.incarnation ? position : positionOf(row, after), follow))
    )
}
