import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// By default one core is left to an editor.
const maxForks = availableParallelism()

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // They run from the packed package, in a project of their own: `test/package.test.ts`.
    exclude: ["test/examples/**"],
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks } },
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
