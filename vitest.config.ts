import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const src = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

export default defineConfig({
  resolve: {
    // Examples import the package as its users do.
    alias: [
      { find: /^assent$/, replacement: src("index.ts") },
      { find: /^assent\/testing$/, replacement: src("testing/index.ts") },
      { find: /^assent\/sql$/, replacement: src("store/index.ts") },
      { find: /^assent\/node$/, replacement: src("cli/node.ts") },
      { find: /^assent\/(.+)$/, replacement: src("$1.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
