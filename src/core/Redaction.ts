/**
 * Keeps secrets out of whatever is shown, logged or written.
 *
 * Two nets: values the program declared as secret (API keys, passwords), and shapes that well-known tokens have.
 */
import * as Redacted from "effect/Redacted"

export const mask = "[REDACTED]"

/** Replaces declared secrets and token shapes in texts. */
export interface Redactor {
  /** Declares a value as secret from now on. Values under four characters are ignored: masking them would garble text. */
  readonly declare: (secret: Redacted.Redacted | string) => void
  readonly text: (text: string) => string
  /** The same over every string of a JSON-like value. Returns the value itself when nothing was masked. */
  readonly value: (value: unknown) => unknown
  /** For one text that arrives in pieces: a secret that is cut between two of them is masked too. */
  readonly flow: () => Flow
}

/** Masks a text piece by piece. Holds back what may turn out to be a secret until it is known. */
export interface Flow {
  /** Takes the next piece; returns what can be shown by now, which may be nothing. */
  readonly push: (piece: string) => string
  /** Returns what was held back. */
  readonly end: () => string
}

export const make = (secrets: Iterable<Redacted.Redacted | string> = []): Redactor => {
  const known = new Set<string>()
  const redactor: Redactor = {
    declare: (secret) => {
      const value = typeof secret === "string" ? secret : Redacted.value(secret)
      if (value.length < 4) return
      known.add(value)
      // A secret that reaches a sink inside JSON text is escaped there.
      known.add(JSON.stringify(value).slice(1, -1))
    },
    text: (text) => {
      let out = text
      for (const secret of known) if (out.includes(secret)) out = out.split(secret).join(mask)
      return tokenHint.test(out) ? out.replace(tokenShapes, mask) : out
    },
    value: (value) => maskValue(redactor.text, value),
    flow: () => new MaskedFlow(redactor.text, known)
  }
  for (const secret of secrets) redactor.declare(secret)
  return redactor
}

/** Masks token shapes only. */
export const shapesOnly: Redactor = make()

/**
 * A value as a short text for people and logs: a text as it is, a lone field as its value, several as `name=value, …`. At
 * most `limit` characters, secrets masked. May hold line breaks.
 */
export const summarize = (value: unknown, redactor: Redactor = shapesOnly, limit = 200): string => {
  const text = redactor.text(brief(value))
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// Published shapes: OpenAI and Anthropic (sk-…), GitHub (ghp_, gho_, ghs_, ghu_, ghr_, github_pat_), Google (AIza…),
// Slack (xox?-), AWS access key ids (AKIA…), GitLab (glpat-), bearer headers and JSON web tokens.
const tokenShapes =
  /\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bAIza[A-Za-z0-9_-]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bglpat-[A-Za-z0-9_-]{16,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|(?<=\bBearer\s)[A-Za-z0-9._~+/=-]{12,}/g

const tokenHint = /sk-|gh[pousr]_|github_pat_|AIza|xox|AKIA|glpat-|eyJ|Bearer/

const brief = (value: unknown): string => {
  if (typeof value === "string") return value
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value) ?? ""
  const fields = Object.entries(value)
  const shown = (field: unknown) => (typeof field === "string" ? field : (JSON.stringify(field) ?? ""))
  const [only] = fields
  if (fields.length === 1 && only !== undefined) return shown(only[1])
  return fields.map(([name, field]) => `${name}=${shown(field)}`).join(", ")
}

// Longer than any token: what goes on and on is none, and need not be kept.
const longestToken = 16_384

const runCharacter = /[\w.~+/=-]/

/** Where the last characters begin that a token shape may extend over; what comes before them is final. */
const runAt = (text: string): number => {
  let at = text.length
  while (at > 0 && runCharacter.test(text.charAt(at - 1))) at--
  return /Bearer\s$/.test(text.slice(Math.max(0, at - 7), at)) ? at - 7 : at
}

/**
 * Shows a text up to where a secret may have begun. Of token shapes that is where the hint is complete; the hint itself
 * gives nothing away, so what was shown of it is kept as context. Of declared secrets it is their first character.
 */
class MaskedFlow implements Flow {
  private shown = ""
  private held = ""

  constructor(
    private readonly text: (text: string) => string,
    private readonly known: ReadonlySet<string>
  ) {}

  readonly push = (piece: string): string => {
    this.held += piece
    const all = this.shown + this.held
    const run = this.held.length > longestToken ? all.length : runAt(all)
    let cut = tokenHint.test(all.slice(run)) ? run : all.length
    for (const secret of this.known) cut = Math.min(cut, openAt(all, secret))
    // A secret that is complete is not cut in two by the beginning of another.
    for (const secret of this.known) {
      const at = all.lastIndexOf(secret, cut - 1)
      if (at >= 0 && at + secret.length > cut) cut = at
    }
    return this.release(Math.max(cut - this.shown.length, 0))
  }

  readonly end = (): string => this.release(this.held.length)

  private release(length: number): string {
    const raw = this.shown + this.held.slice(0, length)
    const masked = this.text(raw)
    const before = this.shown
    this.held = this.held.slice(length)
    const tail = raw.slice(Math.max(raw.length - 16, runAt(raw)))
    this.shown = masked.endsWith(tail) ? tail : ""
    // A token may have begun in what was shown already.
    let same = 0
    while (same < before.length && masked[same] === before[same]) same++
    return masked.slice(same)
  }
}

/** Where a text may begin to say `secret` without having said it all; its length when it does not. */
const openAt = (text: string, secret: string): number => {
  const first = secret.slice(0, 1)
  for (let at = text.indexOf(first, Math.max(0, text.length - secret.length + 1)); at >= 0;) {
    if (secret.startsWith(text.slice(at))) return at
    at = text.indexOf(first, at + 1)
  }
  return text.length
}

const maskValue = (text: (text: string) => string, value: unknown): unknown => {
  if (typeof value === "string") return text(value)
  if (Array.isArray(value)) {
    let changed = false
    const out = value.map((item) => {
      const masked = maskValue(text, item)
      if (masked !== item) changed = true
      return masked
    })
    return changed ? out : value
  }
  if (typeof value !== "object" || value === null) return value
  let out: Record<string, unknown> | undefined
  for (const [key, member] of Object.entries(value)) {
    const maskedKey = text(key)
    const masked = maskValue(text, member)
    if (masked !== member || maskedKey !== key) {
      out ??= { ...value }
      if (maskedKey !== key) delete out[key]
      out[maskedKey] = masked
    }
  }
  return out ?? value
}
