/**
 * An interactor answers interactions: a person at a console, a queue to a UI, a webhook, a parent agent, or several of
 * them behind a broker. All are the same kind of value, so they combine.
 *
 * The current interactor is a fiber-local value that flows down every fork, with the service tag as its default. A
 * program that may ask somebody therefore has `Interactor` among its requirements.
 *
 * @example
 * ```ts
 * import { Interaction, Interactor } from "assent"
 *
 * const program = Interactor.ask(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
 * //    ^? Effect<boolean, InteractionError, Interactor>
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import { globalValue } from "effect/GlobalValue"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { Answer, Interaction, Kind } from "./Interaction.js"
import * as CallerContext from "../core/CallerContext.js"
import { Elicit, isKind, takesPromptSlot } from "./Interaction.js"
import {
  InteractionKindUnknown,
  InteractionTimedOut,
  InteractorUnavailable,
  type InteractionError
} from "./InteractionError.js"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as FairLock from "../internal/FairLock.js"
import * as InteractorCall from "./InteractorCall.js"
import * as Field from "./Field.js"
import * as FlatSchema from "./FlatSchema.js"
import type { Flat, Open, SchemaNotFlat } from "./FlatSchema.js"
import * as InteractionRequest from "./InteractionRequest.js"
import type { Answered, How, Options, Reply, Service } from "./InteractorPort.js"

export { type Flat, type Open, SchemaNotFlat } from "./FlatSchema.js"
export type { Answered, Ended, Filed, How, Next, Options, Reply, Service, Upcoming, Vote } from "./InteractorPort.js"

/**
 * The interactor that is asked where no fiber-local one was set.
 *
 * @since 0.1.0
 * @category services
 */
export class Interactor extends Context.Tag("assent/interaction/Interactor")<Interactor, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// asking
// -----------------------------------------------------------------------------------------------------------------

/**
 * The interactor of the running fiber: the one set by {@link withInteractor}, else the service.
 *
 * @since 0.1.0
 * @category getters
 */
export const current: Effect.Effect<Service, never, Interactor> = Effect.withFiberRuntime((fiber) =>
  Effect.succeed(of(fiber))
)

/**
 * The interactor of a fiber, for callers that hold the fiber; a defect when the fiber has none.
 *
 * @since 0.1.0
 * @category getters
 */
export const of = (fiber: Fiber.RuntimeFiber<unknown, unknown>): Service =>
  fiber.getFiberRef(currentRef) ?? Context.unsafeGet(fiber.currentContext, Interactor)

/**
 * Runs an effect, and everything it forks, with `service` as the current interactor.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withInteractor =
  (service: Service) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Interactor>> =>
    // Both values are set in one step and restored in one step: two nested `locally` are most of what a waiting turn
    // would hold. Only this code knows that the service is provided; the types do not.
    Effect.uninterruptibleMask((restore) =>
      Effect.withFiberRuntime<A, E, R>((fiber) => {
        const context = fiber.getFiberRef(FiberRef.currentContext)
        const local = fiber.getFiberRef(currentRef)
        const back = settle(local, context)
        const inside = Effect.matchCauseEffect(restore(self), {
          onFailure: (cause) => Effect.zipRight(back, Effect.failCause(cause)),
          onSuccess: (value) => Effect.as(back, value)
        })
        return Effect.zipRight(settle(service, Context.add(context, Interactor, service)), inside)
      })
    ) as Effect.Effect<A, E, Exclude<R, Interactor>>

/**
 * Like {@link withInteractor}, for all that a fiber does until its end: one step, and nothing is restored.
 *
 * @since 0.1.0
 * @category combinators
 */
export const inFiber =
  (service: Service) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Interactor>> =>
    // Only this code knows that the service is provided; the types do not.
    Effect.zipRight(
      Effect.updateFiberRefs((id, refs) => {
        const context = Context.add(FiberRefs.getOrDefault(refs, FiberRef.currentContext), Interactor, service)
        return FiberRefs.updateManyAs(refs, { entries: locals(service, context, id) })
      }),
      self
    ) as Effect.Effect<A, E, Exclude<R, Interactor>>

/**
 * What {@link inFiber} sets, as local values of the fiber with this id, to set them together with others. `context` has the
 * interactor in it.
 *
 * @internal
 */
export const locals = (service: Service, context: Context.Context<never>, id: FiberId.Single) =>
  [
    [currentRef, [[id, service]]],
    [FiberRef.currentContext, [[id, context]]]
  ] as const

