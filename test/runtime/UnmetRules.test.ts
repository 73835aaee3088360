/** Rules about tools that there are not are told in the log, and nothing else is. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Guard from "../../src/permission/Guard.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Policy from "../../src/permission/Policy.js"
import * as PolicyFile from "../../src/permission/PolicyFile.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as UnmetRules from "../../src/runtime/UnmetRules.js"
import * as DefaultProfiles from "../../src/subagent/DefaultProfiles.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"

const parameters = { path: Schema.String }
const Read = Tool.make("read_file", { parameters, success: Schema.String }).annotate(ToolTrait.Groups, ["files"])
const Write = Tool.make("write_file", { parameters, success: Schema.String }).annotate(ToolTrait.Groups, ["files"])
const Order = Tool.make("order", { parameters, success: Schema.String })
const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String }).annotate(
  ToolTrait.ShellCommand,
  "command"
)
const toolkit = Toolkit.make(Read, Write, Order)
const done = () => Effect.succeed("done")
const all = { read_file: done, write_file: done, order: done }
const handlers = toolkit.toLayer(all)
const withShell = Toolkit.merge(toolkit, Toolkit.make(Shell))

const registry = await Effect.runPromise(Effect.provide(ToolRegistry.make(toolkit), handlers))
const registryWithShell = await Effect.runPromise(
  Effect.provide(ToolRegistry.make(withShell), withShell.toLayer({ ...all, shell: done }))
)

/** A policy whose names the compiler does not know, as one that was put together from a database. */
const policyOf = (source: PolicySource): Policy.Policy => Policy.make(source)
const told = (source: PolicySource, tools = registry) => UnmetRules.of(tools, { policy: policyOf(source) })

/** What a program with these layers writes to the log. */
const loggedBy = <A, E>(program: Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      lines.push(`${logLevel.label} ${[message].flat().join(" ")}`)
    })
    return Effect.as(Effect.provide(program, Logger.replace(Logger.defaultLogger, logger)), lines)
  })

