export { type Agent, type AgentContext, defineAgent } from "./Agent.ts"
export { Ai, type AiDefaults } from "./Ai.ts"
export type { CallbackError, CallbackServices } from "./ai/callbackTypes.ts"
export type { CallServices } from "./ai/callTypes.ts"
export { AiError, type AiErrorReason } from "./AiError.ts"
export { AiTelemetry } from "./AiTelemetry.ts"
export { EffectEvent, type Flags as EffectFlags, type Outcome as EffectOutcome } from "./EffectEvent.ts"
export { checkKey, defaultKey, fingerprint, idempotencyKey } from "./EffectKey.ts"
export { effectMarker, findMarker, type MarkerOptions } from "./EffectMarker.ts"
export type {
  Claimed,
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  Doubt,
  EffectRecord,
  Fenced,
  Held,
  Recorded,
  ReleaseItem,
  RenewItem,
  ResolveReply,
  Status,
  Unreadable,
  Verdict
} from "./EffectRecord.ts"
export { EffectResolution } from "./EffectResolution.ts"
export { effectSchema } from "./EffectSchema.ts"
export { EffectSettings, type OnInputChange, type SettingsOptions, type WhenInDoubt } from "./EffectSettings.ts"
export {
  EffectStore,
  type EffectTransactions,
  type IEffectStore,
  type LedgerInTransaction,
  type ListFilter,
  type PruneOptions
} from "./EffectStore.ts"
export {
  defineEffectTool,
  type EffectTool,
  type EffectToolContext,
  type EffectToolOptions,
  isEffectTool
} from "./EffectTool.ts"
export { embed, embedMany, type EmbedManyOptions, type EmbedOptions } from "./Embed.ts"
export { Engine } from "./Engine.ts"
export { EngineTelemetry } from "./EngineTelemetry.ts"
export type { RunInput, RunResult } from "./engine/agentTypes.ts"
export * from "./engine/approvalErrors.ts"
export * from "./engine/errors.ts"
export type { IEngine, RunError, RunInfo, StartError } from "./engine/IEngine.ts"
export type { EngineOptions } from "./engine/make.ts"
export type { RunFilter, RunStatus } from "./engine/RunIndex.ts"
export type { RestPart, RunPart, StreamedPart } from "./engine/RunPart.ts"
export type { StreamOptions } from "./engine/StreamReader.ts"
export type { StepPart, WrittenPart } from "./ai/StepPart.ts"
export * from "./errors.ts"
export { generateImage, type GenerateImageOptions } from "./GenerateImage.ts"
export { generateSpeech, type GenerateSpeechOptions } from "./GenerateSpeech.ts"
export { generateText } from "./GenerateText.ts"
export * as Output from "./Output.ts"
export { applyOnce, type ApplyOnceOptions, type ApplyOnceSchema } from "./Reconciliation.ts"
export { rerank, type RerankOptions } from "./Rerank.ts"
export { runAgent, type RunAgentOptions, type SdkAgent, streamAgent, type StreamAgentOptions } from "./RunAgent.ts"
export * as RunStream from "./RunStream.ts"
export { stepOf, type StepOptions } from "./Step.ts"
export {
  type StreamPart,
  streamText,
  type StreamTextResult,
  type UIResponseOptions,
  type UIStreamOptions
} from "./StreamText.ts"
export { type ApprovalFailure, type Tool, tool, type ToolOptions, ToolResultError } from "./Tool.ts"
export { type Run, type RunOptions, ToolContext } from "./ToolContext.ts"
export type { ArtifactInfo, Artifacts } from "./toolContext/Artifacts.ts"
export type { RunState } from "./toolContext/RunState.ts"
export { transcribe, type TranscribeOptions } from "./Transcribe.ts"
export { type Allow, wrapToolsForRun } from "./WrapTools.ts"
