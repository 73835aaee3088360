import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as UntrustedJson from "../../src/core/UntrustedJson.js"
import * as JsonFault from "../../src/core/JsonFault.js"
import * as Runs from "../kit/Runs.js"

describe("a fault in JSON", () => {
  it("is the end of a text that was cut off, wherever that was", () => {
    const cut = fc
      .record({ value: fc.object({ maxDepth: 3, withNullPrototype: false }), at: fc.nat() })
      .map(({ at, value }) => JSON.stringify(value).slice(0, at % JSON.stringify(value).length))
    fc.assert(
      fc.property(cut, (text) =>
        assert.strictEqual(JsonFault.of(text), `are no JSON: the text ends too early, after character ${text.length}`)
      ),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("is there exactly when the text is not read, and says whether it is the end", () => {
    const text = fc.oneof(fc.json(), fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0.e-tn'), maxLength: 10 }))
    fc.assert(
      fc.property(text, (one) => {
        const fault = JsonFault.of(one)
        assert.strictEqual(fault === undefined, UntrustedJson.parse(one)._tag === "Right", one)
        // A text that is wrong before its end stays wrong, whatever comes behind it.
        if (fault?.includes("ends too early") === false) assert.isDefined(JsonFault.of(`${one}0`), one)
      }),
      { numRuns: Runs.of(4_000) }
    )
  })

  it("is told in words, and in few", () => {
    assert.strictEqual(JsonFault.of('{"a":1}'), undefined)
    assert.strictEqual(JsonFault.of('{"a":'), "are no JSON: the text ends too early, after character 5")
    assert.match(String(JsonFault.of('{"a" 1}')), /^are no JSON: (?!the text ends)/)
    assert.strictEqual(
      JsonFault.of("[".repeat(UntrustedJson.maxDepth + 1)),
      "are no JSON: the text is nested more than 64 levels deep"
    )
    assert.isBelow(String(JsonFault.of(`{${"x".repeat(10_000)}`)).length, 250)
  })
})
