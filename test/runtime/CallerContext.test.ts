/** The world of a caller, as the handlers of its turns see it. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { allowAll, noFiles } from "../kit/agents.js"
import * as Family from "../kit/Family.js"
import * as Kit from "../kit/session.js"

const Ref = FiberRef.unsafeMake("root")

class Reference extends Context.Reference<Reference>()("test/CallerContext/Reference", {
  defaultValue: () => "default"
}) {}

class Service extends Context.Tag("test/CallerContext/Service")<Service, string>() {}

type Around = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
type Names = string

/** One kind of value of a world: how it is set, and what a handler sees of it. */
interface Kind {
  readonly set: (value: Names) => Around
  readonly seen: Effect.Effect<string>
  readonly unset: string
}

const named = (span: Tracer.AnySpan) => (span._tag === "Span" ? span.name : span.spanId)
const kinds: { readonly [name: string]: Kind } = {
  "a FiberRef": { set: (value) => Effect.locally(Ref, value), seen: FiberRef.get(Ref), unset: "root" },
  "a Context.Reference": { set: (value) => Effect.provideService(Reference, value), seen: Reference, unset: "default" },
  "a service": {
    set: (value) => (self) => Effect.provideService(self, Service, value) as typeof self,
    seen: Effect.map(Effect.serviceOption(Service), (it) => Option.getOrElse(it, () => "none")),
    unset: "none"
  },
  "the clock": {
    set: (value) => Effect.withClock(Object.assign(Clock.make(), { name: value })),
    seen: Effect.clockWith((clock) => Effect.succeed("name" in clock ? String(clock.name) : "own")),
    unset: "own"
  },
  "the random numbers": {
    set: (value) => Effect.withRandom(Random.fixed([{ toString: () => value }])),
    seen: Effect.randomWith((random) => Effect.succeed("values" in random ? String(random.values) : "own")),
    unset: "own"
  },
  "the configuration": {
    set: (value) => Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["WHERE", value]]))),
    seen: Effect.orDie(Config.withDefault(Config.string("WHERE"), "none")),
    unset: "none"
  },
  "an annotation of logs": {
    set: (value) => Effect.annotateLogs("where", value),
    seen: Effect.map(Effect.logAnnotations, (all) =>
      [...all].map(([key, value]) => (key === "where" ? String(value) : "")).join("")
    ),
    unset: ""
  },
  "the parent span": {
    set: (value) => Effect.withSpan(value),
    seen: Effect.map(Effect.serviceOption(Tracer.ParentSpan), (it) =>
      Option.match(it, { onNone: () => "", onSome: named })
    ),
    unset: ""
  }
}

/** An agent whose `work` says what it sees; each step of the model is one call. */
const looking = (seen: Effect.Effect<unknown>, turns = 1) => ({
  model: Array.from({ length: turns }, () => [
    { tools: [{ name: "work", params: { name: "x" } }] },
    { text: "." }
  ]).flat(),
  worker: () => seen
})

