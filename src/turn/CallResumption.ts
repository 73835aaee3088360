/**
 * What becomes of a call that another process has begun with: a decision stays, a finished call keeps its result, and a call
 * that may have had its effect is not run again.
 */
import * as Either from "effect/Either"
import * as Redaction from "../core/Redaction.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { Denied } from "../permission/PermissionGate.js"
import { denied, type Past } from "../permission/Verdict.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import type { ToolResult } from "../tool/ToolCall.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"

export type CallResumption =
  | { readonly _tag: "Ended"; readonly result: ToolResult }
  | { readonly _tag: "Ends"; readonly outcome: ToolOutcome; readonly result: unknown }
  | Denied
  | Past

/** Undefined for a call that was not decided. */
export const of = (
  past: SessionSnapshot.CallSnapshot | undefined,
  entry: ToolRegistry.Entry | undefined
): CallResumption | undefined => {
  if (past === undefined) return undefined
  const { call, decided, ended, started } = past
  if (ended !== undefined) return { _tag: "Ended", result: SessionSnapshot.resultOf(past) }
  if (decided !== undefined && !decided.granted) {
    const { granted, method, reason } = decided
    if (method === "pre_validation") return { _tag: "Ends", outcome: "invalid", result: reason }
    return denied({ granted, method, reason })
  }
  if (!started && entry && !ToolRegistry.isOffered(entry.tool)) return unawaited
  const encoded = started?.params ?? decided?.params ?? call.params
  const isMasked = Redaction.isMasked(encoded)
  // Nobody is asked about what would not be the same call.
  if (SessionSnapshot.stateOf(past) === "proposed") return isMasked ? lost : undefined
  const params = entry?.decode(encoded)
  const continuation = entry?.continues === true ? past.continuation?.continuation : undefined
  const resumes = entry?.resumable === true || continuation !== undefined
  const mayRun = started === undefined || entry?.idempotent === true || resumes
  if (!mayRun || entry === undefined || params === undefined || Either.isLeft(params)) {
    return { _tag: "Ends", outcome: "interrupted", result: SessionSnapshot.resultOf(past).result }
  }
  if (isMasked) return lost
  // It waits for what it has begun, which nothing begins again.
  const goesOn = started !== undefined && resumes
  return {
    _tag: "Allowed",
    params: params.right,
    encoded,
    edited: decided?.params !== undefined,
    ...(decided?.method === "user_approved" ? { byPerson: true } : {}),
    decided: goesOn ? undefined : decided,
    ...(continuation === undefined ? {} : { continuation })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const unawaited: CallResumption = {
  _tag: "Ends",
  outcome: "interrupted",
  result: "Its agent has ended, so the call was not made."
}

const lost: CallResumption = {
  _tag: "Ends",
  outcome: "interrupted",
  result: "Its arguments held a secret, and secrets are not stored. Propose the call again."
}
