/**
 * Every way in which an effect tool's call can fail by the library's own decision.
 *
 * Each error is tagged, says what happened, to which key and tool, and what to do about it. Failures of a user's own
 * hooks are never wrapped in one of these: they reach every caller as the identical value.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { abbreviate, oneLine } from "./internal/abbreviate.ts"

const id = <Name extends string>(name: Name): `chamvi-effect/${Name}` => `chamvi-effect/${name}`

/**
 * No effect key could be computed for the call. Nothing ran.
 *
 * **Details**
 *
 * `path` names the place inside the input where the trouble is (`$.items[2].price`), the hook (`effectKey`) whose answer is
 * no key, the option (`key` of `applyOnce`) that is none, or the `tool` whose name no store can keep.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectKeyError extends Schema.TaggedError<EffectKeyError>(id("EffectKeyError"))("EffectKeyError", {
  tool: Schema.String,
  path: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `No effect key for tool "${abbreviate(this.tool)}": ${oneLine(this.problem)} (at ${
      oneLine(this.path, 200)
    }). Nothing was executed. ${
      this.path === "key"
        ? "Give a key that is not blank and says what the effect is about."
        : this.path === "tool"
        ? "Give the tool another name."
        : "Make the input JSON, or give the tool an effectKey that returns a non-blank string (applyOnce: leave the input out)."
    }`
  }
}

/**
 * The key belongs to another tool. Neither tool ever gets the other's result. Nothing ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectKeyConflictError
  extends Schema.TaggedError<EffectKeyConflictError>(id("EffectKeyConflictError"))("EffectKeyConflictError", {
    key: Schema.String,
    tool: Schema.String,
    heldBy: Schema.String
  })
{
  override get message(): string {
    return `Tool "${abbreviate(this.tool)}" computed the effect key "${abbreviate(this.key)}", which belongs to tool `
      + `"${abbreviate(this.heldBy)}". Nothing was executed. Put the tool's name into the key.`
  }
}

/**
 * The key is known with a different input, and the tool says `onInputChange: "fail"`. Nothing ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectInputChangedError
  extends Schema.TaggedError<EffectInputChangedError>(id("EffectInputChangedError"))("EffectInputChangedError", {
    key: Schema.String,
    tool: Schema.String
  })
{
  override get message(): string {
    return `Tool "${abbreviate(this.tool)}" was called for effect key "${
      abbreviate(this.key)
    }" with another input than `
      + `the one the key was first used with, and onInputChange is "fail". Nothing was executed. Use a key that holds `
      + `what may differ, or onInputChange: "replay" to answer with the first result.`
  }
}

/**
 * Another process holds the key and did not finish within `waitFor`. Nothing ran here.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectInProgressError
  extends Schema.TaggedError<EffectInProgressError>(id("EffectInProgressError"))("EffectInProgressError", {
    key: Schema.String,
    tool: Schema.String,
    owner: Schema.String,
    /** Milliseconds until the holder's lease ends, as the store said last; 0 where it has none, but a transaction. */
    remaining: Schema.Number
  })
{
  readonly isRetryable = true
  override get message(): string {
    return `Effect key "${abbreviate(this.key)}" of tool "${abbreviate(this.tool)}" is held by ${
      abbreviate(this.owner)
    }${
      this.remaining > 0 ? `; its lease ends in ${this.remaining} ms unless it is renewed` : ""
    }. Nothing was executed `
      + `here. Call again later, or raise waitFor.`
  }
}

/**
 * An earlier attempt may or may not have applied the effect, nothing can ask the remote, and `whenInDoubt` is `"fail"`.
 * Nothing ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectInDoubtError
  extends Schema.TaggedError<EffectInDoubtError>(id("EffectInDoubtError"))("EffectInDoubtError", {
    key: Schema.String,
    tool: Schema.String
  })
{
  override get message(): string {
    return `Effect key "${abbreviate(this.key)}" of tool "${
      abbreviate(this.tool)
    }" is in doubt: an earlier attempt was `
      + `cut off and may have applied the effect. Nothing was executed. Look at the remote and resolve the key `
      + `(store.resolve with applied(result) or notApplied), or give the tool an alreadyApplied.`
  }
}

const shownCircle = (circle: ReadonlyArray<string>): string => {
  const left = circle.length - 8
  const keys = circle.map((key) => abbreviate(key, 80))
  return (left <= 0 ? keys : [...keys.slice(0, 4), `${left} more`, ...keys.slice(-4)]).join(" -> ")
}

/**
 * An `execute` reached its own key again, alone or over a circle of keys, and would have waited for itself.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectReentrantError
  extends Schema.TaggedError<EffectReentrantError>(id("EffectReentrantError"))("EffectReentrantError", {
    key: Schema.String,
    tool: Schema.String,
    /** The keys of the circle, the outermost first. */
    circle: Schema.Array(Schema.String)
  })
{
  override get message(): string {
    return `Tool "${abbreviate(this.tool)}" was called for effect key "${
      abbreviate(this.key)
    }" from inside its own execute `
      + `(${shownCircle(this.circle)}). It would wait for itself. Give the inner call `
      + `another key, or do not call it from there.`
  }
}

