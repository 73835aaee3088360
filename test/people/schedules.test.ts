/** A sample of the soak of the same: see `test/soak/people.ts`. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Arrangements from "../kit/Arrangements.js"
import * as ReservedCalls from "../kit/ReservedCalls.js"
import { randomOf } from "../kit/ShellLines.js"

it("comes to one end in every schedule of every arrangement, and leaves nothing open", async () => {
  const ends = new Set<string>()
  for (let at = 0; at < 1_000; at++) {
    const { end, problems } = await Effect.runPromise(Arrangements.play(randomOf(at)))
    assert.deepStrictEqual(problems, [], `schedule ${at}`)
    ends.add(end)
  }
  assert.deepStrictEqual([...ends].sort(), ["no", "nobody", "open", "yes"])
})

it("decides a reserved call once, by the votes in its journal, wherever the process dies, whatever people want instead", async () => {
  const ends = new Set<string>()
  for (let at = 0; at < 400; at++) {
    const { end, problems } = await Effect.runPromise(ReservedCalls.play(randomOf(at)))
    assert.deepStrictEqual(problems, [], `schedule ${at}`)
    ends.add(end)
  }
  assert.deepStrictEqual([...ends].sort(), ["allow", "deny", "edit", "nobody", "open"])
})

it("closes a dialog that is opened in the moment in which all are closed", async () => {
  // What was drawn in the schedule that found this: an escalation goes on while the quorum around it ends.
  // prettier-ignore
  const drawn = [
    0.617, 0.231, 0.804, 0.254, 0.842, 0.171, 0.235, 0.892, 0.364, 0.631, 0.212, 0.783, 0.448, 0.861,
    0.36, 0.769, 0.498, 0.609, 0.46, 0.216, 0.359, 0.385, 0.655, 0.63, 0.671, 0.223, 0.267, 0.202,
    0.789, 0.777, 0.547, 0.411, 0.071, 0.842, 0.975, 0.567, 0.01, 0.279, 0.513, 0.263, 0.181, 0.112,
    0.4335, 0.999, 0.381, 0.587, 0.53, 0.024, 0.376, 0.01, 0.35, 0.511, 0.809, 0.408, 0.023, 0.026,
    0.943, 0.909, 0.251, 0.818, 0.644, 0.95, 0.364, 0.785, 0.425, 0.306, 0.661, 0.027, 0.995, 0.614,
    0.525, 0.954, 0.153, 0.493, 0.935, 0.713, 0.718, 0.571, 0.528, 0.342, 0.507, 0.178, 0.487, 0.318,
    0.583, 0.595, 0.034, 0.794
  ]
  let at = 0
  const { problems } = await Effect.runPromise(Arrangements.play(() => drawn[at++] ?? 0.5))
  assert.deepStrictEqual(problems, [])
})
