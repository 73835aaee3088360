import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as LineEditor from "../../../src/tui/terminal/LineEditor.js"
import { key, keysOf } from "../../kit/TestTerminal.js"

const unicode = FastCheck.string({ unit: "binary", maxLength: 60 })

describe("sanitize", () => {
  it("removes what steers a terminal and keeps what can be read", () => {
    assert.strictEqual(Display.sanitize("a\x1b[31mred\x1b[0m\x1b[2J b\tc\r\nd\re\x07\x7f"), "ared b    c\nd\ne")
  })

  it("does not let a sequence that is never ended swallow the rest", () => {
    assert.strictEqual(Display.sanitize("before \x1b]0;rm -rf ~"), "before 0;rm -rf ~")
    assert.strictEqual(Display.sanitize("before \x1bPrm -rf ~"), "before rm -rf ~")
  })

  it("removes characters that turn the direction of writing", () => {
    assert.strictEqual(Display.sanitize("a\u202eb\u2066c\u200bd"), "abcd")
  })

  it.prop("leaves no control character, whatever comes", [unicode], ([text]) => {
    assert.notMatch(Display.sanitize(text), /[^\P{Cc}\n]/u)
    assert.notMatch(Display.keepStyles(text).replace(/\x1b\[[0-9;]*m/g, ""), /[^\P{Cc}\n]/u)
  })
})

describe("reveal", () => {
  it("shows what would be hidden", () => {
    assert.strictEqual(Display.reveal("a\x1b[8mb\u202ec\x00\x7f\x9b"), "a␛[8mb⟨U+202E⟩c␀␡⟨U+009B⟩")
    assert.strictEqual(Display.oneLine("a\nb"), "a↵b")
  })

  it("leaves emoji alone in words on which nobody decides", () => {
    assert.strictEqual(Display.revealWords("👩‍💻 ❤️ é"), "👩‍💻 ❤️ é")
  })

  it.prop("leaves no control character, and shows every character that could be seen", [unicode], ([text]) => {
    const shown = Display.reveal(text)
    assert.notMatch(shown, /[^\P{Cc}\n]/u)
    for (const letter of text.match(/[a-z0-9]/g) ?? []) assert.include(shown, letter)
  })
})

describe("wrap", () => {
  it("breaks at spaces, and words that are too long anywhere", () => {
    assert.deepStrictEqual(Display.wrap("one two three", 8), ["one two", "three"])
    assert.deepStrictEqual(Display.wrap("abcdefghijk", 4), ["abcd", "efgh", "ijk"])
    assert.deepStrictEqual(Display.wrap("      abcdefgh", 8), ["      ab", "cdefgh"])
    assert.deepStrictEqual(Display.wrap("one  [m]ore  x", 4), ["one ", "[m]o", "re ", "x"])
  })

  it.prop(
    "begins no row that goes on with a blank, and ends with none that is empty",
    [
      FastCheck.array(FastCheck.constantFrom("a", "word", "漢", " ", "  ", "\x1b[31m", "\x1b[0m"), {
        minLength: 1,
        maxLength: 30
      }),
      FastCheck.integer({ min: 2, max: 12 })
    ],
    ([parts, columns]) => {
      const [, ...others] = Display.wrap(parts.join(""), columns).map((row) => row.replace(/\x1b\[[\d;]*m/g, ""))
      for (const row of others) assert.match(row, /^[^ ]/)
    }
  )

  it("lets each row be drawn alone in its colour", () => {
    const red = Display.style(true).red("one two three")
    assert.deepStrictEqual(Display.wrap(red, 8), ["\x1b[31mone two\x1b[0m", "\x1b[31mthree\x1b[0m"])
  })

  it.prop(
    "makes no row too wide and loses nothing but spaces",
    [unicode, FastCheck.integer({ min: 2, max: 30 })],
    ([text, columns]) => {
      const clean = Display.reveal(text)
      const rows = Display.wrap(clean, columns)
      for (const row of rows) assert.isAtMost(Display.width(row), columns)
      if (rows.some((row) => row.includes("�"))) return
      assert.strictEqual(rows.join("").replace(/[ \n]/g, ""), clean.replace(/[ \n]/g, ""))
    }
  )
})

describe("the editor", () => {
  const typed = (editor: LineEditor.LineEditor, ...inputs: ReadonlyArray<ReturnType<typeof key>>) =>
    inputs.reduce(
      (current, input) =>
        LineEditor.match(LineEditor.press(current, input), {
          Edited: ({ editor }) => editor,
          Submitted: ({ editor }) => editor,
          Unused: () => current
        }),
      editor
    )
  const ctrl = (name: string) => key(name, { ctrl: true })
  const meta = (name: string) => key(name, { meta: true })
  const shown = ({ text, cursor }: LineEditor.LineEditor) => `${text.slice(0, cursor)}|${text.slice(cursor)}`

  it("moves and deletes by characters as people see them", () => {
    const family = LineEditor.make("a👩‍💻b")
    assert.strictEqual(shown(typed(family, key("left"), key("left"))), "a|👩‍💻b")
    assert.strictEqual(shown(typed(family, key("left"), key("backspace"))), "a|b")
    assert.strictEqual(shown(typed(family, ctrl("a"), key("delete"), key("delete"))), "|b")
  })

  it("moves and cuts by words and lines, and puts back what was cut", () => {
    const editor = LineEditor.make("git commit --amend")
    assert.strictEqual(shown(typed(editor, meta("b"))), "git commit --|amend")
    assert.strictEqual(shown(typed(editor, ctrl("a"), meta("f"))), "git| commit --amend")
    assert.strictEqual(shown(typed(editor, ctrl("w"))), "git commit |")
    assert.strictEqual(shown(typed(editor, ctrl("w"), ctrl("a"), ctrl("y"))), "--amend|git commit ")
    assert.strictEqual(shown(typed(editor, ctrl("u"))), "|")
    assert.strictEqual(
      shown(typed(editor, ctrl("a"), ctrl("k"), ctrl("y"), ctrl("y"))),
      "git commit --amendgit commit --amend|"
    )
    assert.strictEqual(shown(typed(editor, ctrl("a"), meta("d"))), "| commit --amend")
  })

  it("begins a new line with alt-enter and with a backslash", () => {
    assert.strictEqual(shown(typed(LineEditor.make("one"), meta("return"), ...keysOf("two"))), "one\ntwo|")
    assert.strictEqual(shown(typed(LineEditor.make("one\\"), key("return"), ...keysOf("two"))), "one\ntwo|")
  })

  it("moves between lines before it moves through the history", () => {
    const editor = LineEditor.make("first line\nsecond", ["old"])
    const above = typed(editor, key("up"))
    assert.strictEqual(shown(above), "first |line\nsecond")
    assert.strictEqual(shown(typed(above, key("down"))), "first line\nsecond|")
    assert.strictEqual(shown(typed(above, key("up"))), "old|")
    assert.strictEqual(shown(typed(above, key("up"), key("down"))), "first line\nsecond|")
  })

  it("submits, remembers each text once, and begins anew", () => {
    const once = typed(LineEditor.make("same"), key("return"))
    const twice = typed(once, ...keysOf("same"), key("return"))
    assert.deepStrictEqual(twice.history, ["same"])
    assert.strictEqual(shown(twice), "|")
  })

  it("shows control characters of a text it was given, and takes none from keys", () => {
    const layout = LineEditor.layout(LineEditor.make("a\x1b[2Jb"), { prompt: "> ", columns: 40 })
    assert.deepStrictEqual(layout.rows, ["> a␛[2Jb"])
    assert.strictEqual(LineEditor.insert(LineEditor.make(), "a\x1b\x9b\x00b").text, "ab")
  })

  it.prop(
    "puts back all that was cut or cleared, also long pastes, and also behind a text that was set meanwhile",
    [
      FastCheck.array(FastCheck.constantFrom("a b", "\n", "x\n".repeat(30), "long ".repeat(500)), { maxLength: 5 }),
      FastCheck.array(FastCheck.constantFrom(key("left"), key("up"), key("home"), meta("b")), { maxLength: 6 }),
      FastCheck.constantFrom(ctrl("u"), ctrl("k"), ctrl("w"), meta("d"), meta("backspace"))
    ],
    ([pieces, moves, cut]) => {
      const pasted = pieces.reduce((editor, piece) => LineEditor.paste(editor, piece), LineEditor.make())
      const before = typed(pasted, ...moves)
      const after = typed(before, cut)
      if (after.text === before.text) return
      assert.strictEqual(LineEditor.whole(typed(after, ctrl("y"))), LineEditor.whole(before))
      assert.strictEqual(LineEditor.whole(typed(LineEditor.clear(before), ctrl("y"))), LineEditor.whole(before))
      const other = LineEditor.setText(LineEditor.clear(before), "another: ")
      assert.strictEqual(LineEditor.whole(typed(other, ctrl("y"))), `another: ${LineEditor.whole(before)}`)
    }
  )

  it.prop(
    "keeps its cursor inside the text and its rows inside the terminal, whatever is typed",
    [
      FastCheck.array(
        FastCheck.oneof(
          FastCheck.constantFrom("left", "right", "up", "down", "home", "end", "backspace", "delete", "return").map(
            (name) => key(name)
          ),
          FastCheck.constantFrom("a", "e", "b", "f", "k", "u", "w", "y", "d", "left", "right").map(ctrl),
          FastCheck.constantFrom("b", "f", "d", "return", "backspace").map(meta),
          FastCheck.string({ unit: "grapheme", minLength: 1, maxLength: 1 }).map((text) => ({
            ...key(""),
            input: Option.some(text)
          }))
        ),
        { maxLength: 60 }
      ),
      FastCheck.integer({ min: 2, max: 20 })
    ],
    ([inputs, columns]) => {
      let editor = LineEditor.make("", ["one", "two\nlines"])
      for (const input of inputs) {
        editor = typed(editor, input)
        assert.isAtLeast(editor.cursor, 0)
        assert.isAtMost(editor.cursor, editor.text.length)
        const layout = LineEditor.layout(editor, { prompt: "> ", columns })
        for (const row of layout.rows) assert.isAtMost(Display.width(row), columns)
        assert.isBelow(layout.row, layout.rows.length)
        assert.isBelow(layout.column, columns)
      }
    }
  )
})
