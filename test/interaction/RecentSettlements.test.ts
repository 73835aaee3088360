import { assert, describe, it } from "@effect/vitest"
import { RecentSettlements } from "../../src/interaction/RecentSettlements.js"

describe("recent settlements", () => {
  it("know nobody for a request that was never settled", () => {
    const recent = new RecentSettlements()
    recent.add("req_1", "ada")
    for (const name of ["req_2", "__proto__", "constructor", ""]) assert.isUndefined(recent.settledBy(name))
  })

  it("remember at least the last 512 who settled, and not for ever", () => {
    const recent = new RecentSettlements()
    for (let n = 0; n < 5_000; n++) recent.add(`req_${n}`, `by ${n}`)
    for (let n = 4_999; n > 4_999 - 512; n--) assert.strictEqual(recent.settledBy(`req_${n}`), `by ${n}`)
    assert.isUndefined(recent.settledBy("req_3000"))
  })

  it("forget a request that is open again, however long ago it was settled", () => {
    const recent = new RecentSettlements()
    recent.add("req_old", "ada")
    for (let n = 0; n < 512; n++) recent.add(`req_${n}`, "bob")
    for (const id of ["req_old", "req_511"]) {
      recent.forget(id)
      assert.isUndefined(recent.settledBy(id))
    }
  })
})
