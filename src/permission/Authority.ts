/** What decides about a proposed call before the rules do: a stage, or the envelope of a subagent. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Interactor from "../interaction/Interactor.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as PermissionCheck from "./PermissionCheck.js"
import type { Resolution } from "./Verdict.js"

/**
 * One proposed call with everything the gate looks at.
 *
 * @since 0.1.0
 * @category models
 */
export interface Proposal {
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
  /** Decoded. */
  readonly params: unknown
  /** The context of the tool's validation and preview. Default: the context in which the tool was built. */
  readonly context?: Context.Context<never> | undefined
}

/**
 * Decides about calls before all rules and after the guards: a stage, which may ask for a grant, or a subagent's
 * envelope. None leaves the call to the rules. It gets the gate's own bus and redactor; any failure in it denies.
 *
 * @since 0.1.0
 * @category models
 */
export type Authority = (
  proposal: Proposal,
  gate: Pick<PermissionCheck.Options, "bus" | "redactor">
) => Effect.Effect<Option.Option<Resolution>, never, Interactor.Interactor>

/**
 * Asks one authority, and the other only where the first leaves the call to the rules.
 *
 * @since 0.1.0
 * @category combinators
 */
export const orElse =
  (other: Authority | undefined) =>
  (authority: Authority): Authority =>
    other === undefined
      ? authority
      : (proposal, gate) =>
          Effect.flatMap(authority(proposal, gate), (known) =>
            Option.isSome(known) ? Effect.succeed(known) : other(proposal, gate)
          )
