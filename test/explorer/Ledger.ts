/**
 * The simulated store's ledger: the row of one key, moved by the rules of `EffectRecord`, as plain functions that a seeded
 * fault can decorate.
 */
import type { EffectResolution } from "chamvi-effect"
import * as Record from "chamvi-effect/EffectRecord"
import type {
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  EffectRecord,
  Fenced,
  ReleaseItem,
  RenewItem,
  ResolveReply,
  Step
} from "../../src/record/model.ts"

export interface Ledger {
  readonly row: () => EffectRecord | undefined
  readonly put: (row: EffectRecord) => void
  readonly claim: (request: ClaimRequest, now: number, holderIsDead?: boolean) => ClaimReply
  readonly complete: (item: CompleteItem, now: number) => Fenced
  readonly release: (item: ReleaseItem, now: number) => Fenced
  readonly renew: (item: RenewItem, now: number) => Fenced
  readonly resolve: (resolution: EffectResolution, json: string | undefined, now: number) => ResolveReply
}

/** A fault that is seeded into a ledger. */
export type LedgerFault = (ledger: Ledger) => Ledger

export const makeLedger = (): Ledger => {
  let row: EffectRecord | undefined
  const take = <Reply>([next, reply]: Step<Reply>): Reply => {
    if (next !== undefined) row = next
    return reply
  }
  return {
    row: () => row,
    put: (next) => {
      row = next
    },
    claim: (request, now, holderIsDead) => take(Record.claim(row, request, now, 1, holderIsDead)),
    complete: (item, now) => take(Record.complete(row, item, now)),
    release: (item, now) => take(Record.release(row, item, now)),
    renew: (item, now) => take(Record.renew(row, item, now)),
    resolve: (resolution, json, now) => take(Record.resolve(row, resolution, json, now))
  }
}
