/**
 * What a run's agent makes of the inputs of calls: decided once, and answered from the journal after that. Else a call would be
 * executed with another input than the one that it was approved, or begun, with.
 */
import { getErrorMessage, type LanguageModelV4ToolCall } from "@ai-sdk/provider"
import { Effect, Predicate } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import type { Journal } from "./journal.ts"
import type { Loop } from "./Loop.ts"

type Callback = (...args: ReadonlyArray<unknown>) => unknown

/** How a decision came out. What it fails with is nothing to make again: the model has read that its call is invalid. */
type Decided =
  | { readonly _tag: "Answer"; readonly value: unknown }
  | { readonly _tag: "Failure"; readonly message: string }

/** The options of a loop that decide on inputs; to be spread behind the others. */
export const inputDecisions = (
  callbacks: Readonly<Record<string, unknown>>,
  journal: Journal,
  loop: Loop,
  signal: AbortSignal
) => {
  const decided = async (
    kind: "repair" | "refine",
    about: string | { readonly toolName: string; readonly input: unknown },
    decide: () => unknown
  ): Promise<unknown> => {
    const answer = Effect.matchEffect(hookAnswer(kind, decide), {
      onSuccess: (value) => Effect.succeed<Decided>({ _tag: "Answer", value }),
      onFailure: (error) =>
        // what an interrupted decision says is none
        signal.aborted
          ? Effect.never
          : Effect.succeed<Decided>({
            _tag: "Failure",
            message: getErrorMessage(error)
          })
    })
    const outcome = await loop.run(journal.input(loop.step, kind, about, answer), signal) as Decided
    if (outcome._tag === "Failure") throw new Error(outcome.message)
    return outcome.value
  }

  const repair = (callbacks.repairToolCall ?? callbacks.experimental_repairToolCall) as Callback | undefined
  const repairToolCall = async (given: { readonly toolCall: LanguageModelV4ToolCall }): Promise<unknown> => {
    const { providerExecuted, toolCallId } = given.toolCall
    // not executed here, and its id may be that of another one
    if (providerExecuted === true) return repair!(given)
    const repaired = await decided("repair", toolCallId, () => repair!(given))
    // it is still the same call
    return Predicate.isObject(repaired) ? { ...repaired, toolCallId } : repaired
  }

  const refine = callbacks.experimental_refineToolInput
  return {
    ...repair === undefined ? {} : { repairToolCall },
    ...Predicate.isObject(refine)
      ? {
        experimental_refineToolInput: Object.fromEntries(
          Object.entries(refine).map(([toolName, one]) => [
            toolName,
            typeof one === "function"
              ? (input: unknown) => decided("refine", { toolName, input }, () => (one as Callback)(input))
              : one as unknown
          ])
        )
      }
      : {}
  }
}
