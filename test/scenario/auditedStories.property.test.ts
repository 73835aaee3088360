/** Random stories of people who decide about calls, over several processes: the audit tells all of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as AuditedStories from "../kit/AuditedStories.js"
import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"
import * as Shuffled from "../kit/Shuffled.js"

describe("the audit of random stories", () => {
  it("tells who decided what about which arguments, when and in which order", { timeout: 600_000 }, async () => {
    for (let seed = 1; seed <= Runs.of(160); seed++) {
      const story = Effect.flatMap(Mortal.world, (world) => AuditedStories.play(Shuffled.random(seed), world))
      const { problems } = await Effect.runPromise(story)
      assert.deepStrictEqual(problems, [], `seed ${seed}`)
    }
  })
})
