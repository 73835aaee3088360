import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as Picker from "../../../src/tui/terminal/Picker.js"
import * as PromptLine from "../../../src/tui/terminal/PromptLine.js"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

/** Fruits for a word behind a `@`. */
const fruits = ["apple", "apricot", "banana", "cherry"]
const offersOf =
  (names: ReadonlyArray<string>): Picker.Offers =>
  (before) => {
    const match = /(?<=^|\s)@(\S*)$/.exec(before)
    const query = match?.[1] ?? ""
    const fitting = names.filter((name) => [...query].every((letter) => name.includes(letter)))
    return match === null
      ? undefined
      : { from: match.index, query, choices: fitting.map((name) => ({ text: `@${name} `, label: name })) }
  }

const setup = (names = fruits, size = { columns: 30, rows: 12 }) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make(size)
    const screen = yield* Effect.provide(ConsoleScreen.make({ color: false }), terminal.layer)
    yield* screen.setCompletion(() => [], offersOf(names))
    yield* TestClock.adjust("1 second")
    return { terminal, screen }
  })

describe("a list below the prompt", () => {
  it.scoped("opens with its word, follows it, and gives what is marked on tab and on Enter", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* terminal.type("a @")
      assert.deepStrictEqual(terminal.screen(), ["> a @", "› apple", "  apricot", "  banana", "  cherry"])
      assert.deepStrictEqual(terminal.cursor(), { row: 0, column: 5, visible: true })
      yield* terminal.type("ap")
      assert.deepStrictEqual(terminal.screen(), ["> a @ap", "› apple", "  apricot"])
      yield* terminal.press("down")
      yield* terminal.type("\t")
      assert.deepStrictEqual(terminal.screen(), ["> a @apricot"])
      yield* terminal.type("and @")
      yield* terminal.press("up")
      assert.strictEqual(terminal.screen().at(-1), "› cherry")
      yield* terminal.press("n", { ctrl: true })
      yield* terminal.type("\n")
      assert.deepStrictEqual(terminal.screen(), ["> a @apricot and @apple"])
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "a @apricot and @apple " }))
    })
  )

  it.scoped("never keeps a line from being sent whose word is whole, or fits by its letters only", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup(["apple/", "apple/x", "cherry"])
      for (const line of ["see @apple", "see @apple/", "ask @lp", "mail me@example", "@nobody"]) {
        yield* terminal.type(`${line}\n`)
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: line }))
      }
    })
  )

  it.scoped("is closed by escape until the next word, and by moving away; a history has no list", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* terminal.type("@a")
      yield* terminal.press("escape")
      assert.deepStrictEqual(terminal.screen(), ["> @a"])
      yield* terminal.type("p")
      assert.deepStrictEqual(terminal.screen(), ["> @ap"])
      yield* TestClock.adjust("1 second")
      yield* terminal.type(" @b")
      assert.deepStrictEqual(terminal.screen(), ["> @ap @b", "› banana"])
      yield* terminal.press("left")
      assert.deepStrictEqual(terminal.screen(), ["> @ap @b"])
      yield* terminal.press("c", { ctrl: true })
      yield* terminal.type("x @c")
      yield* terminal.press("c", { ctrl: true })
      assert.deepStrictEqual(terminal.screen(), [">"])
      yield* terminal.type("one\n")
      yield* terminal.type("two @ban\n\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "one" }))
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "two @banana " }))
      yield* terminal.press("up")
      yield* terminal.press("backspace")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "two @banana")
      yield* terminal.press("escape")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "one")
    })
  )

  it.scoped("shows the end of what is too wide, and a part of what is too much, around the mark", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 30 }, (_, index) => `a/very/long/directory/name/file${index}.ts`)
      const { terminal } = yield* setup(many)
      yield* terminal.type("@")
      for (let time = 0; time < 10; time++) yield* terminal.press("down")
      assert.deepStrictEqual(terminal.screen(), [
        "> @",
        "  …ng/directory/name/file8.ts",
        "  …ng/directory/name/file9.ts",
        "› …/name/file10.ts (11 of 30)",
        "  …g/directory/name/file11.ts"
      ])
      for (const row of terminal.screen()) assert.isBelow(Display.width(row), 30)
    })
  )

  it.scoped("is drawn anew when there is more to pick, and the mark stays", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup([])
      yield* terminal.type("@")
      assert.deepStrictEqual(terminal.screen(), ["> @"])
      yield* screen.setCompletion(() => [], offersOf(["apple", "banana"]))
      assert.deepStrictEqual(terminal.screen(), ["> @", "› apple", "  banana"])
      yield* terminal.press("down")
      yield* screen.setCompletion(() => [], offersOf(fruits))
      assert.strictEqual(terminal.screen()[2], "› apricot")
    })
  )

  it("takes no letter from anybody: what is typed is what stands there", () => {
    const line = fc.array(fc.constantFrom(..."ab@p le"), { maxLength: 20 }).map((letters) => letters.join(""))
    fc.assert(
      fc.property(line, (text) => {
        const draft = PromptLine.make()
        draft.setCompletion(() => [], offersOf(fruits))
        for (const input of TestTerminal.keysOf(text)) draft.press(input)
        assert.strictEqual(draft.text(), text)
      })
    )
  })
})

