/**
 * Bundles a program: `node .ci/build.mjs bin | bench | soak | soak-people | soak-shell | soak-sandbox`. Says nothing unless something
 * is wrong.
 *
 * The command line becomes scripts in pieces, not modules: `src/cli/start.ts` loads them together with what V8 compiled
 * before, which takes a third off the start. Each piece is a function of what CommonJS gives it.
 */
import { writeFile } from "node:fs/promises"
import { build } from "rolldown"

const common = { platform: "node", logLevel: "warn" }

const module = (input, name) =>
  build({ ...common, input, output: { dir: `dist/${name}`, format: "esm", entryFileNames: `${name}.js` } })

const programs = {
  bin: async () => {
    await build({
      ...common,
      input: "src/cli/bin.ts",
      checks: { ineffectiveDynamicImport: false },
      // libsql would make a whole report, to learn which C library this is; it finds that out in another way.
      transform: { define: { "process.report": "undefined" } },
      output: {
        dir: "dist/bin/program",
        format: "cjs",
        entryFileNames: "main.js",
        chunkFileNames: "[name]-[hash].js",
        cleanDir: true,
        // What the library loads late, the program needs at once: one file is sooner there than six.
        codeSplitting: {
          groups: [
            {
              name: "agent",
              test: /\/src\/(?:shell|permission|subagent)\/|\/src\/bridge\/(?:Mediator|ParentBridgedChannel)\.ts/
            }
          ]
        },
        // It is read as Latin-1, which takes half the memory.
        charset: "ascii",
        minify: true,
        postBanner: "(function(exports,require,module,__filename,__dirname){",
        postFooter: "})"
      }
    })
    await build({
      ...common,
      input: "src/cli/start.ts",
      output: { dir: "dist/bin", format: "cjs", entryFileNames: "assent.js", minify: true }
    })
    await writeFile("dist/bin/package.json", "{}\n")
  },
  bench: () => module("test/bench/main.ts", "bench"),
  soak: () => module("test/soak/main.ts", "soak"),
  "soak-shell": () => module("test/soak/shell.ts", "soak-shell"),
  "soak-people": () => module("test/soak/people.ts", "soak-people"),
  "soak-sandbox": () => module("test/soak/sandbox.ts", "soak-sandbox")
}

const program = programs[process.argv[2]]
if (program === undefined) throw new Error(`name one of ${Object.keys(programs).join(", ")}`)
await program()
