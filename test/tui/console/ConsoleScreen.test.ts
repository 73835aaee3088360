import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const setup = (size = { columns: 60, rows: 12 }, options: Partial<ConsoleScreen.Options> = {}) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make(size)
    const screen = yield* Effect.provide(ConsoleScreen.make({ color: false, ...options }), terminal.layer)
    // The clock of tests starts at 0; a person does not press a key in the same instant.
    yield* TestClock.adjust("1 second")
    return { terminal, screen }
  })

const question = (label: string, more: Partial<ConsoleScreen.Question> = {}): ConsoleScreen.Question => ({
  lines: ["the body"],
  label,
  ...more
})

/** Opens a dialog of one question, and waits until it can be seen. */
const ask = (screen: ConsoleScreen.Service, title: string, more: Partial<ConsoleScreen.Question> = {}) =>
  Effect.tap(Effect.fork(Effect.either(screen.dialog(title, (put) => put(question("answer> ", more))))), () =>
    Effect.repeatN(Effect.yieldNow(), 50)
  )

const pause = TestClock.adjust("250 millis")

describe("the prompt", () => {
  it.scoped("submits what was typed and shows it above", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("hello")
      assert.deepStrictEqual(terminal.screen(), ["> hello"])
      assert.deepStrictEqual(terminal.cursor(), { row: 0, column: 7, visible: true })
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "hello" }))
      assert.deepStrictEqual(terminal.screen(), ["> hello", ">"])
    })
  )

  it.scoped("ignores a blank line", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("  \nhi\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "hi" }))
    })
  )

  it.scoped("loses no line when the wait for one is interrupted", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const waiting = yield* Effect.fork(screen.next)
      yield* terminal.settle
      yield* Fiber.interrupt(waiting)
      yield* terminal.type("kept\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "kept" }))
    })
  )

  it.scoped("tells of Ctrl-C, of Ctrl-D on an empty line, and of the end of input for ever", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.press("c", { ctrl: true })
      yield* terminal.press("d", { ctrl: true })
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Interrupt())
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
      yield* terminal.end
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
    })
  )

  it.scoped("clears what is typed on Ctrl-C, tells nobody, and gives it back on Ctrl-Y", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("half a thought")
      yield* terminal.press("c", { ctrl: true })
      assert.strictEqual(yield* screen.draft, "")
      yield* terminal.press("y", { ctrl: true })
      assert.strictEqual(yield* screen.draft, "half a thought")
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "half a thought" }))
    })
  )

  it.scoped("recalls lines and gives the draft back", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup(undefined, { history: ["before"] })
      yield* terminal.type("first\nhalf")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "first")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "before")
      yield* terminal.press("down")
      yield* terminal.press("down")
      assert.strictEqual(yield* screen.draft, "half")
    })
  )

  it.scoped("takes a paste of several lines as one text and submits nothing", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.paste("one\ntwo\n\tthree")
      assert.strictEqual(yield* screen.draft, "one\ntwo\n\tthree")
      assert.deepStrictEqual(terminal.screen(), ["> one", "  two", "      three"])
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "one\ntwo\n\tthree" }))
    })
  )

  it.scoped("takes a paste that comes in pieces, and gives up on one that never ends when it is interrupted", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.press("paste-start")
      yield* terminal.type("one\n")
      // More of it may be on its way.
      assert.strictEqual(yield* screen.draft, "")
      yield* TestClock.adjust("1 second")
      yield* terminal.type("two\n")
      assert.strictEqual(yield* screen.draft, "one\ntwo\n")
      yield* terminal.press("c", { ctrl: true })
      yield* terminal.type("rest\n")
      yield* pause
      yield* terminal.type("three\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "one\ntwo\nthree" }))
    })
  )

  it.scoped("takes no paste while a text is over it, neither as keys nor as words", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("mine")
      yield* screen.page({ title: "log", lines: () => [["one"], ["two"]] })
      yield* terminal.paste("q\nrm -rf everything\n")
      assert.include(terminal.screen().at(-1), "log")
      yield* terminal.press("paste-start")
      yield* terminal.press("c", { ctrl: true })
      yield* terminal.type("q\nrest\n")
      yield* terminal.press("paste-end")
      assert.include(terminal.screen().at(-1), "log")
      yield* terminal.type("q")
      assert.deepStrictEqual(terminal.screen(), ["> mine"])
      yield* terminal.type("!\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "mine!" }))
    })
  )

  it.scoped("takes a paste of 100,000 characters", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const text = "0123456789abcdef ghi\n".repeat(5_000).trim()
      yield* terminal.paste(text)
      assert.strictEqual(yield* screen.draft, text)
      assert.isAtMost(terminal.screen().length, 12)
    })
  )

  it.scoped("completes with tab, and shows the choices when there are several", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const words = ["/permissions", "/profile", "/help"]
      yield* screen.setCompletion((line) => words.filter((word) => word.startsWith(line)))
      yield* terminal.type("/h\t")
      assert.strictEqual(yield* screen.draft, "/help")
      yield* screen.setDraft("/p")
      yield* terminal.type("\t")
      assert.deepStrictEqual(terminal.screen(), ["/permissions  /profile", "> /p"])
      yield* terminal.type("e\t")
      assert.strictEqual(yield* screen.draft, "/permissions")
    })
  )

  it.scoped("says in its prompt whom the words go to, and keeps that in what was submitted", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 20, rows: 12 })
      yield* screen.setPrompt("explore › ")
      yield* terminal.type("hello")
      assert.deepStrictEqual(terminal.screen(), ["explore › hello"])
      yield* terminal.type("\n")
      yield* screen.setPrompt("a\u001b[2J\nvery long name › ")
      assert.deepStrictEqual(terminal.screen(), ["explore › hello", "a␛[2J↵ver…"])
      const asking = yield* ask(screen, "a question?")
      assert.include(terminal.screen(), "answer>")
      yield* Fiber.interrupt(asking)
      yield* screen.setPrompt(undefined)
      assert.strictEqual(terminal.screen().at(-1), ">")
    })
  )

  it.scoped("takes a carriage return with a newline for one Enter", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "first?")
      yield* pause
      yield* terminal.type("y\n")
      const second = yield* ask(screen, "second?", { followUp: true })
      yield* terminal.press("enter")
      yield* terminal.type("n\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("y"))
      assert.deepStrictEqual(yield* Fiber.join(second), Either.right("n"))
    })
  )

  it.scoped("draws itself anew on Ctrl-L", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* screen.print("old output\n")
      yield* terminal.type("abc")
      yield* terminal.press("l", { ctrl: true })
      assert.deepStrictEqual(terminal.screen(), ["> abc"])
    })
  )
})

