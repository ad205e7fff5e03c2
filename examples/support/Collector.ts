/**
 * A collector of OpenTelemetry's protocol (OTLP) on this machine, that keeps the spans which it gets.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { localServer } from "./localServer.ts"

const Attribute = Schema.Struct({
  key: Schema.String,
  value: Schema.Struct({ stringValue: Schema.optional(Schema.String) })
})
const Span = Schema.Struct({
  name: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optional(Schema.String),
  startTimeUnixNano: Schema.String,
  attributes: Schema.Array(Attribute)
})
const Traces = Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({ scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) })) }))
})

/** The spans that were exported so far, and all that was sent, as it came. */
export class Collector extends Context.Service<Collector, {
  readonly received: Array<typeof Span.Type>
  readonly bodies: Array<string>
}>()("examples/Collector") {
  static readonly layer = Layer.suspend(() => {
    const received: Array<typeof Span.Type> = []
    const bodies: Array<string> = []
    const traces = HttpRouter.add(
      "POST",
      "/v1/traces",
      Effect.gen(function*() {
        const body = yield* (yield* HttpServerRequest.HttpServerRequest).text
        const { resourceSpans } = yield* Schema.decodeEffect(Schema.fromJsonString(Traces))(body)
        bodies.push(body)
        received.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)))
        return HttpServerResponse.empty({ status: 200 })
      })
    )
    return Layer.merge(Layer.succeed(Collector, { received, bodies }), localServer(traces))
  })
}

/** The names of spans as a tree, in the order in which they began. */
export const treeOf = (spans: ReadonlyArray<typeof Span.Type>): ReadonlyArray<string> => {
  const inOrder = spans.toSorted((a, b) => BigInt(a.startTimeUnixNano) < BigInt(b.startTimeUnixNano) ? -1 : 1)
  const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
    inOrder.flatMap((span) =>
      span.parentSpanId === parent
        ? [`${"  ".repeat(depth)}${span.name}`, ...below(span.spanId, depth + 1)]
        : []
    )
  return below(undefined, 0)
}
