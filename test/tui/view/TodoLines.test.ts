import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as TodoLines from "../../../src/tui/view/TodoLines.js"
import type { Todo } from "../../../src/core/Todo.js"

const pending = (content: string): Todo => ({ content, status: "pending" })
const begun = (content: string): Todo => ({ content, status: "in_progress" })
const done = (content: string): Todo => ({ content, status: "completed" })

describe("what has changed on a list", () => {
  it("is all of a new one, with at most ten entries", () => {
    assert.deepStrictEqual(TodoLines.changes([], [begun("a"), pending("b")]), [
      "todo: 0 of 2 done",
      "  [>] a",
      "  [ ] b"
    ])
    const many = Array.from({ length: 13 }, (_, i) => pending(`${i}`))
    assert.lengthOf(TodoLines.changes([], many), 12)
    assert.strictEqual(TodoLines.changes([], many).at(-1), "  … 3 more: /todos")
  })

  it("is what has another status or is new, each entry of the same words for itself", () => {
    assert.deepStrictEqual(
      TodoLines.changes([begun("a"), pending("b"), pending("b")], [done("a"), begun("b"), pending("b")]),
      ["todo: 1 of 3 done", "  [x] a", "  [>] b"]
    )
    assert.deepStrictEqual(TodoLines.changes([pending("a"), pending("b")], [pending("b")]), ["todo: 0 of 1 done"])
    assert.deepStrictEqual(TodoLines.changes([done("a")], []), ["todo: the list is empty"])
    assert.deepStrictEqual(TodoLines.changes([], []), [])
  })

  it("is nothing when the same list is written again, and never holds what a terminal would obey", () => {
    const list = FastCheck.array(
      FastCheck.record({
        content: FastCheck.oneof(FastCheck.string(), FastCheck.constant("\u001b[2J\r\nx")),
        status: FastCheck.constantFrom<Todo["status"][]>("pending", "in_progress", "completed")
      })
    )
    FastCheck.assert(
      FastCheck.property(list, list, (before, after) => {
        assert.deepStrictEqual(TodoLines.changes(after, after), [])
        for (const row of [...TodoLines.changes(before, after), ...TodoLines.all(after)])
          assert.notMatch(row, /[\u0000-\u001f\u007f]/)
      })
    )
  })
})
