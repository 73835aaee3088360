/** Patterns over paths and links in the workspace: real files, as the built-in file tools meet them at the gate. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as Schema from "effect/Schema"
import * as Workspace from "../../src/builtin/Workspace.js"
import type { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as BuiltInGuards from "../../src/permission/BuiltInGuards.js"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as PermissionCommand from "../../src/permission/PermissionCommand.js"
import * as PermissionGate from "../../src/permission/PermissionGate.js"
import { PermissionState, type Mode } from "../../src/permission/PermissionState.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import type { ProjectRules } from "../../src/permission/ProjectRules.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Recorder from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"

/** Takes a list of paths, and says so. */
const Pack = Tool.make("pack", { parameters: { files: Schema.Array(Schema.String) }, success: Schema.String }).annotate(
  ToolTrait.Paths,
  ["files"]
)
/** Has a parameter of that name and does not say that it is a path. */
const Label = Tool.make("label", { parameters: { path: Schema.String }, success: Schema.String })
const own = Toolkit.make(Pack, Label)

const ended = { sessionId: "root" as SessionId, rootSessionId: "root" as SessionId, agent: "main", depth: 0 }
const origin: Origin.Origin = { ...ended, correlationId: "turn_1" as CorrelationId }

interface Options {
  readonly policy: PolicySource
  readonly project?: ReadonlyArray<string>
  /** Without: the program knows no files. */
  readonly unplaced?: true
  /** Without the guards that look at files, which may ask for themselves. */
  readonly unguarded?: true
  /** What the person says. Default: no. */
  readonly says?: TestInteractor.Step
}

/**
 * ```
 * ws/src/a.ts  ws/src/up -> ..  ws/src/out.txt -> ../secret.txt  ws/src/new.txt -> ../made.txt (nothing there)
 * ws/src/again -> up  ws/secret.txt  ws/alias -> src  ws/loop -> loop  ws/src/here -> a.ts
 * ```
 */
const inWorkspace = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const base = yield* Effect.flatMap(fs.makeTempDirectoryScoped(), fs.realPath)
  const root = `${base}/ws`
  yield* fs.makeDirectory(`${root}/src/deep`, { recursive: true })
  yield* fs.writeFileString(`${root}/src/a.ts`, "")
  yield* fs.writeFileString(`${root}/secret.txt`, "")
  for (const [target, name] of [
    ["..", "src/up"],
    ["up", "src/again"],
    ["../secret.txt", "src/out.txt"],
    ["../made.txt", "src/new.txt"],
    ["a.ts", "src/here"],
    ["src", "alias"],
    ["loop", "loop"]
  ] as const) {
    yield* fs.symlink(target, `${root}/${name}`)
  }
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const files = yield* Effect.provide(ToolRegistry.make(Workspace.toolkit), Workspace.layer({ root }))
  const mine = yield* Effect.provide(
    ToolRegistry.make(own),
    own.toLayer({ pack: () => Effect.succeed(""), label: () => Effect.succeed("") })
  )
  const tools = ToolRegistry.fromEntries([...files.entries, ...mine.entries])
  const make = ({ policy: source, project, says = "n", unguarded, unplaced }: Options) =>
    Effect.gen(function* () {
      const recorder = yield* Recorder.make()
      const person = yield* TestInteractor.make({ script: () => says })
      const state = new PermissionState()
      const rules: ProjectRules | undefined = project && {
        entries: () => new Set(project),
        revoke: () => Effect.void
      }
      const made = { ...CompiledPolicy.make(source), project: rules }
      const policy = unplaced ? { ...made, workspace: root } : AgentRuntime.placed(made, root, platform)
      const surroundings = { workspace: root, platform }
      const guards = unguarded
        ? []
        : [BuiltInGuards.sanitizer(surroundings)(policy.sanitize), BuiltInGuards.git(surroundings)]
      const gate = PermissionGate.make({
        policy,
        state,
        bus: recorder.bus,
        redactor: Redaction.make([]),
        guards
      })
      const proposal = (name: string, params: unknown) => {
        const entry = tools.get(name)
        if (entry === undefined) throw new Error(`no tool ${name}`)
        const call = { id: "call_1" as ToolCallId, name, params }
        return { call, entry, params: Either.getOrThrow(entry.decode(params)) }
      }
      const asOne = <A>(effect: Effect.Effect<A, never, Interactor.Interactor>) =>
        effect.pipe(Interactor.withInteractor(person.interactor), Origin.withOrigin(origin))
      const target = { guards, state, policy, tools, sessionId: origin.sessionId }
      const said = (name: string, params: unknown) =>
        Effect.map(PermissionCommand.answer(`check ${name} ${JSON.stringify(params)}`, target), (found) =>
          Either.getOrThrow(found).lines.join("\n")
        )
      /** What becomes of the call, which `permissions check` has to foresee. */
      const outcome = (name: string, params: unknown) =>
        Effect.gen(function* () {
          const before = (yield* person.shown).length
          const verdict = yield* asOne(gate.check(proposal(name, params)))
          const found = (yield* person.shown).length > before ? "ask" : verdict._tag === "Allowed" ? "allow" : "deny"
          assert.strictEqual((yield* said(name, params)).split(" ")[0], found, `check ${JSON.stringify(params)}`)
          return found
        })
      return { state, outcome, said, gate, proposal, asOne }
    })
  return { fs, root, make }
})

