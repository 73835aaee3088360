/**
 * The questions that a process left open when it died, by the call that asked. The call asks again under the same id,
 * so that an answer which came meanwhile finds its question.
 */
import * as Context from "effect/Context"
import type { RequestId, ToolCallId } from "../core/Id.js"
import type * as Interaction from "./Interaction.js"

export interface Service {
  /** Takes the question that this call, or the turn itself, is about to ask again; each is taken once. */
  readonly take: (
    interaction: Interaction.Interaction,
    toolCallId: ToolCallId | undefined
  ) => { readonly requestId: RequestId; readonly issuedAt: number; readonly dueAt?: number | undefined } | undefined
}

/** Empty, except in a session that continues after another process stopped. */
export class ResumedRequests extends Context.Reference<ResumedRequests>()("assent/interaction/ResumedRequests", {
  defaultValue: (): Service | undefined => undefined
}) {}
