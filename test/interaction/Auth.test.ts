import { assert, describe, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/TestClock"
import { inspect } from "node:util"
import * as ConsoleChannel from "../../src/tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../src/tui/console/ConsoleScreen.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Auth from "../../src/interaction/Auth.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import { allowAll } from "../kit/agents.js"
import * as TestTerminal from "../kit/TestTerminal.js"

const as = (script: TestInteractor.Script) => TestInteractor.make({ script })

describe("Auth.password", () => {
  it.effect("hands the password to its one consumer, and yields what that does", () =>
    Effect.gen(function* () {
      const person = yield* as(["hunter2hunter2"])
      const given: Array<string> = []
      const result = yield* Auth.password({
        prompt: "Password of ada:",
        use: (secret) => Effect.sync(() => given.push(Redacted.value(secret)))
      }).pipe(Interactor.withInteractor(person.interactor))
      assert.strictEqual(result, 1)
      assert.deepStrictEqual(given, ["hunter2hunter2"])
      const [request] = yield* person.shown
      assert(request?.interaction._tag === "Auth.Password")
      assert.strictEqual(request.interaction.prompt, "Password of ada:")
    })
  )

  it.effect("declares it as a secret before anybody can use it", () =>
    Effect.gen(function* () {
      const person = yield* as(["hunter2hunter2"])
      const redactor = Redaction.make()
      const masked = yield* Auth.password({
        prompt: "?",
        redactor,
        use: (secret) => Effect.sync(() => redactor.text(`it is ${Redacted.value(secret)}!`))
      }).pipe(Interactor.withInteractor(person.interactor))
      assert.strictEqual(masked, "it is [REDACTED]!")
    })
  )

  it.effect("uses nothing when the person gives none, and asks again when it is retried", () =>
    Effect.gen(function* () {
      const person = yield* as([TestInteractor.cancel, "wrong one", "right one"])
      let used = 0
      const login = Auth.password({
        prompt: "?",
        use: (secret) =>
          Effect.suspend(() => {
            used++
            return Redacted.value(secret) === "right one" ? Effect.succeed("in") : Effect.fail("refused" as const)
          })
      }).pipe(Interactor.withInteractor(person.interactor))
      const error = yield* Effect.flip(login)
      assert(typeof error === "object")
      assert.strictEqual(error._tag, "InteractionCancelled")
      assert.strictEqual(used, 0)
      assert.strictEqual(yield* Effect.retry(login, { times: 3, while: (error) => error === "refused" }), "in")
      assert.strictEqual((yield* person.shown).length, 3)
    })
  )
})

/** A sign-in elsewhere that a test completes; counts how often it is looked at. */
const remote = () => {
  let token: Option.Option<string> = Option.none()
  let polls = 0
  return {
    polls: () => polls,
    signIn: Effect.sync(() => {
      token = Option.some("token")
    }),
    poll: Effect.sync(() => {
      polls++
      return token
    })
  }
}

const code = { url: "https://example.com/device", code: "WDJB-MJHT", expiresAt: 60_000 }

describe("Auth.deviceCode", () => {
  it.effect("polls by its schedule and withdraws the dialog when the person has signed in", () =>
    Effect.gen(function* () {
      const person = yield* as([TestInteractor.silent])
      const { poll, polls, signIn } = remote()
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      )
      const { interaction, requestId } = yield* person.next
      assert.deepStrictEqual({ ...interaction }, { _tag: "Auth.DeviceCode", ...code } as never)
      assert.strictEqual(polls(), 1)
      yield* TestClock.adjust("14 seconds")
      assert.strictEqual(polls(), 3)
      yield* signIn
      assert.strictEqual(login.unsafePoll(), null)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(login), "token")
      assert.deepStrictEqual(yield* person.dismissed, [requestId])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(polls(), 4)
    })
  )

  it.effect("looks at once when the person says that it was done, and goes on looking", () =>
    Effect.gen(function* () {
      const said = yield* Deferred.make<TestInteractor.Step>()
      const person = yield* as([TestInteractor.wait(Deferred.await(said))])
      const { poll, polls, signIn } = remote()
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll, schedule: Schedule.spaced("20 seconds") }).pipe(
          Interactor.withInteractor(person.interactor)
        )
      )
      yield* person.next
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(polls(), 1)
      yield* Deferred.succeed(said, "done")
      yield* TestClock.adjust("0 seconds")
      assert.strictEqual(polls(), 2)
      yield* signIn
      yield* TestClock.adjust("19 seconds")
      assert.strictEqual(login.unsafePoll(), null)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Fiber.join(login), "token")
      assert.strictEqual((yield* person.shown).length, 1)
    })
  )

  it.effect("never breaks off a look when the person says that it was done", () =>
    Effect.gen(function* () {
      const said = yield* Deferred.make<TestInteractor.Step>()
      const person = yield* as([TestInteractor.wait(Deferred.await(said))])
      const answer = yield* Deferred.make<Option.Option<string>>()
      let interrupted = false
      const poll = Effect.onInterrupt(Deferred.await(answer), () =>
        Effect.sync(() => {
          interrupted = true
        })
      )
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      )
      yield* person.next
      yield* Deferred.succeed(said, "done")
      yield* TestClock.adjust("1 second")
      // Such an answer is given once: nobody can ask for it again.
      yield* Deferred.succeed(answer, Option.some("only token"))
      assert.strictEqual(yield* Fiber.join(login), "only token")
      assert.isFalse(interrupted)
    })
  )

  it.effect("shows the code again when its schedule ended and the person was too early", () =>
    Effect.gen(function* () {
      const person = yield* as(["done", TestInteractor.silent])
      const { poll, polls } = remote()
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll, schedule: Schedule.stop }).pipe(Interactor.withInteractor(person.interactor))
      )
      yield* person.next
      yield* person.next
      const before = polls()
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(polls(), before)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(Fiber.join(login)))._tag, "AuthExpired")
    })
  )

  it.effect("fails when the code expires, and closes the dialog", () =>
    Effect.gen(function* () {
      const person = yield* as([TestInteractor.silent])
      const { poll, polls } = remote()
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      )
      yield* TestClock.adjust("1 minute")
      const error = yield* Effect.flip(Fiber.join(login))
      assert.strictEqual(
        error.message,
        "The code expired before anybody had signed in at https://example.com/device. Ask for a new code and show that."
      )
      assert.deepStrictEqual(yield* person.open, [])
      const last = polls()
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(polls(), last)
    })
  )

  for (const expiresAt of [0, -5, Number.NaN]) {
    it.effect(`shows no code that has expired (${expiresAt})`, () =>
      Effect.gen(function* () {
        const person = yield* as([])
        const { poll, polls } = remote()
        const error = yield* Effect.flip(
          Auth.deviceCode({ ...code, expiresAt, poll }).pipe(Interactor.withInteractor(person.interactor))
        )
        assert.strictEqual(error._tag, "AuthExpired")
        assert.deepStrictEqual([yield* person.shown, polls()], [[], 0])
      })
    )
  }

  it.effect("stops looking when the person cancels, or nobody can be shown the code", () =>
    Effect.gen(function* () {
      const person = yield* as(["cancel", TestInteractor.fail("no screen")])
      const { poll, polls } = remote()
      const login = Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      assert.strictEqual((yield* Effect.flip(login))._tag, "InteractionCancelled")
      assert.strictEqual((yield* Effect.flip(login))._tag, "InteractorUnavailable")
      const before = polls()
      yield* TestClock.adjust("50 seconds")
      assert.strictEqual(polls(), before)
    })
  )

  it.effect("fails as looking does, and closes the dialog", () =>
    Effect.gen(function* () {
      const person = yield* as([TestInteractor.silent])
      let polls = 0
      const poll = Effect.suspend(() =>
        polls++ === 0 ? Effect.succeedNone : Effect.fail({ _tag: "AccessDenied" } as const)
      )
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      )
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Effect.flip(Fiber.join(login)), { _tag: "AccessDenied" })
      assert.deepStrictEqual(yield* person.open, [])
    })
  )

  it.effect("leaves nothing behind when it is interrupted", () =>
    Effect.gen(function* () {
      const person = yield* as([TestInteractor.silent])
      const { poll, polls } = remote()
      const login = yield* Effect.fork(
        Auth.deviceCode({ ...code, poll }).pipe(Interactor.withInteractor(person.interactor))
      )
      yield* person.next
      yield* Fiber.interrupt(login)
      assert.deepStrictEqual(yield* person.open, [])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(polls(), 1)
    })
  )
})

