/**
 * What a run is started with, as it is stored.
 */
import type { ModelMessage } from "ai"
import { Effect, Schema } from "effect"
import type { AgentDefinition } from "./agentTypes.ts"

/** The trigger in JSON form, and the prompt as the AI SDK takes it. */
export interface StoredInput {
  readonly trigger: unknown
  readonly prompt: { readonly prompt: string | Array<ModelMessage> } | { readonly messages: Array<ModelMessage> }
}

interface Given {
  readonly trigger?: unknown
  readonly prompt?: string | Array<ModelMessage> | undefined
  readonly messages?: Array<ModelMessage> | undefined
}

/** The input as it is stored; fails with what the trigger's schema says. */
export const toStored = (
  { trigger: schema }: AgentDefinition,
  { messages, prompt, trigger }: Given
): Effect.Effect<StoredInput, Schema.SchemaError> =>
  Effect.map(
    schema === undefined ? Effect.undefined : Schema.encodeEffect(Schema.toCodecJson(schema))(trigger),
    (trigger) => ({ trigger, prompt: messages === undefined ? { prompt: prompt ?? "" } : { messages } })
  )

/** The other way. */
export const readInput = (
  { trigger: schema }: AgentDefinition,
  stored: unknown
): Effect.Effect<StoredInput, Schema.SchemaError> => {
  const { prompt, trigger } = stored as StoredInput
  return Effect.map(
    schema === undefined ? Effect.undefined : Schema.decodeUnknownEffect(Schema.toCodecJson(schema))(trigger),
    (trigger) => ({ trigger, prompt })
  )
}
