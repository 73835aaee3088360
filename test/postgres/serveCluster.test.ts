/** `assent serve --cluster` as a process: two nodes with one directory, and what it says when it cannot start. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"
import * as Program from "../kit/Program.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 180_000)

const env = (url: string, address = "127.0.0.1:1") => ({ ASSENT_DATABASE_URL: url, ASSENT_NODE_ADDRESS: address })

describe.runIf(Postgres.isThere)("assent serve --cluster", { concurrent: true }, () => {
  live("shares sessions of a directory out to two processes, which go on with each other's", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const url = Redacted.value(Postgres.url(yield* Postgres.schema))
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "touch made" } }] },
        { text: "done" }
      )
      const receiver = yield* WebhookReceiver.make
      yield* place.write("config/config.json", { notify: { webhook: receiver.url, after: "1s" } })
      const start = Effect.gen(function* () {
        const address = `127.0.0.1:${yield* Cluster.freePort}`
        const args = ["serve", "--cluster", "--port", "0", "--workspace", place.path("workspace"), "--model", model]
        const program = yield* place.start(args, { env: env(url, address) })
        const [base = "", token = ""] = (yield* program.line((text) => text.startsWith("http://"))).split("/#token=")
        return { program, call: Cluster.callerOf(base, token) }
      })
      const [one, two] = yield* Effect.all([start, start], { concurrency: "unbounded" })
      for (const { call } of [one, two]) yield* Cluster.until(call("/readyz"), ({ status }) => status === 200)
      yield* Cluster.begin(one, "s")
      const request = yield* Cluster.asked(two, "s")
      const call = yield* receiver.arrival
      assert.strictEqual(call.requestId, request)
      assert.include(call.body, '"kind":"Approve","session":"s"')
      yield* call.reply({ status: 204, body: "" })
      const { body } = yield* Cluster.asking(two.call("/v1/sessions/s"))
      // A session that is parked by now has no owner, and then it does not matter who ends.
      const [owner, other] = body.holder?.pid === two.program.pid ? [two, one] : [one, two]
      yield* owner.program.signal("SIGTERM")
      assert.strictEqual((yield* owner.program.exit).code, 0)
      const answer = yield* Cluster.until(
        other.call(`/v1/requests/${request}/answer`, { answer: "y", id: "one" }),
        ({ status }) => status === 200
      )
      assert.strictEqual(answer.body.status, "answered")
      yield* Cluster.until(
        other.call("/v1/sessions/s"),
        ({ body }) => body.status === "idle" || body.agents[0]?.isIdle === true
      )
      assert.isTrue(yield* place.exists("workspace/made"))
    })
  )

  live("has no tools for files and commands without a directory", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const url = Redacted.value(Postgres.url(yield* Postgres.schema))
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "touch made" } }] },
        { text: "done" }
      )
      const program = yield* place.start(["serve", "--cluster", "--port", "0", "--model", model, "--mode", "allow"], {
        env: env(url, `127.0.0.1:${yield* Cluster.freePort}`)
      })
      const [base = "", token = ""] = (yield* program.line((text) => text.startsWith("http://"))).split("/#token=")
      const call = Cluster.callerOf(base, token)
      yield* Cluster.begin({ call }, "s")
      yield* Cluster.until(
        call("/v1/sessions/s"),
        ({ body }) => body.status === "idle" || body.agents[0]?.isIdle === true
      )
      assert.isFalse(yield* place.exists("workspace/made"))
    })
  )

  live("ends with code 2 and a sentence when it cannot start", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const url = Redacted.value(Postgres.url(yield* Postgres.schema))
      const refused = (variables: Readonly<Record<string, string>>, says: string, args: ReadonlyArray<string> = []) =>
        Effect.gen(function* () {
          const { code, stderr } = yield* place.call(["serve", "--cluster", "--port", "0", ...args], { env: variables })
          assert.deepStrictEqual([code, stderr.includes(says)], [2, true], stderr)
        })
      yield* refused({ ASSENT_DATABASE_URL: url }, "Say in ASSENT_NODE_ADDRESS where the other nodes reach this one")
      yield* refused(env(url, "nowhere"), 'ASSENT_NODE_ADDRESS is "nowhere". Give an address and a port')
      yield* refused(env(url, "8.8.8.8:7700"), "8.8.8.8:7700 is a public address")
      const workspace = place.path("workspace")
      yield* refused(env(url), "Say in --model-keys DIR where", ["--own-model-keys"])
      yield* refused(env(url), "There is no directory", ["--model-keys", place.path("none")])
      for (const inside of [workspace, place.path("workspace/..")])
        yield* refused(env(url), "and no session may work in", ["--workspace", workspace, "--model-keys", inside])
      yield* refused({ ASSENT_NODE_ADDRESS: "127.0.0.1:1" }, "A cluster keeps its sessions in PostgreSQL")
      yield* refused(env("/tmp/sessions.db"), "A cluster keeps its sessions in PostgreSQL")
      yield* refused(env("postgres://assent:hunter22@127.0.0.1:1/assent"), "no server answers at that address")
      yield* refused(env(url.replace(/:[0-9a-f]{24}@/, ":hunter22@")), "does not accept this user and password")
      yield* refused(env(url.replace("/postgres?", "/nothing?")), "the server has no such database")
      const alone = yield* place.call(["serve", "--port", "0", "--model-keys", place.path("home")])
      assert.deepStrictEqual([alone.code, alone.stderr.includes("Start it with --cluster")], [2, true], alone.stderr)
    })
  )
})
