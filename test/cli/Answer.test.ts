import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as ConsoleScreen from "../../src/tui/console/ConsoleScreen.js"
import * as FileChannel from "../../src/channel/FileChannel.js"
import * as FileExchange from "../../src/channel/FileExchange.js"
import * as AnswerExecutor from "../../src/cli/executor/AnswerExecutor.js"
import * as Answer from "../../src/cli/command/Answer.js"
import * as ExitCode from "../../src/host/ExitCode.js"
import type * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { samples } = InteractionSample
/** The person who answers. */
const by = "ada"
/** A form of one question: what one line can answer. */
const form = samples.Clarify.interaction

/** A file channel with nobody in a hurry, and what a program answers it with. */
const setup = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const directory = yield* fs.makeTempDirectoryScoped()
  const interactor = yield* FileChannel.make({
    directory,
    principal: "nobody",
    vouches: true,
    dialogs: "unbounded",
    timeouts: {},
    pollInterval: "20 millis"
  })
  const exchange = yield* FileExchange.make(directory)
  let printed = ""
  const print = (text: string) =>
    Effect.sync(() => {
      printed += text
    })
  let issued = 0
  /** Asks, one after the other in the order of the calls; returns when the request can be seen. */
  const ask = <I extends Interaction.Interaction>(interaction: I) =>
    Effect.gen(function* () {
      const request = { ...(yield* InteractionRequest.make(interaction)), issuedAt: ++issued }
      const asking = yield* Effect.forkScoped(interactor.request(request))
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), fs.exists(exchange.files(request.requestId).request)), {
        until: (there) => there
      })
      return {
        asking,
        request,
        answer: Effect.map(Fiber.join(asking), (answered) => {
          assert.strictEqual(answered.by, by)
          return answered.answer
        })
      }
    })
  const read = (lines: ReadonlyArray<string>) =>
    AnswerExecutor.read({ directory, by, lines: Stream.fromIterable(lines), print })
  return { fs, directory, exchange, interactor, ask, read, print, printed: () => printed }
})

