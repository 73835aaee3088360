/**
 * Bundles a program, the library for Node, or the web console: `node .ci/build.mjs bin | node | web | bench | soak |
 * soak-cluster | soak-people | soak-shell | soak-reading | soak-sandbox | soak-server | soak-sessions | soak-stories | soak-texts`. Says
 * nothing unless something is wrong.
 *
 * The library has two forms. `tsc` writes a file for each module into `dist/lib`, with its types: bundlers take out what
 * they need. `dist/node` has the same modules in a few files, because Node takes a millisecond for each file it opens:
 * what the index loads is one of them. Packages are in neither, but for three in the second. A bundler cannot take the second
 * apart. It asks for `module`, which Node does not, and so gets the first. Under `development` it gets the second: what
 * Vite and Vitest leave to Node must be the same copy that Node finds.
 *
 * The command line becomes scripts in pieces, not modules: `src/cli/start.ts` loads them together with what V8 compiled
 * before, which takes a third off the start. Each piece is a function of what CommonJS gives it.
 */
import { readdirSync, readFileSync } from "node:fs"
import { copyFile, writeFile } from "node:fs/promises"
import { resolve } from "node:path"
import { build } from "rolldown"
import { notices } from "./notices.mjs"

const common = { platform: "node", logLevel: "warn" }

const module = (input, name, external = []) =>
  build({ ...common, input, external, output: { dir: `dist/${name}`, format: "esm", entryFileNames: `${name}.js` } })

/** The sources of the public modules, by their paths below `src`. */
const publicModules = () => {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"))
  const paths = Object.values(exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default.slice("./dist/lib/".length)]
  )
  return Object.fromEntries(paths.map((path) => [path.replace(/\.js$/, ""), `src/${path.replace(/js$/, "ts")}`]))
}

/** The modules that are loaded with another one, itself apart. */
const loadedWith = (entry, modules) => {
  const index = resolve(entry)
  const seen = new Set()
  const visit = (id) => {
    if (seen.has(id)) return
    seen.add(id)
    for (const imported of modules.getModuleInfo(id)?.importedIds ?? []) visit(imported)
  }
  visit(index)
  seen.delete(index)
  return seen
}

