/** Nodes whose settings differ: those that came later wait, and say why. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"
import * as Program from "../kit/Program.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 240_000)

const ready = (node: Pick<Cluster.Node, "call">) =>
  Cluster.until(node.call("/readyz"), ({ status }) => status === 200, 60_000)

describe.runIf(Postgres.isThere)("nodes with other settings", () => {
  live("take no part until those that count have ended, and go on with their sessions then", () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make(Postgres.url(yield* Postgres.schema))
      const a = yield* cluster.start("a", { nap: 200 })
      yield* ready(a)
      const b = yield* cluster.start("b", { nap: 200, shards: 100 })
      const { body, status } = yield* b.call("/readyz")
      assert.strictEqual(status, 503)
      assert.match(body.message, /^This node differs from 127\.0\.0\.1:\d+ in its shards\./)
      // What it reads of the database it shows, and it runs nothing.
      yield* Cluster.begin(a, "s")
      const refused = yield* b.call("/v1/sessions/s/messages", { text: "x" })
      assert.deepStrictEqual([refused.status, refused.body.message], [503, body.message])
      const again = yield* cluster.start("a2", { nap: 200 })
      yield* ready(again)
      assert.strictEqual((yield* a.call("/readyz")).status, 200)
      const request = yield* Cluster.asked(a, "s")
      yield* a.signal("SIGTERM")
      assert.strictEqual(yield* a.exit, 0)
      // The other node of the old settings is there still.
      yield* ready(again)
      assert.strictEqual((yield* b.call("/readyz")).status, 503)
      yield* again.signal("SIGKILL")
      yield* ready(b)
      const answer = yield* Cluster.asking(b.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }))
      assert.deepStrictEqual([answer.status, answer.body.status], [200, "answered"])
      yield* Cluster.until(cluster.runs("s"), (runs) => runs.some(({ tool }) => tool === "deploy"), 60_000)
      yield* cluster.gapless
      yield* cluster.audited
    })
  )

  live("are found by a directory that is another one, and not by another name of the same one", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const url = Redacted.value(Postgres.url(yield* Postgres.schema))
      const model = yield* place.script({ text: "done" })
      for (const name of ["shared", "other"]) yield* place.makeDirectory(place.path(name))
      yield* place.link(place.path("shared"), place.path("mounted"))
      const start = (...workspace: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const address = `127.0.0.1:${yield* Cluster.freePort}`
          const args = ["serve", "--cluster", "--port", "0", "--model", model, ...workspace]
          const program = yield* place.start(args, {
            env: { ASSENT_DATABASE_URL: url, ASSENT_NODE_ADDRESS: address }
          })
          const [base = "", token = ""] = (yield* program.line((text) => text.startsWith("http://"))).split("/#token=")
          return { call: Cluster.callerOf(base, token) }
        })
      const shared = yield* Effect.all(
        [start("--workspace", place.path("shared")), start("--workspace", place.path("mounted"))],
        { concurrency: "unbounded" }
      )
      for (const node of shared) yield* ready(node)
      assert.match(yield* place.read("shared/.assent/cluster-id"), /^[0-9a-f]{32}\n$/)
      assert.deepStrictEqual(yield* place.list("shared/.assent"), ["cluster-id"])
      for (const node of [yield* start("--workspace", place.path("other")), yield* start()]) {
        const { body, status } = yield* node.call("/readyz")
        assert.strictEqual(status, 503)
        assert.match(body.message, /in its workspace\./)
      }
    })
  )

  live("are found by each of their files, and when a file changes while they run", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const url = Redacted.value(Postgres.url(yield* Postgres.schema))
      const model = yield* place.script({ text: "done" })
      const start = (...more: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const address = `127.0.0.1:${yield* Cluster.freePort}`
          const program = yield* place.start(["serve", "--cluster", "--port", "0", "--model", model, ...more], {
            env: { ASSENT_DATABASE_URL: url, ASSENT_NODE_ADDRESS: address }
          })
          const [base = "", token = ""] = (yield* program.line((text) => text.startsWith("http://"))).split("/#token=")
          return { program, call: Cluster.callerOf(base, token) }
        })
      const same = yield* Effect.all([start(), start()], { concurrency: "unbounded" })
      for (const node of same) yield* ready(node)
      const differs = (part: string, node: Pick<Cluster.Node, "call">) =>
        Cluster.until(
          node.call("/readyz"),
          ({ body, status }) => status === 503 && String(body.message).includes(`in its ${part}.`),
          60_000
        )
      const policy = yield* place.write("stricter.json", { blacklist: { tools: ["run_command"] } })
      const other = yield* start("--policy", policy)
      yield* differs("policy", other)
      yield* other.program.errorLine((line) => line.includes("in its policy."))
      yield* differs("configuration", yield* start("--mode", "plan"))
      yield* place.write("profiles/reviewer.md", "---\nname: reviewer\ndescription: reviews\n---\nReview.")
      // The files of the person are those of all nodes here: the younger ones have read them first.
      yield* ready(same[0])
    })
  )
})
