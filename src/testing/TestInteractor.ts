/**
 * A scripted person: it answers by a script, and records what it was shown. It reads no real clock, so it works under
 * `TestClock`.
 *
 * Each request takes the next step of the script when its dialog opens; a string is a typed line. A request beyond the
 * script fails as unavailable and says so.
 *
 * @example
 * ```ts
 * import { Interaction, Interactor } from "assent"
 * import { TestInteractor } from "assent/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const person = yield* TestInteractor.make({ script: ["y", TestInteractor.silent] })
 *   const ask = Interactor.ask(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
 *   const answer = yield* ask.pipe(Interactor.withInteractor(person.interactor))
 *   const shown = yield* person.shown
 *   return { answer, asked: shown.map(({ interaction }) => interaction._tag) }
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type { RequestId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as TypedAnswer from "../interaction/TypedAnswer.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * One open dialog of the person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Dialog {
  readonly request: InteractionRequest
  /** Id of the person. */
  readonly by: string
  /** Waits for as long as the dialog is open; fails when the person is disconnected. */
  readonly stay: Effect.Effect<never, InteractionError>
  /** Records that the dialog was closed, for an uninterruptible reaction. */
  readonly dismiss: Effect.Effect<void>
}

/**
 * The person's reaction to one dialog.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reaction {
  readonly react: (dialog: Dialog) => Effect.Effect<AnyAnswer, InteractionError>
}

/**
 * A reaction, or a typed line: see `TypedAnswer`. `cancel` withdraws where it can mean nothing else.
 *
 * @since 0.1.0
 * @category models
 */
export type Step = Reaction | string

/**
 * The steps in order, one for each request; or a function of the request and its 0-based number.
 *
 * @since 0.1.0
 * @category models
 */
export type Script = ReadonlyArray<Step> | ((request: InteractionRequest, index: number) => Step)

/**
 * The name and the behaviour of the person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Default: `person`. */
  readonly id?: string | undefined
  /** The person's roles, for rules that name roles. */
  readonly roles?: ReadonlyArray<string> | undefined
  /** Default: never answers. */
  readonly script?: Script | undefined
  /** Default: one dialog at a time. */
  readonly dialogs?: "one" | "unbounded" | undefined
  /** How long a dialog stays open. Default: for ever. */
  readonly timeouts?: Interactor.Timeouts | undefined
}

/**
 * The interactor, and the requests that it received.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Asks the person. */
  readonly interactor: Interactor.Service
  /** Everything the person was shown, in order. */
  readonly shown: Effect.Effect<ReadonlyArray<InteractionRequest>>
  /** Waits for the next dialog that opens and was not taken from here before. */
  readonly next: Effect.Effect<InteractionRequest>
  /** The dialogs that are open now, in the order in which they opened. */
  readonly open: Effect.Effect<ReadonlyArray<InteractionRequest>>
  /** Dialogs that were closed before the person had answered: withdrawn, answered elsewhere or timed out. */
  readonly dismissed: Effect.Effect<ReadonlyArray<RequestId>>
  /** Disconnects the person for good: open and later requests fail as unavailable. */
  readonly disconnect: Effect.Effect<void>
}

/**
 * The scripted person of a test.
 *
 * @since 0.1.0
 * @category services
 */
export class TestInteractor extends Context.Tag("assent/testing/TestInteractor")<TestInteractor, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Types a line. A line without meaning makes the person unavailable, with the reason.
 *
 * @since 0.1.0
 * @category constructors
 */
export const type = (line: string): Reaction => ({
  react: ({ by, request }) =>
    TypedAnswer.isCancel(request.interaction, line)
      ? Effect.fail(new InteractionCancelled({ requestId: request.requestId, by }))
      : Either.match(TypedAnswer.parse(request.interaction, line), {
          onLeft: (reason) => unavailable({ by, request }, `the script types a line that is not an answer: ${reason}`),
          onRight: Effect.succeed
        })
})

/**
 * Returns an answer. An answer that does not fit the request makes the person unavailable, with the reason.
 *
 * @since 0.1.0
 * @category constructors
 */
export const answer = (value: AnyAnswer): Reaction => ({
  react: (dialog) => {
    const misfit = Interaction.misfit(dialog.request.interaction, value)
    return misfit === undefined
      ? Effect.succeed(value)
      : unavailable(dialog, `the script's answer does not fit: ${misfit}`)
  }
})

/**
 * Returns a value that is not an answer, as an untyped interactor might.
 *
 * @since 0.1.0
 * @category constructors
 */
export const nonsense = (value: unknown): Reaction => ({
  // The cast is deliberate: this value must be refused.
  react: () => Effect.succeed(value as AnyAnswer)
})

/**
 * Says nothing until the dialog is closed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const silent: Reaction = { react: (dialog) => dialog.stay }

/**
 * Waits, with the dialog open, for an effect that yields the step: such as a `Deferred` that the test completes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const wait = (step: Effect.Effect<Step>): Reaction => ({
  react: (dialog) => Effect.flatMap(Effect.raceFirst(step, dialog.stay), (next) => reactTo(next, dialog))
})

/**
 * Waits before the step.
 *
 * @since 0.1.0
 * @category constructors
 */
export const delay = (duration: Duration.DurationInput, then: Step): Reaction =>
  wait(Effect.delay(Effect.succeed(then), duration))

/**
 * Fails as unavailable.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fail = (reason: string): Reaction => ({ react: (dialog) => unavailable(dialog, reason) })

/**
 * Passes the question on to somebody else: fails as unavailable, and says so.
 *
 * @since 0.1.0
 * @category constructors
 */
export const pass: Reaction = fail("it passes the question on")

/**
 * Dies with a defect, as a broken interactor would.
 *
 * @since 0.1.0
 * @category constructors
 */
