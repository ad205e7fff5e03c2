/**
 * How a batch becomes statements.
 */
import { Effect } from "effect"
import { digestOf } from "./text.ts"

/** An item of a batch with its place in it. */
export interface Numbered<Item> {
  readonly item: Item
  readonly digest: Uint8Array
  readonly index: number
}

/** About how many bytes one statement carries: with results of a megabyte, a batch would be more than a server takes. */
const mostBytes = 4_000_000

/**
 * Sorts a batch into statements. In each, no two items have one key, since a statement sees a row as it was before it.
 */
export const rounds = <Item extends { readonly key: string }>(
  items: ReadonlyArray<Item>,
  bytesOf: (item: Item) => number
): ReadonlyArray<ReadonlyArray<Numbered<Item>>> => {
  const times = new Map<string, number>()
  const byTime: Array<Array<Numbered<Item>>> = []
  for (const [index, item] of items.entries()) {
    const time = times.get(item.key) ?? 0
    times.set(item.key, time + 1)
    const round = byTime[time] ??= []
    round.push({ item, digest: digestOf(item.key), index })
  }
  return byTime.flatMap((round) => {
    const parts: Array<Array<Numbered<Item>>> = []
    let room = 0
    for (const numbered of round) {
      const bytes = bytesOf(numbered.item)
      if (parts.length === 0 || bytes > room) {
        parts.push([])
        room = mostBytes
      }
      room -= bytes
      parts.at(-1)!.push(numbered)
    }
    return parts
  })
}

/** Answers a batch by `one` for a single item, and by `many` for each round of more; `many` answers in the order given. */
export const inRounds = <Item extends { readonly key: string }, Reply, E>(
  one: (item: Item) => Effect.Effect<Reply, E>,
  many: (items: ReadonlyArray<Numbered<Item>>) => Effect.Effect<ReadonlyArray<Reply>, E>,
  bytesOf: (item: Item) => number
) =>
(items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>, E> => {
  if (items.length === 0) return Effect.succeed([])
  if (items.length === 1) return Effect.map(one(items[0]!), (reply) => [reply])
  const replies = new Array<Reply>(items.length)
  return Effect.as(
    Effect.forEach(
      rounds(items, bytesOf),
      (round) =>
        Effect.map(
          round.length === 1 ? Effect.map(one(round[0]!.item), (reply) => [reply]) : many(round),
          (answers) => round.forEach(({ index }, place) => replies[index] = answers[place]!)
        ),
      { discard: true }
    ),
    replies
  )
}
