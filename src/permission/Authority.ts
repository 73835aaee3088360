/** What decides about a proposed call before the rules do: a stage, or the envelope of a subagent. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { RequestId } from "../core/Id.js"
import type * as Interactor from "../interaction/Interactor.js"
import type { BatchPlace } from "../interaction/InteractionRequest.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as PermissionRecord from "./PermissionRecord.js"
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
  /**
   * The calls that were proposed together with it.
   *
   * @internal
   */
  readonly company?: Company | undefined
}

/**
 * The calls of one step, as far as those of one tool may be shown together.
 *
 * @internal
 */
export interface Company {
  /** Where a call stands among those of its tool; nothing where it is the only one. `asked` is the id of its request. */
  readonly placeOf: (call: ToolCall, asked: RequestId) => BatchPlace | undefined
  /** The calls of the same tool behind this one that are not decided yet, whose arguments decode. */
  readonly behind: (call: ToolCall) => ReadonlyArray<{ readonly index: number; readonly proposal: Proposal }>
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
  gate: Pick<PermissionRecord.Options, "bus" | "redactor"> & {
    /** Whether nobody is asked: an authority that would ask denies then. */
    readonly state?: { readonly asksNobody: boolean } | undefined
  }
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
