/**
 * What no file of the project may hold, wherever it is read or run.
 */
import { homedir } from "node:os"
import { dirname } from "node:path"
import { describe, expect, it } from "vitest"
import { projectFiles, root, textOf } from "./sources.ts"

const files = projectFiles()

const filesThatHold = (pattern: RegExp): ReadonlyArray<string> =>
  files.flatMap((path) =>
    textOf(path).split("\n").flatMap((line, index) => pattern.test(line) ? [`${path}:${index + 1}`] : [])
  )

const literally = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")

describe("hygiene", () => {
  it("no file names a path of the machine it was written on", () => {
    const places = [root, dirname(root), homedir()].filter((place) => place.length > 1).map(literally)
    expect(filesThatHold(new RegExp(`(?<![\\w.@-])(${places.join("|")})(?![\\w-])`))).toEqual([])
    // homes of users in general; `/home/` in a URL or a word does not count
    expect(filesThatHold(/(?<![\w/.])\/(?:home|Users)\/\w/)).toEqual([])
  })

  it("no file names the host of a package registry", () => {
    // put together, so that this file does not hold what it looks for
    const hosts = [["registry", "npmjs", "org"], ["registry", "yarnpkg", "com"], ["npm", "pkg", "github", "com"]]
    expect(filesThatHold(new RegExp(hosts.map((host) => literally(host.join("."))).join("|")))).toEqual([])
  })

  it("the lock file holds no download addresses", () => {
    expect(files).toContain("package-lock.json")
    expect(textOf("package-lock.json")).not.toMatch(/"resolved":/)
  })
})
