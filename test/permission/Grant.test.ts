import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import { EventBus } from "../../src/event/EventBus.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Grant from "../../src/permission/Grant.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Recorder from "../kit/Recorder.js"

const attempt: Grant.Attempt = { stageExecutionId: "stage_1", attempt: 0 }
const call = { id: "call_1" as ToolCallId, name: "deploy", params: { to: "production", force: false } }
const binding = Grant.bindingOf(attempt, call)

const origin: Origin.Origin = {
  sessionId: "ses_1" as SessionId,
  rootSessionId: "ses_1" as SessionId,
  agent: "main",
  depth: 0
}

/** Runs with a bus that is listened to, as an agent does. */
const recorded = <A, E, R>(use: (recorder: Recorder.Recorder) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Recorder.make(), (recorder) =>
    use(recorder).pipe(Origin.withOrigin(origin), Effect.provideService(EventBus, recorder.bus))
  )

const tagOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.either(effect), Either.match({ onLeft: (error) => error._tag, onRight: () => "ok" }))

describe("Grant", () => {
  it.scoped("is minted and consumed once, and both are told", () =>
    recorded((recorder) =>
      Effect.gen(function* () {
        const grants = yield* Grant.make(attempt)
        yield* grants.mint(binding)
        yield* grants.consume(binding)
        assert.deepStrictEqual(
          recorder.events,
          ["GrantMinted", "GrantConsumed"].map((_tag) => ({
            _tag,
            at: 0,
            sessionId: "ses_1",
            agent: "main",
            stageExecutionId: "stage_1",
            attempt: 0,
            tool: "deploy"
          })) as never
        )
        const again = yield* Effect.flip(grants.consume(binding))
        assert.strictEqual(again._tag, "GrantAlreadyConsumed")
        assert.strictEqual(
          again.message,
          "The grant for this call of deploy (call_1) was used; propose it again to be asked for another."
        )
        assert.strictEqual(recorder.events.length, 2)
      })
    )
  )

  it.scoped("is for whoever has all five parts, and for nobody with four", () =>
    recorded(() =>
      Effect.gen(function* () {
        const grants = yield* Grant.make(attempt)
        yield* grants.mint(binding)
        const others: ReadonlyArray<readonly [Grant.Binding, string]> = [
          [{ ...binding, stageExecutionId: "stage_2" }, "GrantExpired"],
          [{ ...binding, attempt: 1 }, "GrantExpired"],
          [{ ...binding, proposalId: "call_2" }, "GrantNotFound"],
          [{ ...binding, tool: "read" }, "GrantNotFound"],
          [{ ...binding, argsDigest: "" }, "GrantNotFound"]
        ]
        for (const [other, tag] of others) assert.strictEqual(yield* tagOf(grants.consume(other)), tag)
        // None of them has spent it.
        assert.strictEqual(yield* tagOf(grants.consume(binding)), "ok")
      })
    )
  )

  it.scoped("tells calls apart by their arguments, whatever their order, and by nothing that looks alike", () =>
    recorded(() =>
      Effect.gen(function* () {
        const same = { ...call, params: { force: false, to: "production" } }
        assert.deepStrictEqual(Grant.bindingOf(attempt, same), binding)
        const grants = yield* Grant.make(attempt)
        yield* grants.mint(Grant.bindingOf(attempt, { ...call, name: 'a","b' }))
        assert.strictEqual(
          yield* tagOf(
            grants.consume(Grant.bindingOf(attempt, { ...call, id: 'call_1","a' as ToolCallId, name: "b" }))
          ),
          "GrantNotFound"
        )
        for (const params of [{ to: "production" }, { to: "production", force: "false" }, [], null, undefined, ""]) {
          assert.notStrictEqual(Grant.bindingOf(attempt, { ...call, params }).argsDigest, binding.argsDigest)
        }
      })
    )
  )

  it.effect("expires with its attempt, spent or not, and none is minted any more", () =>
    recorded((recorder) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const grants = yield* Scope.extend(Grant.make(attempt), scope)
        yield* grants.mint(binding)
        yield* Scope.close(scope, Exit.void)
        const error = yield* Effect.flip(grants.consume(binding))
        assert.strictEqual(
          error.message,
          "Attempt 1 of stage stage_1 does not run; no grant for deploy holds any more."
        )
        assert.strictEqual(yield* tagOf(grants.mint(binding)), "GrantExpired")
        assert.deepStrictEqual(recorder.tags(), ["GrantMinted"])
      })
    )
  )

  it.scoped("does not hold in the next attempt, nor in one of the same name in another process", () =>
    recorded(() =>
      Effect.gen(function* () {
        const first = yield* Grant.make(attempt)
        yield* first.mint(binding)
        const twin = yield* Grant.make(attempt)
        assert.strictEqual(yield* tagOf(twin.consume(binding)), "GrantNotFound")
        const next = yield* Grant.make({ ...attempt, attempt: 1 })
        assert.strictEqual(yield* tagOf(next.consume(binding)), "GrantExpired")
        assert.strictEqual(yield* tagOf(next.consume({ ...binding, attempt: 1 })), "GrantNotFound")
        assert.strictEqual(yield* tagOf(next.mint(binding)), "GrantExpired")
      })
    )
  )

  it.effect("is consumed as often as it was minted, whatever the order", () =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(
          FastCheck.array(FastCheck.tuple(FastCheck.constantFrom("mint", "consume"), FastCheck.nat(2)), {
            maxLength: 40
          }),
          (steps) =>
            Effect.runPromise(
              Effect.scoped(
                recorded(() =>
                  Effect.gen(function* () {
                    const grants = yield* Grant.make(attempt)
                    const model = new Map<number, "granted" | "spent">()
                    for (const [step, number] of steps) {
                      const one = { ...binding, proposalId: `call_${number}` }
                      if (step === "mint") {
                        yield* grants.mint(one)
                        model.set(number, "granted")
                        continue
                      }
                      const expected = { granted: "ok", spent: "GrantAlreadyConsumed", none: "GrantNotFound" } as const
                      assert.strictEqual(yield* tagOf(grants.consume(one)), expected[model.get(number) ?? "none"])
                      if (model.has(number)) model.set(number, "spent")
                    }
                  })
                )
              )
            )
        )
      )
    )
  )
})

