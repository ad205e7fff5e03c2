import { defineAgent, defineEffectTool, type Engine, Output, tool, ToolContext } from "chamvi-effect"
import { Context, Effect, type Layer, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { scripted } from "../support/model.ts"

class GitHub
  extends Context.Service<GitHub, { readonly post: (text: string) => Effect.Effect<number> }>()("test/GitHub")
{}
class Rules extends Context.Service<Rules, { readonly ok: boolean }>()("test/Rules") {}

const model = scripted()
const post = defineEffectTool({
  inputSchema: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.flatMap(GitHub, (github) => github.post(text))
})
const add = tool({ inputSchema: Schema.Struct({ a: Schema.Finite }), execute: ({ a }) => Effect.succeed(a + 1) })

describe("defineAgent", () => {
  it("lets the services of tools, callbacks, instructions and allow surface in its layer", () => {
    const agent = defineAgent({
      name: "poster",
      model,
      tools: { post, add },
      allow: () => Effect.map(Rules, ({ ok }) => ok)
    })
    expectTypeOf(agent.layer).toEqualTypeOf<Layer.Layer<never, never, Engine | GitHub | Rules>>()
    const other = defineAgent({
      name: "other",
      model,
      instructions: () => Effect.map(Rules, () => "Be kind."),
      tools: () => ({ post }),
      onStepEnd: () => Effect.asVoid(GitHub)
    })
    expectTypeOf(other.layer).toEqualTypeOf<Layer.Layer<never, never, Engine | GitHub | Rules>>()
    // a set of tools is made once and knows of no run; a function makes it in each
    const who = tool({
      inputSchema: Schema.Struct({}),
      execute: () => Effect.map(ToolContext, (ctx) => ctx.run.runId)
    })
    const outside = defineAgent({ name: "outside", model, tools: { who } })
    expectTypeOf(outside.layer).toEqualTypeOf<Layer.Layer<never, never, Engine | ToolContext>>()
    const inside = defineAgent({ name: "inside", model, tools: () => ({ who }) })
    expectTypeOf(inside.layer).toEqualTypeOf<Layer.Layer<never, never, Engine>>()
    const plain = defineAgent({ name: "plain", model })
    expectTypeOf(plain.layer).toEqualTypeOf<Layer.Layer<never, never, Engine>>()
  })

  it("types the trigger, and what its functions read of it", () => {
    const agent = defineAgent({
      name: "triage",
      model,
      trigger: Schema.Struct({ issue: Schema.Int, at: Schema.Date }),
      instructions: ({ run }) => {
        expectTypeOf(run.trigger.at).toEqualTypeOf<Date>()
        return `Issue ${run.trigger.issue}`
      }
    })
    const run = (engine: Engine["Service"]) =>
      engine.run(agent, { runId: "1", prompt: "x", trigger: { issue: 1, at: new Date(0) } })
    expectTypeOf(run).returns.not.toBeAny()
    // @ts-expect-error the trigger is missing
    void ((engine: Engine["Service"]) => engine.run(agent, { runId: "1", prompt: "x" }))
    void ((engine: Engine["Service"]) =>
      // @ts-expect-error the trigger is another
      engine.run(agent, { runId: "1", prompt: "x", trigger: { issue: "1" } }))
  })

  it("types the output", () => {
    const agent = defineAgent({
      name: "o",
      model,
      output: Output.object({ schema: Schema.Struct({ at: Schema.Date }) })
    })
    const run = (engine: Engine["Service"]) =>
      Effect.map(engine.run(agent, { runId: "1", prompt: "x" }), (r) => r.output)
    expectTypeOf<Effect.Success<ReturnType<typeof run>>>().toEqualTypeOf<{ readonly at: Date }>()
    const text = defineAgent({ name: "t", model })
    const runText = (engine: Engine["Service"]) =>
      Effect.map(engine.run(text, { runId: "1", prompt: "x" }), (r) => r.output)
    expectTypeOf<Effect.Success<ReturnType<typeof runText>>>().toEqualTypeOf<string>()
  })

  it("knows the tools in its callbacks", () => {
    defineAgent({
      name: "callbacks",
      model,
      tools: { add },
      prepareStep: ({ steps }) => {
        expectTypeOf(steps[0]!.staticToolCalls[0]!.toolName).toEqualTypeOf<"add">()
        return {}
      }
    })
  })

  it("refuses misspelt options, and those of a run", () => {
    // @ts-expect-error no such option
    defineAgent({ name: "x", model, stopWen: [] })
    // @ts-expect-error it streams, or it does not
    defineAgent({ name: "x", model, stream: "yes" })
    // @ts-expect-error the prompt is the run's
    defineAgent({ name: "x", model, prompt: "Hello" })
  })
})
