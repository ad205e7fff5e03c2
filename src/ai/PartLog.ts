/**
 * The parts of one streaming call: read once from the AI SDK, and handed to any number of readers.
 *
 * The SDK's own way to serve several readers is to tee, and one branch that nobody reads keeps all parts. Here a part is
 * kept only for readers that have still to see it, and beside that in a history for readers to come, in which the deltas
 * of one text are one, and of a tool's preliminary results the newest is left. Nothing is read ahead: a part is asked for
 * when a reader has none left, so a provider is as fast as the fastest of its readers.
 */
import type { TextStreamPart, ToolSet } from "ai"

export type Part = TextStreamPart<ToolSet>

/** Where parts come from. Asked for one at a time; `undefined` is the end. It never rejects: failures are parts. */
export type Source = () => Promise<Part | undefined>

/** A link of the chain of parts; the last one has no part yet. A link that no reader stands before is free. */
interface Link {
  part?: Part
  next?: Link
}

export interface Reader {
  /** The parts that are there and were not taken yet. */
  readonly take: () => Array<Part>
  /** Asks for more. `resume` is called once, when there is more, or an end. Answers how to take that back. */
  readonly whenMore: (resume: () => void) => () => void
  /** The next part, or `undefined` at the end. */
  readonly next: () => Promise<Part | undefined>
}

export class PartLog {
  /** No part will come any more. */
  ended = false
  readonly #source: Source
  readonly #history: Array<Part> = []
  readonly #waiting = new Set<() => void>()
  #last: Link = {}
  #reading = false

  constructor(source: Source) {
    this.#source = source
  }

  reader(): Reader {
    let early: Array<Part> | undefined = [...this.#history]
    let link = this.#last
    const take = () => {
      const parts = early ?? []
      early = undefined
      while (link.next !== undefined) {
        parts.push(link.part!)
        link = link.next
      }
      return parts
    }
    const whenMore = (resume: () => void) => this.#whenMore(resume)
    let taken: ReadonlyArray<Part> = []
    let at = 0
    const next = async (): Promise<Part | undefined> => {
      while (at === taken.length) {
        taken = take()
        at = 0
        if (taken.length > 0) break
        if (this.ended) return undefined
        await new Promise<void>((resolve) => whenMore(resolve))
      }
      return taken[at++]
    }
    return { take, whenMore, next }
  }

  /** Reads on, whoever wants the parts, until there are no more. */
  async drain(): Promise<void> {
    while (!this.ended) await new Promise<void>((resolve) => this.#whenMore(resolve))
  }

  #whenMore(resume: () => void): () => void {
    this.#waiting.add(resume)
    this.#advance()
    return () => this.#waiting.delete(resume)
  }

  #advance(): void {
    if (this.#reading || this.ended) return
    this.#reading = true
    void this.#source().then((part) => {
      this.#reading = false
      if (part === undefined) this.ended = true
      else this.#add(part)
      this.#wake()
    })
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    waiting.forEach((resume) => resume())
  }

  #add(part: Part): void {
    const joined = join(this.#history.at(-1), part)
    if (joined !== undefined) this.#history[this.#history.length - 1] = joined
    // signs of life say nothing to those who come later
    else if (part.type !== "ping") {
      if (isPreview(part)) this.#forgetPreview(part.toolCallId)
      this.#history.push(part)
    }
    const next: Link = {}
    this.#last.part = part
    this.#last.next = next
    this.#last = next
  }

  // Tools that run side by side show their previews in turns: the last one of this call is among the last parts.
  #forgetPreview(toolCallId: string): void {
    for (let at = this.#history.length - 1; at >= 0; at--) {
      const part = this.#history[at]!
      if (!isPreview(part)) return
      if (part.toolCallId === toolCallId) return void this.#history.splice(at, 1)
    }
  }
}

/** A preliminary result, which the next one takes the place of. */
const isPreview = (part: Part): part is Extract<Part, { readonly type: "tool-result" }> =>
  part.type === "tool-result" && part.preliminary === true

/** Two deltas of one text as one; `undefined` where they are not. */
const join = (before: Part | undefined, part: Part): Part | undefined => {
  if (before === undefined) return undefined
  if (before.type === "tool-input-delta" && part.type === "tool-input-delta") {
    return before.id === part.id && part.providerMetadata === undefined
      ? { ...before, delta: before.delta + part.delta }
      : undefined
  }
  const areTexts = before.type === "text-delta" && part.type === "text-delta"
    || before.type === "reasoning-delta" && part.type === "reasoning-delta"
  return areTexts && before.id === part.id && part.providerMetadata === undefined
    ? { ...before, text: before.text + part.text }
    : undefined
}