describe("an envelope", () => {
  const child = { ...origin, agent: "main/reviewer", depth: 1, subagentId: "sub_1" }
  const authority = Grant.envelope({ tools: ["read_file", "list_files"], subagentId: "sub_1" })
  const decide = (tool: string, as: Origin.Origin) =>
    recorded((recorder) =>
      // Only the call's name is looked at.
      authority({ call: { ...call, name: tool } } as never, { bus: recorder.bus } as never).pipe(
        Origin.withOrigin(as),
        Interactor.withInteractor({ id: "nobody", relay: false, request: () => Effect.dieMessage("nobody is asked") }),
        Effect.map(Option.getOrUndefined)
      )
    )

  it.effect("allows its subagent its tools, by their exact names, again and again", () =>
    Effect.gen(function* () {
      for (let count = 0; count < 2; count++) {
        assert.deepStrictEqual(yield* decide("read_file", child), {
          granted: true,
          method: "envelope",
          reason: "in the envelope of sub_1"
        } as const)
      }
      for (const tool of ["write_file", "read_files", "READ_FILE", "read*", ""]) {
        assert.isUndefined(yield* decide(tool, child))
      }
    })
  )

  it.effect("says nothing about another subagent, a child of its own, or the root", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* decide("read_file", { ...child, subagentId: "sub_2" }))
      assert.isUndefined(yield* decide("read_file", origin))
    })
  )

  it("is valid when it is what the parent has, or less", () => {
    const active = ["a", "b", "c"]
    assert.deepStrictEqual(Grant.validateEnvelope(["b"], active), Either.right(["b"]))
    assert.deepStrictEqual(Grant.validateEnvelope(["c", "a", "b", "a"], active), Either.right(["c", "a", "b"]))
    assert.deepStrictEqual(Grant.validateEnvelope([], active), Either.right([]))
    const wider = Grant.validateEnvelope(["a", "shell", "*", "A", "shell"], active)
    assert(Either.isLeft(wider))
    assert.deepStrictEqual(wider.left.unknown, ["shell", "*", "A"])
    assert.strictEqual(
      wider.left.message,
      "A subagent can only be given tools you have yourself, and you do not have shell, *, A. You have: a, b, c."
    )
    const none = Grant.validateEnvelope(["a"], [])
    assert(Either.isLeft(none))
    assert.match(none.left.message, /You have none\.$/)
  })

  const request: Grant.EnvelopeRequest = {
    subagentId: "sub_1",
    parentSessionId: "ses_1" as SessionId,
    depth: 1,
    tools: ["read_file", "read_file"],
    active: ["read_file", "write_file"],
    promptSummary: "look around",
    model: { providerId: "anthropic", modelId: "claude" }
  }
  const ask = (script: TestInteractor.Script, asked = request) =>
    recorded((recorder) =>
      Effect.gen(function* () {
        const person = yield* TestInteractor.make({ script })
        const result = yield* Effect.either(
          Grant.requestEnvelope(asked).pipe(Interactor.withInteractor(person.interactor))
        )
        return { result, shown: yield* person.shown, events: recorder.events }
      })
    )

  it.effect("is asked for once, and approved for the subagent's life", () =>
    Effect.gen(function* () {
      const { result, shown, events } = yield* ask(["approve: be quick"])
      assert(Either.isRight(result))
      assert.deepStrictEqual(
        shown.map(({ interaction }) => ({ ...interaction })),
        [
          {
            _tag: "approveSubagentEnvelope",
            subagentId: "sub_1",
            parentSessionId: "ses_1",
            depth: 1,
            requestedEnvelope: ["read_file"],
            promptSummary: "look around",
            model: { providerId: "anthropic", modelId: "claude" }
          }
        ] as never
      )
      const told = { at: 0, sessionId: "ses_1", agent: "main", subagentId: "sub_1" }
      assert.deepStrictEqual(events, [{ _tag: "SubagentEnvelopeApproved", ...told, note: "be quick" }] as never)
    })
  )

  const endings: ReadonlyArray<readonly [TestInteractor.Step, string, string]> = [
    ["n", "denied", "Subagent/EnvelopeDenied (denied). No subagent"],
    ["n: too much", "denied", "Subagent/EnvelopeDenied (denied): too much. No subagent"],
    [TestInteractor.cancel, "cancelled", "Subagent/EnvelopeDenied (cancelled): The question was cancelled by person."],
    [TestInteractor.fail("gone"), "unavailable", "(unavailable): person could not answer: gone"]
  ]
  for (const [step, how, message] of endings) {
    it.effect(`is denied when the person answers ${typeof step === "string" ? step : `not (${how})`}`, () =>
      Effect.gen(function* () {
        const { result, events } = yield* ask([step])
        assert(Either.isLeft(result) && result.left._tag === "EnvelopeDenied")
        assert.strictEqual(result.left.how, how)
        assert.include(result.left.message, message)
        assert.deepStrictEqual(
          events.map(({ _tag }) => _tag),
          ["SubagentEnvelopeDenied"]
        )
      })
    )
  }

  it.effect("is not asked for when the parent has not got its tools", () =>
    Effect.gen(function* () {
      const { result, shown, events } = yield* ask(["y"], { ...request, tools: ["read_file", "shell"] })
      assert(Either.isLeft(result))
      assert.strictEqual(result.left._tag, "EnvelopeInvalid")
      assert.deepStrictEqual([shown, events], [[], []])
    })
  )

  it.effect("masks what looks like a secret in a note", () =>
    Effect.gen(function* () {
      const secret = "sk-abcdefghijklmnop1234"
      const { result, events } = yield* ask([`n: use ${secret}`])
      assert.notInclude(JSON.stringify([events, result]), secret)
    })
  )
})
