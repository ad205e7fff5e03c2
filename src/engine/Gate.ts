/**
 * How many runs execute at once: in order of arrival per agent, agents in turn, so that a flood of one agent's runs does not
 * hold up those of another.
 */
import { Deferred, Effect } from "effect"

export interface Gate {
  /** Runs `effect` when it is the agent's turn, unless `unless` ends before. */
  readonly within: <A, E, R>(
    agent: string,
    effect: Effect.Effect<A, E, R>,
    unless?: Effect.Effect<never>
  ) => Effect.Effect<A, E, R>
}

export const make = (permits: number): Gate => {
  let free = permits
  /** Who waits, agent by agent; the first agent is the next one. */
  const queues = new Map<string, Array<Deferred.Deferred<void>>>()

  const leave = (): void => {
    const [first] = queues
    if (first === undefined) {
      free++
      return
    }
    const [agent, waiting] = first
    const next = waiting.shift()!
    queues.delete(agent)
    if (waiting.length > 0) queues.set(agent, waiting)
    Deferred.doneUnsafe(next, Effect.void)
  }

  const enter = (agent: string, unless: Effect.Effect<never>) =>
    Effect.suspend(() => {
      if (free > 0) {
        free--
        return Effect.void
      }
      const turn = Deferred.makeUnsafe<void>()
      const waiting = queues.get(agent) ?? []
      waiting.push(turn)
      queues.set(agent, waiting)
      return Effect.onError(Effect.raceFirst(Deferred.await(turn), unless), () =>
        Effect.sync(() => {
          const position = waiting.indexOf(turn)
          // its turn may have come in the very moment of its end
          if (position === -1) return leave()
          waiting.splice(position, 1)
          if (waiting.length === 0) queues.delete(agent)
        }))
    })

  return {
    within: (agent, effect, unless = Effect.never) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(restore(enter(agent, unless)), Effect.ensuring(restore(effect), Effect.sync(leave)))
      )
  }
}
