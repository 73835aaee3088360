import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as LocalTime from "../../../src/tui/view/LocalTime.js"

/** In whatever zone the tests run. */
const at = (year: number, month: number, day: number, hour = 0, minute = 0): number =>
  new Date(year, month - 1, day, hour, minute).getTime()

describe("the time of a person", () => {
  it("has the day only as far as it is needed", () => {
    const now = at(2026, 11, 23, 14, 30)
    const said: ReadonlyArray<readonly [then: number, text: string]> = [
      [at(2026, 11, 23, 14, 3), "today 14:03"],
      [at(2026, 11, 23), "today 00:00"],
      [at(2026, 11, 22, 23, 59), "yesterday 23:59"],
      [at(2026, 11, 22, 9, 12), "yesterday 09:12"],
      [at(2026, 11, 21, 10), "21 Nov 10:00"],
      [at(2026, 11, 24, 1), "24 Nov 01:00"],
      [at(2026, 1, 2, 3, 4), "2 Jan 03:04"],
      [at(2025, 12, 31, 10), "31 Dec 2025"],
      [Number.NaN, "(no time)"]
    ]
    for (const [then, text] of said) assert.strictEqual(LocalTime.of(then, now), text)
    assert.strictEqual(LocalTime.of(at(2025, 12, 31, 23), at(2026, 1, 1, 1)), "yesterday 23:00")
  })

  it("names the day before as yesterday on every day of a year, also where clocks are changed", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.integer({ min: 1, max: 366 }),
        FastCheck.integer({ min: 0, max: 23 }),
        FastCheck.integer({ min: 0, max: 23 }),
        (day, hour, other) => {
          const now = at(2026, 1, day, hour)
          assert.match(LocalTime.of(at(2026, 1, day, other), now), /^today /)
          assert.match(LocalTime.of(at(2026, 1, day - 1, other), now), /^yesterday /)
          assert.match(LocalTime.of(at(2026, 1, day - 2, other), now), /^\d/)
        }
      )
    )
  })
})
