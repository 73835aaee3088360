/**
 * The authority that a turn was requested with, such as a stage, in addition to its session's own. It holds also for
 * tasks that the turn's calls give to children.
 *
 * A stage ends with its process. Its turn, resumed in another process, may report its progress but use no tool.
 */
import * as Effect from "effect/Effect"
import type { MessageId } from "../core/Id.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type { Own, TurnContext } from "../turn/TurnContext.js"
import type { TurnRequest } from "./TurnRequest.js"

/** Sets the authority of a turn that was requested in this process or, when its first message says so, in another. */
export const begin = (
  { state }: TurnContext,
  order: TurnRequest | undefined,
  first: MessageId | undefined,
  { authority, restored }: Pick<Own, "authority" | "restored">
): void => {
  const bound = order?.authority ?? (restored !== undefined && wasBound(restored, first) ? lost : undefined)
  state.bound = bound
  state.authority = bound && PermissionGate.orElse(authority)(bound)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wasBound = ({ tasks }: NonNullable<Own["restored"]>, first: MessageId | undefined): boolean =>
  tasks.some(({ bound, messageId }) => bound === true && messageId === first)

const lost: PermissionGate.Authority = () =>
  Effect.succeedSome({
    granted: false,
    method: "stage_grant",
    reason: "the stage in which this was begun ended with its process; say how far you came"
  })
