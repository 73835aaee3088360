/** A node as a layer of a program: it listens while the program runs, and another one follows it. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as ClusterNode from "../../src/cluster/ClusterNode.js"
import * as Api from "../../src/http/Api.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"

describe.runIf(Postgres.isThere)("ClusterNode.layer", () => {
  it.scopedLive(
    "serves while its runtime is there, with tenants by the program's own sign-in",
    () =>
      Effect.gen(function* () {
        const url = Postgres.url(yield* Postgres.schema)
        const callers = Layer.succeed(Api.Authentication, {
          token: () => Effect.succeed({ name: "ann", tenant: "acme", may: ["send", "read"] as const })
        })
        const own = AgentRuntime.layer({ toolkit: Toolkit.empty }).pipe(
          Layer.provide(
            Layer.mergeAll(
              ScriptedModel.layer({ agents: { main: [{ text: "done" }, { text: "done" }] } }),
              FileSystem.layerNoop({}),
              Path.layer
            )
          ),
          Layer.merge(callers)
        )
        const advertise = { host: "127.0.0.1", port: yield* Cluster.freePort }
        const node = ClusterNode.layer({ url, listen: { host: "127.0.0.1", port: 0 }, advertise }).pipe(
          Layer.provide(own)
        )
        let first = ""
        for (const id of ["one", "two"]) {
          const runtime = ManagedRuntime.make(node)
          const served = yield* Effect.promise(() => runtime.runPromise(ClusterNode.ClusterNode))
          assert.notStrictEqual(served.url, first)
          first = served.url
          const call = Cluster.callerOf(served.url, "")
          yield* Cluster.until(call("/readyz"), ({ status }) => status === 200)
          assert.deepStrictEqual((yield* call("/v1/sessions", { id })).body, { sessionId: `acme.${id}` })
          yield* Cluster.asking(call(`/v1/sessions/${id}/messages`, { text: "go" }))
          yield* Cluster.until(call(`/v1/sessions/${id}/turns`), ({ body }) => body.turns[0]?.ended !== undefined)
          assert.strictEqual((yield* call(`/v1/sessions/${id}/mode`, { mode: "plan" })).status, 403)
          yield* Effect.promise(() => runtime.dispose())
          assert.strictEqual((yield* call("/healthz")).status, 0)
        }
      }),
    120_000
  )
})
