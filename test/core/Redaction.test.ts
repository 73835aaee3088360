import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import * as Redaction from "../../src/core/Redaction.js"

const declared = "correct horse battery"
const tokens = [
  `sk-${"a1B2".repeat(8)}`,
  `ghp_${"a1B2".repeat(8)}`,
  `github_pat_${"a1_2".repeat(8)}`,
  `AIza${"a1-2".repeat(8)}`,
  `xoxb-${"a1-2".repeat(4)}`,
  "AKIAABCDEFGHIJKLMNOP",
  `glpat-${"a1_2".repeat(6)}`,
  "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4"
]
const redactor = () => Redaction.make([Redacted.make(declared), "hunter2"])

/** The parts of a secret that give it away. */
const core = (secret: string): string => secret.slice(-12)

const through = (self: Redaction.Redactor, pieces: ReadonlyArray<string>): string => {
  const flow = self.flow()
  return [...pieces.map((piece) => flow.push(piece)), flow.end()].join("")
}

const cut = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length] ?? 1
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 })

describe("Redaction", () => {
  it("masks declared secrets and token shapes in texts and values", () => {
    const self = redactor()
    for (const secret of [declared, "hunter2", ...tokens]) {
      assert.strictEqual(self.text(`a ${secret} b`), "a [REDACTED] b")
      assert.deepStrictEqual(self.value({ [secret]: [secret, { deep: `${secret}` }] }), {
        "[REDACTED]": ["[REDACTED]", { deep: "[REDACTED]" }]
      })
    }
    assert.strictEqual(self.text("Authorization: Bearer abcdefghijklmnop"), "Authorization: Bearer [REDACTED]")
  })

  it("gives back the very value in which nothing was masked", () => {
    const value = { a: ["b", 1, null, true], c: undefined }
    assert.strictEqual(redactor().value(value), value)
  })

  it("masks a secret inside JSON text, where it is escaped", () => {
    const secret = 'quo"ted\\secret'
    assert.notInclude(Redaction.make([secret]).text(JSON.stringify({ secret })), "ted")
  })

  it("a text without secrets flows unchanged, however it is cut, and nothing waits for long", () =>
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z ,.\n-]*$/), sizes, (text, sizes) => {
        fc.pre(redactor().text(text) === text)
        assert.strictEqual(through(redactor(), cut(text, sizes)), text)
      })
    ))

  it("plain words are shown at once", () => {
    const flow = Redaction.make().flow()
    for (const piece of ["three", " gifts", " for s", "gh", "eye", "Bear", ", x"]) {
      assert.strictEqual(flow.push(piece), piece)
    }
    assert.strictEqual(flow.end(), "")
  })

  it("a secret is masked however it is cut, and what stands around it is not", () =>
    fc.assert(
      fc.property(
        fc.constantFrom(declared, "hunter2", ...tokens, `Bearer ${"a1b2".repeat(5)}`),
        fc.constantFrom("", "a ", "cor", "corr ", "x\n", "s", "hunter", "Bearer"),
        fc.constantFrom("", " b", ", and on", "\n", "!correct", '"}', ...tokens.map((token) => ` ${token}!`)),
        sizes,
        (secret, before, end, sizes) => {
          const text = `${before.endsWith("\n") || before === "" ? before : `${before} `}${secret}${end}`
          const shown = through(redactor(), cut(text, sizes))
          for (const hidden of [secret, ...tokens]) assert.notInclude(shown, core(hidden))
          assert.include(shown, "[REDACTED]")
          assert.isTrue(shown.startsWith(before.slice(0, 3)), shown)
          // Of a token, its hint may have been shown before it was one.
          assert.isTrue(shown.endsWith(redactor().text(end) === end ? end : "[REDACTED]!"), shown)
        }
      ),
      { numRuns: 2000 }
    ))

  it("a run that goes on for ever is not kept for ever", () => {
    const flow = Redaction.make().flow()
    let shown = 0
    for (let i = 0; i < 2_000; i++) shown += flow.push("sk-_".repeat(10)).length
    assert.isAbove(shown, 0)
  })
})
