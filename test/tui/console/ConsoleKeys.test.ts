import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as fc from "effect/FastCheck"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import * as HistorySearch from "../../../src/tui/terminal/HistorySearch.js"
import * as LineEditor from "../../../src/tui/terminal/LineEditor.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

const setup = (options: Partial<ConsoleScreen.Options> = {}, size = { columns: 60, rows: 14 }, clock?: Clock.Clock) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make(size)
    const making = Effect.provide(ConsoleScreen.make({ color: false, ...options }), terminal.layer)
    const screen = yield* clock === undefined ? making : Effect.withClock(making, clock)
    yield* TestClock.adjust("1 second")
    return { terminal, screen }
  })

const keys = new Map([
  ["y", ["yes"]],
  ["n", ["no", "never"]],
  ["a", ["always", "all"]]
])

/** Opens a dialog of one question, and waits until it listens to single keys. */
const ask = (screen: ConsoleScreen.Service, more: Partial<ConsoleScreen.Question> = {}) =>
  Effect.tap(
    Effect.fork(
      Effect.either(screen.dialog("Allow x?", (put) => put({ lines: [], label: "answer> ", keys, ...more })))
    ),
    () => Effect.zipRight(Effect.repeatN(Effect.yieldNow(), 50), TestClock.adjust("1 second"))
  )

describe("an answer of one key", () => {
  it.scoped("counts once it has stayed alone, and takes the rest of its word and an Enter with it", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const asking = yield* ask(screen)
      yield* terminal.type("a")
      yield* TestClock.adjust("299 millis")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("a"))
      for (const key of ["l", "l", "\n"]) {
        yield* TestClock.adjust("400 millis")
        yield* terminal.type(key)
      }
      assert.strictEqual(yield* screen.draft, "")
      yield* terminal.type("hello\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "hello" }))
    })
  )

  it.scoped("counts also where a timer ends before the clock says so", () =>
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const hasty: Clock.Clock = {
        [Clock.ClockTypeId]: Clock.ClockTypeId,
        unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis(),
        unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanos: clock.currentTimeNanos,
        sleep: (duration) =>
          clock.sleep(Duration.toMillis(duration) > 1 ? Duration.subtract(duration, "1 millis") : duration)
      }
      const { screen, terminal } = yield* setup({}, undefined, hasty)
      const asking = yield* ask(screen)
      yield* terminal.type("a")
      yield* TestClock.adjust("299 millis")
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("a"))
    })
  )

  it.scoped("is the beginning of a word when another key comes", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const asking = yield* ask(screen)
      for (const key of "never") {
        yield* terminal.type(key)
        yield* TestClock.adjust("200 millis")
      }
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("never"))
    })
  )

  it.scoped("is never given by somebody who has words to send, or was typing", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* terminal.type("my draft")
      const asking = yield* ask(screen)
      yield* terminal.type("y")
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("y"))
      assert.strictEqual(yield* screen.draft, "my draft")
    })
  )

  for (const columns of [120, 80, 40])
    it.scoped(`says that it waits for Enter where it came too soon, or words are kept, in ${columns} columns`, () =>
      Effect.gen(function* () {
        const { screen, terminal } = yield* setup({}, { columns, rows: 14 })
        const asking = yield* Effect.fork(
          screen.dialog("Allow x?", (put) => put({ lines: [], label: "answer> ", keys }))
        )
        yield* Effect.repeatN(Effect.yieldNow(), 50)
        yield* TestClock.adjust("400 millis")
        yield* terminal.type("y")
        assert.include(terminal.screen(), "y waits for Enter: it came early")
        yield* TestClock.adjust("1 minute")
        yield* terminal.press("backspace")
        assert.notInclude(terminal.screen().join("\n"), "waits for Enter")
        yield* terminal.type("n")
        assert.notInclude(terminal.screen().join("\n"), "waits for Enter")
        yield* TestClock.adjust("300 millis")
        assert.strictEqual(yield* Fiber.join(asking), "n")
        yield* terminal.type("my draft")
        const another = yield* ask(screen)
        yield* terminal.type("y")
        assert.include(terminal.screen(), "y waits for Enter: a draft is kept")
        yield* terminal.type("e")
        assert.notInclude(terminal.screen().join("\n"), "waits for Enter")
        yield* Fiber.interrupt(another)
      })
    )

  it.scoped("is taken back by escape", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const asking = yield* ask(screen)
      yield* terminal.type("y")
      yield* terminal.press("escape")
      yield* TestClock.adjust("1 minute")
      assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
      yield* Fiber.interrupt(asking)
    })
  )
})

