import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // They run from the packed package, in a project of their own: `test/package.test.ts`.
    exclude: ["test/examples/**"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
