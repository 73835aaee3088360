import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import type * as AcpConnection from "../../src/foreign/AcpConnection.js"
import { ProtocolError } from "../../src/foreign/AcpConnection.js"
import * as AcpInteractor from "../../src/acp/AcpInteractor.js"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as PermissionOption from "../../src/interaction/PermissionOption.js"
import * as AcpSchema from "../kit/AcpSchema.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Runs from "../kit/Runs.js"

const root = "ses_root" as SessionId

interface Asked {
  readonly method: string
  readonly params: unknown
}

/** An editor that gives these answers one after the other; `undefined` leaves a question open. */
const editorOf = (answers: ReadonlyArray<unknown>, has: AcpInteractor.Editor["has"] = { forms: true, urls: true }) => {
  const asked: Array<Asked> = []
  const log: Array<string> = []
  const left = [...answers]
  const client: AcpInteractor.Editor["client"] = {
    request: (method, params) =>
      Effect.suspend(() => {
        asked.push({ method, params })
        log.push(method)
        const answer = left.shift()
        if (answer instanceof ProtocolError) return answer
        // What an editor answers may be anything.
        return answer === undefined ? Effect.never : Effect.succeed(answer as never)
      }),
    notify: (method) => Effect.sync(() => void log.push(method))
  }
  const interactor = AcpInteractor.make({
    client,
    sessionId: root,
    has,
    principal: "ann",
    around: { root, workspace: "/project", toolOf: () => ({ kind: "edit", paths: ["path"] }) },
    beforeAsking: () => Effect.sync(() => void log.push("announced")),
    say: (sentence) => Effect.sync(() => void log.push(sentence))
  })
  const ask = <I extends Interaction.Interaction>(
    interaction: I,
    envelope: Partial<InteractionRequest.InteractionRequest> = { sessionId: root }
  ) =>
    Effect.flatMap(InteractionSample.request(interaction), (request) =>
      Effect.either(interactor.request({ ...request, ...envelope, interaction }))
    )
  return { ask, asked, log }
}

const selected = (optionId: string) => ({ outcome: { outcome: "selected", optionId } })
const accepted = (content: unknown) => ({ action: "accept", content })

const approve = (more: Partial<ConstructorParameters<typeof Interaction.Approve>[0]> = {}) =>
  new Interaction.Approve({
    toolCallId: "call_1" as ToolCallId,
    tool: "write_file",
    argumentsSummary: "a.txt",
    arguments: { path: "a.txt", content: "new" },
    approvalKey: "write_file a.txt",
    options: PermissionOption.offered({ editable: true }),
    editable: { parameters: ["content"], format: "text", current: { content: "new" } },
    display: { summary: "Write a.txt", change: { path: "/project/a.txt", before: "old", after: "new" } },
    ...more
  })

const optionsOf = ({ params }: Asked): ReadonlyArray<{ readonly optionId: string; readonly kind: string }> =>
  // Only permission requests are looked at.
  (params as AcpConnection.RequestPermissionRequest).options

const answerOf = (settled: Either.Either<{ readonly answer: unknown }, { readonly message: string }>) =>
  Either.match(settled, { onLeft: ({ message }) => message, onRight: ({ answer }) => answer })

