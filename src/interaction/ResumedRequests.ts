/**
 * The questions that a process left open when it died, by the call that asked: whoever asks again asks under the same id,
 * so that an answer which came meanwhile finds its question.
 */
import * as Context from "effect/Context"
import type { RequestId, ToolCallId } from "../core/Id.js"
import type * as Interaction from "./Interaction.js"

export interface Service {
  /** The question that this call, or the turn itself, is about to ask again, each once. */
  readonly take: (
    interaction: Interaction.Interaction,
    toolCallId: ToolCallId | undefined
  ) => { readonly requestId: RequestId; readonly issuedAt: number } | undefined
}

/** None, except while a session goes on where another process stopped. */
export class ResumedRequests extends Context.Reference<ResumedRequests>()("assent/interaction/Reopened", {
  defaultValue: (): Service | undefined => undefined
}) {}
