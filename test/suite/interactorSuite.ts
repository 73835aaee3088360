/**
 * The contract of every channel, run over one channel after the other.
 *
 * The suite knows nothing of transports: a {@link Subject} says how the outside world sees and answers the channel's
 * dialogs. Channels that answer by themselves leave `outside` away and are only asked and listened to.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Digest from "../../src/core/Digest.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
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
        const asking = yield* Effect.fork(InteractorCall.ask(subject.interactor, request))
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

      if (options.claims.includes("Elicit")) forms(withOutside, options)
    })
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A form with a range, a default and a choice; what has no default is required. */
const server: InteractionSample.Sample<"Elicit"> = {
  interaction: new Interaction.Elicit({
    title: "Server",
    fields: [
      { name: "port", type: "integer", required: true, minimum: 1, maximum: 65_535 },
      { name: "name", type: "string", required: true, minLength: 2, default: "api" },
      { name: "zone", type: "choice", required: true, choices: ["eu", "us"] }
    ]
  }),
  answer: { port: 443, name: "api", zone: "eu" },
  encoded: { port: 443, name: "api", zone: "eu" },
  line: "443\n\neu"
}

const unfit: ReadonlyArray<readonly [name: string, json: string]> = [
  ["out of range", '{"port":0,"name":"web","zone":"eu"}'],
  ["too short", '{"port":443,"name":"w","zone":"eu"}'],
  ["of another type", '{"port":"many","name":"web","zone":"eu"}'],
  ["none of the choices", '{"port":443,"name":"web","zone":"mars"}'],
  ["a fraction", '{"port":4.5,"name":"web","zone":"eu"}'],
  ["half filled", '{"port":443}'],
  ["empty", "{}"]
]

const Server = Schema.Struct({
  name: Schema.String.pipe(Schema.filter((name) => name !== "root" || "root is not allowed")),
  zone: Schema.Literal("eu", "us")
})

/** What holds of a form over every channel that has somebody outside. */
const forms = (
  withOutside: Effect.Effect<Subject & { readonly outside: Outside }, unknown, Scope.Scope>,
  { afterNonsense }: Options
): void => {
  it.scopedLive.each(unfit)(
    "takes no form that is %s, and takes it when it fits, with what was left at its default",
    ([, json]) =>
      Effect.gen(function* () {
        const { interactor, outside } = yield* withOutside
        const asked = Effect.gen(function* () {
          const request = yield* InteractionSample.request(server.interaction)
          const asking = yield* Effect.fork(interactor.request(request))
          yield* outside.shown
          return { request, asking }
        })
        let { asking, request } = yield* asked
        if (outside.send !== undefined) {
          yield* outside.send(request, json)
          if (afterNonsense === "fails") {
            assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractorUnavailable")
            const again = yield* asked
            asking = again.asking
            request = again.request
          }
        }
        assert.deepStrictEqual(yield* outside.visible, [request.requestId], "it is open")
        yield* outside.answer(request, server)
        assert.deepStrictEqual((yield* Fiber.join(asking)).answer, server.answer)
      })
  )

  it.scopedLive("asks again what a refinement of the program refuses, with why and what was filled in", () =>
    Effect.gen(function* () {
      const { interactor, outside } = yield* withOutside
      const seen: Array<InteractionRequest> = []
      const watched: Interactor.Service = {
        ...interactor,
        request: (request, options) => {
          seen.push(request)
          return interactor.request(request, options)
        }
      }
      const asking = yield* Effect.fork(Interactor.withInteractor(watched)(Interactor.elicit(Server)))
      for (const name of ["root", "web"]) {
        yield* outside.shown
        const request = seen.at(-1)
        assert(request?.interaction._tag === "Elicit")
        const { fields, problems } = request.interaction
        if (name === "web") {
          assert.deepStrictEqual(problems, [{ field: "name", message: "root is not allowed." }])
          assert.strictEqual(fields[0].default, "root")
        }
        const { interaction } = request
        yield* outside.answer(request, {
          interaction,
          answer: { name, zone: "eu" },
          encoded: { name, zone: "eu" },
          line: `${name}\neu`
        })
      }
      assert.deepStrictEqual(yield* Fiber.join(asking), { name: "web", zone: "eu" })
    })
  )

  it.scopedLive("is cancelled, or withdrawn half filled, and leaves nothing of it to the next", () =>
    Effect.gen(function* () {
      const { interactor, outside } = yield* withOutside
      const ask = Effect.gen(function* () {
        const request = yield* InteractionSample.request(server.interaction)
        return { request, asking: yield* Effect.fork(interactor.request(request)), shown: yield* outside.shown }
      })
      if (outside.cancel !== undefined) {
        const { asking, request } = yield* ask
        yield* outside.cancel(request)
        assert.strictEqual((yield* Effect.flip(Fiber.join(asking)))._tag, "InteractionCancelled")
      }
      const { asking, request } = yield* ask
      if (outside.send !== undefined && afterNonsense !== "fails") yield* outside.send(request, "443")
      yield* Fiber.interrupt(asking)
      assert.deepStrictEqual(yield* outside.visible, [])
      const next = yield* ask
      yield* outside.answer(next.request, server)
      assert.deepStrictEqual((yield* Fiber.join(next.asking)).answer, server.answer)
    })
  )
}

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
