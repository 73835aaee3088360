import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as Clarification from "../../src/builtin/Clarification.js"
import type { Interaction } from "../../src/interaction/Interaction.js"
import { InteractionCancelled, NoInteractor } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"

const { declines } = Interactor
const nobody: Interactor.Handlers = {
  Approve: declines,
  grantStageTool: declines,
  approveSubagentEnvelope: declines,
  Clarify: declines,
  Ask: declines,
  Select: declines,
  Confirm: declines,
  Elicit: declines,
  "Auth.DeviceCode": declines,
  "Auth.Password": declines
}

const interactor = (handlers: Partial<Interactor.Handlers>, timeouts?: Interactor.Timeouts) =>
  Interactor.make({ id: "person", handlers: { ...nobody, ...handlers }, timeouts })

const clarify = (params: unknown) =>
  Effect.flatMap(Clarification.toolkit, (kit) =>
    // Parameters come from a model: the tool's schema, not the compiler, has to judge them.
    Effect.map(kit.handle("request_clarification", params as never), (done) => [done.isFailure, done.encodedResult])
  ).pipe(Effect.provide(Clarification.layer))

const input = (params: unknown) =>
  Effect.flatMap(Clarification.toolkit, (kit) =>
    // Parameters come from a model: the tool's schema, not the compiler, has to judge them.
    Effect.map(kit.handle("request_input", params as never), (done) => [done.isFailure, done.encodedResult])
  ).pipe(Effect.provide(Clarification.layer))

const ask = (prompt: string) =>
  Effect.flatMap(Clarification.toolkit, (kit) =>
    Effect.map(kit.handle("ask_user", { prompt }), (done) => [done.isFailure, done.encodedResult])
  ).pipe(Effect.provide(Clarification.layer))

const questions = [
  { text: "Which?", choices: ["a", "b"], default_choice: 2 },
  { text: "Why?", question_type: "free_text", required: false }
]
const withdrawn = (request: InteractionRequest) =>
  Effect.fail(new InteractionCancelled({ requestId: request.requestId, by: "person" }))
const cancelled = { cancelled: true, message: "User cancelled the clarification request." }

describe("request_clarification", () => {
  it.effect("puts the questions to the current interactor and gives the answers by number", () =>
    Effect.gen(function* () {
      const shown: Array<Interaction> = []
      const answers = { "1": { selected: 2, text: "b" }, "2": { skipped: true as const } }
      const local = interactor({
        Clarify: (request) => Effect.sync(() => (shown.push(request.interaction), answers))
      })
      const result = yield* clarify({ context: "Because.", questions }).pipe(
        Interactor.withInteractor(local),
        Effect.provideService(Interactor.Interactor, interactor({}))
      )
      assert.deepStrictEqual(result, [false, answers])
      assert.deepInclude(shown[0], {
        _tag: "Clarify",
        context: "Because.",
        questions: [
          { text: "Which?", question_type: "single_choice", choices: ["a", "b"], required: true, default_choice: 2 },
          { text: "Why?", question_type: "free_text", choices: [], required: false }
        ]
      })
    })
  )

  it.effect("gives a cancelled form as such", () =>
    Effect.gen(function* () {
      const result = yield* Interactor.withInteractor(interactor({ Clarify: withdrawn }))(
        clarify({ context: "", questions })
      )
      assert.deepStrictEqual(result, [false, cancelled])
    })
  )

  it.effect("never lets silence or absence look like an answer", () =>
    Effect.gen(function* () {
      const silent = interactor(
        { Clarify: () => Effect.never, Ask: () => Effect.never },
        { clarification: "30 seconds" }
      )
      const waiting = yield* Effect.fork(Interactor.withInteractor(silent)(clarify({ context: "", questions })))
      yield* TestClock.adjust("60 seconds")
      assert.deepStrictEqual(yield* Fiber.join(waiting), [
        true,
        "The question was not answered. person did not answer within 60 s."
      ])
      const unable = yield* Interactor.withInteractor(interactor({}))(clarify({ context: "", questions }))
      assert.deepStrictEqual(unable, [
        true,
        "The question was not answered. person could not answer: it does not take Clarify requests"
      ])
      const absent: Interactor.Service = {
        id: "none",
        relay: false,
        request: ({ requestId }) => Effect.fail(new NoInteractor({ requestId }))
      }
      const [failed, sentence] = yield* Interactor.withInteractor(absent)(ask("?"))
      assert.isTrue(failed)
      assert.include(String(sentence), "No attached channel can answer")
    })
  )

  it.effect("asks nobody when the questions make no sense", () =>
    Effect.gen(function* () {
      const never = interactor({ Clarify: () => Effect.dieMessage("was asked") })
      for (const bad of [
        [],
        [{ text: "No choices?" }],
        [{ text: "?", choices: ["a"], default_choice: 2 }],
        [{ text: "?", question_type: "free_text", default_choice: 1 }],
        [{ text: "?", question_type: "essay", choices: ["a"] }]
      ]) {
        const exit = yield* Effect.exit(Interactor.withInteractor(never)(clarify({ context: "", questions: bad })))
        assert.include(String(exit), "Failed to decode tool call parameters")
      }
    })
  )
})

