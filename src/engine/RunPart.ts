/**
 * The parts of a run's stream.
 *
 * @since 0.1.0
 */
import type { StepPart } from "../ai/StepPart.ts"
import type { PendingApproval, RunFailure } from "./errors.ts"

/**
 * How the run came to rest.
 *
 * @category models
 * @since 0.1.0
 */
export type RestPart =
  | { readonly type: "run-completed" }
  | { readonly type: "run-failed"; readonly failure: RunFailure }
  | { readonly type: "run-cancelled" }
  | { readonly type: "run-waiting"; readonly approvals: ReadonlyArray<PendingApproval> }

/**
 * A part of a run's stream.
 *
 * @category models
 * @since 0.1.0
 */
export type RunPart = StepPart | RestPart

/**
 * A part of a run's stream, and where it stands in it.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamedPart {
  /** What `Engine.stream` goes on after. A text of ASCII without spaces, fit for the `id` of a server-sent event. */
  readonly cursor: string
  readonly part: RunPart
}
