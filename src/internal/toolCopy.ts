/**
 * Copies of tools and of tool sets that lose nothing.
 *
 * Tools carry more than their enumerable fields: the AI SDK hangs non-enumerable properties and symbols on them, and so do
 * we. A spread drops the former, and `set[name] =` loses a tool called `__proto__`.
 */

/** A copy of `tool` with the same prototype and the same property descriptors, and the values of `patch` in it. */
export const copyTool = <T extends object>(tool: T, patch: Partial<Record<keyof T, unknown>>): T =>
  Object.defineProperties(Object.create(Object.getPrototypeOf(tool) as object | null) as T, {
    ...Object.getOwnPropertyDescriptors(tool),
    ...enumerable(patch)
  } as PropertyDescriptorMap)

const enumerable = (values: object): PropertyDescriptorMap =>
  mapEntries(values, (value) => ({ value, enumerable: true, writable: true, configurable: true }))

/** Hides `value` on `tool`, under a symbol that neither spreads nor `JSON.stringify` see; `copyTool` keeps it. */
export const hideOnTool = <T extends object>(tool: T, key: symbol, value: unknown): T =>
  Object.defineProperty(tool, key, { value, enumerable: false, writable: false, configurable: true })

/** Maps the tools of a set. The names stay, whatever they are, in their order, and so does the set's prototype. */
export const mapTools = <V, W>(
  tools: Readonly<Record<string, V>>,
  f: (tool: V, name: string) => W
): Record<string, W> => {
  const mapped = mapEntries(tools, f)
  const prototype = Object.getPrototypeOf(tools) as object | null
  return prototype === Object.prototype
    ? mapped
    : Object.create(prototype, Object.getOwnPropertyDescriptors(mapped)) as Record<string, W>
}

/** Copies what `Object.entries` does not see, symbols and hidden properties, except for what this library hides itself. */
export const copyHidden = <T extends object>(from: object, to: T): T => {
  for (const key of Reflect.ownKeys(from)) {
    const property = Object.getOwnPropertyDescriptor(from, key)!
    if ((typeof key === "symbol" ? !isOurs(key) : property.enumerable !== true) && !Object.hasOwn(to, key)) {
      Object.defineProperty(to, key, property)
    }
  }
  return to
}

const isOurs = (symbol: symbol): boolean => symbol.description?.startsWith("chamvi-effect/") === true

const mapEntries = <W>(record: object, f: (value: never, name: string) => W): Record<string, W> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value as never, name)]))
