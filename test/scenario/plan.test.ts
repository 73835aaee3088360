/** Plan mode: what does not get past it, how it ends, and what it outlives. Beside it the other modes. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as Planning from "../../src/builtin/Planning.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as History from "../../src/conversation/History.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Guard from "../../src/permission/Guard.js"
import type { Mode } from "../../src/permission/PermissionState.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Stage from "../../src/session/Stage.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import type * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"

const named = { parameters: { name: Schema.String }, success: Schema.String }
const Change = Tool.make("change", named)
const Look = Tool.make("look", named).annotate(Tool.Readonly, true).annotate(ToolTrait.AutoApproved, true)
const Shell = Tool.make("shell", {
  parameters: { command: Schema.String, cwd: Schema.optional(Schema.String) },
  success: Schema.String
})
  .annotate(ToolTrait.ShellCommand, "command")
  .annotate(ToolTrait.Paths, ["cwd"])
/** Each says two things of itself. */
const Liar = Tool.make("liar", named).annotate(ToolTrait.Kind, "read").annotate(Tool.Readonly, false)
const Breaker = Tool.make("breaker", named).annotate(Tool.Readonly, true).annotate(Tool.Destructive, true)
const Editor = Tool.make("editor", named).annotate(Tool.Readonly, true).annotate(ToolTrait.Kind, "edit")
const Fetcher = Tool.make("fetcher", named).annotate(Tool.Readonly, true).annotate(ToolTrait.Kind, "fetch")
const addressed = { parameters: { url: Schema.String }, success: Schema.String }
/** It reads a page. */
const Page = Tool.make("page", addressed).annotate(ToolTrait.WebAddress, "url").annotate(Tool.Destructive, false)
/** These may send something: one says nothing of that, the others say it. */
const Poster = Tool.make("poster", addressed).annotate(ToolTrait.WebAddress, "url")
const Writer = Tool.make("writer", addressed)
  .annotate(ToolTrait.WebAddress, "url")
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Readonly, false)

const own = Toolkit.make(Change, Look, Shell, Liar, Breaker, Editor, Fetcher, Page, Poster, Writer)
const toolkit = Toolkit.merge(own, Planning.toolkit, Delegate.toolkit, Clarification.toolkit)

type Script = ScriptedModel.Script["agents"]

const call = (name: string, params: unknown = { name: "x" }): ScriptedModel.ToolUse => ({ name, params })
const step = (...tools: ReadonlyArray<ScriptedModel.ToolUse>): ScriptedModel.Step => ({ tools })
const propose = step(call("propose_plan", { plan: "# Goal\n\n1. change **it**" }))
const delegate = (profile: string): ScriptedModel.ToolUse => call("delegate", { task: "go", profile })
const everything = { tools: ["change", "look", "shell", "propose_plan", "delegate", "todo_write"] } as const

interface Played extends TestAgent.TestAgent {
  readonly ran: ReadonlyArray<string>
}

const start = (
  script: Script,
  options: {
    readonly person?: TestInteractor.Script
    readonly agent?: Agent.Options
    readonly runtime?: Partial<Parameters<typeof TestAgent.layer<typeof toolkit.tools>>[0]>
    readonly interactors?: ReadonlyArray<Interactor.Service>
  } = {}
) => {
  const ran: Array<string> = []
  const run = (tool: string) => (params: object) =>
    Effect.sync(() => {
      ran.push(`${tool} ${Object.values(params)[0]}`)
      return "done"
    })
  const handlers = Layer.mergeAll(
    own.toLayer({
      change: run("change"),
      look: run("look"),
      shell: run("shell"),
      liar: run("liar"),
      breaker: run("breaker"),
      editor: run("editor"),
      fetcher: run("fetcher"),
      page: run("page"),
      poster: run("poster"),
      writer: run("writer")
    }),
    Planning.layer,
    Delegate.layer,
    Clarification.layer
  )
  const layer = TestAgent.layer({
    toolkit,
    script: { agents: script },
    person: options.person ?? (() => "y"),
    subagents: { profiles: [profile("helper"), profile("free", { autoApproved: true })] },
    ...options.runtime
  }).pipe(Layer.provide(handlers))
  return Effect.orDie(
    Effect.map(
      Effect.flatMap(Layer.build(layer), (context) =>
        Effect.provide(TestAgent.start({ mode: "plan", ...options.agent }), context)
      ),
      (played): Played => ({ ...played, ran })
    )
  )
}

