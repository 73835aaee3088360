import { assert, describe, it } from "@effect/vitest"
import * as ChoiceList from "../../../src/tui/terminal/ChoiceList.js"
import * as Display from "../../../src/tui/terminal/Display.js"

const plain = Display.style(false)
const models = ["anthropic/claude-opus-5", "anthropic/claude-haiku-5-5", "openai/gpt-5", "openai/gpt-5-mini"]
const choices = models.map((text) => ({ text, label: text }))
const rows = (typed: string, at = 0, size = { columns: 40, rows: 9 }, of = choices) =>
  ChoiceList.rows({ choices: of, typed, at }, plain, size)

describe("a question's list", () => {
  it("has what begins with the words that are typed, in any order, and keeps the numbers", () => {
    assert.deepStrictEqual(rows("5 claude"), ["›  1. anthropic/claude-opus-5", "   2. anthropic/claude-haiku-5-5"])
    assert.deepStrictEqual(rows("HAI"), ["›  2. anthropic/claude-haiku-5-5"])
    assert.deepStrictEqual(rows("pus"), [])
    assert.deepStrictEqual(rows("字", 0, undefined, [{ text: "a", label: "漢字" }]), ["›  1. 漢字"])
  })

  it("has the one that is named by its number or its whole name first", () => {
    assert.strictEqual(rows("3")[0], "›  3. openai/gpt-5")
    assert.strictEqual(rows("openai/gpt-5-mini")[0], "›  4. openai/gpt-5-mini")
    assert.deepStrictEqual(rows("openai/gpt-5"), ["›  3. openai/gpt-5", "   4. openai/gpt-5-mini"])
  })

  it("finds no letters in the midst of an id", () => {
    const sessions = [
      { text: "ses_17ab", label: "first   ses_17ab" },
      { text: "ses_aaaa", label: "task 17 ses_aaaa" }
    ]
    assert.deepStrictEqual(rows("17", 0, undefined, sessions), ["›  2. task 17 ses_aaaa"])
    assert.deepStrictEqual(rows("ses_1", 0, undefined, sessions), ["›  1. first   ses_17ab"])
  })

  it("shows the rows around the mark where there is no room for all, and how many there are", () => {
    const many = Array.from({ length: 200 }, (_, index) => ({ text: `t${index}`, label: `task ${index} 漢字漢字漢字` }))
    for (const at of [0, 1, 99, 199])
      for (const size of [
        { columns: 20, rows: 1 },
        { columns: 20, rows: 5 },
        { columns: 80, rows: 50 }
      ]) {
        const shown = rows("", at, size, many)
        assert.isAtMost(shown.length, size.rows)
        for (const row of shown) assert.isBelow(Display.width(row), size.columns)
        assert.strictEqual(shown.filter((row) => row.startsWith(`› ${String(at + 1).padStart(3)}. task`)).length, 1)
        if (size.rows > 1) assert.strictEqual(shown.at(-1), `  ${at + 1} of 200`)
      }
  })
})