describe("escape and Ctrl-C", () => {
  it.scoped("interrupt, and clear the draft when escape is pressed twice", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* terminal.type("words")
      yield* terminal.press("escape")
      assert.strictEqual(yield* screen.draft, "words")
      yield* TestClock.adjust("200 millis")
      yield* terminal.press("escape")
      assert.strictEqual(yield* screen.draft, "")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Escape())
      yield* TestClock.adjust("1 second")
      yield* terminal.press("escape")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Escape())
    })
  )

  it.scoped("end a question where nothing is typed, and only clear where something is", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      for (const press of [terminal.press("escape"), terminal.press("c", { ctrl: true })]) {
        const asking = yield* ask(screen)
        yield* terminal.type("wha")
        yield* press
        yield* TestClock.adjust("1 second")
        assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
        yield* press
        const closed = new ConsoleScreen.DialogClosed({ by: "interrupt" })
        assert.deepStrictEqual(yield* Fiber.join(asking), Either.left(closed))
      }
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Escape())
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Interrupt())
    })
  )
})

describe("a line for the program", () => {
  it.scoped("reaches it from a dialog, which stays open", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* screen.setCommands((line) => (line === "/help" ? screen.printLine("this helps") : undefined))
      const asking = yield* ask(screen)
      yield* terminal.type("/help\n")
      assert.include(terminal.screen(), "this helps")
      assert.deepStrictEqual(terminal.screen().slice(-2), ["Allow x?", "answer>"])
      yield* terminal.type("/other\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("/other"))
    })
  )

  it.scoped("is an answer where a text is asked for", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* screen.setCommands(() => screen.printLine("never"))
      const asking = yield* ask(screen, { paste: "insert" })
      yield* terminal.type("/help\n")
      assert.deepStrictEqual(yield* Fiber.join(asking), Either.right("/help"))
    })
  )
})

describe("what was typed before", () => {
  const history = ["run the tests", "fix the parser", "run ls"]

  it.scoped("is found with Ctrl-R, and submitted with Enter", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup({ history })
      yield* terminal.type("draft")
      yield* terminal.press("r", { ctrl: true })
      yield* terminal.type("run")
      assert.deepStrictEqual(terminal.screen(), ['search "run"> run ls'])
      yield* terminal.press("r", { ctrl: true })
      assert.deepStrictEqual(terminal.screen(), ['search "run"> run the tests'])
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "run the tests" }))
    })
  )

  it.scoped("can be edited, or given up for the draft", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup({ history })
      yield* terminal.type("draft")
      yield* terminal.press("r", { ctrl: true })
      yield* terminal.type("nowhere")
      assert.deepStrictEqual(terminal.screen(), ['nothing for "nowhere"> draft'])
      yield* terminal.press("c", { ctrl: true })
      assert.strictEqual(yield* screen.draft, "draft")
      yield* terminal.press("r", { ctrl: true })
      yield* terminal.type("PARSER".toLowerCase())
      yield* terminal.press("escape")
      assert.strictEqual(yield* screen.draft, "fix the parser")
      yield* terminal.type("!")
      assert.strictEqual(yield* screen.draft, "fix the parser!")
    })
  )

  it("never leads out of the history, whatever is pressed", () => {
    const pressed = fc.array(fc.constantFrom("r", "s", "backspace", "u", "n", "x"), { maxLength: 30 })
    fc.assert(
      fc.property(fc.array(fc.constantFrom("run", "nun", "ux", ""), { maxLength: 6 }), pressed, (history, names) => {
        let search = HistorySearch.make(history)
        for (const name of names) {
          const isCtrl = name === "r" || name === "s"
          const input = TestTerminal.key(name, { ctrl: isCtrl }, name.length === 1 && !isCtrl ? name : undefined)
          const outcome = HistorySearch.press(search, input, history)
          if (outcome._tag === "Searching") search = outcome.search
          const found = HistorySearch.found(search, history)
          assert.isTrue(found === undefined ? search.at === history.length : found.includes(search.query))
        }
      })
    )
  })
})

