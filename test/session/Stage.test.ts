import { assert, describe, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as Digest from "../../src/core/Digest.js"
import * as Id from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type * as Guard from "../../src/permission/Guard.js"
import type * as PermissionGate from "../../src/permission/PermissionGate.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Stage from "../../src/session/Stage.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { handlers, kit } from "../kit/agents.js"
import * as Family from "../kit/Family.js"

const add = (a: number, b: number, id?: string) => ({
  name: "add",
  params: { a, b },
  ...(id === undefined ? {} : { id })
})
const says = (text: string) => ({ text })
const uses = (...tools: NonNullable<ScriptedModel.Step["tools"]>) => ({ tools })

/** What it starts lives on where it is `on`. */
const Serve = Tool.make("serve", { parameters: { on: Schema.Boolean }, success: Schema.String }).annotate(
  ToolTrait.Outlives,
  "on"
)

interface CallerContext {
  readonly script: ReadonlyArray<ScriptedModel.Step>
  readonly person?: TestInteractor.Script
  readonly policy?: PermissionFile.Policy
  readonly guards?: ReadonlyArray<Guard.Guard>
  readonly onHang?: Effect.Effect<void>
}

const world = ({ onHang, ...options }: CallerContext) =>
  Layer.provide(
    TestAgent.layer({ toolkit: kit, ...options }),
    handlers({ ...(onHang === undefined ? {} : { onHang }) })
  )

/** One attempt that is good as it is. */
const once = Stage.make({
  name: "build",
  allowedTools: ["fail"],
  act: "build it",
  assert: ({ current }) => Effect.succeed(Stage.ok(current.end._tag)),
  retryPolicy: { maxAttempts: 1 }
})

const resultsOf = (agent: Agent.Agent) =>
  agent.history.messages.flatMap((message) =>
    message.role === "tool" ? message.content.flatMap((part) => ("result" in part ? [part.result] : [])) : []
  )

const tagged = <Tag extends AgentEvent["_tag"]>(events: ReadonlyArray<AgentEvent>, tag: Tag) =>
  events.filter((event): event is Extract<AgentEvent, { readonly _tag: Tag }> => event._tag === tag)

const resolved = (events: ReadonlyArray<AgentEvent>) =>
  tagged(events, "PermissionResolved").map(({ tool, granted, method, reason, by }) => ({
    tool,
    granted,
    method,
    reason,
    ...(by === undefined ? {} : { by })
  }))

const grantAsked = (request: { readonly interaction: Interaction.Interaction } | undefined) => {
  assert(request?.interaction._tag === "grantStageTool")
  return request.interaction
}

describe("Stage", () => {
  it.scoped("runs the tools of its envelope without asking, and says how it ended", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      const end = yield* Stage.run(agent, { ...once, allowedTools: ["add"] })
      assert.deepStrictEqual(end, {
        _tag: "Ok",
        value: "Completed",
        attempts: [{ index: 0, end: { _tag: "Completed", text: "three", steps: 2 }, grants: [] }]
      } as never)
      assert.deepStrictEqual(yield* person.shown, [])
      assert.deepStrictEqual(resolved(yield* events), [
        { tool: "add", granted: true, method: "envelope", reason: "in the envelope of stage build" }
      ])
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("three")] })))
  )

  it.scoped("asks about a call outside its envelope, and lets exactly that one through", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      const end = yield* Stage.run(agent, once)
      assert.deepStrictEqual(resultsOf(agent), [3])
      const [request] = yield* person.shown
      const asked = grantAsked(request)
      const binding = {
        attempt: 0,
        proposalId: "call_a",
        tool: "add",
        argsDigest: Digest.digest({ b: 2, a: 1 })
      }
      assert.deepStrictEqual({ ...asked }, {
        _tag: "grantStageTool",
        stageExecutionId: asked.stageExecutionId,
        ...binding,
        argsSummary: "a=1, b=2",
        reason: "Stage build was given fail."
      } as never)
      assert.match(asked.stageExecutionId, /^stage_/)
      assert.deepStrictEqual(end.attempts[0]?.grants, [
        {
          proposalId: "call_a",
          tool: "add",
          argsDigest: binding.argsDigest,
          argsSummary: "a=1, b=2",
          outcome: "approve",
          by: "person",
          note: "go ahead"
        }
      ])
      const told = yield* events
      assert.deepStrictEqual(resolved(told), [
        {
          tool: "add",
          granted: true,
          method: "stage_grant",
          reason: "granted once, in attempt 1 of stage build",
          by: "person"
        }
      ])
      const order = told.map((event) => event._tag).filter((tag) => /Grant|Answered|Resolved|ToolCallStarted/.test(tag))
      assert.deepStrictEqual(order, [
        "InteractionAnswered",
        "GrantMinted",
        "GrantConsumed",
        "PermissionResolved",
        "ToolCallStarted"
      ])
      const [minted] = tagged(told, "GrantMinted")
      assert.deepInclude(minted, { stageExecutionId: asked.stageExecutionId, attempt: 0, tool: "add", agent: "main" })
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2, "call_a")), says("done")], person: ["approve: go ahead"] })))
  )

  it.scoped("asks about a call in its envelope that starts what goes on after it", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      yield* Stage.run(agent, { ...once, allowedTools: ["serve"] })
      const shown = yield* person.shown
      assert.lengthOf(shown, 1)
      assert.strictEqual(
        grantAsked(shown[0]).reason,
        "Stage build was given serve. Work that this call starts continues after the call."
      )
      assert.deepStrictEqual(
        resolved(yield* events).map(({ granted, method }) => ({ granted, method })),
        [
          { granted: true, method: "envelope" },
          { granted: false, method: "user_denied" }
        ]
      )
    }).pipe(
      Effect.provide(
        Layer.provide(
          TestAgent.layer({
            toolkit: Toolkit.make(Serve),
            person: ["deny"],
            script: [
              uses({ name: "serve", params: { on: false } }),
              uses({ name: "serve", params: { on: true } }),
              says("so be it")
            ]
          }),
          Toolkit.make(Serve).toLayer({ serve: () => Effect.succeed("serving") })
        )
      )
    )
  )

  it.scoped("asks again for the same arguments, for the same id even, and for every attempt", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      const stage = Stage.make({
        ...once,
        assert: ({ attempt }) => Effect.succeed(attempt === 0 ? Stage.retry("once more") : Stage.ok("good")),
        retryPolicy: { maxAttempts: 2 }
      })
      const end = yield* Stage.run(agent, stage)
      assert.strictEqual(end._tag, "Ok")
      assert.deepStrictEqual(resultsOf(agent), [
        3,
        "Permission denied: person did not grant add in this stage",
        "Permission denied: person did not grant add in this stage"
      ])
      const asked = (yield* person.shown).map(grantAsked)
      assert.deepStrictEqual(
        asked.map(({ attempt }) => attempt),
        [0, 0, 1]
      )
      assert.strictEqual(new Set(asked.map(({ stageExecutionId }) => stageExecutionId)).size, 1)
      assert.strictEqual(new Set(asked.map(({ argsDigest }) => argsDigest)).size, 1)
    }).pipe(
      Effect.provide(
        world({
          script: [
            uses(add(1, 2, "call_a")),
            uses(add(1, 2, "call_a")),
            says("done"),
            uses(add(1, 2, "call_a")),
            says("done")
          ],
          person: ["approve", "deny", "deny"]
        })
      )
    )
  )

  const refusals: ReadonlyArray<readonly [string, TestInteractor.Step, unknown, PermissionGate.Resolution["method"]]> =
    [
      ["a denial", "n", "Permission denied: person did not grant add in this stage", "user_denied"],
      [
        "a denial with a note",
        "n: not on a Friday",
        "Tool not executed. User comment: not on a Friday",
        "user_comment"
      ],
      ["a deferral", "defer", "Permission denied: person put off the decision about add in this stage", "user_denied"],
      [
        "a person who withdraws",
        TestInteractor.cancel,
        "Permission denied: The question was cancelled by person.",
        "cancelled"
      ],
      [
        "an interactor that is gone",
        TestInteractor.fail("the line is dead"),
        "Permission denied: person could not answer: the line is dead",
        "unavailable"
      ],
      ["an interactor that crashes", TestInteractor.crash, undefined, "unavailable"],
      ["an answer that is none", TestInteractor.nonsense({ outcome: "yes" }), undefined, "unavailable"]
    ]
  for (const [name, step, text, method] of refusals) {
    it.scoped(`takes ${name} for a denial of that call, and goes on`, () =>
      Effect.gen(function* () {
        const { agent, events } = yield* TestAgent.start()
        const end = yield* Stage.run(agent, once)
        assert.strictEqual(end._tag, "Ok")
        const [result] = resultsOf(agent)
        if (text === undefined) assert.match(String(result), /^Permission denied: /)
        else assert.strictEqual(result, text)
        const told = yield* events
        assert.deepStrictEqual(
          resolved(told).map((how) => [how.granted, how.method]),
          [[false, method]]
        )
        assert.deepStrictEqual(tagged(told, "GrantMinted"), [])
        assert.deepStrictEqual(tagged(told, "ToolCallStarted"), [])
        const [record] = end.attempts[0]?.grants ?? []
        assert.notStrictEqual(record?.outcome, "approve")
      }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")], person: [step] })))
    )
  }

  it.scoped("denies when nobody is there, and goes on", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.startWith([])
      const end = yield* Stage.run(agent, once)
      assert.strictEqual(end._tag, "Ok")
      assert.deepStrictEqual(resultsOf(agent), [
        "Permission denied: No attached channel can answer. Attach one that can."
      ])
      assert.deepStrictEqual(
        end.attempts[0]?.grants.map(({ outcome }) => outcome),
        ["unanswered"]
      )
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")] })))
  )

  it.scoped("denies where everything halts, and the turn is not halted", () =>
    Effect.gen(function* () {
      const halt = yield* HaltChannel.make
      const agent = yield* Agent.startWith([halt.interactor])
      const end = yield* Stage.run(agent, once)
      assert.strictEqual(end._tag, "Ok")
      assert.deepStrictEqual(resultsOf(agent), ["Permission denied: no person can be asked"])
      assert.isFalse(yield* Deferred.isDone(halt.halted))
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")] })))
  )

  it.scoped("grants with --yolo, and says that nobody decided", () =>
    Effect.gen(function* () {
      const { agent, events } = yield* TestAgent.start()
      yield* Stage.run(agent, once)
      assert.deepStrictEqual(resultsOf(agent), [3])
      assert.deepStrictEqual(
        resolved(yield* events).map(({ method }) => method),
        ["yolo"]
      )
    }).pipe(
      Interactor.withInteractor(HaltChannel.yolo),
      Effect.provide(world({ script: [uses(add(1, 2)), says("done")] }))
    )
  )

  const refuse: Guard.Guard = ({ tool }) => (tool === "add" ? Effect.fail("adding is over") : Effect.void)
  for (const allowedTools of [["add"], []]) {
    it.scoped(`never gets past a guard, with ${allowedTools.length} tools in its envelope, and asks nobody then`, () =>
      Effect.gen(function* () {
        const { agent, person } = yield* TestAgent.start()
        yield* Stage.run(agent, { ...once, allowedTools })
        assert.deepStrictEqual(resultsOf(agent), ["Permission denied: adding is over"])
        assert.deepStrictEqual(yield* person.shown, [])
      }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")], guards: [refuse], person: ["y"] })))
    )
  }

  for (const [allowedTools, given] of [
    [[], "no tools"],
    [["fail"], "fail"],
    [["fail", "hang"], "fail, hang"]
  ] as const) {
    it.scoped(`says what it was given, and asks nobody in the mode deny: ${given}`, () =>
      Effect.gen(function* () {
        const { agent, person } = yield* TestAgent.start()
        yield* agent.permissions("mode deny")
        yield* Stage.run(agent, { ...once, allowedTools })
        assert.deepStrictEqual(resultsOf(agent), [
          `Permission denied: Stage build was given ${given}. The mode is deny.`
        ])
        assert.deepStrictEqual(yield* person.shown, [])
      }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")], person: ["y"] })))
    )
  }

  it.scoped("runs the guards again on what was granted", () =>
    Effect.gen(function* () {
      let asked = false
      const changing: Guard.Guard = () => (asked ? Effect.fail("too late") : Effect.void)
      yield* Effect.gen(function* () {
        const { agent } = yield* TestAgent.start()
        yield* Stage.run(agent, once)
        assert.deepStrictEqual(resultsOf(agent), ["Permission denied: too late"])
      }).pipe(
        Effect.provide(
          world({
            script: [uses(add(1, 2)), says("done")],
            guards: [changing],
            person: () => {
              asked = true
              return "approve"
            }
          })
        )
      )
    })
  )

  it.scoped("is not widened by rules, remembered answers or a suspension", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      yield* agent.permissions("allow add")
      yield* agent.permissions("suspend all")
      yield* Stage.run(agent, once)
      assert.deepStrictEqual(
        (yield* person.shown).map(({ interaction }) => interaction._tag),
        ["grantStageTool"]
      )
      assert.deepStrictEqual(resultsOf(agent), ["Permission denied: person did not grant add in this stage"])
    }).pipe(
      Effect.provide(
        world({
          script: [uses(add(1, 2)), says("done")],
          policy: PermissionFile.policy({ defaultPolicy: "allow" }),
          person: ["n"]
        })
      )
    )
  )

  it.scoped("is over with its turn: afterwards the rules decide again", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      yield* Stage.run(agent, { ...once, allowedTools: ["add"] })
      yield* agent.run("and again")
      assert.deepStrictEqual(
        (yield* person.shown).map(({ interaction }) => interaction._tag),
        ["Approve"]
      )
    }).pipe(
      Effect.provide(world({ script: [uses(add(1, 2)), says("done"), uses(add(1, 2)), says("done")], person: ["n"] }))
    )
  )

  for (const [what, allowedTools, worked, last] of [
    ["denies a tool outside of its list", ["spawn_subagent"], "early", "false stage_grant"],
    ["leaves a tool of its list to the rules", ["spawn_subagent", "work"], "early late", "true default"],
    ["denies every tool without a list", [], "early", "false stage_grant"]
  ] as const) {
    it.scoped(`${what} after its end, to what began in it, whatever the rules say`, () =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const over = yield* Family.gate
        const family = yield* Family.start({
          script: {
            // The stage lasts until the subagent works.
            main: [Family.calls(Family.spawn("helper")), Family.work("wait"), says("begun"), says("heard")],
            helper: [Family.work("early"), Family.work("late"), says("ok")]
          },
          // A person grants what begins in the stage, and nothing later.
          person: ({ interaction }) => (interaction._tag === "grantStageTool" ? "approve" : "n"),
          worker: (name) =>
            Effect.as(
              name === "wait"
                ? Deferred.await(begun)
                : name === "early"
                  ? Effect.zipRight(Deferred.succeed(begun, undefined), over.pass)
                  : Effect.void,
              name
            ),
          runtime: { policy: PermissionFile.policy({ defaultPolicy: "allow" }) }
        })
        yield* Stage.run(family.agent, { ...once, allowedTools })
        yield* over.open
        yield* family.agent.awaitIdle
        const names = family.worked.flatMap(({ agent, name }) => (agent === "main" ? [] : [name]))
        assert.strictEqual(names.join(" "), worked)
        const { granted, method, reason } = Family.ofTag(yield* family.events, "PermissionResolved").at(-1) ?? {}
        assert.strictEqual(`${granted} ${method}`, last)
        if (granted === false)
          assert.strictEqual(
            reason,
            `stage build is over, and what was begun in it may use ${allowedTools.join(", ") || "no tools"}, not work`
          )
      })
    )
  }

  it.scoped("waits for the turn that runs, which keeps to the rules", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      const before = yield* Effect.fork(agent.run("first"))
      const request = yield* person.next
      assert.strictEqual(request.interaction._tag, "Approve")
      const stage = yield* Effect.fork(Stage.run(agent, { ...once, allowedTools: ["add"] }))
      yield* Effect.yieldNow()
      yield* agent.broker.answer(request.requestId, "test", { decision: "deny", scope: "once" })
      const end = yield* Fiber.join(stage)
      assert.strictEqual(end._tag, "Ok")
      yield* Fiber.join(before)
      assert.deepStrictEqual(resultsOf(agent), ["Permission denied: test said no", 7])
      assert.strictEqual((yield* person.shown).length, 1)
    }).pipe(
      Effect.provide(
        world({
          script: [uses(add(1, 2)), says("first is done"), uses(add(3, 4)), says("stage is done")],
          person: [TestInteractor.silent]
        })
      )
    )
  )

  it.scoped("tells each attempt what came of those before it", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      const seen: Array<unknown> = []
      const stage = Stage.make({
        name: "build",
        allowedTools: [],
        act: ({ attempt, attempts }) => {
          seen.push([attempt, attempts.map(({ index, retry, grants }) => [index, retry, grants[0]?.note])])
          return Effect.succeed(`attempt ${attempt + 1}`)
        },
        assert: ({ attempt, attempts, current }) => {
          seen.push([attempt, attempts.length, attempts.at(-1) === current, current.grants[0]?.note])
          return Effect.succeed(attempt < 2 ? Stage.retry(`not yet ${attempt}`) : Stage.ok(attempt))
        },
        retryPolicy: { maxAttempts: 3 }
      })
      const end = yield* Stage.run(agent, stage)
      assert(end._tag === "Ok")
      assert.strictEqual(end.value, 2)
      assert.deepStrictEqual(seen, [
        [0, []],
        [0, 1, true, "first"],
        [1, [[0, "not yet 0", "first"]]],
        [1, 2, true, "second"],
        [
          2,
          [
            [0, "not yet 0", "first"],
            [1, "not yet 1", "second"]
          ]
        ],
        [2, 3, true, undefined]
      ])
      assert.deepStrictEqual(
        agent.history.messages.flatMap((message) =>
          message.role === "user" ? message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
        ),
        ["attempt 1", "attempt 2", "attempt 3"]
      )
    }).pipe(
      Effect.provide(
        world({
          script: [uses(add(1, 2)), says("one"), uses(add(1, 2)), says("two"), says("three")],
          person: ["n: first", "n: second"]
        })
      )
    )
  )

  it.scoped("ends exhausted after its last attempt, and failed as soon as that is said", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      const again = Stage.make({
        ...once,
        assert: () => Effect.succeed(Stage.retry("never good")),
        retryPolicy: { maxAttempts: 2 }
      })
      const exhausted = yield* Stage.run(agent, again)
      assert(exhausted._tag === "Exhausted")
      assert.strictEqual(exhausted.reason, "never good")
      assert.deepStrictEqual(
        exhausted.attempts.map(({ retry }) => retry),
        ["never good", undefined]
      )
      assert.strictEqual(
        (yield* Effect.flip(Stage.getOrFail(exhausted))).message,
        "The stage did not succeed (Exhausted after 2 attempts): never good"
      )
      const failed = yield* Stage.run(agent, { ...again, assert: () => Effect.succeed(Stage.fail("hopeless")) })
      assert(failed._tag === "Failed")
      assert.strictEqual(failed.attempts.length, 1)
      assert.strictEqual(yield* Stage.getOrFail(yield* Stage.run(agent, once)), "Completed")
    }).pipe(Effect.provide(world({ script: [says("1"), says("2"), says("3"), says("4")] })))
  )

  it.scoped("lets assert judge a turn that failed", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start({ limits: { modelAttempts: 1 } })
      const end = yield* Stage.run(agent, {
        ...once,
        assert: ({ current }) =>
          Effect.succeed(current.end._tag === "Failed" ? Stage.retry("the model failed") : Stage.ok(current.end._tag)),
        retryPolicy: { maxAttempts: 2 }
      })
      assert(end._tag === "Ok")
      assert.deepStrictEqual(
        end.attempts.map((attempt) => attempt.end._tag),
        ["Failed", "Completed"]
      )
    }).pipe(Effect.provide(world({ script: [{ error: "overloaded" as const }, says("fine")] })))
  )

  it.scoped("stops when its turn is cancelled or halted, without judging or repeating it", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const { agent } = yield* TestAgent.start()
        const stage = Stage.make({
          name: "hang",
          allowedTools: ["hang"],
          act: "hang",
          assert: () => Effect.dieMessage("nothing to judge"),
          retryPolicy: { maxAttempts: 3 }
        })
        const running = yield* Effect.fork(Stage.run(agent, stage))
        yield* Deferred.await(started)
        yield* agent.cancel("user")
        const end = yield* Fiber.join(running)
        assert(end._tag === "Stopped")
        assert.deepStrictEqual(end.end, { _tag: "Cancelled", reason: "user", steps: 1 } as never)
        assert.include((yield* Effect.flip(Stage.getOrFail(end))).message, "cancelled (user)")
      }).pipe(
        Effect.provide(
          world({
            script: [uses({ name: "hang", params: {} }), says("no")],
            onHang: Effect.asVoid(Deferred.succeed(started, undefined))
          })
        )
      )
    })
  )

  it.scoped("lets assert judge an attempt whose time was up", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      yield* Effect.gen(function* () {
        const { agent } = yield* TestAgent.start()
        const running = yield* Effect.fork(Stage.run(agent, { ...once, allowedTools: ["hang"] }))
        yield* Deferred.await(started)
        yield* agent.cancel("timeout")
        const end = yield* Fiber.join(running)
        assert(end._tag === "Ok")
        assert.strictEqual(end.value, "Cancelled")
      }).pipe(
        Effect.provide(
          world({
            script: [uses({ name: "hang", params: {} })],
            onHang: Effect.asVoid(Deferred.succeed(started, undefined))
          })
        )
      )
    })
  )

  it.scoped("cancels its turn and closes its dialog when it is interrupted", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      const running = yield* Effect.fork(Stage.run(agent, once))
      const { requestId } = yield* person.next
      yield* Fiber.interrupt(running)
      assert.isTrue(yield* agent.isIdle)
      assert.deepStrictEqual(yield* person.dismissed, [requestId])
      assert.deepStrictEqual(yield* agent.broker.open, [])
      assert.deepStrictEqual(
        tagged(yield* events, "TurnEnded").map(({ reason }) => reason),
        ["cancelled"]
      )
      assert.deepStrictEqual(tagged(yield* events, "GrantMinted"), [])
      assert.strictEqual((yield* agent.run("still there?"))._tag, "Completed")
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("yes")], person: [TestInteractor.silent] })))
  )

  it.scoped("refuses to run with tools the agent does not have, or without an attempt, and begins nothing", () =>
    Effect.gen(function* () {
      const { agent, events } = yield* TestAgent.start()
      const stage = Stage.make({ ...once, allowedTools: ["add", "deploy"], retryPolicy: { maxAttempts: 0 } })
      const error = yield* Effect.flip(Stage.run(agent, stage))
      assert(error._tag === "StageInvalid")
      assert.strictEqual(
        error.message,
        'Stage "build" cannot be run: the agent has no tool deploy (it has: add, fail, crash, hang); maxAttempts is 0 and must be a whole number from 1.'
      )
      assert.deepStrictEqual(tagged(yield* events, "TurnStarted"), [])
    }).pipe(Effect.provide(world({ script: [] })))
  )

  it.scoped("fails as the agent does when that was shut down", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      yield* agent.shutdown
      assert.strictEqual((yield* Effect.flip(Stage.run(agent, once)))._tag, "AgentStopped")
    }).pipe(Effect.provide(world({ script: [] })))
  )

  it.scoped("asks one after the other, in the order of the proposals", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      yield* Stage.run(agent, once)
      assert.deepStrictEqual(
        (yield* person.shown).map((request) => grantAsked(request).argsSummary),
        ["a=1, b=1", "a=2, b=2", "a=3, b=3"]
      )
      assert.deepStrictEqual(resultsOf(agent), [2, "Permission denied: person did not grant add in this stage", 6])
    }).pipe(
      Effect.provide(world({ script: [uses(add(1, 1), add(2, 2), add(3, 3)), says("done")], person: ["y", "n", "y"] }))
    )
  )
})

