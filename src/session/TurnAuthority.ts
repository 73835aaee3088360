/**
 * What a turn is under besides its session's own authority: what it was ordered with, such as a stage. Tasks that its calls
 * give to children are under the same.
 *
 * A stage ends with its process. What had begun in it and goes on in another one may say how far it came, and use nothing.
 */
import * as Effect from "effect/Effect"
import type { MessageId } from "../core/Id.js"
import * as PermissionGate from "../permission/PermissionGate.js"
import type { TurnContext } from "../turn/TurnContext.js"
import type { Options } from "./SessionService.js"
import type { TurnRequest } from "./TurnRequest.js"

/** Puts a turn under what it was ordered with, in this process or, when its first words say so, in another. */
export const begin = (
  { state }: TurnContext,
  order: TurnRequest | undefined,
  first: MessageId | undefined,
  { authority, restored }: Pick<Options, "authority" | "restored">
): void => {
  const bound = order?.authority ?? (restored !== undefined && wasBound(restored, first) ? lost : undefined)
  state.bound = bound
  state.authority = bound && PermissionGate.orElse(authority)(bound)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const wasBound = ({ tasks }: NonNullable<Options["restored"]>, first: MessageId | undefined): boolean =>
  tasks.some(({ bound, messageId }) => bound === true && messageId === first)

const lost: PermissionGate.Authority = () =>
  Effect.succeedSome({
    granted: false,
    method: "stage_grant",
    reason: "the stage in which this was begun ended with its process; say how far you came"
  })
