/** Whatever a tool is, it goes through unharmed: plain `ai` says what has to be seen of each kind. */
import type { LanguageModelV4Content, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import * as ai from "ai"
import { MockLanguageModelV4 } from "ai/test"
import {
  Ai,
  defineEffectTool,
  EffectStore,
  generateText,
  isEffectTool,
  runAgent,
  streamAgent,
  streamText,
  tool,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { Effect, Layer, type Scope } from "effect"
import { provided } from "./support/streamModel.ts"
import { type AnyTool, calls, type Kind, kinds, type Maker, type Seen, type Tools } from "./support/toolKinds.ts"

const layers = Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), EffectStore.layerMemory)
type Services = Layer.Success<typeof layers> | Scope.Scope

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

/** What the model answers, and its end. */
const turnsOf = (kind: Kind): ReadonlyArray<ReadonlyArray<LanguageModelV4Content>> => [
  ...kind.turns ?? [[calls(kind.toolName ?? "subject", kind.input ?? { city: "Paris" })]],
  []
]

const modelOf = (turns: ReadonlyArray<ReadonlyArray<LanguageModelV4Content>>): MockLanguageModelV4 => {
  let next = 0
  const turn = () => {
    const content = [...turns[Math.min(next++, turns.length - 1)]!]
    const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" as const : "stop" as const
    return { content, finishReason: { unified, raw: undefined }, usage, warnings: [] }
  }
  return new MockLanguageModelV4({
    doGenerate: async () => turn(),
    doStream: async () => {
      const { content, finishReason } = turn()
      const parts = content as ReadonlyArray<LanguageModelV4StreamPart>
      return {
        stream: provided([{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }])
          .stream
      }
    }
  })
}

/** The tool of a kind, as one of the makers makes it, and how often it ran. */
const made = Effect.fnUntraced(function*(kind: Kind, maker: Maker) {
  const ran: Array<unknown> = []
  const given = kind.options()
  const run = kind.run ?? ((input: unknown) => ({ echo: input }))
  const counted = (input: unknown, options: unknown): unknown => {
    ran.push(input)
    return run(input as never, options as never)
  }
  const execute = kind.run === null
    ? undefined
    : maker === "ai.tool"
    ? counted
    : (input: unknown, options: unknown) => Effect.sync(() => counted(input, options))
  const options = Object.defineProperties(
    Object.create(Object.getPrototypeOf(given) as object) as object,
    {
      ...Object.getOwnPropertyDescriptors(given),
      ...execute === undefined ? {} : { execute: { value: execute, enumerable: true } }
    }
  ) as never
  const plain = maker === "ai.tool"
    ? ai.tool(options) as AnyTool
    : yield* (maker === "tool" ? tool(options) : defineEffectTool(options)) as Effect.Effect<AnyTool>
  const subject = kind.finish === undefined ? plain : kind.finish(plain)
  const name = kind.toolName ?? "subject"
  const tools: Tools = kind.set === undefined ? { [name]: subject } : kind.set(subject, name)
  return { subject, tools, ran, name }
})

interface Way {
  readonly name: string
  readonly like: "generate" | "stream"
  /** The steps' contents. */
  readonly run: (
    options: { readonly model: MockLanguageModelV4; readonly tools: ai.ToolSet; readonly prompt: string }
  ) => Effect.Effect<ReadonlyArray<unknown>, unknown, Services>
}
type Steps = ReadonlyArray<{ readonly content: unknown }>
const contents = (steps: Steps) => steps.map(({ content }) => content)
const agentOf = ({ prompt: _, ...settings }: Parameters<Way["run"]>[0]) => new ai.ToolLoopAgent(settings)
const wrapped = (tools: ai.ToolSet) =>
  Effect.gen(function*() {
    return yield* wrapToolsForRun(tools, yield* ToolContext, yield* EffectStore)
  })

const plain: ReadonlyArray<Way> = [
  {
    name: "plain generateText",
    like: "generate",
    run: (options) => Effect.promise(async () => contents((await ai.generateText(options)).steps))
  },
  {
    name: "plain streamText",
    like: "stream",
    run: (options) => Effect.promise(async () => contents(await ai.streamText(options).steps))
  }
]
const ways: ReadonlyArray<Way> = [
  {
    name: "generateText",
    like: "generate",
    run: (options) => Effect.map(generateText(options), ({ steps }) => contents(steps))
  },
  {
    name: "streamText",
    like: "stream",
    run: (options) => Effect.flatMap(streamText(options), ({ steps }) => Effect.map(steps, contents))
  },
  ...plain.map((way): Way => ({
    ...way,
    name: `wrapToolsForRun and ${way.name}`,
    run: (options) => Effect.flatMap(wrapped(options.tools), (tools) => way.run({ ...options, tools }))
  })),
  {
    name: "runAgent",
    like: "generate",
    run: (options) => Effect.map(runAgent(agentOf(options), { prompt: options.prompt }), ({ steps }) => contents(steps))
  },
  {
    name: "streamAgent",
    like: "stream",
    run: (options) =>
      Effect.flatMap(
        streamAgent(agentOf(options), { prompt: options.prompt }),
        ({ steps }) => Effect.map(steps, contents)
      )
  },
  {
    name: "wrapToolsForRun and a plain ToolLoopAgent",
    like: "generate",
    run: (options) =>
      Effect.flatMap(
        wrapped(options.tools),
        (tools) =>
          Effect.promise(async () =>
            contents((await agentOf({ ...options, tools }).generate({ prompt: options.prompt })).steps)
          )
      )
  }
]

