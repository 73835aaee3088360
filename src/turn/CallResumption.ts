/**
 * Resumes a call of another process: a decision stays, a finished call keeps its result, and a call that may have had
 * its effect is not run again.
 */
import * as Either from "effect/Either"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Redaction from "../core/Redaction.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { Allowed, Denied } from "../permission/PermissionGate.js"
import { denied } from "../permission/Verdict.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { ToolResult } from "../tool/ToolCall.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"

export type CallResumption =
  | { readonly _tag: "Ended"; readonly result: ToolResult }
  | { readonly _tag: "Ends"; readonly outcome: ToolOutcome; readonly result: unknown }
  | Denied
  | Allowed

/** Undefined for a call without a decision. */
export const of = (
  past: SessionSnapshot.CallSnapshot | undefined,
  entry: ToolRegistry.Entry | undefined
): CallResumption | undefined => {
  if (past === undefined || SessionSnapshot.stateOf(past) === "proposed") return undefined
  const { call, decided, ended, started } = past
  if (ended !== undefined) return { _tag: "Ended", result: SessionSnapshot.resultOf(past) }
  if (decided !== undefined && !decided.granted) {
    const { granted, method, reason } = decided
    if (method === "pre_validation") return { _tag: "Ends", outcome: "invalid", result: reason }
    return denied({ granted, method, reason })
  }
  const encoded = started?.params ?? decided?.params ?? call.params
  const params = entry?.decode(encoded)
  const mayRun = started === undefined || entry?.idempotent === true || entry?.resumable === true
  if (!mayRun || entry === undefined || params === undefined || Either.isLeft(params)) {
    return { _tag: "Ends", outcome: "interrupted", result: SessionSnapshot.resultOf(past).result }
  }
  if (canonicalJson(encoded).includes(Redaction.mask)) {
    const result = "Its arguments held a secret, which is not kept. Propose the call again."
    return { _tag: "Ends", outcome: "interrupted", result }
  }
  return { _tag: "Allowed", params: params.right, encoded, edited: decided?.params !== undefined }
}