describe("an approval at an editor", () => {
  it.effect("has the kinds of the protocol, the change and the place", () =>
    Effect.gen(function* () {
      const { ask, asked, log } = editorOf([selected("y")])
      const settled = yield* ask(approve())
      assert.deepStrictEqual(answerOf(settled), { decision: "allow", scope: "once" })
      assert.deepStrictEqual(
        optionsOf(asked[0] ?? { method: "", params: {} }).map(({ kind, optionId }) => [optionId, kind]),
        [
          ["y", "allow_once"],
          ["n", "reject_once"],
          ["a", "allow_always"],
          ["never", "reject_always"],
          ["c", "reject_once"],
          ["e", "reject_once"]
        ]
      )
      assert.deepInclude(asked[0]?.params, { sessionId: root })
      assert.deepNestedInclude(asked[0]?.params, {
        "toolCall.content[0]": { type: "diff", path: "/project/a.txt", oldText: "old", newText: "new" },
        "toolCall.locations[0]": { path: "/project/a.txt" }
      })
      assert.isUndefined(AcpSchema.problem("RequestPermissionRequest", asked[0]?.params))
      assert.deepStrictEqual(log, ["announced", "session/request_permission"])
    })
  )

  it.effect("offers no more than the request does", () =>
    Effect.gen(function* () {
      const kinds = (more: Parameters<typeof approve>[0], has?: AcpInteractor.Editor["has"]) =>
        Effect.gen(function* () {
          const { ask, asked } = editorOf([selected("n")], has)
          yield* ask(approve(more))
          return asked.flatMap(optionsOf).map(({ optionId }) => optionId)
        })
      const onceOnly = PermissionOption.offered({ editable: true, onceOnly: true })
      assert.deepStrictEqual(yield* kinds({ onceOnly: true, options: onceOnly }), ["y", "n", "never", "c", "e"])
      assert.deepStrictEqual(yield* kinds({ onceOnly: true }), ["y", "n", "never", "c", "e"])
      assert.deepStrictEqual(yield* kinds({ editable: undefined }), ["y", "n", "a", "never", "c"])
      assert.deepStrictEqual(yield* kinds({}, { forms: false, urls: false }), ["y", "n", "a", "never"])
      const few = [{ short: "n", full: "no", description: "deny" }]
      assert.deepStrictEqual(yield* kinds({ options: few }), ["n"])
    })
  )

  it.effect("edits and comments by a form, and comes back from one that is closed", () =>
    Effect.gen(function* () {
      const edited = editorOf([selected("e"), accepted({ content: "newer" })])
      assert.deepStrictEqual(answerOf(yield* edited.ask(approve())), {
        decision: "edit",
        editedArguments: { content: "newer" }
      })
      assert.isUndefined(AcpSchema.problem("CreateElicitationRequest", edited.asked[1]?.params))
      const commented = editorOf([
        selected("c"),
        { action: "decline" },
        selected("c"),
        accepted({ comment: " use b " })
      ])
      assert.deepStrictEqual(answerOf(yield* commented.ask(approve())), {
        decision: "deny",
        scope: "once",
        comment: "use b"
      })
      assert.deepStrictEqual(
        commented.log.filter((line) => line !== "announced"),
        ["session/request_permission", "elicitation/create", "session/request_permission", "elicitation/create"]
      )
    })
  )

  it.effect("asks again for an option that was not offered, and then gives up; nothing is allowed", () =>
    Effect.gen(function* () {
      const once = editorOf([selected("a"), selected("n")])
      const few = [
        { short: "y", full: "yes", description: "allow" },
        { short: "n", full: "no", description: "deny" }
      ]
      assert.deepStrictEqual(answerOf(yield* once.ask(approve({ options: few }))), { decision: "deny", scope: "once" })
      const never = editorOf(Array.from({ length: 9 }, () => selected("allow")))
      assert.match(String(answerOf(yield* never.ask(approve()))), /option that was not offered/)
      assert.lengthOf(never.asked, 5)
    })
  )

  it.effect("is cancelled by the person, and fails if the editor refuses to ask", () =>
    Effect.gen(function* () {
      const cancelled = editorOf([{ outcome: { outcome: "cancelled" } }])
      assert.strictEqual(answerOf(yield* cancelled.ask(approve())), "The question was cancelled by ann.")
      const refused = editorOf([new ProtocolError({ code: -32601, reason: "Method not found" })])
      assert.match(String(answerOf(yield* refused.ask(approve()))), /refused the question: Method not found/)
    })
  )

  it.effect("of a subagent names it, on the session that the editor knows", () =>
    Effect.gen(function* () {
      const { ask, asked } = editorOf([selected("y")])
      yield* ask(approve(), { sessionId: "ses_2" as SessionId, agentPath: "main/reviewer" })
      assert.deepInclude(asked[0]?.params, { sessionId: root })
      assert.deepNestedInclude(asked[0]?.params, { "toolCall.title": "[main/reviewer] Write a.txt" })
    })
  )

  it.effect("that is reserved says whose votes it needs, and offers nothing that lasts", () =>
    Effect.gen(function* () {
      const { ask, asked } = editorOf([selected("y")])
      const need = { quorum: 2, roles: ["ops"], members: [], deny: "one" as const, rule: "deploy" }
      yield* ask(approve({ needs: { digest: "", all: [need], votes: [{ by: "bob", vote: "allow" }] } }))
      assert.include(JSON.stringify(asked[0]?.params), "This call needs 2 of: ops.")
      assert.include(JSON.stringify(asked[0]?.params), "bob allowed it")
      assert.notInclude(
        asked.flatMap(optionsOf).map(({ kind }) => kind),
        "allow_always"
      )
    })
  )

  it.effect("is withdrawn with the fiber that asks", () =>
    Effect.gen(function* () {
      const { ask, asked } = editorOf([])
      const fiber = yield* Effect.fork(ask(approve()))
      yield* Effect.yieldNow()
      assert.lengthOf(asked, 1)
      yield* Fiber.interrupt(fiber)
    })
  )
})

