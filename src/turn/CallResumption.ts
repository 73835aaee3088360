/**
 * Resumes a call of another process: a decision stays, a finished call keeps its result, and a call that may have had
 * its effect is not run again.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redaction from "../core/Redaction.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import type { Denied, Verdict } from "../permission/PermissionGate.js"
import { denied, type Past } from "../permission/Verdict.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as ToolRun from "./ToolRun.js"

type CallResumption =
  | { readonly _tag: "Ended"; readonly result: ToolResult }
  | { readonly _tag: "Ends"; readonly outcome: ToolOutcome; readonly result: unknown }
  | Denied
  | Past

/** The batch of the call. */
export interface Host extends Pick<ToolRun.Host, "end" | "session"> {
  /** The results, by the call's index. */
  readonly known: Array<ToolResult | undefined>
  readonly refuse: (index: number, call: ToolCall, denied: Denied) => void
  /** Runs the call unless it was refused. */
  readonly unless: (subject: ToolRun.Subject, verdict: Verdict) => Effect.Effect<void>
}

/** What is left to do of a call that has got so far in another process; undefined for one that was not decided. */
export const resume = (
  host: Host,
  { call, index }: Pick<ToolRun.Subject, "call" | "index">,
  entry: ToolRegistry.Entry | undefined,
  past: SessionSnapshot.CallSnapshot | undefined
): { readonly run: (() => Effect.Effect<void>) | undefined } | undefined => {
  const resumption = of(past, entry)
  switch (resumption?._tag) {
    case undefined:
      return undefined
    case "Ended":
      host.known[index] = resumption.result
      return over
    case "Ends":
      host.end(index, call, resumption.outcome, resumption.result)
      return over
    case "Denied":
      host.refuse(index, call, resumption)
      return over
    case "Allowed": {
      if (entry === undefined) return over
      const { gate, state } = host.session
      const looked = () => gate.lookAgain({ call, entry }, resumption, state.authority)
      return { run: () => Effect.flatMap(looked(), (verdict) => host.unless({ index, call, entry }, verdict)) }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const over = { run: undefined }

const lost: CallResumption = {
  _tag: "Ends",
  outcome: "interrupted",
  result: "Its arguments held a secret, which is not kept. Propose the call again."
}

const of = (
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
    decided: goesOn ? undefined : decided,
    ...(continuation === undefined ? {} : { continuation })
  }
}
