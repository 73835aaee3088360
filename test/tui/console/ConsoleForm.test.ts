/** A form of typed fields as a person fills it in at a terminal. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as ConsoleChannel from "../../../src/tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as InteractorCall from "../../../src/interaction/InteractorCall.js"
import { type Progress, FormProgress } from "../../../src/interaction/FormProgress.js"
import * as Interaction from "../../../src/interaction/Interaction.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const form = new Interaction.Elicit({
  title: "Where shall it run?",
  fields: [
    { name: "port", type: "integer", title: "Port", required: true, minimum: 1, maximum: 9000, default: 80 },
    { name: "note", type: "string", required: false, description: "For the log." },
    { name: "tier", type: "choice", required: true, choices: ["back", "front"], labels: ["Back", "Front"] }
  ]
})

const open = (interaction: Interaction.Elicit = form) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make({ columns: 80, rows: 60 })
    const screen = yield* Effect.provide(ConsoleScreen.make({ color: false }), terminal.layer)
    const interactor = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
    yield* TestClock.adjust("1 second")
    const progress: Array<Progress> = []
    const request = yield* InteractionSample.request(interaction)
    const asking = yield* Effect.fork(
      Effect.provideService(InteractorCall.ask(interactor, request), FormProgress, (one) =>
        Effect.sync(() => progress.push(one))
      )
    )
    yield* terminal.settle
    yield* TestClock.adjust("250 millis")
    const say = (line: string) => Effect.zipRight(terminal.type(`${line}\n`), TestClock.adjust("250 millis"))
    return {
      asking,
      progress,
      say: (...lines: ReadonlyArray<string>) => Effect.forEach(lines, say, { discard: true }),
      press: (...names: ReadonlyArray<string>) =>
        Effect.zipRight(
          Effect.forEach(names, (name) => terminal.press(name), { discard: true }),
          TestClock.adjust("250 millis")
        ),
      screen: () => terminal.screen().join("\n")
    }
  })

describe("a form at a console", () => {
  it.scoped("is asked field by field, looked over, and sent", () =>
    Effect.gen(function* () {
      const { asking, progress, say, screen } = yield* open()
      assert.include(screen(), "Where shall it run?")
      assert.include(screen(), "Field 1/3 [required]")
      assert.include(screen(), "type a whole number from 1 to 9000; nothing for 80")
      yield* say("", "a note", "2")
      assert.include(screen(), "Is this right?")
      for (const row of ["1. Port: 80", "2. note: a note", "3. tier: Front"]) assert.include(screen(), row)
      assert.isNull(asking.unsafePoll())
      yield* say("")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { port: 80, note: "a note", tier: "front" })
      assert.deepStrictEqual(
        progress.map(({ answer, number }) => [number, answer]),
        [
          [1, undefined],
          [1, { value: "80" }],
          [2, undefined],
          [2, { value: "a note" }],
          [3, undefined],
          [3, { value: "Front" }]
        ]
      )
    })
  )

  it.scoped("says what does not fit, and asks that field again", () =>
    Effect.gen(function* () {
      const { asking, say, screen } = yield* open()
      yield* say("9001")
      assert.include(screen(), "It must be from 1 to 9000.")
      yield* say("8.5")
      assert.include(screen(), "A whole number is expected.")
      yield* say("back")
      assert.include(screen(), "This is the first field.")
      yield* say("skip")
      assert.include(screen(), "This field is required.")
      yield* say("22", "", "", "1", "y")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { port: 22, tier: "back" })
    })
  )

  it.scoped(
    "goes back with what was typed, leaves out, and takes its own words for texts in quotes and as choices",
    () =>
      Effect.gen(function* () {
        const { asking, say, screen } = yield* open()
        yield* say("22", "first", "nonsense")
        // `back` is a choice of the third field, so it is no way back from there.
        yield* say("back", "back")
        assert.include(screen(), "Field 3/3")
        yield* say("front", "2", "back", "23", "skip")
        // From the first field on it goes forward again.
        yield* say("", "2", '"skip"', "")
        assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { port: 23, note: "skip", tier: "front" })
      })
  )

  it.scoped("has choices walked through by arrows, and keeps what stands there", () =>
    Effect.gen(function* () {
      const choices = ["eu", "us", "ap"]
      const { asking, press, say, screen } = yield* open(
        new Interaction.Elicit({
          title: "Where?",
          fields: [
            { name: "first", type: "choice", required: true, choices, labels: ["Europe", "America", "Asia"] },
            { name: "others", type: "choices", required: false, choices },
            { name: "last", type: "choice", required: false, choices, default: "us" },
            { name: "none", type: "choice", required: false, choices }
          ]
        })
      )
      assert.include(screen(), "arrows and Enter, or type a number from 1 to 3, or a choice")
      assert.notInclude(screen(), "›")
      yield* press("down", "down", "return")
      assert.include(screen(), "answer> America")
      assert.include(screen(), "arrows, space and Enter, or type numbers or choices")
      yield* press("down", "space", "down", "down", "space", "return")
      assert.include(screen(), "› 2. us (default)")
      yield* press("return")
      yield* press("return")
      for (const row of ["1. first: America", "2. others: eu, ap", "3. last: us", "4. none: (left out)"])
        assert.include(screen(), row)
      yield* say("1")
      assert.include(screen(), "› 2. America (default)")
      yield* press("up", "return")
      yield* say("")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { first: "eu", others: ["eu", "ap"], last: "us" })
    })
  )

  it.scoped("has no last look at a single field", () =>
    Effect.gen(function* () {
      const { asking, say } = yield* open(
        new Interaction.Elicit({ title: "?", fields: [{ name: "a", type: "boolean", required: true }] })
      )
      yield* say("maybe", "no")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { a: false })
    })
  )

  it.scoped("is cancelled as a whole, at any field and at the last look", () =>
    Effect.gen(function* () {
      for (const lines of [["cancel"], ["22", "cancel"], ["22", "x", "1", "cancel"]]) {
        const { asking, say } = yield* open()
        yield* say(...lines)
        assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionCancelled")
      }
    })
  )

  it.scoped("shows what was refused before, at its field and above", () =>
    Effect.gen(function* () {
      const { screen } = yield* open(
        new Interaction.Elicit({
          title: "?",
          fields: [{ name: "a", type: "string", required: true, default: "x" }],
          problems: [{ field: "a", message: "It is taken." }, { message: "Something is missing." }]
        })
      )
      assert.include(screen(), "It is taken.")
      assert.include(screen(), "Something is missing.")
    })
  )

  it.scoped("closes half-filled when the asker is interrupted", () =>
    Effect.gen(function* () {
      const { asking, say, screen } = yield* open()
      yield* say("22")
      yield* Fiber.interrupt(asking)
      assert.notInclude(screen(), "Field 2/3 [optional]\nanswer>")
      assert.isTrue((screen().split("\n").at(-1) ?? "").startsWith(">"))
    })
  )
})