describe("a handler sees", () => {
  for (const [name, { seen, set, unset }] of Object.entries(kinds)) {
    // In real time: the clock of tests would be the own one of every caller.
    it.scopedLive.each([
      ["around nothing", false, false, unset],
      ["around the start", true, false, "start"],
      ["around the run", false, true, "run"],
      ["around both: the run's", true, true, "run"]
    ] as const)(`${name} %s`, ([, atStart, atRun, expected]) =>
      Effect.gen(function* () {
        const starting = Kit.start(looking(seen, 2))
        const kit = yield* atStart ? set("start")(starting) : starting
        const running = kit.agent.run("go")
        yield* atRun ? set("run")(running) : running
        assert.deepStrictEqual(kit.results(), [expected])
        // The next one has nothing of it.
        yield* kit.agent.run("again")
        assert.deepStrictEqual(kit.results(), [atStart ? "start" : unset])
      })
    )
  }

  it.scoped("the loggers of its caller, and the annotations of both", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ annotations, message }) => {
        lines.push(
          `${String(message)} ${[...annotations]
            .map(([key, value]) => `${key}=${String(value)}`)
            .sort()
            .join(" ")}`
        )
      })
      const kit = yield* Kit.start(looking(Effect.log("here"))).pipe(Effect.annotateLogs("a", 1))
      yield* kit.agent
        .run("go")
        .pipe(Effect.annotateLogs("b", 2), Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      assert.deepStrictEqual(lines, ["here a=1 b=2"])
    })
  )

  it.scoped("each run's own, however the runs wait in line", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const look = Effect.zipWith(FiberRef.get(Ref), Reference, (a, b) => void seen.push(`${a} ${b}`))
      const kit = yield* Kit.start(looking(look, 3))
      const run = (name: string) =>
        kit.agent.run(name).pipe(Effect.locally(Ref, name), Effect.provideService(Reference, name))
      yield* Effect.all([run("a"), kit.agent.run("b"), run("c")], { concurrency: 3 })
      assert.deepStrictEqual(seen, ["a a", "root default", "c c"])
    })
  )

  it.scoped("its caller's while it is interrupted", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const seen: Array<string> = []
      const look = Effect.zipWith(FiberRef.get(Ref), Reference, (a, b) => void seen.push(`${a} ${b}`))
      const stuck = Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
      const kit = yield* Kit.start({ ...looking(Effect.onInterrupt(stuck, () => look)) })
      const run = kit.agent.run("go").pipe(Effect.locally(Ref, "a"), Effect.provideService(Reference, "b"))
      const running = yield* Effect.fork(run)
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(seen, ["a b"])
    })
  )

  it.scoped("nothing that an earlier turn, or another call, has set", () =>
    Effect.gen(function* () {
      const look = Effect.zipLeft(FiberRef.get(Ref), FiberRef.set(Ref, "left behind"))
      const kit = yield* Kit.start(looking(look, 3))
      for (const name of ["a", "b"]) {
        yield* Effect.locally(kit.agent.run("go"), Ref, name)
        assert.deepStrictEqual(kit.results(), [name])
      }
      yield* kit.agent.run("go")
      assert.deepStrictEqual(kit.results(), ["root"])
      assert.strictEqual(yield* FiberRef.get(Ref), "root")
    })
  )

  it.scoped("the start's for words that were sent", () =>
    Effect.gen(function* () {
      const kit = yield* Effect.locally(Kit.start(looking(FiberRef.get(Ref))), Ref, "start")
      yield* Effect.locally(kit.agent.send("go"), Ref, "sender")
      yield* kit.agent.awaitIdle
      assert.deepStrictEqual(kit.results(), ["start"])
    })
  )

  it.scoped("the agent's own interactor, whoever stands around the run", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        ...looking(Effect.orDie(Interactor.ask(new Interaction.Confirm({ prompt: "sure?", default: false }))) as never),
        person: ["y"]
      })
      const stranger = yield* TestInteractor.make({ script: [] })
      yield* kit.agent
        .run("go")
        .pipe(
          Interactor.withInteractor(stranger.interactor),
          Effect.provideService(Interactor.Interactor, stranger.interactor)
        )
      assert.deepStrictEqual(kit.results(), [true])
    })
  )

  it.scoped("what it was built with, unless its caller has its own; checks and previews see the same", () =>
    Effect.gen(function* () {
      const looks: Array<string> = []
      const Look = Tool.make("look", { success: Schema.String, dependencies: [Service] }).pipe(
        ToolTrait.validate(() => Effect.map(Service, (it) => void looks.push(it)))
      )
      const toolkit = Toolkit.make(Look)
      const script = Array.from({ length: 3 }, () => [{ tools: [{ name: "look", params: {} }] }, { text: "." }]).flat()
      const runtime = AgentRuntime.layer({ toolkit, policy: allowAll }).pipe(
        Layer.provide(toolkit.toLayer({ look: () => Service })),
        Layer.provide(Layer.mergeAll(ScriptedModel.layer({ agents: { main: script } }), noFiles)),
        Layer.provide(Layer.succeed(Service, "built"))
      )
      const results = yield* Effect.gen(function* () {
        const agent = yield* Agent.startWith([])
        yield* agent.run("go")
        yield* Effect.provideService(agent.run("go"), Service, "run")
        yield* agent.run("go")
        return agent.history.messages.flatMap((message) =>
          message.role === "tool" ? message.content.map(({ result }) => result) : []
        )
      }).pipe(Effect.provide(runtime))
      assert.deepStrictEqual(results, ["built", "run", "built"])
      assert.deepStrictEqual(looks, ["built", "run", "built"])
    })
  )
})

/** Keeps what is seen of a world. */
const noting = (seen: Array<string>) =>
  Effect.zipWith(FiberRef.get(Ref), Reference, (a, b) => void seen.push(`${a} ${b}`))

