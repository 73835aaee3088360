import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as UntrustedJson from "../../src/core/UntrustedJson.js"
import * as Computation from "../kit/Computation.js"

const reasonOf = (parsed: Either.Either<unknown, UntrustedJson.ForeignJsonRefused>): string =>
  Either.match(parsed, { onLeft: ({ reason }) => reason, onRight: () => "taken" })

const refusalOf = (value: unknown, limits?: UntrustedJson.Limits): string =>
  UntrustedJson.refusal(value, limits)?.reason ?? "taken"

const arrays = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
const objects = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`
const nested = (levels: number): unknown => JSON.parse(arrays(levels))

describe("UntrustedJson", () => {
  describe("parsing a text", () => {
    it.each([
      [arrays(64), "taken"],
      [arrays(65), "depth"],
      [objects(64), "taken"],
      [objects(65), "depth"],
      [`{"text":"${"[".repeat(1_000)}"}`, "taken"],
      [`{"text":"\\"${"[".repeat(1_000)}"}`, "taken"],
      [`{"text":"\\\\","more":${arrays(64)}}`, "depth"],
      [`["\\\\\\"[[[", ${arrays(63)}]`, "taken"],
      [`[${Array.from({ length: 1_000 }, () => "[]").join(",")}]`, "taken"],
      ["", "syntax"],
      ["{", "syntax"],
      [`"${"[".repeat(1_000)}`, "syntax"],
      ["undefined", "syntax"]
    ])("%#: %j", (text, reason) => {
      assert.strictEqual(reasonOf(UntrustedJson.parse(text)), reason)
    })

    it("reads what JSON reads, where nothing is nested too deep", () => {
      FastCheck.assert(
        FastCheck.property(FastCheck.json(), (text) => {
          assert.deepStrictEqual(Either.getOrThrow(UntrustedJson.parse(text)), JSON.parse(text))
        })
      )
    })

    it("counts as the value does, whatever its texts hold", () => {
      const text = FastCheck.string({ unit: FastCheck.constantFrom("[", "]", "{", "}", '"', "\\", "a") })
      const level = FastCheck.tuple(FastCheck.boolean(), text)
      FastCheck.assert(
        FastCheck.property(FastCheck.array(level, { minLength: 60, maxLength: 70 }), (levels) => {
          const value = levels.reduce<unknown>(
            (inner, [isArray, text]) => (isArray ? [text, inner] : { [text]: inner }),
            1
          )
          const expected = levels.length <= UntrustedJson.maxDepth ? "taken" : "depth"
          assert.strictEqual(reasonOf(UntrustedJson.parse(JSON.stringify(value))), expected)
          assert.strictEqual(refusalOf(value), expected)
        })
      )
    })

    it("never throws", () => {
      const pieces = FastCheck.constantFrom("[", "]", "{", "}", '"', "\\", ",", ":", "1", "null", "\u0000", "\ud800")
      FastCheck.assert(
        FastCheck.property(FastCheck.array(pieces, { maxLength: 200 }), (text) => {
          UntrustedJson.parse(text.join(""))
        })
      )
    })

    it("turns ten megabytes of brackets away at once", () => {
      const [open, closed, quoted] = ["[".repeat(10_000_000), arrays(5_000_000), `["${"\\".repeat(9_999_990)}`]
      const parse = () => {
        assert.strictEqual(reasonOf(UntrustedJson.parse(open)), "depth")
        assert.strictEqual(reasonOf(UntrustedJson.parse(closed)), "depth")
        assert.strictEqual(reasonOf(UntrustedJson.parse(quoted)), "syntax")
      }
      assert.isBelow(Computation.least(1_000, parse), 1_000)
    })

    it("is bounded in size", () => {
      assert.strictEqual(reasonOf(UntrustedJson.parse('"1234567"', { size: 9 })), "taken")
      assert.strictEqual(reasonOf(UntrustedJson.parse('"12345678"', { size: 9 })), "size")
      assert.strictEqual(UntrustedJson.textRefusal("[".repeat(10), { size: 9 })?.message, "is larger than 9 characters")
    })
  })

  describe("a value that did not come as text", () => {
    const loop: Array<unknown> = []
    loop.push(loop)
    const shared = (levels: number): unknown => {
      let value: unknown = []
      for (let level = 1; level < levels; level++) value = [value, value]
      return value
    }
    class Point {
      readonly x = 1
    }
    const throwing = new Proxy({}, { ownKeys: () => assert.fail("looked at") })

    it.each([
      ["nothing", undefined, "taken"],
      ["a text", "x", "taken"],
      ["64 levels", nested(64), "taken"],
      ["65 levels", nested(65), "depth"],
      ["50,000 levels", nested(50_000), "depth"],
      ["a loop", loop, "depth"],
      ["2 to the 60 values by reference", shared(60), "size"],
      ["a hundred million holes", new Array(100_000_000), "size"],
      ["a member without a value", { a: undefined }, "taken"],
      ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), "taken"],
      ["a big integer", { a: 1n }, "value"],
      ["a function", { a: () => 1 }, "value"],
      ["a function on its own", () => 1, "value"],
      ["a symbol", Symbol.iterator, "value"],
      ["a map", { a: new Map() }, "value"],
      ["a date", new Date(0), "value"],
      ["an object that writes itself", { toJSON: () => "other" }, "value"],
      ["an instance", new Point(), "value"],
      ["an object that throws", throwing, "value"],
      ["a member that throws", Object.defineProperty({}, "a", { enumerable: true, get: () => assert.fail() }), "value"]
    ])("%s", (_, value, reason) => {
      assert.strictEqual(refusalOf(value), reason)
    })

    it("counts its texts, its names and everything else once", () => {
      assert.strictEqual(refusalOf("12345678", { size: 9 }), "taken")
      assert.strictEqual(refusalOf("123456789", { size: 9 }), "size")
      assert.strictEqual(refusalOf({ ["a".repeat(100)]: 1 }, { size: 100 }), "size")
      assert.strictEqual(
        refusalOf(
          Array.from({ length: 100 }, () => null),
          { size: 100 }
        ),
        "size"
      )
    })

    it("is what came of a text", () => {
      FastCheck.assert(
        FastCheck.property(FastCheck.jsonValue(), (value) => {
          assert.strictEqual(refusalOf(value), "taken")
        })
      )
    })
  })

  describe("echoing", () => {
    it("quotes no more than is allowed, in whole characters", () => {
      FastCheck.assert(
        FastCheck.property(
          FastCheck.string({ unit: "binary", maxLength: 400 }),
          FastCheck.integer({ min: 2, max: 300 }),
          (text, limit) => {
            const echoed = UntrustedJson.echo(text, limit)
            assert.isAtMost(echoed.length, limit)
            assert.isTrue(echoed === text || text.startsWith(echoed.slice(0, -1)))
            assert.notMatch(echoed, /\p{Surrogate}/u)
          }
        )
      )
    })
  })
})
