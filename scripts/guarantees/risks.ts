/**
 * What is not promised. Nothing can run that: it is said here.
 */
export const residualRisks: ReadonlyArray<readonly [risk: string, remedy: string]> = [
  [
    "an attempt is cut off, and there is no check: by default the effect is applied again",
    "`alreadyApplied`; or a remote that honours `idempotencyKey(effectKey)`; or `transactional: true`; or `whenInDoubt: \"fail\"`, and a person"
  ],
  [
    "`alreadyApplied` says \"no\" of an effect that is there: it is applied twice",
    "read all pages, and look for the key itself (`effectMarker`, `findMarker`); `CrashLab` convicts a check that does not"
  ],
  [
    "`alreadyApplied` says \"yes\" of an effect that is not there: it never happens",
    "look at the author, and sign markers: `effectMarker(key, { secret })`"
  ],
  ["the remote shows its own writes late", "a `settle` that is longer than it lags"],
  [
    "an interrupt ends `execute` while its request is still on the way",
    "let the interrupt reach the request, or keep it away by `Effect.uninterruptible`; or `settle`"
  ],
  [
    "`execute` fails plainly although the effect was applied, and there is no check: no event tells of the second one",
    "fail with `EffectOutcomeUnknownError` on timeouts and lost replies; or `alreadyApplied`, which is asked after every failure; `CrashLab` convicts an `execute` that does neither"
  ],
  [
    "a holder is frozen, or cut off from the ledger, for longer than its lease, and its request arrives after all",
    "a remote that honours `idempotencyKey(effectKey)`; a longer `lease` makes it rarer; without a check `whenInDoubt: \"fail\"` keeps the next one back; an alarm on `claimLost`"
  ],
  [
    "a key in doubt under `whenInDoubt: \"fail\"` stays so",
    "an alarm on the outcome `inDoubt`, and a person who [resolves it](operating.md#a-key-in-doubt)"
  ],
  [
    "two effects have one key, so that one of them does not happen; or one effect has two keys, and happens twice",
    "`effectKey` of what the effect is about, and of nothing that an attempt changes; `onInputChange: \"fail\"`"
  ],
  [
    "an `execute` of several effects is cut off between them",
    "a tool for each effect; or inside of `execute` an `applyOnce` with a key of its own for each; or `transactional: true`"
  ],
  [
    "an effect of set semantics is applied again after somebody else has changed the same thing",
    "`alreadyApplied`, so that it is not applied again"
  ],
  [
    "the ledger forgets: a power loss, a failover, a backup that is restored, an eviction, `prune`",
    "the durable mode; synchronous replication; on Redis `appendonly yes` and `noeviction`, which `requireDurable` asks for; no pruning before the last retry; or `alreadyApplied`"
  ],
  [
    "two programs have two ledgers for one remote",
    "one ledger for all of them; or `alreadyApplied`, which finds the effects of the others unless both are at it at once"
  ],
  [
    "a plain `tool`, a callback or a decision (`prepareStep`, `needsApproval`, ...) has a side effect: it is not in the ledger, and happens again when a run is replayed or a call is cut off",
    "put side effects into effect tools"
  ],
  [
    "somebody who can send the history changes an approved call",
    "`experimental_toolApprovalSecret`; the ledger knows effects, not approvals"
  ]
]