/**
 * Asks the current interactor, as the running fiber's origin, and returns the answer with its author.
 *
 * @since 0.1.0
 * @category operations
 */
export const request = <I extends Interaction>(
  interaction: I,
  options?: Options<I>
): Effect.Effect<Answered<I>, InteractionError, Interactor> =>
  Effect.withFiberRuntime((fiber) => {
    const request = InteractionRequest.unsafeMake(interaction, fiber)
    const service = of(fiber)
    return isKind(interaction._tag)
      ? InteractorCall.ask(service, request, options)
      : Effect.fail(declined(service.id, request))
  })

/**
 * Asks the current interactor and returns the answer.
 *
 * @since 0.1.0
 * @category operations
 */
export const ask = <I extends Interaction>(interaction: I): Effect.Effect<Answer<I>, InteractionError, Interactor> =>
  Effect.map(request(interaction), (answered) => answered.answer)

/**
 * Asks the current interactor to fill in a form, and returns what the schema decodes of it. If the schema refuses a
 * value, the form is asked again with the filled values and a sentence for each field. After repeated identical invalid
 * answers the request fails as unavailable.
 *
 * A field is a text, a choice of literals or a list of them, a number, or yes or no; titles, descriptions and defaults are
 * the schema's. A schema that is nested or holds a secret does not compile, if types can tell. Else it fails as
 * {@link SchemaNotFlat} before anybody is asked.
 *
 * @example
 * ```ts
 * import { Interactor } from "assent"
 * import { Schema } from "effect"
 *
 * const Server = Schema.Struct({
 *   name: Schema.NonEmptyString.annotations({ title: "Name of the server" }),
 *   region: Schema.Literal("eu", "us"),
 *   port: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 65535)), { default: () => 8080 })
 * })
 *
 * const program = Interactor.elicit(Server, { title: "Where shall it run?" })
 * //    ^? Effect<{ name: string; region: "eu" | "us"; port: number }, InteractionError | SchemaNotFlat, Interactor>
 * ```
 *
 * @since 0.1.0
 * @category operations
 */
export const elicit = <A extends Open<A>, I extends Flat, R>(
  schema: Schema.Schema<A, I, R>,
  options?: {
    /** The text above the fields. Default: the schema's title. */
    readonly title?: string | undefined
  }
): Effect.Effect<A, InteractionError | SchemaNotFlat, Interactor | R> =>
  Effect.flatMap(FlatSchema.fields(schema), (fields) => {
    const decode = Schema.decodeUnknown(schema, { errors: "all" })
    const title = options?.title ?? FlatSchema.titleOf(schema) ?? "Please fill this in."
    const go = (form: Elicit, last: string, times: number): Effect.Effect<A, InteractionError, Interactor | R> =>
      Effect.withFiberRuntime<A, InteractionError, Interactor | R>((fiber) => {
        const request = InteractionRequest.unsafeMake(form, fiber)
        return Effect.flatMap(InteractorCall.ask(of(fiber), request), ({ answer, by, how }) =>
          Effect.catchAll(decode(answer), (error) => {
            const given = canonicalJson(answer)
            const count = given === last ? times + 1 : 1
            const problems = FlatSchema.problems(error, fields)
            if (count < patience && (how === "answered" || how === "model")) {
              const filled = fields.map(({ default: _, ...field }) => {
                // An interactor in code may give anything. What does not fit its field is not put there again.
                const value = Predicate.hasProperty(answer, field.name) ? answer[field.name] : undefined
                const fits = Field.problemOf({ ...field, required: true }, value) === undefined
                return fits ? { ...field, default: value } : field
              })
              const [first, ...others] = filled
              return first === undefined
                ? Effect.die("There are no fields.")
                : go(new Elicit({ title, fields: [first, ...others], problems }), given, count)
            }
            const reason = `the filled form was refused: ${Field.told(fields, problems)}`
            return new InteractorUnavailable({ requestId: request.requestId, by, reason })
          })
        )
      })
    return go(new Elicit({ title, fields }), "", 0)
  })

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Answers requests of one kind.
 *
 * @since 0.1.0
 * @category models
 */
export type Handler<K extends Kind> = (
  request: InteractionRequest.InteractionRequest<Interaction<K>>,
  options?: Options<Interaction<K>>
) => Effect.Effect<Answer<Interaction<K>>, InteractionError>

/**
 * One handler per kind; a missing kind does not compile. Use {@link declines} for kinds the interactor cannot take.
 *
 * @since 0.1.0
 * @category models
 */
