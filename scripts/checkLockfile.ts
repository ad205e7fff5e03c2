// What `npm ci` needs of package-lock.json on every machine, and what an npm with other settings or another registry may
// break:
// - no download addresses: they would pin every machine to one server;
// - an entry for each optional package, those of other platforms too. A registry that does not carry one makes
//   `npm install` leave it out, and then `npm ci` refuses the whole file.
// With `--fix` both are repaired. An entry that is added so has no hash, since its package was never seen here.
import { readFileSync, writeFileSync } from "node:fs"

interface Entry {
  version?: string
  resolved?: string
  readonly integrity?: string
  readonly optionalDependencies?: { readonly [name: string]: string }
  readonly os?: ReadonlyArray<string>
}

const file = "package-lock.json"
const lock: { packages: { [path: string]: Entry } } = JSON.parse(readFileSync(file, "utf8"))

/** Where Node finds `name` from a package at `path`, the nearest folder first. */
const placesOf = (path: string, name: string): ReadonlyArray<string> => {
  const parts = path === "" ? [] : path.split(/\/?node_modules\//).slice(1)
  return [...parts.keys(), parts.length].toReversed().map((depth) =>
    [...parts.slice(0, depth), name].map((part) => `node_modules/${part}`).join("/")
  )
}

/** What the name of a platform's package says about the platform, as npm writes it. */
const platformOf = (name: string): object => {
  const find = (values: ReadonlyArray<string>) => values.find((value) => name.includes(value))
  const os = find(["android", "darwin", "freebsd", "linux", "openharmony", "win32"])
    ?? (/windows/.test(name) && "win32")
  const cpu = find(["arm64", "arm", "ia32", "loong64", "ppc64", "riscv64", "s390x", "x64"])
  const libc = find(["musl", "glibc"])
  return { ...(cpu && { cpu: [cpu] }), ...(libc && { libc: [libc] }), ...(os && { os: [os] }) }
}

const missing = Object.entries(lock.packages).flatMap(([path, entry]) =>
  Object.entries(entry.optionalDependencies ?? {})
    .filter(([name]) => !placesOf(path, name).some((place) => place in lock.packages))
    .map(([name, range]) => ({ name, version: range.replace(/^[\^~]/, "") }))
)
const addressed = Object.entries(lock.packages).filter(([, entry]) => entry.resolved !== undefined)
const unhashed = Object.entries(lock.packages).filter(([path, entry]) =>
  path !== "" && entry.integrity === undefined && entry.os === undefined
)

if (process.argv.includes("--fix")) {
  for (const [, entry] of addressed) {
    delete entry.resolved
  }
  const added = missing.map(({ name, version }) =>
    [`node_modules/${name}`, { version, dev: true, optional: true, ...platformOf(name) }] as const
  )
  const entries = [...Object.entries(lock.packages), ...added]
  lock.packages = Object.fromEntries(entries.toSorted(([a], [b]) => a < b ? -1 : 1))
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
} else {
  const problems = [
    ...missing.map(({ name }) => `has no entry for the optional ${name}`),
    ...addressed.map(([path]) => `has a download address for ${path}`),
    ...unhashed.map(([path]) => `has no hash for ${path}`)
  ]
  for (const problem of problems) {
    console.error(`${file} ${problem}`)
  }
  if (problems.length > 0) {
    console.error("`npm run check:lockfile -- --fix` repairs the first two kinds")
    process.exitCode = 1
  }
}
