/** Encodes a tool's result for the model. */
import * as Cause from "effect/Cause"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Defect from "../core/Defect.js"
import * as ToolOutcome from "../core/ToolOutcome.js"
import type { Redactor } from "../core/Redaction.js"
import type { Allowed } from "../permission/PermissionGate.js"
import * as ToolSummary from "../tool/ToolSummary.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { ToolCall, ToolResult } from "../tool/ToolCall.js"
import type { Limits } from "./Limits.js"
import { emit, type TurnContext } from "./TurnContext.js"

/** Distinct from every failure of a handler. */
export const tookTooLong = Symbol("took too long")

export const resultOf = (
  entry: ToolRegistry.Entry,
  exit: Exit.Exit<unknown, unknown>
): {
  readonly outcome: ToolOutcome.ToolOutcome
  readonly result: unknown
  /** Why what the handler returned could not be encoded, for the log. */
  readonly misfit?: Cause.Cause<unknown>
} => {
  if (Exit.isSuccess(exit)) {
    const encoded = Either.try({ try: () => entry.encode(exit.value), catch: Cause.die })
    return Either.match(encoded, {
      onLeft: (misfit) => ({
        outcome: "failed",
        result: `${entry.name} ran, and its result does not fit its schema. What does not fit is in the log.`,
        misfit
      }),
      onRight: (result) => ({ outcome: "succeeded", result })
    })
  }
  const failure = Cause.failureOption(exit.cause)
  if (Option.isSome(failure)) {
    if (failure.value === tookTooLong) {
      return {
        outcome: "interrupted",
        result: ToolOutcome.unknownEffect(`${entry.name} took too long and was stopped.`)
      }
    }
    const encoded = Either.try(() => entry.encodeFailure(failure.value))
    return {
      outcome: "failed",
      result: Either.getOrElse(encoded, () => `${entry.name} failed: ${messageOf(failure.value)}`)
    }
  }
  if (Cause.isInterruptedOnly(exit.cause)) {
    return { outcome: "interrupted", result: ToolOutcome.unknownEffect(ToolOutcome.cut("The call was interrupted")) }
  }
  return { outcome: "failed", result: Defect.sentence(entry.name) }
}

const messageOf = (error: unknown): string => {
  if (error instanceof Error) return error.message
  if (typeof error !== "object" || error === null) return String(error)
  const whole = Either.try(() => (lostInJson(error) === undefined ? canonicalJson(error) : undefined))
  // As JSON a map would be `{}`.
  return Either.getOrUndefined(whole) ?? `with ${nameOf(error)}, which JSON cannot hold`
}

/** Tools that are named to a model which asked for another: it knows them all, and there may be hundreds. */
const mostNamed = 100

export const unknownTool = (tools: ToolRegistry.Service, name: string): string => {
  const reason = tools.gone?.(name)
  if (reason !== undefined) return reason
  const names = tools.entries.map((entry) => UntrustedJson.echo(entry.name))
  const known = UntrustedJson.few(names, mostNamed).join(", ")
  return `There is no tool ${JSON.stringify(UntrustedJson.echo(name))}. ${known === "" ? "No tools are available." : `Available: ${known}.`}`
}

/** The error result of a call beyond the limit of calls per step. */
export const tooMany = (count: number, most: number): string =>
  `This step has ${count} calls, and only the first ${most} are looked at. Propose this one again in a later step.`

/** What the model must know beside the result: arguments that it did not write, and a cancellation that came too late. */
export const noticesOf = ({ edited, encoded }: Allowed, cut: string | undefined): ReadonlyArray<string> => [
  ...(edited ? [`The user edited the arguments before approving: ${JSON.stringify(encoded)}`] : []),
  ...(cut === undefined ? [] : [`${cut} It had its end all the same.`])
]

