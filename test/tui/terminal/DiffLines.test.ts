import { assert, describe, it } from "@effect/vitest"
import { createTwoFilesPatch } from "diff"
import * as fc from "fast-check"
import * as DiffLines from "../../../src/tui/terminal/DiffLines.js"

const patch = (before: string, after: string) => createTwoFilesPatch("a/src/x.ts", "b/src/x.ts", before, after)
const plain = (before: string, after: string, most = 60) =>
  DiffLines.make(patch(before, after), { color: false, most })?.map((line) => line.trimEnd())

describe("a diff for a person", () => {
  it("has counts, numbers and what changed", () => {
    assert.deepStrictEqual(plain("one\ntwo\nthree\n", "one\n2\nthree\nfour\n"), [
      "src/x.ts · 2 lines added, 1 removed",
      "1   one",
      "2 - two",
      "2 + 2",
      "3   three",
      "4 + four"
    ])
  })

  it("marks the words that differ, in a line that is otherwise the same", () => {
    const [, removed, added] =
      DiffLines.make(patch("const a = one(1)\n", "const a = one(2)\n"), { color: true, most: 60 }) ?? []
    assert.include(removed, "\x1b[1m\x1b[4m\x1b[31m1\x1b[0m")
    assert.include(added, "\x1b[1m\x1b[4m\x1b[32m2\x1b[0m")
  })

  it("is nothing for what is no diff of one file", () => {
    for (const text of ["", "no diff", "--- a\n+++ b\n", "@@ -1 +1 @@\n[40 characters are between]\n"])
      assert.isUndefined(DiffLines.make(text, { color: false, most: 60 }))
  })

  it("never leaves out a line that changed, however long it is", () => {
    const line = fc.constantFrom("a", "b", "c", "dd ee", "", "  f")
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 60 }),
        fc.array(line, { maxLength: 60 }),
        fc.nat(20),
        (old, fresh, most) => {
          const text = patch(old.join("\n"), fresh.join("\n"))
          const shown = DiffLines.make(text, { color: false, most })
          const wanted = text.split("\n").filter((row) => /^[+-](?!--|\+\+)/.test(row))
          if (shown === undefined) return assert.lengthOf(wanted, 0)
          const changes = shown.slice(1).filter((row) => /^ *\d+ [+-] /.test(row))
          assert.deepStrictEqual(changes.map((row) => row.replace(/^ *\d+ ([+-]) /, "$1")).sort(), [...wanted].sort())
        }
      )
    )
  })

  it("has one row for all that is left out between two changes, long or not", () => {
    const before = Array.from({ length: 160 }, (_, index) => `line ${index + 1}`)
    const text = (lines: ReadonlyArray<string>) => `${lines.join("\n")}\n`
    const after = text(before.map((line, index) => ((index + 1) % 50 === 0 ? `new ${line}` : line)))
    const changes = [50, 100, 150].map((at) => [
      `${String(at).padStart(3)} - line ${at}`,
      `${String(at).padStart(3)} + new line ${at}`
    ])
    const [one = [], two = [], three = []] = changes
    const gap = (count: number) => `    ⋮ ${count} lines the same`
    const head = "src/x.ts · 3 lines added, 3 removed"
    assert.deepStrictEqual(plain(text(before), after, 5), [
      head,
      ...[gap(4), ...one, gap(49), ...two, gap(49), ...three, gap(4)]
    ])
    assert.deepStrictEqual(
      plain(text(before), after)?.filter((line) => line.includes("⋮")),
      [gap(41), gap(41)]
    )
  })

  it("counts every line of the new version between two changes, shown or left out", () => {
    const line = fc.constantFrom("a", "b", "c")
    fc.assert(
      fc.property(
        fc.array(line, { minLength: 20, maxLength: 80 }),
        fc.array(fc.nat(79), { maxLength: 6 }),
        fc.nat(20),
        (old, places, most) => {
          const fresh = old.map((text, index) => (places.includes(index) ? `new ${text}` : text))
          let next: number | undefined
          let wasGap = false
          for (const row of plain(old.join("\n"), fresh.join("\n"), most)?.slice(1) ?? []) {
            const skipped = /^ *⋮ (\d+) lines? the same$/.exec(row)
            const shown = /^ *(\d+) [+ ]/.exec(row)
            if (skipped !== null) {
              assert.isFalse(wasGap)
              next = next === undefined ? undefined : next + Number(skipped[1])
            }
            wasGap = skipped !== null
            if (shown === null) continue
            if (next !== undefined) assert.strictEqual(Number(shown[1]), next)
            next = Number(shown[1]) + 1
          }
        }
      )
    )
  })

  it("shows what a terminal would hide", () => {
    assert.include(plain("a\n", "a\x1b[2J\u202e\n")?.join("\n"), "a␛[2J⟨U+202E⟩")
  })
})