export const crash: Reaction = { react: ({ by }) => Effect.dieMessage(`${by} crashed, as its script says`) }

/**
 * Withdraws the request at all interactors.
 *
 * @since 0.1.0
 * @category constructors
 */
export const cancel: Reaction = {
  react: ({ by, request }) => Effect.fail(new InteractionCancelled({ requestId: request.requestId, by }))
}

/**
 * Answers too late: it waits until the dialog is closed because another interactor settled the request, and then
 * answers. Give it a step that answers at once. The answer must never count.
 *
 * @since 0.1.0
 * @category constructors
 */
export const contradict = (then: Step): Reaction => ({
  react: (dialog) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.exit(restore(Effect.onInterrupt(dialog.stay, () => dialog.dismiss))), (exit) =>
        Exit.isInterrupted(exit) ? reactTo(then, dialog) : exit
      )
    )
})

/**
 * A person who follows the script.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Service> =>
  Effect.zipWith(
    Deferred.make<void>(),
    // Written when a dialog opens, read by `next`; unbounded, because a test asks a bounded number of times.
    Queue.unbounded<InteractionRequest>(),
    (disconnected, opened): Service => {
      const { id = "person", roles } = options
      const script = toFunction(options.script)
      const shown: Array<InteractionRequest> = []
      const open = new Set<InteractionRequest>()
      const dismissed = new Set<RequestId>()
      let connected = true

      const person: Interactor.Service = {
        id,
        relay: false,
        principal: id,
        roles,
        request: <I extends Interaction.Interaction>(request: InteractionRequest<I>) =>
          // An opened dialog is always closed, wherever the asker is interrupted.
          Effect.uninterruptibleMask((restore): Effect.Effect<Interactor.Reply<I>, InteractionError> => {
            const gone = unavailable({ by: id, request }, "it was disconnected")
            if (!connected) return gone
            const step = script(request, shown.length)
            shown.push(request)
            open.add(request)
            Queue.unsafeOffer(opened, request)
            const dismiss = Effect.sync(() => dismissed.add(request.requestId))
            // The reaction answers the request of its own dialog, or is deliberately wrong.
            const reaction = reactTo(step, {
              request,
              by: id,
              stay: Effect.zipRight(Deferred.await(disconnected), gone),
              dismiss
            }) as Effect.Effect<Interaction.Answer<I>, InteractionError>
            return restore(reaction).pipe(
              Effect.onExit((exit) => {
                open.delete(request)
                return Exit.isInterrupted(exit) ? dismiss : Effect.void
              }),
              Effect.map((value): Interactor.Reply<I> => ({ answer: value, by: id, ...(roles && { roles }) }))
            )
          })
      }
      const timed = options.timeouts === undefined ? person : Interactor.timed(person, options.timeouts)

      return {
        interactor: options.dialogs === "unbounded" ? timed : Interactor.serialized(timed),
        shown: Effect.sync(() => [...shown]),
        next: Queue.take(opened),
        open: Effect.sync(() => [...open]),
        dismissed: Effect.sync(() => [...dismissed]),
        disconnect: Effect.suspend(() => {
          connected = false
          return Effect.asVoid(Deferred.succeed(disconnected, undefined))
        })
      }
    }
  )

/**
 * Several people by their names, each with a script or all of their options.
 *
 * @example
 * ```ts
 * import { Interaction, Interactor, Interactors } from "assent"
 * import { TestInteractor } from "assent/testing"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const { ada, grace, linus } = yield* TestInteractor.people({ ada: ["y"], grace: ["y"], linus: [TestInteractor.silent] })
 *   const ask = Interactor.request(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
 *   const all = [ada, grace, linus].map(({ interactor }) => interactor)
 *   const { answer, by } = yield* Interactor.withInteractor(Interactors.quorum({ of: all, need: 2 }))(ask)
 *   return { answer, by }
 * })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const people = <const Names extends string>(all: {
  readonly [Name in Names]: Script | Omit<Options, "id">
}): Effect.Effect<{ readonly [Name in Names]: Service }> =>
  // The record has the keys of `all`, which the type of `Object.entries` has forgotten.
  Effect.map(
    Effect.forEach(Object.entries<Script | Omit<Options, "id">>(all), ([id, given]) =>
      Effect.map(make({ ...(isScript(given) ? { script: given } : given), id }), (person) => [id, person] as const)
    ),
    Object.fromEntries
  ) as Effect.Effect<{ readonly [Name in Names]: Service }>

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The person, also as the current interactor.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: Options): Layer.Layer<TestInteractor | Interactor.Interactor> =>
  Layer.effectContext(
    Effect.map(make(options), (person) =>
      Context.make(TestInteractor, person).pipe(Context.add(Interactor.Interactor, person.interactor))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isScript = (given: Script | Omit<Options, "id">): given is Script =>
  typeof given === "function" || Array.isArray(given)

type AnyAnswer = Interaction.Answer<Interaction.Interaction>

const reactTo = (step: Step, dialog: Dialog): Effect.Effect<AnyAnswer, InteractionError> =>
  (typeof step === "string" ? type(step) : step).react(dialog)

const unavailable = (
  { by, request }: Pick<Dialog, "by" | "request">,
  reason: string
): Effect.Effect<never, InteractorUnavailable> =>
  Effect.fail(new InteractorUnavailable({ requestId: request.requestId, by, reason }))

const toFunction = (script: Script | undefined): ((request: InteractionRequest, index: number) => Step) => {
  if (script === undefined) return () => silent
  if (typeof script === "function") return script
  return ({ interaction }, index) =>
    script[index] ?? fail(`the script has ${script.length} steps and ends before this ${interaction._tag}`)
}