/** As JSON, without what differs from call to call. */
const shown = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, value: unknown) =>
      key === "approvalId" ? "…" : value instanceof Error ? String(value) : value)
  )

/** Makes the tool of a kind and calls it, one way, as often as is said. */
const observe = Effect.fnUntraced(
  function*(kind: Kind, maker: Maker, way: Way, times = 1) {
    const { name, ran, tools } = yield* made(kind, maker)
    const turns = turnsOf(kind)
    const seen: Array<Seen> = []
    for (let i = 0; i < times; i++) {
      const model = modelOf(turns)
      let held: Tools = {}
      const content = yield* way.run(
        {
          model,
          tools: tools as ai.ToolSet,
          prompt: "go",
          stopWhen: ai.isStepCount(turns.length),
          onStart: (event: { readonly tools: Tools }) => {
            held = event.tools
          },
          ...kind.call
        } as Parameters<Way["run"]>[0]
      )
      assert.deepStrictEqual(Object.keys(held), Object.keys(tools), way.name)
      for (const [other, tool] of Object.entries(tools)) {
        if (other !== name || maker === "ai.tool") assert.strictEqual(held[other], tool, `${other} in ${way.name}`)
      }
      const asked = way.like === "generate" ? model.doGenerateCalls : model.doStreamCalls
      seen.push(shown({ sent: asked.map(({ tools }) => tools), content, prompt: asked.at(-1)?.prompt }) as Seen)
      for (const [actual, expected] of kind.shows(seen[i]!)) assert.deepStrictEqual(actual, expected, way.name)
    }
    return { seen, ran }
  },
  Effect.scoped,
  (effect) => Effect.provide(effect, layers)
)

const makersOf = (kind: Kind): ReadonlyArray<Maker> => kind.makers ?? ["ai.tool", "tool", "defineEffectTool"]

describe.each(kinds)("$name", (kind) => {
  const runs = kind.run === null ? 0 : kind.runs ?? 1

  for (const maker of makersOf(kind)) {
    it.effect(`is what it is in plain ai, made by ${maker}`, () =>
      Effect.gen(function*() {
        for (const like of ["generate", "stream"] as const) {
          const [expected] = (yield* observe(kind, "ai.tool", plain.find((way) => way.like === like)!)).seen
          for (const way of maker === "tool" ? [...plain, ...ways] : ways) {
            if (way.like !== like) continue
            // what an effect tool has done once is replayed
            const times = maker === "defineEffectTool" && kind.fails !== true ? 2 : 1
            const { ran, seen } = yield* observe(kind, maker, way, times)
            for (const one of seen) assert.deepStrictEqual(one, expected, way.name)
            assert.strictEqual(ran.length, runs, way.name)
          }
        }
      }))

    it.effect(`loses nothing when it is wrapped, made by ${maker}`, () =>
      Effect.gen(function*() {
        const { name, subject, tools } = yield* made(kind, maker)
        for (const key of Reflect.ownKeys(kind.options())) assert.include(Reflect.ownKeys(subject), key)
        const bound = yield* wrapped(tools as ai.ToolSet)
        assert.deepStrictEqual(Reflect.ownKeys(bound), Reflect.ownKeys(tools))
        assert.strictEqual(Object.getPrototypeOf(bound), Object.getPrototypeOf(tools))
        for (const [other, tool] of Object.entries(tools)) {
          if (other !== name || !isEffectTool(subject)) assert.strictEqual(bound[other], tool)
        }
        const { execute: _, ...own } = Object.getOwnPropertyDescriptors(subject)
        const copy = Object.getOwnPropertyDescriptors(bound[name])
        for (const key of Reflect.ownKeys(own)) {
          const [before, after] = [Reflect.get(own, key), Reflect.get(copy, key)] as ReadonlyArray<PropertyDescriptor>
          if (typeof before!.value !== "function") assert.strictEqual(after!.value, before!.value)
          assert.strictEqual(after!.enumerable, before!.enumerable)
        }
      }).pipe(Effect.scoped, Effect.provide(layers)))
  }

  it.effect("has an execute that runs, in plain ai", () =>
    Effect.gen(function*() {
      for (const way of plain) assert.strictEqual((yield* observe(kind, "ai.tool", way)).ran.length, runs, way.name)
    }))
})

describe("an effect tool whose execute was taken away", () => {
  it.effect.each(ways)("is the client's to execute, in $name", (way) =>
    Effect.gen(function*() {
      const label = yield* defineEffectTool({ inputSchema: ai.jsonSchema({}), execute: () => Effect.die("executed") })
      const without: AnyTool = Object.create(null, {
        ...Object.getOwnPropertyDescriptors(label),
        execute: { value: undefined, enumerable: true }
      }) as never
      assert.isFalse(isEffectTool(without))
      const content = yield* way.run({
        model: modelOf([[calls("label", {})], []]),
        tools: { label: without },
        prompt: "go"
      })
      assert.deepStrictEqual(
        (content[0] as ReadonlyArray<{ readonly type: string }>).map(({ type }) => type),
        ["tool-call"]
      )
    }).pipe(Effect.scoped, Effect.provide(layers)))
})
