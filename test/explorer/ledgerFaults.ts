/**
 * Bugs of a store, each with the scenario in which it shows.
 */
import type { Mutant } from "./mutants.ts"

let claimIds = 0

export const faults: Readonly<Record<string, Mutant>> = {
  "a store that grants every claim": {
    kind: "checked",
    faults: 0,
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now) => {
        const row = ledger.row()
        if (row?.status === "held") ledger.put({ ...row, status: "released" })
        return ledger.claim(request, now)
      }
    })
  },
  "a store that ends leases early": {
    kind: "default",
    faults: 1,
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now) => ledger.claim({ ...request, lease: request.lease - 700 }, now)
    })
  },
  "a store that completes with a stale token": {
    kind: "default",
    faults: 1,
    ledger: (ledger) => ({
      ...ledger,
      complete: (item, now) => ledger.complete({ ...item, token: ledger.row()?.token ?? item.token }, now)
    })
  },
  "a store that releases with a stale token": {
    kind: "checked",
    faults: 1,
    ledger: (ledger) => ({
      ...ledger,
      release: (item, now) => ledger.release({ ...item, token: ledger.row()?.token ?? item.token }, now)
    })
  },
  "a renewal that revives a lost claim": {
    kind: "checked",
    faults: 1,
    ledger: (ledger) => ({
      ...ledger,
      renew: (item, now) => {
        const row = ledger.row()
        if (row?.status === "held") ledger.put({ ...row, token: item.token })
        return ledger.renew(item, now)
      }
    })
  },
  "a repeated claimId that gets a second token": {
    kind: "strict",
    faults: 1,
    cast: "together",
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now) => ledger.claim({ ...request, claimId: `${request.claimId} ${++claimIds}` }, now)
    })
  },
  "a release that is always clean": {
    kind: "strict",
    faults: 1,
    ledger: (ledger) => ({ ...ledger, release: (item, now) => ledger.release({ ...item, verdict: "clean" }, now) })
  },
  "a takeover without doubt": {
    kind: "strict",
    faults: 1,
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now) => {
        const reply = ledger.claim(request, now)
        return reply._tag === "Claimed" && reply.takenOver ? { ...reply, doubt: "none", earlier: undefined } : reply
      }
    })
  },
  "a record that is only said": {
    kind: "strict",
    faults: 0,
    ledger: (ledger) => ({ ...ledger, complete: () => "ok" })
  },
  "a release that is only said": {
    kind: "strict",
    faults: 1,
    ledger: (ledger) => ({ ...ledger, release: () => "ok" })
  },
  "a lease that never ends": {
    kind: "checked",
    faults: 1,
    ledger: (ledger) => ({ ...ledger, claim: (request, now) => ledger.claim({ ...request, lease: 1e9 }, now) })
  },
  "a death that is only presumed": {
    kind: "checked",
    faults: 0,
    change: { seesDeath: true },
    ledger: (ledger) => ({ ...ledger, claim: (request, now) => ledger.claim(request, now, true) })
  },
  "a takeover from the dead without doubt": {
    kind: "strict",
    faults: 1,
    change: { seesDeath: true },
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now, holderIsDead) => {
        const reply = ledger.claim(request, now, holderIsDead)
        return holderIsDead === true && reply._tag === "Claimed"
          ? { ...reply, doubt: "none", earlier: undefined }
          : reply
      }
    })
  },
  "a takeover from the dead that counts their silence from long before": {
    kind: "lagging",
    faults: 1,
    change: { seesDeath: true },
    ledger: (ledger) => ({
      ...ledger,
      claim: (request, now, holderIsDead) => {
        const reply = ledger.claim(request, now, holderIsDead)
        return holderIsDead === true && reply._tag === "Claimed" && reply.earlier !== undefined
          ? { ...reply, earlier: { ...reply.earlier, age: reply.earlier.age + 200 } }
          : reply
      }
    })
  }
}
