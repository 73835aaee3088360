/** What does not get past an approvals rule, each by its name; and a reserved call in a process that dies at any write. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { FileSystem } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as Mediator from "../../src/bridge/Mediator.js"
import * as FileChannel from "../../src/channel/FileChannel.js"
import * as FileExchange from "../../src/channel/FileExchange.js"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Id from "../../src/core/Id.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Principal from "../../src/interaction/Principal.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionVote from "../../src/journal/SessionVote.js"
import type * as Policy from "../../src/permission/Policy.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Stage from "../../src/session/Stage.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Agents from "../kit/agents.js"
import * as Family from "../kit/Family.js"
import * as Mortal from "../kit/Mortal.js"
import { settle } from "../kit/Recorder.js"

const { calls, delegate, ofTag, work } = Family

/** Two people have to agree on work; there is one. */
const two = { approvals: [{ tools: ["work"], quorum: 2 }] } as const
const allowed = { tools: ["delegate", "spawn_subagent"] }

const policy = (more: Policy.PolicySource = {}) =>
  PermissionFile.policy({ ...more, ...two, whitelist: { tools: [...allowed.tools, ...(more.whitelist?.tools ?? [])] } })

/** Plays a family in which somebody works; yields what was decided about that. */
const decided = (
  options: Partial<Family.Options> & { readonly policy?: Policy.Policy },
  before: (family: Family.Family) => Effect.Effect<unknown, unknown, Scope.Scope> = () => Effect.void,
  run: (agent: Agent.Agent) => Effect.Effect<unknown, unknown> = (agent) => agent.run("go")
) =>
  Effect.gen(function* () {
    const family = yield* Family.start({
      script: { main: [work("danger"), { text: "ok" }] },
      person: () => "y",
      ...options,
      runtime: { policy: options.policy ?? policy(), ...options.runtime }
    })
    yield* Effect.orDie(before(family))
    const running = yield* Effect.fork(Effect.orDie(run(family.agent)))
    yield* settle
    yield* TestClock.adjust("10 minutes")
    yield* Fiber.join(running)
    const resolved = ofTag(yield* family.events, "PermissionResolved").filter(({ tool }) => tool === "work")
    return { resolved, worked: family.worked, shown: yield* family.person.shown }
  })

