/** Hard checks of a call: they run in every mode, under every grant and suspension, and can only deny. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as PermissionRule from "./PermissionRule.js"

/** What a guard looks at. */
export interface Guarded {
  readonly tool: string
  /** As the model wrote them, or as they were edited. */
  readonly params: unknown
  readonly subject: PermissionRule.Subject
  readonly entry: ToolRegistry.Entry
}

/** Fails with the reason why the call must not run. A crash denies too. */
export type Guard = (call: Guarded) => Effect.Effect<void, string>

/** What {@link violation} is when it is known at once that nothing objects, so that whoever asks can go on at once too. */
export const none: Effect.Effect<undefined> = Effect.succeed(undefined)

/** Why a call must not run: the hard rules first, then the guards in order. Nothing when none of them objects. */
export const violation = (
  rules: PermissionRule.Compiled,
  guards: ReadonlyArray<Guard>,
  call: Guarded
): Effect.Effect<string | undefined> => {
  const rule = PermissionRule.denies(rules, call.subject)
  if (rule !== undefined) return Effect.succeed(`forbidden by rule ${rule}`)
  if (guards.length === 0) return none
  // One after the other, and nothing of Effect for a guard that has nothing against the call at first sight.
  const from = (start: number): Effect.Effect<undefined, string> => {
    for (let index = start; index < guards.length; index++) {
      const check = guards[index]?.(call) ?? Effect.void
      if (check !== Effect.void) return Effect.flatMap(check, () => from(index + 1))
    }
    return none
  }
  // A guard is foreign code: it may throw before it is an effect.
  const checks = Either.getOrElse(
    Either.try(() => from(0)),
    () => Effect.fail("a guard failed")
  )
  return checks === none
    ? none
    : Effect.catchAllCause(checks, (cause) =>
        Effect.succeed(Option.getOrElse(Cause.failureOption(cause), () => "a guard failed"))
      )
}
