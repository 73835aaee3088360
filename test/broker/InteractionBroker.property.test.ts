/**
 * Random people, random requests, random interruptions, and what must be true whatever they do: see the invariants in
 * the README. Nothing here knows how the broker works.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import type { InteractionError } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"
import * as VirtualClock from "../kit/VirtualClock.js"

// -----------------------------------------------------------------------------------------------------------------
// what may happen
// -----------------------------------------------------------------------------------------------------------------

const deeds = ["answer", "allow", "deny", "silent", "fail", "crash", "cancel", "contradict", "nonsense"] as const
type Deed = (typeof deeds)[number]

interface Reaction {
  readonly deed: Deed
  /** Milliseconds; zero is at once. */
  readonly after: number
  readonly nonsense: number
}

interface Person {
  readonly reactions: ReadonlyArray<Reaction>
  readonly dialogs: "one" | "unbounded"
  readonly timeout: number | undefined
  readonly attachAt: number
  readonly detachAt: number | undefined
  readonly disconnectAt: number | undefined
}

interface InteractorCall {
  readonly kind: Interaction.Kind
  readonly at: number
  readonly interruptAt: number | undefined
  /** Whether the rules know the answer from a certain moment on. */
  readonly knownAt: number | undefined
  /** Somebody who answers through the broker's door, with sense or without; or withdraws. */
  readonly outside: ReadonlyArray<{ readonly at: number; readonly what: "answer" | "nonsense" | "cancel" }>
}

const moment = FastCheck.nat(60).map((n) => n * 10)
const maybe = <A>(arbitrary: FastCheck.Arbitrary<A>, freq = 3) => FastCheck.option(arbitrary, { nil: undefined, freq })

const nonsense: ReadonlyArray<unknown> = [
  "y",
  "allow",
  true,
  1,
  99,
  null,
  undefined,
  { decision: "allow" },
  { decision: "allow", scope: "forever" },
  { decision: "edit", editedArguments: { path: "/" } },
  { outcome: "yes" },
  { "9": { value: "x" } },
  []
]

const person: FastCheck.Arbitrary<Person> = FastCheck.record({
  reactions: FastCheck.array(
    FastCheck.record({
      deed: FastCheck.constantFrom(...deeds),
      after: FastCheck.oneof(FastCheck.constant(0), moment),
      nonsense: FastCheck.nat(nonsense.length - 1)
    }),
    { minLength: 1, maxLength: 8 }
  ),
  dialogs: FastCheck.constantFrom("one", "unbounded"),
  timeout: maybe(moment),
  attachAt: FastCheck.oneof(FastCheck.constant(0), moment),
  detachAt: maybe(moment, 1),
  disconnectAt: maybe(moment, 1)
})

const asking: FastCheck.Arbitrary<InteractorCall> = FastCheck.record({
  kind: FastCheck.constantFrom(...InteractionSample.kinds, "Approve" as const, "Approve" as const),
  at: moment,
  interruptAt: maybe(moment),
  knownAt: maybe(moment, 1),
  outside: FastCheck.array(
    FastCheck.record({ at: moment, what: FastCheck.constantFrom("answer", "nonsense", "cancel") }),
    { maxLength: 2 }
  )
})

const world = FastCheck.record({
  persons: FastCheck.array(person, { minLength: 1, maxLength: 5 }),
  askings: FastCheck.array(asking, { minLength: 1, maxLength: 50 }),
  whenNobody: FastCheck.constantFrom("fail" as const, "wait" as const)
})

const allowing: { readonly [K in Interaction.Kind]?: Interaction.Answer<Interaction.Interaction<K>> } = {
  Approve: { decision: "allow", scope: "turn" },
  grantStageTool: { outcome: "approve" },
  approveSubagentEnvelope: { outcome: "approve" },
  Confirm: true
}

const denying: { readonly [K in Interaction.Kind]?: Interaction.Answer<Interaction.Interaction<K>> } = {
  Approve: { decision: "deny", scope: "session" },
  grantStageTool: { outcome: "deny" },
  approveSubagentEnvelope: { outcome: "deny" },
  Confirm: false
}

// -----------------------------------------------------------------------------------------------------------------
// what must be true
// -----------------------------------------------------------------------------------------------------------------

type Outcome = Exit.Exit<Interactor.Answered<Interaction.Interaction>, InteractionError>

const eventOf: { readonly [Tag in InteractionError["_tag"]]: AgentEvent["_tag"] } = {
  InteractionCancelled: "InteractionCancelled",
  InteractionTimedOut: "InteractionTimedOut",
  InteractorUnavailable: "InteractionUnavailable",
  NoInteractor: "InteractionUnavailable"
}

