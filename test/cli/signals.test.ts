import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

const command = (line: string) => ({ tools: [{ name: "run_command", params: { command: line } }] })
const hushed = Effect.sleep("700 millis")

const kill = (screen: Pseudo.Pseudo, signal: NodeJS.Signals) =>
  Effect.zipRight(
    Effect.sync(() => process.kill(screen.pid, signal)),
    screen.exit
  )

const chat = (steps: ReadonlyArray<unknown>, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const model = yield* place.script(...steps)
    const screen = yield* Pseudo.start(place, ["chat", "--model", model, ...flags], { columns: 60 })
    yield* screen.sees((text) => /\n(?:you)?>$/.test(text))
    yield* screen.type("go\r")
    return { place, screen }
  })

/** Rows of a screen as one. */
const flat = (screen: Pseudo.Pseudo) => screen.everything().replace(/\s+/g, " ")

const isGivenBack = (screen: Pseudo.Pseudo) => {
  for (const mode of ["?2004", "?25", "?1049"]) {
    const [on, off] = [screen.raw().lastIndexOf(`\x1b[${mode}h`), screen.raw().lastIndexOf(`\x1b[${mode}l`)]
    if (mode === "?25" ? off > on : on > off) return false
  }
  return !screen.isPaging()
}

describe.concurrent("a signal that ends a chat", () => {
  for (const signal of ["SIGTERM", "SIGHUP"] as const) {
    it.scopedLive(`leaves on the screen what was being said: ${signal}`, () =>
      Effect.gen(function* () {
        const words = Array.from({ length: 100 }, (_, index) => `word${index}`).join(" ")
        const step = { text: words, chunks: 100, chunkDelay: "20 millis" }
        const { screen } = yield* chat([step])
        yield* screen.sees((text) => text.includes("word20"))
        assert.strictEqual(yield* kill(screen, signal), 130)
        assert.match(flat(screen), /> go word0 word1 .* word20 .*To resume: assent chat --resume ses_/)
        assert.isTrue(isGivenBack(screen))
      })
    )

    for (const how of ["drawn", "--plain"])
      it.scopedLive(`says that a question stays open, and how to go on, ${how}: ${signal}`, () =>
        Effect.gen(function* () {
          const steps = [command("touch made"), { text: "It was made." }]
          const { place, screen } = yield* chat(steps, ...(how === "drawn" ? [] : [how]))
          yield* screen.sees((text) => text.endsWith("answer>"))
          assert.strictEqual(yield* kill(screen, signal), 130)
          assert.match(
            flat(screen),
            /answer> (?:\(left open\) )?The question stays open: assent chat --continue asks again, and assent sessions answer ses_\S+ takes an answer\. To resume: /
          )
          assert.notInclude(flat(screen), "closed:")
          assert.isTrue(isGivenBack(screen))
          const again = yield* Pseudo.start(place, ["chat", "--continue"], { columns: 60 })
          yield* again.sees((text) => text.includes("Allow run_command?") && text.endsWith("answer>"))
          yield* hushed
          yield* again.type("y")
          yield* again.sees((text) => text.includes("It was made."))
        })
      )

    it.scopedLive(`leaves a pager, and what a command has printed so far: ${signal}`, () =>
      Effect.gen(function* () {
        const steps = [command("seq 1 3"), command("echo begun; sleep 60"), { text: "Done." }]
        const { screen } = yield* chat(steps, "--yolo")
        yield* screen.sees((text) => text.includes("    begun"))
        yield* screen.type("\x0f")
        yield* screen.sees((text) => text.includes("q closes"))
        assert.strictEqual(yield* kill(screen, signal), 130)
        assert.match(screen.everything(), /● run_command echo begun; sleep 60\n {4}begun\n\n?To resume: /)
        assert.isTrue(isGivenBack(screen))
      })
    )
  }

  it.scopedLive("says the same of a run", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(command("touch made"), { text: "It was made." })
      const screen = yield* Pseudo.start(place, ["run", "--model", model, "go"])
      yield* screen.sees((text) => text.endsWith("answer>"))
      assert.strictEqual(yield* kill(screen, "SIGTERM"), 130)
      assert.match(
        flat(screen),
        /answer> \(left open\) The question stays open: .* resume with: assent run --resume ses_/
      )
      assert.notInclude(flat(screen), "closed:")
    })
  )

  it.scopedLive("gives the terminal back also when it comes three times", () =>
    Effect.gen(function* () {
      const { screen } = yield* chat([command("seq 1 3; trap '' TERM INT; sleep 60"), { text: "Done." }], "--yolo")
      yield* screen.sees((text) => text.includes("    3"))
      yield* screen.type("\x0f")
      yield* screen.sees((text) => text.includes("q closes"))
      // Two of one kind at once may come as one.
      for (const signal of ["SIGTERM", "SIGHUP"] as const) process.kill(screen.pid, signal)
      assert.strictEqual(yield* kill(screen, "SIGINT"), 130)
      assert.isTrue(isGivenBack(screen))
    })
  )
})
