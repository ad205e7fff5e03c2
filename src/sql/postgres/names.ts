import { hash } from "node:crypto"
import { quoted } from "../names.ts"

/** What a ledger is called in a Postgres database. All but `channel` is quoted, and stands in its schema. */
export interface Names {
  readonly schema: string
  readonly table: string
  /** The sequence of fencing tokens. */
  readonly tokens: string
  readonly migrations: string
  /** The channel of its notices, unquoted. */
  readonly channel: string
  /** The advisory lock of who makes its tables. */
  readonly lock: bigint
  /** An index of the table; its schema is the table's. */
  readonly index: (of: string) => string
}

/** A text as a literal of SQL. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** All processes that use one table agree in the names. */
export const namesOf = (schema: string, table: string): Names => {
  const inSchema = (name: string) => `${quoted(schema)}.${quoted(name)}`
  const id = hash("sha256", `${schema}.${table}`, "buffer")
  return {
    schema: quoted(schema),
    table: inSchema(table),
    tokens: inSchema(`${table}_tokens`),
    migrations: inSchema(`${table}_migrations`),
    channel: `chamvi_effect_${id.toString("hex", 0, 16)}`,
    lock: id.readBigInt64BE(16),
    index: (of) => quoted(`${table}_${of}`)
  }
}
