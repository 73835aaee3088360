import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Redaction from "../../src/core/Redaction.js"
import { OutputFlow, type Shown } from "../../src/turn/OutputFlow.js"

const bare = (text: string) => text.replaceAll(/\x1b\[[\d;:]*m/g, "")
const chunk = (styled: string): Shown => ({ text: bare(styled), styled })

/** What a call that prints these pieces shows, to its end. */
const shown = (pieces: ReadonlyArray<string>): ReadonlyArray<Shown> => {
  const flow = new OutputFlow(Redaction.make([]))
  return [...pieces.map((piece) => flow.push(chunk(piece))), flow.end()].filter(({ text }) => text !== "")
}

describe("OutputFlow", () => {
  it("keeps the styles, wherever the pieces are cut", () => {
    const part = fc.constantFrom("a b\n", "word ", "\x1b[31m", "\x1b[0m", "\x1b[38;5;9m", "gh", "key=")
    fc.assert(
      fc.property(fc.array(fc.array(part, { maxLength: 6 }), { maxLength: 6 }), (pieces) => {
        const all = pieces.map((parts) => parts.join(""))
        const seen = shown(all)
        const styled = seen.map(({ styled, text }) => styled ?? text).join("")
        assert.strictEqual(seen.map(({ text }) => text).join(""), bare(all.join("")))
        assert.isTrue(all.join("").startsWith(styled))
        for (const { styled, text } of seen) if (styled !== undefined) assert.strictEqual(bare(styled), text)
      })
    )
  })

  it("tells of lines that are not shown with the next text that is", () => {
    const flow = new OutputFlow(Redaction.make(["a long secret"]))
    assert.deepStrictEqual(flow.push({ text: "a long", unshown: 3 }), { text: "" })
    assert.deepStrictEqual(flow.push({ text: " way\n", unshown: 2 }), { text: "a long way\n", unshown: 5 })
    assert.deepStrictEqual(flow.push({ text: "on\n" }), { text: "on\n" })
  })

  it("keeps no more than some styles without text, and closes what is open there", () => {
    const flood = Array.from({ length: 40 }, () => "\x1b[1m".repeat(1_000))
    assert.deepStrictEqual(shown(["\x1b[31mred\n", ...flood, "a\n", "\x1b[32mb\n"]), [
      { text: "red\n", styled: "\x1b[31mred\n" },
      { text: "a\n", styled: "\x1b[0ma\n" },
      { text: "b\n" }
    ])
  })

  it("masks a secret that styles take apart, and closes what is open there", () => {
    const token = `ghp_${"a1".repeat(15)}`
    const seen = shown([`\x1b[32mgreen\n`, `${token.slice(0, 9)}\x1b[31m${token.slice(9)}\x1b[0m\n`, "\x1b[33mend\n"])
    assert.deepStrictEqual(seen.map(({ text }) => text).join(""), "green\n[REDACTED]\nend\n")
    const styled = seen.map(({ styled, text }) => styled ?? text).join("")
    assert.include(styled, "\x1b[32mgreen")
    assert.include(styled, "\x1b[0m[REDACTED]")
    assert.notInclude(styled, "\x1b[33m")
  })
})