describe("answering a file channel with lines", () => {
  it.scopedLive("spends one line on each request, oldest first", () =>
    Effect.gen(function* () {
      const { ask, read, printed } = yield* setup
      const approve = yield* ask(samples.Approve.interaction)
      const select = yield* ask(samples.Select.interaction)
      const confirm = yield* ask(samples.Confirm.interaction)
      const question = yield* ask(samples.Ask.interaction)
      assert.strictEqual(yield* read(["c: not here", "2", "", "Ada: y"]), ExitCode.completed)
      assert.deepStrictEqual(yield* approve.answer, { decision: "deny", scope: "once", comment: "not here" })
      assert.strictEqual(yield* select.answer, 1)
      assert.strictEqual(yield* confirm.answer, false)
      assert.strictEqual(yield* question.answer, "Ada: y")
      assert.strictEqual(
        printed(),
        [
          "Allow run_command?",
          '│ {"command":"ls -la"}',
          "│ [y]es [n]o [a]lways [t]urn [i]dle once never all [c]omment [e]dit",
          "│ `always` allows: ls",
          "│ `never` denies: ls",
          "answer> c: not here",
          "A choice",
          "│ Which?",
          "│ 1. red",
          "│ 2. green",
          "│ 3. blue",
          "1-3> 2",
          "Yes or no?",
          "│ Deploy?",
          "y/N> ",
          "A question",
          "│ Name?",
          "answer> Ada: y",
          ""
        ].join("\n")
      )
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("waits for requests that come later", () =>
    Effect.gen(function* () {
      const { ask, read } = yield* setup
      const reading = yield* Effect.fork(read(["y", "n"]))
      yield* Effect.yieldNow()
      assert.strictEqual(yield* (yield* ask(samples.Confirm.interaction)).answer, true)
      assert.strictEqual(yield* (yield* ask(samples.Confirm.interaction)).answer, false)
      assert.strictEqual(yield* Fiber.join(reading), ExitCode.completed)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("asks again for what was not understood, and lets no line of it answer another request", () =>
    Effect.gen(function* () {
      const { ask, read, printed } = yield* setup
      const first = yield* ask(samples.Approve.interaction)
      const second = yield* ask(samples.Approve.interaction)
      assert.strictEqual(yield* read(["sure", "", "n", "y"]), ExitCode.completed)
      assert.deepStrictEqual(yield* first.answer, { decision: "deny", scope: "once" })
      assert.deepStrictEqual(yield* second.answer, { decision: "allow", scope: "once" })
      assert.include(printed(), "answer> sure\nNot understood: Please type one of y, n,")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("leaves a request to others after three lines that were not understood", () =>
    Effect.gen(function* () {
      const { ask, read, printed, fs, exchange } = yield* setup
      const first = yield* ask(samples.Approve.interaction)
      const second = yield* ask(samples.Approve.interaction)
      assert.strictEqual(yield* read(["sure", "of course", "ok", "n"]), ExitCode.failed)
      assert.deepStrictEqual(yield* second.answer, { decision: "deny", scope: "once" })
      assert.strictEqual(first.asking.unsafePoll(), null)
      assert.isFalse(yield* fs.exists(exchange.files(first.request.requestId).response))
      assert.strictEqual(printed().split("Not understood").length, 4)
      assert.include(printed(), "Assent understood no answer. The request stays open.\n")
      assert.match(printed(), /1 request is still open\.\n$/)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("has not answered when its lines end in the middle of it", () =>
    Effect.gen(function* () {
      const { ask, read, printed } = yield* setup
      const { asking } = yield* ask(samples.Approve.interaction)
      assert.strictEqual(yield* read(["sure"]), ExitCode.failed)
      assert.strictEqual(asking.unsafePoll(), null)
      assert.match(printed(), /1 request is still open\.\n$/)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("takes a form, an edit and a withdrawal on one line each", () =>
    Effect.gen(function* () {
      const { ask, read, printed } = yield* setup
      const clarify = yield* ask(form)
      const edit = yield* ask(samples.Approve.interaction)
      const confirm = yield* ask(samples.Confirm.interaction)
      const code = yield* read([
        '{"1": "postgres", "2": "it scales"}',
        '{"decision": "edit", "editedArguments": {"command": "ls"}}',
        "cancel"
      ])
      assert.strictEqual(code, ExitCode.completed)
      assert.deepStrictEqual(yield* clarify.answer, samples.Clarify.answer)
      assert.deepStrictEqual(yield* edit.answer, { decision: "edit", editedArguments: { command: "ls" } })
      assert.strictEqual((yield* Effect.flip(Fiber.join(confirm.asking)))._tag, "InteractionCancelled")
      for (const line of ["│ before we start", "│ Which database?", "│ 2. sqlite (default)", "│ Why?"]) {
        assert.include(printed().split("\n"), line)
      }
      assert.include(printed(), "all on one line")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("refuses half an object, and an edit of what cannot be edited", () =>
    Effect.gen(function* () {
      const { ask, read, printed } = yield* setup
      const half = yield* ask(samples.Approve.interaction)
      const foreign = yield* ask(samples.Approve.interaction)
      const wanted = '{"decision": "edit", "editedArguments": {"cwd": "/"}}'
      const halfs = ['{"decision": "allow"', '{"decision": "allow"', '{"decision": "allow"']
      assert.strictEqual(yield* read([...halfs, wanted]), ExitCode.failed)
      assert.deepStrictEqual([half.asking.unsafePoll(), foreign.asking.unsafePoll()], [null, null])
      assert.include(printed(), "Not understood: that is not JSON.")
      assert.include(printed(), "cannot be edited: cwd")
      assert.include(printed(), "2 requests are still open.")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("ends with its input, and answers nothing then", () =>
    Effect.gen(function* () {
      const { ask, read } = yield* setup
      assert.strictEqual(yield* read([]), ExitCode.completed)
      const { asking } = yield* ask(samples.Confirm.interaction)
      assert.strictEqual(yield* read([]), ExitCode.completed)
      assert.strictEqual(asking.unsafePoll(), null)
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("says when a line came too late, and spends it", () =>
    Effect.gen(function* () {
      const { ask, directory, print, printed } = yield* setup
      const { asking } = yield* ask(samples.Confirm.interaction)
      const line = yield* Deferred.make<string>()
      const prompted = yield* Deferred.make<void>()
      const reading = yield* Effect.fork(
        AnswerExecutor.read({
          directory,
          by,
          lines: Stream.fromEffect(Deferred.await(line)),
          print: (text) => Effect.zipRight(print(text), Deferred.succeed(prompted, undefined))
        })
      )
      yield* Deferred.await(prompted)
      yield* Fiber.interrupt(asking)
      yield* Deferred.succeed(line, "y")
      assert.strictEqual(yield* Fiber.join(reading), ExitCode.failed)
      assert.include(printed(), "Too late: the request was settled elsewhere or withdrawn.")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("asks for no password: it would be written to a file", () =>
    Effect.gen(function* () {
      const { ask, read, printed, exchange, fs } = yield* setup
      const request = yield* InteractionRequest.make(samples["Auth.Password"].interaction)
      const text = JSON.stringify(InteractionRequest.encode({ ...request, issuedAt: 0 }))
      yield* exchange.write(exchange.files(request.requestId).request, text)
      const { answer } = yield* ask(samples.Confirm.interaction)
      assert.strictEqual(yield* read(["y"]), ExitCode.completed)
      assert.strictEqual(yield* answer, true)
      assert.include(printed(), "Auth.Password cannot be answered through a file; left open.")
      assert.isFalse(yield* fs.exists(exchange.files(request.requestId).response))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("leaves a request alone that is being written", () =>
    Effect.gen(function* () {
      const { read, exchange, fs } = yield* setup
      const half = `${exchange.requests}/.req_1.json.half`
      yield* fs.writeFileString(half, "{")
      assert.strictEqual(yield* read([]), ExitCode.completed)
      assert.deepStrictEqual(yield* FileExchange.pending(exchange.requests.replace(/\/requests$/, "")), [])
      assert.isTrue(yield* fs.exists(half))
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

/** A person's screen without a terminal: what is typed comes out of a queue, Ctrl-C is `undefined`. */
const makeScreen = Effect.gen(function* () {
  const typed = yield* Queue.unbounded<string | undefined>()
  const opened = yield* Queue.unbounded<string>()
  const interrupted = yield* Deferred.make<ConsoleScreen.Submitted>()
  const printed: Array<string> = []
  const closed: Array<string> = []
  const screen: ConsoleScreen.Service = {
    source: "person",
    color: false,
    columns: Effect.succeed(80),
    rows: Effect.succeed(24),
    print: (text) => Effect.sync(() => printed.push(text)),
    printLine: (text) => Effect.sync(() => printed.push(text)),
    status: () => Effect.void,
    live: () => Effect.void,
    footer: () => Effect.void,
    page: () => Effect.void,
    next: Deferred.await(interrupted),
    draft: Effect.succeed(""),
    setDraft: () => Effect.void,
    setPrompt: () => Effect.void,
    setCompletion: () => Effect.void,
    setCommands: () => Effect.void,
    dialog: (title, use) =>
      use((question) =>
        Effect.gen(function* () {
          yield* Queue.offer(opened, [title, ...question.lines].join("\n"))
          const line = yield* Queue.take(typed)
          return line ?? (yield* new ConsoleScreen.DialogClosed({ by: "interrupt" }))
        })
      ).pipe(Effect.onInterrupt(() => Effect.sync(() => closed.push(title))))
  }
  return {
    screen,
    printed,
    closed,
    /** The dialog that is open next. */
    dialog: Queue.take(opened),
    type: (line: string | undefined) => Queue.offer(typed, line),
    leave: Deferred.succeed(interrupted, ConsoleScreen.Interrupt())
  }
})

describe("answering a file channel at a terminal", () => {
  it.scopedLive("shows requests as they come, asks again on nonsense, and goes on until the person leaves", () =>
    Effect.gen(function* () {
      const { directory, ask } = yield* setup
      const person = yield* makeScreen
      const attending = yield* Effect.fork(AnswerExecutor.attend({ directory, by, screen: person.screen }))
      const approve = yield* ask(samples.Approve.interaction)
      assert.match(yield* person.dialog, /^Allow run_command\?\n/)
      yield* person.type("sure")
      assert.include(yield* person.dialog, "Please type one of")
      yield* person.type("e")
      yield* person.dialog
      yield* person.type("ls -l")
      assert.deepStrictEqual(yield* approve.answer, { decision: "edit", editedArguments: { command: "ls -l" } })
      const clarify = yield* ask(form)
      yield* person.dialog
      yield* person.type("1")
      yield* person.dialog
      yield* person.type("it scales")
      assert.deepStrictEqual(yield* clarify.answer, samples.Clarify.answer)
      yield* person.leave
      assert.strictEqual(yield* Fiber.join(attending), ExitCode.completed)
      assert.deepStrictEqual(person.printed, [`Waiting for requests in ${directory}. Ctrl-C ends.`])
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("leaves the request open when the person leaves, and withdraws it for a typed cancel only", () =>
    Effect.gen(function* () {
      const { directory, ask, fs, exchange } = yield* setup
      const person = yield* makeScreen
      const attending = yield* Effect.fork(AnswerExecutor.attend({ directory, by, screen: person.screen }))
      const first = yield* ask(samples.Confirm.interaction)
      yield* person.dialog
      yield* person.type("cancel")
      assert.strictEqual((yield* Effect.flip(Fiber.join(first.asking)))._tag, "InteractionCancelled")
      const second = yield* ask(samples.Confirm.interaction)
      yield* person.dialog
      yield* person.type(undefined)
      assert.strictEqual(yield* Fiber.join(attending), ExitCode.completed)
      assert.strictEqual(second.asking.unsafePoll(), null)
      assert.isFalse(yield* fs.exists(exchange.files(second.request.requestId).response))
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("closes the dialog of a request that was answered elsewhere, and shows the next", () =>
    Effect.gen(function* () {
      const { directory, ask } = yield* setup
      const person = yield* makeScreen
      yield* Effect.forkScoped(AnswerExecutor.attend({ directory, by, screen: person.screen }))
      const first = yield* ask(samples.Confirm.interaction)
      yield* person.dialog
      const second = yield* ask(samples.Ask.interaction)
      yield* FileExchange.respond(directory, first.request.requestId, true, by)
      assert.strictEqual(yield* first.answer, true)
      assert.match(yield* person.dialog, /^A question\nName\?/)
      assert.deepStrictEqual(person.closed, ["Yes or no?"])
      yield* person.type("Ada")
      assert.strictEqual(yield* second.answer, "Ada")
    }).pipe(Effect.provide(NodeContext.layer))
  )

  it.scopedLive("shows a request again whose response was turned away, and says why", () =>
    Effect.gen(function* () {
      const { directory, ask, fs, exchange } = yield* setup
      const { request, answer } = yield* ask(samples.Confirm.interaction)
      yield* FileExchange.respond(directory, request.requestId, { nonsense: true })
      const { rejected } = exchange.files(request.requestId)
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), fs.exists(rejected)), { until: (there) => there })
      const person = yield* makeScreen
      yield* Effect.forkScoped(AnswerExecutor.attend({ directory, by, screen: person.screen }))
      yield* person.dialog
      assert.match(person.printed.at(-1) ?? "", /^This is not an answer to req_/)
      yield* person.type("y")
      assert.strictEqual(yield* answer, true)
    }).pipe(Effect.provide(NodeContext.layer))
  )
})

describe("assent answer", () => {
  const refusal = (...words: ReadonlyArray<string>) => Effect.flip(Answer.run({ flags: {}, words }))

  it.scopedLive("refuses what is no directory of a file channel", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const empty = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(`${empty}/file`, "")
      for (const words of [[], [""], [empty, empty]]) {
        assert.match((yield* refusal(...words)).message, /^assent answer needs one directory/)
      }
      for (const directory of [empty, `${empty}/nowhere`, `${empty}/file`]) {
        const error = yield* refusal(directory)
        assert.strictEqual(error._tag, "UsageError")
        assert.strictEqual(
          error.message,
          `${directory} is no directory${directory === empty ? " of a file channel" : ""}. Start an agent with --channel file:${directory} first; it makes one.`
        )
      }
    }).pipe(Effect.provide(NodeContext.layer))
  )
})
