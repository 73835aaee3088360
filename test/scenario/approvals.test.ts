/** Calls that a rule reserves for several people or a role, in whole agents: who decides, and what does not. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as HaltChannel from "../../src/channel/HaltChannel.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import type * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { handlers, kit } from "../kit/agents.js"

const addTwice = { script: [{ tools: [{ name: "add", params: { a: 1, b: 2 } }] }, { text: "Done." }] }
const reserved = { approvals: [{ tools: ["add"], quorum: 2 }] } as const

/** Runs an agent whose `add` a rule reserves, before these interactors; yields what was decided. */
const decided = (
  policy: CompiledPolicy.Source<"add">,
  interactors: ReadonlyArray<Interactor.Service>,
  during: (agent: Agent.Agent) => Effect.Effect<unknown> = () => Effect.void
) =>
  Effect.gen(function* () {
    const agent = yield* Agent.startWith(interactors, { events: { capacity: Number.POSITIVE_INFINITY } })
    const running = yield* Effect.fork(agent.run("add"))
    yield* during(agent)
    yield* Fiber.join(running)
    yield* agent.shutdown
    const events: Array<AgentEvent> = []
    for (;;) {
      const batch = yield* agent.events.takeAll
      if (batch._tag === "None") break
      events.push(...batch.value)
    }
    const resolved = events.filter((event) => event._tag === "PermissionResolved")
    assert.strictEqual(resolved.length, 1)
    const started = events.filter((event) => event._tag === "ToolCallStarted").length
    return { events, resolved: resolved[0], started }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      TestAgent.layerRuntime({ toolkit: kit, ...addTwice, policy: Policy.make(policy) }).pipe(Layer.provide(handlers()))
    )
  )

const of = (people: { readonly [name: string]: TestInteractor.Service }) =>
  Object.values(people).map(({ interactor }) => interactor)

describe("approvals", () => {
  it.effect("runs a call when as many have allowed it as the rule demands, and names them", () =>
    Effect.gen(function* () {
      const people = yield* TestInteractor.people({ ada: ["y"], grace: ["once"], linus: [TestInteractor.silent] })
      const { events, resolved, started } = yield* decided(reserved, of(people))
      assert.deepInclude(resolved, { granted: true, method: "user_approved", by: "ada, grace" })
      assert.deepStrictEqual(resolved?._tag === "PermissionResolved" ? resolved.votes : [], [
        { by: "ada", vote: "allow" },
        { by: "grace", vote: "allow" }
      ])
      assert.strictEqual(started, 1)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "InteractionVoted" ? [[event.by, event.missing]] : [])),
        [
          ["ada", "1 more"],
          ["grace", undefined]
        ]
      )
      assert.deepStrictEqual(yield* people.linus.open, [])
    })
  )

  it.effect("denies when one of them denies", () =>
    Effect.gen(function* () {
      const people = yield* TestInteractor.people({
        ada: ["y"],
        grace: ["c: too late today"],
        linus: [TestInteractor.silent]
      })
      const { resolved, started } = yield* decided(reserved, of(people))
      assert.deepInclude(resolved, {
        granted: false,
        method: "user_comment",
        reason: "too late today",
        by: "ada, grace"
      })
      assert.strictEqual(started, 0)
    })
  )

  it.effect("takes the votes of several people through one queue, each once, and tells who has no say", () =>
    Effect.gen(function* () {
      const policy = {
        roles: { ops: ["ada", "grace"] },
        approvals: [{ tools: ["add"], quorum: 2, roles: ["ops"] }]
      } as const
      const queue = yield* QueueChannel.make()
      const told: Array<unknown> = []
      const { resolved } = yield* decided(policy, [queue.interactor], () =>
        Effect.gen(function* () {
          const dialog = yield* queue.take
          if (dialog._tag !== "Opened") return assert.fail("a dialog")
          const { requestId } = dialog.request
          const said = (by: string, line: string) =>
            Effect.map(Effect.either(queue.answerText(requestId, line, by)), (answer) =>
              told.push(Either.isLeft(answer) ? answer.left.message : "taken")
            )
          yield* said("mallory", "y")
          yield* Effect.catchAll(queue.cancel(requestId, "mallory"), ({ _tag }) => Effect.sync(() => told.push(_tag)))
          yield* said("ada", "y")
          yield* said("ada", "y")
          yield* said("ada", "all")
          yield* said("grace", "y")
        })
      )
      assert.deepStrictEqual(told, [
        "The answer of mallory does not count: needs 2 of: ops, and mallory is none of them",
        "VoteRefused",
        "taken",
        "taken",
        "That is not an answer to Approve req_4: Please type one of y, n, once, never, c.",
        "taken"
      ])
      assert.deepInclude(resolved, { granted: true, by: "ada, grace" })
    }).pipe(Effect.scoped)
  )

  it.effect("is not satisfied by --yolo", () =>
    Effect.gen(function* () {
      const { resolved, started } = yield* decided(reserved, [HaltChannel.yolo])
      assert.deepInclude(resolved, { granted: false, method: "unavailable" })
      assert.include(resolved?._tag === "PermissionResolved" ? resolved.reason : "", "needs 2 people (add)")
      assert.strictEqual(started, 0)
    })
  )
})
