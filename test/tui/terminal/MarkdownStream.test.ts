import { assert, describe, it } from "@effect/vitest"
import * as Option from "effect/Option"
import * as fc from "fast-check"
import { Lexer } from "marked"
import { readFileSync } from "node:fs"
import * as CodeColors from "../../../src/tui/terminal/CodeColors.js"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as MarkdownBlock from "../../../src/tui/terminal/MarkdownBlock.js"
import * as MarkdownStream from "../../../src/tui/terminal/MarkdownStream.js"
import * as TimeLimit from "../../../src/tui/terminal/TimeLimit.js"
import * as Runs from "../../kit/Runs.js"

const colors = CodeColors.ofCode

/** All rows of a text that arrives in these pieces; after each the open block is drawn, as a screen does it. */
const drawn = (
  pieces: ReadonlyArray<string>,
  { columns = 80, color = false }: { readonly columns?: number; readonly color?: boolean } = {}
): ReadonlyArray<string> => {
  const stream = MarkdownStream.make({ color, colors: color ? colors : undefined })
  const rows: Array<string> = []
  const takeAll = () => {
    for (let more = true; more;) {
      const taken = stream.take(columns)
      rows.push(...taken.rows)
      more = taken.more
    }
  }
  for (const piece of pieces) {
    stream.push(piece)
    takeAll()
    stream.open(columns, 20)
  }
  stream.end()
  takeAll()
  return rows
}

const withoutStyles = (text: string) => text.replace(/\x1b\[[0-9;]*m/g, "")
const lettersOf = (text: string) => withoutStyles(text).replace(/[^\p{L}\p{N}]/gu, "")

const cutAt = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const cuts = [0, ...[...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b), text.length]
  return cuts.slice(1).map((cut, index) => text.slice(cuts[index], cut))
}

const word = fc.constantFrom(
  "one",
  "two",
  "**three**",
  "*four*",
  "`five`",
  "[six](http://x.y)",
  "漢字",
  "é",
  "~~x~~",
  "a_b_c"
)
const sentence = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "))
const block = fc.oneof(
  sentence,
  fc.tuple(fc.integer({ min: 1, max: 4 }), sentence).map(([depth, text]) => `${"#".repeat(depth)} ${text}`),
  fc.array(sentence, { minLength: 1, maxLength: 4 }).map((items) => items.map((item) => `- ${item}`).join("\n")),
  fc
    .array(sentence, { minLength: 1, maxLength: 4 })
    .map((items) => items.map((item, i) => `${i + 1}. ${item}\n   - x`).join("\n")),
  fc.array(sentence, { minLength: 1, maxLength: 3 }).map((items) => items.map((item) => `- ${item}`).join("\n\n")),
  sentence.map((text) => `> ${text}\n> ${text}`),
  sentence.map((text) => `| a | b |\n|---|--:|\n| ${text} | 1 |\n| x | ${text} |`),
  fc.array(sentence, { maxLength: 4 }).map((lines) => ["```ts", ...lines, "", "/* a", "b */", "```"].join("\n")),
  sentence.map((text) => `- item\n  \`\`\`sh\n  ${text}\n  \`\`\`\n- next`),
  fc.constant("---")
)
const document = fc
  .array(fc.tuple(block, fc.constantFrom("\n\n", "\n\n\n", "\n")), { minLength: 1, maxLength: 8 })
  .map((blocks) => blocks.map(([text, end]) => text + end).join(""))

