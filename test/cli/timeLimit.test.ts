import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const steps = [{ tools: [{ name: "run_command", params: { command: "touch made" } }] }, { text: "The model went on." }]

/** The seconds that a question shows. A busy machine may skip one. */
const left = (text: string): number => Number(/0:0(\d) left to answer\nanswer>$/.exec(text)?.[1])

const hushed = Effect.sleep("700 millis")

describe.concurrent("a question with a time limit at a terminal", () => {
  it.scopedLive("counts down, and is taken away in words when nobody has answered", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const env = { ASSENT_PERMISSION_TIMEOUT: "6" }
      const screen = yield* Pseudo.start(place, ["chat", "--model", yield* place.script(...steps)], { env })
      yield* screen.sees((text) => text.endsWith(">"))
      yield* screen.type("go\r")
      const first = left(yield* screen.sees((text) => left(text) > 1))
      yield* screen.sees((text) => left(text) < first)
      const shown = yield* screen.sees((text) => text.includes("The model went on."))
      assert.include(shown, "Allow run_command? (closed: nobody answered in time)")
      // Who did not answer is said once, and once more for the call.
      assert.lengthOf(shown.match(/No answer came in time|did not answer within/g) ?? [], 2)
      assert.isFalse(yield* place.exists("workspace/made"))
    })
  )

  it.scopedLive("gives a comment back that was being written in an editor", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      // It is open until the audit has the end of the question.
      const until = `until grep -rqs 'did not answer within' '${place.path("state")}'; do sleep 0.1; done`
      const editor = yield* place.write("editor.sh", `${until}; echo "rather not" > "$1"`)
      const env = { ASSENT_PERMISSION_TIMEOUT: "10", VISUAL: `sh ${editor}` }
      const model = yield* place.script(...steps)
      const screen = yield* Pseudo.start(place, ["chat", "--model", model], { env })
      yield* screen.sees((text) => text.endsWith(">"))
      yield* screen.type("go\r")
      yield* screen.sees((text) => text.endsWith("answer>"))
      yield* hushed
      yield* screen.type("c")
      yield* screen.sees((text) => text.endsWith("comment>"))
      yield* screen.type("\x07")
      yield* screen.sees((text) => text.includes("The model went on.") && text.endsWith("> rather not"))
    })
  )
})
