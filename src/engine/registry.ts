/**
 * The agents whose runs execute in this process.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { Ai } from "../Ai.ts"
import { capture } from "../ai/callContext.ts"
import type { AgentDefinition, RegisteredAgent } from "./agentTypes.ts"
import { execute, type Ground } from "./execute.ts"
import type { Executions } from "./port.ts"
import type { Runs } from "./runs.ts"
import { madeTools } from "./tools.ts"

export interface Registry {
  readonly has: (name: string) => boolean
  readonly register: (definition: AgentDefinition) => Effect.Effect<void, never, Scope.Scope>
}

export const make = (ground: Ground, executions: Executions["Service"], { goOn }: Pick<Runs, "goOn">): Registry => {
  /** How many layers have registered each agent. */
  const agents = new Map<string, { readonly definition: AgentDefinition; layers: number }>()
  return {
    has: (name) => agents.has(name),
    register: Effect.fnUntraced(function*(definition: AgentDefinition) {
      const { name } = definition
      const context = yield* Effect.context<Scope.Scope>()
      const ai = Context.getOrUndefined(context as Context.Context<never>, Ai as Context.Key<Ai, Ai["Service"]>)
        ?? Context.get(yield* Layer.build(Ai.layer), Ai)
      const agent: RegisteredAgent = {
        definition,
        // what belongs to the moment (a span, a clock) is that of each run
        context: Context.add(capture(context as Context.Context<never>).services, Ai, ai),
        tools: typeof definition.tools === "function" ? undefined : yield* Effect.orDie(madeTools(definition.tools))
      }
      const known = agents.get(name) ?? { definition, layers: 0 }
      if (known.definition !== definition) {
        return yield* Effect.die(
          new TypeError(`Two agents are called "${name}": runs are kept by the name of their agent.`)
        )
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          agents.set(name, known)
          known.layers++
        }),
        () => Effect.sync(() => --known.layers === 0 && agents.delete(name))
      )
      yield* executions.register(name, execute(ground, agent))
      // what was to go on, or to end, when the process died, and has no message of its own that says so
      const resting = yield* Effect.orDie(
        ground.index.list({ agent: name, status: ["queued", "waiting"], limit: Number.MAX_SAFE_INTEGER })
      )
      const awaited = resting.filter(({ cancelling, status }) => status === "queued" || cancelling)
      yield* Effect.orDie(Effect.forEach(awaited, goOn, { discard: true }))
    })
  }
}