/**
 * The call would have been part of a transaction that can still be rolled back: it came from inside the `execute` of a tool
 * with `transactional: true`, or it is transactional itself and came from inside a transaction of the caller's. Nothing ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectNestedError
  extends Schema.TaggedError<EffectNestedError>(id("EffectNestedError"))("EffectNestedError", {
    key: Schema.String,
    tool: Schema.String,
    /** The key of the transactional call around this one; none where the transaction is the caller's own. */
    outerKey: Schema.optionalKey(Schema.String)
  })
{
  override get message(): string {
    const call = `Tool "${abbreviate(this.tool)}" was called for effect key "${abbreviate(this.key)}" from inside `
    return this.outerKey === undefined
      ? `${call}a transaction of the ledger's database, and it is transactional: its result could be seen before that `
        + `transaction ends, and be rolled back with it. Nothing was executed. Call it outside of the transaction; what `
        + `else must commit with it can be written by its execute.`
      : `${call}the transactional call of key "${abbreviate(this.outerKey)}": its record would stay where that one is `
        + `rolled back. Nothing was executed. Call it after the transactional call, or do its work in that one's execute.`
  }
}

/**
 * The store's record of the key cannot be read: it is corrupt, was written by a newer version, or no longer decodes with
 * the tool's `outputSchema`. It is never treated as absent. Nothing ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectRecordError
  extends Schema.TaggedError<EffectRecordError>(id("EffectRecordError"))("EffectRecordError", {
    key: Schema.String,
    tool: Schema.String,
    problem: Schema.String,
    cause: Schema.optionalKey(Schema.Defect())
  })
{
  override get message(): string {
    return `The record of effect key "${abbreviate(this.key)}" of tool "${abbreviate(this.tool)}" cannot be read: `
      + `${
        oneLine(this.problem)
      }. The effect was applied once and is not run again. Read it with the outputSchema it was written `
      + `with, or remove the key if the effect may be applied anew.`
  }
}

/**
 * The effect was applied, but there is no result to give: it could not be encoded, was too large, or a person resolved
 * the key without one. The effect is never run again.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectResultUnavailableError
  extends Schema.TaggedError<EffectResultUnavailableError>(id("EffectResultUnavailableError"))(
    "EffectResultUnavailableError",
    { key: Schema.String, tool: Schema.String, reason: Schema.String }
  )
{
  override get message(): string {
    return `The effect of key "${abbreviate(this.key)}" of tool "${
      abbreviate(this.tool)
    }" was applied, but its result is `
      + `not available: ${
        oneLine(this.reason)
      }. It is not applied again. Return something that the tool's outputSchema (or JSON) `
      + `can carry, within largestResult, or give the tool an alreadyApplied that finds the result.`
  }
}

/**
 * The store failed or did not answer in time, before the effect: nothing was executed.
 *
 * **Details**
 *
 * A transactional call fails with it also after `execute`, where it could not be recorded or committed: `execute` is rolled
 * back then. Where only the answer to the commit is missing, effect and record are both there or both not, and the next call
 * finds out which.
 *
 * `permanent` says that it will not get better by itself (a file that is no database, a missing folder); otherwise the
 * error is retryable.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectStoreError extends Schema.TaggedError<EffectStoreError>(id("EffectStoreError"))("EffectStoreError", {
  operation: Schema.String,
  problem: Schema.String,
  key: Schema.optionalKey(Schema.String),
  permanent: Schema.optionalKey(Schema.Boolean),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  get isRetryable(): boolean {
    return this.permanent !== true
  }
  override get message(): string {
    const key = this.key === undefined ? "" : ` for effect key "${abbreviate(this.key)}"`
    return `The effect store could not ${oneLine(this.operation)}${key}: ${oneLine(this.problem)}. ${
      this.permanent === true
        ? "Trying again does not help: set the store up anew."
        : "Call again when the store is back: a repeated call never applies an effect that is recorded."
    }`
  }
}

/**
 * `allow` did not say `true` for the tool. No hook ran.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolNotAllowedError
  extends Schema.TaggedError<ToolNotAllowedError>(id("ToolNotAllowedError"))("ToolNotAllowedError", {
    tool: Schema.String,
    cause: Schema.optionalKey(Schema.Defect())
  })
{
  override get message(): string {
    return `Tool "${abbreviate(this.tool)}" is not allowed in this run. Nothing was executed. It runs where allow `
      + `answers true for it.`
  }
}

/**
 * What `execute` fails with when it does not know whether the effect was applied: a timeout, a connection that dropped
 * after the request left. The key is in doubt; there is no lease to wait for.
 *
 * @category errors
 * @since 0.1.0
 */
export class EffectOutcomeUnknownError
  extends Schema.TaggedError<EffectOutcomeUnknownError>(id("EffectOutcomeUnknownError"))("EffectOutcomeUnknownError", {
    cause: Schema.optionalKey(Schema.Defect())
  })
{
  override get message(): string {
    return "It is not known whether the effect was applied: the remote did not answer. The next call asks "
      + "alreadyApplied first; without one, whenInDoubt decides."
  }
}

/**
 * All errors that the library itself raises for a call of an effect tool.
 *
 * @category errors
 * @since 0.1.0
 */
export type EffectToolError =
  | EffectKeyError
  | EffectKeyConflictError
  | EffectInputChangedError
  | EffectInProgressError
  | EffectInDoubtError
  | EffectReentrantError
  | EffectNestedError
  | EffectRecordError
  | EffectResultUnavailableError
  | EffectStoreError
  | ToolNotAllowedError

// Effect shows a tagged error as its fields. These have messages that name the way out, for whoever prints one.
for (
  const error of [
    EffectKeyError,
    EffectKeyConflictError,
    EffectInputChangedError,
    EffectInProgressError,
    EffectInDoubtError,
    EffectReentrantError,
    EffectNestedError,
    EffectRecordError,
    EffectResultUnavailableError,
    EffectStoreError,
    ToolNotAllowedError,
    EffectOutcomeUnknownError
  ]
) {
  Object.defineProperty(error.prototype, Symbol.for("nodejs.util.inspect.custom"), {
    configurable: true,
    value(this: Error) {
      return this.cause instanceof Error ? `${this.stack}\n  cause: ${this.cause.toString()}` : this.stack
    }
  })
}
