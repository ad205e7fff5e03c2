/**
 * Errors of the AI SDK that may be logged.
 *
 * Effect's loggers print the chain of causes, and some messages of the SDK hold the value that they are about: a prompt,
 * what the model wrote, the signed address of a file. The values are fields of the same errors, so a program loses
 * nothing where the message does not repeat them.
 */
import { Predicate } from "effect"

/** The SDK's errors whose messages hold values, and what to say in their place. */
const talkative: ReadonlyMap<string, (error: object) => string> = new Map<string, (error: object) => string>([
  ["TypeValidationError", (error) => `the value${placeOf(error)} did not have the expected form (see cause).`],
  ["JSONParseError", () => "the text was no JSON (see cause)."],
  ["InvalidResponseDataError", () => "the response did not have the expected form (see cause)."],
  ["InvalidToolInputError", () => "the input of a tool did not have the expected form (see cause)."],
  ["ToolCallRepairError", () => "a tool call could not be repaired (see cause)."],
  ["DownloadError", (error) => `a file could not be downloaded${statusOf(error)} (see cause).`]
])

/** The name of an error's class, without the prefix that the SDK gives its own. */
export const nameOf = (error: unknown): string =>
  Predicate.hasProperty(error, "name") && typeof error.name === "string" ? error.name.replace(/^AI_/, "") : ""

/** What an error says without the value that it is about; `undefined` where its own message may be shown. */
export const discreetMessage = (error: unknown): string | undefined =>
  Predicate.isObjectOrArray(error) ? talkative.get(nameOf(error))?.(error) : undefined

/** Which value it was: the name of a tool, say, which the SDK keeps beside the value. */
const placeOf = (error: object): string => {
  const { context } = error as { readonly context?: { readonly field?: string; readonly entityName?: string } }
  return [context?.field === undefined ? "" : ` of ${context.field}`, named(context?.entityName)].join("")
}

const named = (name: string | undefined): string => name === undefined ? "" : ` (${name})`

const statusOf = (error: object): string => {
  const { statusCode } = error as { readonly statusCode?: number }
  return statusCode === undefined ? "" : `: HTTP ${statusCode}`
}

/**
 * The identical value, if what it and its causes say may be logged. If not: an object of the same class, with all fields of
 * the original, whose message, stack and causes do not tell the value.
 */
export const discreetCause = (error: unknown): unknown => isTalkative(error, new Set()) ? discreet(error, false) : error

interface Loggable {
  readonly message?: unknown
  readonly stack?: unknown
  readonly cause?: unknown
  /** The attempts of a `RetryError`. */
  readonly errors?: unknown
}

const isTalkative = (error: unknown, seen: Set<unknown>): boolean => {
  if (!Predicate.isObjectOrArray(error) || seen.has(error)) return false
  seen.add(error)
  return talkative.has(nameOf(error)) || isTalkative((error as Loggable).cause, seen)
    || attemptsOf(error).some((attempt) => isTalkative(attempt, seen))
}

const attemptsOf = (error: object): ReadonlyArray<unknown> => {
  const { errors } = error as Loggable
  return nameOf(error) === "RetryError" && Array.isArray(errors) ? errors : []
}

/** One view per error, so that whoever follows a circle of causes notices. */
const views = new WeakMap<object, object>()

const discreet = (error: unknown, isBelow: boolean): unknown => {
  // below an error that tells the value, everything may tell it: the decoder's issues, the parser's complaint
  if (!Predicate.isObjectOrArray(error)) return isBelow ? undefined : error
  const known = views.get(error)
  if (known !== undefined) return known
  const { message, stack } = error as Loggable
  const name = nameOf(error)
  const said = wordsOf(error, isBelow)
  const title = `${name}: ${said}`
  const frames = typeof stack === "string" && typeof message === "string" && stack.includes(message)
    ? stack.slice(stack.indexOf(message) + message.length)
    : ""
  const view: object = Object.create(error, {
    message: { value: said },
    stack: { value: title + frames },
    cause: { get: () => discreet((error as Loggable).cause, isBelow || talkative.has(name)) },
    toString: { value: () => title },
    toJSON: { value: () => ({ name, message: said }) }
  })
  views.set(error, view)
  return view
}

const wordsOf = (error: object, isBelow: boolean): string => {
  const words = discreetMessage(error)
  if (words !== undefined) return words
  if (isBelow) return "(the message would tell the value)"
  const attempts = attemptsOf(error).length
  // it repeats what its last attempt says
  return attempts > 0 ? `Failed after ${attempts} attempts.` : String((error as Loggable).message)
}
