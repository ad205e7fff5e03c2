/**
 * A store and the plain ledger, step by step: the same calls to both, and the same answers and rows of both.
 */
import { Effect, Formatter, Stream } from "effect"
import type { EffectRecord, Fenced } from "../../EffectRecord.ts"
import { EffectResolution } from "../../EffectResolution.ts"
import type { EffectRecordError, EffectStoreError } from "../../errors.ts"
import * as RecordedResult from "../../RecordedResult.ts"
import type { IEffectStore, ListFilter } from "../../store/IEffectStore.ts"
import { resultOf } from "../law.ts"
import type { Time } from "./clock.ts"
import { Ledger, type Resolved } from "./ledger.ts"
import { calls, type Operation } from "./operations.ts"

/** Where a store and the ledger part. */
export interface Difference {
  /** How many calls went well before. */
  readonly after: number
  readonly what: string
  readonly expected: string
  readonly actual: string
}

type Broken = EffectStoreError | EffectRecordError

type Of<Kind extends Operation["do"]> = Extract<Operation, { readonly do: Kind }>

const resolutions: Readonly<Record<Of<"resolve">["as"], readonly [EffectResolution, Resolved]>> = {
  "applied": [EffectResolution.applied(), {
    as: "applied",
    result: RecordedResult.unavailable("a reason"),
    available: false
  }],
  "applied with a result": [EffectResolution.applied(7), { as: "applied", result: resultOf(7), available: true }],
  "applied with undefined": [EffectResolution.applied(undefined), {
    as: "applied",
    result: RecordedResult.fromJson(undefined),
    available: true
  }],
  "notApplied": [EffectResolution.notApplied, { as: "notApplied" }],
  "unknown": [EffectResolution.unknown, { as: "unknown" }]
}

/** Why a result is unavailable is the store's own wording. */
const worded = <A>(value: A & { readonly result?: string | undefined }): A =>
  value.result !== undefined && RecordedResult.isUnavailable(value.result)
    ? { ...value, result: RecordedResult.unavailable("a reason") }
    : value

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null

/** Whether two rows, or replies, or lists of them, say the same; written out, since it is asked at every step. */
const alike = (one: unknown, other: unknown): boolean => {
  if (one === other) return true
  if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false
  for (const name in one) if (!alike(one[name], other[name])) return false
  for (const name in other) if (!(name in one) && other[name] !== undefined) return false
  return true
}

/** Of two rows, or two replies, the members in which they differ. */
const differing = (actual: unknown, expected: unknown): readonly [actual: unknown, expected: unknown] => {
  if (!isObject(actual) || !isObject(expected) || Array.isArray(expected)) return [actual, expected]
  const [here, there] = [actual, expected].map((value) => new Map(Object.entries(value)))
  const names = [...new Set([...here!.keys(), ...there!.keys()])].filter((name) =>
    !alike(here!.get(name), there!.get(name))
  )
  return [here, there].map((members) => Object.fromEntries(names.map((name) => [name, members!.get(name)]))) as [
    unknown,
    unknown
  ]
}