describe("output", () => {
  it.scoped("stays above the prompt and goes on in the middle of a line", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("typing")
      for (const piece of ["Hel", "lo, ", "world\nand ", "more"]) yield* screen.print(piece)
      assert.deepStrictEqual(terminal.screen(), ["Hello, world", "and more", "> typing"])
      yield* screen.printLine("a line")
      assert.deepStrictEqual(terminal.screen(), ["Hello, world", "and more", "a line", "> typing"])
    })
  )

  it.scoped("goes on where it stopped however it falls on the rows", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 10, rows: 30 })
      const text = "abcdefghij" + "klmnopqrst" + "日本語日本語" + "x\n" + "0123456789\nend"
      for (const char of text) yield* screen.print(char)
      const whole = yield* TestTerminal.make({ columns: 10, rows: 30 })
      yield* whole.terminal.display(text.replaceAll("\n", "\r\n"))
      assert.deepStrictEqual(terminal.screen(), [...whole.screen(), ">"])
    })
  )

  it.scoped("scrolls, and the prompt stays", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 40, rows: 5 })
      for (let line = 1; line <= 20; line++) yield* screen.print(`line ${line}\n`)
      assert.deepStrictEqual(terminal.screen(), ["line 17", "line 18", "line 19", "line 20", ">"])
      assert.strictEqual(terminal.history().length, 21)
    })
  )

  it.scoped("cannot steer the terminal", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* screen.print("\x1b[2J\x1b[HAllow run_command?\x1b]0;title\x07\r\x1b[31mred\x1b[0m\x9b2K\x08\n")
      assert.deepStrictEqual(terminal.screen(), ["Allow run_command?", "red", ">"])
    })
  )

  it.scoped("reaches the terminal also after the screen has closed", () =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 40, rows: 5 })
      const scope = yield* Scope.make()
      const screen = yield* ConsoleScreen.make({ color: false }).pipe(
        Effect.provide(terminal.layer),
        Scope.extend(scope)
      )
      yield* Scope.close(scope, Exit.void)
      yield* screen.print("bye\n")
      assert.deepStrictEqual(terminal.screen(), ["bye"])
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
    })
  )
})

