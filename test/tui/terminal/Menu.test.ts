import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as Menu from "../../../src/tui/terminal/Menu.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const plain = Display.style(false)
const labels = ["red", "green", "blue"]
const wide = { columns: 40, rows: 20 }

/** What stands there after these keys, or what was taken by one of them. */
const after = (menu: Menu.Menu, keys: ReadonlyArray<string>, typed = ""): Menu.Marks | string => {
  let marks = Menu.marks(menu)
  for (const name of keys) {
    const outcome = Menu.press(menu, marks, typed, TestTerminal.key(name))
    if (outcome._tag === "Moved") marks = outcome.marks
    if (outcome._tag === "Taken") return outcome.text
  }
  return marks
}

describe("a menu", () => {
  it("has no mark at first, and its Enter takes nothing; arrows lead around to that again", () => {
    const menu = { labels }
    assert.deepStrictEqual(after(menu, ["return"]), { at: undefined, taken: [] })
    assert.strictEqual(after(menu, ["down", "return"]), "1")
    assert.strictEqual(after(menu, ["up", "return"]), "3")
    assert.deepStrictEqual(after(menu, ["down", "down", "down", "down", "return"]), { at: undefined, taken: [] })
    assert.deepStrictEqual(after(menu, ["down", "up", "return"]), { at: undefined, taken: [] })
  })

  it("marks its default, which Enter takes, and is never without a mark then", () => {
    const menu = { labels, preset: 2 }
    assert.strictEqual(after(menu, ["return"]), "2")
    assert.strictEqual(after(menu, ["down", "down", "return"]), "1")
    assert.deepStrictEqual(Menu.rows(menu, Menu.marks(menu), "", plain, wide), [
      "  1. red",
      "› 2. green (default)",
      "  3. blue"
    ])
  })

  it("takes several in their order, else the marked one", () => {
    const menu = { labels, several: true }
    assert.strictEqual(after(menu, ["up", "space", "up", "up", "space", "return"]), "1, 3")
    assert.strictEqual(after(menu, ["down", "down", "return"]), "2")
    assert.strictEqual(after(menu, ["down", "space", "space", "down", "return"]), "2")
    assert.deepStrictEqual(after(menu, ["space", "return"]), { at: undefined, taken: [] })
    assert.deepStrictEqual(Menu.rows(menu, { at: 1, taken: [0] }, "", plain, wide), [
      "  [x] 1. red",
      "› [ ] 2. green",
      "  [ ] 3. blue"
    ])
  })

  it("shows no mark and moves none while words are typed, which count alone", () => {
    const menu = { labels, preset: 1, several: true }
    for (const key of ["down", "up", "space", "return"])
      assert.deepStrictEqual(after(menu, [key], "gr"), Menu.marks(menu))
    assert.deepStrictEqual(Menu.rows(menu, { at: 0, taken: [1] }, "3", plain, wide), [
      "  [ ] 1. red (default)",
      "  [ ] 2. green",
      "  [ ] 3. blue"
    ])
    assert.strictEqual(after(menu, ["return"], " "), "1")
  })

  it("breaks a long choice between words, beside its number, and shows no control characters", () => {
    const menu = { labels: ["keep the old table and copy what is new", "drop\x1b[2J it"] }
    assert.deepStrictEqual(Menu.rows(menu, { at: 0, taken: [] }, "", plain, { columns: 24, rows: 9 }), [
      "› 1. keep the old table",
      "     and copy what is",
      "     new",
      `  2. ${Display.oneLine("drop\x1b[2J it")}`
    ])
  })

  it("shows the marked one whole where there is room, in no more rows and columns than there are", () => {
    const sentence = fc.array(fc.constantFrom("a", "word", "longer", "漢字", "👩‍👩‍👧", "incomprehensibilities"), {
      minLength: 1,
      maxLength: 12
    })
    const menus = fc.array(sentence, { minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(
        menus,
        fc.nat(39),
        fc.boolean(),
        fc.integer({ min: 12, max: 90 }),
        fc.integer({ min: 1, max: 30 }),
        (choices, index, several, columns, rows) => {
          const menu = { labels: choices.map((words) => words.join(" ")), several }
          const at = index % choices.length
          const shown = Menu.rows(menu, { at, taken: [at] }, "", plain, { columns, rows })
          assert.isAtMost(shown.length, rows)
          for (const row of shown) assert.isBelow(Display.width(row), columns)
          const whole = Menu.rows(menu, { at, taken: [at] }, "", plain, { columns, rows: Infinity })
          if (whole.length <= rows) assert.deepStrictEqual(shown, whole)
          const from = shown.findIndex((row) => row.startsWith("›"))
          assert.isAtLeast(from, 0)
          const first = whole.findIndex((row) => row.startsWith("›"))
          const height = Menu.heightOf({ labels: [menu.labels[at] ?? ""], several }, columns)
          if (height < rows && choices.length < 10)
            assert.deepStrictEqual(shown.slice(from, from + height), whole.slice(first, first + height))
        }
      )
    )
  })

  it("answers with numbers of its own, whatever keys come", () => {
    const keys = fc.array(fc.constantFrom("up", "down", "space", "return", "left", "x"), { maxLength: 30 })
    fc.assert(
      fc.property(keys, fc.option(fc.integer({ min: 1, max: 3 })), fc.boolean(), (pressed, preset, several) => {
        const menu = { labels, preset: preset ?? undefined, several }
        const end = after(menu, pressed)
        if (typeof end !== "string") return
        const numbers = end.split(", ").map(Number)
        assert.deepStrictEqual(
          numbers,
          [...new Set(numbers)].sort((one, other) => one - other)
        )
        for (const number of numbers) assert.isTrue(number >= 1 && number <= 3)
        if (!several) assert.lengthOf(numbers, 1)
      })
    )
  })
})
