/**
 * The contract of every channel, run over one channel after the other.
 *
 * The suite knows nothing of transports: a {@link Subject} says how the outside world sees and answers the channel's
 * dialogs. Channels that answer by themselves leave `outside` away and are only asked and listened to.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Asking from "../../src/interaction/Asking.js"
import * as Digest from "../../src/core/Digest.js"
import type { RequestId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"

/** The other end of the channel. */
export interface Outside {
  /** Waits for the next dialog and names the request it shows. */
  readonly shown: Effect.Effect<RequestId>
  /** Gives the sample's answer to the dialog of this request, in the form this channel takes. */
  readonly answer: (request: InteractionRequest, sample: InteractionSample.Sample) => Effect.Effect<void>
  /** Sends something that is not an answer. May wait until the channel has refused it. */
  readonly nonsense: (request: InteractionRequest) => Effect.Effect<void>
  /** Sends this JSON as the answer, if the channel takes JSON; the suite ignores a rejection. */
  readonly send?: ((request: InteractionRequest, json: string) => Effect.Effect<void>) | undefined
  /** Withdraws the dialog, where the outside can. */
  readonly cancel?: ((request: InteractionRequest) => Effect.Effect<void>) | undefined
  /** The requests whose dialogs are visible now, as far as the transport shows them. */
  readonly visible: Effect.Effect<ReadonlyArray<string>>
}

export interface Subject {
  readonly interactor: Interactor.Service
  readonly outside?: Outside | undefined
  /** Everything the channel has printed, sent or written so far. */
  readonly output?: Effect.Effect<string> | undefined
}

export interface Options {
  /** Kinds that the channel answers; it must refuse the others as unavailable. */
  readonly claims: ReadonlyArray<Interaction.Kind>
  readonly make: Effect.Effect<Subject, unknown, Scope.Scope>
  /** Default: one. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** What nonsense does: the request stays open, or the request fails. It never becomes an answer. Default: open. */
  readonly afterNonsense?: "open" | "fails" | undefined
  /** The channel answers by itself; nobody is outside. */
  readonly automatic?: boolean | undefined
  /** Kinds the channel neither answers nor turns away. */
  readonly special?: ReadonlyArray<Interaction.Kind> | undefined
}

