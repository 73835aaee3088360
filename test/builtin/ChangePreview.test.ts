import { assert, describe, it } from "@effect/vitest"
import { applyPatch, createTwoFilesPatch } from "diff"
import * as fc from "effect/FastCheck"
import * as Option from "effect/Option"
import * as ChangePreview from "../../src/builtin/ChangePreview.js"
import * as TerminalText from "../../src/core/TerminalText.js"
import type { Change } from "../../src/builtin/WorkspaceFile.js"
import * as Computation from "../kit/Computation.js"
import * as Runs from "../kit/Runs.js"

const change = (before: string | undefined, after: string): Change => ({
  target: { absolute: "/ws/a", shown: "a", info: Option.none() },
  before: before === undefined ? Option.none() : Option.some(before),
  after,
  places: 1,
  encoding: "utf-8",
  isUnread: false,
  keeps: []
})

const shown = (before: string | undefined, after: string) => ChangePreview.ofChange(change(before, after), "edit")

const line = fc.constantFrom("a", "b", "c", "", "  x", "é")
const text = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.boolean())
  .map(([lines, ends]) => lines.join("\n") + (ends ? "\n" : ""))

describe("the preview of a change", () => {
  it("is a diff that makes the one text of the other", () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const { details = "", format } = shown(before, after)
        assert.strictEqual(format, "diff")
        if (before !== after) assert.strictEqual(applyPatch(before, details), after)
      }),
      { numRuns: Runs.of(500) }
    )
  })

  it("is the diff of the whole texts, though it looks only at where they differ", () => {
    const lines = Array.from({ length: 200 }, (_, index) => `line ${index}`)
    for (const at of [0, 1, 2, 3, 4, 100, 196, 197, 198, 199]) {
      for (const put of [["x"], [], ["x", "y"], ["x", "y", "z", "line 7"]]) {
        const changed = lines.toSpliced(at, 1, ...put)
        for (const end of ["", "\n"]) {
          const [before, after] = [lines.join("\n") + end, changed.join("\n") + end]
          const whole = createTwoFilesPatch("a/a", "b/a", before, after, undefined, undefined, { context: 3 })
          assert.strictEqual(shown(before, after).details, whole.replace(/^=+\n/, ""))
        }
      }
    }
  })

  it("finds one changed line in a large file", () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => `this is line ${index}`)
    const after = lines.with(70_000, "changed").join("\n")
    const { details = "", truncated } = shown(lines.join("\n"), after)
    assert.include(details, "@@ -69998,7 +69998,7 @@")
    assert.include(details, "-this is line 70000\n+changed")
    assert.isBelow(details.length, 400)
    assert.strictEqual(truncated, undefined)
  })

  // The bound is on the work, so that the time is short on any machine; what was measured was below 30 ms.
  const large: ReadonlyArray<readonly [string, string | undefined, string]> = [
    ["two megabytes that are all different", "x y\n".repeat(500_000), "y z\n".repeat(500_000)],
    ["two megabytes of a new file", undefined, "x y\n".repeat(500_000)],
    ["one line of five megabytes", "a".repeat(5_000_000), "b".repeat(5_000_000)],
    ["one line of five megabytes of which one character changes", "a".repeat(5_000_000), `${"a".repeat(4_999_999)}b`],
    [
      "thousands of lines that change here and there",
      Array.from({ length: 2_900 }, (_, index) => `${index}`).join("\n"),
      Array.from({ length: 2_900 }, (_, index) => `${index % 2 === 0 ? index : -index}`).join("\n")
    ]
  ]
  for (const [name, before, after] of large) {
    it(`holds nobody up: ${name}`, () => {
      shown("warm", "up")
      let display: ReturnType<typeof shown> | undefined
      const millis = Computation.least(300, () => {
        display = shown(before, after)
      })
      // Generous: other tests may run in the same process.
      assert.isBelow(millis, 300)
      const { details = "", truncated } = display ?? {}
      assert.isAtMost(details.length, 101_000)
      if (after.length > 100_000) {
        assert.strictEqual(truncated, true)
        assert.match(details, /[\d,]+ characters(?: in [\d,]+ lines)? are between, and not shown here/)
        // Its end is shown as well as its beginning.
        assert.strictEqual(details.at(-1), after.at(-1))
      }
    })
  }

  it("shows a command whole up to a hundred thousand characters", () => {
    const command = "echo x; ".repeat(12_500)
    const { details, truncated } = ChangePreview.ofCommand(command, { shown: "." })
    assert.strictEqual(details, command)
    assert.strictEqual(truncated, undefined)
    assert.strictEqual(ChangePreview.ofCommand(`${command}!`, { shown: "." }).truncated, true)
  })

  it("spells out what nobody sees, wherever it stands", () => {
    const unseen =
      "\u200d\u00ad\u034f\u061c\u115f\u1160\u17b4\u180e\u200b\u2028\u2029\u2060\u2064\u2066\u2800\u3164\ufe0f\ufeff\uffa0\ufff9\u{e0001}\u{e0041}\u{e0100}"
    for (const char of unseen) {
      const point = `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`
      assert.include(shown("a\n", `a${char}b\n`).details, `+a${point}b`)
      assert.include(ChangePreview.ofCommand(`rm a${char}b`, { shown: "." }).summary, `rm a${point}b`)
      assert.include(TerminalText.reveal(`a${char}b`), `a${point}b`)
      assert.include(TerminalText.oneLine(`a${char}b`), `a${point}b`)
    }
    // In a chat emoji stay whole.
    assert.strictEqual(TerminalText.sanitize("👩\u200d💻"), "👩\u200d💻")
    assert.strictEqual(TerminalText.revealWords("👩\u200d💻"), "👩\u200d💻")
  })

  it("shows line ends and trailing blanks where nothing else differs", () => {
    const ends = shown("foo\r\nbar\r\n", "foo\nbar\n")
    assert.include(ends.details, "-foo␍\n-bar␍\n+foo\n+bar")
    assert.include(ends.warnings?.join("\n"), "Only line ends differ")
    assert.include(shown("foo\n", "foo  \n").details, "-foo\n+foo··")
    assert.include(shown("foo\t\n", "foo\n").details, "-foo→\n+foo")
    assert.include(shown("\n", "  \n").details, "-\n+··")
    assert.isUndefined(shown("foo\n", "foo  \n").warnings)
    // What differs in its words has its blanks as they are.
    assert.include(shown("foo  \n", "bar  \n").details, "-foo  \n+bar  ")
  })
})
