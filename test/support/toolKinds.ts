/**
 * Everything that a tool of the AI SDK can be: how it is made, how a model calls it, and what has to be seen of it. The
 * options are those of plain `ai`; `execute` is told apart, since each maker of tools wants one of its own form.
 */
import type { JSONSchema7, LanguageModelV4CallOptions, LanguageModelV4Content } from "@ai-sdk/provider"
import { lazySchema } from "@ai-sdk/provider-utils"
import * as ai from "ai"
import { effectSchema } from "chamvi-effect"
import { Schema } from "effect"
import { z } from "zod"

export type Maker = "ai.tool" | "tool" | "defineEffectTool"
export type AnyTool = ai.ToolSet[string]
export type Tools = Readonly<Record<string, AnyTool>>
type Run = (input: never, options: ai.ToolExecutionOptions<Record<string, unknown>>) => unknown

/** What came of a call, as JSON. */
export interface Seen {
  /** The tools in the options of each model call, and the provider options. */
  readonly sent: ReadonlyArray<NonNullable<LanguageModelV4CallOptions["tools"]>>
  /** The content of each step. */
  readonly content: ReadonlyArray<ReadonlyArray<Readonly<Record<string, unknown>>>>
  /** The last prompt. */
  readonly prompt: unknown
}

export interface Kind {
  readonly name: string
  /** The tool's name in its set. */
  readonly toolName?: string
  /** Its options, without `execute`. */
  readonly options: () => object
  /** What the tool does; `null` where there is no `execute`. */
  readonly run?: Run | null
  readonly makers?: ReadonlyArray<Maker>
  /** What is done to the tool when it is made. */
  readonly finish?: (tool: AnyTool) => AnyTool
  /** The set that it stands in. */
  readonly set?: (tool: AnyTool, name: string) => Tools
  /** Options of the call. */
  readonly call?: object
  readonly input?: unknown
  /** What the model answers, step by step, before it ends. */
  readonly turns?: ReadonlyArray<ReadonlyArray<LanguageModelV4Content>>
  /** How often `run` runs. */
  readonly runs?: number
  /** Whether `run` fails. */
  readonly fails?: boolean
  /** What has to be seen, in plain `ai` as everywhere. */
  readonly shows: (seen: Seen) => ReadonlyArray<readonly [actual: unknown, expected: unknown]>
}

export const calls = (toolName: string, input: unknown, id = "1"): LanguageModelV4Content => ({
  type: "tool-call",
  toolCallId: id,
  toolName,
  input: JSON.stringify(input)
})

const first = (seen: Seen) => seen.sent[0]![0]!
const part = (seen: Seen, type: string, step = 0) => seen.content[step]!.find((part) => part["type"] === type)
const output = (seen: Seen, step = 0) => part(seen, "tool-result", step)?.["output"]
const types = (seen: Seen, step = 0) => seen.content[step]!.map((part) => part["type"])

const city = z.object({ city: z.string() })
const jsonCity: JSONSchema7 = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const described = { description: "about a city", inputSchema: city }
const echoes = (seen: Seen): readonly [unknown, unknown] => [output(seen), { echo: { city: "Paris" } }]
const describesCity = (seen: Seen): readonly [unknown, unknown] => {
  const sent = first(seen)
  return [sent.type === "function" && [sent.inputSchema.properties, sent.inputSchema.required], [
    jsonCity.properties,
    jsonCity.required
  ]]
}

const redact = Symbol.for("vercel.ai.telemetry.redact")
const redacted = (args: object) => Object.defineProperty(args, redact, { value: () => ({ key: "hidden" }) })
const provider = {
  type: "provider",
  isProviderExecuted: false,
  id: "test.editor",
  args: redacted({ key: "secret" }),
  inputSchema: city
}
const standard = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) => ({ value: { city: (value as { readonly city: string }).city.trim() } }),
    jsonSchema: { input: () => ({ ...jsonCity }), output: () => ({ ...jsonCity }) }
  }
}

const schemas: ReadonlyArray<readonly [name: string, schema: () => unknown]> = [
  ["a tool with Zod", () => city],
  ["a tool with jsonSchema()", () => ai.jsonSchema(jsonCity)],
  ["a tool with jsonSchema() of a promise", () => ai.jsonSchema(async () => jsonCity)],
  ["a tool with a lazy schema", () => lazySchema(() => ai.jsonSchema(jsonCity))],
  ["a tool with Standard Schema", () => standard],
  ["a tool with effectSchema()", () => effectSchema(Schema.Struct({ city: Schema.String }))]
]

const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "then"]