const profile = (name: string, more: Partial<SubagentProfile.SubagentProfile> = {}) =>
  SubagentProfile.make({ name, description: name, ...more })

const resolved = (events: ReadonlyArray<AgentEvent>, tool: string) =>
  events.flatMap((event) => (event._tag === "PermissionResolved" && event.tool === tool ? [event] : []))

const results = (agent: Agent.Agent) =>
  agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.map(({ result }) => String(result)) : []
  )

const modeOf = (agent: Agent.Agent) => Effect.map(agent.permissions.status, ({ mode }) => mode)

describe("nothing is changed in plan mode, also with", () => {
  /** One way in which a call is allowed elsewhere. */
  interface Way {
    readonly script?: Script
    readonly options?: Parameters<typeof start>[1]
    readonly before?: (agent: Agent.Agent) => Effect.Effect<unknown, unknown>
    readonly run?: (agent: Agent.Agent) => Effect.Effect<unknown, unknown>
  }
  const changes: Script = { main: [step(call("change")), { text: "ok" }] }
  const byChild = (name: string): Script => ({
    main: [step(delegate(name)), { text: "ok" }],
    [name]: [step(call("change")), { text: "ok" }]
  })
  const allowed = Policy.make({ whitelist: everything })
  const ways: Readonly<Record<string, Way>> = {
    "a person who says yes to everything": {},
    "the policy's whitelist": { options: { runtime: { policy: allowed } } },
    "the policy's default": { options: { runtime: { policy: Policy.make({ defaultPolicy: "allow" }) } } },
    "tools that ask nobody": {
      options: { runtime: { policy: Policy.make({ whitelist: { ...everything, readonly: true, sandboxed: true } }) } }
    },
    "the session's list": { before: (agent) => agent.permissions.allow("change") },
    "a suspension of the turn": { before: (agent) => agent.permissions.suspend("turn") },
    "a suspension until idle": { before: (agent) => agent.permissions.suspend("idle") },
    "a suspension of everything": { before: (agent) => agent.permissions.suspend("all") },
    "the mode allow before": {
      options: { agent: { mode: "allow" } },
      before: (agent) => agent.permissions.setMode("plan")
    },
    "--yolo": { options: { interactors: [HaltChannel.yolo] } },
    "what is delegated to models": { options: { runtime: { policy: Policy.make({ delegated: everything }) } } },
    "an approval of two people": {
      options: { runtime: { policy: Policy.make({ approvals: [{ tools: ["change"], quorum: 1 }] }) } }
    },
    "a guard's own question": {
      options: { runtime: { guards: [() => Effect.succeed(Guard.ask({ reason: "sure?", coveredBy: "all" }))] } }
    },
    "a stage that lists the tool": {
      run: (agent) =>
        Stage.run(
          agent,
          Stage.make({
            name: "build",
            allowedTools: ["change"],
            act: "go",
            assert: () => Effect.succeed(Stage.ok("done")),
            retryPolicy: { maxAttempts: 1 }
          })
        )
    },
    "a stage that grants it": {
      run: (agent) =>
        Stage.run(
          agent,
          Stage.make({
            name: "build",
            allowedTools: [],
            act: "go",
            assert: () => Effect.succeed(Stage.ok("done")),
            retryPolicy: { maxAttempts: 1 }
          })
        )
    },
    "a subagent": { script: byChild("helper") },
    "a subagent whose tools are allowed for its life": { script: byChild("free") },
    "an envelope that was approved": {
      script: {
        main: [step(call("delegate", { task: "go", plugins: ["change"] })), { text: "ok" }],
        subagent: [step(call("change")), { text: "ok" }],
        inline: [step(call("change")), { text: "ok" }]
      },
      options: { runtime: { subagents: { inline: { allowed: true, plugins: ["change"] } } } }
    },
    "a parent that decides for its child": {
      script: byChild("helper"),
      options: {
        runtime: {
          subagents: {
            profiles: [profile("helper")],
            mediation: Mediator.decide(() => Option.some({ decision: "allow", scope: "once" }))
          }
        }
      }
    }
  }
  for (const [name, { before, options, run, script }] of Object.entries(ways)) {
    it.scoped(name, () =>
      Effect.gen(function* () {
        const { interactors, ...rest } = options ?? {}
        const { agent, events, ran } = yield* start(script ?? changes, rest)
        for (const interactor of interactors ?? []) yield* agent.broker.attach(interactor)
        if (before !== undefined) yield* Effect.orDie(before(agent))
        yield* Effect.orDie(run === undefined ? agent.run("go") : run(agent))
        assert.deepStrictEqual(ran, [])
        const decided = resolved(yield* events, "change")
        assert.isAtLeast(decided.length, 1)
        for (const one of decided) {
          assert.deepInclude(one, { granted: false, method: "mode" })
          assert.match(one.reason, /plan mode: change is not run.*propose_plan/)
          assert.notProperty(one, "requestId")
        }
        assert.strictEqual(yield* modeOf(agent), "plan")
      })
    )
  }

  it.scoped("tools that contradict themselves, and commands that may write", () =>
    Effect.gen(function* () {
      const commands = [
        "touch a",
        "ls > a",
        "ls; rm a",
        "$(rm a)",
        "git commit -m x",
        "sort -o a b",
        "find . -delete",
        "npm test"
      ]
      const { agent, ran } = yield* start(
        {
          main: [
            step(...["liar", "breaker", "editor", "fetcher"].map((name) => call(name))),
            step(...["poster", "writer"].map((name) => call(name, { url: "https://example.com/" }))),
            step(...commands.map((command) => call("shell", { command }))),
            { text: "ok" }
          ]
        },
        { runtime: { policy: Policy.make({ defaultPolicy: "allow" }) } }
      )
      yield* agent.run("go")
      assert.deepStrictEqual(ran, [])
      for (const result of results(agent)) assert.include(result, "plan mode")
    })
  )
})

