/**
 * Where a loop tells what it does, for those who watch the run.
 *
 * A run is replayed: what was finished is told again, and published once. So all that is finished has a name within its step, and
 * each answer of a model has one of its own: two generations of a step are told apart by it.
 */
import type { Effect } from "effect"
import type { StepPart } from "./StepPart.ts"

export interface Publisher {
  /** The model is called for a step; not for the first time, maybe. Answers what its answer is called. */
  readonly begin: (step: number) => Effect.Effect<string>
  /** A part of what is not finished yet. Waits while the storage of parts is behind. */
  readonly live: (step: number, part: StepPart) => Effect.Effect<void>
  /** What the model wrote was published as it came. It answers when all of it is stored. */
  readonly written: (step: number, answer: string) => Effect.Effect<void>
  /** The answer is in the journal: publishes the parts of `whole`, or those of `rest` where the others were published as they came. */
  readonly answered: (
    step: number,
    answer: string,
    parts: { readonly whole: ReadonlyArray<StepPart>; readonly rest: ReadonlyArray<StepPart> }
  ) => Effect.Effect<void>
  /** Publishes the parts unless something of the name was published for this generation of the step. */
  readonly once: (step: number, name: string, ...parts: ReadonlyArray<StepPart>) => Effect.Effect<void>
}