describe("the status", () => {
  it.scoped("turns a spinner and counts seconds while there is one", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const since = yield* Clock.currentTimeMillis
      yield* screen.status({ text: "thinking", since, note: "main" })
      assert.deepStrictEqual(terminal.screen(), ["⠋ thinking 0.0s  main", ">"])
      yield* TestClock.adjust("3200 millis")
      yield* terminal.settle
      assert.match(terminal.screen()[0] ?? "", /^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] thinking 3\.2s {2}main$/)
      yield* screen.status(undefined)
      assert.deepStrictEqual(terminal.screen(), [">"])
    })
  )

  it.scoped("counts down to the end of a pause, and then goes on as it was", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const since = yield* Clock.currentTimeMillis
      const pause = { until: since + 18_000, reason: "to try again (2 of 5)" }
      yield* screen.status({ text: "thinking", since, pause })
      assert.deepStrictEqual(terminal.screen(), ["⠋ waiting 18 s to try again (2 of 5)", ">"])
      yield* TestClock.adjust("16500 millis")
      yield* terminal.settle
      assert.match(terminal.screen()[0] ?? "", /^. waiting 2 s to try again \(2 of 5\)$/)
      yield* TestClock.adjust("1500 millis")
      yield* terminal.settle
      assert.match(terminal.screen()[0] ?? "", /^. thinking 18\.0s$/)
    })
  )

  it.scoped("writes nothing while there is none", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* screen.status({ text: "working" })
      yield* TestClock.adjust("1 second")
      yield* screen.status(undefined)
      const writes = terminal.writes()
      yield* TestClock.adjust("1 minute")
      yield* terminal.settle
      assert.strictEqual(terminal.writes(), writes)
    })
  )

  it.scoped("stays below the output", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* screen.status({ text: "working" })
      yield* screen.print("half a li")
      yield* screen.print("ne")
      assert.deepStrictEqual(terminal.screen(), ["half a line", "⠋ working", ">"])
    })
  )
})