describe("Markdown that arrives in pieces", () => {
  it("looks the same however it was cut, at any width", () => {
    fc.assert(
      fc.property(
        document,
        fc.array(fc.nat(), { maxLength: 30 }),
        fc.constantFrom(24, 40, 80, 120),
        fc.boolean(),
        (text, places, columns, color) => {
          const whole = drawn([text], { columns, color })
          assert.deepStrictEqual(drawn(cutAt(text, places), { columns, color }), whole)
          for (const row of whole) assert.isAtMost(Display.width(row), columns, row)
        }
      ),
      { numRuns: Runs.of(400) }
    )
  })

  it("shows the same while it is open, whether or not a piece ends with a blank", () => {
    const seen = (text: string): ReadonlyArray<string> => {
      const stream = MarkdownStream.make({ color: false })
      const rows: Array<string> = []
      stream.push(text)
      for (let more = true; more;) {
        const taken = stream.take(80)
        rows.push(...taken.rows)
        more = taken.more
      }
      return [...rows, ...stream.open(80, 1_000)].map((row) => row.trimEnd()).filter((row) => row !== "")
    }
    const halfWay = fc
      .tuple(document, fc.nat())
      .map(([text, place]) => text.slice(0, place % (text.length + 1)).trimEnd())
      // A mark alone may be the beginning of a word.
      .filter((text) => /[\p{L}\p{N}.)*`~]$/u.test(text) && !/(?:^|\n) *(?:[-+*]|\d+[.)]?|`+|~+)$/.test(text))
    fc.assert(
      fc.property(halfWay, (text) => assert.deepStrictEqual(seen(`${text} `), seen(text))),
      { numRuns: Runs.of(1_600) }
    )
    assert.deepStrictEqual(seen("Some **words**:\n\n1. One\n2. "), ["Some **words**:", "1. One", "2."])
  })

  it("goes on with a list whose next number has come by half", () => {
    const text = "1. one\n2. two\n\n1. three\n- four\n"
    const whole = drawn([text])
    for (let at = 1; at < text.length; at++)
      assert.deepStrictEqual(drawn([text.slice(0, at), text.slice(at)]), whole, `${at}`)
  })

  it("loses no letter of any text, however long a block is", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(document, fc.string({ unit: "grapheme", maxLength: 80 })), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: Runs.isWhole ? 60 : 20 }),
        fc.constantFrom(1, 7, 40),
        (parts, times, columns) => {
          const text = Display.sanitize(parts.join(" "))
            .replace(/&\w+;/g, "")
            .replace(/<br|^ *\[[^\]]*\]:/gim, "")
            .repeat(times)
          const letters = lettersOf(text)
          const rows = lettersOf(drawn([text], { columns: columns + 8 }).join(""))
          // Languages of fences are not shown, and addresses that are their own text once.
          const left = (of: string) => of.replaceAll("ts", "").replaceAll("sh", "")
          assert.strictEqual(left(rows).length >= left(letters).length - 3 * times, true, text)
        }
      ),
      { numRuns: Runs.of(240) }
    )
  })

  it("leaves nothing in a text that steers a terminal", () => {
    const rows = drawn(
      [Display.sanitize("a \x1b]0;title\x07 b\n\n`\x1b[2J` &#27;[31m &#x1b;[2J [x](\x1b[1mhttp://y)\n")],
      {
        color: true
      }
    )
    assert.notMatch(withoutStyles(rows.join("\n")), /[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
  })

  it("draws each kind of block", () => {
    const text = [
      "# Title",
      "",
      "Some **strong**, *soft* and `code`, see [there](https://a.b/c) or https://d.e now.",
      "",
      "1. one",
      "2. two",
      "   - below",
      "- [x] done",
      "- [ ] open",
      "",
      "> said",
      "> > before",
      "",
      "| n | what |",
      "|--:|------|",
      "| 1 | a word |",
      "",
      "```js",
      "const a = 1",
      "",
      "```",
      "---",
      "end &amp; <b>"
    ].join("\n")
    assert.deepStrictEqual(drawn([text], { columns: 60 }), [
      "# Title",
      "",
      "Some **strong**, *soft* and `code`, see there",
      "(https://a.b/c) or https://d.e now.",
      "",
      "1. one",
      "2. two",
      "   • below",
      "[x] done",
      "[ ] open",
      "",
      "▎ said",
      "▎ ▎ before",
      "",
      "n │ what",
      "──┼───────",
      "1 │ a word",
      "",
      "  const a = 1",
      "  ",
      "─".repeat(59),
      "end & <b>"
    ])
  })

  it("gives a table that has no room as lines", () => {
    const table = "| name | what it is |\n|---|---|\n| alpha | the first letter of them |\n| beta | |\n"
    assert.deepStrictEqual(drawn([table], { columns: 12 }), [
      "name: alpha",
      "what it is:",
      "the first",
      "letter of",
      "them",
      "",
      "name: beta"
    ])
  })

  it("goes on with a long table under the same columns", () => {
    const rows = Array.from({ length: 400 }, (_, index) => `| ${index} | ${"x".repeat(index % 20)} |\n`)
    const table = drawn(["| a | b |\n|---|---|\n", ...rows])
    assert.lengthOf(table, 402)
    assert.deepStrictEqual(new Set(table.slice(2).map((row) => row.indexOf("│"))).size, 1)
    assert.strictEqual(table.filter((row) => row.startsWith("a ")).length, 1)
  })

  it("colours code as if it had come at once, and none that is too long", () => {
    const code = "/** a\n * b */\nconst x = `\n${y}\n` // z\n"
    assert.deepStrictEqual(
      drawn([..."```ts\n", ...code, ..."```\n"], { color: true }),
      drawn([`\`\`\`ts\n${code}\`\`\`\n`], { color: true })
    )
    const long = drawn(["```ts\n", "const x = 1\n".repeat(5_000)], { color: true })
    assert.include(long[0], "\x1b[35mconst")
    assert.strictEqual(long.at(-1), "  const x = 1")
  })

  it("breaks no row of a paragraph, however long, before its end", () => {
    const paragraph = fc
      .array(fc.tuple(word, fc.constantFrom(" ", " ", " ", "\n", " - ", " &amp; ", " 1. ")), {
        minLength: 1_500,
        maxLength: 2_500
      })
      .map((words) => `a${words.map(([text, end]) => text + end).join("")}z`)
      // What would begin a list or another block is none in the midst of a row.
      .map((text) => text.replace(/\n(?=- |1\. )/g, " ").replace(/\n +/g, "\n"))
    fc.assert(
      fc.property(
        paragraph,
        fc.array(fc.nat(), { maxLength: 200 }),
        fc.constantFrom(23, 40, 80, 120),
        (text, places, columns) => {
          const [whole] = new Lexer().lex(text)
          assert.strictEqual(whole?.type, "paragraph")
          const rows = whole === undefined ? [] : MarkdownBlock.rows(whole, { columns, color: true })
          // Within this limit the stream has none of its own: what a slow machine shows as it was written is not meant.
          const inPieces = TimeLimit.run(() => drawn(cutAt(text, places), { columns, color: true }), 60_000)
          assert.deepStrictEqual(Option.getOrNull(inPieces), rows)
        }
      ),
      { numRuns: 10, endOnFailure: true }
    )
  })

  it("shows what is open, and costs no more the more stands above", () => {
    const stream = MarkdownStream.make({ color: false })
    stream.push("# A\n\nwords **that are")
    assert.deepStrictEqual(stream.take(80).rows, ["# A"])
    assert.deepStrictEqual(stream.open(80, 5), ["", "words **that are"])
    stream.push(" strong**")
    assert.deepStrictEqual(stream.take(80), { rows: [], more: false })
    assert.deepStrictEqual(stream.open(20, 5), ["", "words **that are", "strong**"])
    assert.deepStrictEqual(stream.open(8, 2), ["are", "strong**"])
  })

  // What a parser and a highlighter do with the same text, in the same pieces, is the measure. About twice as long was
  // seen; a cost that grows with what stands above would make it tens of times as long.
  it("takes a few times as long as parsing and colouring do, whatever stands above", () => {
    const readme = readFileSync("README.md", "utf8")
    const text = readme.repeat(Math.ceil(400_000 / readme.length))
    const pieces = cutAt(
      text,
      Array.from({ length: 100 }, (_, index) => index * 4_096)
    )
    const time = (work: () => void) => {
      const before = process.cpuUsage()
      work()
      const { system, user } = process.cpuUsage(before)
      return (system + user) / 1_000
    }
    const alone = () =>
      time(() => {
        for (const piece of pieces)
          for (const token of new Lexer().lex(piece))
            if (token.type === "code") colors(token["text"], token["lang"] ?? "")
      })
    const ours = () => time(() => drawn(pieces, { columns: 100, color: true }))
    const least = (measure: () => number) => Math.min(...Array.from({ length: 3 }, measure))
    const [limit, taken] = [least(alone) * 8, least(ours)]
    assert.isAtMost(taken, limit)
  }, 120_000)

  it("hands a long text out in helpings, of which each leaves its turn to others", () => {
    for (const unit of ["- item\n", "- a\n\n  ```xml\n  <script>\n  ```\n", "word ", "a\u0301", "| a | b |\n", "x"]) {
      const text = unit.repeat(33_000 / unit.length)
      const stream = MarkdownStream.make({ color: true, colors: CodeColors.ofCode })
      stream.push(text)
      stream.end()
      let turns = 1
      while (stream.take(100).more) turns++
      assert.isAtLeast(turns, Math.floor(text.length / 16_384), unit)
    }
  })

  it("takes no long time for texts that are made to be hard to parse", () => {
    const hard = [
      ">".repeat(20_000),
      "> ".repeat(10_000),
      "- ".repeat(10_000),
      "[".repeat(20_000),
      "*a ".repeat(10_000),
      "_a".repeat(10_000),
      "`a``b```".repeat(3_000),
      "***a_`[".repeat(3_000),
      "<a ".repeat(8_000),
      "[a](".repeat(5_000),
      "x".repeat(200_000),
      "a\u0301".repeat(10_000),
      `\`\`\`json\n${JSON.stringify(Array.from({ length: 20_000 }, (_, index) => index))}`
    ]
    for (const text of hard) {
      const before = process.cpuUsage()
      const pieces = cutAt(
        text,
        Array.from({ length: 20 }, (_, index) => index * Math.floor(text.length / 20))
      )
      drawn(pieces, { color: true })
      assert.isBelow(
        (process.cpuUsage(before).user + process.cpuUsage(before).system) / 1_000,
        3_000,
        text.slice(0, 20)
      )
    }
  }, 120_000)
})
