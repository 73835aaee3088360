/**
 * The contract of every channel, run over one channel after the other.
 *
 * The suite knows nothing of transports: a {@link Subject} says how the outside world sees and answers the channel's
 * dialogs. Channels that answer by themselves leave `outside` away and are only asked and listened to.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Asking from "../../src/interaction/Asking.js"
import * as Digest from "../../src/core/Digest.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as ChannelSuite from "../../src/testing/ChannelSuite.js"
import * as InteractionSample from "../kit/InteractionSample.js"

/** The other end of the channel. */
export interface Outside extends ChannelSuite.Outside {
  /** Sends this JSON as the answer, if the channel takes JSON; the suite ignores a rejection. */
  readonly send?: ((request: InteractionRequest, json: string) => Effect.Effect<void>) | undefined
}

export interface Subject extends ChannelSuite.Subject {
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
  const withOutside = Effect.flatMap(options.make, (subject) =>
    subject.outside === undefined
      ? Effect.die(`${name} has no outside`)
      : Effect.succeed({ ...subject, outside: subject.outside })
  )

  describe(`${name} as an interactor`, () => {
    const kit = ChannelSuite.make({ ...options, fresh: options.make })
    it.each(kit.map(({ check, name }) => [name, check] as const))("%s", (_, check) => Effect.runPromise(check))

    it.scopedLive("says how its answers came about, and from whom", () =>
      Effect.gen(function* () {
        const subject = yield* options.make
        const [kind] = options.claims
        if (kind === undefined) return
        const sample = InteractionSample.samples[kind]
        const request = yield* InteractionSample.request(sample.interaction)
        const asking = yield* Effect.fork(Asking.ask(subject.interactor, request))
        if (subject.outside !== undefined) {
          yield* subject.outside.shown
          yield* subject.outside.answer(request, sample)
        }
        const answered = yield* Fiber.join(asking)
        assert.strictEqual(answered.by, subject.interactor.id)
        assert.strictEqual(answered.how === "answered", subject.outside !== undefined, answered.how)
      })
    )

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

/** Compared as data, because passwords do not show what they hold. */
const same = (sample: InteractionSample.Sample, answer: Interaction.Answer<Interaction.Interaction>): boolean =>
  Digest.canonicalJson(Interaction.encodeAnswer(sample.interaction, answer)) === Digest.canonicalJson(sample.encoded)