/** What packages are bundled is not in the package: a source map must not lead there. */
const unmapped = {
  name: "unmapped",
  transform: { filter: { id: /\/node_modules\// }, handler: (code) => ({ code, map: { mappings: "" } }) }
}

/** What an SDK writes to the console would be in the middle of a screen, and holds foreign text as it is. */
const quiet = {
  name: "quiet",
  transform: {
    filter: { id: /node_modules\/@(?:modelcontextprotocol|agentclientprotocol)\// },
    handler: (code) => ({
      code: code.replaceAll(/console\.(?:warn|debug|error|log)\(/g, "void ("),
      map: { mappings: "" }
    })
  }
}

/**
 * The compiler drops the comment of a module together with its first import, if that import is of values alone. Readers of
 * the package see the declarations only, so each declaration file gets its comment back. The lines of its map move down.
 */
const documented = async () => {
  for (const name of readdirSync("dist/lib", { recursive: true }).filter((name) => name.endsWith(".d.ts"))) {
    const source = readFileSync(`src/${name.replace(/\.d\.ts$/, ".ts")}`, "utf8")
    const [comment = ""] = /^\/\*\*[^]*?\*\/\n/.exec(source) ?? []
    const text = readFileSync(`dist/lib/${name}`, "utf8")
    if (text.startsWith(comment)) continue
    const { mappings, ...map } = JSON.parse(readFileSync(`dist/lib/${name}.map`, "utf8"))
    const moved = ";".repeat(comment.split("\n").length - 1)
    await writeFile(`dist/lib/${name}`, comment + text)
    await writeFile(`dist/lib/${name}.map`, JSON.stringify({ ...map, mappings: moved + mappings }))
  }
}

const library = async () => {
  await documented()
  let atOnce
  await build({
    ...common,
    input: publicModules(),
    // A module of its own is found by its path, a package by its name, but for three. The XML reader is the only CommonJS
    // there; Node would load its reader of CommonJS for it, which takes as long as an eighth of the index. The digests are
    // four files. What measures text makes at once what the index does not need, and is five files.
    external: (id) =>
      !/^(?:[./]|src\/|saxes$|@noble\/hashes\/|xmlchars\/|(?:string-width|strip-ansi|ansi-regex|get-east-asian-width)$)/.test(
        id
      ),
    // A module that is public and loaded late is loaded at once where the index is.
    checks: { ineffectiveDynamicImport: false },
    plugins: [notices("THIRD-PARTY.txt"), unmapped, lateWidths],
    // What a public module shares with others is a piece of its own; otherwise the module would export it as well.
    preserveEntrySignatures: "strict",
    output: {
      dir: "dist/node",
      format: "esm",
      entryFileNames: "[name].js",
      chunkFileNames: "chunk/[name].js",
      cleanDir: true,
      sourcemap: true,
      // The package holds them.
      sourcemapExcludeSources: true,
      // Their place is in the declarations, and text that is ASCII takes half the memory.
      comments: { jsdoc: false },
      charset: "ascii",
      codeSplitting: {
        groups: [
          {
            debugName: "library",
            name: (id, modules) => {
              atOnce ??= loadedWith("src/index.ts", modules)
              return atOnce.has(id) ? "library" : null
            }
          }
        ]
      }
    }
  })
}

/**
 * What packages make when they are loaded, and a start does not need, is made at its first use. A package that was changed
 * since must be looked at again.
 */
const later = (file, replacements) => ({
  name: `later: ${file}`,
  transform: {
    filter: { id: new RegExp(`/${file}$`) },
    handler: (code) => ({
      code: Object.entries(replacements).reduce((changed, [eager, late]) => {
        if (!changed.includes(eager)) throw new Error(`${file} has no more ${eager}`)
        return changed.replace(eager, () => late)
      }, code),
      map: { mappings: "" }
    })
  }
})

/** Only text that is not ASCII needs them; V8 reads its tables for 10 ms, and longer from a disk. */
const lateWidths = later("node_modules/string-width/index.js", {
  "const segmenter = new Intl.Segmenter();":
    "let segments; const segmenter = { segment: (text) => (segments ??= new Intl.Segmenter()).segment(text) };",
  "const rgiEmojiRegex = /^\\p{RGI_Emoji}$/v;":
    "let emoji; const rgiEmojiRegex = { test: (text) => (emoji ??= /^\\p{RGI_Emoji}$/v).test(text) };"
})

/** The page needs the lexer alone; the renderer beside it is made at once, so that no bundler takes it out. */
const lexerAlone = {
  name: "lexer alone",
  transform: {
    filter: { id: /node_modules\/marked\/lib\/marked\.esm\.js$/ },
    handler: (code) => {
      const [, lexer] = /,(\w+) as Lexer,/.exec(code) ?? []
      const rest = /var (\w+)=new \w+;function (\w+)\(\w+,\w+\)\{return \1\.parse\(/.exec(code)
      if (lexer === undefined || rest === null) throw new Error("marked has another shape")
      return { code: `${code.slice(0, rest.index)}export{${lexer} as Lexer};`, map: { mappings: "" } }
    }
  }
}

const programs = {
  node: library,
  bin: async () => {
    const agent =
      /\/src\/(?:shell|sandbox|permission|subagent|builtin)\/|\/src\/bridge\/(?:Mediator|ParentBridgedChannel)\.ts/
    let starts
    const startsWith = (modules) =>
      (starts ??= {
        told: loadedWith("src/cli/bin.ts", modules),
        run: loadedWith("src/cli/command/Run.ts", modules),
        chat: loadedWith("src/cli/command/Chat.ts", modules)
      })
    const isNeededAtWork = (id, modules) => {
      const { chat, run } = startsWith(modules)
      return agent.test(id) || (run.has(id) && chat.has(id))
    }
    await build({
      ...common,
      input: "src/cli/bin.ts",
      checks: { ineffectiveDynamicImport: false },
      // libsql would make a whole report, to learn which C library this is; it finds that out in another way.
      transform: { define: { "process.report": "undefined" } },
      plugins: [
        notices("THIRD-PARTY.txt"),
        lateWidths,
        quiet,
        // It is for an old Linux only.
        later("node_modules/detect-libc/lib/detect-libc.js", {
          "const childProcess = require('child_process');":
            "const childProcess = { get exec() { return require('child_process').exec }, get execSync() { return require('child_process').execSync } };"
        }),
        // A script that was compiled ahead cannot call import(). `NodeFiles` loads ripgrep there, and Node has its `crypto`.
        later("src/builtin/Ripgrep.ts", { "import(/* @vite-ignore */ packageName)": "Promise.reject()" }),
        later("node_modules/pkce-challenge/dist/index.node.js", {
          'import("node:crypto").then(m => m.webcrypto)': "undefined"
        }),
        // Node loads its `performance` when it is named, and nobody needs it: at first it tells what the clock tells.
        later("node_modules/effect/dist/esm/internal/clock.js", {
          'typeof performance === "undefined" || typeof performance.now !== "function"': "false",
          "/*#__PURE__*/performanceNowNanos() -": "BigInt(Date.now()) * 1000000n -"
        })
      ],
      output: {
        dir: "dist/bin/program",
        format: "cjs",
        entryFileNames: "main.js",
        chunkFileNames: "[name]-[hash].js",
        cleanDir: true,
        // What the library loads late, and what a run and a chat both need, is one file: it is sooner there than thirty.
        // Help and the version are told without it.
        codeSplitting: {
          groups: [
            {
              debugName: "told",
              name: (id, modules) => (startsWith(modules).told.has(id) && isNeededAtWork(id, modules) ? "told" : null),
              priority: 1
            },
            { debugName: "agent", name: (id, modules) => (isNeededAtWork(id, modules) ? "agent" : null) }
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
  /** One script for browsers, and beside it the files that it needs. */
  web: async () => {
    await build({
      input: "src/web/main.tsx",
      platform: "browser",
      logLevel: "warn",
      plugins: [notices("THIRD-PARTY.txt"), lexerAlone],
      output: { dir: "dist/web", format: "esm", entryFileNames: "console.js", cleanDir: true, minify: true }
    })
    for (const name of ["index.html", "console.css", "icon.svg"]) await copyFile(`src/web/${name}`, `dist/web/${name}`)
  },
  bench: () => module("test/bench/main.ts", "bench"),
  soak: () => module("test/soak/main.ts", "soak"),
  // It builds the program of its nodes.
  "soak-cluster": () => module("test/soak/cluster.ts", "soak-cluster", ["rolldown"]),
  "soak-shell": () => module("test/soak/shell.ts", "soak-shell"),
  "soak-people": () => module("test/soak/people.ts", "soak-people"),
  "soak-reading": () => module("test/soak/reading.ts", "soak-reading"),
  "soak-sandbox": () => module("test/soak/sandbox.ts", "soak-sandbox"),
  "soak-server": () => module("test/soak/server.ts", "soak-server", ["@lydell/node-pty"]),
  "soak-sessions": () => module("test/soak/sessions.ts", "soak-sessions"),
  "soak-stories": () => module("test/soak/stories.ts", "soak-stories"),
  "soak-texts": () => module("test/soak/texts.ts", "soak-texts")
}

const program = programs[process.argv[2]]
if (program === undefined) throw new Error(`name one of ${Object.keys(programs).join(", ")}`)
await program()
