/**
 * An answer of a scripted model in the two forms of the AI SDK: whole, and as a stream of parts.
 */
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage
} from "@ai-sdk/provider"
import { Effect, Stream } from "effect"
import type { Answer, Part, Piece } from "./line.ts"

type Call = Extract<LanguageModelV4Content, { readonly type: "tool-call" }>

/** A part with the id of its call, which is the same whenever the step is asked for. */
type Named<R> =
  | { readonly _tag: "Said"; readonly kind: "text" | "reasoning"; readonly pieces: ReadonlyArray<Piece<R>> }
  | { readonly _tag: "Given"; readonly content: LanguageModelV4Content }

const named = <R>(parts: ReadonlyArray<Part<R>>, step: number): ReadonlyArray<Named<R>> => {
  let calls = 0
  return parts.map((part): Named<R> => {
    switch (part._tag) {
      case "Text":
        return { _tag: "Said", kind: "text", pieces: part.pieces }
      case "Reasoning":
        return { _tag: "Said", kind: "reasoning", pieces: part.pieces }
      case "Content":
        return { _tag: "Given", content: part.content }
      case "Call": {
        const { input, toolCallId = `call-${step + 1}-${++calls}`, toolName } = part
        return {
          _tag: "Given",
          content: { type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) ?? "" }
        }
      }
    }
  })
}

const finishReasonOf = <R>(answer: Answer<R>, parts: ReadonlyArray<Named<R>>): LanguageModelV4FinishReason => {
  const calls = parts.some((part) =>
    part._tag === "Given" && part.content.type === "tool-call" && part.content.providerExecuted !== true
  )
  return { unified: answer.finishReason ?? (calls ? "tool-calls" : "stop"), raw: undefined }
}

/** All of an answer at once. */
export const whole = <R>(
  answer: Answer<R>,
  step: number,
  usage: LanguageModelV4Usage
): Effect.Effect<LanguageModelV4GenerateResult, unknown, R> => {
  const parts = named(answer.parts, step)
  const content = (part: Named<R>): Effect.Effect<LanguageModelV4Content, unknown, R> =>
    part._tag === "Given" ? Effect.succeed(part.content) : Effect.map(
      Effect.forEach(part.pieces, (piece) => typeof piece === "string" ? Effect.succeed(piece) : Effect.as(piece, "")),
      (pieces) => ({ type: part.kind, text: pieces.join("") })
    )
  return Effect.map(
    Effect.andThen(answer.before, Effect.forEach(parts, content)),
    (content) => ({ content, finishReason: finishReasonOf(answer, parts), usage, warnings: [] })
  )
}

/** A text that is given as one piece comes word by word. */
const chunks = <R>(pieces: ReadonlyArray<Piece<R>>): ReadonlyArray<Piece<R>> => {
  const [only, ...rest] = pieces
  return (typeof only === "string" && rest.length === 0 ? words(only) : pieces).filter((piece) => piece !== "")
}

const words = (text: string): ReadonlyArray<string> => text.match(/\s*\S+|\s+/g) ?? []

const inputOf = ({ dynamic, input, providerExecuted, toolCallId, toolName }: Call) => {
  const half = Math.ceil(input.length / 2)
  const flags = {
    ...dynamic === undefined ? {} : { dynamic },
    ...providerExecuted === undefined ? {} : { providerExecuted }
  }
  return [
    { type: "tool-input-start", id: toolCallId, toolName, ...flags },
    ...[input.slice(0, half), input.slice(half)]
      .filter((delta) => delta !== "")
      .map((delta) => ({ type: "tool-input-delta", id: toolCallId, delta } as const)),
    { type: "tool-input-end", id: toolCallId }
  ] satisfies ReadonlyArray<LanguageModelV4StreamPart>
}

const streamed = <R>(part: Named<R>, index: number): Stream.Stream<LanguageModelV4StreamPart, unknown, R> => {
  if (part._tag === "Said") {
    const id = `${part.kind}-${index + 1}`
    const said = Stream.flatMap(
      Stream.fromIterable(chunks(part.pieces)),
      (piece): Stream.Stream<LanguageModelV4StreamPart, unknown, R> =>
        typeof piece === "string"
          ? Stream.succeed({ type: `${part.kind}-delta`, id, delta: piece })
          : Stream.drain(Stream.fromEffect(piece))
    )
    const start: LanguageModelV4StreamPart = { type: `${part.kind}-start`, id }
    const end: LanguageModelV4StreamPart = { type: `${part.kind}-end`, id }
    return Stream.concat(Stream.succeed(start), Stream.concat(said, Stream.succeed(end)))
  }
  const { content } = part
  switch (content.type) {
    case "tool-call":
      return Stream.fromIterable([...inputOf(content), content])
    case "text":
    case "reasoning":
      return streamed({ _tag: "Said", kind: content.type, pieces: [content.text] }, index)
    default:
      return Stream.succeed(content)
  }
}

/** The parts of an answer, as they come. What it waits for before all of them is not among them. */
export const parts = <R>(
  answer: Answer<R>,
  step: number,
  usage: LanguageModelV4Usage
): Stream.Stream<LanguageModelV4StreamPart, unknown, R> => {
  const all = named(answer.parts, step)
  const start: LanguageModelV4StreamPart = { type: "stream-start", warnings: [] }
  const finish: LanguageModelV4StreamPart = { type: "finish", finishReason: finishReasonOf(answer, all), usage }
  return Stream.concat(
    Stream.succeed(start),
    Stream.concat(
      Stream.flatMap(
        Stream.fromIterable(all.map((part, index) => [part, index] as const)),
        ([part, index]) => streamed(part, index)
      ),
      Stream.succeed(finish)
    )
  )
}
