/**
 * The store as one simulated process sees it: each operation is a request that waits in the world for a decision.
 */
import type { EffectResolution, IEffectStore } from "chamvi-effect"
import { Effect, Stream } from "effect"
import type {
  Claimed,
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  EffectRecord,
  Fenced,
  ReleaseItem,
  RenewItem,
  ResolveReply
} from "../../src/record/model.ts"
import { type OperationKind, storeClosed } from "./model.ts"
import type { Process } from "./Process.ts"
import type { World } from "./World.ts"

interface Item {
  readonly key: string
}

interface Step<I, Reply> {
  readonly kind: OperationKind
  readonly perform: (item: I) => Reply
  /** What an item says, and what a reply means, as far as it makes a difference. */
  readonly says: (item: I) => unknown
  readonly means: (reply: Reply, item: I) => unknown
  readonly onlyReads: (item: I, row: EffectRecord | undefined) => boolean
  readonly told?: (reply: Reply, item: I) => void
}

const jsonOf = (resolution: EffectResolution): string | undefined =>
  resolution._tag === "Applied" ? JSON.stringify(resolution.result?.value) : undefined

export const storeOf = (world: World, process: Process): IEffectStore => {
  const { kind: { lag }, ledgerFault, seesDeath = false } = world.scenario

  const request = <I extends Item, Reply>(step: Step<I, Reply>) =>
  (
    items: ReadonlyArray<I>
  ): Effect.Effect<ReadonlyArray<Reply>, typeof storeClosed> =>
    process.life === "closed"
      ? Effect.fail(storeClosed)
      : world.request(process, {
        kind: step.kind,
        says: JSON.stringify(items.map((item) => [item.key, step.says(item)])),
        onlyReads: () =>
          ledgerFault === undefined
          && items.every((item) => step.onlyReads(item, world.subject(item.key).ledger.row())),
        perform: () => items.map((item) => step.perform(item)),
        means: (replies: ReadonlyArray<Reply>) =>
          JSON.stringify(replies.map((reply, i) => step.means(reply, items[i]!))),
        told: (replies: ReadonlyArray<Reply>) => replies.forEach((reply, i) => step.told?.(reply, items[i]!)),
        cuttable: false
      })

  const change = <I extends Item, Reply>(step: (item: I) => Reply) => (item: I): Reply => {
    const { ledger } = world.subject(item.key)
    const before = ledger.row()
    const reply = step(item)
    if (ledger.row() !== before) world.wake()
    return reply
  }

  const isStale = ({ token }: { readonly token: number }, row: EffectRecord | undefined): boolean =>
    row?.token !== token

  const tokenOf = ({ key, token }: { readonly key: string; readonly token: number }): number =>
    process.hold(key).tokenName(token)

  // how long ago makes a difference to settle only, and not beyond it
  const aged = (reply: Claimed) =>
    reply.earlier && { ...reply.earlier, age: lag === 0 ? 0 : Math.min(reply.earlier.age, lag) }

  const isDead = (key: string, row: EffectRecord | undefined): boolean =>
    seesDeath && row?.status === "held" && world.subject(key).holders.get(row.token)?.crashed === true

  const claim = (item: ClaimRequest): ClaimReply => {
    const { holders, ledger } = world.subject(item.key)
    const hold = process.hold(item.key)
    const before = ledger.row()
    const reply = ledger.claim(item, world.now, isDead(item.key, before))
    if (reply._tag !== "Claimed") return reply
    if (before?.status === "held" && before.token !== reply.token) world.takenOver(item.key, before.token, process)
    holders.set(reply.token, process)
    hold.tokenName(reply.token)
    hold.leaseUntil = Math.max(hold.leaseUntil, world.now + item.lease)
    hold.token = reply.token
    hold.toldLost = false
    return reply
  }

  return {
    batch: world.scenario.batch ?? false,
    claim: request({
      kind: "claim",
      perform: claim,
      says: ({ claimId, fingerprint, key, tool }) => [process.hold(key).claimIdName(claimId), tool, fingerprint],
      means: (reply, { key }) =>
        reply._tag === "Claimed"
          ? [tokenOf({ key, token: reply.token }), reply.doubt, reply.takenOver, aged(reply)]
          : reply._tag === "Held"
          ? [reply.tool, reply.remaining]
          : reply,
      onlyReads: ({ claimId, key }, row) =>
        row?.status === "recorded"
        || (row?.status === "held" && row.claimId !== claimId && row.leaseEnd > world.now && !isDead(key, row)),
      told: (reply, { key }) => {
        if (reply._tag === "Claimed") process.hold(key).toldToken = reply.token
      }
    }),
    complete: request<CompleteItem, Fenced>({
      kind: "complete",
      perform: change((item) => world.subject(item.key).ledger.complete(item, world.now)),
      says: (item) => [tokenOf(item), item.result, item.outcome, item.fingerprint],
      means: (reply) => reply,
      onlyReads: isStale
    }),
    release: request<ReleaseItem, Fenced>({
      kind: "release",
      perform: change((item) => world.subject(item.key).ledger.release(item, world.now)),
      says: (item) => [tokenOf(item), item.verdict, item.cleared],
      means: (reply) => reply,
      onlyReads: isStale
    }),
    renew: request<RenewItem, Fenced>({
      kind: "renew",
      perform: (item) => {
        const hold = process.hold(item.key)
        const reply = world.subject(item.key).ledger.renew(item, world.now)
        if (reply === "ok") hold.leaseUntil = Math.max(hold.leaseUntil, world.now + item.lease)
        return reply
      },
      says: tokenOf,
      means: (reply) => reply,
      onlyReads: isStale,
      told: (reply, { key, token }) => {
        const hold = process.hold(key)
        if (reply === "lost" && token === hold.token) hold.toldLost = true
      }
    }),
    get: (key) =>
      Effect.map(
        request({
          kind: "get",
          perform: () => world.subject(key).ledger.row(),
          says: () => "",
          means: (row) => row && [row.status, row.tool, row.result],
          onlyReads: () => true
        })([{ key }]),
        ([row]) => row
      ),
    resolve: (key, resolution) =>
      Effect.map(
        request<Item, ResolveReply>({
          kind: "resolve",
          perform: change(() => world.subject(key).ledger.resolve(resolution, jsonOf(resolution), world.now)),
          says: () => jsonOf(resolution),
          means: (reply) => reply,
          onlyReads: () => false
        })([{ key }]),
        ([reply]) => reply!
      ),
    list: () => Stream.die(new Error("not simulated")),
    remove: () => Effect.die(new Error("not simulated")),
    prune: () => Effect.die(new Error("not simulated")),
    changes: () =>
      Stream.fromEffectRepeat(Effect.callback<void>((resume) => {
        const notify = () => resume(Effect.void)
        process.watchers.add(notify)
        return Effect.sync(() => void process.watchers.delete(notify))
      }))
  }
}
