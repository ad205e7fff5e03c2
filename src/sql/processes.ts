import type { Effect } from "effect"

/**
 * What is known about the processes that hold claims, where the store can know it better than by their leases.
 */
export interface Processes {
  /** This process's own lock, which stands beside the claims it holds. */
  readonly id: string
  /**
   * Whether the process that kept this lock cannot be running any more. "No" may be out of date for a moment; "yes" is
   * never wrong, and never taken back.
   */
  readonly isDead: (id: string) => Effect.Effect<boolean>
}
