import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as InteractorCall from "../../../src/interaction/InteractorCall.js"
import * as ConsoleChannel from "../../../src/tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import type { RequestId } from "../../../src/core/Id.js"
import * as Interaction from "../../../src/interaction/Interaction.js"
import { FormProgress } from "../../../src/interaction/FormProgress.js"
import type * as Interactor from "../../../src/interaction/Interactor.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as TestTerminal from "../../kit/TestTerminal.js"
import { interactorSuite, type Subject } from "../../suite/interactorSuite.js"

const samples = InteractionSample.samples

const setup = (
  options?: ConsoleChannel.Options,
  size = { columns: 80, rows: 40 },
  drawn: Partial<ConsoleScreen.Options> = {}
) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make(size)
    const screen = yield* Effect.provide(ConsoleScreen.make({ color: false, ...drawn }), terminal.layer)
    const interactor = yield* Effect.provideService(ConsoleChannel.make(options), ConsoleScreen.ConsoleScreen, screen)
    yield* TestClock.adjust("1 second")
    /** Asks, and waits until the dialog can be seen and listens. */
    const ask = <I extends Interaction.Interaction>(interaction: I) =>
      Effect.gen(function* () {
        const request = yield* InteractionSample.request(interaction)
        const asking = yield* Effect.fork(InteractorCall.ask(interactor, request))
        yield* terminal.settle
        yield* TestClock.adjust("250 millis")
        return asking
      })
    /** Answers one line, as somebody does who reads the question first. */
    const say = (line: string) => Effect.zipRight(terminal.type(`${line}\n`), TestClock.adjust("250 millis"))
    return { terminal, screen, interactor, ask, say }
  })