// -----------------------------------------------------------------------------------------------------------------
// canaries
// -----------------------------------------------------------------------------------------------------------------

const canary = "Tr0ub4dor&3-canary"

const Login = Tool.make("login", {
  description: "Signs in.",
  parameters: { outcome: Schema.String },
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return",
  dependencies: [Interactor.Interactor]
})
const loginKit = Toolkit.make(Login)
const loginHandlers = loginKit.toLayer({
  login: ({ outcome }) =>
    Auth.password({
      prompt: "Password of ada:",
      use: (secret) => {
        if (outcome === "fail") return Effect.fail("the server refused ada")
        if (outcome === "crash") return Effect.dieMessage("the socket broke")
        return Effect.succeed(`signed in with ${Redacted.value(secret).length} characters`)
      }
    }).pipe(Effect.catchAll((error) => Effect.fail(typeof error === "string" ? error : error.message)))
})
const script = [
  { tools: ["succeed", "fail", "crash"].map((outcome) => ({ name: "login", params: { outcome } })) },
  { text: "done" }
]
const loginRuntime = Layer.provide(
  TestAgent.layerRuntime({ toolkit: loginKit, script, policy: allowAll }),
  loginHandlers
)

/** Every text that can be reached from a value: through properties, prototypes' data, maps and sets. */
const textsIn = (root: unknown): ReadonlyArray<string> => {
  const seen = new Set<unknown>()
  const texts: Array<string> = []
  const visit = (value: unknown): void => {
    if (typeof value === "string") texts.push(value)
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return
    seen.add(value)
    if (value instanceof Map) for (const entry of value) visit(entry)
    if (value instanceof Set) for (const entry of value) visit(entry)
    for (const key of Reflect.ownKeys(value)) {
      visit(key)
      const property = Reflect.getOwnPropertyDescriptor(value, key)
      if (property !== undefined && "value" in property) visit(property.value)
    }
  }
  visit(root)
  return texts
}

