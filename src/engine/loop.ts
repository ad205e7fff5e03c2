/**
 * One pass of a run's loop: the AI SDK's, over the run's journal.
 */
import { generateText, type OutputInterface, type ToolSet } from "ai"
import { type Context, Effect, Option, Predicate } from "effect"
import { Ai } from "../Ai.ts"
import { bindCall } from "../ai/bindCall.ts"
import { type Journal, journaled, type Loop } from "../ai/journal.ts"
import type { Publisher } from "../ai/Publisher.ts"
import { noModel } from "../ai/noModel.ts"
import { withOriginals } from "../ai/originals.ts"
import { languageCall, observed } from "../ai/telemetry/observe.ts"

export interface LoopOptions {
  readonly name: string
  /** The options of the AI SDK's loop, the prompt among them. */
  readonly options: Readonly<Record<string, unknown>>
  readonly tools: ToolSet | undefined
  readonly output: OutputInterface | undefined
  readonly allow: ((toolName: string) => Effect.Effect<void, unknown>) | undefined
  readonly journal: Journal
  readonly publisher: Publisher
  /** Whether models stream their answers. */
  readonly stream: boolean
  readonly loop: Loop
  readonly context: Context.Context<Ai>
}

type SdkOptions = Parameters<typeof generateText>[0]

/** What came of a loop that came to its end. */
export type LoopResult = Awaited<ReturnType<typeof generateText>>

/** Runs the loop to its end, or until it is parked: then there is no result, and nothing of it runs any more. */
export const runLoop = (given: LoopOptions): Effect.Effect<Option.Option<LoopResult>, unknown, Ai> => {
  const { allow, context, journal, loop, name, output, publisher, stream, tools } = given
  return observed(
    (defaults) => ({
      ...languageCall("runAgent", given.options, defaults),
      spanName: `invoke_agent ${name}`,
      attributes: { "gen_ai.agent.name": name }
    }),
    (observer) =>
      Effect.gen(function*() {
        const { defaults } = yield* Ai
        const options = given.options as Partial<SdkOptions>
        const model = options.model ?? defaults.model
        if (model === undefined) return yield* noModel()
        const call = bindCall({ ...options, tools }, context, ({ callbacks, signal, tools }) => {
          const { prepareStep, toolApproval } = callbacks
          const watched = observer.watching({ ...callbacks, ...withOriginals(callbacks) }, loop.replayed)
          const ours = journaled(
            {
              model,
              tools,
              prepareStep: prepareStep as never,
              toolApproval,
              callbacks: watched as Readonly<Record<string, unknown>>,
              stream,
              allow,
              signal
            },
            journal,
            publisher,
            loop
          )
          return observer.run(() =>
            generateText({
              ...defaults.telemetry === undefined ? {} : { telemetry: defaults.telemetry },
              ...options,
              ...output === undefined ? {} : { output },
              ...watched,
              ...ours,
              abortSignal: signal
            } as never)
          )
        })
        return yield* Effect.raceFirst(
          Effect.map(call, Option.some),
          Effect.as(loop.parked, Option.none<LoopResult>())
        ).pipe(Effect.ensuring(loop.end))
      })
  ) as Effect.Effect<Option.Option<LoopResult>, unknown, Ai>
}

/** How often a model call is repeated, as the AI SDK reads it. */
export const maxRetriesOf = (options: object, defaults: { readonly maxRetries?: number | undefined }): number =>
  Predicate.hasProperty(options, "maxRetries") && typeof options.maxRetries === "number"
    ? options.maxRetries
    : defaults.maxRetries ?? 2
