/**
 * Every error of the library: its tag, what its message says, and that it survives being written and read.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Schema } from "effect"
import * as errors from "../src/errors.ts"
import { abbreviate, oneLine } from "../src/internal/abbreviate.ts"

const key = "run-1:comment:7"
const tool = "comment"

interface Case {
  readonly error: Error & { readonly _tag: string }
  /** What the message must say, beside the key and the tool that the error has. */
  readonly says: ReadonlyArray<RegExp>
  readonly isRetryable?: boolean
}

const cases: { readonly [Name in keyof typeof errors]: Case } = {
  EffectKeyError: {
    error: new errors.EffectKeyError({ tool, path: "$.items[2].price", problem: "it holds a bigint" }),
    says: [/it holds a bigint/, /\$\.items\[2\]\.price/, /Nothing was executed/, /give the tool an effectKey/]
  },
  EffectKeyConflictError: {
    error: new errors.EffectKeyConflictError({ key, tool, heldBy: "label" }),
    says: [/belongs to tool "label"/, /Nothing was executed/, /Put the tool's name into the key/]
  },
  EffectInputChangedError: {
    error: new errors.EffectInputChangedError({ key, tool }),
    says: [/another input/, /Nothing was executed/, /onInputChange: "replay"/]
  },
  EffectInProgressError: {
    error: new errors.EffectInProgressError({ key, tool, owner: "host 1", remaining: 1200 }),
    says: [/held by host 1/, /1200 ms/, /Nothing was executed here/, /waitFor/],
    isRetryable: true
  },
  EffectInDoubtError: {
    error: new errors.EffectInDoubtError({ key, tool }),
    says: [/in doubt/, /Nothing was executed/, /store\.resolve/, /alreadyApplied/]
  },
  EffectReentrantError: {
    error: new errors.EffectReentrantError({ key, tool, circle: [key, "b", key] }),
    says: [/run-1:comment:7 -> b -> run-1:comment:7/, /wait for itself/, /another key/]
  },
  EffectNestedError: {
    error: new errors.EffectNestedError({ key, tool, outerKey: "order:7" }),
    says: [/the transactional call of key "order:7"/, /Nothing was executed/, /Call it after/]
  },
  EffectRecordError: {
    error: new errors.EffectRecordError({
      key,
      tool,
      problem: "its result does not decode",
      cause: new Error("inner")
    }),
    says: [/its result does not decode/, /not run again/, /outputSchema/, /remove the key/]
  },
  EffectResultUnavailableError: {
    error: new errors.EffectResultUnavailableError({ key, tool, reason: "it is too large" }),
    says: [/was applied/, /it is too large/, /not applied again/, /alreadyApplied/]
  },
  EffectStoreError: {
    error: new errors.EffectStoreError({ operation: "claim", problem: "no answer", key, cause: new Error("inner") }),
    says: [/could not claim/, /no answer/, /Call again when the store is back/],
    isRetryable: true
  },
  ToolNotAllowedError: {
    error: new errors.ToolNotAllowedError({ tool, cause: new Error("inner") }),
    says: [/not allowed/, /Nothing was executed/, /allow answers true/]
  },
  EffectOutcomeUnknownError: {
    error: new errors.EffectOutcomeUnknownError({ cause: new Error("inner") }),
    says: [/not known whether/, /alreadyApplied/, /whenInDoubt/]
  }
}

const names = Object.keys(cases) as ReadonlyArray<keyof typeof cases>
interface AnyError {
  new(fields: { readonly [name: string]: unknown }): Error
}
/** All classes behind one face: their fields differ, and the cases above know them. */
const classes = new Map(
  Object.entries(errors) as unknown as Iterable<[string, AnyError & Schema.Codec<Error, unknown>]>
)
const classOf = (name: string) => classes.get(name) ?? assert.fail(`no class ${name}`)
const fieldsOf = (error: Error): { readonly [name: string]: unknown } =>
  Object.fromEntries(Object.entries(error).filter(([name]) => !["_tag", "isRetryable"].includes(name)))

/** Whatever breaks a line, moves a terminal's cursor or turns its text around. */
const breaks = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/
const hostile = "a\nb\r\u0000\u001b[31m\u0085\u2028\u2029\u202e\u2066\"\\\ud800 \u{1f600}"

describe("errors", () => {
  it("each message names key, tool and way out", () => {
    for (const name of names) {
      const { error, says } = cases[name]
      const fields = fieldsOf(error)
      for (const field of ["key", "tool"]) {
        if (field in fields) assert.include(error.message, JSON.stringify(fields[field]), name)
      }
      for (const pattern of says) assert.match(error.message, pattern, name)
      assert.notInclude(error.message, "undefined", name)
    }
  })

  it("a call inside of the caller's own transaction is told to leave it", () => {
    const { message } = new errors.EffectNestedError({ key, tool })
    assert.match(message, /^Tool "comment" was called for effect key "run-1:comment:7" from inside a transaction of /)
    assert.match(message, /Nothing was executed\. Call it outside of the transaction/)
  })

  it("a holder without a lease is named without one", () => {
    assert.strictEqual(
      new errors.EffectInProgressError({ key, tool, owner: "a transaction", remaining: 0 }).message,
      "Effect key \"run-1:comment:7\" of tool \"comment\" is held by a transaction. Nothing was executed here. Call again "
        + "later, or raise waitFor."
    )
  })

  it("a long circle is shown by its ends", () => {
    const circle = Array.from({ length: 12 }, (_, i) => `k${i}`)
    assert.include(
      new errors.EffectReentrantError({ key, tool, circle }).message,
      "(k0 -> k1 -> k2 -> k3 -> 4 more -> k8 -> k9 -> k10 -> k11)"
    )
  })

  it("each is an Error with its tag, and says its message wherever it is shown", () => {
    for (const name of names) {
      const { error, isRetryable } = cases[name]
      assert.instanceOf(error, Error)
      assert.instanceOf(error, classOf(name))
      assert.strictEqual(error._tag, name)
      assert.include(String(error), error.message)
      assert.include(Cause.pretty(Cause.fail(error)), error.message)
      assert.strictEqual((error as { readonly isRetryable?: boolean }).isRetryable, isRetryable)
    }
  })

  it("each survives being written as JSON and read", () => {
    for (const name of names) {
      const { error } = cases[name]
      const codec = Schema.toCodecJson(classOf(name))
      const text = JSON.stringify(Schema.encodeSync(codec)(error))
      const back = Schema.decodeUnknownSync(codec)(JSON.parse(text))
      assert.instanceOf(back, classOf(name))
      assert.strictEqual(back.message, error.message)
      const { cause, ...fields } = fieldsOf(error)
      const { cause: causeBack, ...fieldsBack } = fieldsOf(back)
      assert.deepStrictEqual(fieldsBack, fields)
      assert.strictEqual((causeBack as Error | undefined)?.message, (cause as Error | undefined)?.message)
    }
  })

  it("hostile and long fields are shortened to one line", () => {
    for (const name of names) {
      const { error } = cases[name]
      for (const text of [hostile, hostile.repeat(1_000), "x".repeat(65_536)]) {
        const fields = Object.entries(fieldsOf(error)).map(([field, value]) => [
          field,
          typeof value === "string" ? text : Array.isArray(value) ? Array.from({ length: 1_000 }, () => text) : value
        ])
        const { message } = new (classOf(name))(Object.fromEntries(fields))
        assert.notMatch(message, breaks, name)
        assert.isTrue(message.isWellFormed(), name)
        assert.isBelow(message.length, 5_000, name)
      }
    }
  })
})

describe("abbreviate", () => {
  it("leaves ordinary text alone, and shows how much is missing of a long one", () => {
    assert.strictEqual(abbreviate("run-1:comment:M\u00e4rz \u{1f600}"), "run-1:comment:M\u00e4rz \u{1f600}")
    assert.strictEqual(abbreviate("x".repeat(200)), "x".repeat(200))
    assert.strictEqual(abbreviate("x".repeat(201)), `${"x".repeat(200)}... (201 characters)`)
  })

  it("escapes what would break or turn the line", () => {
    assert.strictEqual(abbreviate("a\nb\"\u2028\u202e\u0085\ud800"), "a\\nb\\\"\\u2028\\u202e\\u0085\\ud800")
  })

  it("cuts no character in two", () => {
    assert.strictEqual(abbreviate("\u{1f600}".repeat(3), 3), "\u{1f600}... (6 characters)")
  })
})

describe("oneLine", () => {
  it("joins the lines of a text and leaves its quotes alone", () => {
    assert.strictEqual(oneLine("Expected string, got 1\n  at [\"a\"]\r\n"), "Expected string, got 1 at [\"a\"]")
    assert.strictEqual(oneLine("x".repeat(501)), `${"x".repeat(500)}... (501 characters)`)
  })
})