describe("what runs in plan mode", () => {
  it.scoped("a page of the web is read as ever: by the rules, else a person is asked", () =>
    Effect.gen(function* () {
      const { agent, person, ran } = yield* start(
        {
          main: [
            step(...["https://a.com/x", "https://b.com/x", "https://c.com/x"].map((url) => call("page", { url }))),
            { text: "ok" }
          ]
        },
        {
          person: () => "y",
          runtime: {
            policy: Policy.make({
              whitelist: { patterns: ["page(url=https://a.com/*)"] },
              blacklist: { patterns: ["page(url=https://c.com/*)"] }
            })
          }
        }
      )
      yield* agent.run("go")
      assert.deepStrictEqual(ran, ["page https://a.com/x", "page https://b.com/x"])
      assert.strictEqual((yield* person.shown).length, 1)
      assert.include(results(agent)[2], "blacklist")
    })
  )

  it.scoped("is what reads, asks and plans, by the rules that hold then", () =>
    Effect.gen(function* () {
      const { agent, person, ran } = yield* start({
        main: [
          step(call("look"), call("shell", { command: "git log --oneline" }), call("shell", { command: "ls | wc -l" })),
          step(call("todo_write", { items: [{ content: "look", status: "completed" }] })),
          step(call("ask_user", { prompt: "which?" })),
          step(delegate("helper")),
          { text: "ok" }
        ],
        helper: [step(call("look", { name: "child" })), { text: "found" }]
      })
      yield* agent.run("go")
      assert.deepStrictEqual(ran, ["look x", "shell git log --oneline", "shell ls | wc -l", "look child"])
      assert.deepStrictEqual(
        (yield* person.shown).map(({ interaction }) => interaction._tag),
        ["Approve", "Approve", "Ask", "Approve"]
      )
      assert.lengthOf(yield* agent.todos(), 1)
    })
  )

  it.scoped("is told to the model with the words that come next, once, and when it is over", () =>
    Effect.gen(function* () {
      const { agent } = yield* start({ main: [{ text: "1" }, { text: "2" }, { text: "3" }, { text: "4" }] })
      const notes = () =>
        agent.history.messages
          .map(History.textOf)
          .filter((text) => text.startsWith("[Plan mode"))
          .map((text) => text.slice(0, 20))
      yield* agent.run("first")
      yield* agent.run("second")
      assert.deepStrictEqual(notes(), ["[Plan mode: nothing "])
      yield* agent.permissions.setMode("ask")
      yield* agent.permissions.setMode("plan")
      yield* agent.permissions.setMode("ask")
      yield* agent.run("third")
      assert.deepStrictEqual(notes(), ["[Plan mode: nothing ", "[Plan mode is over. "])
      yield* agent.run("fourth")
      assert.lengthOf(notes(), 2)
    })
  )
})

