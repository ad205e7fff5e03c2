// Packs the package, installs the tarball as a user's project would (offline: everything else is linked from this
// project's own node_modules), compiles test/consumer there, and runs it and the examples against the packed build.
import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { runExample } from "./runExample.ts"

const root = join(import.meta.dirname, "..")
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const project = mkdtempSync(join(tmpdir(), "consumer-"))

const run = (command: string, ...args: ReadonlyArray<string>): void => {
  execFileSync(command, args, { cwd: project, stdio: ["ignore", "inherit", "inherit"] })
}

const link = (name: string): void => {
  const target = join(project, "node_modules", name)
  if (!existsSync(target)) {
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(join(root, "node_modules", name), target, "junction")
  }
}

const install = (): void => {
  execFileSync("npm", ["pack", "--silent", "--pack-destination", project], { cwd: root, stdio: "inherit" })
  const tarball = readdirSync(project).find((name) => name.endsWith(".tgz"))!
  const target = join(project, "node_modules", manifest.name)
  mkdirSync(target, { recursive: true })
  run("tar", "-xzf", tarball, "-C", target, "--strip-components=1")
  // only what the package itself asks for, so that a package it forgot to ask for is missed here
  Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }).forEach(link)
  ;["@types/node", "@types/json-schema"].forEach(link)
}

/** The promises that the types make are made by the packed declarations too. */
const copyTypeTests = (): void => {
  cpSync(join(root, "test/support/types.ts"), join(project, "support/types.ts"))
  for (const name of readdirSync(join(root, "test")).filter((name) => name.endsWith(".test-d.ts"))) {
    const text = readFileSync(join(root, "test", name), "utf8").replaceAll(/"\.\.\/src\/[^"]+"/g, `"${manifest.name}"`)
    writeFileSync(join(project, name), text)
  }
}

const compile = (): void => {
  const options = {
    target: "ES2024",
    module: "NodeNext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", type: "module" }))
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }))
  run(process.execPath, join(root, "node_modules/typescript/bin/tsc"), "--project", project)
}

/** Examples may use whatever this project develops with. */
const linkEverything = (): void => {
  for (const name of readdirSync(join(root, "node_modules")).filter((name) => !name.startsWith("."))) {
    const scoped = name.startsWith("@") ? readdirSync(join(root, "node_modules", name)) : undefined
    ;(scoped?.map((part) => `${name}/${part}`) ?? [name]).forEach(link)
  }
}

const runExamples = async (): Promise<void> => {
  cpSync(join(root, "examples"), join(project, "examples"), { recursive: true })
  const files = readdirSync(join(project, "examples")).filter((name) => name.endsWith(".ts"))
  for (const file of files) {
    const { expected, printed } = await runExample(join(project, "examples", file), project, [])
    if (!isDeepStrictEqual(printed, expected)) {
      throw new Error(`${file} printed ${JSON.stringify(printed)} instead of ${JSON.stringify(expected)}`)
    }
  }
  console.log(`${files.length} examples ran against the packed build`)
}

try {
  install()
  cpSync(join(root, "test/consumer"), project, { recursive: true })
  compile()
  run(process.execPath, "main.ts")
  linkEverything()
  copyTypeTests()
  compile()
  await runExamples()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  rmSync(project, { recursive: true, force: true })
}
