/**
 * The contract of a channel as checks, for any test framework:
 *
 * ```ts
 * import { Interaction } from "assent"
 * import { ChannelSuite } from "assent/testing"
 * import * as Effect from "effect/Effect"
 * import { it } from "vitest"
 *
 * // Opens the channel, and has its other end in hand.
 * declare const fresh: ChannelSuite.Options["fresh"]
 *
 * for (const { check, name } of ChannelSuite.make({ fresh, claims: ["Approve", "Confirm"] }))
 *   it(name, () => Effect.runPromise(check), 30_000)
 * ```
 *
 * `fresh` yields the channel's interactor, and how its outside sees and answers what it shows. A channel that breaks the
 * contract fails with a sentence that says what is wrong. Time is real: a channel may look at a directory or a server.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Digest from "../core/Digest.js"
import type { RequestId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as Interactor from "../interaction/Interactor.js"
import { samples, type Sample } from "./ChannelSample.js"

export type { Sample } from "./ChannelSample.js"

/**
 * The other end of the channel: whoever sees its dialogs and answers them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outside {
  /** Waits for the next dialog and names the request it shows. */
  readonly shown: Effect.Effect<RequestId>
  /** Gives the sample's answer to the dialog of this request, in the form this channel takes. */
  readonly answer: (request: InteractionRequest.InteractionRequest, sample: Sample) => Effect.Effect<void>
  /** Sends something that is no answer. May wait until the channel has refused it. */
  readonly nonsense: (request: InteractionRequest.InteractionRequest) => Effect.Effect<void>
  /** Withdraws the dialog, where the outside can. */
  readonly cancel?: ((request: InteractionRequest.InteractionRequest) => Effect.Effect<void>) | undefined
  /** The requests whose dialogs are visible now, as far as the transport shows them. */
  readonly visible: Effect.Effect<ReadonlyArray<string>>
}

/**
 * The channel that is checked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Subject {
  readonly interactor: Interactor.Service
  /** Absent for a channel that answers by itself. */
  readonly outside?: Outside | undefined
}

/**
 * What the channel says of itself.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** A channel, each time another. */
  readonly fresh: Effect.Effect<Subject, unknown, Scope.Scope>
  /** The kinds that it answers. It turns the others away, so that another channel is asked. */
  readonly claims: ReadonlyArray<Interaction.Kind>
  /** Kinds that it neither answers nor turns away. Default: none. */
  readonly special?: ReadonlyArray<Interaction.Kind> | undefined
  /** How many dialogs it shows at a time. Default: one. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** After nonsense the request stays open, or fails. It never becomes an answer. Default: open. */
  readonly afterNonsense?: "open" | "fails" | undefined
  /** How long one check may take. Default: 20 seconds. */
  readonly within?: Duration.DurationInput | undefined
}

/**
 * One part of the contract.
 *
 * @since 0.1.0
 * @category models
 */
export interface Check {
  readonly name: string
  readonly check: Effect.Effect<void, ChannelBroken>
}

/**
 * The channel breaks its contract.
 *
 * @since 0.1.0
 * @category errors
 */