const write = (path: string) => ["write_file", { path, content: "x" }] as const
const srcOnly = "write_file(content=*, path=src/*)"

/** The calls of one tool that end in this way, of all. */
const run = <A>(
  options: Options,
  use: (kit: Effect.Effect.Success<ReturnType<Effect.Effect.Success<typeof inWorkspace>["make"]>>, root: string) => A
) => Effect.flatMap(inWorkspace, ({ make, root }) => Effect.map(make(options), (kit) => use(kit, root)))

describe("a pattern over a path that allows", () => {
  const cases: ReadonlyArray<readonly [path: string, outcome: string]> = [
    ["src/a.ts", "allow"],
    ["./src//deep/../a.ts", "allow"],
    ["src/deep/made/later.ts", "allow"],
    // A link inside of what is allowed.
    ["src/here", "allow"],
    ["src/up/src/a.ts", "allow"],
    ["alias/a.ts", "ask"],
    ["src/up/secret.txt", "ask"],
    ["src/up/not/there.txt", "ask"],
    ["src/again/secret.txt", "ask"],
    ["src/out.txt", "ask"],
    // The tool itself refuses links to nothing.
    ["src/new.txt", "deny"],
    // As a text it is `src/secret.txt`; the system comes to the parent of the workspace.
    ["src/up/../secret.txt", "ask"],
    ["src/../secret.txt", "ask"]
  ]
  const allowing: ReadonlyArray<readonly [string, Options, ReadonlyArray<string>]> = [
    ["in the policy", { policy: { whitelist: { patterns: [srcOnly] } } }, []],
    ["in the session", { policy: {} }, [srcOnly]],
    ["in this project", { policy: {}, project: [srcOnly] }, []],
    ["over any tool", { policy: { whitelist: { patterns: ["*path=src/*"] } } }, []]
  ]
  for (const [where, options, session] of allowing) {
    it.scoped(`${where}, means the text and the place where links lead`, () =>
      Effect.flatten(
        run(options, (kit) =>
          Effect.gen(function* () {
            for (const entry of session) kit.state.allow(entry)
            const found: Array<readonly [string, string]> = []
            for (const [path] of cases) found.push([path, yield* kit.outcome(...write(path))])
            assert.deepStrictEqual(found, cases)
          })
        )
      ).pipe(Effect.provide(NodeContext.layer))
    )
  }

  it.scoped("means the full path too, and every path of a list", () =>
    Effect.flatten(
      run({ policy: { whitelist: { patterns: [srcOnly, 'pack(files=[[]"src/*"])'] } } }, (kit, root) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* kit.outcome(...write(`${root}/src/a.ts`)), "allow")
          assert.strictEqual(yield* kit.outcome(...write(`${root}/src/out.txt`)), "ask")
          assert.strictEqual(yield* kit.outcome("pack", { files: ["src/a.ts"] }), "allow")
          assert.strictEqual(yield* kit.outcome("pack", { files: ["src/out.txt"] }), "ask")
          // Writing through it would make its target.
          assert.strictEqual(yield* kit.outcome("pack", { files: ["src/new.txt"] }), "ask")
          assert.strictEqual(yield* kit.outcome("pack", { files: ["src/a.ts", "src/here"] }), "allow")
          assert.strictEqual(yield* kit.outcome("pack", { files: ["src/out.txt", "src/a.ts"] }), "ask")
        })
      )
    ).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("by its words, means the place as well", () =>
    Effect.flatten(
      run({ policy: { whitelist: { arguments: ["src/a.ts", "src/out.txt", "src/here"] } } }, (kit) =>
        Effect.gen(function* () {
          const read = (path: string) => kit.outcome("pack", { files: [path] })
          assert.strictEqual(yield* read("src/a.ts"), "allow")
          assert.strictEqual(yield* read("src/here"), "allow")
          assert.strictEqual(yield* read("src/out.txt"), "ask")
        })
      )
    ).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("counts as written for a parameter that is no path, and where nobody knows the files", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const policy: PolicySource = { whitelist: { patterns: [srcOnly, "label(path=src/*)"] } }
      const { outcome } = yield* make({ policy })
      assert.strictEqual(yield* outcome("label", { path: "src/out.txt" }), "allow")
      const unplaced = yield* make({ policy, unplaced: true })
      assert.strictEqual(yield* unplaced.outcome(...write("src/out.txt")), "allow")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  const denied = { blacklist: { patterns: ["write_file(*path=secret*)"] } }
  const held: ReadonlyArray<readonly [string, PolicySource, (state: PermissionState) => void, says?: string]> = [
    ["a rule", { whitelist: { patterns: [srcOnly] } }, () => undefined],
    ["a rule of the session", {}, (state) => state.allow(srcOnly)],
    ["a default that holds where no rule denies", { ...denied, defaultPolicy: "allow" }, () => undefined],
    ["a mode that holds where no rule denies", denied, (state) => state.setMode("allow")],
    [
      "a default, where what is secret is reserved",
      { defaultPolicy: "allow", approvals: [{ patterns: denied.blacklist.patterns }] },
      () => undefined
    ],
    [
      "one person, where two are wanted for what is secret",
      { approvals: [{ tools: ["write_file"] }, { patterns: denied.blacklist.patterns, quorum: 2 }] },
      () => undefined,
      "y"
    ]
  ]
  for (const [what, policy, prepare, says] of held) {
    it.scoped(`does not count when a link was changed while the call waited for room: it was allowed by ${what}`, () =>
      Effect.gen(function* () {
        const { fs, make, root } = yield* inWorkspace
        const { asOne, gate, proposal, state } = yield* make(says === undefined ? { policy } : { policy, says })
        prepare(state)
        const held = (path: string) =>
          asOne(Effect.suspend(() => gate.open(proposal(...write(path)), { authority: undefined, held: true }).verdict))
        const [kept, changed] = [yield* held("src/a.ts"), yield* held("src/here")]
        yield* fs.remove(`${root}/src/here`)
        yield* fs.symlink("../secret.txt", `${root}/src/here`)
        const settled = [kept, changed].map((verdict) =>
          verdict._tag === "Allowed" && verdict.pending !== undefined ? verdict.pending.settle : Effect.succeed(verdict)
        )
        assert.deepStrictEqual(
          (yield* Effect.all(settled)).map(({ _tag }) => _tag),
          ["Allowed", "Denied"]
        )
      }).pipe(Effect.provide(NodeContext.layer))
    )
  }
})

