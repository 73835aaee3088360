/**
 * The form that an approver is shown for a call, and how edited arguments come back from it.
 *
 * Declared secrets are masked everywhere in the form, in the values to edit as well. Nothing else is masked: text that
 * merely looks like a secret is part of what will run. An edited value that still equals the shown one stands for the
 * value behind its mask. A value that was changed around the mask cannot be restored and is refused. A call that is too
 * long to be shown whole can be allowed once only.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Origin from "../core/Origin.js"
import * as Redaction from "../core/Redaction.js"
import * as Truncated from "../core/Truncated.js"
import * as Interaction from "../interaction/Interaction.js"
import * as PermissionOption from "../interaction/PermissionOption.js"
import type { ToolCall, ToolDisplay } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type * as Guard from "./Guard.js"
import * as Signature from "./Signature.js"

/** The call that the form is about. */
export interface Subject {
  readonly call: ToolCall
  readonly entry: ToolRegistry.Entry
  /** Decoded. */
  readonly params: unknown
  /** Shown beside the call: what was wrong with the last edit. */
  readonly warnings: ReadonlyArray<string>
  /** The question that guards want to be asked. */
  readonly own?: Guard.Ask | undefined
  /** Whose agreement the call needs, where a rule reserves it. */
  readonly needs?: Interaction.Needs | undefined
  /** Whether the policy leaves it to a model too. */
  readonly delegated?: boolean | undefined
  /** The context of the preview. Default: the context in which the tool was built. */
  readonly context?: Context.Context<never> | undefined
}

/**
 * The request for approval. `key` is the text under which an answer is remembered. Without a preview the form is
 * complete at once, as an exit.
 */
export const make = (
  subject: Subject,
  key: string,
  redactor: Redaction.Redactor
): Effect.Effect<Interaction.Approve> => {
  const { call, context, entry, own, params } = subject
  const { preview } = entry
  const warnings = [...(own?.reasons ?? []), ...subject.warnings]
  const shown = (display: ToolDisplay) => formOf(subject, key, withWarnings(display, warnings), redactor)
  if (preview === undefined) return Effect.succeed(shown(plain(call, redactor)))
  // The tool may remember what is shown, for when this call runs.
  const previewed = within(Origin.inToolCall(call.id)(Effect.suspend(() => preview(params))), context ?? entry.context)
  return Effect.matchCause(previewed, {
    onSuccess: shown,
    onFailure: (cause) => {
      const reason = Option.getOrElse(Cause.failureOption(cause), () => "it crashed")
      return shown(withWarnings(plain(call, redactor), [`No preview: ${reason}`]))
    }
  })
}

/** All arguments of the call after an edit, not yet decoded; a left says why the edit cannot be used. */
export const edited = (
  { call, entry }: Subject,
  changes: { readonly [name: string]: unknown },
  redactor: Redaction.Redactor
): Either.Either<{ readonly [name: string]: unknown }, string> => {
  const before = Signature.isRecord(call.params) ? call.params : {}
  const params: { [name: string]: unknown } = { ...before }
  for (const [name, value] of Object.entries(changes)) {
    if (entry.editable?.parameters.includes(name) !== true) return Either.left(`${name} cannot be edited`)
    const shown = canonicalJson(redactor.declared.value(before[name]))
    const written = canonicalJson(value)
    if (written === shown) continue
    if (written.includes(Redaction.mask) && shown.includes(Redaction.mask)) {
      return Either.left(`${name} still holds ${Redaction.mask}; leave it unchanged, or write the masked part in full`)
    }
    params[name] = value
  }
  return Either.right(params)
}

/** Runs a tool's own effect in the context in which the tool was built. */
export const within = <A, E>(effect: Effect.Effect<A, E>, context: Context.Context<never>): Effect.Effect<A, E> =>
  Effect.mapInputContext(effect, (_: Context.Context<never>) => context)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Longer arguments are shown by their beginning and their end only; lengths in characters. */
const shownWhole = { head: 80_000, tail: 20_000 }
/** The same for each argument by itself. */
const argumentWhole = { head: 16_000, tail: 4_000 }

const formOf = (
  { call, delegated, entry, needs, own }: Subject,
  key: string,
  preview: ToolDisplay,
  redactor: Redaction.Redactor
): Interaction.Approve => {
  const { editable } = entry
  const { declared } = redactor
  // Masking keeps the shape.
  const params = declared.value(call.params)
  const argumentsSummary = Redaction.summarize(call.params, declared)
  // A preview in words may leave out the arguments, so they are added.
  const display =
    preview.details === undefined && argumentsSummary.endsWith("…") ? { ...plain(call, redactor), ...preview } : preview
  const onceOnly = Boolean(own ?? needs ?? display.truncated)
  return Interaction.approve({
    toolCallId: call.id,
    tool: call.name,
    argumentsSummary,
    ...argumentsOf(params),
    approvalKey: declared.text(key),
    options: PermissionOption.offered({ editable: editable !== undefined, onceOnly }),
    display: declared.value(display) as ToolDisplay,
    ...(editable && { editable: editableOf(editable, params) }),
    ...(onceOnly && { onceOnly }),
    ...(needs ? { needs } : delegated && { delegated })
  })
}

const plain = (call: ToolCall, redactor: Redaction.Redactor): ToolDisplay => {
  // Masked before it is cut: a secret that the cut splits would not be found any more.
  const details = JSON.stringify(redactor.declared.value(call.params), null, 2) ?? ""
  const shortened = Truncated.make(details, shownWhole)
  return shortened === undefined
    ? { details, format: "json" }
    : { details: Truncated.text(shortened), format: "text", truncated: true }
}

const argumentsOf = (params: unknown): Pick<Interaction.Approve, "arguments" | "argumentsCut"> => {
  if (!Signature.isRecord(params)) return {}
  const argumentsCut: Array<string> = []
  const shown = Object.entries(params).map(([name, value]) => {
    const shortened = Truncated.make(typeof value === "string" ? value : canonicalJson(value), argumentWhole)
    if (shortened === undefined) return [name, value] as const
    argumentsCut.push(name)
    return [name, Truncated.text(shortened)] as const
  })
  return { arguments: Object.fromEntries(shown), ...(argumentsCut.length > 0 && { argumentsCut }) }
}

const withWarnings = (display: ToolDisplay, warnings: ReadonlyArray<string>): ToolDisplay =>
  warnings.length === 0 ? display : { ...display, warnings: [...(display.warnings ?? []), ...warnings] }

const editableOf = (editable: NonNullable<ToolRegistry.Entry["editable"]>, params: unknown) => ({
  ...editable,
  current: Signature.isRecord(params)
    ? Object.fromEntries(editable.parameters.filter((name) => name in params).map((name) => [name, params[name]]))
    : {}
})