describe("a long paste", () => {
  const long = Array.from({ length: 120 }, (_, index) => `line ${index}`).join("\n")

  it.scoped("is one line on the screen, is sent whole, and can be opened", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      yield* terminal.type("see ")
      yield* terminal.paste(long)
      yield* terminal.type(" please")
      assert.deepStrictEqual(terminal.screen(), ["> see [120 lines · Ctrl-O opens] please"])
      assert.strictEqual(yield* screen.draft, `see ${long} please`)
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: `see ${long} please` }))
      assert.deepStrictEqual(terminal.screen(), ["> see [120 lines] please", ">"])
      yield* terminal.press("up")
      yield* terminal.press("o", { ctrl: true })
      assert.include(terminal.screen().at(-1), "line 119 please")
      assert.strictEqual(yield* screen.draft, `see ${long} please`)
    })
  )

  it.scoped("is one, in however many pieces a terminal hands it on", () =>
    Effect.gen(function* () {
      const { screen, terminal } = yield* setup()
      const text = Array.from({ length: 5_000 }, (_, index) => `pasted line ${index}`).join("\n")
      yield* terminal.press("paste-start")
      for (let at = 0; at < text.length; at += 4_096) yield* terminal.type(text.slice(at, at + 4_096))
      yield* terminal.press("paste-end")
      assert.deepStrictEqual(terminal.screen(), ["> [5000 lines · Ctrl-O opens]"])
      yield* terminal.type("\n")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text }))
    })
  )

  it("is one character to every key, and what is meant never changes by looking at it", () => {
    const big = "x".repeat(3_000)
    const step = fc.oneof(
      fc.constantFrom("left", "right", "home", "end", "backspace", "delete", "paste", "type", "up", "down", "fold"),
      fc.constantFrom("w", "u", "k", "y", "p", "n")
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let editor = LineEditor.make("", ["before", big])
        let isOpened = false
        for (const name of steps) {
          if (name === "paste") editor = LineEditor.paste(editor, big)
          else if (name === "type") editor = LineEditor.insert(editor, "a\ufdd0\n")
          else if (name === "fold") {
            editor = LineEditor.unfold(editor)
            isOpened = true
          } else {
            const outcome = LineEditor.press(editor, TestTerminal.key(name, { ctrl: name.length === 1 }))
            if (outcome._tag === "Edited") editor = outcome.editor
          }
          const whole = LineEditor.whole(editor)
          assert.isFalse(/[\ufdd0-\ufdef]/.test(whole))
          // What was opened is text, which keys take apart.
          if (!isOpened) assert.strictEqual(whole.replace(/[a\nbefor]/g, "").length % big.length, 0)
          assert.isTrue(editor.cursor >= 0 && editor.cursor <= editor.text.length)
          assert.strictEqual(LineEditor.whole(LineEditor.unfold(editor)), whole)
        }
      })
    )
  })
})

describe("a new line", () => {
  for (const [name, press] of [
    ["Ctrl-J", (terminal: TestTerminal.TestTerminal) => terminal.press("enter")],
    ["Shift-Enter", (terminal: TestTerminal.TestTerminal) => terminal.press("return", { shift: true })],
    ["Alt-Enter", (terminal: TestTerminal.TestTerminal) => terminal.press("return", { meta: true })]
  ] as const)
    it.scoped(`comes with ${name}`, () =>
      Effect.gen(function* () {
        const { screen, terminal } = yield* setup()
        yield* terminal.type("one")
        yield* press(terminal)
        yield* terminal.type("two\n")
        assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Line({ text: "one\ntwo" }))
      })
    )
})

