/**
 * A process that loads what workers load, and nothing else: so that it is compiled once, and to see how fast the machine is.
 */
import { flushCompileCache } from "node:module"

await Promise.all([import("./agents.ts"), import("./engines.ts")])

// once it is written, workers read it from the first on
flushCompileCache()
