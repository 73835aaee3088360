import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as ConsoleChannel from "../../../src/tui/console/ConsoleChannel.js"
import * as ConsolePlain from "../../../src/tui/console/ConsolePlain.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const setup = (
  echoes = false,
  unseen?: ConsolePlain.Options["unseen"],
  timeouts?: ConsoleChannel.Options["timeouts"],
  meant?: ConsoleChannel.Options["meant"]
) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make({ columns: 80, rows: 40 })
    const screen = yield* Effect.provide(ConsolePlain.make({ color: false, echoes, unseen }), terminal.layer)
    const interactor = yield* Effect.provideService(
      ConsoleChannel.make({ timeouts, meant }),
      ConsoleScreen.ConsoleScreen,
      screen
    )
    const ask = (kind: keyof typeof InteractionSample.samples) =>
      Effect.gen(function* () {
        const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
        const asking = yield* Effect.fork(Effect.either(interactor.request(request)))
        yield* terminal.settle
        return asking
      })
    return { terminal, screen, interactor, ask }
  })

const cancelled = (result: Either.Either<unknown, { readonly _tag: string }>) =>
  Either.isLeft(result) && result.left._tag === "InteractionCancelled"

describe("a plain console", () => {
  it.scoped("shows what can be picked as a numbered list above the question", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const choices = ["apple", "\u001b[31mcherry"].map((label) => ({ text: "", label }))
      const asking = yield* Effect.fork(
        screen.dialog("Which?", (ask) => ask({ lines: ["one of them"], label: "fruit> ", choices }))
      )
      yield* terminal.settle
      assert.include(terminal.raw(), "Which?\n│  1. apple\n│  2. ␛[31mcherry\n│ one of them\nfruit> ")
      yield* terminal.type("2\n")
      assert.strictEqual(yield* Fiber.join(asking), "2")
    })
  )

  it.scoped("takes a secret unseen where that can be had, with its own keys, and lets it be given up", () =>
    Effect.gen(function* () {
      let isUnseen = false
      const { ask, terminal } = yield* setup(true, (use) =>
        Effect.acquireUseRelease(
          Effect.sync(() => (isUnseen = true)),
          () => use,
          () => Effect.sync(() => (isUnseen = false))
        )
      )
      const asking = yield* ask("Auth.Password")
      assert.isTrue(isUnseen)
      yield* terminal.type("wrong")
      yield* terminal.press("u", { ctrl: true })
      yield* terminal.type("hunter3")
      yield* terminal.press("backspace")
      yield* terminal.type("2\n")
      assert.deepInclude(yield* Fiber.join(asking), { _tag: "Right" })
      assert.isFalse(isUnseen)
      assert.notInclude(terminal.raw(), "hunter")
      const other = yield* ask("Auth.Password")
      yield* terminal.type("hunt")
      yield* terminal.press("c", { ctrl: true })
      assert.isTrue(cancelled(yield* Fiber.join(other)))
      const third = yield* ask("Confirm")
      yield* terminal.type("y\n")
      assert.deepInclude(yield* Fiber.join(third), { _tag: "Right" })
    })
  )

  it.scoped("hands out lines in order, an unfinished last one too, and then the end for ever", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("one\n\n  \ntwo\nthree")
      yield* terminal.end
      for (const text of ["one", "two", "three"]) {
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text }))
      }
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
    })
  )

  it.scoped("writes no escape sequence and turns no spinner", () =>
    Effect.gen(function* () {
      const { terminal, screen, ask } = yield* setup()
      yield* screen.status({ text: "working" })
      yield* screen.print("half a \x1b[2Jline")
      const asking = yield* ask("Approve")
      yield* terminal.type("y\n")
      assert.isTrue(Either.isRight(yield* Fiber.join(asking)))
      assert.strictEqual(
        terminal.raw(),
        "half a line\n" +
          "Allow run_command?\n" +
          '│ {"command":"ls -la"}\n' +
          "│ [y]es [n]o [a]lways [t]urn [i]dle once never all [c]omment [e]dit\n" +
          "│ `always` allows: ls\n│ `never` denies: ls\n" +
          "answer> y\n"
      )
    })
  )

  it.scoped(
    "says whose turn it is to somebody who listens: once, on a row of its own, and not where a line or a dialog is",
    () =>
      Effect.gen(function* () {
        const terminal = yield* TestTerminal.make({ columns: 80, rows: 40 })
        const screen = yield* Effect.provide(
          ConsolePlain.make({ color: false, echoes: true, signs: "said" }),
          terminal.layer
        )
        const { invite = Effect.void } = screen
        yield* screen.print("half a line")
        yield* Effect.repeatN(invite, 2)
        yield* screen.print("words")
        yield* screen.printLine(" and more")
        yield* screen.setPrompt("explore> ")
        yield* invite
        yield* terminal.type("to it\n")
        yield* invite
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "to it" }))
        yield* screen.dialog("Which?", () => invite)
        yield* screen.printLine("done")
        yield* invite
        const next = yield* Effect.fork(screen.next)
        yield* terminal.settle
        yield* terminal.type("\n")
        assert.isTrue(terminal.raw().endsWith("done\nexplore> explore> "))
        yield* terminal.type("words\n")
        assert.deepStrictEqual(yield* Fiber.join(next), ConsoleScreen.Line({ text: "words" }))
        assert.strictEqual(
          terminal.raw().slice(0, terminal.raw().indexOf("explore> explore> ")),
          "half a line\nyou> \nwords\n and more\nexplore> Which?\ndone\n"
        )
        const piped = yield* setup(true)
        assert.isUndefined(piped.screen.invite)
      })
  )

  it.scoped("puts nothing into the row of what was typed before the first prompt, and keeps those words", () =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 80, rows: 40 })
      let typed = "to"
      /** Yields what the terminal had kept back. */
      const handOut = Effect.suspend(() => {
        const now = typed
        typed = ""
        return Effect.zipRight(terminal.type(now), terminal.settle)
      })
      const screen = yield* Effect.provide(
        ConsolePlain.make({ color: false, echoes: true, signs: "said", unfinished: handOut, caughtUp: handOut }),
        terminal.layer
      )
      const { invite = Effect.void } = screen
      yield* screen.printLine("assent")
      yield* Effect.all([invite, invite], { concurrency: "unbounded" })
      assert.strictEqual(terminal.raw(), "\nassent\nyou> to")
      yield* terminal.type(" it\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "to it" }))
      yield* screen.printLine("done")
      // It is shown by the terminal where no prompt was yet.
      typed = "more\n"
      yield* invite
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "more" }))
      typed = "at once\n"
      const next = yield* Effect.fork(screen.next)
      yield* terminal.settle
      yield* invite
      assert.deepStrictEqual(yield* Fiber.join(next), ConsoleScreen.Line({ text: "at once" }))
      yield* screen.printLine("done again")
      yield* terminal.type("none of it")
      yield* screen.setDraft("")
      yield* invite
      assert.strictEqual(terminal.raw(), "\nassent\nyou> todone\ndone again\nyou> ")
    })
  )

  it.scoped("prints all of a long call to who wants to see it, and the options once more", () =>
    Effect.gen(function* () {
      const { interactor, terminal } = yield* setup(true)
      const details = Array.from({ length: 200 }, (_, index) => `echo step ${index}`).join("\n")
      const { interaction } = InteractionSample.samples.Approve
      const request = yield* InteractionSample.request({ ...interaction, display: { details, format: "code" } })
      const asking = yield* Effect.fork(Effect.either(interactor.request(request)))
      yield* terminal.settle
      assert.notInclude(terminal.raw(), "echo step 100\n")
      yield* terminal.type("v\n")
      assert.include(terminal.raw(), details.replaceAll(/^/gm, "│ "))
      assert.isTrue(
        terminal
          .raw()
          .endsWith(
            "│ echo step 0\n│ [y]es [n]o [a]lways [c]omment [v]iew [m]ore\n│ `always` allows: ls\n│ `never` denies: ls\nanswer> "
          )
      )
      yield* terminal.type("n\n")
      assert.isTrue(Either.isRight(yield* Fiber.join(asking)))
    })
  )

  it.scoped("reads an answer that was piped before the question, but never approves with an empty line", () =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup()
      yield* terminal.type("\n\n\ny\n")
      const first = yield* Fiber.join(yield* ask("Approve"))
      assert(Either.isLeft(first) && first.left._tag === "InteractorUnavailable")
      assert.include(first.left.message, "Assent understood no answer")
      const second = yield* Fiber.join(yield* ask("Approve"))
      assert.isTrue(Either.isRight(second) && InteractionSample.allows(second.right.answer))
    })
  )

  it.scoped(
    "keeps what a person typed before a question from it: a whole line for later, the beginning of one not",
    () =>
      Effect.gen(function* () {
        const { terminal, screen, ask } = yield* setup(true)
        yield* terminal.type("y\nand th")
        const asking = yield* ask("Approve")
        yield* terminal.type("n\n")
        const answered = yield* Fiber.join(asking)
        assert.isFalse(Either.isRight(answered) && InteractionSample.allows(answered.right.answer))
        assert.isTrue(
          terminal.raw().startsWith("\n(Typed before the question and not taken: and th)\nAllow run_command?\n")
        )
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "y" }))
      })
  )

  it.scoped("breaks a dialog between words for a person, and not for a program", () =>
    Effect.gen(function* () {
      for (const echoes of [true, false]) {
        const { terminal, ask } = yield* setup(echoes)
        yield* terminal.resize(30, 40)
        const asking = yield* ask("Approve")
        const rows = terminal.raw().split("\n")
        yield* terminal.type("y\n")
        yield* Fiber.join(asking)
        const widest = Math.max(...rows.map((row) => row.length))
        if (echoes) assert.isAtMost(widest, 30)
        if (echoes) assert.include(rows.join("\n"), "│ [y]es [n]o [a]lways\n│ [c]omment [m]ore\n")
        else assert.include(rows, "│ [y]es [n]o [a]lways [t]urn [i]dle once never all [c]omment [e]dit")
      }
    })
  )

  it.scoped("gives a line to the open dialog, not to whoever waited for a line before", () =>
    Effect.gen(function* () {
      const { terminal, screen, ask } = yield* setup()
      const next = yield* Effect.fork(screen.next)
      const asking = yield* ask("Select")
      yield* terminal.type("2\nhello\n")
      assert.isTrue(Either.isRight(yield* Fiber.join(asking)))
      assert.deepStrictEqual(yield* Fiber.join(next), ConsoleScreen.Line({ text: "hello" }))
    })
  )

  it.scoped.each([...InteractionSample.kinds])("halts for %s at the end of input where that is said", (kind) =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 80, rows: 40 })
      const screen = yield* Effect.provide(
        ConsolePlain.make({ color: false, echoes: true, unseen: (use) => use }),
        terminal.layer
      )
      const interactor = yield* Effect.provideService(
        ConsoleChannel.make({ atEnd: Effect.succeed("It stays open.") }),
        ConsoleScreen.ConsoleScreen,
        screen
      )
      const said: Array<string> = []
      const halt = (detail: string) => Effect.sync(() => void said.push(detail))
      const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
      const next = yield* Effect.fork(screen.next)
      const asking = yield* Effect.fork(interactor.request(request, { halt }))
      yield* terminal.settle
      // A hidden answer is typed key by key, its end too.
      if (kind === "Auth.Password") yield* terminal.press("d", { ctrl: true })
      else yield* terminal.end
      assert.deepStrictEqual(said, ["It stays open."])
      // Nobody else hears of the end before the halt has taken the question away.
      assert.isTrue(Option.isNone(yield* Fiber.poll(next)))
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* Fiber.join(next), ConsoleScreen.EndOfInput())
      assert.notInclude(terminal.raw(), "(closed")
    })
  )

  it.scoped.each([...InteractionSample.kinds])("cancels %s at the end of input", (kind) =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup()
      const asking = yield* ask(kind)
      yield* terminal.end
      assert.isTrue(cancelled(yield* Fiber.join(asking)))
    })
  )

  for (const echoes of [true, false])
    it.scoped(
      `leads back from a comment and an edit by an empty line, and takes lines for the program there: ${echoes}`,
      () =>
        Effect.gen(function* () {
          const { terminal, screen, ask } = yield* setup(echoes, undefined, undefined, (line) =>
            line === "/hlep" ? "There is no command /hlep." : undefined
          )
          const heard: Array<string> = []
          yield* screen.setCommands((line) => (line === "/help" ? Effect.sync(() => void heard.push(line)) : undefined))
          for (const [key, label] of [
            ["c", "comment> "],
            ["e", "edit> "]
          ] as const) {
            const asking = yield* ask("Approve")
            yield* terminal.type(`${key}\n/help\n`)
            assert.deepStrictEqual(heard.splice(0), ["/help"])
            assert.isTrue(terminal.raw().endsWith(label))
            assert.notMatch(terminal.raw(), /Escape|Ctrl|Enter/)
            yield* terminal.type("  \n")
            assert.match(terminal.raw(), /│ +\[e\]dit +change its arguments first\n[^]*answer> $/)
            yield* terminal.type("y\n")
            assert.deepInclude(yield* Fiber.join(asking), { _tag: "Right" })
          }
          const commented = yield* ask("Approve")
          yield* terminal.type("c\n/hlep\n")
          assert.include(terminal.raw(), "There is no command /hlep.")
          yield* terminal.type(" /hlep\n")
          const answered = yield* Fiber.join(commented)
          assert(Either.isRight(answered))
          assert.deepInclude(answered.right.answer, { decision: "deny", comment: "/hlep" })
          const edited = yield* ask("Approve")
          yield* terminal.type("e\n")
          assert.include(terminal.raw(), "Type all of it again, on one line.")
          yield* terminal.type("ls -l\n")
          const edit = yield* Fiber.join(edited)
          assert(Either.isRight(edit))
          assert.deepInclude(edit.right.answer, { decision: "edit", editedArguments: { command: "ls -l" } })
        })
    )

  it.scoped("takes a line that was cut off for no answer", () =>
    Effect.gen(function* () {
      const { terminal, ask, screen } = yield* setup()
      const asking = yield* ask("Approve")
      yield* terminal.type("a")
      yield* terminal.end
      assert.isTrue(cancelled(yield* Fiber.join(asking)))
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
    })
  )

  it.scoped("does not print a piped password, and does not ask for one where it would be shown", () =>
    Effect.gen(function* () {
      const piped = yield* setup()
      const asking = yield* piped.ask("Auth.Password")
      yield* piped.terminal.type("hunter2\n")
      assert.isTrue(Either.isRight(yield* Fiber.join(asking)))
      assert.notInclude(piped.terminal.raw(), "hunter2")
      const typed = yield* setup(true)
      assert.isTrue(cancelled(yield* Fiber.join(yield* typed.ask("Auth.Password"))))
    })
  )

  it.scoped("tells a person once how long they have, and when it is over", () =>
    Effect.gen(function* () {
      for (const isPerson of [true, false]) {
        const { ask, terminal } = yield* setup(isPerson, undefined, { permission: "90 seconds" })
        const asking = yield* ask("Approve")
        yield* terminal.type("what?\n")
        yield* TestClock.adjust("90 seconds")
        assert.isTrue(Either.isLeft(yield* Fiber.join(asking)))
        assert.lengthOf(terminal.raw().match(/You have 90 s to answer\./g) ?? [], isPerson ? 1 : 0)
        assert.include(terminal.raw(), "Allow run_command? (closed: nobody answered in time)\n")
      }
    })
  )

  it.scoped("says so when a question is withdrawn, and goes on with the next", () =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup()
      const first = yield* ask("Approve")
      yield* Fiber.interrupt(first)
      const second = yield* ask("Confirm")
      yield* terminal.type("y\n")
      assert.isTrue(Either.isRight(yield* Fiber.join(second)))
      assert.include(terminal.raw(), "Allow run_command? (closed: answered elsewhere or withdrawn)\n")
    })
  )

  it.scoped("goes back to the question before, and asks again for what is none of the choices", () =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup(true)
      const asking = yield* ask("Clarify")
      yield* terminal.type("back\n")
      assert.include(terminal.raw(), "This is the first question.")
      yield* terminal.type("nonsense\n1\nback\n")
      assert.include(terminal.raw(), "Please type a number from 1 to")
      assert.match(terminal.raw(), /back to the one before[^]*answer> back\n│ Question 1\/2|answer> \n?│ Question 1\/2/)
      yield* terminal.type('2\n"back"\n')
      const { choices } = InteractionSample.samples.Clarify.interaction.questions[0] ?? { choices: [] }
      const result = yield* Fiber.join(asking)
      assert(Either.isRight(result))
      assert.deepEqual<unknown>(result.right.answer, {
        "1": { selected: 2, text: choices[1] },
        "2": { value: "back" }
      })
    })
  )

  it.scoped("counts a carriage return with a newline as one line end", () =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup()
      const asking = yield* ask("Clarify")
      yield* terminal.type("1\n")
      yield* terminal.press("enter")
      yield* terminal.type("why not\n")
      const result = yield* Fiber.join(asking)
      assert.isTrue(Either.isRight(result))
      if (Either.isRight(result)) {
        assert.deepEqual<unknown>(result.right.answer, {
          "1": { selected: 1, text: "postgres" },
          "2": { value: "why not" }
        })
      }
    })
  )
})
