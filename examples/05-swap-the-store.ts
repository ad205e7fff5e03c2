/**
 * A test that swaps the store's Layer: the tool and the test stay the same on memory and on SQLite. With `@effect/vitest`
 * the last lines read `it.effect("...", () => Effect.provide(postsOnce, store))`.
 *
 * The blog is a test double that loses power once: after the post is public, before its author is told.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { defineEffectTool, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Console, Context, DateTime, Effect, Exit, Layer, Schema } from "effect"
import { deepStrictEqual } from "node:assert/strict"
import { ledgerFile } from "./support/ledgerFile.ts"

class Post extends Schema.Class<Post>("Post")({ slug: Schema.String, publishedAt: Schema.DateTimeUtcFromString }) {}

class Blog extends Context.Service<Blog, {
  readonly publish: (slug: string) => Effect.Effect<Post>
  readonly find: (slug: string) => Effect.Effect<Post | undefined>
  readonly count: Effect.Effect<number>
}>()("examples/Blog") {
  static readonly layerPowerCut = Layer.sync(Blog, () => {
    const posts: Array<Post> = []
    return Blog.of({
      publish: Effect.fnUntraced(function*(slug) {
        const post = new Post({ slug, publishedAt: yield* DateTime.now })
        posts.push(post)
        return posts.length === 1 ? yield* Effect.die("power cut") : post
      }),
      find: (slug) => Effect.sync(() => posts.find((post) => post.slug === slug)),
      count: Effect.sync(() => posts.length)
    })
  })
}

const publish = defineEffectTool({
  description: "Publishes a post.",
  inputSchema: Schema.Struct({ slug: Schema.String }),
  outputSchema: Post,
  alreadyApplied: (_, { slug }) => Effect.flatMap(Blog, (blog) => blog.find(slug)),
  execute: ({ slug }) => Effect.flatMap(Blog, (blog) => blog.publish(slug))
})

const postsOnce = Effect.gen(function*() {
  const tools = yield* wrapToolsForRun({ publish: yield* publish }, yield* ToolContext, yield* EffectStore)
  const call = (toolCallId: string) =>
    Effect.tryPromise(() => tools.publish.execute({ slug: "hello" }, { toolCallId, messages: [], context: {} }))
  const [cutOff, found, replayed] = [yield* Effect.exit(call("1")), yield* call("2"), yield* call("3")]
  const blog = yield* Blog
  deepStrictEqual(yield* blog.count, 1)
  deepStrictEqual(Exit.isFailure(cutOff), true)
  deepStrictEqual(found, replayed)
}).pipe(Effect.scoped, Effect.provide([Blog.layerPowerCut, ToolContext.layer({ runId: "run-1" })]))

const stores = {
  memory: EffectStore.layerMemory,
  SQLite: Layer.unwrap(Effect.map(ledgerFile, (filename) => SqliteEffectStore.layer({ filename })))
}

Effect.forEach(
  Object.entries(stores),
  ([name, store]) => Effect.andThen(Effect.provide(postsOnce, store), Console.log(`posts once on ${name}`))
).pipe(NodeRuntime.runMain)
// => posts once on memory
// => posts once on SQLite
