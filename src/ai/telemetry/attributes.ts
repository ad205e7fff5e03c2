/**
 * Attributes of spans, under the names of OpenTelemetry's conventions for generative AI, as `effect/ai` has them.
 */
import type { Tracer } from "effect"

type Value = string | number | boolean | ReadonlyArray<string>
export type Attributes = { readonly [name: string]: Value | undefined }

export const setAttributes = (span: Tracer.Span, attributes: Attributes): void => {
  for (const name in attributes) {
    const value = attributes[name]
    if (value !== undefined) span.attribute(name, value)
  }
}

/** A model, as far as it can be told: the id of a global provider's, or an object of any specification. */
export interface ModelNames {
  readonly model: string | undefined
  readonly provider: string | undefined
}

export const namesOf = (model: unknown): ModelNames => {
  if (typeof model === "string") return { model, provider: undefined }
  const { modelId, provider } = (model ?? {}) as { readonly modelId?: unknown; readonly provider?: unknown }
  return {
    model: typeof modelId === "string" ? modelId : undefined,
    provider: typeof provider === "string" ? provider : undefined
  }
}

export const modelAttributes = ({ model, provider }: ModelNames): Attributes => ({
  "gen_ai.request.model": model,
  "gen_ai.provider.name": provider === undefined ? undefined : providerName(provider)
})

/** The conventions' names of providers, by the beginning of those that the AI SDK gives them. */
const providers: ReadonlyArray<readonly [sdk: string, name: string]> = [
  ["amazon-bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["google.vertex", "gcp.vertex_ai"],
  ["google", "gcp.gemini"],
  ["mistral", "mistral_ai"],
  ["moonshotai", "moonshot_ai"],
  ["xai", "x_ai"]
]

/** `openai.responses` is `openai`; a provider that the conventions do not know keeps its name. */
export const providerName = (provider: string): string =>
  providers.find(([sdk]) => provider === sdk || provider.startsWith(`${sdk}.`) || provider.startsWith(`${sdk}-`))?.[1]
    ?? provider.split(".")[0]!

/** The settings of a model call. */
export interface RequestSettings {
  readonly temperature?: number | undefined
  readonly topK?: number | undefined
  readonly topP?: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly stopSequences?: ReadonlyArray<string> | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
  readonly seed?: number | undefined
}

export const requestAttributes = (settings: RequestSettings): Attributes => ({
  "gen_ai.request.temperature": settings.temperature,
  "gen_ai.request.top_k": settings.topK,
  "gen_ai.request.top_p": settings.topP,
  "gen_ai.request.max_tokens": settings.maxOutputTokens,
  "gen_ai.request.stop_sequences": settings.stopSequences,
  "gen_ai.request.frequency_penalty": settings.frequencyPenalty,
  "gen_ai.request.presence_penalty": settings.presencePenalty,
  "gen_ai.request.seed": settings.seed
})

/** Tokens, as far as the provider has told. */
export interface Tokens {
  readonly inputTokens?: number | undefined
  readonly outputTokens?: number | undefined
}

export const usageAttributes = ({ inputTokens, outputTokens }: Tokens): Attributes => ({
  "gen_ai.usage.input_tokens": inputTokens,
  "gen_ai.usage.output_tokens": outputTokens
})

/** A value as it stands in an attribute, where somebody has asked for it. */
export const asText = (value: unknown): string => {
  if (typeof value === "string") return value
  try {
    return JSON.stringify(value) ?? "undefined"
  } catch {
    return "(cannot be written as JSON)"
  }
}