describe("a turn that somebody waits for", () => {
  it.scoped("is withdrawn when its owner gives up before it has begun", () =>
    Effect.gen(function* () {
      const { agent, person, events } = yield* TestAgent.start()
      const first = yield* Effect.fork(agent.run("first"))
      const { requestId } = yield* person.next
      const second = yield* Effect.fork(agent.turn("second"))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(second)
      yield* agent.broker.answer(requestId, "test", { decision: "allow", scope: "once" })
      assert.strictEqual((yield* Fiber.join(first))._tag, "Completed")
      assert.deepStrictEqual(
        tagged(yield* events, "TurnStarted").map(({ input }) => input),
        ["first"]
      )
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2)), says("done")], person: [TestInteractor.silent] })))
  )

  it.scoped("leaves the agent idle when it was withdrawn at once", () =>
    Effect.gen(function* () {
      let onMessage = () => {}
      const ids = Id.sequence()
      const { agent, events } = yield* Effect.provideService(TestAgent.start(), Id.IdGenerator, {
        unsafeNext: (prefix) => {
          if (prefix === "msg") onMessage()
          return ids.unsafeNext(prefix)
        }
      })
      // In the moment in which the words are filed: the session is woken, and finds none.
      const turn = yield* Effect.fork(
        Effect.withFiberRuntime<unknown, Agent.AgentStopped | Agent.MessageBlank>((fiber) => {
          onMessage = () => fiber.unsafeInterruptAsFork(FiberId.none)
          return agent.turn("never")
        })
      )
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(turn)))
      onMessage = () => {}
      assert.isTrue(Option.isNone(yield* agent.awaitIdle))
      assert.isTrue(yield* agent.isIdle)
      assert.deepStrictEqual(tagged(yield* events, "TurnStarted"), [])
      assert.strictEqual((yield* agent.run("now"))._tag, "Completed")
    }).pipe(Effect.provide(world({ script: [says("here")] })))
  )

  it.scoped("ends with the agent, whether it had begun or not", () =>
    Effect.gen(function* () {
      const { agent, person } = yield* TestAgent.start()
      const first = yield* Effect.fork(agent.turn("first"))
      yield* person.next
      const second = yield* Effect.fork(agent.turn("second"))
      yield* Effect.yieldNow()
      yield* agent.shutdown
      assert.deepStrictEqual(yield* Fiber.join(first), { _tag: "Cancelled", reason: "shutdown", steps: 1 } as never)
      assert.deepStrictEqual(yield* Fiber.join(second), { _tag: "Cancelled", reason: "shutdown", steps: 0 } as never)
    }).pipe(Effect.provide(world({ script: [uses(add(1, 2))], person: [TestInteractor.silent] })))
  )

  it.scoped("is over, and the agent idle, when its end is told", () =>
    Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      assert.strictEqual((yield* agent.turn("one"))._tag, "Completed")
      assert.isTrue(yield* agent.isIdle)
    }).pipe(Effect.provide(world({ script: [says("1")] })))
  )
})