export type Handlers = { readonly [K in Kind]: Handler<K> | typeof declines }

/**
 * Marks a kind that an interactor does not take: asking it fails as unavailable, and others may answer.
 *
 * @since 0.1.0
 * @category constants
 */
export const declines = "declines"

/**
 * Makes an interactor of a handler for each kind. It shows one dialog at a time, first come, first served, unless
 * `dialogs` is `"unbounded"`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly id: string
  readonly handlers: Handlers
  /** `"unbounded"` for interactors that can show any number of dialogs side by side. Default: one. */
  readonly dialogs?: "one" | "unbounded" | undefined
  readonly relay?: boolean | undefined
  /** The name of the one person who answers here, for events and the audit. Default: `id`. */
  readonly principal?: string | undefined
  readonly timeouts?: Timeouts | undefined
  /** The source of its answers: a person (the default), a model, or a rule without a person. */
  readonly how?: Exclude<How, "recheck" | "timeout"> | undefined
}): Service => {
  const how = options.how ?? "answered"
  const by = options.principal ?? options.id
  const service: Service = {
    id: options.id,
    relay: options.relay ?? false,
    principal: options.principal,
    request: <I extends Interaction>(request: InteractionRequest.InteractionRequest<I>, asked?: Options<I>) => {
      const handler: Handlers[Kind] | undefined = isKind(request.interaction._tag)
        ? options.handlers[request.interaction._tag]
        : declines
      // A program that was written for fewer kinds has no handler for a new one.
      if (handler === undefined || handler === declines) return Effect.fail(declined(options.id, request))
      // The handler was chosen by the request's own tag, which the type system cannot follow through the mapped type.
      const handle = handler as unknown as (
        request: InteractionRequest.InteractionRequest<I>,
        options: Options<I> | undefined
      ) => Effect.Effect<Answer<I>, InteractionError>
      return Effect.map(handle(request, asked), (answer) => InteractorCall.told<I>({ answer, by, how }))
    }
  }
  const limited = options.timeouts === undefined ? service : timed(service, options.timeouts)
  return options.dialogs === "unbounded" ? limited : serialized(limited)
}

/**
 * Provides `service` as the interactor.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (service: Service): Layer.Layer<Interactor> => Layer.succeed(Interactor, service)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Asks one request at a time, in order of arrival. A request that is withdrawn while in line is never shown; nor is a
 * request that an earlier answer has decided by the time it reaches the head.
 *
 * @since 0.1.0
 * @category combinators
 */
export const serialized = (service: Service): Service => {
  const line = FairLock.make()
  const { id, principal, relay, roles } = service
  return {
    id,
    relay,
    principal,
    roles,
    request: (request, options) => line.hold(rechecked(options, service.request(request, options)))
  }
}

/**
 * Returns the answer that is already known, if there is one, instead of asking.
 *
 * @since 0.1.0
 * @category combinators
 */
export const rechecked = <I extends Interaction, R extends Reply<I>>(
  options: Options<I> | undefined,
  ask: Effect.Effect<R, InteractionError>
): Effect.Effect<R | Answered<I>, InteractionError> =>
  options?.recheck === undefined
    ? ask
    : Effect.flatMap(options.recheck, (known): Effect.Effect<R | Answered<I>, InteractionError> =>
        Option.isSome(known)
          ? Effect.succeed(InteractorCall.told<I>({ answer: known.value, by: "policy", how: "recheck" }))
          : ask
      )

/**
 * How long an interactor waits once it shows a request. Absent, zero, negative or infinite: for ever.
 *
 * @since 0.1.0
 * @category models
 */
export interface Timeouts {
  /** For kinds that grant authority. */
  readonly permission?: Duration.DurationInput | undefined
  /** For questions; a form may take this long for each of its questions. */
  readonly clarification?: Duration.DurationInput | undefined
  /** The answer of a timed-out `Approve`. Default: the request fails, and the asker takes the safe answer. */
  readonly onTimeout?: "deny" | "allow" | undefined
}

/**
 * The given timeouts, with the defaults for each part that is left out or `undefined`.
 *
 * @since 0.1.0
 * @category getters
 */
export const timeoutsOf = (given: Timeouts | undefined, defaults: Timeouts): Timeouts =>
  given === undefined
    ? defaults
    : {
        permission: given.permission ?? defaults.permission,
        clarification: given.clarification ?? defaults.clarification,
        onTimeout: given.onTimeout ?? defaults.onTimeout
      }