describe("the terminal in other hands", () => {
  const outside = Effect.gen(function* () {
    const back = yield* Deferred.make<void>()
    const opened: Array<string> = []
    return {
      back,
      opened,
      outside: {
        suspend: Deferred.await(back),
        edit: (text: string) =>
          text === "bad"
            ? Effect.fail("The editor is missing.")
            : Effect.as(
                Effect.zipRight(
                  Effect.sync(() => opened.push(text)),
                  Deferred.await(back)
                ),
                `${text}, edited`
              )
      }
    }
  })

  it.scoped("gets nothing of what is printed meanwhile, which comes afterwards with the draft and the dialog", () =>
    Effect.gen(function* () {
      const { back, outside: given } = yield* outside
      const { screen, terminal } = yield* setup({ outside: given })
      yield* terminal.type("draft")
      yield* terminal.press("z", { ctrl: true })
      assert.isFalse(terminal.pasteMode())
      assert.deepStrictEqual(terminal.screen(), [])
      const before = terminal.writes()
      yield* screen.printLine("news")
      yield* screen.status({ text: "working" })
      yield* TestClock.adjust("5 seconds")
      const asking = yield* ask(screen)
      assert.strictEqual(terminal.writes(), before)
      yield* Deferred.succeed(back, undefined)
      yield* terminal.settle
      assert.isTrue(terminal.pasteMode())
      assert.strictEqual(terminal.screen()[0], "news")
      assert.include(terminal.screen(), "Allow x?")
      assert.include(terminal.screen(), "draft kept: draft")
      yield* TestClock.adjust("1 second")
      yield* terminal.type("y\n")
      assert.strictEqual((yield* Fiber.join(asking))._tag, "Right")
    })
  )

  for (const chord of [[["g"]], [["x"], ["e"]]])
    it.scoped(`edits the draft with ${chord.map(([name]) => `Ctrl-${name}`).join(" ")}`, () =>
      Effect.gen(function* () {
        const { back, opened, outside: given } = yield* outside
        const { screen, terminal } = yield* setup({ outside: given })
        yield* terminal.type("words")
        for (const [name = ""] of chord) yield* terminal.press(name, { ctrl: true })
        assert.deepStrictEqual(opened, ["words"])
        yield* Deferred.succeed(back, undefined)
        yield* terminal.settle
        assert.strictEqual(yield* screen.draft, "words, edited")
        assert.deepStrictEqual(terminal.screen(), ["> words, edited"])
      })
    )

  it.scoped("says why there is no editor, and keeps the text", () =>
    Effect.gen(function* () {
      const { outside: given } = yield* outside
      const { screen, terminal } = yield* setup({ outside: given })
      yield* terminal.type("bad")
      yield* terminal.press("g", { ctrl: true })
      assert.deepStrictEqual(terminal.screen(), ["The editor is missing.", "> bad"])
      assert.strictEqual(yield* screen.draft, "bad")
    })
  )

  it.scoped("gives back what was written there for a question that is gone", () =>
    Effect.gen(function* () {
      const { back, outside: given } = yield* outside
      const { screen, terminal } = yield* setup({ outside: given })
      const asking = yield* Effect.fork(
        screen.dialog("Why?", (ask) => ask({ lines: [], label: "answer> ", paste: "insert" }))
      )
      yield* TestClock.adjust("1 second")
      yield* terminal.type("because")
      yield* terminal.press("g", { ctrl: true })
      yield* Fiber.interrupt(asking)
      yield* Deferred.succeed(back, undefined)
      yield* terminal.settle
      assert.strictEqual(yield* screen.draft, "because, edited")
    })
  )

  it.scoped("never gets a secret, nor a choice", () =>
    Effect.gen(function* () {
      const { opened, outside: given } = yield* outside
      const { screen, terminal } = yield* setup({ outside: given })
      for (const more of [{ hidden: true, paste: "insert" as const }, {}]) {
        const asking = yield* ask(screen, more)
        yield* terminal.type("hunter2")
        yield* terminal.press("g", { ctrl: true })
        yield* terminal.type("\n")
        yield* Fiber.join(asking)
      }
      assert.deepStrictEqual(opened, [])
    })
  )
})

describe("a question that waits", () => {
  it.scoped("calls once, when nobody typed for ten seconds", () =>
    Effect.gen(function* () {
      let rang = 0
      const { screen, terminal } = yield* setup({ call: Effect.sync(() => void rang++) })
      yield* TestClock.adjust("5 seconds")
      yield* terminal.type("x")
      const asking = yield* ask(screen)
      yield* TestClock.adjust("8 seconds")
      assert.strictEqual(rang, 0)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(rang, 1)
      yield* Fiber.interrupt(asking)
    })
  )
})
