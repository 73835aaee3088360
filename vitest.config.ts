import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// One of its own: by default one core is left to an editor, and half of the time goes into loading Effect once a file.
const maxForks = availableParallelism()

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // They run from the packed package, in a project of their own: `test/package.test.ts`.
    exclude: ["test/examples/**"],
    pool: "forks",
    // Our own modules are loaded anew for each file all the same.
    poolOptions: { forks: { isolate: false, minForks: 1, maxForks } },
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
