/**
 * A file imports only files of its own rank or a lower one, so that every rank can be understood and tested without what
 * stands on it.
 */
import { describe, expect, it } from "vitest"
import { filesMatching, importsOf, textOf } from "./sources.ts"

/** The first entry whose path is the file, or a folder of it, gives the rank. */
const ranks: ReadonlyArray<readonly [rank: number, ...paths: ReadonlyArray<string>]> = [
  [0, "internal/"],
  [1, "EffectKey.ts", "EffectMarker.ts", "EffectRecord.ts", "EffectResolution.ts", "RecordedResult.ts", "errors.ts"],
  [1, "record/"],
  [2, "EffectStore.ts", "ToolContext.ts", "EffectEvent.ts", "EffectSettings.ts", "store/", "toolContext/"],
  [3, "Reconciliation.ts", "reconciliation/"],
  [4, "Ai.ts", "AiError.ts", "EffectSchema.ts", "Tool.ts", "EffectTool.ts", "GenerateText.ts", "StreamText.ts"],
  [
    4,
    "Embed.ts",
    "Rerank.ts",
    "GenerateImage.ts",
    "GenerateSpeech.ts",
    "Transcribe.ts",
    "RunAgent.ts",
    "AiTelemetry.ts"
  ],
  [4, "Output.ts", "WrapTools.ts", "Step.ts", "ai/"],
  [5, "Agent.ts", "Engine.ts", "EngineTelemetry.ts", "RunStream.ts", "engine/"],
  [6, "RedisEffectStore.ts", "redis/"],
  [6, "ClusterEngine.ts", "SqliteEngine.ts", "engineSql/"],
  [6, "SqlEffectStore.ts", "SqliteEffectStore.ts", "SqliteClient.ts", "sql/", "sqlite/", "testing/", "cli/"],
  [7, "index.ts"]
]

const rankOf = (path: string): number | undefined => {
  const inSource = path.slice("src/".length)
  return ranks.find(([, ...paths]) =>
    paths.some((entry) => entry.endsWith("/") ? inSource.startsWith(entry) : inSource === entry)
  )?.[0]
}

const sources = filesMatching("src/**/*.ts")
const isAiSdk = (name: string) => /^(ai|@ai-sdk\/[^/]+)(\/|$)/.test(name)
const isDriver = (name: string) => /^(node:sqlite|@effect\/|pg(\/|$)|redis(\/|$))/.test(name)

/** All files and modules that importing `path` pulls in. */
const reachableFrom = (path: string): ReadonlySet<string> => {
  const seen = new Set<string>()
  const visit = (name: string) => {
    if (!seen.has(name)) {
      seen.add(name)
      if (sources.includes(name)) {
        importsOf(name).forEach(visit)
      }
    }
  }
  visit(path)
  return seen
}

describe("layering", () => {
  it("every file of src has a rank", () => {
    expect(sources.filter((path) => rankOf(path) === undefined)).toEqual([])
  })

  it("a file imports only files of its own rank or a lower one", () => {
    const upward = sources.flatMap((path) =>
      importsOf(path)
        .filter((name) => name.startsWith("src/") && (rankOf(name) ?? 0) > (rankOf(path) ?? 7))
        .map((name) => `${path} (rank ${rankOf(path)}) imports ${name} (rank ${rankOf(name)})`)
    )
    expect(upward).toEqual([])
  })

  it("a file of src imports only files of src, and packages that the manifest names", () => {
    const manifest = JSON.parse(textOf("package.json"))
    const packages = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })
    const strangers = sources.flatMap((path) =>
      importsOf(path)
        .filter((name) =>
          !name.startsWith("src/") && !name.startsWith("node:")
          && !packages.some((known) => name === known || name.startsWith(`${known}/`))
        )
        .map((name) => `${path} imports ${name}`)
    )
    expect(strangers).toEqual([])
  })

  it("ranks 0 to 3 never import the AI SDK", () => {
    const found = sources.filter((path) => (rankOf(path) ?? 0) <= 3 && importsOf(path).some(isAiSdk))
    expect(found).toEqual([])
  })

  it("only the engine's ports know of effect/workflow and effect/cluster", () => {
    const users = (module: string) => sources.filter((path) => importsOf(path).some((name) => name.startsWith(module)))
    expect(users("effect/workflow")).toEqual(["src/engine/port.ts"])
    expect(users("effect/cluster")).toEqual(["src/engineSql/executions.ts"])
    expect([...reachableFrom("src/index.ts")].filter((name) => name.startsWith("effect/cluster"))).toEqual([])
  })

  it("the root pulls in no driver", () => {
    expect([...reachableFrom("src/index.ts")].filter(isDriver)).toEqual([])
  })

  it("the ledger over a client of the program's own pulls in no driver either", () => {
    expect([...reachableFrom("src/SqlEffectStore.ts")].filter(isDriver)).toEqual([])
  })
})
