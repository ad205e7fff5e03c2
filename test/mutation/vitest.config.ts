import { defineConfig } from "vitest/config"
import project from "../../vitest.config.ts"

/**
 * The tests that a mutant of ranks 0 to 3 has to get past: those of these ranks and of wrapped tools, as far as they are
 * quick. Not the random schedules, no child processes, no databases but SQLite in memory.
 */
export default defineConfig({
  ...project,
  test: {
    ...project.test,
    include: [
      "test/Effect{Key,Marker,Schema,Record,Record.invariants,Resolution,Settings,Store.laws,Tool}.test.ts",
      "test/{RecordedResult,ToolContext,errors}.test.ts",
      "test/{effectTool,internal,reconciliation,toolContext}/*.test.ts"
    ],
    exclude: ["test/reconciliation/stress.test.ts"],
    typecheck: { enabled: false },
    // one import of Effect for all files, since each mutant starts them anew
    isolate: false,
    // a mutant that hangs shall fail its test before Stryker has to start a process anew
    testTimeout: 8_000
  }
})