describe("a dialog", () => {
  it.scoped("takes the place of the prompt, and gives the draft back", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("half a tho")
      yield* pause
      const asking = yield* ask(screen, "Allow it?")
      assert.deepStrictEqual(terminal.screen(), ["Allow it?", "│ the body", "draft kept: half a tho", "answer>"])
      yield* pause
      yield* terminal.type("yes\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("yes"))
      assert.deepStrictEqual(terminal.screen(), ["Allow it?", "│ the body", "answer> yes", "> half a tho"])
      yield* terminal.type("ught\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "half a thought" }))
    })
  )

  it.scoped("is not answered by keys that were typed before it was drawn", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("y\n")
      const asking = yield* ask(screen, "Allow it?")
      yield* pause
      assert.strictEqual(asking.unsafePoll(), null)
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "y" }))
    })
  )

  it.scoped("is not answered within 200 ms", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Allow it?")
      yield* TestClock.adjust("199 millis")
      yield* terminal.type("y\n")
      assert.strictEqual(asking.unsafePoll(), null)
      assert.strictEqual(yield* screen.draft, "y", "the early Enter sent nothing")
      yield* TestClock.adjust("1 millis")
      yield* terminal.type("n\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("n"))
      assert.strictEqual(yield* screen.draft, "y")
    })
  )

  it.scoped("is not answered by somebody who types on without looking", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("please tr")
      const asking = yield* ask(screen, "Allow it?")
      for (const char of "y it\n") {
        yield* TestClock.adjust("120 millis")
        yield* terminal.type(char)
      }
      assert.strictEqual(asking.unsafePoll(), null)
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "please try it" }))
      yield* TestClock.adjust("200 millis")
      yield* terminal.type("no\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("no"))
    })
  )

  it.scoped("is never answered by a paste", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Allow it?")
      yield* pause
      yield* terminal.paste("y\ny\n")
      assert.strictEqual(asking.unsafePoll(), null)
      assert.strictEqual(yield* screen.draft, "y\ny\n")
    })
  )

  it.scoped("takes a paste where it asks for text, and is still not answered by it", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Why?", { paste: "insert" })
      yield* pause
      yield* terminal.paste("because\n")
      assert.strictEqual(asking.unsafePoll(), null)
      yield* terminal.type("of it\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("because\nof it"))
    })
  )

  it.scoped("waits for the one before it, in order", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const order: Array<string> = []
      const dialogs = yield* Effect.forEach(["one?", "two?", "three?"], (title) =>
        Effect.fork(
          screen.dialog(title, (put) =>
            Effect.tap(put(question("answer> ")), () => Effect.sync(() => order.push(title)))
          )
        )
      )
      yield* terminal.settle
      for (const title of ["one?", "two?", "three?"]) {
        assert.include(terminal.screen(), title)
        yield* pause
        yield* terminal.type("ok\n")
      }
      yield* Fiber.joinAll(dialogs)
      assert.deepStrictEqual(order, ["one?", "two?", "three?"])
    })
  )

  it.scoped("is erased when it is interrupted, and leaves a note and the draft", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.type("my draft")
      yield* pause
      const asking = yield* ask(screen, "Allow it?")
      const second = yield* ask(screen, "And this?")
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(terminal.screen(), ["Allow it? (closed: answered elsewhere or withdrawn)", "> my draft"])
      yield* terminal.resize(30, 12)
      yield* Fiber.interrupt(yield* ask(screen, "And that?"))
      assert.deepStrictEqual(terminal.screen().slice(-3), [
        "And that? (closed: answered",
        "elsewhere or withdrawn)",
        "> my draft"
      ])
    })
  )

  it.scoped("drops the rest of an answer to a question that is gone", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Password?", { hidden: true })
      yield* pause
      yield* terminal.type("sec")
      yield* Fiber.interrupt(asking)
      yield* TestClock.adjust("300 millis")
      yield* terminal.type("ret\n")
      assert.strictEqual(yield* screen.draft, "")
      assert.notInclude(terminal.raw(), "sec")
      assert.notInclude(terminal.raw(), "ret")
      yield* TestClock.adjust("3 seconds")
      yield* terminal.type("hello\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "hello" }))
    })
  )

  it.scoped("is closed by Ctrl-C, which whoever reads the lines hears too", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Allow it?")
      yield* terminal.press("c", { ctrl: true })
      assert.deepStrictEqual(
        yield* Fiber.join(asking),
        Either.left(new ConsoleScreen.DialogClosed({ by: "interrupt" }))
      )
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Interrupt())
      assert.deepStrictEqual(terminal.screen(), ["Allow it?", "│ the body", "answer> (cancelled)", ">"])
    })
  )

  it.scoped(
    "is closed by Ctrl-D, which whoever reads the lines hears first, and which is ignored when it comes too early",
    () =>
      Effect.gen(function* () {
        const { terminal, screen } = yield* setup()
        const asking = yield* ask(screen, "Allow it?")
        yield* terminal.press("d", { ctrl: true })
        assert.strictEqual(asking.unsafePoll(), null)
        yield* pause
        yield* terminal.press("d", { ctrl: true })
        const closed = Either.left(new ConsoleScreen.DialogClosed({ by: "end of input" }))
        assert.deepStrictEqual(yield* Fiber.join(asking), closed)
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.EndOfInput())
        yield* terminal.type("still here\n")
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "still here" }))
      })
  )

  it.scoped("is gone back from by Ctrl-D where there is a question before it, and nobody leaves", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Which one?", { back: true })
      yield* pause
      yield* terminal.press("d", { ctrl: true })
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.left(new ConsoleScreen.DialogClosed({ by: "escape" })))
      yield* terminal.type("still here\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "still here" }))
    })
  )

  it.scoped("is closed a second after the terminal is gone, like those in line, so that a signal is heard first", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const first = yield* ask(screen, "one?")
      const second = yield* ask(screen, "two?")
      yield* terminal.end
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(first.unsafePoll(), null)
      yield* TestClock.adjust("1 millis")
      const closed = Either.left(new ConsoleScreen.DialogClosed({ by: "end of input" }))
      assert.deepStrictEqual(yield* Fiber.join(first), closed)
      assert.deepStrictEqual(yield* Fiber.join(second), closed)
    })
  )

  it.scoped("is closed when nobody can see it any more", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      yield* terminal.breakOutput
      const asking = yield* ask(screen, "one?")
      yield* TestClock.adjust("1 second")
      assert.isTrue(Either.isLeft(yield* Fiber.join(asking)))
    })
  )

  it.scoped("hides a secret from the screen and the history", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Password?", { hidden: true, paste: "insert" })
      yield* pause
      yield* terminal.type("hun")
      yield* terminal.paste("ter2")
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("hunter2"))
      assert.notInclude(terminal.raw(), "hun")
      assert.notInclude(terminal.raw(), "ter2")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "")
    })
  )

  it.scoped("edits a text of several lines", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup()
      const asking = yield* ask(screen, "Edit", { initial: "one\ntwo" })
      yield* pause
      yield* terminal.press("up")
      yield* terminal.type("!")
      yield* terminal.press("return", { meta: true })
      yield* terminal.type("half\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("one!\nhalf\ntwo"))
      // Rows that somebody typed cannot pass for rows of ours afterwards.
      assert.deepStrictEqual(terminal.screen().slice(-4), ["answer> one!", "        half", "        two", ">"])
    })
  )

  it.scoped("keeps its place while output goes by", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 40, rows: 8 })
      yield* ask(screen, "Allow it?")
      for (let line = 1; line <= 9; line++) yield* screen.print(`line ${line}\n`)
      yield* screen.print("and so")
      assert.deepStrictEqual(terminal.screen().slice(-4), ["and so", "Allow it?", "│ the body", "answer>"])
    })
  )

  it.scoped("that is too high is printed whole, and keeps its title and end in sight", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 40, rows: 12 })
      const lines = Array.from({ length: 30 }, (_, index) => `row ${index + 1}`)
      const asking = yield* ask(screen, "Allow it?", { lines })
      assert.deepStrictEqual(terminal.screen().slice(-7), [
        "Allow it?",
        "… 26 more rows above",
        "│ row 27",
        "│ row 28",
        "│ row 29",
        "│ row 30",
        "answer>"
      ])
      for (const line of lines) assert.include(terminal.history(), `│ ${line}`)
      yield* pause
      yield* terminal.type("y\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("y"))
      assert.strictEqual(terminal.history().filter((row) => row === "│ row 30").length, 1)
    })
  )

  it.scoped("that is too high keeps in sight what it is about, where there is room", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 40, rows: 20 })
      const lines = ["create big.ts", ...Array.from({ length: 30 }, (_, index) => `row ${index + 1}`)]
      yield* ask(screen, "Allow it?", { lines })
      const shown = terminal.screen()
      assert.deepStrictEqual(shown.slice(shown.lastIndexOf("Allow it?")).slice(0, 5), [
        "Allow it?",
        "│ create big.ts",
        "│ row 1",
        "… 19 more rows above",
        "│ row 21"
      ])
    })
  )

  it.scoped("hands its turn on when whoever waits is interrupted in that very moment", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.fork(screen.dialog("one", () => Deferred.await(gate)))
      yield* terminal.settle
      const second = yield* Effect.fork(screen.dialog("two", () => Effect.void))
      yield* terminal.settle
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.all([Fiber.interrupt(first), Fiber.interrupt(second)], { concurrency: 2 })
      yield* screen.dialog("three", () => Effect.void)
    })
  )
})