describe("whatever people do", () => {
  it.effect.prop(
    "every request has one end and one event for it, one at a time holds the slot, and only an answer answers",
    [world],
    ([{ askings, persons, whenNobody }]) =>
      Effect.gen(function* () {
        const time = VirtualClock.make()
        /** When each request was settled. */
        const settled = new Map<string, number>()
        const recorder = yield* Recorder.make((event) => {
          if (Recorder.settling.has(event._tag) && "requestId" in event && event.requestId !== undefined)
            settled.set(event.requestId, event.at)
        })
        const scope = yield* Scope.make()
        const broker = yield* Scope.extend(InteractionBroker.make({ bus: recorder.bus, whenNobody }), scope)

        /** Everything that anybody really answered, by request. */
        const given = new Map<string, Array<{ readonly by: string; readonly answer: unknown }>>()
        const give = (requestId: string, by: string, answer: unknown) =>
          given.set(requestId, [...(given.get(requestId) ?? []), { by, answer }])
        const shownTwice: Array<string> = []
        const shownLate: Array<string> = []
        const sitting: Array<TestInteractor.Service> = []

        const react = (
          id: string,
          { after, deed, nonsense: index }: Reaction,
          { interaction, requestId }: InteractionRequest
        ) => {
          const answered = (answer: Interaction.Answer<Interaction.Interaction>) => {
            give(requestId, id, answer)
            return TestInteractor.answer(answer)
          }
          const step = (): TestInteractor.Step => {
            const sample = InteractionSample.samples[interaction._tag].answer
            switch (deed) {
              case "answer":
                return answered(sample)
              case "allow":
                return answered(allowing[interaction._tag] ?? sample)
              case "deny":
                return answered(denying[interaction._tag] ?? sample)
              case "contradict":
                // Whoever holds on to a dialog that was closed has answered nothing.
                return TestInteractor.contradict(TestInteractor.answer(allowing[interaction._tag] ?? sample))
              case "silent":
                return TestInteractor.silent
              case "fail":
                return TestInteractor.fail("out of order")
              case "crash":
                return TestInteractor.crash
              case "cancel":
                return TestInteractor.cancel
              case "nonsense": {
                const value = nonsense[index]
                if (Interaction.misfit(interaction, value) === undefined) give(requestId, id, value)
                return TestInteractor.nonsense(value)
              }
            }
          }
          return after === 0 ? step() : TestInteractor.wait(Effect.delay(Effect.sync(step), after))
        }

        const life = ({ attachAt, detachAt, dialogs, disconnectAt, reactions, timeout }: Person, index: number) =>
          Effect.gen(function* () {
            const id = `person ${index}`
            const seen = new Set<string>()
            const someone = yield* TestInteractor.make({
              id,
              dialogs,
              timeouts: { permission: timeout, clarification: timeout },
              script: (request, count) => {
                if (seen.has(request.requestId)) shownTwice.push(request.requestId)
                if (time.now() > (settled.get(request.requestId) ?? Infinity)) shownLate.push(request.requestId)
                seen.add(request.requestId)
                return react(id, reactions[count % reactions.length]!, request)
              }
            })
            sitting.push(someone)
            if (disconnectAt !== undefined) yield* Effect.fork(Effect.delay(someone.disconnect, disconnectAt))
            yield* Effect.sleep(attachAt)
            const attached = yield* Scope.make()
            yield* Scope.extend(broker.attach(someone.interactor), attached)
            if (detachAt === undefined) return yield* Effect.never
            yield* Effect.sleep(detachAt)
            yield* Scope.close(attached, Exit.void)
          })

        const arrived: Array<string> = []
        const outcomes = new Map<string, Array<Outcome>>()
        const begin = ({ at, interruptAt, kind, knownAt, outside }: InteractorCall) =>
          Effect.gen(function* () {
            yield* Effect.sleep(at)
            const { interaction } = InteractionSample.samples[kind]
            const request = yield* InteractionSample.request<Interaction.Interaction>(interaction)
            const { requestId } = request
            const known = denying[kind]
            let knows = false
            const recheck = Effect.sync(() => (knows && known !== undefined ? Option.some(known) : Option.none()))
            if (knownAt !== undefined && known !== undefined) {
              give(requestId, "policy", known)
              yield* Effect.fork(
                Effect.delay(
                  Effect.sync(() => (knows = true)),
                  knownAt
                )
              )
            }
            for (const { at, what } of outside) {
              const deed =
                what === "cancel"
                  ? broker.cancel(requestId, "outside")
                  : what === "nonsense"
                    ? Effect.exit(broker.answer(requestId, "outside", { decision: "allow", scope: 7 }))
                    : Effect.map(
                        Effect.exit(broker.answer(requestId, "outside", InteractionSample.samples[kind].encoded)),
                        (exit) => {
                          if (Exit.isSuccess(exit)) give(requestId, "outside", InteractionSample.samples[kind].answer)
                        }
                      )
              yield* Effect.fork(Effect.delay(deed, at))
            }
            const fiber = yield* Effect.fork(
              Effect.onExit(
                Effect.suspend(() => {
                  arrived.push(requestId)
                  return InteractorCall.ask(broker.interactor, request, { recheck })
                }),
                (exit) => Effect.sync(() => outcomes.set(requestId, [...(outcomes.get(requestId) ?? []), exit]))
              )
            )
            if (interruptAt !== undefined) yield* Effect.fork(Effect.delay(Fiber.interrupt(fiber), interruptAt))
            yield* Fiber.await(fiber)
          })

        const living = yield* Effect.withClock(
          Effect.forEach(persons, (each, index) => Effect.fork(life(each, index))),
          time.clock
        )
        const started = yield* Effect.withClock(
          Effect.forEach(askings, (each) => Effect.fork(begin(each))),
          time.clock
        )
        yield* time.advance(2_000)
        yield* Scope.close(scope, Exit.void)
        for (const fiber of started) yield* Fiber.await(fiber)
        yield* Recorder.settle

        // Nothing is left.
        assert.deepStrictEqual(yield* broker.open, [])
        for (const someone of sitting) assert.deepStrictEqual(yield* someone.open, [])
        yield* Fiber.interruptAll(living)

        // Every raised request has one settling event after it was raised, and one outcome, and they say the same.
        const raised = new Set(
          recorder.events.flatMap((event) => (event._tag === "InteractionRequested" ? [event.requestId as string] : []))
        )
        assert.strictEqual(outcomes.size, askings.length)
        for (const [requestId, all] of outcomes) {
          assert.strictEqual(all.length, 1)
          const outcome = all[0]!
          const about = recorder.about(requestId).filter((tag) => tag !== "LateAnswer" && tag !== "InteractorFailed")
          if (Exit.isSuccess(outcome)) {
            const { answer, by, how } = outcome.value
            assert.isTrue(
              (given.get(requestId) ?? []).some(
                (each) => each.by === by && Equal.equals(show(each.answer), show(answer))
              ),
              `nobody answered ${show(answer)} as ${by}`
            )
            if (how === "recheck" && !raised.has(requestId)) assert.deepStrictEqual(about, [])
            else assert.deepStrictEqual(about, ["InteractionRequested", "InteractionAnswered"])
          } else if (!raised.has(requestId)) assert.deepStrictEqual(about, [])
          else {
            assert.strictEqual(about.length, 2, about.join(", "))
            assert.strictEqual(about[0], "InteractionRequested")
            const error = Option.getOrUndefined(Cause.failureOption(outcome.cause))
            if (error !== undefined) assert.strictEqual(about[1], eventOf[error._tag])
            // An asker that is interrupted in the moment of its answer does not hear it.
            else assert.include(["InteractionCancelled", "InteractionAnswered"], about[1])
          }
        }

        // One at a time holds the slot, in order of arrival.
        let holder: string | undefined
        const held: Array<string> = []
        for (const event of recorder.events) {
          if (
            !("kind" in event) ||
            event.kind === undefined ||
            !Interaction.isKind(event.kind) ||
            !Interaction.takesPromptSlot(event.kind)
          )
            continue
          if (event._tag === "InteractionRequested") {
            assert.isUndefined(holder, "the slot is free when a request is shown")
            holder = event.requestId
            held.push(event.requestId)
          } else if (Recorder.settling.has(event._tag)) holder = undefined
        }
        assert.deepStrictEqual(
          held,
          arrived.filter((requestId) => held.includes(requestId))
        )

        // Nobody is shown a request twice, nor one that is over, nor one that was never raised.
        assert.deepStrictEqual(shownTwice, [])
        assert.deepStrictEqual(shownLate, [])
        for (const someone of sitting) {
          for (const { requestId } of yield* someone.shown) assert.isTrue(raised.has(requestId))
        }

        assert.notInclude(JSON.stringify(recorder.events), InteractionSample.password)
      }),
    { fastCheck: { numRuns: Runs.of(400) } }
  )
})

/** An answer as a text; a password shows only that it is one. */
const show = (answer: unknown): string => JSON.stringify(answer) ?? "undefined"