const assertClean = (name: string, value: unknown) => {
  assert.isFalse(
    textsIn(value).some((text) => text.includes(canary)),
    `${name} can be walked to it`
  )
  assert.notInclude(inspect(value, { depth: 12, showHidden: true, maxArrayLength: null }), canary, name)
  let json = ""
  try {
    json = JSON.stringify(value) ?? ""
  } catch {
    // Cyclic: it was walked above.
  }
  assert.notInclude(json, canary, name)
}

/** Signs in three times through an agent; `answer` types the password into whatever is open. */
const signIn = (interactor: Interactor.Service, answer: (requestId: string) => Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    const agent = yield* Agent.startWith([interactor])
    const events = yield* agent.subscribe({ capacity: 1_000 })
    const running = yield* Effect.fork(agent.run("sign in"))
    const reachable: Array<unknown> = []
    const asked = new Set<string>()
    while (asked.size < 3) {
      yield* TestClock.adjust("250 millis")
      const request = (yield* agent.broker.open).find(({ requestId }) => !asked.has(requestId))
      if (request === undefined) continue
      asked.add(request.requestId)
      assert.strictEqual(request.interaction._tag, "Auth.Password")
      yield* answer(request.requestId)
      reachable.push(request, yield* agent.broker.open)
    }
    const end = yield* Fiber.join(running)
    assert.deepStrictEqual(end, { _tag: "Completed", text: "done", steps: 2 } as never)
    yield* agent.shutdown
    const told: Array<AgentEvent> = []
    for (;;) {
      const batch = yield* events.takeAll
      if (Option.isNone(batch)) break
      told.push(...batch.value)
    }
    assert.deepStrictEqual(
      told.flatMap((event) => (event._tag === "ToolCallEnded" ? [event.summary] : [])).sort(),
      [
        "login crashed. The log has the reason.",
        `signed in with ${canary.length} characters`,
        "the server refused ada"
      ].sort()
    )
    const answered = told.filter((event) => event._tag === "InteractionAnswered")
    assert.strictEqual(answered.length, 3)
    for (const event of answered) assert.notProperty(event, "value")
    const sinks = { told, end, agent, history: agent.history.messages, broker: agent.broker, reachable, interactor }
    for (const [name, sink] of Object.entries(sinks)) assertClean(name, sink)
  }).pipe(Effect.provide(loginRuntime))

describe("a password", () => {
  it("would be found by these tests", () => {
    for (const leak of [
      { deep: [{ here: `it is ${canary}` }] },
      new Map([["a", { b: canary }]]),
      new Set([canary]),
      new Error(canary),
      Object.defineProperty({}, "hidden", { value: canary, enumerable: false })
    ]) {
      assert.throws(() => assertClean("leak", leak))
    }
  })

  it.scoped("is nowhere to be found after it went through a queue", () =>
    Effect.gen(function* () {
      const channel = yield* QueueChannel.make()
      const dialogs: Array<unknown> = []
      yield* signIn(channel.interactor, (requestId) =>
        Effect.gen(function* () {
          dialogs.push(yield* Effect.repeat(channel.take, { until: QueueChannel.is("Opened") }))
          // A peer that is refused must not be told what it has sent.
          const rejected = yield* Effect.flip(channel.answer(requestId, { typed: canary }))
          assertClean("rejection", rejected)
          const text = Exit.fail(rejected)
          assertClean("exit", text.toString())
          yield* channel.answerText(requestId, canary)
          const late = yield* Effect.flip(channel.answerText(requestId, canary))
          assertClean("late", late)
        })
      )
      assertClean("dialogs", dialogs)
      assertClean("channel", channel)
    })
  )

  it.scoped("is nowhere to be found after it was typed at a console", () =>
    Effect.gen(function* () {
      const terminal = yield* TestTerminal.make({ columns: 80, rows: 30 })
      const screen = yield* Effect.provide(ConsoleScreen.make({ color: false }), terminal.layer)
      const interactor = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
      yield* TestClock.adjust("1 second")
      yield* signIn(interactor, () =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          yield* terminal.type(`${canary}\n`)
          yield* TestClock.adjust("1 second")
        })
      )
      assert.notInclude(terminal.raw(), canary)
      assert.strictEqual(yield* screen.draft, "")
      assertClean("screen", screen)
    })
  )
})