describe("an approvals rule is not satisfied by", () => {
  const denies = (name: string, ...[options, before, run]: Parameters<typeof decided>) =>
    it.scoped(name, () =>
      Effect.gen(function* () {
        const { resolved, worked } = yield* decided(options, before, run)
        assert.deepStrictEqual(worked, [])
        assert.isAtLeast(resolved.length, 1)
        for (const one of resolved) {
          assert.isFalse(one.granted)
          assert.include(one.reason, "needs 2 people (work)")
        }
      })
    )

  denies("one person, whatever they say", {})
  for (const scope of ["turn", "idle", "all"] as const) {
    denies(`a suspension of everything: ${scope}`, {}, ({ agent }) => agent.permissions.suspend(scope))
  }
  denies("the session's whitelist", {}, ({ agent }) => Effect.orDie(agent.permissions.allow("work")))
  denies("the mode allow", {}, ({ agent }) => Effect.orDie(agent.permissions.setMode("allow")))
  denies("the policy's whitelist", { policy: policy({ whitelist: { tools: ["work"] } }) })
  denies("the policy's default", { policy: policy({ defaultPolicy: "allow" }) })
  denies("what is delegated to models", { policy: policy({ delegated: { tools: ["work"] } }) })
  denies("a policy of the agent's own that says nothing of it", {
    agent: { policy: PermissionFile.policy({ defaultPolicy: "allow" }) }
  })
  denies("a stage that lists the tool", {}, undefined, (agent) =>
    Stage.run(
      agent,
      Stage.make({
        name: "build",
        allowedTools: ["work"],
        act: "go",
        assert: () => Effect.succeed(Stage.ok("done")),
        retryPolicy: { maxAttempts: 1 }
      })
    )
  )
  denies("an auto_approved profile", {
    script: { main: [calls(delegate("free")), { text: "ok" }], free: [work("danger"), { text: "ok" }] },
    subagents: { profiles: [Family.profile("free", { autoApproved: true })] }
  })
  denies("an envelope that was approved", {
    script: {
      main: [calls({ name: "delegate", params: { task: "go", plugins: ["labour"] } }), { text: "ok" }],
      subagent: [work("danger"), { text: "ok" }]
    },
    person: ({ interaction }) => (interaction._tag === "approveSubagentEnvelope" ? "approve" : "y"),
    subagents: { inline: { allowed: true, plugins: ["labour"] } }
  })
  denies("a parent that mediates", {
    script: { main: [calls(delegate("helper")), { text: "ok" }], helper: [work("danger"), { text: "ok" }] },
    subagents: {
      profiles: [Family.profile("helper")],
      mediation: Mediator.decide(() => Option.some({ decision: "allow", scope: "once" }))
    }
  })
  denies("a time that runs out where that allows", {
    person: { script: [TestInteractor.silent], timeouts: { permission: "1 minute", onTimeout: "allow" } }
  })

  const AutoWork = Tool.make("auto").annotate(ToolTrait.AutoApproved, true).annotate(Tool.Readonly, true)
  const auto = Toolkit.make(AutoWork)
  const world = (source: Policy.PolicySource) =>
    TestAgent.layerRuntime({
      toolkit: auto,
      script: [{ tools: [{ name: "auto" }] }, { text: "ok" }],
      policy: PermissionFile.policy(source)
    }).pipe(Layer.provide(auto.toLayer({ auto: () => Effect.void })))
  const resolvedBy = (interactors: ReadonlyArray<Interactor.Service>, more: Policy.PolicySource = {}) =>
    Effect.gen(function* () {
      const agent = yield* Agent.startWith(interactors)
      const events = yield* Effect.fork(
        Effect.repeat(agent.events.takeAll, { until: (batch) => batch._tag === "None" })
      )
      const seen = yield* agent.subscribe({ capacity: 1_000 })
      yield* agent.run("go")
      yield* agent.shutdown
      yield* Fiber.join(events)
      const batch = Option.getOrElse(yield* seen.takeAll, () => [])
      return [...batch].flatMap((event) => (event._tag === "PermissionResolved" ? [event] : []))
    }).pipe(Effect.scoped, Effect.provide(world({ approvals: [{ tools: ["auto"], quorum: 2 }], ...more })))

  it.effect("a tool that asks nobody, by itself or by the readonly list", () =>
    Effect.gen(function* () {
      const person = yield* TestInteractor.make({ script: ["y"] })
      const [resolved] = yield* resolvedBy([person.interactor], { whitelist: { readonly: true } })
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
    })
  )

  it.effect("--yolo, in words", () =>
    Effect.gen(function* () {
      const [resolved] = yield* resolvedBy([HaltChannel.yolo])
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
      assert.include(resolved?.reason, "needs 2 people (auto)")
      assert.include(resolved?.reason, "it came from nobody (yolo)")
    })
  )

  it.effect("one interactor that says of its answer that it was given by several", () =>
    Effect.gen(function* () {
      const forged: Interactor.Service = {
        id: "forger",
        relay: false,
        request: () =>
          Effect.succeed({ answer: { decision: "allow", scope: "all" }, by: "ada, grace", how: "answered" } as never)
      }
      const [resolved] = yield* resolvedBy([forged])
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
    })
  )

  const spellings = [" ada ", "ADA", "ad\u200ba", "\uff41da"]

  it.scopedLive("one person in several spellings, in the queue of a program that signs people in", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const deciding = yield* Effect.fork(resolvedBy([channel.interactor]))
      const dialog = yield* channel.take
      assert(dialog._tag === "Opened")
      const { requestId } = dialog.request
      yield* channel.answerText(requestId, "y", "ada")
      for (const by of spellings) yield* Effect.ignore(channel.answerText(requestId, "y", by))
      yield* channel.answerText(requestId, "y", "grace")
      const [resolved] = yield* Fiber.join(deciding)
      assert.deepInclude(resolved, { granted: true })
      assert.deepStrictEqual(
        resolved?.votes?.map(({ by }) => Principal.keyOf(by)),
        ["ada", "grace"]
      )
    })
  )

  it.effect("one person in several spellings, at interactors of code", () =>
    Effect.gen(function* () {
      const answering = (principal: string): Interactor.Service => ({
        id: `of ${principal}`,
        relay: false,
        principal,
        request: () => Effect.succeed({ answer: { decision: "allow", scope: "once" }, by: principal } as never)
      })
      const [resolved] = yield* resolvedBy(["ada", ...spellings].map(answering))
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
    })
  )

  it.scopedLive(
    "a file that names two authors, where nobody vouches for them; where somebody does, it takes both",
    () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const answeredAs = (vouches: boolean) =>
          Effect.gen(function* () {
            const directory = yield* fs.makeTempDirectoryScoped()
            const pollInterval = Duration.millis(5)
            const interactor = yield* FileChannel.make({
              directory,
              pollInterval,
              vouches,
              timeouts: { permission: 0 }
            })
            const deciding = yield* Effect.fork(resolvedBy([interactor]))
            const said = (by: string) =>
              Effect.gen(function* () {
                const [request] = yield* Effect.repeat(FileExchange.pending(directory), {
                  until: (requests) => requests.length > 0
                })
                if (request === undefined) return
                yield* FileExchange.respond(directory, request.requestId, "y", by)
                yield* Effect.repeat(
                  Effect.delay(fs.exists(`${directory}/responses/${request.requestId}.json`), pollInterval),
                  { until: (there) => !there }
                )
              })
            const voted = Effect.map(FileExchange.pending(directory), ([request]) => {
              if (!vouches) return
              assert(request?.interaction._tag === "Approve")
              assert.deepStrictEqual(request.interaction.needs?.votes, [{ by: "ada", vote: "allow" }])
            })
            const saying = yield* Effect.fork(
              said("ada").pipe(
                Effect.zipRight(said("\u00a0ADA ")),
                Effect.zipRight(voted),
                Effect.zipRight(said("grace"))
              )
            )
            const [resolved] = yield* Fiber.join(deciding)
            if (vouches) yield* Fiber.join(saying)
            return resolved
          })
        const unvouched = yield* answeredAs(false)
        assert.deepInclude(unvouched, { granted: false, method: "unavailable" })
        assert.include(unvouched?.reason, "file allowed it")
        assert.deepInclude(yield* answeredAs(true), { granted: true, method: "user_approved", by: "ada, grace" })
      }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("people who want other arguments", () => {
  const edit = (name: string) => TestInteractor.answer({ decision: "edit", editedArguments: { name } })
  const edited = (first: string, second: string) =>
    Effect.gen(function* () {
      const grace = yield* TestInteractor.make({ id: "grace", script: [edit(second)] })
      const { resolved, shown, worked } = yield* decided({ person: [edit(first)] }, ({ agent }) =>
        agent.broker.attach(grace.interactor)
      )
      return {
        resolved: resolved[0],
        worked: worked.map(({ name }) => name),
        asked: shown.length,
        again: (yield* grace.shown).length
      }
    })

  it.scoped("agree on exactly the same ones, which run, and are not asked again", () =>
    Effect.gen(function* () {
      const { again, asked, resolved, worked } = yield* edited("safe", "safe")
      assert.deepStrictEqual({ again, asked, worked }, { again: 1, asked: 1, worked: ["safe"] })
      assert.deepInclude(resolved, { granted: true, by: "person, grace", edited: true })
    })
  )

  it.scoped("do not add up where they differ", () =>
    Effect.gen(function* () {
      const { resolved, worked } = yield* edited("safe", "other")
      assert.deepStrictEqual(worked, [])
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
      assert.include(resolved?.reason, "person wants other arguments, grace wants other arguments")
    })
  )
})