class Counter {
  readonly #count = 7
  readonly inputSchema = city
  get description(): string {
    return `counts to ${this.#count}`
  }
  execute(): unknown {
    return { echo: { city: this.#count === 7 ? "Paris" : "" } }
  }
}

const symbol = Symbol.for("test/symbol")
const marked = () => Object.defineProperty({ ...described, [symbol]: "seen" }, "hidden", { value: "hidden" })

const search = (tool: AnyTool, name: string): Tools => ({
  search: ai.toolSearch({ search: ({ tools }) => tools.map(({ name }) => name) }),
  [name]: tool
})

const empty = z.object({})

/** The tool, and one that calls others, as code that a model writes does. */
const coded = (tool: AnyTool, name: string, run: (tools: ai.ToolSet) => unknown): Tools => ({
  [name]: tool,
  code: caller({ inputSchema: empty, execute: () => "replaced" }, {
    type: "local",
    bind: (tools) => ({ description: "runs code", inputSchema: empty, execute: async () => run(tools) })
  })
})
const caller = (tool: object, definition: Parameters<typeof ai.experimental_toolCaller>[1]): AnyTool =>
  ai.experimental_toolCaller(tool as never, definition) as AnyTool

export const kinds: ReadonlyArray<Kind> = [
  ...schemas.map(([name, schema]): Kind => ({
    name,
    options: () => ({ inputSchema: schema() }),
    shows: (seen) => [echoes(seen), describesCity(seen)]
  })),
  {
    name: "a schema that transforms, once",
    options: () => ({ inputSchema: z.object({ city: z.string().transform((city) => `${city}!`) }) }),
    shows: (seen) => [[output(seen), { echo: { city: "Paris!" } }], [part(seen, "tool-call")?.["input"], {
      city: "Paris!"
    }]]
  },
  {
    name: "every option of a function tool",
    options: () => ({
      type: "function",
      title: "Cities",
      description: "about a city",
      inputSchema: city,
      outputSchema: z.object({ echo: city }),
      strict: true,
      inputExamples: [{ input: { city: "Rome" } }],
      providerOptions: { test: { cached: true } },
      metadata: { server: "seven" }
    }),
    shows: (seen) => [
      echoes(seen),
      [{ ...first(seen), inputSchema: null }, {
        type: "function",
        name: "subject",
        description: "about a city",
        strict: true,
        inputExamples: [{ input: { city: "Rome" } }],
        providerOptions: { test: { cached: true } },
        inputSchema: null
      }],
      [part(seen, "tool-call")?.["title"], "Cities"],
      ...["tool-call", "tool-result"].map((type) => [part(seen, type)?.["toolMetadata"], { server: "seven" }] as const)
    ]
  },
  {
    name: "a description that is made from the tool's context",
    options: () => ({
      inputSchema: city,
      contextSchema: z.object({ tenant: z.string() }),
      description: ({ context }: { readonly context: { readonly tenant: string } }) => `for ${context.tenant}`
    }),
    run: (_, { context }) => ({ tenant: context["tenant"] }),
    call: { toolsContext: { subject: { tenant: "acme" } } },
    shows: (seen) => [[output(seen), { tenant: "acme" }], [
      (first(seen) as { readonly description?: string }).description,
      "for acme"
    ]]
  },
  {
    name: "a toModelOutput",
    options: () => ({ ...described, toModelOutput: () => ({ type: "text", value: "told otherwise" }) }),
    shows: (seen) => [echoes(seen), [JSON.stringify(seen.prompt).includes("told otherwise"), true]]
  },
  ...[true, () => true, async () => true].map((needsApproval, i): Kind => ({
    name: `needsApproval as ${["a boolean", "a function", "a function with a Promise"][i]}`,
    options: () => ({ ...described, needsApproval }),
    runs: 0,
    shows: (seen) => [[types(seen), ["tool-call", "tool-approval-request"]]]
  })),
  {
    name: "a dynamic tool",
    options: () => ({ ...described, type: "dynamic" }),
    shows: (seen) => [echoes(seen), [part(seen, "tool-result")?.["dynamic"], true]]
  },
  {
    name: "a tool that dynamicTool makes dynamic",
    options: () => described,
    finish: (tool) => ai.dynamicTool(tool as never),
    shows: (seen) => [echoes(seen), [part(seen, "tool-call")?.["dynamic"], true]]
  },
  {
    name: "a tool of an MCP server",
    options: () => ({ ...described, type: "dynamic", metadata: { server: "mcp" }, _meta: { "ui/resource": "ui://x" } }),
    run: () => ({ isError: true, content: [{ type: "text", text: "no such city" }] }),
    shows: (seen) => [[output(seen), { isError: true, content: [{ type: "text", text: "no such city" }] }], [
      part(seen, "tool-result")?.["toolMetadata"],
      { server: "mcp" }
    ]]
  },
  {
    name: "a tool that a provider defines",
    options: () => provider,
    shows: (seen) => [echoes(seen), [first(seen), {
      type: "provider",
      name: "subject",
      id: "test.editor",
      args: { key: "secret" }
    }]]
  },
  {
    name: "a tool that a provider executes",
    options: () => ({ ...provider, isProviderExecuted: true, outputSchema: city, supportsDeferredResults: true }),
    run: null,
    makers: ["ai.tool"],
    turns: [[
      { ...calls("subject", { city: "Paris" }), providerExecuted: true } as LanguageModelV4Content,
      { type: "tool-result", toolCallId: "1", toolName: "subject", result: { city: "Paris" } }
    ]],
    shows: (seen) => [[output(seen), { city: "Paris" }], [part(seen, "tool-result")?.["providerExecuted"], true]]
  },
  {
    name: "a tool whose result a provider defers",
    options: () => ({ ...provider, isProviderExecuted: true, outputSchema: city, supportsDeferredResults: true }),
    run: null,
    makers: ["ai.tool"],
    turns: [
      [{ ...calls("subject", { city: "Paris" }), providerExecuted: true } as LanguageModelV4Content],
      [{ type: "tool-result", toolCallId: "1", toolName: "subject", result: { city: "Paris" } }]
    ],
    shows: (seen) => [[types(seen), ["tool-call"]], [output(seen, 1), { city: "Paris" }]]
  },
  {
    name: "a tool that the client executes",
    options: () => ({ ...described, outputSchema: city }),
    run: null,
    makers: ["ai.tool"],
    shows: (seen) => [[types(seen), ["tool-call"]], [seen.sent.length, 1]]
  },
  {
    name: "a tool that streams its results",
    options: () => described,
    run: async function*({ city }: { readonly city: string }) {
      yield { echo: { city: "" } }
      yield { echo: { city } }
    },
    makers: ["ai.tool"],
    shows: (seen) => [echoes(seen)]
  },
  {
    name: "a tool that fails",
    options: () => described,
    run: () => {
      throw new TypeError("no such city")
    },
    fails: true,
    shows: (seen) => [[String(part(seen, "tool-error")?.["error"]).includes("no such city"), true]]
  },
  {
    name: "an instance of a class with private parts",
    options: () => new Counter(),
    finish: () => new Counter() as unknown as AnyTool,
    runs: 0,
    makers: ["ai.tool"],
    shows: (seen) => [echoes(seen), [(first(seen) as { readonly description?: string }).description, "counts to 7"]]
  },
  {
    name: "a frozen tool",
    options: () => described,
    finish: (tool) => Object.freeze(tool),
    shows: (seen) => [echoes(seen)]
  },
  { name: "a tool with symbols and hidden properties", options: marked, shows: (seen) => [echoes(seen)] },
  ...names.map((toolName): Kind => ({
    name: `a tool named ${toolName}`,
    toolName,
    options: () => described,
    set: (tool, name) => Object.fromEntries([[name, tool], ["other", ai.tool({ inputSchema: city })]]),
    shows: (seen) => [echoes(seen), [seen.sent[0]!.map(({ name }) => name), [toolName, "other"]]]
  })),
  {
    name: "a frozen set of tools",
    options: () => described,
    set: (tool, name) => Object.freeze({ [name]: tool }),
    shows: (seen) => [echoes(seen)]
  },
  {
    name: "a set of tools without a prototype",
    options: () => described,
    set: (tool, name) => Object.assign(Object.create(null) as object, { [name]: tool }),
    shows: (seen) => [echoes(seen)]
  },
  {
    name: "a tool whose loading is deferred, beside toolSearch",
    options: () => ({ ...described, deferLoading: true }),
    set: search,
    turns: [[calls("search", { query: "cities" })], [calls("subject", { city: "Paris" })]],
    shows: (seen) => [
      [output(seen), { tools: [{ name: "subject", description: "about a city" }] }],
      [output(seen, 1), { echo: { city: "Paris" } }],
      [seen.sent.map((tools) => tools.map(({ name }) => name)), [["search"], ["search", "subject"], [
        "search",
        "subject"
      ]]]
    ]
  },
  {
    name: "a tool that code calls",
    options: () => described,
    set: (tool, name) =>
      coded(
        tool,
        name,
        (tools) => tools[name]?.execute?.({ city: "Paris" }, { toolCallId: "1:1", messages: [], context: {} })
      ),
    call: { experimental_toolCallers: { subject: ["code"] } },
    turns: [[calls("code", {})]],
    shows: (seen) => [[output(seen), { echo: { city: "Paris" } }], [seen.sent[0]!.map(({ name }) => name), ["code"]]]
  },
  {
    name: "a tool through which code calls others",
    options: () => described,
    finish: (tool) => caller(tool, { type: "local", bind: () => ({ ...tool, description: "bound" }) as never }),
    set: (tool, name) => ({
      [name]: tool,
      other: ai.tool({ inputSchema: city, execute: () => "other" })
    }),
    call: { experimental_toolCallers: { other: ["subject"] } },
    makers: ["ai.tool", "tool"],
    shows: (seen) => [
      echoes(seen),
      [seen.sent[0]!.map((tool) => tool.type === "function" && tool.description), ["bound"]]
    ]
  },
  {
    name: "a caller in the options of a tool",
    options: () =>
      caller(described, {
        type: "provider",
        prepareProviderOptions: (options) => ({ ...options, test: { allowed: "subject" } })
      }),
    set: (tool, name) => ({
      [name]: tool,
      other: ai.tool({ inputSchema: city, execute: () => "other" })
    }),
    call: { experimental_toolCallers: { other: ["subject"] } },
    shows: (seen) => [
      echoes(seen),
      [seen.sent[0]!.find(({ name }) => name === "other"), {
        ...seen.sent[0]!.find(({ name }) => name === "other")!,
        providerOptions: { test: { allowed: "subject" } }
      }]
    ]
  }
]