/** Publishes that a call has ended. False: the bus is full. */
export const tellEnd = (
  session: TurnContext,
  { id, name, outcome, result }: ToolResult,
  startedAt?: number
): boolean => {
  const summary = ToolSummary.of(result, session.redactor)
  const fault = outcome === "succeeded" ? ToolSummary.fault(result) : undefined
  const shown = ToolSummary.shown(result)
  if (fault !== undefined || shown.leftOut !== undefined) {
    const duration = startedAt === undefined ? {} : { duration: session.now() - startedAt }
    const ended = { _tag: "ToolCallEnded", toolCallId: id, tool: name, outcome, summary, ...shown } as const
    return emit(session, { ...ended, ...(fault === undefined ? {} : { fault }), ...duration })
  }
  // Fields are written one by one: after a spread every event would have a hidden class of its own, which survives many
  // collections.
  return startedAt === undefined
    ? emit(session, { _tag: "ToolCallEnded", toolCallId: id, tool: name, outcome, summary, result })
    : emit(session, {
        _tag: "ToolCallEnded",
        toolCallId: id,
        tool: name,
        outcome,
        summary,
        result,
        duration: session.now() - startedAt
      })
}

/** Lays notices about a call beside its result, which keeps the form that its tool gave it. */
export const leaveNotices = (session: TurnContext, { id, name }: ToolCall, notices: ReadonlyArray<string>): void => {
  if (notices.length === 0) return
  const { maxResult } = session.limits
  const text = bounded(session.redactor.text(`About the call ${id} of ${name}: ${notices.join(" ")}`), maxResult)
  session.inbox.file({ text, source: "system" }, "along")
}

/** A result for the model: JSON, masked, within the limit. A left says why JSON cannot hold it. */
export const presentable = (
  { limits, redactor }: { readonly limits: Pick<Limits, "maxResult">; readonly redactor: Redactor },
  result: unknown
): Either.Either<unknown, string> =>
  Either.try({
    try: () => {
      const text = typeof result === "string" ? result : JSON.stringify(result)
      if (result === undefined) return null
      // As JSON a map would be `{}`, and a function would be nothing.
      const lost = lostInJson(result) ?? (text === undefined ? "nothing" : undefined)
      if (lost !== undefined) throw new TypeError(`it holds ${lost}`)
      if (text.length <= limits.maxResult) return redactor.value(result)
      // Masked before the cut: half a secret would not be recognised.
      return bounded(redactor.text(text), limits.maxResult)
    },
    // An engine shows the way around a circle in further lines.
    catch: (thrown) => redactor.text(messageOf(thrown).replace(/\n[^]*/, ""))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const bounded = (text: string, most: number): string =>
  text.length <= most
    ? text
    : `${text.slice(0, most)}\n[cut: ${text.length - most} of ${text.length} characters left out]`

/** What JSON would lose of a value without cycles. Undefined members are left out, as everywhere. */
const lostInJson = (value: unknown): string | undefined => {
  switch (typeof value) {
    case "object":
      if (value === null) return undefined
      // The result of `toJSON` is written, and may lose data too.
      if ("toJSON" in value && typeof value.toJSON === "function") {
        const said: unknown = value.toJSON("")
        return said === value ? undefined : lostInJson(said)
      }
      if (!Array.isArray(value) && isOpaque(value)) return nameOf(value)
      for (const member of Object.values(value)) {
        const lost = lostInJson(member)
        if (lost !== undefined) return lost
      }
      return undefined
    case "number":
      return Number.isFinite(value) ? undefined : String(value)
    case "function":
    case "symbol":
      return `a ${typeof value}`
    default:
      return undefined
  }
}

const nameOf = (value: object): string => {
  const name: unknown = typeof value.constructor === "function" && value.constructor.name
  return typeof name !== "string" || name === "" ? "something" : `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}`
}

/** Its data is not in its fields: maps, errors, bytes, promises, and instances without fields. */
const isOpaque = (value: object): boolean => {
  if (Object.prototype.toString.call(value) !== "[object Object]") return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype !== Object.prototype && prototype !== null && Object.keys(value).length === 0
}