describe("a subagent's handlers see", () => {
  const ask = { name: "agent_ask", params: { agent_id: "subagent_1", question: "and now?" } }
  const script = {
    main: [Family.calls(Family.delegate("helper")), { text: "." }, { tools: [ask] }, { text: "." }],
    helper: [Family.work("a"), { text: "." }, Family.work("b"), { text: "." }]
  }

  it.scoped("the world of the call that gave the task", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const worker = () => Effect.as(noting(seen), ".")
      const family = yield* Effect.locally(Family.start({ script, worker, person: ["y", "y", "y"] }), Ref, "start")
      yield* Effect.provideService(family.agent.run("go"), Reference, "first")
      yield* family.agent.run("go").pipe(Effect.provideService(Reference, "second"), Effect.locally(Ref, "run"))
      assert.deepStrictEqual(seen, ["start first", "run second"])
    })
  )

  it.scoped("has nothing of the caller that made it, in a task of another", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const worker = () => Effect.as(noting(seen), ".")
      const family = yield* Family.start({ script, worker, person: ["y", "y", "y"] })
      const first = Effect.provideService(family.agent.run("go"), Reference, "first")
      yield* Effect.locally(first, Ref, "first")
      yield* family.agent.run("go")
      assert.deepStrictEqual(seen, ["first first", "root default"])
    })
  )
})

describe("a policy for the questions of subagents", () => {
  it.scoped("has nothing of the caller for whom it decided before", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const policy = () => Effect.as(noting(seen), Option.none<unknown>())
      const delegation = Family.calls(Family.delegate("helper"))
      const script = {
        main: [delegation, { text: "." }, delegation, { text: "." }],
        helper: [Family.work("a"), { text: "." }]
      }
      const subagents = { mediation: Mediator.decide(policy) }
      const family = yield* Effect.locally(
        Family.start({ script, subagents, person: ["y", "y", "y", "y"] }),
        Ref,
        "start"
      )
      const first = Effect.provideService(family.agent.run("go"), Reference, "first")
      yield* Effect.locally(first, Ref, "first")
      yield* family.agent.run("go")
      assert.deepStrictEqual(seen, ["start default", "start default"])
    })
  )
})

describe("a resumed session", () => {
  it.scoped("runs in the world around the start that resumes it", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const first = open({ pid: 1, host: "here", isAlive: () => false })
      const second = open({ pid: 2, host: "here", isAlive: () => false })
      const script = { main: [Family.work("a"), { text: "done" }] }
      const seen: Array<string> = []
      const worker = () => Effect.as(noting(seen), ".")
      const dying = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(first), dying)
      const before = yield* Scope.extend(Family.start({ script, worker, agent: { persistence } }), dying)
      yield* Effect.forkDaemon(Effect.locally(before.agent.run("go"), Ref, "first"))
      yield* before.person.next
      yield* persistence.journal.freeze
      const again = yield* Persistence.resume(second, persistence.rootSessionId)
      const after = yield* Family.start({ script, worker, person: ["y"], agent: { persistence: again } }).pipe(
        Effect.locally(Ref, "second"),
        Effect.provideService(Reference, "second")
      )
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(seen, ["second second"])
      yield* Scope.close(dying, Exit.void)
    })
  )
})

describe("an audit trail is kept", () => {
  const asked = (agent: Agent.Agent) => agent.run("go")

  it.scoped.each([
    ["around the runtime", true, false, "1 0"],
    ["around the start", false, true, "0 1"],
    ["around both: at the start", true, true, "0 1"]
  ] as const)("%s", ([, atRuntime, atStart, expected]) =>
    Effect.gen(function* () {
      const ofRuntime = yield* AuditTrail.makeMemory()
      const ofStart = yield* AuditTrail.makeMemory()
      const made = Kit.runtimeOf(looking(Effect.succeed("x")))
      const runtime = yield* atRuntime ? Effect.provideService(made, AuditTrail.AuditTrail, ofRuntime.trail) : made
      const starting = Effect.provideService(Agent.startWith([]), AgentRuntime.AgentRuntime, runtime)
      const agent = yield* atStart ? Effect.provideService(starting, AuditTrail.AuditTrail, ofStart.trail) : starting
      yield* asked(agent)
      const counts = yield* Effect.all([ofRuntime.memory.decisions, ofStart.memory.decisions])
      assert.strictEqual(counts.map(({ length }) => length).join(" "), expected)
    })
  )
})