/**
 * The time a request may take, if it is limited.
 *
 * @since 0.1.0
 * @category getters
 */
export const timeoutOf = (interaction: Interaction, timeouts: Timeouts): Option.Option<Duration.Duration> =>
  Option.map(Option.fromNullable(millisOf(interaction, timeouts)), Duration.millis)

/**
 * Like {@link timeoutOf}, in milliseconds.
 *
 * @since 0.1.0
 * @category getters
 */
export const millisOf = (interaction: Interaction, timeouts: Timeouts): number | undefined => {
  const limit = takesPromptSlot(interaction._tag)
    ? timeouts.permission
    : interaction._tag.startsWith("Auth.")
      ? undefined
      : timeouts.clarification
  if (limit === undefined) return undefined
  const millis = typeof limit === "number" ? limit : Duration.toMillis(limit)
  if (!(millis > 0 && millis < Number.POSITIVE_INFINITY)) return undefined
  return millis * questionsIn(interaction)
}

/**
 * Ends requests without an answer in time. The clock starts when the wrapped interactor is asked. A stored request that another
 * process asks again has the time that was left. If `why` yields an error, the request fails with it instead of
 * `InteractionTimedOut`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withTimeout = (
  service: Service,
  timeouts: Timeouts,
  why?: (request: InteractionRequest.InteractionRequest) => InteractionError | undefined
): Service => timed(service, timeouts, why, true)

/**
 * The same for an interactor that shows requests: its limit is its own, and another one shows the request anew. `isStored`: it
 * is the asker's.
 *
 * @internal
 */
export const timed = (service: Service, timeouts: Timeouts, why?: Why, isStored = false): Service => ({
  id: service.id,
  relay: service.relay,
  principal: service.principal,
  roles: service.roles,
  request: <I extends Interaction>(request: InteractionRequest.InteractionRequest<I>, options?: Options<I>) => {
    const limit = millisOf(request.interaction, timeouts)
    if (limit === undefined) return service.request(request, options)
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      // A clock that was set back gives it no more time than it had.
      const left = isStored ? Math.min(limit, (request.dueAt ?? Infinity) - now) : limit
      const asked = isStored ? InteractionRequest.until(request, now + left) : request
      return Effect.flatMap(Effect.timeoutOption(service.request(asked, options), left), (answered) =>
        Option.isSome(answered)
          ? Effect.succeed(answered.value)
          : late(service.id, request, timeouts, limit, why?.(request))
      )
    })
  }
})

/**
 * What comes of a request that nobody has answered in time.
 *
 * @internal
 */
export const late = <I extends Interaction>(
  by: string,
  { interaction, requestId }: InteractionRequest.InteractionRequest<I>,
  { onTimeout }: Timeouts,
  after: number,
  why?: InteractionError
): Effect.Effect<Answered<I>, InteractionError> =>
  onTimeout === "allow" && interaction._tag === "Approve"
    ? Effect.succeed(
        InteractorCall.told<I>({ answer: { decision: "allow", scope: "once" } as Answer<I>, by, how: "timeout" })
      )
    : Effect.fail(why ?? new InteractionTimedOut({ requestId, by, after }))

/**
 * The error of an interactor that does not take the request's kind.
 *
 * @since 0.1.0
 * @category constructors
 */
export const declined = (id: string, request: InteractionRequest.InteractionRequest): InteractorUnavailable =>
  new InteractorUnavailable({
    requestId: request.requestId,
    by: id,
    reason: isKind(request.interaction._tag)
      ? `it does not take ${request.interaction._tag} requests`
      : new InteractionKindUnknown({ kind: String(request.interaction._tag) }).message
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Why = (request: InteractionRequest.InteractionRequest) => InteractionError | undefined

/** How often the same may be filled in again after it was refused. */
const patience = 3

const questionsIn = (interaction: Interaction): number => {
  if (interaction._tag === "Clarify") return interaction.questions.length
  return interaction._tag === "Elicit" ? interaction.fields.length : 1
}

const settle = (service: Service | undefined, context: Context.Context<never>): Effect.Effect<void> =>
  Effect.zipRight(FiberRef.set(currentRef, service), FiberRef.set(FiberRef.currentContext, context))

const currentRef: FiberRef.FiberRef<Service | undefined> = globalValue("assent/interaction/Interactor", () =>
  CallerContext.belongsToFiber(FiberRef.unsafeMake<Service | undefined>(undefined, { join: (parent) => parent }))
)
