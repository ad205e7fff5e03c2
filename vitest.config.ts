import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import manifest from "./package.json" with { type: "json" }

// the package's own name leads to src, as it does in tsconfig.json and under `node --conditions=chamvi-source`
const alias = Object.entries(manifest.exports).flatMap(([path, target]) =>
  typeof target === "string" ? [] : [{
    find: new RegExp(`^${manifest.name}${path.slice(1)}$`),
    replacement: fileURLToPath(new URL(target["chamvi-source"], import.meta.url))
  }]
)

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    typecheck: {
      enabled: true,
      include: ["test/**/*.test-d.ts"],
      tsconfig: "tsconfig.json",
      // `npm run check:types` reports the errors of all other files
      ignoreSourceErrors: true
    },
    testTimeout: 20_000,
    reporters: ["default", "./scripts/SummaryReporter.ts"],
    coverage: { include: ["src/**"], reporter: ["text", "html"] }
  }
})
