/** The built command line, killed at questions of a tool server of 2026. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Runs from "../kit/Runs.js"
import * as ServerKit from "../kit/ServerKit.js"

/** Milliseconds between the question and the end of its process. */
const moments = Array.from({ length: 20 }, (_, i) => (i * 37) % 400)

const play = (moment: number) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const log = place.path("log")
    const { name, ...settings } = ServerKit.modernSettings(log)
    yield* place.write("config/config.json", { mcp_servers: { [name]: settings } })
    // The server is there with the second model call.
    const model = yield* place.script(
      { tools: [{ name: "run_command", params: { command: "sleep 3" } }] },
      { tools: [{ name: "mcp__modern__deploy", params: { to: "prod" } }] },
      { text: "done" }
    )
    const run = ["run", "--jsonl", "--mode", "allow", "--model", model]
    const first = yield* place.start([...run, "go"])
    const { request } = yield* first.json("InteractionRequest")
    yield* Effect.sleep(moment)
    yield* first.signal("SIGKILL")
    yield* first.exit
    assert.isFalse(yield* place.exists("log"), "deployed without an answer")
    const second = yield* place.start([...run, "--resume", request.sessionId])
    const again = yield* second.json("InteractionRequest")
    assert.strictEqual(again.request.requestId, request.requestId)
    yield* second.tell({ _tag: "Answer", requestId: request.requestId, answer: '{"region":"eu"}' })
    yield* second.json("TurnEnded", { reason: "completed" })
    yield* second.endInput
    assert.strictEqual((yield* second.exit).code, 0)
    assert.strictEqual(yield* place.read("log"), 'prod state of prod {"action":"accept","content":{"region":"eu"}}\n')
  })

describe("a question within the result of a call", () => {
  it.scopedLive.each(Runs.some(moments))(
    "is open again under its id %i ms after it, and what it is about is done once",
    (moment) => play(moment),
    120_000
  )
})
