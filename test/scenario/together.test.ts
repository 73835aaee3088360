/** Calls of one tool that a model proposes together: what interactors are told of that, and what each call keeps of its own. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import type { ApproveAnswer } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Interactors from "../../src/people/Interactors.js"
import type * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import * as Policy from "../../src/permission/Policy.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { handlers, kit } from "../kit/agents.js"

const add = (a: unknown, b: number) => ({ name: "add", params: { a, b } })

interface Heard {
  readonly summary: string
  readonly batch: InteractionRequest.BatchPlace | undefined
  /** Places and arguments of those to come; none where nothing was handed on. */
  readonly upcoming: ReadonlyArray<readonly [number, string]> | undefined
}

/** A person who allows everything, and what they were told. */
const person = (
  heard: Array<Heard>,
  answer: (summary: string) => ApproveAnswer = () => ({ decision: "allow", scope: "once" })
) =>
  Interactor.make({
    id: "person",
    principal: "ada",
    handlers: {
      Approve: ({ batch, interaction }, options) =>
        Effect.map(options?.upcoming ?? Effect.succeed(undefined), (upcoming) => {
          const summary = interaction.argumentsSummary
          heard.push({
            summary,
            batch,
            upcoming: upcoming?.map(({ index, interaction }) => [index, interaction.argumentsSummary])
          })
          return answer(summary)
        }),
      grantStageTool: Interactor.declines,
      approveSubagentEnvelope: Interactor.declines,
      Clarify: Interactor.declines,
      Ask: Interactor.declines,
      Select: Interactor.declines,
      Confirm: Interactor.declines,
      Elicit: Interactor.declines,
      "Auth.DeviceCode": Interactor.declines,
      "Auth.Password": Interactor.declines
    }
  })

const within = (
  tools: ReadonlyArray<{ readonly name: string; readonly params: unknown }>,
  policy: CompiledPolicy.Source<"add" | "fail"> = {}
) =>
  Effect.provide(
    TestAgent.layerRuntime({
      toolkit: kit,
      script: [{ tools }, { text: "Done." }],
      policy: Policy.make(policy)
    }).pipe(Layer.provide(handlers()))
  )

const run = (
  tools: Parameters<typeof within>[0],
  policy: Parameters<typeof within>[1],
  arrange: (person: Interactor.Service) => Interactor.Service = (person) => person
) =>
  Effect.gen(function* () {
    const heard: Array<Heard> = []
    const agent = yield* Agent.startWith([arrange(person(heard))], { events: { capacity: Number.POSITIVE_INFINITY } })
    yield* agent.run("add")
    return heard
  }).pipe(Effect.scoped, within(tools, policy))

describe("calls of one tool that are proposed together", () => {
  it.effect("are asked one after the other, and each asking tells which are to come", () =>
    Effect.gen(function* () {
      const heard = yield* run([add(1, 1), { name: "fail", params: { why: "x" } }, add(2, 2), add(3, 3)], {})
      const adds = heard.filter(({ batch }) => batch !== undefined)
      const id = adds[0]?.batch?.id
      if (id === undefined) return assert.fail("the first is one of several")
      assert.deepStrictEqual(
        adds.map(({ batch, upcoming }) => [batch, upcoming]),
        [
          [
            { id, index: 1, of: 3 },
            [
              [2, "a=2, b=2"],
              [3, "a=3, b=3"]
            ]
          ],
          [{ id, index: 2, of: 3 }, [[3, "a=3, b=3"]]],
          [{ id, index: 3, of: 3 }, []]
        ]
      )
      // The only call of its tool stands alone.
      assert.deepStrictEqual(
        heard.filter(({ batch }) => batch === undefined).map(({ upcoming }) => upcoming),
        [undefined]
      )
    })
  )

  it.effect("leave out what would not come to a question: what is denied, reserved, allowed or malformed", () =>
    Effect.gen(function* () {
      const heard = yield* run([add(1, 1), add(2, 2), add(3, 3), add(4, 4), add("x", 5), add(6, 6)], {
        guards: { deny: { patterns: ["add(a=2*"] } },
        approvals: [{ patterns: ["add(a=3*"], roles: ["nobody"] }],
        roles: { nobody: [] },
        whitelist: { patterns: ["add(a=4*"] }
      })
      assert.deepStrictEqual(heard[0]?.upcoming, [[6, "a=6, b=6"]])
    })
  )

  it.effect("are not shown beside one that is reserved", () =>
    Effect.gen(function* () {
      const heard = yield* run([add(1, 1), add(2, 2)], { approvals: [{ tools: ["add"] }] })
      assert.deepStrictEqual(
        heard.map(({ batch, upcoming }) => [batch, upcoming]),
        [
          [undefined, undefined],
          [undefined, undefined]
        ]
      )
    })
  )

  it.effect("are told only to somebody who will be asked about the others too", () =>
    Effect.gen(function* () {
      const arrangements: ReadonlyArray<(person: Interactor.Service) => Interactor.Service> = [
        (person) => Interactors.quorum({ of: [person], need: 1 }),
        (person) => Interactors.escalate({ to: [person] }),
        (person) => Interactors.route({ cases: [], otherwise: person })
      ]
      for (const arrange of arrangements) {
        const heard = yield* run([add(1, 1), add(2, 2)], {}, arrange)
        assert.deepStrictEqual(
          heard.map(({ batch, upcoming }) => [batch?.index, upcoming]),
          [
            [1, undefined],
            [2, undefined]
          ]
        )
      }
    })
  )

  it.scoped("say on every wire that they belong together, and are open one at a time", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make({ dialogs: "unbounded" })
      yield* Effect.gen(function* () {
        const agent = yield* Agent.startWith([channel.interactor])
        const running = yield* Effect.fork(agent.run("add"))
        const ids: Array<unknown> = []
        for (const index of [1, 2, 3]) {
          const dialog = yield* Effect.repeat(channel.take, { until: QueueChannel.is("Opened") })
          const { batch, requestId } = InteractionRequest.encode(dialog.request)
          ids.push(batch?.id)
          assert.deepInclude(batch, { index, of: 3 })
          assert.strictEqual((yield* channel.open).length, 1)
          yield* channel.answerText(requestId, index === 2 ? "n" : "y")
        }
        assert.strictEqual(new Set(ids).size, 1)
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(running)))
      }).pipe(within([add(1, 1), add(2, 2), add(3, 3)]))
    })
  )
})
