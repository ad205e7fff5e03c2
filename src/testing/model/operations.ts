/**
 * What a random sequence is made of. Everything repeats on purpose: few keys, few claimIds, stale tokens.
 *
 * Times are in units: a millisecond for a clock that the test moves, and so long for one that it cannot move that a lease
 * is either over at once or never.
 */
import { Arbitrary, Schema } from "effect"

/** What is said more than once is asked for more often. */
const of = <A>(count: number, value: A): ReadonlyArray<A> => Array.from({ length: count }, () => value)

const Key = Schema.Literals([...of(4, 0), ...of(2, 1), 2])
const Fingerprint = Schema.Literals(["f1", "f2"])
const Lease = Schema.Literals([10, 5, 0])

/** A token of the key: the newest that was given, one or two before it, or one that never was given. */
const Token = Schema.Literals([...of(6, "newest"), "before", "before", "long before", "never given"])

/** Whether it goes into one batch with the operation before, where the two are of a kind and about different keys. */
const together = Schema.Boolean

const Claim = Schema.Struct({
  do: Schema.Literal("claim"),
  key: Key,
  tool: Schema.Literals([...of(7, "a"), "b"]),
  runId: Schema.Literals(["r1", "r2"]),
  owner: Schema.Literals(["o1", "o2"]),
  claimId: Schema.Literals(["c1", "c2", "c3", "c4"]),
  lease: Lease,
  fingerprint: Fingerprint,
  together
})

const Complete = Schema.Struct({
  do: Schema.Literal("complete"),
  key: Key,
  token: Token,
  result: Schema.Literals([1, 2]),
  outcome: Schema.Literals(["executed", "reconciled"]),
  fingerprint: Fingerprint,
  together
})

const Release = Schema.Struct({
  do: Schema.Literal("release"),
  key: Key,
  token: Token,
  verdict: Schema.Literals(["clean", "tried", "inDoubt"]),
  cleared: Schema.Literals([false, false, true]),
  together
})

const Renew = Schema.Struct({ do: Schema.Literal("renew"), key: Key, token: Token, lease: Lease, together })

const Resolve = Schema.Struct({
  do: Schema.Literal("resolve"),
  key: Key,
  as: Schema.Literals(["notApplied", "unknown", "applied", "applied with a result", "applied with undefined"])
})

const List = Schema.Struct({
  do: Schema.Literal("list"),
  runId: Schema.UndefinedOr(Schema.Literals(["r1"])),
  tool: Schema.UndefinedOr(Schema.Literals(["a"])),
  status: Schema.UndefinedOr(Schema.Literals(["held", "released", "recorded"])),
  doubt: Schema.UndefinedOr(Schema.Literals(["none", "tried", "inDoubt"])),
  /** Milliseconds from the present time. */
  updatedSince: Schema.UndefinedOr(Schema.Literals([-5, 0])),
  updatedBefore: Schema.UndefinedOr(Schema.Literals([-5, 0]))
})

const Wait = Schema.Struct({ do: Schema.Literal("wait"), for: Schema.Literals([1, 4, 5, 6]) })

const Rest = Schema.Union([
  Schema.Struct({ do: Schema.Literal("remove"), key: Key }),
  Schema.Struct({ do: Schema.Literal("prune"), olderThan: Schema.Literals([0, 5]) }),
  List
])

// a key that is recorded is done, so that most sequences should not come there soon
const Operation = Schema.Union([...of(6, Claim), ...of(5, Release), Wait, Wait, Renew, Complete, Resolve, Rest, Rest])

/** One operation of a sequence. */
export type Operation = typeof Operation.Type

/** The simplest value of each member: what a failing sequence does not need is set to it, and then not printed. */
const plain: Readonly<Record<string, unknown>> = {
  key: 0,
  tool: "a",
  runId: "r1",
  owner: "o1",
  claimId: "c1",
  lease: 10,
  fingerprint: "f1",
  token: "newest",
  result: 1,
  outcome: "executed",
  verdict: "clean",
  cleared: false,
  together: false
}

const plainest = (operation: Operation, name: string): unknown => operation.do === "list" ? undefined : plain[name]

const simpler = (operation: Operation): ReadonlyArray<Operation> =>
  Object.entries(operation).flatMap(([name, value]) =>
    name === "do" || !(name in plain || operation.do === "list") || value === plainest(operation, name)
      ? []
      : [{ ...operation, [name]: plainest(operation, name) } as Operation]
  )

/** All sequences. A failing one is made shorter and its operations plainer as long as it fails. */
export const sequences: Arbitrary.Arbitrary<ReadonlyArray<Operation>> = Arbitrary.array(
  Arbitrary.schema(Operation, { shrink: simpler }),
  { minLength: 1 }
)

/** The operation in a line, without what is as plain as can be. */
export const describe = (operation: Operation): string => {
  const members = Object.entries(operation).flatMap(([name, value]) =>
    name === "do" || value === plainest(operation, name) ? [] : [`${name}: ${JSON.stringify(value)}`]
  )
  return members.length === 0 ? operation.do : `${operation.do} { ${members.join(", ")} }`
}

type Batched = Extract<Operation, { readonly together: boolean }>

/** Operations of one kind, about different keys, that go to the store in one call; others go alone. */
export const calls = (sequence: ReadonlyArray<Operation>): ReadonlyArray<ReadonlyArray<Operation>> => {
  const made: Array<Array<Operation>> = []
  for (const operation of sequence) {
    const last = made.at(-1)
    const joins = last !== undefined && "together" in operation && operation.together
      && last.every((before) => before.do === operation.do && (before as Batched).key !== operation.key)
    if (joins) last.push(operation)
    else made.push([operation])
  }
  return made
}
