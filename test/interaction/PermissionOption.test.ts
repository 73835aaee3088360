import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as PermissionOption from "../../src/interaction/PermissionOption.js"

const parse = (line: string, editable = true) => PermissionOption.parse(line, { editable })
const words = (editable: boolean) =>
  PermissionOption.offered({ editable }).flatMap(({ full, short }) => (short === undefined ? [full] : [short, full]))

const meanings: ReadonlyArray<readonly [string, string, unknown]> = [
  ["y", "yes", { decision: "allow", scope: "once" }],
  ["n", "no", { decision: "deny", scope: "once" }],
  ["a", "always", { decision: "allow", scope: "session" }],
  ["t", "turn", { decision: "allow", scope: "turn" }],
  ["i", "idle", { decision: "allow", scope: "idle" }],
  ["", "once", { decision: "allow", scope: "once" }],
  ["", "never", { decision: "deny", scope: "session" }],
  ["", "all", { decision: "allow", scope: "all" }]
]

describe("the options of a permission prompt", () => {
  it("are offered in one order, editing only where there is something to edit", () => {
    const all = ["yes", "no", "always", "turn", "idle", "once", "never", "all", "comment", "edit"]
    assert.deepStrictEqual(
      PermissionOption.offered({ editable: true }).map(({ full }) => full),
      all
    )
    assert.deepStrictEqual(
      PermissionOption.offered({ editable: false }).map(({ full }) => full),
      all.slice(0, -1)
    )
  })

  it.each(meanings)(
    "%s or %s means its decision and scope, whatever the case and the blanks",
    (short, full, answer) => {
      for (const word of [short, full].filter((each) => each !== "")) {
        for (const line of [word, ` ${word}\t`, word.toUpperCase()]) {
          assert.deepStrictEqual(parse(line), Option.some(PermissionOption.Answer({ answer: answer as never })))
        }
      }
    }
  )

  it("say when they need words or an edit first", () => {
    for (const line of ["c", "comment", "C:", "comment:  "]) {
      assert.deepStrictEqual(parse(line), Option.some(PermissionOption.NeedsComment()))
    }
    for (const line of ["e", "EDIT"]) {
      assert.deepStrictEqual(parse(line), Option.some(PermissionOption.NeedsEdit()))
      assert.deepStrictEqual(parse(line, false), Option.none())
    }
  })

  it("take a comment on the same line as it was written, further lines and colons included", () => {
    assert.deepStrictEqual(
      parse("c: Not Now:\nuse `ls`  "),
      Option.some(
        PermissionOption.Answer({ answer: { decision: "deny", scope: "once", comment: "Not Now:\nuse `ls`" } })
      )
    )
  })

  it.prop(
    "are nothing but their own words: no other line ever allows",
    [FastCheck.string(), FastCheck.boolean()],
    ([line, editable]) => {
      const word = line.trim().toLowerCase()
      const parsed = parse(line, editable)
      if (words(editable).includes(word) || /^(c|comment):/.test(word)) assert.isTrue(Option.isSome(parsed))
      else assert.deepStrictEqual(parsed, Option.none())
    }
  )

  it.prop(
    "are not found in words that only look like them",
    [FastCheck.constantFrom(...words(true)), FastCheck.constantFrom("!", "es", " y", ".", "0", "\u200b", "а")],
    ([word, more]) => {
      const line = `${word}${more}`
      if (words(true).includes(line)) return
      assert.deepStrictEqual(parse(line), Option.none())
    }
  )

  it("do not know members of objects by name", () => {
    for (const line of ["constructor", "__proto__", "toString", "", "1", "yes please"]) {
      assert.deepStrictEqual(parse(line), Option.none())
    }
  })
})
