/**
 * Signing in, as calls that a program makes. They are never tools, so no model asks for a password.
 *
 * @example
 * ```ts
 * import { Auth } from "assent"
 * import { Effect, Redacted } from "effect"
 *
 * const connected = Auth.password({
 *   prompt: "Password of ada@db:",
 *   use: (secret) => Effect.succeed(`connected, with ${Redacted.value(secret).length} characters`)
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Redaction from "../core/Redaction.js"
import { AuthDeviceCode, AuthPassword } from "./Interaction.js"
import type { InteractionError } from "./InteractionError.js"
import * as Interactor from "./Interactor.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The purpose of a password, and its consumer.
 *
 * @since 0.1.0
 * @category models
 */
export interface PasswordOptions<A, E, R> {
  /** The text that the person reads. */
  readonly prompt: string
  /** The one consumer of the secret. Its result and its error go to the caller: keep the secret out of both. */
  readonly use: (secret: Redacted.Redacted) => Effect.Effect<A, E, R>
  /** The secret is declared to this redactor before it is used; the redactor masks it from then on. */
  readonly redactor?: Redaction.Redactor | undefined
}

/**
 * The address to sign in, the code to type there, and its lifetime.
 *
 * @since 0.1.0
 * @category models
 */
export interface DeviceCodeOptions<A, E, R, R2> {
  /** The address at which the person signs in. */
  readonly url: string
  /** The code that the person enters there. */
  readonly code: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Checks once whether the person has signed in; none means not yet. */
  readonly poll: Effect.Effect<Option.Option<A>, E, R>
  /** When to poll again. Default: every 5 seconds. After its end, only a person who says "done" restarts it. */
  readonly schedule?: Schedule.Schedule<unknown, unknown, R2> | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The code expired before anybody had signed in with it.
 *
 * @since 0.1.0
 * @category errors
 */
export class AuthExpired extends Schema.TaggedError<AuthExpired>("assent/interaction/AuthExpired")("AuthExpired", {
  url: Schema.String,
  /** Milliseconds since the epoch. */
  expiresAt: Schema.Number
}) {
  override get message(): string {
    return `The code expired before anybody had signed in at ${this.url}. Ask for a new code and show that.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// asking
// -----------------------------------------------------------------------------------------------------------------

/**
 * Asks for a password and hands it to `use`, once; nothing keeps it afterwards. To ask again after a wrong password,
 * retry the whole call.
 *
 * @since 0.1.0
 * @category operations
 */
export const password = <A, E, R>(
  options: PasswordOptions<A, E, R>
): Effect.Effect<A, E | InteractionError, R | Interactor.Interactor> =>
  Effect.flatMap(Interactor.ask(new AuthPassword({ prompt: options.prompt })), (secret) => {
    options.redactor?.declare(secret)
    return options.use(secret)
  })

/**
 * Shows the address and the code, and polls until the person has signed in or the code expires.
 *
 * ```
 *  poll ─ wait ─ poll ─ wait ──────────────── poll ─ wait ─ …      a find withdraws the dialog
 *  dialog ───────────────────► "done" (wakes) ┘                    "cancel" ends the polling
 * ```
 *
 * Fails with {@link AuthExpired} at expiry; an expired code is not shown at all. Fails with the error of `poll`, and
 * with the error of the interaction when the person cancels or nobody can be shown the code.
 *
 * @since 0.1.0
 * @category operations
 */
export const deviceCode = <A, E, R, R2 = never>(
  options: DeviceCodeOptions<A, E, R, R2>
): Effect.Effect<A, E | AuthExpired | InteractionError, R | R2 | Interactor.Interactor> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const { url, code, expiresAt } = options
    const expired = () => new AuthExpired({ url, expiresAt })
    const left = expiresAt - now
    if (!(left > 0)) return Effect.fail(expired())
    const dialog = Interactor.ask(new AuthDeviceCode({ url, code, expiresAt }))
    return Effect.timeoutFail(shown(dialog, options), { duration: Duration.millis(left), onTimeout: expired })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Runs the dialog and the polling side by side, and again as long as the schedule ends without a sign-in. */
const shown = <A, E, R, R2, E3, R3>(
  dialog: Effect.Effect<unknown, E3, R3>,
  options: DeviceCodeOptions<A, E, R, R2>
): Effect.Effect<A, E | E3, R | R2 | R3> =>
  Effect.flatMap(Deferred.make<void>(), (done) => {
    // The dialog completes it when the person says that it was done; the polling reads it.
    const said = Deferred.await(done)
    const polling = Effect.flatMap(round(options, said), (early) =>
      Option.isSome(early) ? Effect.succeed(early) : Effect.zipRight(said, round(options, Effect.never))
    )
    const asking = Effect.zipRight(Effect.zipRight(dialog, Deferred.succeed(done, undefined)), Effect.never)
    return Effect.flatMap(
      Effect.raceFirst(polling, asking),
      Option.match({ onNone: () => shown(dialog, options), onSome: Effect.succeed })
    )
  })

/**
 * Polls at once and then by the schedule, until a sign-in is found, the schedule ends, or `hurry` completes. `hurry`
 * cuts a wait short, never a poll: an answer on its way may be the only one there is.
 */
const round = <A, E, R, R2>(
  { poll, schedule }: DeviceCodeOptions<A, E, R, R2>,
  hurry: Effect.Effect<void>
): Effect.Effect<Option.Option<A>, E, R | R2> =>
  Effect.flatMap(Schedule.driver(schedule ?? everyFiveSeconds), (driver) => {
    const waited = Effect.raceFirst(
      Effect.match(driver.next(undefined), { onFailure: () => "over", onSuccess: () => "again" }),
      Effect.as(hurry, "over")
    )
    const go: Effect.Effect<Option.Option<A>, E, R | R2> = Effect.flatMap(poll, (found) =>
      Option.isSome(found)
        ? Effect.succeed(found)
        : Effect.flatMap(waited, (next) => (next === "again" ? go : Effect.succeedNone))
    )
    return go
  })

const everyFiveSeconds: Schedule.Schedule<unknown> = Schedule.spaced("5 seconds")
