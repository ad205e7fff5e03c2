/**
 * Markers: an effect key written into the text of the effect, where a later remote check finds it.
 *
 * @since 0.1.0
 */
import { Option, Redacted } from "effect"
import { createHmac, timingSafeEqual } from "node:crypto"

/**
 * @category models
 * @since 0.1.0
 */
export interface MarkerOptions {
  /**
   * Adds an HMAC-SHA-256 to the marker, and makes `findMarker` ignore markers without a valid one, so that a stranger
   * cannot plant one. Keep it the same for as long as markers shall be found. An empty one is refused by throwing.
   */
  readonly secret?: string | Redacted.Redacted | undefined
}

/**
 * Percent-encodes what would end the comment, break the line or be taken for a part of the marker: everything but
 * printable ASCII without `%`, space, `<` and `>`, and each dash after another one.
 */
const encodeKey = (key: string): string =>
  key.toWellFormed()
    .replace(/[^!-$&-;=?-~]/gu, (character) => encodeURIComponent(character))
    .replace(/--+/g, (dashes) => `-${"%2D".repeat(dashes.length - 1)}`)

const decodeURI = Option.liftThrowable(decodeURIComponent)

/** `None` where it is not percent-encoded UTF-8. Looking first is cheaper than a thrown error for each planted marker. */
const decodeKey = (encoded: string): Option.Option<string> =>
  /%(?![0-9a-f]{2})/i.test(encoded) ? Option.none() : decodeURI(encoded)

const hmacOf = (key: string, secret: string): string => createHmac("sha256", secret).update(key).digest("hex")

/** Everybody knows the empty secret, and a setting that is missing easily becomes one. */
const secretOf = (options: MarkerOptions): string | undefined => {
  const secret = Redacted.isRedacted(options.secret) ? Redacted.value(options.secret) : options.secret
  if (secret === "") throw new TypeError("The secret of a marker is empty. Give one that others cannot guess, or none.")
  return secret
}

/**
 * The marker of a key: one HTML comment on one line, invisible where Markdown or HTML is rendered.
 *
 * **Details**
 *
 * Ordinary keys (printable ASCII without spaces, `%`, `<`, `>` or double dashes) stand in it verbatim; others are
 * percent-encoded, so that no key can end the comment. `findMarker` gives the key back.
 *
 * **Gotchas**
 *
 * Whoever can write to the same place can copy a marker, and without a `secret` also invent one. A remote check should
 * look at the author too.
 *
 * **Example** (A marker in a comment)
 *
 * ```ts
 * import { effectMarker, findMarker } from "chamvi-effect"
 *
 * effectMarker("run-1:comment:7") // => "<!-- chamvi:effect=run-1:comment:7 -->"
 * findMarker(`Done.\n${effectMarker("a --> b")}`) // => ["a --> b"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const effectMarker = (key: string, options: MarkerOptions = {}): string => {
  const secret = secretOf(options)
  return `<!-- chamvi:effect=${encodeKey(key)}${secret === undefined ? "" : ` hmac=${hmacOf(key, secret)}`} -->`
}

/** The pattern has seen to the length, which `timingSafeEqual` insists on. */
const isValid = (key: string, hmac: string, secret: string): boolean =>
  timingSafeEqual(Buffer.from(hmac), Buffer.from(hmacOf(key, secret)))

// A key holds neither spaces nor "<", so no two candidates overlap and the search is linear.
const marker = /<!-- chamvi:effect=([!-;=?-~]+)(?: hmac=([0-9a-f]{64}))? -->/g

/**
 * The keys of all markers in a text, in order, each once. Takes time linear in the text's length.
 *
 * @category parsing
 * @since 0.1.0
 */
export const findMarker = (text: string, options: MarkerOptions = {}): ReadonlyArray<string> => {
  const secret = secretOf(options)
  const found = new Set<string>()
  for (const [, encoded, hmac] of text.matchAll(marker)) {
    if (secret !== undefined && hmac === undefined) continue
    const key = decodeKey(encoded!)
    if (Option.isSome(key) && (secret === undefined || isValid(key.value, hmac!, secret))) found.add(key.value)
  }
  return [...found]
}