describe("an answer about a path", () => {
  const secret = ["write_file(*path=secret*)"]
  const cases: ReadonlyArray<readonly [string, PolicySource]> = [
    ["a list denies", { blacklist: { patterns: secret } }],
    ["a guard denies", { guards: { deny: { patterns: secret } } }],
    ["two have to allow", { approvals: [{ patterns: secret, quorum: 2 }] }],
    ["two have to allow, as one has everything", { approvals: [{ tools: ["*"] }, { patterns: secret, quorum: 2 }] }],
    ["a rule about other paths says nothing of", { whitelist: { patterns: ["write_file(*path=other/*)"] } }],
    ["no rule speaks of", {}]
  ]
  for (const [what, policy] of cases) {
    it.scoped(`does not count where a link led elsewhere when it was given, to what ${what}`, () =>
      Effect.gen(function* () {
        const { fs, make, root } = yield* inWorkspace
        const lead = (target: string) =>
          Effect.orDie(
            Effect.zipRight(fs.remove(`${root}/src/here`, { force: true }), fs.symlink(target, `${root}/src/here`))
          )
        for (const [target, granted] of [
          ["a.ts", "Allowed"],
          ["../secret.txt", "Denied"]
        ] as const) {
          yield* lead("a.ts")
          const { asOne, gate, proposal } = yield* make({
            policy,
            says: TestInteractor.wait(Effect.as(lead(target), "y"))
          })
          const { _tag } = yield* asOne(gate.check(proposal(...write("src/here"))))
          assert.strictEqual(_tag, granted, target)
        }
      }).pipe(Effect.provide(NodeContext.layer))
    )
  }
})

