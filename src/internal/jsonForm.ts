/**
 * JSON at the level of types: what a value looks like once it is JSON, and whether a type is JSON already.
 *
 * @since 0.1.0
 */
import type { Option, Schema } from "effect"

declare const NotJson: unique symbol

/** A type that nothing is assignable to, with a name that a compiler message can show. */
interface NotJson<What> {
  readonly [NotJson]: What
}

type Text = bigint | symbol | Date | URL | RegExp | Uint8Array

/**
 * The JSON form of a schema's encoded side: what the AI SDK holds, and what a stored history or a UI sees. A `Date` is a
 * string, an optional field may be `null`, an Option a tagged object, a Map a list of pairs.
 *
 * @category utility types
 * @since 0.1.0
 */
export type JsonForm<E> = 0 extends 1 & E ? unknown
  : unknown extends E ? unknown
  : [E] extends [string | number | boolean | null] ? E
  : E extends string | number | boolean | null ? E
  : E extends undefined | void ? null
  : E extends Text ? string
  : E extends Option.Some<infer A> ? { readonly _tag: "Some"; readonly value: JsonForm<A> }
  : E extends Option.None<unknown> ? { readonly _tag: "None" }
  : E extends ReadonlyMap<infer K, infer V> ? ReadonlyArray<readonly [JsonForm<K>, JsonForm<V>]>
  : E extends ReadonlySet<infer V> ? ReadonlyArray<JsonForm<V>>
  : E extends ReadonlyArray<unknown> ? { [K in keyof E]: JsonForm<E[K]> }
  // Effect's data types, and everything else with methods, have forms of their own
  : E extends { readonly pipe: (...args: never) => unknown } | ((...args: never) => unknown) ? Schema.Json
  : E extends object ? { [K in keyof E]: JsonForm<E[K]> }
  : unknown

/** What JSON is, for types that say so of themselves: the quick way, which also ends the recursion of `JSONValue`. */
type JsonValue =
  | string
  | number
  | boolean
  | null
  | ReadonlyArray<JsonValue>
  | { readonly [name: string]: JsonValue | undefined }

/** `T` where JSON carries it, and a type that `T` does not fit where it does not. */
type Carried<T> = 0 extends 1 & T ? T
  : unknown extends T ? NotJson<"unknown">
  : T extends JsonValue | undefined | void ? T
  : T extends bigint ? NotJson<"bigint">
  : T extends symbol ? NotJson<"symbol">
  : T extends Error ? NotJson<"an Error">
  : T extends (...args: never) => unknown ? NotJson<"a function">
  : T extends ReadonlyArray<unknown>
    ? { [K in keyof T]: undefined extends T[K] ? NotJson<"undefined in an array"> : Carried<T[K]> }
  : T extends object ? { [K in keyof T]: Carried<T[K]> }
  : NotJson<"unknown">

/**
 * Whether JSON carries every value of `T` without loss: no `Date`, `bigint`, `Map`, Option, Error or function in it, and
 * nothing of an unknown type.
 *
 * @category utility types
 * @since 0.1.0
 */
export type IsJson<T> = [T] extends [Carried<T>] ? true : false