export const interactorSuite = (name: string, options: Options): void => {
  const declined = InteractionSample.kinds.filter(
    (kind) => !options.claims.includes(kind) && !(options.special ?? []).includes(kind)
  )
  const withOutside = Effect.flatMap(options.make, (subject) =>
    subject.outside === undefined
      ? Effect.die(`${name} has no outside`)
      : Effect.succeed({ ...subject, outside: subject.outside })
  )

  describe(`${name} as an interactor`, () => {
    it.scopedLive.each([...options.claims])("answers %s", (kind) =>
      Effect.gen(function* () {
        const subject = yield* options.make
        const sample = InteractionSample.samples[kind]
        const request = yield* InteractionSample.request(sample.interaction)
        const asking = yield* Effect.fork(Asking.ask(subject.interactor, request))
        if (subject.outside !== undefined) {
          assert.strictEqual(yield* subject.outside.shown, request.requestId)
          yield* subject.outside.answer(request, sample)
        }
        const answered = yield* Fiber.join(asking)
        assert.strictEqual(answered.by, subject.interactor.id)
        if (subject.outside !== undefined) {
          assert.strictEqual(answered.how, "answered")
          assert.isTrue(same(sample, answered.answer))
          assert.deepStrictEqual(yield* subject.outside.visible, [])
        } else assert.isFalse(answered.how === "answered", "nobody answered this")
        const decoded = Interaction.decodeAnswer(
          sample.interaction,
          Interaction.encodeAnswer(sample.interaction, answered.answer)
        )
        assert.isTrue(Either.isRight(decoded), "the answer fits its request")
      })
    )

    for (const kind of declined) {
      it.scopedLive(`turns ${kind} away`, () =>
        Effect.gen(function* () {
          const subject = yield* options.make
          const request = yield* InteractionSample.request(InteractionSample.samples[kind].interaction)
          const failed = yield* Effect.flip(subject.interactor.request(request))
          assert.strictEqual(failed._tag, "InteractorUnavailable")
          assert.strictEqual(failed.requestId, request.requestId)
        })
      )
    }

    it.scopedLive("keeps secrets out of what it shows", () =>
      Effect.gen(function* () {
        const subject = yield* options.make
        if (subject.output === undefined) return
        for (const kind of options.claims) {
          const sample = InteractionSample.samples[kind]
          const request = yield* InteractionSample.request(sample.interaction)
          const asking = yield* Effect.fork(subject.interactor.request(request))
          if (subject.outside !== undefined) {
            yield* subject.outside.shown
            yield* subject.outside.answer(request, sample)
          }
          yield* Fiber.join(asking)
        }
        const output = yield* subject.output
        for (const secret of InteractionSample.secrets) assert.notInclude(output, secret)
      })
    )

    if (options.automatic === true) return
    describe("with somebody outside", () => {
      const claimed = (preferred: Interaction.Kind) =>
        InteractionSample.samples[options.claims.includes(preferred) ? preferred : (options.claims[0] ?? "Confirm")]

      it.scopedLive("closes the dialog and leaves nothing behind when the asker is interrupted", () =>
        Effect.gen(function* () {
          const { interactor, outside } = yield* withOutside
          const sample = claimed("Confirm")
          const first = yield* InteractionSample.request(sample.interaction)
          const asking = yield* Effect.fork(interactor.request(first))
          assert.strictEqual(yield* outside.shown, first.requestId)
          yield* Fiber.interrupt(asking)
          assert.deepStrictEqual(yield* outside.visible, [])
          // The channel is as good as new.
          const second = yield* InteractionSample.request(sample.interaction)
          const again = yield* Effect.fork(interactor.request(second))
          assert.strictEqual(yield* outside.shown, second.requestId)
          yield* outside.answer(second, sample)
          assert.isTrue(same(sample, (yield* Fiber.join(again)).answer))
        })
      )

      it.scopedLive("gives each of two requests its own answer", () =>
        Effect.gen(function* () {
          const { interactor, outside } = yield* withOutside
          const [one, two] = [claimed("Select"), claimed("Ask")]
          const first = yield* InteractionSample.request(one.interaction)
          const second = yield* InteractionSample.request(two.interaction)
          const asking = yield* Effect.fork(interactor.request(first))
          assert.strictEqual(yield* outside.shown, first.requestId)
          const waiting = yield* Effect.fork(interactor.request(second))
          if (options.dialogs === "unbounded") {
            assert.strictEqual(yield* outside.shown, second.requestId)
            assert.sameMembers([...(yield* outside.visible)], [first.requestId, second.requestId])
            yield* outside.answer(second, two)
            assert.isTrue(same(two, (yield* Fiber.join(waiting)).answer))
            yield* outside.answer(first, one)
          } else {
            yield* settleDown
            assert.deepStrictEqual(yield* outside.visible, [first.requestId], "the second waits for the first")
            yield* outside.answer(first, one)
            assert.strictEqual(yield* outside.shown, second.requestId)
            yield* outside.answer(second, two)
            assert.isTrue(same(two, (yield* Fiber.join(waiting)).answer))
          }
          assert.isTrue(same(one, (yield* Fiber.join(asking)).answer))
        })
      )

      it.scopedLive.each(options.claims.filter((kind) => !["Ask", "Auth.Password"].includes(kind)))(
        "takes nonsense for no answer to %s",
        (kind) =>
          Effect.gen(function* () {
            const { interactor, outside } = yield* withOutside
            const sample = InteractionSample.samples[kind]
            const request = yield* InteractionSample.request(sample.interaction)
            const asking = yield* Effect.fork(interactor.request(request))
            yield* outside.shown
            yield* outside.nonsense(request)
            if (options.afterNonsense === "fails") {
              const exit = yield* Fiber.await(asking)
              assert.isTrue(Exit.isFailure(exit), "it failed")
              return
            }
            assert.deepStrictEqual(yield* outside.visible, [request.requestId], "it is still open")
            yield* outside.answer(request, sample)
            assert.isTrue(same(sample, (yield* Fiber.join(asking)).answer))
          })
      )

      it.scopedLive.each(hostile)("survives an answer of %s", ([, json]) =>
        Effect.gen(function* () {
          const { interactor, outside } = yield* withOutside
          if (outside.send === undefined || !options.claims.includes("Approve")) return
          const sample = InteractionSample.samples.Approve
          const request = yield* InteractionSample.request(sample.interaction)
          const asking = yield* Effect.fork(interactor.request(request))
          yield* outside.shown
          yield* outside.send(request, json)
          if (options.afterNonsense === "fails") {
            const failed = yield* Effect.flip(Fiber.join(asking))
            assert.strictEqual(failed._tag, "InteractorUnavailable")
            assert.isBelow(failed.message.length, 400, "what it says of it is short")
            return
          }
          assert.deepStrictEqual(yield* outside.visible, [request.requestId], "it is still open")
          yield* outside.answer(request, sample)
          assert.isTrue(same(sample, (yield* Fiber.join(asking)).answer))
        })
      )

      it.scopedLive("fails as cancelled when the dialog is withdrawn", () =>
        Effect.gen(function* () {
          const { interactor, outside } = yield* withOutside
          if (outside.cancel === undefined) return
          const request = yield* InteractionSample.request(claimed("Confirm").interaction)
          const asking = yield* Effect.fork(interactor.request(request))
          yield* outside.shown
          yield* outside.cancel(request)
          const failed = yield* Effect.flip(Fiber.join(asking))
          assert.strictEqual(failed._tag, "InteractionCancelled")
          assert.strictEqual(failed.requestId, request.requestId)
        })
      )

      it.scopedLive("withdraws everything when its scope closes", () =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const { interactor, outside } = yield* Scope.extend(withOutside, scope)
          const sample = claimed("Confirm")
          const first = yield* InteractionSample.request(sample.interaction)
          const second = yield* InteractionSample.request(sample.interaction)
          const askers = [yield* Effect.fork(interactor.request(first))]
          yield* outside.shown
          askers.push(yield* Effect.fork(interactor.request(second)))
          yield* settleDown
          yield* Scope.close(scope, Exit.void)
          for (const asker of askers) {
            const exit = yield* Fiber.await(asker)
            assert.isTrue(Exit.isFailure(exit), "nobody is left waiting")
            if (Exit.isFailure(exit)) assert.isFalse(Cause.isDie(exit.cause))
          }
          assert.deepStrictEqual(yield* outside.visible, [])
        })
      )
    })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`

const edit = (json: string) => `{"decision":"edit","editedArguments":{"command":${json}}}`

/** What no decoder, printer or writer is to be given. */
const hostile: ReadonlyArray<readonly [name: string, json: string]> = [
  ["100,000 levels", nested(100_000)],
  ["an edit of 100,000 levels", edit(nested(100_000))],
  ["an edit of 65 levels", edit(nested(65))],
  ["objects in objects", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`],
  ["a text of 2,000,000 characters", `"${"y".repeat(2_000_000)}"`],
  ["an edit of 2,000,000 characters", edit(`"${"y".repeat(2_000_000)}"`)],
  ["200,000 values", `[${"1,".repeat(200_000)}1]`],
  ["a prototype", '{"__proto__":{"decision":"allow","scope":"all"}}'],
  ["nothing", "null"]
]

/** Lets every fiber that can run come to rest. */
const settleDown = Effect.repeatN(Effect.yieldNow(), 20)

/** Compared as data, because passwords do not show what they hold. */
const same = (sample: InteractionSample.Sample, answer: Interaction.Answer<Interaction.Interaction>): boolean =>
  Digest.canonicalJson(Interaction.encodeAnswer(sample.interaction, answer)) === Digest.canonicalJson(sample.encoded)