describe("a narrow terminal", () => {
  it.scoped("wraps the prompt, the dialog and a long label", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 20, rows: 16 })
      yield* terminal.type("a fairly long line to type")
      assert.deepStrictEqual(terminal.screen(), ["> a fairly long line", " to type"])
      assert.deepStrictEqual(terminal.cursor(), { row: 1, column: 8, visible: true })
      yield* screen.setDraft("")
      yield* pause
      yield* Effect.fork(
        screen.dialog("[subagent:code_reviewer] Allow run_command?", (put) =>
          put({ lines: ["rm -rf dist and everything in it"], label: "a rather long label> " })
        )
      )
      yield* terminal.settle
      yield* pause
      yield* terminal.type("ok")
      assert.deepStrictEqual(terminal.screen(), [
        "[subagent:code_revie",
        "wer] Allow",
        "run_command?",
        "│ rm -rf dist and",
        "│ everything in it",
        "a rather long label>",
        "> ok"
      ])
    })
  )

  it.scoped("shows wide characters whole", () =>
    Effect.gen(function* () {
      const { terminal } = yield* setup({ columns: 20, rows: 10 })
      yield* terminal.type("日本語日本語日本語日本語")
      assert.deepStrictEqual(terminal.screen(), ["> 日本語日本語日本語", "日本語"])
      yield* terminal.press("left")
      assert.deepStrictEqual(terminal.cursor(), { row: 1, column: 4, visible: true })
      yield* terminal.press("backspace")
      assert.deepStrictEqual(terminal.screen(), ["> 日本語日本語日本語", "日語"])
    })
  )
})

