/** A command line that a workspace brings as an agent of others starts in a trusted workspace alone. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

/** Shows that it ran, wherever it is started. */
const command = (place: Program.Place) => `touch ${place.path("owned")}`

const profile = (place: Program.Place) =>
  place.write(
    "workspace/.assent/profiles/other.json",
    JSON.stringify({ name: "other", description: "another agent", command: command(place) })
  )

const config = (place: Program.Place) =>
  place.write("workspace/.assent/config.json", { model: `command:${command(place)}` })

const delegating = (place: Program.Place) =>
  place.script({ tools: [{ name: "delegate", params: { task: "go", profile: "other" } }] }, { text: "done" })

describe("a command line as an agent", () => {
  const ways: ReadonlyArray<
    readonly [what: string, write: typeof profile, args: (place: Program.Place) => Effect.Effect<ReadonlyArray<string>>]
  > = [
    ["of a profile that is chosen", profile, () => Effect.succeed(["--profile", "other"])],
    [
      "of a profile to which a model delegates",
      profile,
      (place) => Effect.map(delegating(place), (script) => ["--model", script])
    ],
    ["of the settings", config, () => Effect.succeed([])]
  ]
  for (const [what, write, argsOf] of ways) {
    it.scopedLive(`${what} does not start in a workspace that nobody trusts, whatever is allowed`, () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* write(place)
        const args = yield* argsOf(place)
        const { stderr } = yield* place.run(["run", "--yolo", ...args, "go"])
        assert.isFalse(yield* place.exists("owned"))
        assert.match(stderr, /trust/)
      })
    )

    it.scopedLive(`${what} starts in a trusted one`, () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* write(place)
        const args = yield* argsOf(place)
        yield* place.run(["run", "--yolo", "--trust", ...args, "go"])
        assert.isTrue(yield* place.exists("owned"))
      })
    )
  }

  it.scopedLive(
    "of a trusted profile is shown whole to the person who delegates to it, and starts by a yes alone",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* profile(place)
        const model = yield* delegating(place)
        const { stderr, stdout } = yield* place.run(["run", "--trust", "--model", model, "--piped-answers", "go"], {
          stdin: "n\n"
        })
        assert.include(stdout + stderr, command(place))
        assert.isFalse(yield* place.exists("owned"))
      })
  )
})
