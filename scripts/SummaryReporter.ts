import type { Reporter, TestCase, TestModule } from "vitest/node"

const countOf = (state: ReturnType<TestCase["result"]>["state"]): "passed" | "failed" | "skipped" =>
  state === "pending" ? "skipped" : state

/**
 * Ends a test run with one line for people and machines. Whatever makes the run red without a failed test counts as one
 * failure: a file that cannot be loaded, a hook of a suite, an error outside of all tests. So "0 failed" means green.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>, unhandledErrors: ReadonlyArray<unknown>): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        count[countOf(test.result().state)]++
      }
      count.failed += module.errors().length
      for (const suite of module.children.allSuites()) {
        count.failed += suite.errors().length
      }
    }
    if (modules.length === 0) {
      count.failed++
    }
    const line = `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`
    // the other reporters still print when the run has ended; in watch mode the process stays
    process.once("exit", () => process.stdout.write(line))
  }
}