describe("a list that denies", () => {
  it.scoped("denies a reserved call before anybody is asked", () =>
    Effect.gen(function* () {
      const { resolved, shown } = yield* decided({ policy: policy({ blacklist: { patterns: ["work(*danger*)"] } }) })
      assert.deepInclude(resolved[0], { granted: false, method: "blacklist" })
      assert.deepStrictEqual(shown, [])
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------
// crashes
// -----------------------------------------------------------------------------------------------------------------

const runtime = (ids: Layer.Layer<Id.IdGenerator>) =>
  Agents.runtime(
    { agents: { main: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "Done." }] } },
    { policy: PermissionFile.policy({ approvals: [{ tools: ["add"], quorum: 2 }] }) }
  ).pipe(Layer.provideMerge(ids), Layer.orDie)

/** One process: `person` and grace are asked; each says yes. */
const life = (world: Mortal.CallerContext, death?: Mortal.Death) =>
  Effect.gen(function* () {
    const grace = yield* TestInteractor.make({ id: "grace", script: () => "y" })
    const lived = yield* Mortal.live(
      world,
      { runtime, person: () => "y" },
      (agent, restored) =>
        Effect.gen(function* () {
          yield* agent.broker.attach(grace.interactor)
          if (restored === undefined) yield* agent.run("add")
          yield* agent.awaitIdle
        }).pipe(Effect.scoped),
      death
    )
    return { ...lived, graced: yield* grace.shown }
  })

describe("a reserved call, in a process that dies", () => {
  it.effect("at any write: the votes that were kept count, and nobody is asked for theirs again", () =>
    Effect.gen(function* () {
      const whole = yield* life(yield* Mortal.world)
      assert.isFalse(whole.died)
      assert.isAbove(whole.writes, 6)
      for (let at = 1; at <= whole.writes; at++) {
        for (const written of [true, false]) {
          const world = yield* Mortal.world
          const first = yield* life(world, { at, written })
          assert.isTrue(first.died)
          const store = yield* world.open(0)
          const { id } = world
          assert.isDefined(id)
          const kept = yield* Effect.option(store.load(id))
          if (Option.isNone(kept)) continue
          const voted = kept.value.entries.flatMap(({ entry }) => (entry._tag === "VoteGiven" ? [entry.by] : []))
          const second = yield* life(world)
          assert.isFalse(second.died)
          const after = yield* Effect.orDie(store.load(id))
          const votes = after.entries.flatMap(({ entry }) => (entry._tag === "VoteGiven" ? [entry.by] : []))
          const begun = after.entries.flatMap(({ entry }) => (entry._tag === "MessageTaken" ? [entry] : []))
          if (begun.length === 0) continue
          assert.deepStrictEqual([...votes].sort(), ["grace", "person"], `at ${at}, ${written}`)
          if (voted.includes("person")) assert.deepStrictEqual(second.shown, [])
          if (voted.includes("grace")) assert.deepStrictEqual(second.graced, [])
          const decisions = after.entries.flatMap(({ entry }) => (entry._tag === "CallDecided" ? [entry.granted] : []))
          assert.deepStrictEqual(decisions, [true], `at ${at}, ${written}`)
        }
      }
    })
  )

  it.effect("with its question open: votes are given while no process runs it", () =>
    Effect.gen(function* () {
      const world = yield* Mortal.world
      const store = yield* world.open(0)
      // Nobody answers, and the process dies with its question open.
      const lost = yield* Mortal.live(world, { runtime, person: () => TestInteractor.silent }, (agent) =>
        Effect.zipRight(agent.send("add"), Effect.repeatN(Effect.yieldNow(), 200))
      )
      assert.isFalse(lost.died)
      const rootSessionId = world.id
      assert.isDefined(rootSessionId)
      const loaded = yield* Effect.orDie(store.load(rootSessionId))
      const [open] = SessionSnapshot.openRequests(SessionSnapshot.fold(loaded.entries), [])
      assert.isDefined(open)
      const { requestId } = open.request
      const allow = { decision: "allow", scope: "once" }
      const give = (by: string) => SessionVote.give(store, { rootSessionId, requestId, answer: allow, by })
      const alone = yield* Effect.flip(store.answer(requestId, allow, "ada"))
      assert.deepInclude(alone, { _tag: "AnswerRefused", problem: "reserved" })
      assert.deepStrictEqual(yield* give("ada"), { missing: "1 more" })
      assert.deepStrictEqual(yield* give("ada"), { missing: "1 more" })
      assert.deepStrictEqual(yield* give("grace"), { missing: undefined })
      const [waiting] = yield* store.openRequests(rootSessionId)
      assert(waiting?.request.interaction._tag === "Approve")
      assert.deepStrictEqual(waiting.request.interaction.needs?.votes, [
        { by: "ada", vote: "allow" },
        { by: "grace", vote: "allow" }
      ])
      const { events, shown } = yield* Mortal.live(world, { runtime, person: () => "n" }, (agent) => agent.awaitIdle)
      assert.deepStrictEqual(shown, [])
      assert.deepInclude(ofTag(events, "PermissionResolved")[0], { granted: true, by: "ada, grace" })
    })
  )

  it.effect("does not count a vote on other arguments, nor one of a person who lost the role", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const store = open({ pid: 1, host: "here", isAlive: () => false })
      const toolkit = Agents.kit
      const world = (source: Policy.PolicySource) =>
        TestAgent.layerRuntime({
          toolkit,
          script: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "Done." }],
          policy: PermissionFile.policy(source)
        }).pipe(Layer.provide(Agents.handlers()))
      const source = (ops: ReadonlyArray<string>) => ({
        roles: { ops },
        approvals: [{ tools: ["add"], quorum: 2, roles: ["ops"] }] as const
      })
      const ada = yield* TestInteractor.make({ id: "ada", script: ["y"] })
      const silent = yield* TestInteractor.make({ id: "grace" })
      const id = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.begin(store)
          const agent = yield* Agent.startWith([ada.interactor, silent.interactor], { persistence })
          yield* Effect.fork(agent.run("add"))
          yield* silent.next
          yield* Effect.repeatN(Effect.yieldNow(), 50)
          return agent.id
        })
      ).pipe(Effect.provide(world(source(["ada", "grace"]))))
      const { entries } = yield* Effect.orDie(store.load(id))
      assert.deepStrictEqual(
        entries.flatMap(({ entry }) => (entry._tag === "VoteGiven" ? [entry.by] : [])),
        ["ada"]
      )
      // Ada is no longer one of them: her vote is there, and does not count.
      const grace = yield* TestInteractor.make({ id: "grace", script: ["y"] })
      const linus = yield* TestInteractor.make({ id: "linus" })
      const events = yield* Effect.scoped(
        Effect.gen(function* () {
          const persistence = yield* Persistence.resume(store, id)
          const agent = yield* Agent.startWith([grace.interactor, linus.interactor], { persistence })
          const subscribed = yield* agent.subscribe({ capacity: 1_000 })
          yield* linus.next
          yield* Effect.repeatN(Effect.yieldNow(), 50)
          yield* linus.disconnect
          yield* agent.awaitIdle
          return Option.getOrElse(yield* subscribed.takeAll, () => [])
        })
      ).pipe(Effect.provide(world(source(["grace", "linus"]))))
      const resolved = ofTag([...events], "PermissionResolved")
      assert.deepInclude(resolved[0], { granted: false, method: "unavailable" })
      assert.include(resolved[0]?.reason, "grace allowed it")
      assert.notInclude(resolved[0]?.reason, "ada")
    })
  )
})
