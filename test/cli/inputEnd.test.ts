/** Input that ends while a question waits: nothing is decided, and the session goes on with its question. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const script = [{ tools: [{ name: "run_command", params: { command: "touch made.txt" } }] }, { text: "It was made." }]
const stays =
  /The input ended before this was answered\. The question stays open: assent chat --continue asks again, and assent sessions answer ses_\S+ takes an answer\./

/** The tags of all that is kept of the only session. */
const entriesOf = (at: Program.Place) =>
  Effect.gen(function* () {
    const id = (yield* at.call(["sessions"])).stdout.split(" ")[0] ?? ""
    const { stdout } = yield* at.call(["sessions", "export", id])
    const entries: ReadonlyArray<{ readonly entry: { readonly _tag: string } }> = JSON.parse(stdout).entries
    return { id, text: JSON.stringify(entries) }
  })

/** The question is open, and nothing was made of the end of the input. */
const isOpen = (at: Program.Place) =>
  Effect.gen(function* () {
    const { id, text } = yield* entriesOf(at)
    assert.include(text, '"InteractionRaised"')
    assert.notMatch(text, /"InteractionSettled"|denied|"TurnEnded"|"ToolCallEnded"/)
    assert.notInclude(yield* at.allText, '"outcome":"denied"')
    assert.include((yield* at.call(["sessions", "waiting"])).stdout, id)
    return id
  })

describe.concurrent("input that ends at a question", () => {
  for (const args of [
    ["chat", "--piped-answers"],
    ["run", "--piped-answers", "go"]
  ])
    it.scopedLive(`halts ${args[0]} with a question that stays open, and is answered later through a pipe`, () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const model = yield* at.script(...script)
        const stdin = args[0] === "chat" ? "go\n" : ""
        const ended = yield* at.call([...args, "--model", model], { stdin })
        assert.strictEqual(ended.code, 3)
        assert.match(ended.stdout + ended.stderr, stays)
        assert.notMatch(ended.stdout + ended.stderr, /withdrawn|denied/)
        yield* isOpen(at)
        // A line that was cut off is no answer and no message.
        const again = yield* at.call(["chat", "--piped-answers", "--continue"], { stdin: "y" })
        assert.strictEqual(again.code, 3)
        assert.match(again.stdout, stays)
        assert.notInclude(again.stdout, "Nothing was sent")
        yield* isOpen(at)
        const { code, stdout } = yield* at.call(["chat", "--piped-answers", "--continue"], { stdin: "y\n" })
        assert.strictEqual(code, 0)
        assert.include(stdout, "It was made.")
        assert.isTrue(yield* at.exists("workspace/made.txt"))
      })
    )

  it.scopedLive("takes an answer that is left for it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(...script)
      yield* at.call(["chat", "--piped-answers", "--model", model], { stdin: "go\n" })
      const id = yield* isOpen(at)
      const request = /req_\S+/.exec((yield* at.call(["sessions", "answer", id])).stdout)?.[0] ?? ""
      assert.strictEqual((yield* at.call(["sessions", "answer", id, request, "yes"])).code, 0)
      const { code, stdout } = yield* at.call(["chat", "--continue"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "It was made.")
    })
  )

  it.scopedLive("claims nothing where nothing is kept", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const model = yield* at.script(...script)
      const { code, stdout } = yield* at.call(["chat", "--piped-answers", "--store", ":memory:", "--model", model], {
        stdin: "go\n"
      })
      assert.strictEqual(code, 3)
      assert.include(stdout, "The input ended before this was answered. Assent does not store this session.")
    })
  )

  for (const key of ["", "c\r"])
    it.scopedLive(
      `is Ctrl-D with --plain, ${key === "" ? "at the question" : "at its comment"}; it is asked again`,
      () =>
        Effect.gen(function* () {
          const at = yield* Program.place
          const model = yield* at.script(...script)
          const screen = yield* Pseudo.start(at, ["chat", "--plain", "--model", model], { columns: 300 })
          yield* screen.sees((text) => text.endsWith("you>"))
          yield* screen.type("go\r")
          yield* screen.sees((text) => text.endsWith("answer>"))
          if (key !== "") {
            yield* screen.type(key)
            yield* screen.sees((text) => text.endsWith("comment>"))
          }
          yield* screen.type("\x04")
          assert.strictEqual(yield* screen.exit, 3)
          assert.match(screen.everything(), stays)
          assert.include(screen.everything(), "To resume: assent chat --resume")
          yield* isOpen(at)
          const again = yield* Pseudo.start(at, ["chat", "--plain", "--continue"])
          yield* again.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
          yield* again.type("y\r")
          yield* again.sees((text) => text.includes("It was made."))
          assert.isTrue(yield* at.exists("workspace/made.txt"))
        })
    )
})
