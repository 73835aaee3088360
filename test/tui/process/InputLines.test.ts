import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as FastCheck from "fast-check"
import * as InputLines from "../../../src/tui/process/InputLines.js"
import * as Runs from "../../kit/Runs.js"

const split = (pieces: ReadonlyArray<string>, longest: number) =>
  Effect.map(Stream.runCollect(InputLines.splitUpTo(Stream.fromIterable(pieces), longest)), Chunk.toReadonlyArray)

describe("lines of bounded length", () => {
  it.effect("are the lines of the text, whatever its pieces, those that are too long cut off one character later", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.array(FastCheck.string({ unit: FastCheck.constantFrom("a", "b", "\n", "ä"), maxLength: 12 })),
          FastCheck.integer({ min: 1, max: 8 }),
          async (pieces, longest) => {
            const lines = pieces.join("").split("\n")
            if (lines.at(-1) === "") lines.pop()
            const expected = lines.map((line) => line.slice(0, longest + 1))
            assert.deepStrictEqual(await Effect.runPromise(split(pieces, longest)), expected)
          }
        ),
        { numRuns: Runs.of(500) }
      )
    )
  )

  it.effect("have no carriage return at their end", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* split(["a\r", "\nb\r\n\r\n", "c\rd\n", "e\r"], 5), ["a", "b", "", "c\rd", "e\r"])
    })
  )

  it.effect("come as soon as they are too long, and nothing is kept of what follows", () =>
    Effect.gen(function* () {
      let pulled = 0
      const endless = Stream.repeatEffect(
        Effect.sync(() => {
          pulled++
          return "0123456789"
        })
      )
      const first = yield* Stream.runHead(InputLines.splitUpTo(endless, 25))
      assert.strictEqual(Option.getOrUndefined(first), "01234567890123456789012345")
      assert.strictEqual(pulled, 3)
    })
  )

  it.effect("begin anew each time they are read", () =>
    Effect.gen(function* () {
      const lines = InputLines.splitUpTo(Stream.make("a\nb"), 5)
      for (let time = 0; time < 2; time++) {
        assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(lines)), ["a", "b"])
      }
    })
  )
})
