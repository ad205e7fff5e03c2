/**
 * The agents whose runs the workers execute. Their model decides by the conversation alone, so that it says the same in every
 * process: it asks for the next group of effects until each has a receipt, and then reports the receipts.
 */
import type { LanguageModelV4Prompt } from "@ai-sdk/provider"
import { defineAgent, defineEffectTool, EffectOutcomeUnknownError, stepOf, tool } from "chamvi-effect"
import { MockLanguageModelV4 } from "ai/test"
import { Data, Effect, Schema } from "effect"
import { calls, says } from "../support/model.ts"
import { type Applying, type Asked, type Finding, groups, type Kind, type ToolName, type World } from "./protocol.ts"

/** The remote has not applied the effect, by its own word. */
class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

/** A request that is cut off with the fiber that makes it. */
const post = (url: string, body: object) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, { method: "POST", body: JSON.stringify(body), signal })
      return await response.json() as { readonly receipt?: string; readonly refused?: boolean }
    },
    catch: (cause) => new EffectOutcomeUnknownError({ cause })
  })

/** The receipts that the model has read, by tool. */
const receiptsIn = (prompt: LanguageModelV4Prompt): ReadonlyMap<string, string> =>
  new Map(
    prompt.flatMap((message) =>
      message.role === "tool"
        ? message.content.flatMap((part) =>
          part.type === "tool-result" && part.output.type === "text"
            ? [[part.toolName, part.output.value] as const]
            : []
        )
        : []
    )
  )

const textOf = (prompt: LanguageModelV4Prompt): string =>
  prompt.flatMap((message) =>
    message.role === "user" ? message.content.flatMap((part) => part.type === "text" ? [part.text] : []) : []
  ).join("")

const modelOf = ({ remote }: World) =>
  new MockLanguageModelV4({
    doGenerate: async ({ abortSignal, prompt }) => {
      const runId = textOf(prompt)
      const step = prompt.filter(({ role }) => role === "assistant").length
      const asked: Asked = { runId, step, worker: process.pid }
      await fetch(`${remote}/think`, {
        method: "POST",
        body: JSON.stringify(asked),
        ...abortSignal === undefined ? {} : { signal: abortSignal }
      })
      const receipts = receiptsIn(prompt)
      const next = groups.map((group) => group.filter((name) => !receipts.has(name))).find((group) => group.length > 0)
      return next === undefined
        ? says(JSON.stringify(Object.fromEntries(receipts)))
        : calls(...next.map((name) => [name, { order: runId }, `${step}-${name}`] as const))
    }
  })

const inputSchema = Schema.Struct({ order: Schema.String })

/** What a tool tells the remote of its call. */
const applying = (
  kind: Kind,
  name: ToolName,
  key: string,
  runId: string,
  options: Parameters<typeof stepOf>[0]
): Applying => ({
  runId,
  tool: name,
  key,
  step: stepOf(options),
  worker: process.pid,
  idempotent: kind === "courier"
})

const apply = Effect.fnUntraced(function*({ remote }: World, asked: Applying) {
  // whoever is stopped here has claimed the key, and what is to have the effect has not left yet
  yield* Effect.sleep(10 + Math.floor(Math.random() * 140))
  yield* Effect.mapError(post(`${remote}/prepare`, asked), () => new Refused({ message: "The remote is away." }))
  const { receipt, refused } = yield* post(`${remote}/apply`, asked)
  if (refused === true) return yield* new Refused({ message: "The remote is busy." })
  return receipt ?? (yield* new EffectOutcomeUnknownError({}))
})

const toolOf = (world: World, kind: Kind, name: ToolName) =>
  defineEffectTool({
    inputSchema,
    ...kind === "courier" ? {} : {
      effectKey: ({ order }: typeof inputSchema.Type) => `${order}:${name}`,
      alreadyApplied: (key: string) =>
        Effect.map(post(`${world.remote}/find`, { key } satisfies Finding), ({ receipt }) => receipt)
    },
    execute: ({ order }, options) => apply(world, applying(kind, name, options.effectKey, order, options))
  })

const plainToolOf = (world: World, kind: Kind, name: ToolName) =>
  tool({
    inputSchema,
    execute: ({ order }, options) => apply(world, applying(kind, name, `${order}:${name}`, order, options))
  })

const makeAgent = <K extends Kind>(world: World, kind: K) => {
  const made = (name: ToolName) =>
    world.unprotected === name ? plainToolOf(world, kind, name) : toolOf(world, kind, name)
  return defineAgent({
    name: kind,
    model: modelOf(world),
    tools: {
      label: made("label"),
      comment: made("comment"),
      assign: made("assign"),
      charge: made("charge"),
      notify: made("notify")
    }
  })
}

export const makeAgents = (world: World) => ({ clerk: makeAgent(world, "clerk"), courier: makeAgent(world, "courier") })

export type Agents = ReturnType<typeof makeAgents>
