/**
 * The real program with a bug: its reconciliation, copied with one text replaced, over all other modules as they are.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Program } from "./model.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

const source = join(root, "src")

export interface Replacement {
  /** A file of `src/reconciliation`. */
  readonly file: string
  /** Stands in it exactly once. */
  readonly text: string
  readonly by: string
}

const replaceOnce = (code: string, { by, file, text }: Replacement): string => {
  const parts = code.split(text)
  if (parts.length !== 2) throw new Error(`${file} holds ${parts.length - 1} times what shall be replaced: ${text}`)
  return parts.join(by)
}

/** Lets the imports that lead out of the copied files lead back to the source. */
const redirect = (code: string, from: string, isCopied: (path: string) => boolean): string =>
  code.replaceAll(/ from "(\.[^"]+)"/g, (clause, path: string) => {
    const target = join(source, from, path)
    if (isCopied(relative(source, target))) return clause
    return ` from ${JSON.stringify(pathToFileURL(target).href.replace("file://", ""))}`
  })

const isCopied = (path: string): boolean => path === "Reconciliation.ts" || path.startsWith("reconciliation")

export const mutatedProgram = async (
  name: string,
  replacements: ReadonlyArray<Replacement>
): Promise<Program> => {
  const copy = join(root, ".tmp", "explorer", `${process.pid}-${name.replaceAll(/\W+/g, "-")}`)
  mkdirSync(join(copy, "reconciliation"), { recursive: true })
  try {
    for (const file of readdirSync(join(source, "reconciliation"))) {
      const code = replacements.filter((replacement) => replacement.file === file).reduce(
        replaceOnce,
        readFileSync(join(source, "reconciliation", file), "utf8")
      )
      writeFileSync(join(copy, "reconciliation", file), redirect(code, "reconciliation", isCopied))
    }
    const main = readFileSync(join(source, "Reconciliation.ts"), "utf8")
    writeFileSync(join(copy, "Reconciliation.ts"), redirect(main, ".", isCopied))
    const load = async <A>(file: string): Promise<A> =>
      await import(/* @vite-ignore */ pathToFileURL(join(copy, file)).href) as A
    const { applyOnce } = await load<Pick<Program, "applyOnce">>("Reconciliation.ts")
    const { registryOf } = await load<Pick<Program, "registryOf">>(join("reconciliation", "Registry.ts"))
    return { applyOnce, registryOf }
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}
