/** The questions of a model as a person answers them at a terminal. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as ConsoleChannel from "../../../src/tui/console/ConsoleChannel.js"
import * as ConsolePlain from "../../../src/tui/console/ConsolePlain.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as Interaction from "../../../src/interaction/Interaction.js"
import type { ClarifyAnswers } from "../../../src/interaction/Question.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const questions = [
  { text: "Which?", question_type: "single_choice", choices: ["left", "right"], required: true },
  { text: "Many?", question_type: "multiple_choice", choices: ["red", "green", "blue"], required: true },
  { text: "Why?", question_type: "free_text", choices: [], required: false },
  { text: "Else?", question_type: "free_text", choices: [], required: false }
] as const

const screens = {
  drawn: ConsoleScreen.make({ color: false }),
  plain: ConsolePlain.make({ color: false, echoes: true })
}

const open = (kind: keyof typeof screens) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make({ columns: 80, rows: 60 })
    const screen = yield* Effect.provide(screens[kind], terminal.layer)
    const interactor = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
    yield* TestClock.adjust("1 second")
    const request = yield* InteractionSample.request(new Interaction.Clarify({ context: "Two ways.", questions }))
    const asking = yield* Effect.fork(interactor.request(request))
    yield* terminal.settle
    yield* TestClock.adjust("1 second")
    const say = (...lines: ReadonlyArray<string>) =>
      Effect.forEach(lines, (line) => Effect.zipRight(terminal.type(`${line}\n`), TestClock.adjust("1 second")), {
        discard: true
      })
    const press = (name: string) => Effect.zipRight(terminal.press(name), TestClock.adjust("1 second"))
    return { asking, press, say, screen: () => terminal.screen().join("\n"), raw: terminal.raw }
  })

const answered: ClarifyAnswers = {
  "1": { selected: 2, text: "right" },
  "2": { selected: [1, 3], texts: ["red", "blue"] },
  "3": { value: '"back" is a word' },
  "4": { skipped: true }
}

describe("an earlier answer to a question of a model", () => {
  it.scoped("is marked, or stands there to be changed, when one goes back to it", () =>
    Effect.gen(function* () {
      const { asking, press, say, screen } = yield* open("drawn")
      yield* say("right", "1, 3", '"back"', "back")
      assert.match(screen(), /Why\?[^]*\nanswer> "back"$/)
      // Cleared, for one more step.
      yield* press("escape")
      yield* say("back")
      assert.match(screen(), /Many\?[^]*\n› \[x\] 1. red\n {2}\[ \] 2. green\n {2}\[x\] 3. blue$/)
      yield* say("back")
      assert.match(screen(), /Which\?[^]*\n {2}1. left\n› 2. right$/)
      yield* say("", "", " is a word", "")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, answered)
    })
  )

  it.scoped("is what an empty line means where lines are read, and is said", () =>
    Effect.gen(function* () {
      const { asking, raw, say } = yield* open("plain")
      yield* say("2", "3,1", '"back" is a word', "back", "back", "back")
      for (const words of ["right", "blue, red", '"back" is a word']) assert.include(raw(), `; nothing for ${words}; `)
      yield* say("", "1,3", "", "")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, answered)
    })
  )

  it.scoped("can be another one", () =>
    Effect.gen(function* () {
      const { asking, press, say } = yield* open("drawn")
      yield* say("1", "1", "because", "back")
      yield* press("escape")
      yield* say("back")
      // The first one is taken out, and the second one in.
      for (const name of ["space", "down", "space", "return"]) yield* press(name)
      yield* press("escape")
      yield* say("", "")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, {
        "1": { selected: 1, text: "left" },
        "2": { selected: [2], texts: ["green"] },
        "3": { skipped: true },
        "4": { skipped: true }
      })
    })
  )
})
