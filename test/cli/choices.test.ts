/** The choices of a model's questions, at a terminal: by arrows, by numbers and by words. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const [up, down] = ["\x1b[A", "\x1b[B"]
const hushed = Effect.sleep("700 millis")

interface Asked {
  readonly text: string
  readonly question_type: "single_choice" | "multiple_choice" | "free_text"
  readonly choices?: ReadonlyArray<string>
  readonly required?: boolean
  readonly default_choice?: number
}

const colours = ["red", "green, as grass is", "cancel"]

/** A chat at the first of these questions, and what the model was told at their end. */
const begin = (size: { readonly columns: number; readonly rows?: number }, ...questions: ReadonlyArray<Asked>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const ask = { name: "request_clarification", params: { context: "before we start", questions } }
    const model = yield* place.script({ tools: [ask] }, { text: "That is all." })
    const screen = yield* Pseudo.start(place, ["chat", "--model", model], size)
    yield* screen.sees((text) => /^>/m.test(text))
    yield* screen.type("go\r")
    yield* screen.sees((text) => text.includes("answer>"))
    yield* hushed
    const press = (...keys: ReadonlyArray<string>) => screen.type(keys.join(""))
    const answers = Effect.gen(function* () {
      yield* screen.sees((text) => text.includes("That is all."))
      const id = (yield* place.call(["sessions"])).stdout.split(" ")[0] ?? ""
      const { stdout } = yield* place.call(["sessions", "export", id])
      const settled = /"answer":\s*(\{(?:[^{}]|\{[^{}]*\})*\})/.exec(JSON.stringify(JSON.parse(stdout)))?.[1] ?? "{}"
      const given: { readonly [number: string]: unknown } = JSON.parse(settled)
      return given
    })
    return { answers, press, screen }
  })

describe.concurrent("the choices of a model's question", () => {
  for (const columns of [80, 40]) {
    it.scopedLive(`are marked by arrows and taken by Enter, in ${columns} columns`, () =>
      Effect.gen(function* () {
        const { answers, press, screen } = yield* begin(
          { columns },
          { text: "Which colour?", question_type: "single_choice", choices: colours },
          { text: "And which ones?", question_type: "multiple_choice", choices: colours },
          { text: "And now?", question_type: "single_choice", choices: colours, default_choice: 2 },
          { text: "In words?", question_type: "free_text" }
        )
        const first = yield* screen.sees((text) => text.includes("1. red"))
        assert.notInclude(first, "›")
        yield* press("\r")
        yield* screen.sees((text) => text.includes("Please choose from 1 to 3."))
        yield* hushed
        yield* press(down, down)
        yield* screen.sees((text) => text.includes("› 2. green"))
        yield* press(down)
        // The number goes to the model's question, not the word to the dialog.
        yield* screen.sees((text) => text.includes("› 3. cancel"))
        yield* press("\r")
        yield* screen.sees((text) => text.includes("answer> cancel") && text.includes("[ ] 1. red"))
        yield* hushed
        yield* press(down, " ", up, up, " ")
        yield* screen.sees((text) => text.includes("[x] 1. red") && text.includes("› [x] 3. cancel"))
        yield* press("\r")
        yield* screen.sees((text) => text.includes("› 2. green, as grass is (default)"))
        yield* hushed
        yield* press("\r")
        yield* screen.sees((text) => text.includes("In words?") && text.endsWith("answer>"))
        yield* hushed
        yield* press("as you ", "like", "\r")
        assert.deepStrictEqual(yield* answers, {
          "1": { selected: 3, text: "cancel" },
          "2": { selected: [1, 3], texts: ["red", "cancel"] },
          "3": { selected: 2, text: "green, as grass is" },
          "4": { value: "as you like" }
        })
      })
    )

    it.scopedLive(`give way to what is typed, a number or a name, in ${columns} columns`, () =>
      Effect.gen(function* () {
        const { answers, press, screen } = yield* begin(
          { columns },
          { text: "Which colour?", question_type: "single_choice", choices: colours, default_choice: 2 },
          { text: "And which?", question_type: "single_choice", choices: colours },
          { text: "And which ones?", question_type: "multiple_choice", choices: ["red", "green", "blue"] },
          { text: "Any more?", question_type: "single_choice", choices: colours, required: false }
        )
        yield* press(down, "Red")
        yield* screen.sees((text) => text.includes("answer> Red") && !text.includes("›"))
        yield* press("\r")
        yield* screen.sees((text) => text.includes("And which?"))
        yield* hushed
        yield* press("2")
        yield* screen.sees((text) => text.includes("And which ones?"))
        yield* hushed
        yield* press(down, " ", "3, green", "\r")
        yield* screen.sees((text) => text.includes("Any more?"))
        yield* hushed
        yield* press(down, "\x1b")
        yield* screen.sees((text) => text.includes("Any more?") && !text.includes("›"))
        yield* hushed
        yield* press("\r")
        assert.deepStrictEqual(yield* answers, {
          "1": { selected: 1, text: "red" },
          "2": { selected: 2, text: "green, as grass is" },
          "3": { selected: [3, 2], texts: ["blue", "green"] },
          "4": { skipped: true }
        })
      })
    )

    it.scopedLive(`are more than there are rows, and each can be reached and read, in ${columns} columns`, () =>
      Effect.gen(function* () {
        const choices = Array.from(
          { length: 40 },
          (_, index) => `plan ${index + 1}, which has a name that is longer than forty columns (${index + 1}.)`
        )
        const { answers, press, screen } = yield* begin(
          { columns, rows: 16 },
          { text: "Which plan?", question_type: "single_choice", choices }
        )
        const before = yield* screen.sees((text) => text.includes("40 choices"))
        assert.include(before, "Which plan?")
        assert.include(before, " 1. plan 1,")
        yield* press(up)
        const last = yield* screen.sees((text) => text.includes("› 40. plan 40,"))
        assert.match(last, /\(40\.\)/)
        assert.include(last, "40 of 40")
        yield* press(...Array.from({ length: 20 }, () => up))
        const middle = yield* screen.sees((text) => text.includes("› 20. plan 20,"))
        assert.match(middle, /\(20\.\)/)
        assert.include(middle, "Which plan?")
        yield* press("\r")
        assert.deepStrictEqual(yield* answers, { "1": { selected: 20, text: choices[19] } })
        assert.include(screen.everything(), "40. plan 40,")
      })
    )
  }
})
