import { assert, describe, it } from "@effect/vitest"
import * as Redaction from "../../src/core/Redaction.js"
import * as ToolSummary from "../../src/tool/ToolSummary.js"

const said = (result: unknown) => [ToolSummary.of(result, Redaction.shapesOnly), ToolSummary.fault(result)]

describe("a call, in few words", () => {
  it("is what it is about, then the rest by name", () => {
    const calls: ReadonlyArray<readonly [unknown, string]> = [
      [{ command: "npm test" }, "npm test"],
      [{ timeout: 60, command: "npm test" }, "npm test, timeout=60"],
      [{ path: "a.ts" }, "a.ts"],
      [{ offset: 3, path: "a.ts" }, "a.ts, offset=3"],
      [{ path: "src", pattern: "return" }, "return, path=src"],
      [{ content: "one\ntwo\n", path: "a.ts" }, "a.ts"],
      [{ path: "a.ts", old_text: "x", new_text: "y", replace_all: true }, "a.ts, replace_all=true"],
      [{ plan: "\n## The sum ##\n\n1. mend it" }, "The sum"],
      [{ plan: "#tag is no heading" }, "#tag is no heading"],
      [{ context: "c", questions: [{ text: "Which?", choices: ["a"] }, { text: "Why?" }] }, "Which? / Why?"],
      [{ context: "c", questions: [{ words: "Which?" }] }, 'context=c, questions=[{"words":"Which?"}]'],
      [{ questions: [] }, "[]"],
      // Of no file, they are arguments as others.
      [{ content: "words", to: "ada" }, "content=words, to=ada"],
      [{ path: 3, content: "x" }, "path=3, content=x"],
      [{ profile: "reviewer", task: "look" }, "profile=reviewer, task=look"],
      [{}, ""],
      [null, "null"],
      ["words", "words"]
    ]
    for (const [params, expected] of calls)
      assert.strictEqual(ToolSummary.ofCall(params, Redaction.shapesOnly), expected)
  })

  it("holds no secret, and is short", () => {
    const token = `ghp_${"a".repeat(30)}`
    for (const params of [
      { command: token },
      { command: "x", env: { token } },
      { plan: token },
      { path: "a", mode: token }
    ])
      assert.notInclude(ToolSummary.ofCall(params, Redaction.shapesOnly), token)
    assert.isAtMost(ToolSummary.ofCall({ command: "x".repeat(9_000) }, Redaction.shapesOnly).length, 200)
  })
})

describe("what came of a call, in few words", () => {
  it("is what a person would say", () => {
    const results: ReadonlyArray<readonly [unknown, string, string?]> = [
      [{ exitCode: 0, output: "", durationMs: 3 }, "no output"],
      [{ exitCode: 0, output: "v20.1\n", durationMs: 3 }, "v20.1"],
      [{ exitCode: 2, output: "a\nb\n", durationMs: 3 }, "2 lines", "exit 2"],
      [{ exitCode: null, signal: "SIGTERM", output: "", durationMs: 3 }, "no output", "ended by SIGTERM"],
      [{ exitCode: null, output: "x", durationMs: 3 }, "x", "ended by a signal"],
      ["     1\tone\n     2\ttwo\n[2 more lines; go on with offset 3]", "2 lines"],
      ["     1\tone\n", "1 line"],
      ["     1\tone\n     2\ttwo\n[Lines 1–2 of 1,259. Continue with offset 3.]", "lines 1–2 of 1,259"],
      ["  1258\tone\n  1259\ttwo\n[Lines 1,258–1,259 of 1,259.]", "lines 1,258–1,259 of 1,259"],
      ["     3\t[Lines 1–2 of 9.]", "1 line"],
      ["     3\tone\n[Line 3; more follow. Continue with offset 4.]", "line 3; more follow"],
      ["src/a.ts:3: x\nsrc/a.ts:9: y\nsrc/b.ts:1: z\n", "3 matches in 2 files"],
      ["src/a.ts:3: x", "1 match in 1 file"],
      ["a\nb\n", "2 lines"],
      ["a\nb\n[… 20 characters in 8 lines left out; the whole output is in /x]\ny\nz\n", "11 lines"],
      ["a\n[… 20 characters left out]\nz", "1 line"],
      ["Edited a.ts.", "Edited a.ts."],
      ["", ""],
      [null, "null"],
      [{ value: 3 }, "3"],
      [["a", "b"], '["a","b"]'],
      [{ exitCode: "no", output: 3 }, "exitCode=no, output=3"],
      [{ "1": { selected: 2, text: "a file" } }, "a file"],
      [
        {
          "1": { selected: [1, 2], texts: ["red", "blue"] },
          "2": { value: "soon" },
          "3": { skipped: true },
          "4": { selected: [], texts: [] }
        },
        "red, blue / soon / skipped / none"
      ],
      [{ "1": { selected: 2 } }, '{"selected":2}'],
      [{ "1": { text: "a" }, two: { text: "b" } }, '1={"text":"a"}, two={"text":"b"}'],
      [{ values: { name: "ada", count: 3 } }, "name=ada, count=3"],
      [{ values: { name: "ada" }, more: 1 }, 'values={"name":"ada"}, more=1'],
      [{ cancelled: true, message: "User cancelled." }, "User cancelled."]
    ]
    for (const [result, ...expected] of results)
      assert.deepStrictEqual(said(result), expected.length === 1 ? [...expected, undefined] : expected)
  })

  it("is shown whole beside it, and a long one up to a bound, with how much is left out", () => {
    for (const result of ["x".repeat(16_000), null, 3, { a: ["x".repeat(15_990)] }])
      assert.deepStrictEqual(ToolSummary.shown(result), { result })
    assert.deepStrictEqual(ToolSummary.shown("x".repeat(16_003)), { result: "x".repeat(16_000), leftOut: 3 })
    assert.deepStrictEqual(ToolSummary.shown(["y".repeat(16_000)]), {
      result: `["${"y".repeat(15_998)}`,
      leftOut: 4
    })
    // Half of a character is none.
    const pair = `${"x".repeat(15_999)}\u{1F600}`
    assert.deepStrictEqual(ToolSummary.shown(pair), { result: "x".repeat(15_999), leftOut: 2 })
  })

  it("holds no secret", () => {
    const token = `ghp_${"a".repeat(30)}`
    assert.notInclude(said({ exitCode: 0, output: token })[0], token)
    assert.notInclude(said(token)[0], token)
  })
})