describe("plan mode ends", () => {
  it.scoped("when a person approves the plan, which they see whole, and the work begins", () =>
    Effect.gen(function* () {
      const { agent, events, person, ran } = yield* start({ main: [propose, step(call("change")), { text: "ok" }] })
      yield* agent.run("go")
      const [request] = yield* person.shown
      assert.deepInclude(request?.interaction, { _tag: "Approve", tool: "propose_plan", onceOnly: true })
      const display = request?.interaction._tag === "Approve" ? request.interaction.display : undefined
      assert.deepInclude(display, { details: "# Goal\n\n1. change **it**", format: "markdown" })
      assert.deepStrictEqual(ran, ["change x"])
      assert.strictEqual(yield* modeOf(agent), "ask")
      assert.include(results(agent)[0], "Begin with the plan now.")
      const told = (yield* events).flatMap((event) =>
        event._tag === "PermissionStatusChanged" ? [[event.mode, event.before]] : []
      )
      assert.deepStrictEqual(told, [
        ["plan", undefined],
        ["ask", "plan"]
      ])
      assert.strictEqual(resolved(yield* events, "propose_plan")[0]?.method, "user_approved")
    })
  )

  const modes: ReadonlyArray<readonly [before: Mode, after: Mode]> = [
    ["ask", "ask"],
    ["deny", "deny"],
    ["allow", "ask"]
  ]
  for (const [before, after] of modes) {
    it.scoped(`in the mode ${after}, where it was ${before} before`, () =>
      Effect.gen(function* () {
        const { agent } = yield* start({ main: [propose, { text: "ok" }] }, { agent: { mode: before } })
        yield* agent.permissions.setMode("plan")
        yield* agent.run("go")
        assert.strictEqual(yield* modeOf(agent), after)
      })
    )
  }

  it.scoped("not when they comment: the words go to the model, and it may propose again", () =>
    Effect.gen(function* () {
      const { agent, ran } = yield* start(
        { main: [propose, step(call("change")), propose, step(call("change")), { text: "ok" }] },
        { person: ["c: tests first", "y", "y"] }
      )
      yield* agent.run("go")
      assert.include(results(agent)[0], "User comment: tests first")
      assert.include(results(agent)[1], "plan mode")
      assert.deepStrictEqual(ran, ["change x"])
    })
  )

  it.scoped("by none of what allows other calls: only a person's own yes counts, each time", () =>
    Effect.gen(function* () {
      const unasked = [
        (agent: Agent.Agent) => agent.permissions.allow("propose_plan"),
        (agent: Agent.Agent) => agent.permissions.suspend("turn"),
        (agent: Agent.Agent) => agent.permissions.suspend("all")
      ]
      for (const allow of unasked) {
        const { agent, person } = yield* start(
          { main: [propose, { text: "ok" }] },
          { person: ["n"], runtime: { policy: Policy.make({ whitelist: everything, delegated: everything }) } }
        )
        yield* Effect.orDie(allow(agent))
        yield* agent.run("go")
        assert.lengthOf(yield* person.shown, 1)
        assert.strictEqual(yield* modeOf(agent), "plan")
      }
    })
  )

  it.scoped("neither by --yolo, nor by a time that runs out, nor by a subagent", () =>
    Effect.gen(function* () {
      const yolo = yield* start({ main: [propose, { text: "ok" }] }, { person: () => Effect.never as never })
      yield* yolo.agent.broker.attach(HaltChannel.yolo)
      yield* yolo.agent.run("go")
      assert.include(results(yolo.agent)[0], "only a person approves a plan")
      assert.strictEqual(yield* modeOf(yolo.agent), "plan")

      const child = yield* start({
        main: [step(delegate("helper")), { text: "ok" }],
        helper: [propose, { text: "ok" }]
      })
      yield* child.agent.run("go")
      assert.deepStrictEqual(
        (yield* child.person.shown).flatMap(({ interaction }) =>
          interaction._tag === "Approve" ? [interaction.tool] : []
        ),
        ["delegate"]
      )
      assert.strictEqual(yield* modeOf(child.agent), "plan")
    })
  )

  it.scoped("in no other mode: there is nothing to end, and nobody is asked", () =>
    Effect.gen(function* () {
      for (const mode of ["ask", "deny", "allow"] as const) {
        const { agent, person } = yield* start({ main: [propose, { text: "ok" }] }, { agent: { mode } })
        yield* agent.run("go")
        assert.deepStrictEqual(yield* person.shown, [])
        assert.include(results(agent)[0], "plan mode is off")
      }
    })
  )

  it.scoped("for calls that were proposed with the plan only if they come after it", () =>
    Effect.gen(function* () {
      const both = step(call("change", { name: "before" }), ...(propose.tools ?? []))
      const { agent, ran } = yield* start({ main: [both, { text: "ok" }] })
      yield* agent.run("go")
      assert.deepStrictEqual(ran, [])
    })
  )

  it.scoped("not for plans that say nothing, or too much: nobody is asked", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* start({
        main: [
          step(call("propose_plan", { plan: " \n" }), call("propose_plan", { plan: "x".repeat(20_001) })),
          { text: "ok" }
        ]
      })
      yield* agent.run("go")
      assert.deepStrictEqual(yield* person.shown, [])
      assert.match(results(agent).join(), /The plan says nothing.*20001 characters/)
    })
  )
})

