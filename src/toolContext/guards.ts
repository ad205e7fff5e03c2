/**
 * Where an early API had what `run` holds now. `${ctx.runId}` would be "undefined" there, in a key that every run shares:
 * reading an old place throws instead, and says where to look.
 */
const moved = ["runId", "agent", "trigger", "signal"] as const

const guard = (name: string): PropertyDescriptor => ({
  // spreads, Object.keys and JSON do not see it
  enumerable: false,
  configurable: true,
  get: () => {
    throw new TypeError(`ctx.${name} is not there: read ctx.run.${name}.`)
  }
})

/** Guards the old places on `context`, but those that it has itself, and answers it. */
export const guardMoved = <A extends object>(context: A): A => {
  for (const name of moved) {
    if (!Object.hasOwn(context, name)) Object.defineProperty(context, name, guard(name))
  }
  return context
}
