import { assert, describe, it } from "@effect/vitest"
import { common } from "lowlight"
import * as CodeColors from "../../../src/tui/terminal/CodeColors.js"
import * as DiffLines from "../../../src/tui/terminal/DiffLines.js"
import * as MarkdownStream from "../../../src/tui/terminal/MarkdownStream.js"
import * as Computation from "../../kit/Computation.js"
import * as Runs from "../../kit/Runs.js"

it("colours code of each language, however few were learned ahead", () => {
  CodeColors.learn()
  assert.isAbove(CodeColors.ofCode("let one = 1", "yaml; swift")?.lines.length ?? 0, 0)
  assert.strictEqual(CodeColors.ofCode("const one = 1", "ts")?.lines[0]?.[0]?.text, "const")
  assert.isFalse(CodeColors.learn())
})

/** Code that takes the highlighter minutes, or all of the stack. */
const hostile: ReadonlyArray<readonly [language: string, code: string]> = [
  ["html", "<script>".repeat(3_000)],
  ["html", "<script>\n".repeat(3_000)],
  ["xml", "<style><script>".repeat(1_500)],
  ["js", "`${".repeat(2_000)],
  ["ts", "`${(<a>".repeat(2_000)],
  ["jsx", "<a><b>{`${".repeat(1_500)]
]

describe("code that is made to be hard to colour", () => {
  it.each(hostile)("stays plain, or is coloured in no time: %s", (language, code) => {
    let found: ReturnType<typeof CodeColors.ofCode>
    // Without a limit the first ones take a minute, and the others throw.
    assert.isBelow(
      Computation.least(2_000, () => (found = CodeColors.ofCode(code, language))),
      2_000
    )
    if (found !== undefined) assert.isAbove(found.lines.length, 0)
    // The highlighter is as it was.
    assert.strictEqual(CodeColors.ofCode("const one = 1", "ts")?.lines[0]?.[0]?.text, "const")
    assert.isAbove(CodeColors.ofCode("<b>one</b>", "html")?.lines[0]?.length ?? 0, 1)
  })

  it("is plain to its end in a fence, and what stands below is drawn", () => {
    for (const [language, code] of hostile) {
      const rows = MarkdownStream.rows(`\`\`\`${language}\n${code}\n\`\`\`\n\nbelow **here**\n`, 80, {
        color: true,
        colors: CodeColors.ofCode
      })
      assert.strictEqual(rows.at(-1), "below \x1b[1mhere\x1b[0m", language)
      assert.include(rows.join("").replace(/\x1b\[[\d;]*m|\s/g, ""), code.slice(0, 20).replace(/\s/g, ""))
    }
  }, 60_000)

  it("is not asked for again once a piece was too slow", () => {
    let asked = 0
    const colors = CodeColors.untilSlow((code, language) => {
      asked++
      return CodeColors.ofCode(code, language)
    })
    for (let piece = 0; piece < 10; piece++) colors("<script>".repeat(1_000), "html")
    assert.strictEqual(asked, 1)
  })

  it("is shown whole in a diff, whose other lines keep their colours", () => {
    const lines = ["const one = 1", `<script>${"<script>".repeat(2_000)}`, "const two = 2"]
    const patch = ["--- /dev/null", "+++ b/page.html", "@@ -0,0 +1,3 @@", ...lines.map((line) => `+${line}`), ""].join(
      "\n"
    )
    const computed = Computation.begin()
    const drawn = DiffLines.make(patch, { color: true, colors: CodeColors.ofCode, most: 60 })
    assert.isBelow(computed(), 2_000)
    assert.lengthOf(drawn ?? [], 4)
  })

  it("holds nothing up in any language", () => {
    const parts = ["<", "{", "(", "[", "`${", '"', "'", "/*", "<!--", "#", "a ", "= ", "\\"]
    const pairs = Object.keys(common).flatMap((language) => parts.map((part) => ({ language, part })))
    for (const { language, part } of Runs.some(pairs)) {
      const code = part.repeat(Math.floor(8_000 / part.length))
      const taken = Computation.least(1_000, () => CodeColors.ofCode(code, language))
      assert.isBelow(taken, 1_000, `${language} ${part}`)
    }
  }, 120_000)
})