describe("a question with a list", () => {
  const choices = fruits.map((name) => ({ text: `the ${name}`, label: name }))
  const asked = (keys?: ReadonlyMap<string, ReadonlyArray<string>>) =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const asking = yield* Effect.forkScoped(
        screen.dialog("Which?", (ask) =>
          ask({ lines: ["one of them"], label: "fruit> ", choices, keys, followUp: true })
        )
      )
      yield* TestClock.adjust("2 seconds")
      return { answer: Fiber.join(asking), terminal }
    })

  it.scoped("gives what is marked, after arrows and letters", () =>
    Effect.gen(function* () {
      const { answer, terminal } = yield* asked()
      const above = ["Which?", "│ one of them"]
      const all = [" 1. apple", " 2. apricot", " 3. banana", " 4. cherry"]
      assert.deepStrictEqual(terminal.screen(), [
        ...above,
        "fruit>",
        ...all.map((row, at) => (at === 0 ? "› " : "  ") + row)
      ])
      yield* terminal.press("down")
      yield* terminal.press("down")
      assert.deepStrictEqual(terminal.screen(), [
        ...above,
        "fruit>",
        ...all.map((row, at) => (at === 2 ? "› " : "  ") + row)
      ])
      yield* terminal.type("ap")
      assert.deepStrictEqual(terminal.screen(), [...above, "fruit> ap", "›  1. apple", "   2. apricot"])
      yield* terminal.press("up")
      yield* terminal.type("\n")
      assert.strictEqual(yield* answer, "the apricot")
      assert.deepStrictEqual(terminal.screen(), [...above, "fruit> the apricot", ">"])
    })
  )

  it.scoped("takes words that fit nothing as they are", () =>
    Effect.gen(function* () {
      const { answer, terminal } = yield* asked()
      yield* terminal.type("durian")
      assert.deepStrictEqual(terminal.screen(), ["Which?", "│ one of them", "fruit> durian"])
      yield* terminal.type("\n")
      assert.strictEqual(yield* answer, "durian")
    })
  )

  it.scoped("has the whole list again when ctrl-c has cleared what was typed, and a number answers by itself", () =>
    Effect.gen(function* () {
      const { answer, terminal } = yield* asked(new Map([["3", []]]))
      yield* terminal.type("che")
      yield* terminal.press("c", { ctrl: true })
      assert.strictEqual(terminal.screen().at(-1), "   4. cherry")
      yield* TestClock.adjust("1 second")
      yield* terminal.type("3")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* answer, "3")
    })
  )
})
