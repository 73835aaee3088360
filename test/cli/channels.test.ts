import { assert, describe, it } from "@effect/vitest"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import { userInfo } from "node:os"
import * as FileExchange from "../../src/channel/FileExchange.js"
import * as Program from "../kit/Program.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"

/** Who runs the tests, and so answers without anybody vouching for others. */
const account = userInfo().username

/** A place with the directories of a file channel, and the other side of it. */
const exchange = Effect.gen(function* () {
  const at = yield* Program.place
  yield* at.makeDirectory("channel/requests")
  yield* at.makeDirectory("channel/responses")
  return {
    at,
    channel: `file:${at.path("channel")}`,
    /** The request that is open there. */
    request: Effect.map(at.appearsIn("channel/requests", ".json"), (text) => JSON.parse(text)),
    respond: (requestId: string, answer: unknown) =>
      Effect.provide(Effect.orDie(FileExchange.respond(at.path("channel"), requestId, answer)), NodeContext.layer),
    left: Effect.map(
      Effect.all([at.list("channel/requests"), at.list("channel/responses")]),
      ([requests, responses]) => [...requests, ...responses]
    )
  }
})

describe.concurrent("channels", () => {
  it.scopedLive("race: another process answers through a file what the automatic channel may not", () =>
    Effect.gen(function* () {
      const { at, channel, request, respond, left } = yield* exchange
      const program = yield* at.start(["run", "--json", "--channel", channel, "--channel", "auto", "run touch made"])
      const { requestId, interaction, agentPath } = yield* request
      assert.deepInclude(interaction, { _tag: "Approve", tool: "run_command", argumentsSummary: "touch made" })
      assert.strictEqual(agentPath, "main")
      yield* respond(requestId, "y")
      assert.deepInclude(yield* program.json("InteractionAnswered"), { requestId, by: account })
      const { code } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.isTrue(yield* at.exists("workspace/made"))
      assert.deepStrictEqual(yield* left, [])
    })
  )

  it.scopedLive("race: what one answers at once is withdrawn from the other", () =>
    Effect.gen(function* () {
      const { at, channel, left } = yield* exchange
      const args = ["run", "--channel", channel, "--channel", "auto", "ask me which? [red | green]"]
      assert.deepStrictEqual(yield* at.call(args), { code: 0, stdout: "You answered: red\n", stderr: "" })
      assert.deepStrictEqual(yield* left, [])
    })
  )

  it.scopedLive("keep a request open whose file is answered with nonsense", () =>
    Effect.gen(function* () {
      const { at, channel, request, respond, left } = yield* exchange
      const program = yield* at.start(["run", "--channel", channel, "run touch made"])
      const { requestId } = yield* request
      yield* respond(requestId, { decision: "allow", scope: "forever" })
      const reason = yield* at.appearsIn("channel/responses", ".reason.txt")
      assert.include(reason, requestId)
      assert.isFalse(yield* at.exists("workspace/made"))
      yield* respond(requestId, "c: not now")
      const { code, stdout, stderr } = yield* program.exit
      assert.deepStrictEqual(
        { code, stdout, stderr },
        { code: 0, stdout: "run_command was not run. Tool not executed. User comment: not now\n", stderr: "" }
      )
      assert.deepStrictEqual(yield* left, [])
    })
  )

  it.scopedLive("take their request files back when the program is told to stop", () =>
    Effect.gen(function* () {
      const { at, channel, request, left } = yield* exchange
      const program = yield* at.start(["run", "--channel", channel, "run touch made"])
      yield* request
      yield* program.signal("SIGTERM")
      assert.strictEqual((yield* program.exit).code, 130)
      assert.deepStrictEqual(yield* left, [])
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("deny when the time is up that the environment gives", () =>
    Effect.gen(function* () {
      const { at, channel, left } = yield* exchange
      const { code, stdout } = yield* at.call(["run", "--channel", channel, "run touch made"], {
        env: { ASSENT_PERMISSION_TIMEOUT: "0.1" }
      })
      assert.strictEqual(code, 0)
      assert.match(stdout, /^run_command was not run\. Permission denied/)
      assert.deepStrictEqual(yield* left, [])
    })
  )

  it.scopedLive("are out of the agent's reach, so that it cannot answer itself", () =>
    Effect.gen(function* () {
      const { at, channel, left } = yield* exchange
      for (const directory of ["answers", ".", at.path("workspace", "deep", "answers")]) {
        const inside = yield* at.call(["run", "--channel", `file:${directory}`, "x"])
        assert.strictEqual(inside.code, 2)
        assert.match(inside.stderr, /^assent: .*inside the workspace/)
      }
      assert.deepStrictEqual(yield* at.list("workspace"), [])
      // Outside it is out of reach too, whatever the policy allows.
      const policy = yield* at.write("policy.json", {
        defaultPolicy: "allow",
        guards: { sanitize: { pathScope: false } }
      })
      const response = at.path("channel/responses/req_1.json")
      const model = yield* at.script(
        {
          tools: [
            { name: "write_file", params: { path: response, content: "{}" } },
            { name: "run_command", params: { command: `echo '{}' > ${response}` } },
            { name: "run_command", params: { command: "touch made" } }
          ]
        },
        { text: "done" }
      )
      const { code, stdout } = yield* at.call([
        "run",
        "--json",
        "--channel",
        channel,
        "--policy",
        policy,
        "--model",
        model,
        "x"
      ])
      assert.strictEqual(code, 0)
      const outcomes = Program.events(stdout).flatMap((event) =>
        event._tag === "ToolCallEnded" ? [event.outcome] : []
      )
      assert.strictEqual(outcomes.filter((outcome) => outcome === "succeeded").length, 1)
      assert.isTrue(yield* at.exists("workspace/made"))
      assert.deepStrictEqual(yield* left, [])
    })
  )

  it.scopedLive("ask a webhook with its token, and nothing shows the token", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const receiver = yield* WebhookReceiver.make
      const token = "opaque+webhook/token"
      const program = yield* at.start(["run", "--channel", `webhook:${receiver.url}`, "run touch made; env"], {
        env: { ASSENT_WEBHOOK_TOKEN: token }
      })
      const arrival = yield* receiver.arrival
      assert.strictEqual(arrival.headers["authorization"], `Bearer ${token}`)
      const { requestId } = JSON.parse(arrival.body)
      yield* arrival.reply(WebhookReceiver.json({ requestId, answer: { decision: "allow", scope: "once" } }))
      const { code, stdout, stderr } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.include(stdout, "HOME=")
      assert.notInclude(stdout + stderr, token)
      assert.isTrue(yield* at.exists("workspace/made"))
    })
  )

  it.scopedLive("that nobody listens at deny, and say why", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const { code, stdout } = yield* at.call(["run", "--channel", "webhook:http://127.0.0.1:9/", "run touch made"], {
        env: { ASSENT_PERMISSION_TIMEOUT: "0.3" }
      })
      assert.strictEqual(code, 0)
      assert.match(stdout, /^run_command was not run\. Permission denied/)
      assert.isFalse(yield* at.exists("workspace/made"))
    })
  )
})
