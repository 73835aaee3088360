/** The built command line, killed at random moments: it goes on where it stopped. `npm run soak` does this in full. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Program from "../kit/Program.js"
import * as Saga from "../soak/Saga.js"

const live = (name: string, effect: Effect.Effect<void, never, Scope.Scope>) =>
  it.scopedLive(name, () => effect, 120_000)

describe("a session on the disk", () => {
  live(
    "loses nothing and does nothing twice, when its process is killed ten times",
    Effect.gen(function* () {
      // A moment for each of its processes, spread over what one takes.
      let at = 0
      const random = () => (at += 0.381966) % 1
      let all = Saga.none
      while (all.kills < 10) all = Saga.sum(all, yield* Saga.play(random, 10 - all.kills))
      assert.deepStrictEqual(all.violations, [])
      assert.strictEqual(all.kills, 10)
    })
  )

  live(
    "is told to stop by a signal, and goes on all the same",
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "ask_user", id: "asked", params: { prompt: "Which?" } }] },
        { text: "Good.", expect: { contains: "the left one" } }
      )
      const first = yield* place.start(["run", "--jsonl", "--model", model, "go"])
      const { request } = yield* first.json("InteractionRequest")
      yield* first.signal("SIGTERM")
      assert.strictEqual((yield* first.exit).code, 130)

      const second = yield* place.start(["run", "--jsonl", "--model", model, "--resume", request.sessionId])
      const again = yield* second.json("InteractionRequest")
      assert.strictEqual(again.request.requestId, request.requestId)
      yield* second.tell({ _tag: "Answer", requestId: request.requestId, answer: "the left one" })
      yield* second.json("TurnEnded", { reason: "completed" })
      yield* second.endInput
      assert.strictEqual((yield* second.exit).code, 0)
    })
  )

  live(
    "is run by one process at a time, and the second is told by which",
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "ask_user", params: { prompt: "Which?" } }] },
        { text: "Good." }
      )
      const first = yield* place.start(["run", "--jsonl", "--model", model, "go"])
      const { request } = yield* first.json("InteractionRequest")
      const second = yield* place.call(["run", "--resume", request.sessionId])
      assert.strictEqual(second.code, 2)
      assert.include(second.stderr, `is run by process ${first.pid}`)
      yield* first.signal("SIGKILL")
      yield* first.exit
      const third = yield* place.call(["run", "--jsonl", "--resume", request.sessionId])
      assert.include(third.stdout, request.requestId)
    })
  )

  live(
    "that waits for an answer halts, and is asked the same again",
    Effect.gen(function* () {
      const place = yield* Program.place
      yield* place.write("config/profiles/asker.json", {
        name: "asker",
        description: "asks",
        plugins: ["clarification"]
      })
      const agents = {
        main: [
          { tools: [{ name: "spawn_subagent", id: "spawning", params: { task: "ask", profile: "asker" } }] },
          { text: "It asks." },
          { text: "It has asked." }
        ],
        asker: [{ tools: [{ name: "ask_user", id: "asked", params: { prompt: "Which?" } }] }, { text: "Thanks." }]
      }
      const model = `script:${yield* place.write("family.json", { version: 1, agents })}`
      const policy = yield* place.write("policy.json", { version: 1, whitelist: { tools: ["spawn_subagent"] } })
      const halted = yield* place.call(["run", "--model", model, "--policy", policy, "go"])
      assert.strictEqual(halted.code, 3)
      const line = JSON.parse(halted.stderr.split("\n").find((text) => text.startsWith("{")) ?? "{}")
      assert.deepInclude(line, { _tag: "InteractionRequired", kind: "Ask" })

      const second = yield* place.start(["run", "--jsonl", "--policy", policy, "--continue"])
      const { request } = yield* second.json("InteractionRequest")
      assert.strictEqual(request.requestId, line.requestId)
      yield* second.tell({ _tag: "Answer", requestId: request.requestId, answer: "the left one" })
      yield* second.json("TurnStarted", { agent: "main" })
      yield* second.json("TurnEnded", { agent: "main", reason: "completed" })
      yield* second.endInput
      assert.strictEqual((yield* second.exit).code, 0)
    })
  )

  live(
    "goes on with another model than the one that is gone, when it is told which",
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script({ text: "One." }, { text: "Two." })
      const first = yield* place.call(["run", "--json", "--model", model, "go"])
      const [{ sessionId }] = Program.events(first.stdout) as unknown as [{ readonly sessionId: string }]
      const file = model.slice("script:".length)
      const text = yield* place.read(file)
      yield* place.write(file, "no script")
      const gone = yield* place.call(["run", "--resume", sessionId, "go on"])
      assert.strictEqual(gone.code, 2)
      assert.include(gone.stderr, "is not a script")
      const other = `script:${yield* place.write("other.json", text)}`
      const second = yield* place.call(["run", "--resume", sessionId, "--model", other, "go on"])
      assert.deepStrictEqual([second.code, second.stdout], [0, "Two.\n"])
      assert.strictEqual((yield* place.call(["run", "--continue", "--model", other])).code, 0)
    })
  )
})
