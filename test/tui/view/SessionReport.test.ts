import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { SessionId } from "../../../src/core/Id.js"
import type { Listed } from "../../../src/journal/SessionSummary.js"
import * as Display from "../../../src/tui/terminal/Display.js"
import * as SessionReport from "../../../src/tui/view/SessionReport.js"

const now = Date.UTC(2026, 10, 23, 12)
const minute = 60_000

const session = (more: Partial<Listed> = {}): Listed => ({
  rootSessionId: SessionId.make("ses_0123456789abcd-1"),
  title: "mend the sum",
  turns: 2,
  entries: 9,
  created: now - 10 * minute,
  sessions: 1,
  inTurn: false,
  closed: false,
  open: [],
  lastActivity: now - 5 * minute,
  model: "offline/offline",
  state: "idle",
  workspace: "/w",
  ...more
})

describe("a session in a list to pick from", () => {
  it("says less where there is less room", () => {
    const of = (columns: number) => SessionReport.pickable(session(), { columns, now })
    assert.strictEqual(of(74), "5 min ago    mend the sum                    2 turns  ses_0123456789abcd-1")
    assert.strictEqual(of(44), "5 min ago    mend the sum            2 turns")
    assert.strictEqual(of(24), "5 min ago    mend the s…")
    assert.strictEqual(of(20), "5 min ago    mend t…")
  })

  it("has the words that somebody typed, and what came with them where there were no words", () => {
    const of = (title: string) => SessionReport.pickable(session({ title }), { columns: 44, now }).slice(13, 33).trim()
    assert.strictEqual(of("is this right? [File standard input (8 bytes, 2 lines)]"), "is this right?")
    assert.strictEqual(of("see @a [File a (1 byte, 1 line)] [File b (cut…"), "see @a")
    assert.match(of("[File a.ts (1 byte, 1 line)]"), /^\[File a\.ts /)
    const listed = session({ title: "see @a [File a (1 byte, 1 line)]" })
    assert.match(SessionReport.line(listed, now), / {2}see @a$/)
    assert.match(SessionReport.short(listed, { isThis: true, now }), / {2}\(this one\) {2}see @a$/)
  })

  it("says in which process it runs, unless it is the one that is there", () => {
    const held = session({ state: "running", holder: { pid: 4711, host: "there" } })
    const pickable = (columns: number, isThis?: boolean) =>
      SessionReport.pickable(held, { columns, now, ...(isThis === undefined ? {} : { isThis }) })
    assert.include(pickable(100), "  running in process 4711  2 turns  ses_")
    assert.match(pickable(56), /mend the sum +running in process 4711$/)
    assert.notInclude(pickable(100, true), "running")
    assert.include(SessionReport.short(held, { isThis: false, now }), "  running in process 4711  mend the sum")
    assert.include(SessionReport.short(held, { isThis: true, now }), "  (this one)  mend the sum")
  })

  it("says how long ago in one unit, and then the day", () => {
    const ages = [-1, 0, 0.9, 1, 59, 60, 23 * 60, 24 * 60, 6 * 24 * 60, 7 * 24 * 60].map((minutes) =>
      SessionReport.pickable(session({ lastActivity: now - minutes * minute }), { columns: 90, now }).slice(0, 11)
    )
    assert.deepStrictEqual(
      ages.map((age) => age.trim()),
      [
        "just now",
        "just now",
        "just now",
        "1 min ago",
        "59 min ago",
        "1 h ago",
        "23 h ago",
        "1 d ago",
        "6 d ago",
        "16 Nov"
      ]
    )
  })

  it("is one row that is not too wide, whatever was said", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.string({ unit: "grapheme", maxLength: 200 }),
        FastCheck.integer({ min: 24, max: 200 }),
        FastCheck.integer({ min: 0, max: 9_999 }),
        (title, columns, turns) => {
          const row = SessionReport.pickable(session({ title, turns }), { columns, now })
          assert.isAtMost(Display.width(row), columns)
          assert.notInclude(row, "\n")
        }
      )
    )
  })
})
