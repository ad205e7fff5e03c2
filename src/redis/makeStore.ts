/**
 * The store's operations over the scripts.
 */
import { Array as Arr, Duration, Effect, Option, Result, Stream } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { hash } from "node:crypto"
import type { Fenced, ResolveReply, Unreadable } from "../EffectRecord.ts"
import * as Record from "../EffectRecord.ts"
import type { EffectResolution } from "../EffectResolution.ts"
import { EffectRecordError, EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import { matches } from "../store/matches.ts"
import { encodeJson } from "../store/resolutionJson.ts"
import * as rows from "./rows.ts"
import * as scripts from "./scripts.ts"

/** What the store is made of. */
export interface Parts {
  readonly redis: Redis["Service"]
  readonly prefix: string
  readonly channel: string
  readonly changes: (name: string) => Stream.Stream<void, EffectStoreError>
  /** For tests: the time in milliseconds, in place of the server's. */
  readonly now: (() => number) | undefined
}

/** How many keys one `SCAN` looks at, and how many rows are looked at at once. */
const pageSize = 500

/** How many rows are read at once with their results, which may be large. */
const fullPageSize = 50

/** Each turn that is lost was lost to somebody else's change. */
const mostTurns = 100

/** A script by its digest, as `SCRIPT LOAD` would name it. Each has one key, so that a call goes to one node of a cluster. */
interface Script {
  readonly lua: string
  readonly sha: string
}

const script = (lua: string): Script => ({ lua, sha: hash("sha1", lua) })

const claim = script(scripts.claim)
const complete = script(scripts.complete)
const release = script(scripts.release)
const renew = script(scripts.renew)
const get = script(scripts.get)
const replace = script(scripts.replace)
const remove = script(scripts.remove)
const prune = script(scripts.prune)

/** Whole milliseconds that Lua and JavaScript both count exactly. */
const millis = (value: number): string => String(Math.max(0, Math.min(Math.ceil(value), 2 ** 52)))

/** Where a server that does not know a command begins to quote what it was sent with it. */
const quoted = /,? with args beginning with:.*/s

/** What the server or the client said, without the caller's values. */
const storeError = (operation: string, cause: unknown, key?: string): EffectStoreError => {
  const said = cause instanceof Error ? cause.message : String(cause)
  const problem = said.replace(quoted, "")
  return new EffectStoreError({
    operation,
    problem,
    ...(key === undefined ? {} : { key }),
    cause: problem === said ? cause : problem
  })
}

const readableError = (key: string, { problem, tool }: Unreadable): EffectRecordError =>
  new EffectRecordError({ key, tool, problem })

/**
 * Each item is a call of its own; the client sends those of one turn together. A failure names a key only where another
 * item did not fail: whoever is told the key of one asks again for the others, which would never end soon in an outage.
 */
const each =
  <Item, Reply>(one: (item: Item) => Effect.Effect<Reply, EffectStoreError>) =>
  (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>, EffectStoreError> =>
    items.length === 1
      ? Effect.map(one(items[0]!), (reply) => [reply])
      : Effect.flatMap(
        Effect.forEach(items, (item) => Effect.result(one(item)), { concurrency: "unbounded" }),
        (results) => {
          const [replies, failures] = Arr.partition(results, (result) => result)
          const [first] = failures
          if (first === undefined) return Effect.succeed(replies)
          return Effect.fail(replies.length > 0 ? first : storeError(first.operation, first.cause))
        }
      )

/** The store. It holds no state but its watchers. */
export const makeStore = ({ changes, channel, now, prefix, redis }: Parts): IEffectStore => {
  const time = (): string => now === undefined ? "" : millis(now())

  // `redis.eval` asks for the digest of a script at every call; it is known, and a server that has not seen the script says so
  const evaluate = ({ lua, sha }: Script, name: string, args: ReadonlyArray<string>) =>
    Effect.catch(
      redis.send("EVALSHA", sha, "1", name, ...args),
      (error) =>
        String(error.cause).includes("NOSCRIPT") ? redis.send("EVAL", lua, "1", name, ...args) : Effect.fail(error)
    )

  /** Runs a script on the key, and checks that its answer is one. */
  const run = (
    operation: string,
    what: Script,
    key: string,
    ...args: ReadonlyArray<string>
  ): Effect.Effect<rows.Answer, EffectStoreError> =>
    Effect.matchEffect(evaluate(what, prefix + key, [time(), ...args]), {
      onFailure: ({ cause }) => Effect.fail(storeError(operation, cause, key)),
      onSuccess: (answer) =>
        rows.isAnswer(answer)
          ? Effect.succeed(answer)
          : Effect.fail(storeError(operation, "the server's answer is not that of the script", key))
    })

  const fenced = (
    operation: string,
    what: Script,
    key: string,
    ...args: ReadonlyArray<string>
  ): Effect.Effect<Fenced, EffectStoreError> =>
    Effect.map(run(operation, what, key, ...args), ([answer]) => answer === "ok" ? "ok" : "lost")

  const find = (operation: string, key: string, ...brief: ReadonlyArray<"brief">): Effect.Effect<
    Result.Result<rows.Found | undefined, Unreadable>,
    EffectStoreError
  > => Effect.map(run(operation, get, key, ...brief), (answer) => rows.found(key, answer))

  const resolve = Effect.fnUntraced(function*(
    key: string,
    resolution: EffectResolution
  ): Effect.fn.Return<ResolveReply, EffectStoreError> {
    const json = yield* encodeJson(key, resolution)
    // read, decide by the one rule, and write if nothing changed in between
    for (let turn = 0; turn < mostTurns; turn++) {
      const found = yield* find("resolve", key)
      if (Result.isFailure(found)) {
        return yield* storeError("resolve", `${found.failure.problem}; remove the key instead`, key)
      }
      const [next, reply] = Record.resolve(found.success?.record, resolution, json, found.success?.now ?? 0)
      if (found.success === undefined || next === undefined) return reply
      const [answer] = yield* run("resolve", replace, key, found.success.revision, channel, ...rows.written(next))
      if (answer === "ok") return reply
    }
    return yield* storeError("resolve", "others always changed it first", key)
  })

  /** The effect keys of all rows, as the server comes upon them; each once. */
  const keys: Stream.Stream<ReadonlyArray<string>, EffectStoreError> = Stream.suspend(() => {
    const seen = new Set<string>()
    return Stream.paginate("0", (cursor: string) =>
      Effect.flatMap(
        Effect.mapError(
          redis.send("SCAN", cursor, "MATCH", `${escapeGlob(prefix)}*`, "COUNT", String(pageSize)),
          ({ cause }) => storeError("list", cause)
        ),
        (answer) => {
          if (!isPage(answer)) return Effect.fail(storeError("list", "the server's answer to SCAN is not one"))
          const [next, names] = answer
          const fresh = names.filter((name) => !seen.has(name))
          fresh.forEach((name) => seen.add(name))
          return Effect.succeed(
            [
              [fresh.map((name) => name.slice(prefix.length))],
              next === "0" ? Option.none() : Option.some(next)
            ] as const
          )
        }
      ))
  })

  const readAll = (...brief: ReadonlyArray<"brief">) => (page: ReadonlyArray<string>) =>
    Effect.flatMap(
      Effect.forEach(page, (key) => Effect.map(find("list", key, ...brief), (found) => [key, found] as const), {
        concurrency: "unbounded"
      }),
      (answers) =>
        Effect.forEach(answers, ([key, found]) =>
          Result.isFailure(found) ? Effect.fail(readableError(key, found.failure)) : Effect.succeed(found.success))
    )

  return {
    // they are sent together anyway; together they also cost this process a third less
    batch: true,
    claim: each(({ claimId, fingerprint, key, lease, owner, runId, tool }) =>
      Effect.map(run("claim", claim, key, tool, runId, owner, claimId, millis(lease), fingerprint), rows.claimReply)
    ),
    complete: each(({ fingerprint, key, outcome, result, token }) =>
      fenced("complete", complete, key, String(token), result, outcome, fingerprint, channel)
    ),
    release: each(({ cleared, key, token, verdict }) =>
      fenced("release", release, key, String(token), verdict, cleared ? "1" : "0", channel)
    ),
    renew: each(({ key, lease, token }) => fenced("renew", renew, key, String(token), millis(lease))),
    get: (key) =>
      Effect.flatMap(find("get", key), (found) =>
        Result.isFailure(found)
          ? Effect.fail(readableError(key, found.failure))
          : Effect.succeed(found.success?.record)),
    // The server keeps no order. What matches is found and sorted first, without results, and then read once more, in pages.
    list: (filter = {}) => {
      const isMatch = matches(filter)
      const places = Stream.runFold(
        Stream.mapEffect(keys, readAll("brief")),
        (): Array<readonly [born: number, key: string]> => [],
        (all, page) => {
          for (const found of page)
            if (found !== undefined && isMatch(found.record)) all.push([found.born, found.record.key])
          return all
        }
      )
      return Stream.unwrap(Effect.map(places, (all) => {
        all.sort(([bornA, keyA], [bornB, keyB]) => bornA - bornB || (keyA < keyB ? -1 : 1))
        return Stream.fromIterable(all).pipe(
          Stream.map(([, key]) => key),
          Stream.grouped(fullPageSize),
          Stream.mapEffect(readAll()),
          Stream.flatMap((page) =>
            Stream.fromIterable(
              page.flatMap((found) => found !== undefined && isMatch(found.record) ? [found.record] : [])
            )
          )
        )
      }))
    },
    resolve,
    remove: (key) => Effect.map(run("remove", remove, key, channel), ([answer]) => answer === "1"),
    prune: ({ olderThan }) => {
      const age = millis(Duration.toMillis(olderThan))
      return Stream.runFold(
        Stream.mapEffect(
          keys,
          (page) => Effect.forEach(page, (key) => run("prune", prune, key, age, channel), { concurrency: "unbounded" })
        ),
        () => 0,
        (removed, answers) => removed + answers.filter(([answer]) => answer === "1").length
      )
    },
    changes: (key) => changes(prefix + key)
  }
}

/** The prefix as a pattern of `SCAN` that matches nothing else. */
const escapeGlob = (prefix: string): string => prefix.replace(/[\\*?[\]^-]/g, "\\$&")

const isPage = (answer: unknown): answer is readonly [string, ReadonlyArray<string>] =>
  Array.isArray(answer) && typeof answer[0] === "string" && rows.isAnswer(answer[1])
