import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"

/** Folders by floor; a file imports from its own folder and from lower floors. */
const floors: ReadonlyArray<ReadonlyArray<string>> = [
  ["core"],
  ["shell", "sandbox"],
  ["event", "tool", "internal"],
  ["interaction", "audit", "model"],
  ["broker", "xml", "channel", "permission", "people"],
  ["inbox"],
  ["conversation", "bridge"],
  ["journal"],
  ["turn", "store"],
  ["session"],
  ["subagent"],
  ["builtin"],
  ["mcp", "foreign"],
  ["runtime"],
  ["host", "testing"],
  ["acp", "http", "tui"],
  ["cluster"],
  ["cli", "web"]
]

/** What only a process of Node's has, or a page of a browser. */
const atTheMachine = new Set(["host", "acp", "http", "cluster", "mcp", "tui", "cli", "web"])

const src = resolve("src")
const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => join(src, name))

const folderOf = (file: string): string => relative(src, file).split("/")[0] ?? ""
const floorOf = (file: string): number => floors.findIndex((folders) => folders.includes(folderOf(file)))

/** Examples in doc comments import what they like. */
const codeOf = (file: string): string => readFileSync(file, "utf8").replace(/^ *\*.*$/gm, "")

const importsOf = (file: string): ReadonlyArray<string> =>
  Array.from(codeOf(file).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g), (match) => match[1] ?? "")

const sourcesOf = (file: string): ReadonlyArray<string> =>
  importsOf(file)
    .filter((specifier) => specifier.startsWith(".") && specifier.endsWith(".js"))
    .map((specifier) => resolve(dirname(file), specifier.replace(/\.js$/, ".ts")))
    .map((name) => (files.includes(name) ? name : `${name}x`))

const shown = (file: string) => relative(src, file)

