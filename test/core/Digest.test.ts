import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { createHash } from "node:crypto"
import { vi } from "vitest"
import * as Digest from "../../src/core/Digest.js"

/** What is meant, said the long way: what is signed with it must never change. */
const meant = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(meant)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).map(([key, member]) => [key, meant(member)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
}

/** A value whose objects list their members in another order. */
const turned = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(turned)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, turned(member)])
  )
}

describe("canonical JSON", () => {
  it("sorts keys at every depth and has no white space", () => {
    const value = { b: [{ d: 1, c: "x" }], a: { z: null, y: true } }
    assert.strictEqual(Digest.canonicalJson(value), '{"a":{"y":true,"z":null},"b":[{"c":"x","d":1}]}')
  })

  it("is the JSON of the value with its keys sorted, whatever they are", () =>
    fc.assert(
      fc.property(
        fc.anything({ key: fc.oneof(fc.string(), fc.constantFrom("10", "9", "__proto__", "é", "Z")) }),
        (value) => {
          assert.strictEqual(Digest.canonicalJson(value), JSON.stringify(meant(value)) ?? "null")
        }
      )
    ))

  it("does not depend on the order of members", () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.strictEqual(Digest.canonicalJson(value), Digest.canonicalJson(turned(value)))
        assert.deepStrictEqual(JSON.parse(Digest.canonicalJson(value)), JSON.parse(JSON.stringify(value)))
      })
    ))

  it("keeps a member of the name of the prototype", () => {
    const value: unknown = JSON.parse('{"b":1,"__proto__":{"a":2}}')
    assert.strictEqual(Digest.canonicalJson(value), '{"__proto__":{"a":2},"b":1}')
  })

  it("asks a value what it is as JSON, and sorts that", () => {
    const value = { at: new Date(0), own: { toJSON: () => ({ b: 1, a: 2 }) } }
    assert.strictEqual(Digest.canonicalJson(value), '{"at":"1970-01-01T00:00:00.000Z","own":{"a":2,"b":1}}')
  })

  it("leaves out what is undefined, and is null where there is nothing", () => {
    assert.strictEqual(Digest.canonicalJson({ b: undefined, a: [undefined] }), '{"a":[null]}')
    assert.strictEqual(Digest.canonicalJson(undefined), "null")
  })
})

it("a digest is the SHA-256 of the canonical JSON", () => {
  const expected = createHash("sha256").update('{"a":1,"b":2}').digest("hex")
  assert.strictEqual(Digest.digest({ b: 2, a: 1 }), expected)
})

describe("a digest where there is no Node", () => {
  it("is the same", async () => {
    const asked = vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined)
    vi.resetModules()
    const elsewhere = await import("../../src/core/Digest.js")
    const empty = elsewhere.sha256("")
    assert.deepStrictEqual(asked.mock.calls, [["node:crypto"]])
    asked.mockRestore()
    assert.strictEqual(empty, Digest.sha256(""))
    for (const text of ["", "é and 😀", "\ud800", "long ".repeat(1_000)]) {
      assert.strictEqual(elsewhere.sha256(text), Digest.sha256(text))
      assert.strictEqual(elsewhere.hmacSha256(text, "words"), Digest.hmacSha256(text, "words"))
    }
    assert.strictEqual(elsewhere.digest({ b: 1, a: [2] }), Digest.digest({ a: [2], b: 1 }))
  })
})