describe("a pattern over a path that denies", () => {
  const paths = ["secret.txt", "src/up/secret.txt", "src/out.txt", "src/again/secret.txt", "./src/../secret.txt"]
  const pattern = "write_file(content=*, path=secret*)"
  const denying: ReadonlyArray<readonly [string, PolicySource, ReadonlyArray<string>]> = [
    ["in a blacklist", { defaultPolicy: "allow", blacklist: { patterns: [pattern] } }, []],
    ["by its words", { defaultPolicy: "allow", blacklist: { arguments: ["secret.txt"] } }, []],
    ["in the guards", { whitelist: { tools: ["write_file"] }, guards: { deny: { patterns: [pattern] } } }, []],
    ["in the session", { defaultPolicy: "allow" }, [pattern]]
  ]
  for (const [where, policy, session] of denying) {
    it.scoped(`${where}, means the text or the place where links lead`, () =>
      Effect.flatten(
        run({ policy }, (kit) =>
          Effect.gen(function* () {
            for (const entry of session) kit.state.deny(entry)
            for (const path of paths) assert.strictEqual(yield* kit.outcome(...write(path)), "deny", path)
            assert.strictEqual(yield* kit.outcome(...write("src/a.ts")), "allow")
            assert.strictEqual(yield* kit.outcome(...write("src/up/other.txt")), "allow")
          })
        )
      ).pipe(Effect.provide(NodeContext.layer))
    )
  }

  it.scoped("means a link by its own name too", () =>
    Effect.flatten(
      run({ policy: { defaultPolicy: "allow", blacklist: { patterns: ["*path=src/up/*"] } } }, (kit) =>
        Effect.map(kit.outcome(...write("src/up/src/a.ts")), (found) => {
          assert.strictEqual(found, "deny")
        })
      )
    ).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("reserves what links lead to as well", () =>
    Effect.flatten(
      run({ policy: { defaultPolicy: "allow", approvals: [{ patterns: [pattern] }] } }, (kit) =>
        Effect.gen(function* () {
          assert.match(yield* kit.said(...write("src/out.txt")), /^ask \(approvals\)/)
          assert.match(yield* kit.said(...write("src/a.ts")), /^allow/)
        })
      )
    ).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("a rule that denies, and writes out another text for a place", () => {
  const real = ["src/a.ts", "alias/a.ts", "src/here", "./alias/../src//a.ts"]
  const cases: ReadonlyArray<readonly [pattern: (root: string) => string, denied: ReadonlyArray<string>]> = [
    [() => "write_file(*path=alias/*)", real],
    [() => "write_file(content=*, path=alias/a.ts)", real],
    [() => "write_file(*path=alias/a*)", ["src/a.ts", "alias/a.ts", "src/here"]],
    [() => "write_file(*path=alias*)", real],
    [() => "write_file(*path=./src/*)", real],
    [() => "write_file(*path=src//deep/../*)", real],
    [(root) => `write_file(*path=${root}/src/*)`, real],
    [(root) => `write_file(*path=${root}/alias/*)`, real],
    [(root) => `write_file(*path=${root}/src/a.ts)`, real],
    [(root) => `write_file(*path=${root}/*)`, [...real, "secret.txt"]],
    [() => "*path=src/out.txt)", ["secret.txt", "src/out.txt", "src/up/secret.txt"]]
  ]
  const lists: ReadonlyArray<readonly [string, (pattern: string) => PolicySource, (pattern: string) => string]> = [
    ["in the blacklist", (pattern) => ({ blacklist: { patterns: [pattern] } }), () => ""],
    ["in the guards", (pattern) => ({ guards: { deny: { patterns: [pattern] } } }), () => ""],
    ["in the session", () => ({}), (pattern) => pattern]
  ]
  for (const [where, policyOf, entryOf] of lists) {
    it.scoped(`means the place: ${where}`, () =>
      Effect.gen(function* () {
        const { make, root } = yield* inWorkspace
        for (const [patternOf, paths] of cases) {
          const pattern = patternOf(root)
          const { outcome, state } = yield* make({ policy: { defaultPolicy: "allow", ...policyOf(pattern) } })
          if (entryOf(pattern) !== "") state.deny(pattern)
          for (const path of paths) assert.strictEqual(yield* outcome(...write(path)), "deny", `${pattern} ${path}`)
          assert.strictEqual(yield* outcome(...write("other.txt")), pattern.includes(`${root}/*`) ? "deny" : "allow")
        }
      }).pipe(Effect.provide(NodeContext.layer))
    )
  }

  it.scoped("means it by its words, and reserves it, too", () =>
    Effect.gen(function* () {
      const { make, root } = yield* inWorkspace
      for (const word of ["alias/a.ts", `${root}/src/a.ts`, "./src/a.ts"]) {
        const { outcome } = yield* make({ policy: { defaultPolicy: "allow", blacklist: { arguments: [word] } } })
        for (const path of ["src/a.ts", "alias/a.ts"]) assert.strictEqual(yield* outcome(...write(path)), "deny", word)
        assert.strictEqual(yield* outcome(...write("src/b.ts")), "allow", word)
      }
      const patterns = ["write_file(*path=alias/*)"]
      const reserved = yield* make({ policy: { defaultPolicy: "allow", approvals: [{ patterns }] } })
      assert.match(yield* reserved.said(...write("src/a.ts")), /^ask \(approvals\)/)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("means it by its words where they have a space in them", () =>
    Effect.gen(function* () {
      const { fs, make, root } = yield* inWorkspace
      yield* fs.makeDirectory(`${root}/my notes`)
      yield* fs.symlink("my notes", `${root}/the link`)
      for (const word of ["the link/a.txt", `${root}/my notes/a.txt`, "./my notes/a.txt"]) {
        const { outcome } = yield* make({ policy: { defaultPolicy: "allow", blacklist: { arguments: [word] } } })
        for (const path of ["my notes/a.txt", "the link/a.txt"])
          assert.strictEqual(yield* outcome(...write(path)), "deny", `${word}: ${path}`)
        assert.strictEqual(yield* outcome(...write("my notes/b.txt")), "allow", word)
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("is asked about when it writes out more paths than can be compared", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const names = ["a", "b", "c", "d", "e", "f"].map((name) => `./alias/${name}`)
      const patterns = [`pack(${names.map((name) => `*files=${name}*`).join("")})`]
      const policy: PolicySource = { defaultPolicy: "allow", blacklist: { patterns } }
      const { outcome } = yield* make({ policy, unguarded: true })
      assert.strictEqual(yield* outcome("pack", { files: ["src/a"] }), "ask")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("means every path of a list", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const policy: PolicySource = { defaultPolicy: "allow", blacklist: { patterns: ['pack(files=[[]"alias/*'] } }
      const { outcome } = yield* make({ policy })
      assert.strictEqual(yield* outcome("pack", { files: ["src/a.ts"] }), "deny")
      assert.strictEqual(yield* outcome("pack", { files: ["secret.txt"] }), "allow")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scoped("does not allow it", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const { outcome } = yield* make({ policy: { whitelist: { patterns: ["write_file(content=*, path=alias/*)"] } } })
      for (const path of ["src/a.ts", "alias/a.ts"]) assert.strictEqual(yield* outcome(...write(path)), "ask", path)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("a path of which nobody can tell where it leads", () => {
  it.scoped("is asked about, where a rule looks at it", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const asked: ReadonlyArray<PolicySource> = [
        { whitelist: { patterns: ["pack(*"] } },
        { whitelist: { arguments: ["loop/x"] } },
        { whitelist: { tools: ["pack"] }, blacklist: { patterns: ["pack(*secret*"] } },
        { defaultPolicy: "allow", guards: { deny: { patterns: ["*secret*"] } } }
      ]
      const call = ["pack", { files: ["loop/x"] }] as const
      for (const policy of asked) {
        const { outcome } = yield* make({ policy, unguarded: true })
        assert.strictEqual(yield* outcome(...call), "ask", JSON.stringify(policy))
      }
      const free = yield* make({ policy: { whitelist: { tools: ["pack"] } }, unguarded: true })
      assert.strictEqual(yield* free.outcome(...call), "allow")
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("a call over paths and links", () => {
  const paths = [
    "src/a.ts",
    "src/out.txt",
    "src/up/secret.txt",
    "alias/a.ts",
    "src/here",
    "src/new.txt",
    "loop/x",
    "../x",
    "src/.git/x"
  ]
  const calls: ReadonlyArray<readonly [string, unknown]> = [
    ...paths.flatMap((path) => [
      write(path),
      ["read_file", { path }] as const,
      ["pack", { files: [path, "src/a.ts"] }] as const
    ]),
    ["label", { path: "src/out.txt" }],
    ["list_files", { path: "alias" }],
    ["edit_file", { path: "src/here", old_text: "none", new_text: "x" }],
    ["run_command", { command: "cat src/out.txt" }],
    ["run_command", { command: "rm -r src/up" }]
  ]
  const entries = [
    srcOnly,
    "write_file(*path=alias/*)",
    "read_file(*path=secret*)",
    "*path=src/up/*",
    "*secret.txt*",
    "pack(*",
    "[rp]*(*src/*",
    "edit_file*",
    "cat *",
    "rm *"
  ]
  const list = fc.record(
    {
      tools: fc.subarray(["write_file", "read_file", "pack", "run_command", "label"], { maxLength: 2 }),
      patterns: fc.subarray(entries, { maxLength: 3 }),
      arguments: fc.subarray(["src/a.ts", "secret.txt", "alias"], { maxLength: 1 })
    },
    { requiredKeys: [] }
  )
  const worlds = fc.record({
    policy: fc.record(
      {
        defaultPolicy: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
        whitelist: fc.tuple(list, fc.boolean()).map(([rules, readonly]) => ({ ...rules, readonly })),
        blacklist: list,
        guards: list.map((deny) => ({ deny })),
        approvals: fc.subarray([{ patterns: ["*path=alias/*"] }, { tools: ["pack"], quorum: 2 }], { maxLength: 1 })
      },
      { requiredKeys: [] }
    ),
    project: fc.subarray(entries, { maxLength: 1 }),
    allowed: fc.subarray(entries, { maxLength: 1 }),
    denied: fc.subarray(entries, { maxLength: 1 }),
    mode: fc.constantFrom<Mode | undefined>(undefined, "ask", "plan", "deny", "allow"),
    suspension: fc.constantFrom<"turn" | "idle" | "all" | undefined>(undefined, "turn", "idle", "all")
  })

  it.scoped("is foreseen as it is decided, under whatever rules, mode and suspension", () =>
    Effect.gen(function* () {
      const { make } = yield* inWorkspace
      const found = new Set<string>()
      for (const { allowed, denied, mode, policy, project, suspension } of fc.sample(worlds, {
        numRuns: Runs.of(120),
        seed: 5
      })) {
        const { outcome, state } = yield* make({ policy, project })
        if (mode !== undefined) state.setMode(mode)
        if (suspension !== undefined) state.suspend(suspension, origin.sessionId)
        for (const entry of allowed) state.allow(entry)
        for (const entry of denied) state.deny(entry)
        for (const call of calls) found.add(yield* outcome(...call))
      }
      assert.deepStrictEqual([...found].toSorted(), ["allow", "ask", "deny"])
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
