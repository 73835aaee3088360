import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Authority from "../../src/permission/Authority.js"
import type { Resolution } from "../../src/permission/Verdict.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"

const resolved = (reason: string): Resolution => ({ granted: true, method: "envelope", reason })

describe("two authorities", () => {
  it.effect("are asked in turn, the second where the first leaves the call to the rules", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const authority =
        (name: string, decides: boolean): Authority.Authority =>
        () =>
          Effect.sync(() => {
            asked.push(name)
            return decides ? Option.some(resolved(name)) : Option.none()
          })
      const { interactor } = yield* TestInteractor.make({})
      const table = [
        [true, true, "first", ["first"]],
        [true, undefined, "first", ["first"]],
        [false, true, "second", ["first", "second"]],
        [false, false, undefined, ["first", "second"]],
        [false, undefined, undefined, ["first"]]
      ] as const
      for (const [one, two, decidedBy, order] of table) {
        asked.length = 0
        const other = two === undefined ? undefined : authority("second", two)
        const both = Authority.orElse(other)(authority("first", one))
        const found = yield* both({} as never, {} as never).pipe(Interactor.withInteractor(interactor))
        assert.strictEqual(Option.getOrUndefined(found)?.reason, decidedBy)
        assert.deepStrictEqual(asked, [...order])
      }
    })
  )
})
