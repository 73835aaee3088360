/** Answers in a process that may lose its sessions at any time: they count when the journal has them. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as RuntimeHost from "../../src/host/RuntimeHost.js"
import * as Answers from "../../src/http/Answers.js"
import * as Stores from "../../src/http/Stores.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import { noFiles } from "../kit/agents.js"
import * as Wait from "../kit/Wait.js"

const toolkit = Toolkit.make(Tool.make("deploy", { success: Schema.String }))

const runtime = AgentRuntime.layer({ toolkit }).pipe(
  Layer.provide([
    toolkit.toLayer({ deploy: () => Effect.succeed("deployed") }),
    noFiles,
    ScriptedModel.layer({ agents: { main: [{ tools: [{ name: "deploy" }] }, { text: "done" }] } })
  ])
)

/** A session that asks, over a store that writes the end of a question when `write` is completed. */
const asking = Effect.gen(function* () {
  const memory = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
  const [begun, write] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const slow: SessionStore.Service = {
    ...memory,
    lock: (root) =>
      Effect.map(memory.lock(root), (lease) => ({
        ...lease,
        append: (drafts) =>
          drafts.some(({ entry }) => entry._tag === "InteractionSettled")
            ? Deferred.succeed(begun, undefined).pipe(
                Effect.zipRight(Deferred.await(write)),
                Effect.zipRight(lease.append(drafts))
              )
            : lease.append(drafts)
      }))
  }
  const host = yield* RuntimeHost.make(slow)
  const stores = yield* Stores.make(host)
  const { agent } = yield* host.create({ id: "one", workspace: "" })
  yield* agent.send("go")
  const [request] = yield* Wait.until(agent.broker.open, (open) => open.length === 1)
  const answers = Answers.make(host, stores, true)
  return { answers, begun, write, requestId: String(request?.requestId) }
}).pipe(Effect.provide(runtime))

describe("an answer and a withdrawal in a process that may lose the session", () => {
  for (const way of ["answer", "cancel"] as const) {
    it.scopedLive(`is acknowledged when the journal has it: ${way}`, () =>
      Effect.gen(function* () {
        const { answers, begun, requestId, write } = yield* asking
        const ann = { name: "ann" }
        const settling =
          way === "answer"
            ? answers.answer(requestId, { answer: "y", isPrivate: true }, ann)
            : answers.cancel(requestId, ann)
        const told = yield* Effect.fork(settling)
        yield* Deferred.await(begun)
        for (let turn = 0; turn < 100; turn++) yield* Effect.yieldNow()
        assert.isTrue(Option.isNone(yield* Fiber.poll(told)))
        yield* Deferred.succeed(write, undefined)
        yield* Fiber.join(told)
      })
    )
  }
})