describe("a stage whose process dies", () => {
  it.scoped("has lost its authority in the next one: its turn goes on, and nobody is asked about its calls", () =>
    Effect.gen(function* () {
      const open = yield* SessionStore.makeMemory
      const store = (pid: number) => open({ pid, host: "here", isAlive: () => false })
      const script = { main: [Family.work("a"), { text: "as far as I came" }] }
      const begun = yield* Deferred.make<void>()
      const dying = yield* Scope.make()
      const persistence = yield* Scope.extend(Persistence.begin(store(1)), dying)
      const before = yield* Scope.extend(Family.start({ script, agent: { persistence } }), dying)
      const authority = () => Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
      const running = yield* Effect.forkDaemon(before.agent.turn("go", { authority }))
      yield* Deferred.await(begun)
      yield* persistence.journal.freeze

      const again = yield* Persistence.resume(store(2), persistence.rootSessionId)
      const after = yield* Family.start({ script, person: ["y"], agent: { persistence: again } })
      yield* after.agent.awaitIdle
      assert.deepStrictEqual(after.worked, [])
      assert.deepStrictEqual(yield* after.person.shown, [])
      assert.deepStrictEqual(
        Family.ofTag(yield* after.events, "PermissionResolved").map(({ granted, method }) => [granted, method]),
        [[false, "stage_grant"]]
      )
      yield* Fiber.interrupt(running)
      yield* Scope.close(dying, Exit.void)
    })
  )
})