export class ChannelBroken extends Schema.TaggedError<ChannelBroken>("assent/testing/ChannelBroken")("ChannelBroken", {
  /** What is wrong. */
  sentence: Schema.String
}) {
  override get message(): string {
    return this.sentence
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The whole contract. Each check uses a channel of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): ReadonlyArray<Check> => {
  const { claims, fresh, special = [], within = "20 seconds" } = options
  const others = kinds.filter((kind) => !claims.includes(kind) && !special.includes(kind))
  const checked = (name: string, body: Effect.Effect<void, unknown, Scope.Scope>): Check => ({
    name: `a channel ${name}`,
    check: body.pipe(
      Effect.scoped,
      Effect.catchAllCause((cause) => Effect.fail(brokenBy(cause))),
      Effect.timeoutFail({
        duration: within,
        onTimeout: () => new ChannelBroken({ sentence: `It hangs: the check "${name}" did not end in time.` })
      })
    )
  })
  const automatic = [
    ...claims.map((kind) => checked(`answers ${kind}`, answers(options, kind))),
    ...others.map((kind) => checked(`turns ${kind} away`, turnsAway(options, kind)))
  ]
  const attended = (body: (given: Attended) => Effect.Effect<void, unknown, Scope.Scope>) =>
    Effect.flatMap(fresh, ({ interactor, outside }) =>
      outside === undefined ? Effect.void : body({ interactor, outside, options })
    )
  return [
    ...automatic,
    ...claims
      // Any text is an answer to these.
      .filter((kind) => kind !== "Ask" && kind !== "Auth.Password")
      .map((kind) =>
        checked(
          `does not accept nonsense as an answer to ${kind}`,
          attended((given) => nonsense(given, kind))
        )
      ),
    ...Object.entries(contract).map(([name, body]) => checked(name, attended(body))),
    checked("withdraws everything when its scope closes", scopeCloses(options))
  ]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Attended {
  readonly interactor: Interactor.Service
  readonly outside: Outside
  readonly options: Options
}

const kinds: ReadonlyArray<Interaction.Kind> = Object.keys(Interaction.kinds).filter(Interaction.isKind)

const expect = (holds: boolean, sentence: string): Effect.Effect<void, ChannelBroken> =>
  holds ? Effect.void : new ChannelBroken({ sentence })

const brokenBy = (cause: Cause.Cause<unknown>): ChannelBroken => {
  const found = Option.getOrElse(Cause.failureOption(cause), () => Cause.squash(cause))
  if (found instanceof ChannelBroken) return found
  return new ChannelBroken({
    sentence: `It failed where it must not: ${found instanceof Error ? found.message : String(found)}`
  })
}

/** Compared as data, because passwords do not show what they hold. */
const textOf = (interaction: Interaction.Interaction, answer: Interaction.Answer<Interaction.Interaction>): string =>
  Digest.canonicalJson(Interaction.encodeAnswer(interaction, answer))

const expectAnswer = ({ encoded, interaction }: Sample, reply: Interactor.Reply<Interaction.Interaction>) =>
  expect(
    textOf(interaction, reply.answer) === Digest.canonicalJson(encoded),
    `The answer to ${interaction._tag} must be ${Digest.canonicalJson(encoded)}, and here it is ${textOf(interaction, reply.answer)}.`
  )

const expectVisible = ({ visible }: Outside, expected: ReadonlyArray<string>, when: string) =>
  Effect.flatMap(visible, (found) =>
    expect(
      [...found].sort().join() === [...expected].sort().join(),
      `${when} these dialogs must be visible: ${expected.join(", ") || "none"}; and here: ${found.join(", ") || "none"}.`
    )
  )

/** Asks, and waits until the dialog is there. */
const ask = ({ interactor, outside }: Pick<Attended, "interactor" | "outside">, interaction: Interaction.Interaction) =>
  Effect.gen(function* () {
    const request = yield* InteractionRequest.make(interaction)
    const asking = yield* Effect.fork(interactor.request(request))
    const shown = yield* Effect.raceFirst(
      outside.shown,
      Effect.flatMap(Fiber.await(asking), (exit) => endedEarly(interaction, exit))
    )
    yield* expect(shown === request.requestId, `It shows request ${shown} when it is asked ${request.requestId}.`)
    return { request, asking }
  })

const endedEarly = (interaction: Interaction.Interaction, exit: Exit.Exit<unknown, unknown>) =>
  new ChannelBroken({
    sentence: `It ended ${interaction._tag} before anybody outside did anything: ${
      Exit.isSuccess(exit) ? "it yielded an answer" : "it failed"
    }.`
  })

const claimed = ({ options: { claims } }: Attended, preferred: Interaction.Kind): Sample =>
  samples[claims.includes(preferred) ? preferred : (claims[0] ?? preferred)]

const answers = ({ fresh }: Options, kind: Interaction.Kind) =>
  Effect.gen(function* () {
    const { interactor, outside } = yield* fresh
    const sample: Sample = samples[kind]
    if (outside === undefined) {
      const { answer } = yield* interactor.request(yield* InteractionRequest.make(sample.interaction))
      const encoded = Interaction.encodeAnswer(sample.interaction, answer)
      const fits = Either.isRight(Interaction.decodeAnswer(sample.interaction, encoded))
      return yield* expect(fits, `The answer to ${kind} does not fit: ${Digest.canonicalJson(encoded)}.`)
    }
    const { asking, request } = yield* ask({ interactor, outside }, sample.interaction)
    yield* outside.answer(request, sample)
    yield* expectAnswer(sample, yield* Fiber.join(asking))
    yield* expectVisible(outside, [], `After the answer to ${kind}`)
  })

/** A part of the time that a check has, so that it can say what it waited for. */
const aWhile = ({ within = "20 seconds" }: Options) => Duration.times(within, 0.25)

const turnsAway = (options: Options, kind: Interaction.Kind) =>
  Effect.gen(function* () {
    const { interactor } = yield* options.fresh
    const request = yield* InteractionRequest.make<Interaction.Interaction>(samples[kind].interaction)
    const away = `${kind} is not among its claims, and it must fail with InteractorUnavailable, so that others are asked`
    const outcome = yield* Effect.timeoutFail(Effect.either(interactor.request(request)), {
      duration: aWhile(options),
      onTimeout: () => new ChannelBroken({ sentence: `${away}: it asks all the same.` })
    })
    const what = Either.isRight(outcome) ? "it answered" : `it failed with ${outcome.left._tag}`
    yield* expect(Either.isLeft(outcome) && outcome.left._tag === "InteractorUnavailable", `${away}: ${what}.`)
  })

const nonsense = ({ interactor, options, outside }: Attended, kind: Interaction.Kind) =>
  Effect.gen(function* () {
    const sample: Sample = samples[kind]
    const { asking, request } = yield* ask({ interactor, outside }, sample.interaction)
    yield* outside.nonsense(request)
    if (options.afterNonsense === "fails") {
      return yield* expect(
        Exit.isFailure(yield* Fiber.await(asking)),
        `Nonsense became an answer to ${kind}: the request must fail.`
      )
    }
    yield* settle
    const early = yield* Fiber.poll(asking)
    yield* expect(Option.isNone(early), `Nonsense ended ${kind}: the request must stay open until there is an answer.`)
    yield* expectVisible(outside, [request.requestId], "After nonsense")
    yield* outside.answer(request, sample)
    yield* expectAnswer(sample, yield* Fiber.join(asking))
  })

/** Lets every fiber that can run come to rest. */
const settle = Effect.repeatN(Effect.yieldNow(), 20)

const contract: { readonly [name: string]: (given: Attended) => Effect.Effect<void, unknown, Scope.Scope> } = {
  "closes the dialog and leaves nothing behind when the asker is interrupted": (given) =>
    Effect.gen(function* () {
      const { outside } = given
      const sample = claimed(given, "Confirm")
      const first = yield* ask(given, sample.interaction)
      yield* Fiber.interrupt(first.asking)
      yield* expectVisible(outside, [], "After the asker was interrupted")
      const second = yield* ask(given, sample.interaction)
      yield* outside.answer(second.request, sample)
      yield* expectAnswer(sample, yield* Fiber.join(second.asking))
    }),
  "gives each of two requests its own answer": (given) =>
    Effect.gen(function* () {
      const { interactor, options, outside } = given
      const [one, two] = [claimed(given, "Select"), claimed(given, "Ask")]
      const first = yield* ask(given, one.interaction)
      if (options.dialogs === "unbounded") {
        const second = yield* ask(given, two.interaction)
        yield* expectVisible(outside, [first.request.requestId, second.request.requestId], "While two are asked")
        yield* outside.answer(second.request, two)
        yield* expectAnswer(two, yield* Fiber.join(second.asking))
        yield* outside.answer(first.request, one)
        return yield* expectAnswer(one, yield* Fiber.join(first.asking))
      }
      const request = yield* InteractionRequest.make(two.interaction)
      const waiting = yield* Effect.fork(interactor.request(request))
      yield* settle
      yield* expectVisible(outside, [first.request.requestId], "While one is open and another waits for it")
      yield* outside.answer(first.request, one)
      yield* expectAnswer(one, yield* Fiber.join(first.asking))
      const shown = yield* outside.shown
      yield* expect(shown === request.requestId, `It shows request ${shown} when ${request.requestId} is next.`)
      yield* outside.answer(request, two)
      yield* expectAnswer(two, yield* Fiber.join(waiting))
    }),
  "fails as cancelled when the dialog is withdrawn": (given) =>
    Effect.gen(function* () {
      const { cancel } = given.outside
      if (cancel === undefined) return
      const { asking, request } = yield* ask(given, claimed(given, "Confirm").interaction)
      yield* cancel(request)
      const outcome = yield* Effect.either(Fiber.join(asking))
      const what = Either.isRight(outcome) ? "it yielded an answer" : `it failed with ${outcome.left._tag}`
      yield* expect(
        Either.isLeft(outcome) && outcome.left._tag === "InteractionCancelled",
        `A dialog that is withdrawn outside must fail with InteractionCancelled, and ${what}.`
      )
    })
}

const scopeCloses = (options: Options) =>
  Effect.gen(function* () {
    const { claims, fresh } = options
    const scope = yield* Scope.make()
    const { interactor, outside } = yield* Scope.extend(fresh, scope)
    if (outside === undefined) return
    const { interaction }: Sample = samples[claims.includes("Confirm") ? "Confirm" : (claims[0] ?? "Confirm")]
    const first = yield* ask({ interactor, outside }, interaction)
    const second = yield* Effect.fork(interactor.request(yield* InteractionRequest.make(interaction)))
    yield* settle
    yield* Scope.close(scope, Exit.void)
    for (const asker of [first.asking, second]) {
      const exit = yield* Effect.timeoutFail(Fiber.await(asker), {
        duration: aWhile(options),
        onTimeout: () => new ChannelBroken({ sentence: "Its scope was closed, and the asker waits for ever." })
      })
      yield* expect(Exit.isFailure(exit), "Its scope was closed, and a request that nobody answered has an answer.")
    }
    yield* expectVisible(outside, [], "After its scope was closed")
  })