describe("a resize", () => {
  it.scoped("leaves one prompt, narrower and wider", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 60, rows: 12 })
      yield* screen.print("some output\n")
      yield* screen.status({ text: "working on something that takes a while" })
      yield* terminal.type("a line that will have to be broken")
      yield* terminal.resize(20, 12)
      assert.deepStrictEqual(terminal.screen(), [
        "some output",
        "⠋ working on somet…",
        "> a line that will h",
        "ave to be broken"
      ])
      yield* terminal.resize(60, 12)
      assert.deepStrictEqual(terminal.screen(), [
        "some output",
        "⠋ working on something that takes a while",
        "> a line that will have to be broken"
      ])
    })
  )

  it.scoped("leaves no copy in the scrollback where the first row of the screen is ours", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 60, rows: 12 })
      yield* terminal.press("l", { ctrl: true })
      yield* screen.status({ text: "working" })
      yield* terminal.type("a line that will have to be broken")
      yield* terminal.resize(20, 12)
      yield* terminal.resize(60, 12)
      yield* screen.print("some output\n")
      assert.deepStrictEqual(terminal.history(), ["some output", "⠋ working", "> a line that will have to be broken"])
    })
  )

  it.scoped("keeps an open dialog", () =>
    Effect.gen(function* () {
      const { terminal, screen } = yield* setup({ columns: 60, rows: 12 })
      const asking = yield* ask(screen, "Allow this call with a longish title?")
      yield* terminal.resize(20, 10)
      assert.deepStrictEqual(terminal.screen(), ["Allow this call with", "a longish title?", "│ the body", "answer>"])
      yield* pause
      yield* terminal.type("y\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("y"))
    })
  )
})

describe("the end", () => {
  it.effect("leaves the terminal as it was", () =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 40, rows: 8 })
      const scope = yield* Scope.make()
      const screen = yield* ConsoleScreen.make({ color: true }).pipe(
        Effect.provide(terminal.layer),
        Scope.extend(scope)
      )
      assert.isTrue(terminal.pasteMode())
      yield* screen.print("output")
      yield* screen.status({ text: "working" })
      const asking = yield* Effect.fork(Effect.either(screen.dialog("Allow?", (put) => put(question("answer> ")))))
      yield* terminal.settle
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Either.isLeft(yield* Fiber.join(asking)))
      assert.isFalse(terminal.pasteMode())
      assert.deepStrictEqual(terminal.screen(), ["output"])
      assert.deepStrictEqual(terminal.cursor(), { row: 1, column: 0, visible: true })
    })
  )
})