describe("in the mode deny", () => {
  it.scoped("nothing is asked, by rules, guards, approvals, stages or doubts; what is allowed runs", () =>
    Effect.gen(function* () {
      const { agent, events, person, ran } = yield* start(
        {
          main: [
            step(call("change"), call("look"), call("liar"), call("breaker"), call("shell", { command: "ls" })),
            { text: "ok" }
          ]
        },
        {
          agent: { mode: "deny" },
          runtime: {
            policy: Policy.make({
              whitelist: { tools: ["look", "breaker"], patterns: ["ls"] },
              approvals: [{ tools: ["liar"], quorum: 1 }]
            }),
            guards: [({ tool }) => (tool === "breaker" ? Effect.succeed(Guard.ask({ reason: "sure?" })) : Effect.void)]
          }
        }
      )
      yield* agent.run("go")
      assert.deepStrictEqual(yield* person.shown, [])
      assert.deepStrictEqual([...ran].sort(), ["look x", "shell ls"])
      const decided = yield* events
      for (const tool of ["change", "liar", "breaker"])
        assert.deepInclude(resolved(decided, tool)[0], { granted: false, method: "mode" })
    })
  )
})

describe("a mode", () => {
  const store = Effect.map(SessionStore.makeMemory, (open) => open({ pid: 1, host: "here", isAlive: () => true }))

  it.scoped("is recorded with who set it, and told", () =>
    Effect.gen(function* () {
      const { memory, trail } = yield* AuditTrail.makeMemory()
      const { agent } = yield* start({ main: [] }, { agent: { mode: "ask" } }).pipe(
        Effect.provideService(AuditTrail.AuditTrail, trail)
      )
      yield* agent.permissions.setMode("plan", { by: "ada" })
      yield* agent.permissions("default allow", { by: "grace" })
      assert.deepStrictEqual(
        (yield* memory.decisions).map(({ by, class: of, kind, reason }) => [of, kind, reason, by]),
        [
          ["session", "mode", "plan, ask before", "ada"],
          ["session", "mode", "allow, plan before", "grace"]
        ]
      )
    })
  )

  it.scoped("stays as it is where it cannot be recorded", () =>
    Effect.gen(function* () {
      const trail: AuditTrail.Service = {
        record: () => new AuditTrail.AuditUnwritable({ directory: "audit", reason: "the disk is full" }),
        release: () => Effect.void
      }
      const { agent } = yield* start({ main: [] }, { agent: { mode: "ask" } }).pipe(
        Effect.provideService(AuditTrail.AuditTrail, trail)
      )
      assert.strictEqual((yield* Effect.flip(agent.permissions.setMode("allow")))._tag, "AuditUnwritable")
      assert.strictEqual(yield* modeOf(agent), "ask")
    })
  )

  const kept: ReadonlyArray<readonly [mode: Mode, resumed: Mode, forked: Mode]> = [
    ["plan", "plan", "plan"],
    ["deny", "deny", "deny"],
    ["allow", "ask", "ask"],
    ["ask", "ask", "ask"]
  ]
  for (const [mode, resumed, forked] of kept) {
    for (const when of ["at the start", "before the first words", "later"] as const) {
      it.scoped(`${mode} that was set ${when} is ${resumed} when the session goes on, and ${forked} in a fork`, () =>
        Effect.gen(function* () {
          const kept = yield* store
          const script: Script = { main: [{ text: "1" }, { text: "2" }] }
          const id = yield* Effect.scoped(
            Effect.gen(function* () {
              const persistence = yield* Persistence.begin(kept)
              const { agent } = yield* start(script, {
                agent: { persistence, mode: when === "at the start" ? mode : "ask" }
              })
              if (when === "before the first words") yield* agent.permissions.setMode(mode)
              yield* agent.run("go")
              if (when === "later") yield* agent.permissions.setMode(mode)
              return agent.id
            })
          )
          const fork = yield* start(script, {
            agent: { mode: undefined, persistence: yield* Persistence.fork(kept, id, { at: 1 }) }
          })
          assert.strictEqual(yield* modeOf(fork.agent), forked)
          const other = yield* start(script, {
            agent: { mode: undefined, persistence: yield* Persistence.forkAgent(fork.agent) }
          })
          assert.strictEqual(yield* modeOf(other.agent), forked)
          const { agent, events } = yield* start(script, {
            agent: { mode: undefined, persistence: yield* Persistence.resume(kept, id) }
          })
          assert.strictEqual(yield* modeOf(agent), resumed)
          // What is not as it was is said.
          const told = (yield* events).flatMap((event) =>
            event._tag === "PermissionStatusChanged" ? [[event.mode, event.before]] : []
          )
          if (mode === "allow") assert.deepStrictEqual(told, [["ask", "allow"]])
        })
      )
    }
  }

  it.scoped("that nobody spoke in leaves no trace", () =>
    Effect.gen(function* () {
      const kept = yield* store
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* start({ main: [] }, { agent: { persistence: yield* Persistence.begin(kept) } })
          yield* agent.permissions.setMode("deny")
        })
      )
      assert.deepStrictEqual((yield* kept.list).length, 0)
    })
  )

  it.scoped("is another one where the start says so", () =>
    Effect.gen(function* () {
      const kept = yield* store
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const { agent } = yield* start(
            { main: [{ text: "1" }] },
            { agent: { persistence: yield* Persistence.begin(kept) } }
          )
          yield* agent.run("go")
          return agent.id
        })
      )
      const { agent } = yield* start(
        { main: [] },
        { agent: { mode: "allow", persistence: yield* Persistence.resume(kept, id) } }
      )
      assert.strictEqual(yield* modeOf(agent), "allow")
    })
  )

  it.scoped(
    "is any, after any changes: while it is plan nothing runs that changes, and allow is never come to by itself",
    () =>
      Effect.gen(function* () {
        const changes = FastCheck.sample(
          FastCheck.array(
            FastCheck.constantFrom(
              ...(["ask", "plan", "deny", "allow", "clear", "suspend", "allow-list", "propose", "try"] as const)
            ),
            { minLength: 4, maxLength: 14 }
          ),
          25
        )
        for (const wanted of changes) {
          const tries = wanted.filter((one) => one === "try" || one === "propose")
          const main = tries.flatMap((one) => [one === "try" ? step(call("change")) : propose, { text: "ok" }])
          const { agent, ran } = yield* start({ main }, { agent: { mode: "plan" } })
          let saysAllow = false
          for (const one of wanted) {
            const before = ran.length
            const planning = (yield* modeOf(agent)) === "plan"
            switch (one) {
              case "try":
                yield* agent.run("go")
                if (planning) assert.lengthOf(ran, before)
                break
              case "propose":
                yield* agent.run("go")
                if (planning) saysAllow = false
                break
              case "clear":
                yield* agent.permissions.clear
                if (planning) assert.strictEqual(yield* modeOf(agent), "plan")
                break
              case "suspend":
                yield* agent.permissions.suspend("all")
                break
              case "allow-list":
                yield* Effect.orDie(agent.permissions.allow("change"))
                break
              default:
                yield* agent.permissions.setMode(one)
                saysAllow = one === "allow"
            }
            if ((yield* modeOf(agent)) === "allow") assert.isTrue(saysAllow)
          }
        }
      })
  )
})
