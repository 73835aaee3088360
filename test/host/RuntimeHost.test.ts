import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Origin from "../../src/core/Origin.js"
import * as RuntimeHost from "../../src/host/RuntimeHost.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import { noFiles } from "../kit/agents.js"

const runtime = AgentRuntime.layer({ toolkit: Toolkit.empty }).pipe(
  Layer.provide([noFiles, ScriptedModel.layer({ agents: { main: [{ text: "done" }] } })])
)

describe("a host over a program's runtime", () => {
  it.scopedLive("ends the agent of a session that it closes, and no other", () =>
    Effect.gen(function* () {
      const store = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
      const host = yield* RuntimeHost.make(store)
      const closed = yield* host.create({ id: "one", workspace: "" })
      const left = yield* host.create({ id: "two", workspace: "" })
      yield* host.close("one")
      yield* closed.agent.done
      assert.strictEqual((yield* left.agent.run("go"))._tag, "Completed")
      assert.deepStrictEqual(
        (yield* host.live).map(({ id }) => id),
        ["two"]
      )
    }).pipe(Effect.provide(runtime))
  )

  it.scopedLive("tells its model whose session calls", () =>
    Effect.gen(function* () {
      const roots: Array<string> = []
      const scripted = ScriptedModel.make({ agents: { main: [{ text: "done" }] } })
      const model: Model.Service = {
        ...scripted,
        stream: (request) =>
          Stream.unwrap(
            Effect.map(Origin.current, ({ rootSessionId }) => {
              roots.push(rootSessionId)
              return scripted.stream(request)
            })
          )
      }
      const layer = Layer.provide(AgentRuntime.layer({ toolkit: Toolkit.empty }), [noFiles, Model.layer(model)])
      yield* Effect.gen(function* () {
        const store = Context.get(yield* Layer.build(SessionStore.layerMemory), SessionStore.SessionStore)
        const host = yield* RuntimeHost.make(store)
        for (const id of ["acme.one", "two"]) yield* (yield* host.create({ id, workspace: "" })).agent.run("go")
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(roots, ["acme.one", "two"])
    })
  )
})
