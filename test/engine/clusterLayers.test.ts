/** Engines of one program that have nothing in common but the modules they are made of. */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Engine } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Context, Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { says, scripted } from "../support/model.ts"

describe("two engines in one program", () => {
  it.live("each keep their executions in their own database", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      const named = (name: string) => {
        const agent = defineAgent({ name, model: scripted(says("Hi.")) })
        class Named extends Context.Service<Named, Engine["Service"]>()(`test/${name}`) {}
        const layer = Layer.effect(Named, Engine).pipe(
          Layer.provideMerge(agent.layer),
          Layer.provide(SqliteEngine.layer({ filename: join(directory, name) }))
        )
        return { agent, Named, layer }
      }
      const [first, second] = [named("first"), named("second")]
      const messages = (name: string) => {
        const reader = new DatabaseSync(join(directory, name), { readOnly: true })
        const { n } = reader.prepare("SELECT count(*) AS n FROM chamvi_engine_messages").get() as { readonly n: number }
        reader.close()
        return n
      }
      yield* Effect.gen(function*() {
        yield* (yield* second.Named).run(second.agent, { runId: "1", prompt: "Hello?" })
        expect([messages("first"), messages("second") > 0]).toEqual([0, true])
      }).pipe(Effect.provide([first.layer, second.layer]))
    }))
})