describe("a question at an editor", () => {
  const { samples } = InteractionSample
  const questions = [samples.Clarify, samples.Ask, samples.Select, samples.Confirm, samples.Elicit]

  it.effect("is a form, and never a permission option", () =>
    Effect.forEach(questions, (sample) =>
      Effect.gen(function* () {
        const { ask, asked } = editorOf([accepted(InteractionSample.filled(sample))])
        const settled = yield* ask<Interaction.Interaction>(sample.interaction)
        assert.deepStrictEqual(answerOf(settled), sample.answer)
        assert.deepStrictEqual(
          asked.map(({ method }) => method),
          ["elicitation/create"]
        )
        assert.isUndefined(AcpSchema.problem("CreateElicitationRequest", asked[0]?.params))
      })
    )
  )

  it.effect("without forms is answered by nobody, and the model is told to ask in prose", () =>
    Effect.forEach(questions, ({ interaction }) =>
      Effect.gen(function* () {
        const { ask, asked } = editorOf([], { forms: false, urls: false })
        const settled = yield* ask<Interaction.Interaction>(interaction)
        assert.match(String(answerOf(settled)), /the editor takes no forms\. Ask in your answer/)
        assert.lengthOf(asked, 0)
      })
    )
  )

  it.effect("whose form does not fit is asked again with what is wrong; a closed form is no answer", () =>
    Effect.gen(function* () {
      const { ask, asked } = editorOf([accepted({ answer: "9" }), accepted({ answer: "1" })])
      assert.strictEqual(answerOf(yield* ask(new Interaction.Select({ prompt: "Which?", options: ["a", "b"] }))), 0)
      assert.match(JSON.stringify(asked[1]?.params), /Answer.*\\n\\nWhich\?/)
      const closed = editorOf([{ action: "decline" }])
      assert.strictEqual(
        answerOf(yield* closed.ask(new Interaction.Ask({ prompt: "Who?" }))),
        "The question was cancelled by ann."
      )
    })
  )

  it.effect("about a password is never asked, and a code stays until the sign-in is found", () =>
    Effect.gen(function* () {
      const password = editorOf([])
      assert.match(
        String(answerOf(yield* password.ask(new Interaction.AuthPassword({ prompt: "?" })))),
        /an editor cannot ask for a password/
      )
      assert.lengthOf(password.asked, 0)
      const code = new Interaction.AuthDeviceCode({ url: "https://example.com/d", code: "AB-1", expiresAt: 9 })
      const shown = editorOf([accepted({})])
      const fiber = yield* Effect.fork(shown.ask(code))
      yield* Effect.yieldNow()
      assert.isUndefined(AcpSchema.problem("CreateElicitationRequest", shown.asked[0]?.params))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(shown.log, ["elicitation/create", "elicitation/complete"])
      const said = editorOf([], { forms: false, urls: false })
      const waits = yield* Effect.fork(said.ask(code))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(waits)
      assert.deepStrictEqual(said.log, ["Sign in at https://example.com/d with the code AB-1."])
    })
  )
})

describe("any answer of an editor", () => {
  const anything = FastCheck.oneof(
    FastCheck.jsonValue(),
    FastCheck.string().map(selected),
    FastCheck.constantFrom("allow", "yes", "Y", "y ", "allow_once", "always", "", "n").map(selected),
    FastCheck.record({ action: FastCheck.string(), content: FastCheck.jsonValue() })
  )

  it("allows a call only by the option that says so", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(anything, { maxLength: 6 }), async (answers) => {
        const { ask } = editorOf([...answers, new ProtocolError({ code: -32603, reason: "gone" })])
        const settled = await Effect.runPromise(ask(approve()))
        const chosen = answers.some(
          (answer) => JSON.stringify(answer) === JSON.stringify(selected("y")) || JSON.stringify(answer).includes('"a"')
        )
        if (Either.isRight(settled) && !chosen) assert.notStrictEqual(settled.right.answer.decision, "allow")
      }),
      { numRuns: Runs.of(2_000) }
    )
  })

  it("never stays unsettled, whatever comes", async () => {
    await FastCheck.assert(
      FastCheck.asyncProperty(FastCheck.array(anything, { minLength: 40, maxLength: 40 }), async (answers) => {
        const gone = Array.from({ length: 40 }, () => new ProtocolError({ code: -32603, reason: "gone" }))
        const { ask } = editorOf([...answers, ...gone])
        await Effect.runPromise(ask(new Interaction.Confirm({ prompt: "Sure?", default: true })))
      }),
      { numRuns: Runs.of(400) }
    )
  })
})
