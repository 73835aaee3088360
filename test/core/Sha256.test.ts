import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { createHash, createHmac } from "node:crypto"
import * as Sha256 from "../../src/core/Sha256.js"

describe("SHA-256 where there is no Node", () => {
  it("is Node's at every length around a block's end", () => {
    for (let length = 0; length <= 200; length++) {
      const bytes = new Uint8Array(length).map((_, i) => (i * 31) & 0xff)
      assert.strictEqual(Sha256.hex(Sha256.digest(bytes)), createHash("sha256").update(bytes).digest("hex"))
    }
  })

  it("is Node's, whatever the bytes", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => {
        assert.strictEqual(Sha256.hex(Sha256.digest(bytes)), createHash("sha256").update(bytes).digest("hex"))
      })
    ))

  it("signs as Node does, with keys shorter and longer than a block", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 150 }), fc.uint8Array({ maxLength: 300 }), (key, bytes) => {
        assert.strictEqual(Sha256.hex(Sha256.hmac(key, bytes)), createHmac("sha256", key).update(bytes).digest("hex"))
      })
    ))
})