/** Runs the sequence on keys of these names, and answers the first difference. */
export const lockstep = Effect.fnUntraced(function*(
  store: IEffectStore,
  time: Time,
  names: ReadonlyArray<string>,
  sequence: ReadonlyArray<Operation>
): Effect.fn.Return<Difference | undefined> {
  const ledger = new Ledger()
  /** All tokens that were granted for a key, in order, and the highest that its row ever had; they outlive the row. */
  const tokens = new Map(names.map((key) => [key, { granted: Array<number>(), highest: 0 }]))
  const differences: Array<Omit<Difference, "after">> = []

  const agree = (what: string, actual: unknown, expected: unknown): void => {
    if (alike(actual, expected)) return
    const [here, there] = differing(actual, expected)
    differences.push({ what, expected: Formatter.format(there), actual: Formatter.format(here) })
  }

  const nameOf = ({ key }: { readonly key: number }): string => names[key]!

  const tokenOf = (operation: Of<"complete" | "release" | "renew">): number => {
    const { granted, highest } = tokens.get(nameOf(operation))!
    const back = ["newest", "before", "long before"].indexOf(operation.token) + 1
    return back > 0 && granted.length > 0 ? granted.at(-Math.min(back, granted.length))! : highest + 1
  }

  /** The token that the store chose, if it is one that was never there before, and else one that it may choose. */
  const newToken = (key: string, chosen: number | undefined): number => {
    const { highest } = tokens.get(key)!
    return Number.isSafeInteger(chosen) && chosen! > highest ? chosen! : highest + 1
  }

  const remember = (key: string, granted: boolean): void => {
    const known = tokens.get(key)!
    const token = ledger.get(key)?.token ?? 0
    if (granted && known.granted.at(-1) !== token) known.granted.push(token)
    known.highest = Math.max(known.highest, token)
  }

  const rows: Effect.Effect<ReadonlyMap<string, EffectRecord | undefined>, Broken> = Effect.map(
    Effect.forEach(names, (key) => store.get(key), { concurrency: "unbounded" }),
    (found) => new Map(found.map((row, index) => [names[index]!, row && worded(row)]))
  )

  const listed = (filter: ListFilter): Effect.Effect<ReadonlyArray<EffectRecord>, Broken> =>
    Effect.map(
      Stream.runCollect(store.list(filter)),
      (found) => found.filter(({ key }) => names.includes(key)).map(worded)
    )

  const claim = Effect.fnUntraced(function*(operations: ReadonlyArray<Of<"claim">>) {
    const requests = operations.map((operation) => {
      const { claimId, fingerprint, lease, owner, runId, tool } = operation
      return { key: nameOf(operation), tool, runId, owner, claimId, lease: lease * time.unit, fingerprint }
    })
    const replies = yield* store.claim(requests)
    const after = yield* rows
    agree("the number of replies", replies.length, requests.length)
    for (const [index, request] of requests.entries()) {
      const reply = replies[index]
      const before = ledger.get(request.key)
      // a refusal tells the time too, where a lease is under way
      const at = time.of(
        reply?._tag === "Held" && before?.status === "held" && before.leaseEnd > time.now()
          ? before.leaseEnd - reply.remaining
          : after.get(request.key)?.updatedAt
      )
      const token = newToken(request.key, reply?._tag === "Claimed" ? reply.token : undefined)
      const expected = ledger.claim(request, at, token)
      agree("the reply", reply && worded(reply), expected)
      remember(request.key, expected._tag === "Claimed")
    }
    return after
  })

  /** `complete`, `release` and `renew`: fenced writes of one form. */
  const fenced = Effect.fnUntraced(function*<Item extends { readonly key: string }>(
    items: ReadonlyArray<Item>,
    write: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Fenced>, EffectStoreError>,
    model: (item: Item, at: number) => Fenced
  ) {
    const answers = yield* write(items)
    const after = yield* rows
    agree("the number of answers", answers.length, items.length)
    for (const [index, item] of items.entries()) {
      agree("the answer", answers[index], model(item, time.of(after.get(item.key)?.updatedAt)))
    }
    return after
  })

  const itemOf = (operation: Of<"complete" | "release" | "renew">) => ({
    key: nameOf(operation),
    token: tokenOf(operation)
  })

  const resolve = Effect.fnUntraced(function*(operation: Of<"resolve">) {
    const key = nameOf(operation)
    const [resolution, resolved] = resolutions[operation.as]
    const answer = yield* store.resolve(key, resolution)
    const after = yield* rows
    const row = after.get(key)
    agree("the answer", answer, ledger.resolve(key, resolved, time.of(row?.updatedAt), newToken(key, row?.token)))
    remember(key, false)
    return after
  })

  const list = Effect.fnUntraced(function*(operation: Of<"list">) {
    const from = (units: number | undefined) => units === undefined ? undefined : time.now() + units
    const filter: ListFilter = {
      runId: operation.runId,
      // never without one of them: there may be a million rows of others
      tool: operation.tool ?? (operation.runId === undefined ? "a" : undefined),
      status: operation.status,
      doubt: operation.doubt,
      updatedSince: from(operation.updatedSince),
      updatedBefore: from(operation.updatedBefore)
    }
    agree(`the rows of list(${Formatter.format(filter)})`, yield* listed(filter), ledger.list(filter))
    return yield* rows
  })

  const prune = Effect.fnUntraced(function*(operation: Of<"prune">) {
    const olderThan = operation.olderThan * time.unit
    const removed = yield* store.prune({ olderThan })
    const after = yield* rows
    const went = ledger.prune(time.now() - olderThan).length
    if (time.exact) {
      agree("how many rows were removed", removed, went)
    } else {
      // of rows that changed just now it cannot be known whether they were old already, nor whose else were
      const ours = went + ledger.prune(time.latest() - olderThan, (key) => after.get(key) === undefined).length
      if (removed < ours) agree("how many rows were removed", removed, ours)
    }
    return after
  })

  const call = (operations: ReadonlyArray<Operation>) => {
    const operation = operations[0]!
    switch (operation.do) {
      case "claim":
        return claim(operations as ReadonlyArray<Of<"claim">>)
      case "complete":
        return fenced(
          (operations as ReadonlyArray<Of<"complete">>).map((item) => ({
            ...itemOf(item),
            result: resultOf(item.result),
            outcome: item.outcome,
            fingerprint: item.fingerprint
          })),
          store.complete,
          (item, at) => ledger.complete(item, at)
        )
      case "release":
        return fenced(
          (operations as ReadonlyArray<Of<"release">>).map((item) => ({
            ...itemOf(item),
            verdict: item.verdict,
            cleared: item.cleared
          })),
          store.release,
          (item, at) => ledger.release(item, at)
        )
      case "renew":
        return fenced(
          (operations as ReadonlyArray<Of<"renew">>).map((item) => ({
            ...itemOf(item),
            lease: item.lease * time.unit
          })),
          store.renew,
          (item, at) => ledger.renew(item, at)
        )
      case "resolve":
        return resolve(operation)
      case "list":
        return list(operation)
      case "remove":
        return Effect.flatMap(store.remove(nameOf(operation)), (removed) => {
          agree("the answer", removed, ledger.remove(nameOf(operation)))
          return rows
        })
      case "prune":
        return prune(operation)
      case "wait":
        return Effect.andThen(time.wait(operation.for), rows)
    }
  }

  const step = Effect.fnUntraced(function*(operations: ReadonlyArray<Operation>) {
    const found = yield* call(operations)
    for (const key of names) agree(`the row of key ${names.indexOf(key)}`, found.get(key), ledger.get(key))
    time.next()
  })

  // only at the end, besides the lists that the sequence asks for: a list may cost a store a look at all its keys
  const lists = Effect.map(
    Effect.forEach(["a", "b"], (tool) => listed({ tool })),
    (found) => {
      for (const [index, tool] of ["a", "b"].entries()) {
        agree(`the rows of tool ${tool}`, found[index], ledger.list({ tool }))
      }
    }
  )

  const checked = (check: Effect.Effect<void, Broken>) =>
    check.pipe(
      Effect.catch((error) => Effect.sync(() => agree("the call", error.message, "an answer"))),
      Effect.catchDefect((defect) => Effect.sync(() => agree("the call", defect, "an answer")))
    )

  const made = calls(sequence)
  for (const [after, operations] of made.entries()) {
    yield* checked(step(operations))
    if (differences[0] !== undefined) return { after, ...differences[0] }
  }
  yield* checked(lists)
  return differences[0] === undefined ? undefined : { after: made.length, ...differences[0] }
})
