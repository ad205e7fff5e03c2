/**
 * The store's statements straight on a `node:sqlite` connection that nobody else uses.
 */
import { Effect, Result } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Query } from "../sql/dialect.ts"
import type { SqlExecutor } from "../sql/executor.ts"
import type { Row } from "../sql/rows.ts"
import { type Database, isBusy, retryBusy, sqlError } from "./database.ts"

type Rows = ReadonlyArray<Row>
type Answer = Result.Result<Rows, SqlError>

/** The most statements that share a commit. */
const largestGroup = 256

const failed = sqlError("execute")

/** What a statement does again, while other fibers run, for at most `busyTimeout` milliseconds of another's lock. */
const patient = <A>(
  effect: Effect.Effect<A, SqlError>,
  busyTimeout: number
): Effect.Effect<A, SqlError> => Effect.catchIf(effect, isBusy, () => retryBusy(effect, busyTimeout))

/** Each statement by itself, in the calling fiber. */
export const direct = (database: Database, busyTimeout: number): SqlExecutor => {
  const run = ({ params, sql }: Query): Effect.Effect<Rows, SqlError> =>
    patient(Effect.try({ try: () => database.valuesUnsafe(sql, params), catch: failed }), busyTimeout)
  return { read: run, write: run }
}

interface Waiting {
  readonly query: Query
  readonly resume: (answer: Effect.Effect<Rows, SqlError>) => void
  left: boolean
}

/**
 * Writes that arrive in one microtask turn share a transaction, and so a flush to the disk.
 *
 * **Details**
 *
 * A single write costs one plain statement and no turn of the event loop. With `eager` the first write of a turn does not
 * wait for others at all; it is for where a commit costs little more than its statement. Nobody is answered before the
 * commit. A statement that fails is undone alone; a commit that fails fails all of its statements.
 */
export const grouped = (database: Database, busyTimeout: number, eager: boolean): SqlExecutor => {
  const { handle, valuesUnsafe } = database
  const { read: alone } = direct(database, busyTimeout)
  const waiting: Array<Waiting> = []
  let turnHasWriter = false

  const attempt = ({ params, sql }: Query): Answer =>
    Result.try({ try: () => valuesUnsafe(sql, params), catch: failed })

  const control = (sql: string): Answer => attempt({ sql, params: [] })

  const inOneTransaction = (group: ReadonlyArray<Waiting>): Result.Result<ReadonlyArray<Answer>, SqlError> =>
    Result.flatMap(control("BEGIN IMMEDIATE"), () => {
      const answers = group.map(({ query }) => attempt(query))
      // some failures (a full disk) end the transaction, and with it what its other statements did
      const ended = handle.isTransaction ? control("COMMIT") : answers.find(Result.isFailure) ?? control("COMMIT")
      if (Result.isFailure(ended) && handle.isTransaction) control("ROLLBACK")
      return Result.map(ended, () => answers)
    })

  const execute = (group: ReadonlyArray<Waiting>): Result.Result<ReadonlyArray<Answer>, SqlError> =>
    group.length === 1
      ? Result.map(attempt(group[0]!.query), (rows) => [Result.succeed(rows)])
      : inOneTransaction(group)

  const answer = (group: ReadonlyArray<Waiting>, result: Result.Result<ReadonlyArray<Answer>, SqlError>) =>
    group.forEach(({ resume }, index) =>
      resume(Effect.fromResult(Result.flatMap(result, (answers) => answers[index]!)))
    )

  const flush = () => {
    turnHasWriter = false
    const group = waiting.splice(0, largestGroup).filter(({ left }) => !left)
    if (waiting.length > 0) startTurn()
    if (group.length === 0) return
    const result = execute(group)
    if (Result.isSuccess(result) || !isBusy(result.failure)) return answer(group, result)
    // another process writes: wait for it without blocking this one
    Effect.runFork(Effect.map(
      Effect.result(retryBusy(Effect.suspend(() => Effect.fromResult(execute(group))), busyTimeout)),
      (later) => answer(group, later)
    ))
  }

  const startTurn = () => {
    turnHasWriter = true
    queueMicrotask(flush)
  }

  const together = (query: Query) =>
    Effect.callback<Rows, SqlError>((resume) => {
      const entry: Waiting = { query, resume, left: false }
      waiting.push(entry)
      if (!turnHasWriter) startTurn()
      return Effect.sync(() => {
        entry.left = true
      })
    })

  return {
    read: alone,
    write: !eager ? together : (query) =>
      Effect.suspend(() => {
        if (turnHasWriter) return together(query)
        startTurn()
        return alone(query)
      })
  }
}