describe("ConsoleChannel", () => {
  it.scoped("asks for a call with who asks and what it does, and takes the option typed", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      assert.deepStrictEqual(terminal.screen(), [
        "Allow run_command?",
        '│ {"command":"ls -la"}',
        "│ [y]es [n]o [a]lways [c]omment [m]ore",
        "│ `always` allows: ls",
        "│ `never` denies: ls",
        "answer>"
      ])
      yield* say("t")
      const answered = yield* Fiber.join(asking)
      assert.deepStrictEqual(answered, {
        answer: { decision: "allow", scope: "turn" },
        by: "console",
        how: "answered"
      })
    })
  )

  it.scoped("shows beginning and end of a long call, and all of it to who wants to see it", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup(undefined, { columns: 100, rows: 400 })
      const lines = Array.from({ length: 200 }, (_, index) => `echo step ${index}`)
      const asking = yield* ask(
        new Interaction.Approve({
          ...samples.Approve.interaction,
          display: { details: lines.join("\n"), format: "code" }
        })
      )
      const shown = terminal.screen().join("\n")
      assert.include(shown, "echo step 59")
      assert.notInclude(shown, "echo step 60\n")
      assert.match(shown, /[\d,]+ characters in 120 lines are between, and not shown here; v shows everything/)
      assert.include(shown, "echo step 180")
      assert.include(shown, "echo step 199")
      assert.include(shown, "[v]iew")
      const before = terminal.history().length
      yield* say("v")
      // Over the whole terminal, with the question behind it: a key there is no answer.
      const whole = terminal.screen().join("\n")
      for (const line of lines) assert.include(whole, `${line}\n`)
      assert.include(whole, "waits for you")
      yield* say("y")
      assert.strictEqual(asking.unsafePoll(), null)
      yield* terminal.press("q")
      yield* TestClock.adjust("250 millis")
      assert.deepStrictEqual(terminal.screen().slice(-5), [
        "│ echo step 0",
        "│ [y]es [n]o [a]lways [c]omment [v]iew [m]ore",
        "│ `always` allows: ls",
        "│ `never` denies: ls",
        "answer>"
      ])
      // Nothing of it was printed above.
      assert.isAtMost(terminal.history().length, before + 5)
      yield* say("nonsense")
      yield* say("y")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
    })
  )

  for (const rows of [16, 60])
    it.scoped(`shows all of a call to who cannot see it at once, in ${rows} rows`, () =>
      Effect.gen(function* () {
        const { terminal, ask, say } = yield* setup(undefined, { columns: 60, rows })
        const lines = Array.from({ length: 12 }, (_, index) => `echo step ${index}`)
        const asking = yield* ask(
          new Interaction.Approve({
            ...samples.Approve.interaction,
            display: { details: lines.join("\n"), format: "code" }
          })
        )
        const isCut = rows === 16
        assert.strictEqual(terminal.screen().join("\n").includes("more rows above"), isCut)
        assert.strictEqual(terminal.screen().join("\n").includes("[v]iew"), isCut)
        yield* say("v")
        assert.strictEqual(terminal.screen().join("\n").includes("waits for you"), isCut)
        assert.strictEqual(terminal.screen().join("\n").includes("Please type one of"), !isCut)
        if (isCut) for (const line of lines) assert.include(terminal.screen(), line)
        yield* terminal.press("q")
        yield* TestClock.adjust("250 millis")
        if (!isCut) yield* terminal.press("backspace")
        yield* say("y")
        assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
      })
    )

  it.scoped("has nothing more to show of a short call", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      assert.notInclude(terminal.screen().join("\n"), "[v]iew")
      yield* say("v")
      assert.include(terminal.screen().join("\n"), "Please type one of")
      yield* say("n")
      yield* Fiber.join(asking)
    })
  )

  it.scoped("asks again on nonsense, and takes the answer then", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* say("sure")
      assert.include(terminal.screen(), "│ Please type one of y, n, a, t, i, once, never, all, c, e.")
      assert.include(terminal.screen(), "│ [y]es [n]o [a]lways [c]omment [m]ore")
      yield* say("")
      yield* say("y")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
    })
  )

  it.scoped.each(InteractionSample.kinds.filter((kind) => kind !== "Ask" && kind !== "Auth.Password"))(
    "asks %s again without limit: nonsense is no answer",
    (kind) =>
      Effect.gen(function* () {
        const { ask, say } = yield* setup()
        const asking = yield* ask(samples[kind].interaction)
        for (let times = 0; times < 12; times++) {
          yield* say("what?")
          assert.isNull(asking.unsafePoll())
        }
        for (const line of InteractionSample.typed(samples[kind])) yield* say(line)
        assert.deepStrictEqual((yield* Fiber.join(asking)).answer, samples[kind].answer)
      })
  )

  it.scoped("does not let lines typed ahead answer when it asks again", () =>
    Effect.gen(function* () {
      const { terminal, screen, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* terminal.type("explain this\ny\nall\n")
      assert.strictEqual(asking.unsafePoll(), null)
      yield* TestClock.adjust("250 millis")
      yield* say("n")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "deny", scope: "once" })
      assert.strictEqual(yield* screen.draft, "yall")
    })
  )

  it.scoped("asks for the words of a comment, and takes none for an answer", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      // Whoever types on at once means the comment.
      yield* terminal.type("c\n")
      yield* terminal.type("not ")
      yield* terminal.type("there\n")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, {
        decision: "deny",
        scope: "once",
        comment: "not there"
      })
      const silent = yield* ask(samples.Approve.interaction)
      for (const line of ["c", "", " ", "", ""]) yield* say(line)
      assert.isNull(silent.unsafePoll())
      yield* say("at last")
      assert.deepStrictEqual((yield* Fiber.join(silent)).answer, {
        decision: "deny",
        scope: "once",
        comment: "at last"
      })
    })
  )

  it.scoped("lets the lone text of a call be edited", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* say("e")
      assert.strictEqual(terminal.screen().at(-1), "edit> ls -la")
      yield* say(" /tmp")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, {
        decision: "edit",
        editedArguments: { command: "ls -la /tmp" }
      })
    })
  )

  it.scoped("lets other arguments be edited as JSON, and keeps a text with a mistake", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(
        new Interaction.Approve({
          ...samples.Approve.interaction,
          editable: { parameters: ["path", "depth"], format: "json", current: { path: "src", depth: 1 } }
        })
      )
      yield* say("e")
      yield* say("!")
      assert.include(terminal.screen().join("\n"), "That is not JSON")
      assert.strictEqual(terminal.screen().at(-1), "      }!")
      yield* terminal.press("u", { ctrl: true })
      yield* say("}")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, {
        decision: "edit",
        editedArguments: { path: "src", depth: 1 }
      })
    })
  )

  it.scoped("puts the questions of a form one by one and tells of each", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { terminal, ask, say } = yield* setup()
      const asking = yield* Effect.provideService(
        ask(samples.Clarify.interaction),
        FormProgress,
        ({ number, total, answer }) =>
          Effect.sync(() => {
            told.push(
              answer === undefined ? `displayed ${number}/${total}` : `answered ${number} ${JSON.stringify(answer)}`
            )
          })
      )
      assert.deepStrictEqual(terminal.screen(), [
        "Please clarify",
        "│ before we start",
        "│ Question 1/2 [required]",
        "│ Which database?",
        "│ arrows and Enter, or type a number or a choice; cancel ends all questions",
        "answer>",
        "  1. postgres",
        "› 2. sqlite (default)"
      ])
      assert.deepStrictEqual(told, ["displayed 1/2"])
      yield* say("3")
      yield* say("")
      assert.include(terminal.screen(), "│ Question 2/2 [optional]")
      yield* say("because")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, {
        "1": { selected: 2, text: "sqlite" },
        "2": { value: "because" }
      })
      assert.deepStrictEqual(told, [
        "displayed 1/2",
        'answered 1 {"selected":2,"text":"sqlite"}',
        "displayed 2/2",
        'answered 2 {"value":"because"}'
      ])
    })
  )

  it.scoped("chooses nothing by Enter alone, and what is marked by arrows", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(new Interaction.Select({ prompt: "Which?", options: ["red", "green"] }))
      assert.deepStrictEqual(terminal.screen(), ["A choice", "│ Which?", "1-2>", "  1. red", "  2. green"])
      yield* say("")
      assert.isNull(asking.unsafePoll())
      yield* terminal.press("up")
      assert.deepStrictEqual(terminal.screen().slice(-3), ["1-2>", "  1. red", "› 2. green"])
      yield* say("")
      assert.strictEqual((yield* Fiber.join(asking)).answer, 1)
      assert.include(terminal.screen(), "1-2> green")
    })
  )

  it.scoped("cancels a whole form with one word", () =>
    Effect.gen(function* () {
      const { ask, say } = yield* setup()
      const asking = yield* ask(samples.Clarify.interaction)
      yield* say("1")
      yield* say("Cancel")
      const error = yield* Effect.flip(Fiber.join(asking))
      assert.strictEqual(error.message, "The question was cancelled by console.")
    })
  )

  it.scoped("neither shows nor remembers a password", () =>
    Effect.gen(function* () {
      const { terminal, screen, ask } = yield* setup()
      const asking = yield* ask(samples["Auth.Password"].interaction)
      // An Enter too early is asked again, and what follows at once is still the password.
      yield* terminal.type("\nse")
      yield* terminal.type("sam")
      yield* terminal.press("backspace")
      yield* terminal.type("\n")
      const { answer } = yield* Fiber.join(asking)
      assert.strictEqual(Redacted.value(answer), "sesa")
      assert.notInclude(terminal.raw(), "se\x1b")
      assert.notInclude(terminal.raw(), "sesa")
      assert.notInclude(terminal.raw(), "sam")
      yield* terminal.press("up")
      assert.strictEqual(yield* screen.draft, "")
    })
  )

  it.scoped.each([...InteractionSample.kinds])("cancels %s at the end of input", (kind) =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup()
      const asking = yield* ask(samples[kind].interaction)
      yield* terminal.end
      yield* TestClock.adjust("1 second")
      const error = yield* Effect.flip(Fiber.join(asking))
      assert.strictEqual(error._tag, "InteractionCancelled")
    })
  )

  it.scoped.each([...InteractionSample.kinds])(
    "halts for %s at Ctrl-D where that is said, and leaves it open",
    (kind) =>
      Effect.gen(function* () {
        const { interactor, screen, terminal } = yield* setup({ atEnd: Effect.succeed("It stays open.") })
        const said: Array<string> = []
        const halt = (detail: string) => Effect.sync(() => void said.push(detail))
        const request = yield* InteractionSample.request(samples[kind].interaction)
        const next = yield* Effect.fork(screen.next)
        const asking = yield* Effect.fork(interactor.request(request, { halt }))
        yield* terminal.settle
        yield* TestClock.adjust("250 millis")
        yield* terminal.press("d", { ctrl: true })
        assert.deepStrictEqual(said, ["It stays open."])
        assert.isNull(asking.unsafePoll())
        // Nobody else hears of it before the halt has taken the question away, or before they leave once more.
        assert.isNull(next.unsafePoll())
        if (kind === "Approve") yield* terminal.press("d", { ctrl: true })
        else yield* Fiber.interrupt(asking)
        assert.deepStrictEqual(yield* Fiber.join(next), ConsoleScreen.EndOfInput())
        assert.match(terminal.screen().join("\n"), /\(left open\)/)
      })
  )

  it.scoped("cancels with Ctrl-C, and the executor hears of it", () =>
    Effect.gen(function* () {
      const { terminal, screen, ask } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* terminal.press("c", { ctrl: true })
      assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionCancelled")
      assert.deepStrictEqual(yield* screen.next, ConsoleScreen.Interrupt())
    })
  )

  it.scoped("gives up after its timeout, if it was given one, and takes the dialog away", () =>
    Effect.gen(function* () {
      const { terminal, ask } = yield* setup({ timeouts: { permission: "30 seconds" } })
      const asking = yield* ask(samples.Approve.interaction)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionTimedOut")
      assert.deepStrictEqual(terminal.screen(), ["Allow run_command? (closed: nobody answered in time)", ">"])
    })
  )

  it.scoped("takes no time from a question that stands behind something else", () =>
    Effect.gen(function* () {
      const { ask, screen, terminal } = yield* setup({ timeouts: { permission: "30 seconds" } })
      const free = yield* Deferred.make<void>()
      const other = yield* Effect.fork(screen.dialog("Something else", () => Deferred.await(free)))
      const asking = yield* ask(samples.Approve.interaction)
      yield* TestClock.adjust("40 seconds")
      yield* Deferred.succeed(free, undefined)
      yield* Fiber.join(other)
      yield* TestClock.adjust("10 seconds")
      assert.include(terminal.screen(), "0:20 left to answer")
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionTimedOut")
    })
  )

  for (const onTimeout of ["deny", "allow"] as const)
    it.scoped(`takes no time while the program is stopped, where ${onTimeout} is what comes of it`, () =>
      Effect.gen(function* () {
        const back = yield* Queue.unbounded<void>()
        const outside = { suspend: Queue.take(back), edit: Effect.succeed }
        const { ask, terminal } = yield* setup({ timeouts: { permission: "30 seconds", onTimeout } }, undefined, {
          outside
        })
        const asking = yield* ask(samples.Approve.interaction)
        yield* TestClock.adjust("10 seconds")
        for (const away of ["31 seconds", "2 seconds"] as const) {
          yield* terminal.press("z", { ctrl: true })
          yield* TestClock.adjust(away)
          yield* Queue.offer(back, undefined)
          yield* terminal.settle
        }
        yield* TestClock.adjust("10 seconds")
        assert.include(terminal.screen(), "0:10 left to answer")
        yield* TestClock.adjust("9500 millis")
        assert.isTrue(Option.isNone(yield* Fiber.poll(asking)))
        yield* TestClock.adjust("1 second")
        assert.isTrue(Option.isSome(yield* Fiber.poll(asking)))
      })
    )

  it.scoped("counts down where a limit was set", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup({ timeouts: { permission: "90 seconds" } })
      const asking = yield* ask(samples.Approve.interaction)
      assert.include(terminal.screen(), "1:30 left to answer")
      yield* TestClock.adjust("20 seconds")
      assert.include(terminal.screen(), "1:10 left to answer")
      yield* say("y")
      assert.notInclude(terminal.screen().join("\n"), "left to answer")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
    })
  )

  it.scoped.each([
    ["no, use ls instead", "use ls instead"],
    ["n use ls -l", "use ls -l"],
    ["No - not here.", "not here."]
  ] as const)("takes %j for a no that tells the agent why", ([line, comment]) =>
    Effect.gen(function* () {
      const { ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* say(line)
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "deny", scope: "once", comment })
    })
  )

  it.scoped.each(["yes, but only in src", "use ls instead", "always, for git", "no problem"])(
    "asks what %j means, and keeps the words to be changed or typed over",
    (line) =>
      Effect.gen(function* () {
        const { ask, say, terminal } = yield* setup()
        const first = yield* ask(samples.Approve.interaction)
        yield* say(line)
        assert.match(terminal.screen().join("\n"), /alone, or no and your words/)
        assert.strictEqual(terminal.screen().at(-1), `answer> ${line}`)
        yield* terminal.press("home")
        yield* say("no, ")
        assert.deepStrictEqual((yield* Fiber.join(first)).answer, { decision: "deny", scope: "once", comment: line })
        const second = yield* ask(samples.Approve.interaction)
        yield* say(line)
        yield* TestClock.adjust("1 second")
        yield* terminal.type("y")
        assert.strictEqual(terminal.screen().at(-1), "answer> y")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual((yield* Fiber.join(second)).answer, { decision: "allow", scope: "once" })
      })
  )

  it.scoped.each(["y", "yy", "yes\n", "y\n"])(
    "drops a second %j that comes before the second question stands",
    (keys) =>
      Effect.gen(function* () {
        const { ask, screen, terminal } = yield* setup()
        yield* screen.status({ text: "working" })
        const first = yield* ask(samples.Approve.interaction)
        yield* TestClock.adjust("1 second")
        yield* terminal.type("y")
        yield* TestClock.adjust("450 millis")
        yield* Fiber.join(first)
        yield* terminal.type(keys)
        yield* TestClock.adjust("250 millis")
        const second = yield* ask(samples.Approve.interaction)
        assert.notInclude(terminal.screen().join("\n"), "draft kept")
        yield* TestClock.adjust("1 second")
        yield* terminal.type("n")
        yield* TestClock.adjust("450 millis")
        assert.deepStrictEqual((yield* Fiber.join(second)).answer, { decision: "deny", scope: "once" })
        assert.strictEqual(yield* screen.draft, "")
      })
  )

  it.scoped("drops one that comes when the question is hardly seen, or is the last, and keeps words", () =>
    Effect.gen(function* () {
      const { ask, screen, terminal } = yield* setup()
      yield* screen.status({ text: "working" })
      const answer = Effect.gen(function* () {
        const asking = yield* ask(samples.Approve.interaction)
        yield* TestClock.adjust("1 second")
        yield* terminal.type("y")
        yield* TestClock.adjust("450 millis")
        return yield* Fiber.join(asking)
      })
      yield* answer
      yield* terminal.type("y")
      yield* TestClock.adjust("1 second")
      yield* screen.status(undefined)
      assert.strictEqual(yield* screen.draft, "")
      yield* screen.status({ text: "working" })
      yield* answer
      const keys = new Map([
        ["y", ["yes"]],
        ["n", ["no"]]
      ])
      const asking = yield* Effect.fork(screen.dialog("Hardly seen", (put) => put({ lines: [], label: "> ", keys })))
      yield* terminal.settle
      yield* TestClock.adjust("100 millis")
      yield* terminal.type("y")
      yield* TestClock.adjust("1 second")
      yield* terminal.type("n")
      yield* TestClock.adjust("450 millis")
      assert.strictEqual(yield* Fiber.join(asking), "n")
      yield* TestClock.adjust("4 seconds")
      yield* terminal.type("yesterday")
      yield* TestClock.adjust("2 seconds")
      yield* terminal.type(" it ran")
      assert.strictEqual(yield* screen.draft, "yesterday it ran")
    })
  )

  it.scoped("turns no spinner in front of a question that nobody comes to for a minute", () =>
    Effect.gen(function* () {
      const { ask, screen, terminal } = yield* setup()
      yield* screen.status({ text: "waiting for you", since: yield* Clock.currentTimeMillis })
      const asking = yield* ask(samples.Approve.interaction)
      yield* TestClock.adjust("59 seconds")
      assert.match(terminal.screen().join("\n"), /. waiting for you \d/)
      yield* TestClock.adjust("2 seconds")
      assert.include(terminal.screen(), "· waiting for you")
      const before = terminal.raw().length
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(terminal.raw().length, before)
      yield* terminal.type("x")
      yield* TestClock.adjust("1 second")
      assert.match(terminal.screen().join("\n"), /. waiting for you 36\d/)
      yield* terminal.press("backspace")
      yield* TestClock.adjust("2 minutes")
      assert.include(terminal.screen(), "· waiting for you")
      yield* terminal.type("y\n")
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(asking)
      yield* TestClock.adjust("1 second")
      assert.match(terminal.screen().join("\n"), /. waiting for you \d/)
    })
  )

  it.scoped("shows the other options behind a key", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* say("m")
      assert.deepStrictEqual(terminal.screen().slice(-14), [
        "│ This call",
        "│   [y]es      allow it once",
        "│   [n]o       deny it once; no, WORDS tells the agent why",
        "│   [c]omment  deny it and tell the agent why",
        "│   [e]dit     change its arguments first",
        "│ Calls like this one: see the lines at `always` and `never`",
        "│   [a]lways   allow it in this session",
        "│   never      deny it in this session",
        "│ Every call from now on",
        "│   [t]urn     allow until this turn ends",
        "│   [i]dle     allow until this agent has nothing left to do",
        "│   all        allow, for all agents, until the session ends or /permissions",
        "│   resume",
        "answer>"
      ])
      yield* say("idle")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "idle" })
    })
  )

  it.scoped("asks again whatever nonsense is typed, for ever, and never takes it for a no", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      for (const line of ["", "  ", "/help", "nope", "yes please", "Y N", "ja", "\\"]) yield* say(line)
      assert.include(terminal.screen().join("\n"), "Please type one of y, n")
      yield* say("yes")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
    })
  )

  it.scoped("keeps what was typed of a comment and of an edit for the next time at that question", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const back = Effect.zipRight(terminal.press("escape"), TestClock.adjust("2 seconds"))
      const asking = yield* ask(samples.Approve.interaction)
      yield* say("c")
      yield* terminal.type("use git, and")
      yield* back
      yield* say("e")
      yield* terminal.type(" /tmp")
      yield* back
      assert.strictEqual(terminal.screen().at(-1), "answer>")
      yield* say("e")
      assert.strictEqual(terminal.screen().at(-1), "edit> ls -la /tmp")
      yield* terminal.press("u", { ctrl: true })
      yield* back
      yield* say("e")
      // Nothing is left of it, so that it begins anew.
      assert.strictEqual(terminal.screen().at(-1), "edit> ls -la")
      yield* back
      yield* say("c")
      assert.strictEqual(terminal.screen().at(-1), "comment> use git, and")
      yield* say(" not svn")
      const { answer } = yield* Fiber.join(asking)
      assert.deepStrictEqual(answer, { decision: "deny", scope: "once", comment: "use git, and not svn" })
      const other = yield* ask(samples.Approve.interaction)
      yield* say("c")
      assert.strictEqual(terminal.screen().at(-1), "comment>")
      yield* Fiber.interrupt(other)
    })
  )

  for (const [key, label, given] of [
    ["c", "comment>", ""],
    ["e", "edit>", " ls -la"]
  ] as const)
    it.scoped(`clears with Ctrl-C what was typed behind ${label} before, and closes the dialog only then`, () =>
      Effect.gen(function* () {
        const { terminal, ask, say } = yield* setup()
        const asking = yield* ask(samples.Approve.interaction)
        yield* say(key)
        yield* terminal.type(" words")
        yield* Effect.zipRight(terminal.press("escape"), TestClock.adjust("2 seconds"))
        yield* say(key)
        const begun = terminal.screen().at(-1)
        assert.include(begun, "words")
        yield* terminal.press("c", { ctrl: true })
        assert.strictEqual(terminal.screen().at(-1), label + given)
        yield* terminal.press("u", { ctrl: true })
        yield* terminal.press("c", { ctrl: true })
        yield* terminal.press("c", { ctrl: true })
        assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionCancelled")
      })
    )

  it.scoped("brings back with Ctrl-Y what Ctrl-C cleared at a question", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      yield* say("c")
      yield* terminal.type("use git")
      yield* terminal.press("c", { ctrl: true })
      assert.strictEqual(terminal.screen().at(-1), "comment>")
      yield* terminal.press("y", { ctrl: true })
      assert.strictEqual(terminal.screen().at(-1), "comment> use git")
      yield* Fiber.interrupt(asking)
      // They are the person's own words, and the question has gone.
      assert.strictEqual(terminal.screen().at(-1), "> use git")
    })
  )

  it.scoped("goes back from a comment and an edit with escape, and never farther by one key too many", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup()
      const asking = yield* ask(samples.Approve.interaction)
      for (const way of ["c", "e"]) {
        yield* say(way)
        assert.include(terminal.screen().join("\n"), "Escape goes back")
        yield* terminal.type("half")
        yield* terminal.press("escape")
        yield* TestClock.adjust("250 millis")
        yield* terminal.press("escape")
        yield* TestClock.adjust("1 second")
        assert.include(terminal.screen().join("\n"), "[y]es      allow it once")
      }
      yield* say("y")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "allow", scope: "once" })
    })
  )

  it.scoped("keeps a rule for the workspace only after it was shown, and says why it cannot", () =>
    Effect.gen(function* () {
      const kept: Array<string> = []
      const { ask, say, terminal } = yield* setup({
        keepForProject: (rule) =>
          kept.length === 0 ? Effect.sync(() => void kept.push(rule)) : Effect.fail("The disk is full.")
      })
      const first = yield* ask(samples.Approve.interaction)
      yield* say("perhaps")
      assert.include(terminal.screen(), "│ Please type one of y, n, a, p, t, i, once, never, all, c, e.")
      yield* say("p")
      assert.includeMembers([...terminal.screen()], ["│   ls", "y/n>"])
      yield* say("n")
      assert.deepStrictEqual(kept, [])
      yield* say("project")
      yield* say("yes")
      assert.deepStrictEqual((yield* Fiber.join(first)).answer, { decision: "allow", scope: "once" })
      assert.deepStrictEqual(kept, ["ls"])
      const second = yield* ask(samples.Approve.interaction)
      yield* say("p")
      yield* say("y")
      assert.include(terminal.screen(), "│ The disk is full. Nothing was kept.")
      yield* say("n")
      yield* say("n")
      assert.deepStrictEqual((yield* Fiber.join(second)).answer, { decision: "deny", scope: "once" })
    })
  )

  it.scoped("has no such answer where nothing is kept, nor for a call that is asked about each time", () =>
    Effect.gen(function* () {
      for (const [options, interaction] of [
        [{}, samples.Approve.interaction],
        [
          { keepForProject: () => Effect.void },
          new Interaction.Approve({
            ...samples.Approve.interaction,
            onceOnly: true,
            options: samples.Approve.interaction.options.filter(({ full }) => full !== "always")
          })
        ]
      ] as const) {
        const { ask, say, terminal } = yield* setup(options)
        const asking = yield* ask(interaction)
        yield* say("p")
        assert.include(terminal.screen().join("\n"), "Please type one of")
        yield* say("n")
        assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "deny", scope: "once" })
      }
    })
  )

  it.scoped("can be read and answered in 20 columns", () =>
    Effect.gen(function* () {
      const { terminal, ask, say } = yield* setup(undefined, { columns: 20, rows: 24 })
      const asking = yield* ask(samples.Approve.interaction)
      assert.deepStrictEqual(terminal.screen(), [
        "Allow run_command?",
        '│ {"command":"ls',
        '│ -la"}',
        "│ [y]es [n]o",
        "│ [a]lways [c]omment",
        "│ [m]ore",
        "│ `always` allows:",
        "│ ls",
        "│ `never` denies: ls",
        "answer>"
      ])
      yield* say("n")
      assert.deepStrictEqual((yield* Fiber.join(asking)).answer, { decision: "deny", scope: "once" })
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------
// the suite
// -----------------------------------------------------------------------------------------------------------------

/** A clock that leaps ahead whenever it is read, so that nobody waits until a dialog listens. */
const leaping = (): Clock.Clock => {
  const real = Clock.make()
  let ahead = 0
  const leap = () => (ahead += 1_000)
  return {
    ...real,
    currentTimeMillis: Effect.map(real.currentTimeMillis, (now) => now + leap()),
    unsafeCurrentTimeMillis: () => real.unsafeCurrentTimeMillis() + leap(),
    sleep: (duration: Duration.Duration) => real.sleep(duration)
  }
}

const subject: Effect.Effect<Subject, never, Scope.Scope> = Effect.gen(function* () {
  const clock = leaping()
  const terminal = yield* TestTerminal.make({ columns: 80, rows: 40 })
  const screen = yield* Effect.withClock(Effect.provide(ConsoleScreen.make({ color: false }), terminal.layer), clock)
  const interactor = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
  const asked = yield* Queue.unbounded<RequestId>()
  const open: Array<RequestId> = []
  /** Something above the answer line, which is not the main prompt. */
  const dialogSeen = () => !(terminal.screen().at(-1) ?? "").startsWith("> ") && terminal.screen().at(-1) !== ">"
  const watched: Interactor.Service = {
    ...interactor,
    request: (request, options) =>
      Effect.suspend(() => {
        open.push(request.requestId)
        return Effect.withClock(interactor.request(request, options), clock).pipe(
          Effect.ensuring(Effect.sync(() => open.splice(open.indexOf(request.requestId), 1))),
          Effect.tap(Effect.void)
        )
      }).pipe((self) => Effect.zipRight(Queue.offer(asked, request.requestId), self))
  }
  const until = (condition: () => boolean): Effect.Effect<void> =>
    Effect.suspend(() => (condition() ? Effect.void : Effect.zipRight(Effect.yieldNow(), until(condition))))
  return {
    interactor: watched,
    output: Effect.sync(terminal.raw),
    outside: {
      shown: Effect.tap(Queue.take(asked), (id) => until(() => open[0] === id && dialogSeen())),
      answer: (_, sample) =>
        Effect.forEach(InteractionSample.typed(sample), (line) => terminal.type(`${line}\n`), { discard: true }),
      nonsense: () => terminal.type("certainly, go on\n"),
      // Pasted, key by key: half a million of them say as much as two.
      send: (_, json) => Effect.zipRight(terminal.paste(json.slice(0, 500_000)), terminal.type("\n")),
      cancel: () => terminal.press("d", { ctrl: true }),
      visible: Effect.zipRight(
        terminal.settle,
        Effect.sync(() => (dialogSeen() ? open.slice(0, 1) : []))
      )
    }
  }
})

interactorSuite("ConsoleChannel", { claims: InteractionSample.kinds, make: subject })
