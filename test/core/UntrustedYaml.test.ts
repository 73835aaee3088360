import { assert, describe, it } from "@effect/vitest"
import * as Yaml from "yaml"
import * as UntrustedYaml from "../../src/core/UntrustedYaml.js"
import * as Computation from "../kit/Computation.js"

const reasonOf = (text: string): string => UntrustedYaml.textRefusal(text)?.reason ?? "taken"

const indented = (levels: number, word: string) =>
  Array.from({ length: levels }, (_, level) => `${" ".repeat(level)}${word}`).join("\n")

describe("UntrustedYaml", () => {
  it.each([
    ["flow sequences", "[".repeat(20_000)],
    ["flow maps", "{a: ".repeat(20_000)],
    ["closed ones", `${"[".repeat(20_000)}${"]".repeat(20_000)}`],
    ["brackets behind closing ones", `${"]".repeat(20_000)}${"[".repeat(20_000)}`],
    ["sequences in a line", "- ".repeat(20_000)],
    ["keys in a line", "? ".repeat(20_000)],
    ["both, with tabs", "-\t? ".repeat(20_000)],
    ["indented sequences", indented(3_000, "-")],
    ["indented maps", indented(3_000, "a:")],
    ["behind carriage returns", indented(3_000, "a:").replaceAll("\n", "\r")]
  ])("turns away %s", (_, text) => {
    assert.isBelow(
      Computation.least(200, () => assert.strictEqual(reasonOf(text), "depth")),
      200
    )
  })

  it.each([
    ["a profile", "name: a\nplugins: [x, y]\nsystem_instructions: |\n  - one\n    - two [see {x}]\n"],
    ["a rule of dashes", "-".repeat(1_000)],
    ["JSON", JSON.stringify({ a: Array.from({ length: 1_000 }, () => [{}]) })],
    ["64 levels of anything", `${"- ".repeat(32)}${"[".repeat(32)}${"]".repeat(32)}`]
  ])("takes %s", (_, text) => {
    assert.strictEqual(reasonOf(text), "taken")
  })

  it("takes nothing that the parser does not survive", () => {
    for (const text of ["[".repeat(256), "{a: ".repeat(256), "- ".repeat(256), "? ".repeat(256), indented(500, "a:")]) {
      assert.strictEqual(reasonOf(text), "taken")
      for (const { message } of Yaml.parseDocument(text, { logLevel: "error" }).errors)
        assert.notInclude(message, "stack")
    }
  })

  it("is bounded in size", () => {
    assert.strictEqual(UntrustedYaml.textRefusal("a".repeat(11), { size: 10 })?.reason, "size")
  })

  it.each([
    ["of a map", "a: 1\nb: 2\na: 3\n"],
    ["of a flow map", "{ a: 1, a: 2 }"],
    ["of an inner map", "x:\n  - a: 1\n    a: 2\n"],
    ["in quotes", 'a: 1\n"a": 2\n']
  ])("refuses a key twice %s", (_, text) => {
    assert.deepStrictEqual(
      UntrustedYaml.parse(Yaml, text).errors.map(({ code }) => code),
      ["DUPLICATE_KEY"]
    )
  })

  it("takes a time that grows with the length of a map, not with its square", () => {
    const time = (keys: number) => {
      const text = Array.from({ length: keys }, (_, index) => `key${index}: 1`).join("\n")
      const computed = Computation.begin()
      assert.lengthOf(UntrustedYaml.parse(Yaml, text).errors, 0)
      return computed()
    }
    time(1_000)
    // The parser's own comparison takes 256 times as long for 16 times as many keys.
    assert.isBelow(time(32_000), 16 * Math.max(20, time(2_000)) * 5)
  }, 60_000)

  it.each([
    ["in quotes", `text: "${"{[".repeat(2_000)}"\n`],
    ["in a block", `text: |\n${"  if (a) {\n".repeat(2_000)}`],
    ["in a plain text", `text: a ${"{ [".repeat(2_000)}\n`],
    ["in JSON", JSON.stringify({ text: "{".repeat(2_000) })]
  ])("counts no brackets %s where the parser is there", (_, text) => {
    assert.isUndefined(UntrustedYaml.textRefusal(text, { yaml: Yaml }))
    assert.lengthOf(UntrustedYaml.parse(Yaml, text).errors, 0)
  })

  it("counts brackets that nest, whatever stands before them", () => {
    for (const before of ["a: ", "- ", "? ", "!x ", "&a ", 'a: # "\n  ', '"a": ', "a: 'b'\nc: "])
      assert.strictEqual(
        UntrustedYaml.textRefusal(before + "[{a: ".repeat(400), { yaml: Yaml })?.reason,
        "depth",
        before
      )
  })
})
