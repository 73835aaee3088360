/** Which settings count among the nodes of a cluster. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Fingerprint from "../../src/cluster/Fingerprint.js"
import * as Runs from "../kit/Runs.js"

const row = (address: string, policy: string, since: number, counts = false): Fingerprint.Row => ({
  address,
  parts: { policy, shards: "300" },
  since,
  counts
})

describe("the fingerprint of a node", () => {
  it("counts if no other one is there, and if all are the same", () => {
    assert.isUndefined(Fingerprint.judge([row("a", "x", 1)], "a"))
    assert.isUndefined(Fingerprint.judge([row("a", "x", 1), row("b", "x", 2)], "b"))
  })

  it("waits for the nodes that count, and names the part and the other node", () => {
    const why = Fingerprint.judge([row("a:1", "x", 1, true), row("b:2", "y", 2)], "b:2")
    assert.match(why ?? "", /^This node differs from a:1 in its policy\. .* until all nodes .* of a:1 have ended\./)
    // Also for a younger one of them, after its restart.
    assert.isString(Fingerprint.judge([row("b", "y", 2), row("a", "x", 9, true)], "b"))
    assert.isUndefined(Fingerprint.judge([row("b", "y", 2)], "b"))
  })

  it("names a part that one of them has not", () => {
    const bare = { address: "b", parts: { shards: "300" }, since: 2, counts: false }
    assert.match(Fingerprint.judge([row("a", "x", 1, true), bare], "b") ?? "", /in its policy/)
  })

  it("keeps nodes of a version without the handshake apart, and says to upgrade", () => {
    const earlier = row("a:1", "x", 1, true)
    const own = { ...row("b:2", "x", 2), parts: { ...earlier.parts, [Fingerprint.handshake]: "proof of a secret" } }
    assert.match(Fingerprint.judge([earlier, own], "b:2") ?? "", /in its handshake\. .*Upgrade all nodes/)
    assert.isUndefined(Fingerprint.judge([own], "b:2"))
  })

  it("lets nodes of one kind alone take part, and always some of them", () => {
    const rows = fc
      .uniqueArray(
        fc.tuple(fc.constantFrom("a", "b", "c", "d", "e"), fc.constantFrom("x", "y"), fc.nat(5), fc.boolean()),
        { selector: ([address]) => address, minLength: 1 }
      )
      .map((all) => all.map(([address, policy, since, counts]) => row(address, policy, since, counts)))
    fc.assert(
      fc.property(rows, (rows) => {
        const taking = rows.filter(({ address }) => Fingerprint.judge(rows, address) === undefined)
        const kinds = new Set(taking.map(({ parts }) => parts["policy"]))
        assert.strictEqual(kinds.size, 1)
        // One kind that counts goes on to count.
        const counting = new Set(rows.filter(({ counts }) => counts).map(({ parts }) => parts["policy"]))
        if (counting.size === 1) assert.deepStrictEqual(kinds, counting)
      }),
      { numRuns: Runs.of(16_000) }
    )
  })
})