describe("ask_user", () => {
  it.effect("gives the text as it was typed, also one that looks like a cancellation", () =>
    Effect.gen(function* () {
      const person = interactor({ Ask: (request) => Effect.succeed(`re: ${request.interaction.prompt}`) })
      assert.deepStrictEqual(yield* Interactor.withInteractor(person)(ask("Name?")), [false, "re: Name?"])
      const odd = interactor({ Ask: () => Effect.succeed(JSON.stringify(cancelled)) })
      assert.deepStrictEqual(yield* Interactor.withInteractor(odd)(ask("?")), [false, JSON.stringify(cancelled)])
    })
  )

  it.effect("gives a cancelled question as such, and closes the dialog when it is interrupted", () =>
    Effect.gen(function* () {
      const result = yield* Interactor.withInteractor(interactor({ Ask: withdrawn }))(ask("?"))
      assert.deepStrictEqual(result, [false, cancelled])
      let closed = false
      const open = interactor({ Ask: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => (closed = true))) })
      const asking = yield* Effect.fork(Interactor.withInteractor(open)(ask("?")))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(asking)
      assert.isTrue(closed)
    })
  )
})

describe("request_input", () => {
  const params = {
    title: "Where?",
    fields: [
      { name: "port", type: "integer", minimum: 1, default: 80 },
      { name: "cancelled", type: "boolean", required: false }
    ]
  }
  const filled = { port: 443, cancelled: true }

  it.effect("puts the form to the current interactor and gives the values by name", () =>
    Effect.gen(function* () {
      const shown: Array<Interaction> = []
      const person = interactor({ Elicit: (request) => Effect.sync(() => (shown.push(request.interaction), filled)) })
      const result = yield* Interactor.withInteractor(person)(input(params))
      assert.deepStrictEqual(result, [false, { values: filled }])
      assert.deepInclude(shown[0], {
        _tag: "Elicit",
        title: "Where?",
        fields: [
          { name: "port", type: "integer", minimum: 1, default: 80, required: true },
          { name: "cancelled", type: "boolean", required: false }
        ]
      })
    })
  )

  it.effect("gives a cancelled form as such, and silence as a failure", () =>
    Effect.gen(function* () {
      const result = yield* Interactor.withInteractor(interactor({ Elicit: withdrawn }))(input(params))
      assert.deepStrictEqual(result, [false, cancelled])
      const [isFailure] = yield* Interactor.withInteractor(interactor({}))(input(params))
      assert.isTrue(isFailure)
    })
  )

  const secrets = ["password", "API key", "apiKey", "access_token", "client-secret", "githubToken", "passphrase"]
  it.effect.each(secrets)("asks nobody for a field named %s", (name) =>
    Effect.gen(function* () {
      const person = interactor({ Elicit: () => Effect.die("it was asked") })
      const [isFailure, reason] = yield* Interactor.withInteractor(person)(
        input({ title: "?", fields: [{ name, type: "string" }] })
      )
      assert.isTrue(isFailure)
      assert.include(String(reason), "is a secret by its name")
    })
  )

  it.effect("asks for what only sounds like a secret", () =>
    Effect.gen(function* () {
      const fields = [
        { name: "max_tokens", type: "integer" },
        { name: "secretary", type: "string" },
        { name: "tokenizer", type: "string" }
      ]
      const values = { max_tokens: 1, secretary: "Ada", tokenizer: "bpe" }
      const person = interactor({ Elicit: () => Effect.succeed(values) })
      assert.deepStrictEqual(yield* Interactor.withInteractor(person)(input({ title: "?", fields })), [
        false,
        { values }
      ])
    })
  )

  it.effect("rejects fields that are none to the model", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<unknown> = [
        [],
        [{ name: "a", type: "choice" }],
        [{ name: "a", type: "string", minimum: 1 }],
        [{ name: "a", type: "integer", minimum: 5, default: 1 }],
        [{ name: "", type: "string" }],
        [{ name: "a", type: "choice", choices: ["x", "x"] }],
        [{ name: "a", type: "essay" }]
      ]
      for (const fields of wrong) {
        assert.isTrue(
          Exit.isFailure(
            yield* Effect.exit(input({ title: "?", fields }).pipe(Interactor.withInteractor(interactor({}))))
          )
        )
      }
      const twice = [
        { name: "a", type: "string" },
        { name: "a", type: "string" }
      ]
      const [isFailure] = yield* Interactor.withInteractor(interactor({}))(input({ title: "?", fields: twice }))
      assert.isTrue(isFailure)
    })
  )
})