describe("a rule about a tool that there is not", () => {
  it("is told with its place and what was probably meant, in every list", () => {
    const source: PolicySource = {
      whitelist: { tools: ["ordr"], patterns: ["read_flie(path=*)", "raed_*", "write_file(path=*)"] },
      blacklist: { tools: ["bash"], patterns: ["writ_file*"] },
      delegated: { tools: ["reed_file"] },
      approvals: [{ tools: ["order"] }, { patterns: ["oder(path=*)", "dele*_file(path=*)"], quorum: 1 }],
      guards: { deny: { tools: ["read_*"], patterns: ["delete_*"] } }
    }
    assert.deepStrictEqual(told(source), [
      'policy.guards.deny.tools[0]: names of tools are exact; a star counts behind mcp__SERVER__ only. Use "patterns" for other stars',
      'policy.blacklist.tools[0]: there is no tool "bash". Tools: read_file, write_file, order.',
      'policy.approvals[1].patterns[0]: there is no tool "oder". Did you mean order?',
      'policy.whitelist.tools[0]: there is no tool "ordr". Did you mean order?',
      'policy.delegated.tools[0]: there is no tool "reed_file". Did you mean read_file?',
      'policy.whitelist.patterns[0]: there is no tool "read_flie". Did you mean read_file?',
      'policy.guards.deny.patterns[0]: it fits no tool: "delete_*". Tools: read_file, write_file, order.',
      'policy.blacklist.patterns[0]: it fits no tool: "writ_file*". Did you mean write_file*?',
      'policy.approvals[1].patterns[1]: it fits no tool: "dele*_file(path=*)". Tools: read_file, write_file, order.',
      'policy.whitelist.patterns[1]: it fits no tool: "raed_*". Did you mean read_*?'
    ])
  })

  it("is not told of what may come later, of commands, of arguments and of a policy that names nothing", () => {
    const patterns = [
      "mcp__bank__pay(amount=*)",
      "mcp__*",
      "m*(amount=*)",
      "order?*",
      "read*fiel(path=*)",
      "git status*",
      "$(x)",
      "*(path=*)",
      "order*",
      "?rder",
      "read_file",
      "*path=src/*",
      "(x)",
      "[a-z]*(path=*)"
    ]
    const tools = ["mcp__bank__*", "mcp__bank__pay", "order"]
    const lists = { tools, patterns }
    assert.deepStrictEqual(
      told({
        whitelist: lists,
        blacklist: { tools: [], patterns },
        approvals: [lists],
        guards: { deny: { patterns } }
      }),
      []
    )
    // A word may be an argument that is denied, and a program where there are commands.
    assert.deepStrictEqual(told({ blacklist: { patterns: ["secret*", "prod"] } }), [])
    assert.deepStrictEqual(told({ whitelist: { patterns: ["raed_*", "make*"] } }, registryWithShell), [])
    assert.lengthOf(told({ whitelist: { patterns: ["raed_*(path=*)"] } }, registryWithShell), 1)
    assert.deepStrictEqual(UnmetRules.of(registry, { policy: Policy.defaults }), [])
  })

  it("is told of guards, profiles and what subagents may have, not of profiles that we ship", () => {
    const Pya = Tool.make("pya", { parameters })
    const guard = (tool: typeof Pya | typeof Order) => Guard.forTool(tool, () => Effect.void)
    const profile = SubagentProfile.make({
      name: "reader",
      description: "reads",
      plugins: ["file", "order", "mcp__bank__pay"],
      pluginConfigs: { oder: {} }
    })
    assert.deepStrictEqual(
      UnmetRules.of(registry, {
        guards: [guard(Order), () => Effect.void, guard(Pya)],
        profiles: [profile, ...DefaultProfiles.all, { ...DefaultProfiles.explore, maxTurns: 3 }],
        inline: ["files", "grpe"]
      }),
      [
        'guards[2]: there is no tool "pya". Tools: read_file, write_file, order.',
        'profile reader: plugins[0]: there is no tool or group "file". Did you mean files?',
        'profile reader: pluginConfigs: there is no tool or group "oder". Did you mean order?',
        'subagents.inline.plugins[1]: there is no tool or group "grpe". Tools: read_file, files, write_file, order.'
      ]
    )
  })

  it("that a file denies is told, and what it allows is not: it may be for another program", () => {
    const lists = { tools: ["bash"], patterns: ["raed_*"] }
    const file = (content: PolicySource) => Either.getOrThrow(PolicyFile.decode(JSON.stringify(content), "p.json"))
    const policy = Policy.merge(file({ whitelist: lists }), file({ guards: { deny: lists } }), { trusted: true })
    assert.deepStrictEqual(UnmetRules.of(registry, { policy }), [
      'p.json: $.guards.deny.tools[0]: there is no tool "bash". Tools: read_file, write_file, order.',
      'p.json: $.guards.deny.patterns[0]: it fits no tool: "raed_*". Did you mean read_*?'
    ])
  })

  it("is told of patterns that would allow everything, and allow nothing", () => {
    assert.deepStrictEqual(told({ whitelist: { patterns: ["*"] } }), [
      'policy.whitelist.patterns[0]: A pattern of wildcards would allow everything. If you mean that, write "defaultPolicy": "allow".'
    ])
  })

  it("allows no call of any tool, wherever that is told", () => {
    const piece = FastCheck.constantFrom("read", "wri", "_", "file", "order", "*", "?", "-", "(path=*)", "(", "mcp__")
    FastCheck.assert(
      FastCheck.property(FastCheck.array(piece, { minLength: 1, maxLength: 5 }), FastCheck.string(), (pieces, path) => {
        const text = pieces.join("")
        const unmet = told({ whitelist: { patterns: [text] } })
        if (unmet.length === 0) return
        const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [text] })
        const call = (tool: string) => PermissionRule.subject({ tool, params: { path } })
        const allowed = registry.entries.filter(({ name }) => PermissionRule.allows(rules, call(name)) !== undefined)
        assert.deepStrictEqual(allowed, [], text)
      })
    )
  })
})

