/**
 * Strings as Postgres can hold them: its text has no NUL, and UTF-8 has no lone surrogates. Both are written as an escape
 * that begins with U+0001, which ordinary text never holds, and JSON never as it is. So every string comes back as it
 * was, and no two become one.
 */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { hash } from "node:crypto"
import type { Query } from "../dialect.ts"
import type { Row } from "../rows.ts"

const escape = "\u0001"

const escaped = (character: string): string =>
  character === "\u0000" ? `${escape}0` : character === escape ? `${escape}1` : `${escape}${
    // d800 to dfff
    character.charCodeAt(0).toString(16)}`

/** The string as it is stored. */
export const encodeText = (text: string): string =>
  text.isWellFormed() && !text.includes("\u0000") && !text.includes(escape)
    ? text
    : text.replace(/[\u0000\u0001\p{Cs}]/gu, escaped)

const unescaped = (_: string, code: string): string =>
  code === "0" ? "\u0000" : code === "1" ? escape : String.fromCharCode(Number.parseInt(code, 16))

const decodeText = (text: string): string =>
  text.includes(escape) ? text.replace(/\u0001(0|1|d[89a-f][0-9a-f]{2})/g, unescaped) : text

/** By what the row of a key is found: a short value makes a small index, whatever the keys look like. */
export const digestOf = (key: string): Uint8Array => hash("sha256", encodeText(key), "buffer")

const encode = (param: unknown): unknown =>
  typeof param === "string" ? encodeText(param) : Array.isArray(param) ? param.map(encode) : param

const decode = (row: Row): Row => row.map((value) => typeof value === "string" ? decodeText(value) : value)

/** Statements whose parameters, and whose answers, hold any string. */
export const anyText =
  (run: (query: Query) => Effect.Effect<ReadonlyArray<Row>, SqlError>) =>
  ({ params, sql }: Query): Effect.Effect<ReadonlyArray<Row>, SqlError> =>
    Effect.map(run({ sql, params: params.map(encode) }), (found) => found.map(decode))
