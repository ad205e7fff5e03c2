/** A tracer that keeps its spans, and the tree that they make. */
import { Cause, type Exit, Option, Tracer } from "effect"

export interface Recorded {
  readonly tracer: Tracer.Tracer
  readonly spans: ReadonlyArray<Tracer.NativeSpan>
  readonly span: (name: string) => Tracer.NativeSpan
  /** The names of all spans, indented by their depth, in the order of their start; an end that is no success is told. */
  readonly tree: () => ReadonlyArray<string>
  /** All that an exporter could see, as one text. */
  readonly text: () => string
}

export const recordSpans = (): Recorded => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const below = (parent: Tracer.AnySpan | undefined, depth: number): ReadonlyArray<string> =>
    spans.flatMap((span) =>
      Option.getOrUndefined(span.parent) === parent
        ? [`${"  ".repeat(depth)}${span.name}${endOf(span)}`, ...below(span, depth + 1)]
        : []
    )
  return {
    tracer,
    spans,
    span: (name) => {
      const span = spans.find((span) => span.name === name)
      if (span === undefined) throw new Error(`no span is called ${name}`)
      return span
    },
    tree: () => below(undefined, 0),
    text: () =>
      spans.map((span) =>
        JSON.stringify([span.name, [...span.attributes], span.events.map(([name, , attributes]) => [name, attributes])])
        + (span.status._tag === "Ended" && span.status.exit._tag === "Failure"
          ? Cause.prettyErrors(span.status.exit.cause, { includeCauseInStack: true })
            .map(({ message, name, stack }) => [name, message, stack].join("\n")).join("\n")
          : "")
      ).join("\n")
  }
}

const endOf = ({ status }: Tracer.NativeSpan): string => status._tag === "Started" ? " (open)" : ending(status.exit)

const ending = (exit: Exit.Exit<unknown, unknown>): string =>
  exit._tag === "Success" ? "" : Cause.hasInterruptsOnly(exit.cause) ? " (interrupted)" : " (failed)"

export const attributesOf = (span: Tracer.NativeSpan): Record<string, unknown> => Object.fromEntries(span.attributes)