describe("a remembered rule that can match no call any more", () => {
  it("of a session is told, whether it allows or denies", () => {
    const remembered = {
      allow: ["order", "order(path=a)", "order(pth=a)", "ordr", "mcp__bank__pay"],
      deny: ["read_file(file=*)", "read_file(path=*)", "git push*"]
    }
    assert.deepStrictEqual(UnmetRules.of(registry, { remembered }), [
      'the session\'s allow "order(pth=a)": order has no parameter "pth". Did you mean path?',
      'the session\'s allow "ordr": There is no tool ordr (did you mean order?). There are: read_file, write_file, order.',
      'the session\'s deny "read_file(file=*)": read_file has no parameter "file". Parameters: path.'
    ])
  })

  it("of a project is told for tools that there are: another program may have others", () => {
    const project = { entries: () => new Set(["order(pth=a)", "order(path=a)", "ordr"]), revoke: () => Effect.void }
    const policy = { ...policyOf({}), project }
    assert.deepStrictEqual(UnmetRules.of(registry, { policy }), [
      'the project\'s allow "order(pth=a)": order has no parameter "pth". Did you mean path?'
    ])
  })

  it.effect("is told by the process that resumes the session", () =>
    Effect.gen(function* () {
      const view = yield* SessionStore.makeMemory
      const process = (pid: number) => view({ pid, host: "here", isAlive: () => false })
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* TestAgent.start({ persistence: yield* Persistence.begin(process(1)) })
          yield* agent.run("go")
          yield* agent.permissions.allow("order(path=a)")
          return agent.id
        })
      ).pipe(Effect.provide(TestAgent.layer({ toolkit, script: [{ text: "ok" }] })), Effect.provide(handlers))
      const Changed = Toolkit.make(Tool.make("order", { parameters: { file: Schema.String }, success: Schema.String }))
      const lines = yield* loggedBy(
        Effect.scoped(
          Effect.flatMap(Persistence.resume(process(2), first), (persistence) => TestAgent.start({ persistence }))
        ).pipe(
          Effect.provide(TestAgent.layer({ toolkit: Changed, script: [] })),
          Effect.provide(Changed.toLayer({ order: done }))
        )
      )
      assert.deepStrictEqual(lines, [
        "WARN Rules of agent main do not do what they seem to:\n" +
          '  the session\'s allow "order(path=a)": order has no parameter "path". Parameters: file.'
      ])
    })
  )
})

describe("the log", () => {
  it.effect("has it once: when the runtime is made, and when an agent begins with rules of its own", () =>
    Effect.gen(function* () {
      const layer = TestAgent.layer({
        toolkit,
        script: [],
        policy: policyOf({ whitelist: { tools: ["ordr"] } })
      }).pipe(Layer.provide(handlers))
      const own = policyOf({ whitelist: { patterns: ["raed_*"] } })
      const lines = yield* loggedBy(
        Effect.scoped(
          Effect.provide(
            Effect.gen(function* () {
              yield* TestAgent.start()
              yield* TestAgent.start({ policy: own, name: "clerk" })
              yield* TestAgent.start({ policy: policyOf({ whitelist: { patterns: ["raed_*"] } }) })
            }),
            layer
          )
        )
      )
      assert.deepStrictEqual(lines, [
        "WARN Rules of this runtime do not do what they seem to:\n" +
          '  policy.whitelist.tools[0]: there is no tool "ordr". Did you mean order?',
        "WARN Rules of agent clerk do not do what they seem to:\n" +
          '  policy.whitelist.patterns[0]: it fits no tool: "raed_*". Did you mean read_*?'
      ])
    })
  )

  it.effect("takes none of the profiles away that can be looked at once", () =>
    Effect.gen(function* () {
      const profiles = new Map(DefaultProfiles.all.map((profile) => [profile.name, profile]))
      const layer = AgentRuntime.layer({ toolkit, subagents: { profiles: profiles.values() } })
      const runtime = yield* Effect.provide(AgentRuntime.AgentRuntime, layer)
      assert.deepStrictEqual([...runtime.subagents.profiles.keys()], [...profiles.keys()])
    }).pipe(Effect.provide([handlers, ScriptedModel.layer({ agents: {} }), NodeContext.layer]))
  )

  it.effect("has nothing where every rule has its tool", () =>
    Effect.gen(function* () {
      const policy = Policy.make({ whitelist: { tools: ["order"] }, blacklist: { patterns: ["write_*"] } })
      const layer = Layer.provide(TestAgent.layer({ toolkit, script: [], policy }), handlers)
      assert.deepStrictEqual(yield* loggedBy(Effect.scoped(Effect.provide(TestAgent.start(), layer))), [])
    })
  )
})
