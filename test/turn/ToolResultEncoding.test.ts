import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as FiberId from "effect/FiberId"
import * as Redaction from "../../src/core/Redaction.js"
import type * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolResultEncoding from "../../src/turn/ToolResultEncoding.js"
import * as Runs from "../kit/Runs.js"

const present = (result: unknown, maxResult = 200) =>
  ToolResultEncoding.presentable({ limits: { maxResult }, redactor: Redaction.shapesOnly }, result)

describe("a result for the model", () => {
  it("is the value itself if JSON can hold it", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), (value) => {
        const shown = present(value, 100_000)
        assert.deepStrictEqual(JSON.stringify(Either.getOrThrow(shown)), JSON.stringify(value))
      }),
      { numRuns: Runs.of(200) }
    )
    assert.deepStrictEqual(present(undefined), Either.right(null))
  })

  for (const [what, value] of [
    ["a map", new Map([["a", 1]])],
    ["a set in a list", [1, new Set([2])]],
    ["an error", { why: new Error("x") }],
    ["a function", { run: () => 1 }],
    ["an infinite number", { count: Number.POSITIVE_INFINITY }],
    ["a big integer", { count: 1n }],
    ["what a `toJSON` says badly", { toJSON: () => new Map() }]
  ] as const) {
    it(`is no JSON that lost something: ${what}`, () => {
      assert.isTrue(Either.isLeft(present(value)))
    })
  }

  it("of a circle says so in one line", () => {
    const circle: { self?: unknown } = {}
    circle.self = circle
    const shown = present(circle)
    assert.isTrue(Either.isLeft(shown) && !shown.left.includes("\n"))
  })

  it("is cut at the limit, says how much is left out, and is masked before the cut", () => {
    assert.deepStrictEqual(
      present("x".repeat(201)),
      Either.right(`${"x".repeat(200)}\n[cut: 1 of 201 characters left out]`)
    )
    assert.deepStrictEqual(present("x".repeat(200)), Either.right("x".repeat(200)))
    const secret = `${"x".repeat(170)} sk-ant-${"a1B2".repeat(20)}`
    assert.notInclude(String(Either.getOrThrow(present(secret))), "sk-ant-a1B2")
  })
})

describe("the end of a handler", () => {
  // Only what the encoding looks at.
  const entry = {
    name: "send",
    encode: (value: unknown) => {
      if (value === "misfit") throw new Error("no")
      return value
    },
    encodeFailure: (failure: unknown) => {
      if (failure instanceof Map || failure instanceof Error) throw new Error("no")
      return failure
    }
  } as unknown as ToolRegistry.Entry
  const of = (exit: Exit.Exit<unknown, unknown>) => {
    const { outcome, result } = ToolResultEncoding.resultOf(entry, exit)
    return { outcome, result: String(result) }
  }

  it("is succeeded, failed or interrupted", () => {
    assert.deepStrictEqual(of(Exit.succeed("sent")), { outcome: "succeeded", result: "sent" })
    assert.deepStrictEqual(of(Exit.fail("full")), { outcome: "failed", result: "full" })
    assert.deepStrictEqual(of(Exit.fail(new Cause.RuntimeException("full"))), {
      outcome: "failed",
      result: "send failed: full"
    })
    assert.strictEqual(of(Exit.interrupt(FiberId.none)).outcome, "interrupted")
    assert.strictEqual(of(Exit.fail(ToolResultEncoding.tookTooLong)).outcome, "interrupted")
    assert.strictEqual(of(Exit.die(new Error("secret"))).outcome, "failed")
    assert.notInclude(of(Exit.die(new Error("secret"))).result, "secret")
  })

  it("that does not fit its schema failed, and the cause is for the log", () => {
    const { misfit, outcome } = ToolResultEncoding.resultOf(entry, Exit.succeed("misfit"))
    assert.strictEqual(outcome, "failed")
    assert.isTrue(misfit !== undefined && Cause.isDie(misfit))
  })

  it("that fails with what JSON cannot hold names its kind", () => {
    assert.deepStrictEqual(of(Exit.fail(new Map())), {
      outcome: "failed",
      result: "send failed: with a Map, which JSON cannot hold"
    })
  })

  it("that fails with a value says what it is", () => {
    const nameless = Object.create(Object.create({ constructor: undefined }), {
      map: { value: new Map(), enumerable: true }
    })
    for (const [failure, said] of [
      [null, "null"],
      [undefined, "undefined"],
      [7, "7"],
      [{ why: "late" }, '{"why":"late"}'],
      [[new Map()], "with an Array, which JSON cannot hold"],
      [nameless, "with something, which JSON cannot hold"]
    ] as const) {
      const odd = {
        ...entry,
        encodeFailure: () => {
          throw new Error("no")
        }
      } as unknown as ToolRegistry.Entry
      const { result } = ToolResultEncoding.resultOf(odd, Exit.fail(failure))
      assert.strictEqual(result, `send failed: ${said}`)
    }
  })
})

describe("a value with ways of its own to be written", () => {
  class Full {
    readonly a = 1
  }
  class Empty {
    get a(): number {
      return 1
    }
  }
  const itself: object = { a: 1, toJSON: () => itself }
  for (const [what, value, isWritten] of [
    ["an instance without fields", new Empty(), false],
    ["an instance with fields", new Full(), true],
    ["an object without fields", {}, true],
    ["an object without a prototype", Object.create(null), true],
    ["a date", new Date(0), true],
    ["what writes itself", itself, true],
    ["what writes another value", { toJSON: () => ({ b: [1] }) }, true],
    ["what has a field of that name", { toJSON: "no" }, true],
    ["what writes a promise", { toJSON: () => Promise.resolve(1) }, false]
  ] as const)
    it(`${isWritten ? "is a result" : "is none"}: ${what}`, () => {
      assert.strictEqual(Either.isRight(present(value)), isWritten)
    })
})

describe("a tool that there is not", () => {
  const tools = (names: ReadonlyArray<string>, gone?: string) =>
    ({ entries: names.map((name) => ({ name })), gone: () => gone }) as unknown as ToolRegistry.Service

  it("is answered with those that there are, or with why it is gone", () => {
    const { unknownTool } = ToolResultEncoding
    assert.strictEqual(unknownTool(tools([]), "fly"), 'There is no tool "fly". No tools are available.')
    assert.strictEqual(unknownTool(tools(["a", "b"]), "fly"), 'There is no tool "fly". Available: a, b.')
    assert.strictEqual(unknownTool(tools(["a"], "Its server is away."), "fly"), "Its server is away.")
    const many = unknownTool(tools(Array.from({ length: 300 }, (_, at) => `tool_${at}`)), "fly")
    assert.include(many, "tool_99")
    assert.notInclude(many, "tool_100,")
  })
})
