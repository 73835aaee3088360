/**
 * Hard checks of a call: they run in every mode, under every grant and suspension. A guard refuses a call, or wants a
 * question of its own for it; it never allows one.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Defect from "../core/Defect.js"
import * as Origin from "../core/Origin.js"
import type { Redactor } from "../core/Redaction.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as PermissionRule from "./PermissionRule.js"

export type { Subject } from "./Subject.js"

/** What a guard looks at. */
export interface Guarded {
  readonly tool: string
  /** As the model wrote them, or as they were edited. */
  readonly params: unknown
  readonly subject: PermissionRule.Subject
  readonly entry: ToolRegistry.Entry
}

/**
 * Yields nothing where nothing is to be said against the call, {@link ask} where a person has to be asked about it whatever
 * else allows it, and fails with the reason why it must not run. A crash denies too, and so does any other value.
 */
export type Guard = (call: Guarded) => Effect.Effect<void | Ask, string>

/**
 * The call needs a question of its own: no grant, envelope, stage, suspension, list or default lets it pass unasked. What
 * allows it holds for this one call. Make one with {@link ask}.
 */
export class Ask {
  constructor(
    /** Sentences for whoever is asked. */
    readonly reasons: ReadonlyArray<string>,
    /** Whether the suspension of everything covers the call as well. */
    readonly coveredBy: "all" | undefined
  ) {}

  get reason(): string {
    return this.reasons.join(" ")
  }

  /** Whether whoever answered `other` has answered this: the same reasons, about the same call. */
  isWithin(other: Ask | undefined): boolean {
    return this.reasons.every((reason) => other?.reasons.includes(reason) === true)
  }
}

/** `reason` is shown, and must be the same each time that a guard looks at the same call. */
export const ask = (question: { readonly reason: string; readonly coveredBy?: "all" | undefined }): Ask =>
  new Ask([question.reason], question.coveredBy)

/**
 * What guards have against a call: the reason to refuse it, or what is to be asked.
 *
 * @internal
 */
export type Objection = string | Ask

/**
 * What {@link objection} is when it is known at once that there is none, so that whoever asks can go on at once too.
 *
 * @internal
 */
export const none: Effect.Effect<undefined> = Effect.succeed(undefined)

/**
 * The hard rules first, then the guards in order; the first that refuses decides, and all that ask are put together.
 *
 * @internal
 */
export const objection = (
  rules: PermissionRule.Compiled,
  guards: ReadonlyArray<Guard>,
  call: Guarded,
  redactor: Pick<Redactor, "text">
): Effect.Effect<Objection | undefined> => {
  const rule = PermissionRule.denies(rules, call.subject)
  if (rule !== undefined) return Effect.succeed(`forbidden by rule ${rule}`)
  if (guards.length === 0) return none
  // One after the other, and nothing of Effect for a guard that has nothing against the call at first sight.
  const from = (start: number, asks: Ask | undefined): Effect.Effect<Ask | undefined, string> => {
    for (const [index, guard] of guards.entries()) {
      if (index < start) continue
      const check = guard(call)
      if (check === Effect.void) continue
      // Guards are foreign code, which may return what its type denies.
      if (!Effect.isEffect(check)) return nonsense
      return Effect.flatMap(check, (found: unknown) => {
        if (found === undefined) return from(index + 1, asks)
        return found instanceof Ask ? from(index + 1, together(asks, found)) : nonsense
      })
    }
    return asks === undefined ? none : Effect.succeed(asks)
  }
  // It may also throw before it is an effect.
  const checks = Either.getOrElse(
    Either.try(() => from(0, undefined)),
    (thrown) => Effect.die(thrown)
  )
  return checks === none ? none : Effect.catchAllCause(checks, (cause) => refusal(cause, call, redactor))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nonsense = Effect.dieMessage("it yields neither nothing nor a question")

/**
 * A guard may also fail with what its type denies: it has refused all the same, and nothing it asks is a refusal. What
 * went wrong is in the log: a guard that always crashes refuses everything, and somebody has to find out why.
 */
const refusal = (
  cause: Cause.Cause<unknown>,
  { tool }: Guarded,
  redactor: Pick<Redactor, "text">
): Effect.Effect<string> => {
  const failed = Option.getOrUndefined(Cause.failureOption(cause))
  if (typeof failed === "string" && failed !== "") return Effect.succeed(failed)
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed("a guard failed")
  return Effect.as(logged(cause, tool, redactor), "a guard failed; what went wrong is in the log")
}

const logged = (cause: Cause.Cause<unknown>, tool: string, redactor: Pick<Redactor, "text">): Effect.Effect<void> =>
  Effect.flatMap(Origin.current, ({ agent, sessionId }) =>
    Defect.log("A guard", cause, redactor, { session: sessionId, agent, tool })
  )

const together = (one: Ask | undefined, other: Ask): Ask =>
  one === undefined
    ? other
    : new Ask([...one.reasons, ...other.reasons], one.coveredBy === "all" ? other.coveredBy : undefined)
