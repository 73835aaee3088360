/**
 * Hard checks of a call: they run in every mode, under every grant and suspension. A guard refuses a call, or wants a
 * question of its own for it; it never allows one.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import type * as Schema from "effect/Schema"
import type * as Tool from "@effect/ai/Tool"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Lazy from "../core/Lazy.js"
import * as Defect from "../core/Defect.js"
import * as Origin from "../core/Origin.js"
import type { Redactor } from "../core/Redaction.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as PermissionRule from "./PermissionRule.js"

export type { Subject } from "./Subject.js"

/**
 * The call that a guard looks at.
 *
 * @since 0.1.0
 * @category models
 */
export interface Guarded {
  readonly tool: string
  /** As the model wrote them, or as a person edited them. */
  readonly params: unknown
  readonly subject: PermissionRule.Subject
  readonly entry: ToolRegistry.Entry
}

/**
 * A guard yields nothing when it has no objection. It yields {@link ask} when a person has to be asked even if
 * something else allows the call. It fails with the reason why the call must not run. A crash denies too, and so does
 * any other value.
 *
 * @since 0.1.0
 * @category models
 */
export type Guard = (call: Guarded) => Effect.Effect<void | Ask, string>

/**
 * The call needs a question of its own: no grant, envelope, stage, suspension, list or default lets it pass unasked. An
 * answer that allows it holds for this one call. Make one with {@link ask}.
 *
 * @since 0.1.0
 * @category models
 */
export class Ask {
  constructor(
    /** Sentences for the approver. */
    readonly reasons: ReadonlyArray<string>,
    /**
     * Whether the suspension of everything covers the call too. `nothing`: a rule that denies may mean the call, so only a
     * person allows it.
     */
    readonly coveredBy: "all" | "nothing" | undefined
  ) {}

  get reason(): string {
    return this.reasons.join(" ")
  }

  /** Whether the answer to `other` covers this question: the same reasons, about the same call. */
  isWithin(other: Ask | undefined): boolean {
    return this.reasons.every((reason) => other?.reasons.includes(reason) === true)
  }
}

/**
 * `reason` is shown. A guard must give the same reason every time it looks at the same call.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ask = (question: { readonly reason: string; readonly coveredBy?: "all" | undefined }): Ask =>
  new Ask([question.reason], question.coveredBy)

/**
 * A guard for the calls of one tool, with decoded arguments. Arguments that do not decode by the tool's own schema are
 * refused.
 *
 * @example
 * ```ts
 * import { Tool } from "@effect/ai"
 * import { Guard } from "assent"
 * import { Effect, Schema } from "effect"
 *
 * const Pay = Tool.make("pay", { parameters: { amount: Schema.NumberFromString } })
 *
 * export const limit = Guard.forTool(Pay, ({ amount }) =>
 *   amount > 100 ? Effect.fail("no agent pays more than 100") : Effect.void
 * )
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const forTool = <T extends Tool.Any>(
  tool: T,
  check: (params: Tool.Parameters<T>, call: Guarded) => Effect.Effect<void | Ask, string>
): Guard => {
  // The type of a tool that is not known yet does not say what its schema decodes to; the tool's own type does.
  const decode = Lazy.make(() => ParseResult.decodeUnknownEither(tool.parametersSchema as Schema.Schema<unknown>))
  const guard: Guard = (call) => {
    if (call.tool !== tool.name) return Effect.void
    const params = decode(call.params ?? {})
    return Either.isLeft(params)
      ? Effect.fail(`a guard of ${tool.name} cannot read the arguments: ${told(params.left)}`)
      : check(params.right as Tool.Parameters<T>, call)
  }
  tools.set(guard, tool.name)
  return guard
}

/**
 * The tool that a guard is for, where it was made for one.
 *
 * @internal
 */
export const toolOf = (guard: Guard): string | undefined => tools.get(guard)

/**
 * Both questions as one.
 *
 * @internal
 */
export const also = (one: Ask, other: Ask | undefined): Ask => (other === undefined ? one : together(one, other))

/**
 * Why only a person allows the call, not a rule, a mode or a suspension.
 *
 * @internal
 */
export const doubtOf = (own: Ask | undefined): string | undefined =>
  own?.coveredBy === "nothing" ? own.reason : undefined

/**
 * A guard's objection to a call: the reason to refuse it, or the question to ask.
 *
 * @internal
 */
export type Objection = string | Ask

/**
 * {@link objection}'s value when no guard objects at once, so that the caller can continue without a step.
 *
 * @internal
 */
export const none: Effect.Effect<undefined> = Effect.succeed(undefined)

/**
 * The hard rules first, then the guards in order. The first refusal decides; all questions are joined.
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
  // One after the other. A guard that has no objection synchronously costs no Effect step.
  const from = (start: number, asks: Ask | undefined): Effect.Effect<Ask | undefined, string> => {
    for (const [index, guard] of guards.entries()) {
      if (index < start) continue
      const check = guard(call)
      if (check === Effect.void) continue
      // Guards are foreign code and may return what their type forbids.
      if (!Effect.isEffect(check)) return nonsense
      return Effect.flatMap(check, (found: unknown) => {
        if (found === undefined) return from(index + 1, asks)
        return found instanceof Ask ? from(index + 1, together(asks, found)) : nonsense
      })
    }
    return asks === undefined ? none : Effect.succeed(asks)
  }
  // A guard may also throw before it returns an effect.
  const checks = Either.getOrElse(
    Either.try(() => from(0, undefined)),
    (thrown) => Effect.die(thrown)
  )
  return checks === none ? none : Effect.catchAllCause(checks, (cause) => refusal(cause, call, redactor))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const tools = new WeakMap<Guard, string>()

const told = (issue: ParseResult.ParseIssue): string =>
  UntrustedJson.echo(ParseResult.TreeFormatter.formatIssueSync(issue).replace(/\s+/g, " "))

const nonsense = Effect.dieMessage("it yields neither nothing nor a question")

/**
 * A guard may also fail with a value that its type forbids. That refuses all the same, and a question as failure value
 * is a refusal too. The cause is logged: a guard that always crashes refuses everything, and a person has to find out
 * why.
 */
const refusal = (
  cause: Cause.Cause<unknown>,
  { tool }: Guarded,
  redactor: Pick<Redactor, "text">
): Effect.Effect<string> => {
  const failed = Option.getOrUndefined(Cause.failureOption(cause))
  if (typeof failed === "string" && failed !== "") return Effect.succeed(failed)
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed("a guard failed")
  return Effect.as(logged(cause, tool, redactor), "a guard failed; the log has the reason")
}

const logged = (cause: Cause.Cause<unknown>, tool: string, redactor: Pick<Redactor, "text">): Effect.Effect<void> =>
  Effect.flatMap(Origin.current, ({ agent, sessionId }) =>
    Defect.log("A guard", cause, redactor, { session: sessionId, agent, tool })
  )

const together = (one: Ask | undefined, other: Ask): Ask =>
  one === undefined ? other : new Ask([...one.reasons, ...other.reasons], coverOf(one.coveredBy, other.coveredBy))

/** Both questions have to be covered. */
const coverOf = (one: Ask["coveredBy"], other: Ask["coveredBy"]): Ask["coveredBy"] =>
  one === "nothing" || other === "nothing" ? "nothing" : one === "all" ? other : undefined
