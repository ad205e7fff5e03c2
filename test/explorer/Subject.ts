/**
 * One effect key of a simulated world: its row in the ledger, and what the remote holds of it.
 */
import { type Ledger, makeLedger } from "./Ledger.ts"
import { key as everybodys, type Scenario } from "./model.ts"
import type { Process } from "./Process.ts"
import { Remote } from "./Remote.ts"

export class Subject {
  readonly key: string
  readonly ledger: Ledger
  readonly remote: Remote
  /** Who was granted a token. */
  readonly holders = new Map<number, Process>()

  constructor(key: string, { kind, ledgerFault }: Scenario) {
    this.key = key
    this.remote = new Remote(kind, key === everybodys ? "" : key)
    const ledger = makeLedger()
    this.ledger = ledgerFault === undefined ? ledger : ledgerFault(ledger)
  }
}
