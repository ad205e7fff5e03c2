/**
 * The names of what the store makes in a database. They come from a program's configuration, so that they are checked,
 * and quoted wherever they stand.
 */
import { Effect } from "effect"
import { EffectStoreError } from "../errors.ts"

/** The name of the ledger's table, where none is given. */
export const defaultTable = "chamvi_effect"

/** Postgres cuts longer names off, in bytes; what belongs to the table has its name and a few letters more. */
const mostBytes = { table: 48, schema: 63 } as const

/** A name as an identifier of SQL. */
export const quoted = (name: string): string => `"${name.replaceAll("\"", "\"\"")}"`

/** The name, if a database can take it as it is. */
export const checkName = (option: "table" | "schema", name: unknown): Effect.Effect<string, EffectStoreError> => {
  const problem = typeof name !== "string" || name.trim() === ""
    ? "it is not a name"
    : /[\p{Cc}\p{Cs}.]/u.test(name)
    ? "it has a dot or a control character in it"
    : Buffer.byteLength(name) > mostBytes[option]
    ? `it is longer than ${mostBytes[option]} bytes`
    : undefined
  return problem === undefined
    ? Effect.succeed(name as string)
    : Effect.fail(
      new EffectStoreError({
        operation: "open its tables",
        problem: `the option ${option} is ${JSON.stringify(name)}: ${problem}`,
        permanent: true
      })
    )
}
