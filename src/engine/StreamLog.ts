/**
 * What of a run is in its log: so a replay publishes what is missing, and nothing again.
 */

/** What became complete. */
export type Mark =
  /** A generation of the step begins. What earlier ones published counts no more. */
  | readonly ["begin", step: number]
  /** All parts of the model's answer of this name are there. */
  | readonly ["answer", step: number, answer: string]
  /** The parts of this name are there. */
  | readonly ["once", step: number, name: string]

interface Step {
  begun: boolean
  answer: string | undefined
  readonly once: Set<string>
}

export class StreamLog {
  readonly #steps = new Map<number, Step>()

  /** The log whose rows have these marks. */
  static of(marks: ReadonlyArray<string>): StreamLog {
    const log = new StreamLog()
    for (const row of marks) (JSON.parse(row) as ReadonlyArray<Mark>).forEach((mark) => log.add(mark))
    return log
  }

  add(mark: Mark): void {
    const [kind, number, name] = mark
    const step = this.#step(number)
    if (kind === "begin") this.#steps.set(number, { begun: true, answer: undefined, once: new Set() })
    else if (kind === "answer") step.answer = name
    else step.once.add(name)
  }

  /** Whether a generation of the step has begun. */
  hasBegun(step: number): boolean {
    return this.#step(step).begun
  }

  hasAnswer(step: number, answer: string): boolean {
    return this.#step(step).answer === answer
  }

  hasOnce(step: number, name: string): boolean {
    return this.#step(step).once.has(name)
  }

  #step(number: number): Step {
    const step = this.#steps.get(number) ?? { begun: false, answer: undefined, once: new Set() }
    this.#steps.set(number, step)
    return step
  }
}