describe("the house", () => {
  it("has every file on a floor", () => {
    assert.deepStrictEqual(files.filter((file) => floorOf(file) < 0).map(shown), ["index.ts"])
  })

  it("imports downwards or within a folder, never sideways or up", () => {
    const wrong = files
      .filter((file) => floorOf(file) >= 0)
      .flatMap((file) =>
        sourcesOf(file)
          .filter((target) => folderOf(target) !== folderOf(file) && floorOf(target) >= floorOf(file))
          .map((target) => `${shown(file)} -> ${shown(target)}`)
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("gives the page of the console types alone, and no code of other rooms", () => {
    const wrong = files
      .filter((file) => folderOf(file) === "web")
      .flatMap((file) =>
        Array.from(
          codeOf(file).matchAll(/^(?:import|export) (?!type\b)[^;"]*?from "(\.\.\/[^"]+)"/gm),
          ([, name]) => `${shown(file)}: ${name}`
        )
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("has no cycle", () => {
    const done = new Set<string>()
    const cycles: Array<string> = []
    const visit = (file: string, path: ReadonlyArray<string>): void => {
      if (path.includes(file)) {
        cycles.push([...path.slice(path.indexOf(file)), file].map(shown).join(" -> "))
        return
      }
      if (done.has(file)) return
      for (const target of sourcesOf(file)) visit(target, [...path, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    assert.deepStrictEqual(cycles, [])
  })

  it("names services and errors by their place: assent/room/Noun", () => {
    /** Kinds have the names of the contract, which journals and peers know. */
    const isKind = (tag: string) => /^(?:grantStageTool|approveSubagentEnvelope|Auth\.\w+)$/.test(tag)
    const services = /class (\w+) extends Context\.(?:Tag\(|Reference<\w+>\(\)\()\s*"([^"]+)"/g
    const errors = /class (\w+) extends Schema\.Tagged\w+<\w+>\(\s*"([^"]+)"\s*\)\(\s*"([^"]+)"/g
    let named = 0
    const wrong = files.flatMap((file) => {
      const code = codeOf(file)
      const found = [...code.matchAll(services), ...code.matchAll(errors)]
      named += found.length
      return found
        .filter(
          ([, name = "", id, tag = name]) => !isKind(tag) && (tag !== name || id !== `assent/${folderOf(file)}/${name}`)
        )
        .map(([, name, id]) => `${shown(file)}: ${name} is ${id}`)
    })
    assert.isAbove(named, 80)
    assert.deepStrictEqual(wrong, [])
  })

  it("has no room of more than 15 % of its lines", () => {
    const lines = new Map<string, number>()
    for (const file of files) {
      const count = readFileSync(file, "utf8").split("\n").length
      lines.set(folderOf(file), (lines.get(folderOf(file)) ?? 0) + count)
    }
    const all = [...lines.values()].reduce((sum, count) => sum + count, 0)
    assert.isAbove(lines.size, 25)
    assert.deepStrictEqual(
      [...lines].filter(([, count]) => count > all * 0.15).map(([room]) => room),
      []
    )
  })

  it("imports Effect's modules one by one, and Node only at its edges", () => {
    /** Digests, a database that is native code, and the socket of one that is a server. */
    const atTheEdge = new Set(["core/Digest.ts", "store/DatabaseFile.ts", "store/PostgresConnection.ts"])
    const wrong = files.flatMap((file) =>
      importsOf(file)
        .filter(
          (specifier) =>
            specifier === "effect" ||
            specifier === "@effect/ai" ||
            specifier === "@effect/platform" ||
            specifier.startsWith("@effect/schema") ||
            (!atTheMachine.has(folderOf(file)) &&
              (specifier.startsWith("@effect/platform-node") ||
                (specifier.startsWith("node:") && !atTheEdge.has(shown(file)))))
        )
        .map((specifier) => `${shown(file)} imports ${specifier}`)
    )
    assert.deepStrictEqual(wrong, [])
  })

  it("loads no database, telemetry, command line, server or work of tools with the library alone", () => {
    /** What is loaded with a file at once: imports of types are gone by then, and `import()` comes later. */
    const loadedBy = (file: string): ReadonlyArray<string> =>
      Array.from(
        readFileSync(file, "utf8").matchAll(/^(?:import|export)(?! type\b)[^;"]*?from "([^"]+)"/gm),
        ([, specifier = ""]) => specifier
      )
    const seen = new Set<string>()
    const packages = new Set<string>()
    const visit = (file: string): void => {
      if (seen.has(file)) return
      seen.add(file)
      for (const specifier of loadedBy(file)) {
        if (specifier.startsWith(".")) visit(resolve(dirname(file), specifier.replace(/\.js$/, ".ts")))
        else packages.add(specifier)
      }
    }
    visit(join(src, "index.ts"))
    assert.isAbove(seen.size, 100)
    const folders = new Set([...seen].map(folderOf))
    assert.deepStrictEqual(
      ["store", "host", "acp", "http", "cluster", "cli", "testing"].filter((folder) => folders.has(folder)),
      []
    )
    const late = ["builtin/WorkspaceWork", "builtin/Job", "permission/PathScope", "sandbox/HostSandbox"]
    assert.deepStrictEqual(
      late.filter((name) => seen.has(join(src, `${name}.ts`))),
      []
    )
    const heavy =
      /^(?:@effect\/(?:sql|opentelemetry|platform-node|cluster|workflow|ai-)|@libsql|@opentelemetry|yaml$|diff\/)|\/Http|\/Command/
    assert.deepStrictEqual(
      [...packages].filter((specifier) => heavy.test(specifier)),
      []
    )
  })

  it("locks every package by the digest of what it holds, and by no address", () => {
    const apart = ["test/postgres", "test/bench", "test/judges/acp", "test/judges/mcp", "test/judges/openapi"]
    for (const lock of ["package-lock.json", ...apart.map((folder) => `${folder}/package-lock.json`)]) {
      const { packages }: { readonly packages: { readonly [path: string]: { readonly [field: string]: unknown } } } =
        JSON.parse(readFileSync(join(src, "..", lock), "utf8"))
      const wrong = Object.entries(packages).filter(
        ([path, { integrity, link, resolved }]) =>
          path !== "" && link !== true && (typeof integrity !== "string" || resolved !== undefined)
      )
      assert.deepStrictEqual(
        wrong.map(([path]) => path),
        [],
        lock
      )
    }
  })

  it("reads process, environment and clock at the edge only, and runs no effect inside", () => {
    // A schema is run at once, as Effect does where nothing may wait, and here with the services of its tool.
    const schemaAtOnce = "tool/ToolRegistry.ts: return Effect.runSync(Effect.provide(Effect.either(parse), context))"
    const banned =
      /\bprocess\.|\bDate\.now\(|\bMath\.random\(|\bconsole\.|Effect\.run(Sync|Promise|Fork)\(|\bas any\b|: any\b|@ts-/
    const wrong = files
      .filter((file) => !atTheMachine.has(folderOf(file)))
      .flatMap((file) =>
        readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => banned.test(line.replace(/^\s*(\/?\*|\/\/).*/, "")))
          .map((line) => `${shown(file)}: ${line.trim()}`)
      )
    assert.deepStrictEqual(wrong, [schemaAtOnce])
  })

  it("tells programs of functions, and of flags and commands at a command line only", () => {
    const spoken =
      /["'`][^"'`]* --[a-z]+\b|\bassent (?:sessions|audit verify|run|chat|answer|permissions|profiles|doctor)\b/
    // Those that run programs, and what confines and takes apart their command lines.
    const others = /^(?:cli|tui|shell|sandbox|host)\/|^permission\/(?:Git|Unpacking)|^builtin\/(?:Shell|Stray)/
    const wrong = files
      .filter((file) => !others.test(shown(file)))
      .flatMap((file) =>
        codeOf(file)
          .split("\n")
          .filter((line) => spoken.test(line.replace(/^\s*(\/?\*|\/\/).*/, "")))
          .map((line) => `${shown(file)}: ${line.trim()}`)
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("has no error whose field hides the name or the stack of an error, which logs show", () => {
    const hiding = /TaggedError<\w+>\([^]*?\)\(\s*"\w+",\s*\{[^]*?\n\s*(?:name|stack)[:,][^]*?\n\}\) \{/
    const wrong = files.filter((file) =>
      codeOf(file)
        .split(/^export class /m)
        .some((part) => hiding.test(part))
    )
    assert.deepStrictEqual(wrong.map(shown), [])
  })

  it("sets no function as a property where an agent's life is short: see Region", () => {
    const rooms = /^(?:turn|session|broker|permission|runtime|event|inbox|subagent|interaction|core|internal)\//
    const set = /^\s*(?:this|\w+)(?:\.\w+)+ (?:\?\?)?= (?:async )?(?:\([^)]*\)|\w+)(?:: [\w.<>]+)? =>/
    const wrong = files
      .filter((file) => rooms.test(shown(file)))
      .flatMap((file) =>
        readFileSync(file, "utf8")
          .split("\n")
          .filter((line) => set.test(line))
          .map((line) => `${shown(file)}: ${line.trim()}`)
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("uses the inside of fibers only where that was measured or cannot be said otherwise", () => {
    const inside = /\b(?:withFiberRuntime|unsafeInterruptAsFork)\b|\bEffect\.async\b/
    const allowed = new Set([
      // The primitives that exist so that others need none of it: each says what it costs less than Effect's own.
      "internal/DetachedFiber.ts",
      "internal/EventLoop.ts",
      "internal/FairLock.ts",
      "internal/GracePeriod.ts",
      "internal/LateInterrupt.ts",
      "internal/OneShot.ts",
      // They read a fiber-local value without a step of Effect: an origin, an interactor, a span.
      "core/Origin.ts",
      "core/Spans.ts",
      "interaction/InteractionRequest.ts",
      "interaction/Interactor.ts",
      // A call and its request pass here, thousands at a time: no generator, scope or fiber for what needs none.
      "broker/InteractionBroker.ts",
      "channel/Deadlines.ts",
      "channel/DialogTable.ts",
      "turn/ToolBatch.ts",
      // They end a fiber of their own and do not wait for it, or wait for it in their own way.
      "bridge/Mediator.ts",
      "turn/Generation.ts",
      "turn/RunningCalls.ts",
      "turn/CompactionRun.ts",
      "turn/SilenceWatch.ts",
      "turn/TurnContext.ts",
      "turn/TurnFiber.ts",
      // One reader waits for a list that is filled synchronously; every agent has one, so it is a field and no Queue.
      "audit/AuditFile.ts",
      "event/EventBus.ts",
      "inbox/ChildRequestQueue.ts",
      "store/WriteQueue.ts",
      // What Node or a terminal calls back.
      "tui/console/ConsolePlain.ts",
      "channel/FileChannel.ts",
      "tui/process/NodeTerminal.ts",
      "tui/process/Output.ts",
      "tui/process/Outside.ts",
      "cluster/Readiness.ts",
      "host/WebRequest.ts",
      "http/Admission.ts",
      "http/LongJson.ts",
      "mcp/SignIn.ts",
      // What the client of a tool server calls back.
      "mcp/McpServer.ts"
    ])
    const users = files
      .filter((file) =>
        readFileSync(file, "utf8")
          .split("\n")
          .some((line) => inside.test(line.replace(/^\s*(?:\*|\/\/|\/\*).*/, "")))
      )
      .map(shown)
    assert.deepStrictEqual(users.sort(), [...allowed].sort())
  })

  it("reads by path through its doors, and makes directories one by one", () => {
    /** Doors, what reads only files of the system, its own or by a handle, and the start of the program. */
    const readers = new Set([
      "core/RegularFile.ts",
      "host/local/OwnFile.ts",
      "builtin/OpenedFile.ts",
      "builtin/Checkpoints.ts",
      "builtin/ShellProcess.ts",
      "builtin/StrayProcesses.ts",
      "sandbox/BubblewrapSandbox.ts",
      "sandbox/OwnFiles.ts",
      "sandbox/Unfinished.ts",
      "audit/AuditArchive.ts",
      "host/local/HiddenVariables.ts",
      "host/NodeProcess.ts",
      "tui/process/Tty.ts",
      "cli/start.ts"
    ])
    /** It makes only what lies in a directory that was made before. */
    const makers = new Set(["cli/start.ts"])
    const wrong = files.filter((file) => {
      const text = readFileSync(file, "utf8")
      const reads = /\breadFile(?:String|Sync)?\(/.test(text) && !readers.has(shown(file))
      // Where the system lets nobody make any, Node tries for ever.
      return reads || (/\b(?:makeDirectory|mkdir(?:Sync)?)\([^\n]*recursive/.test(text) && !makers.has(shown(file)))
    })
    assert.deepStrictEqual(wrong.map(shown), [])
  })

  it("has one file of a name, so that a name is a word", () => {
    // Commands are called what is typed; a door is called index.
    const names = files.filter((file) => !/\/(?:cli\/command\/\w+|index)\.ts$/.test(file)).map((file) => basename(file))
    assert.deepStrictEqual(
      names.filter((name, i) => names.indexOf(name) !== i),
      []
    )
  })

  it("keeps a noun of the core in one file: no file for one other alone, unless tests know it or it is loaded later", () => {
    const core = ["turn", "session", "broker", "bridge", "permission"]
    const importers = new Map<string, Set<string>>()
    const late = new Set<string>()
    for (const file of files) {
      const code = codeOf(file)
      const target = (specifier: string) => resolve(dirname(file), specifier.replace(/\.js$/, ".ts"))
      for (const [, specifier = ""] of code.matchAll(/from "(\.[^"]+)"/g)) {
        const path = target(specifier)
        importers.set(path, (importers.get(path) ?? new Set()).add(file))
      }
      for (const [, specifier = ""] of code.matchAll(/import\("(\.[^"]+)"\)/g)) late.add(target(specifier))
    }
    const parts = files.filter((file) => {
      const [only, ...others] = importers.get(file) ?? []
      const isPart = only !== undefined && others.length === 0 && folderOf(only) === folderOf(file)
      const ownTest = join("test", shown(file).replace(/\.ts$/, ".test.ts"))
      return core.includes(folderOf(file)) && isPart && !late.has(file) && !existsSync(ownTest)
    })
    // A noun of its own, whose tests are those of the guard that asks it.
    assert.deepStrictEqual(parts.map(shown), ["permission/PathScope.ts"])
    // Such an interface says that two files are one noun. What is loaded later has to be given something.
    const pointing = files.filter(
      (file) => core.includes(folderOf(file)) && !late.has(file) && /interface (Host|Gate|Loop)\b/.test(codeOf(file))
    )
    assert.deepStrictEqual(pointing.map(shown), [])
  })

  it("exports no value that nobody imports", () => {
    const tests = readdirSync("test", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))
    const readers = [...files, ...tests.map((name) => resolve("test", name))].map((file) => ({
      file,
      words: new Set(readFileSync(file, "utf8").match(/\w+/g))
    }))
    let exported = 0
    const unused = files.flatMap((file) => {
      const module = basename(file).replace(/\.tsx?$/, "")
      // What is public has the version that brought it in its doc comment, and a snapshot of its own.
      return [
        ...readFileSync(file, "utf8").matchAll(/(?<!@since[^]{0,120})^export (?:const|function) (\w+)/gm)
      ].flatMap(([, name = ""]) => {
        exported += 1
        const isRead = readers.some((other) => other.file !== file && other.words.has(module) && other.words.has(name))
        return isRead ? [] : [`${shown(file)}: ${name}`]
      })
    })
    assert.isAbove(exported, 1000)
    assert.deepStrictEqual(unused, [])
  })

  it("shares no layer between tests by `it.layer`, which changes `it` for all files of the process", () => {
    const names = readdirSync("test", { recursive: true, encoding: "utf8" })
    const tests = names.filter(
      (name) => /^(?!.*node_modules).*\.ts$/.test(name) && !name.endsWith("architecture.test.ts")
    )
    const shared = tests.filter((name) =>
      /\bit\.layer\(|\blayer\b[^\n]*@effect\/vitest/.test(readFileSync(resolve("test", name), "utf8"))
    )
    assert.isAbove(tests.length, 200)
    assert.deepStrictEqual(shared, [])
  })

  it("compares names of people in one place, which knows their spellings", () => {
    const compared =
      /[=!]== (?:\w+\.)*(?:by|principal)\b|\b(?:by|principal) [=!]== (?!undefined|")|includes\((?:\w+\.)*(?:by|principal|role)\)/
    const rooms = new Set(["interaction", "broker", "people", "channel", "journal"])
    const wrong = files.filter((file) => rooms.has(folderOf(file)) && compared.test(codeOf(file))).map(shown)
    assert.deepStrictEqual(wrong, [])
  })

  it("stamps events in one place", () => {
    /** They tell what happened before or in another process, at the time at which it happened. */
    const retold = new Set(["journal/EventProjection.ts", "http/RemoteSession.ts"])
    const wrong = files
      .filter((file) => folderOf(file) !== "event" && !retold.has(shown(file)))
      .filter((file) => /\b(?:unsafePublish|AgentEvent\.make)\(|\bbus\.publish\(/.test(readFileSync(file, "utf8")))
    assert.deepStrictEqual(wrong.map(shown), [])
  })

  it("mirrors its folders in the tests", () => {
    const folders = readdirSync("test").filter((name) => statSync(join("test", name)).isDirectory())
    const allowed = new Set([
      ...floors.flat(),
      "suite",
      "scenario",
      "surface",
      "kit",
      "examples",
      "bench",
      "soak",
      "postgres",
      "judges"
    ])
    assert.deepStrictEqual(
      folders.filter((name) => !allowed.has(name)),
      []
    )
  })
})
