/** Controls, line separators and marks that turn the direction of what follows. */
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escape = (text: string): string =>
  text.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** The beginning of a long text, without half of a surrogate pair at its end. */
const shorten = (text: string, most: number): string => {
  if (text.length <= most) return text
  const start = text.slice(0, most)
  return `${/[\ud800-\udbff]$/.test(start) ? start.slice(0, -1) : start}... (${text.length} characters)`
}

/**
 * Keys may be 64 kB long and may hold anything; a message shows enough of one to find it, on one line.
 */
export const abbreviate = (text: string, most = 200): string => escape(JSON.stringify(shorten(text, most)).slice(1, -1))

/**
 * A sentence of somebody else inside a message: its lines are joined, its quotes stay readable.
 */
export const oneLine = (text: string, most = 500): string =>
  escape(shorten(text.trim().replace(/\s*[\r\n\u2028\u2029]\s*/g, " "), most).toWellFormed())
