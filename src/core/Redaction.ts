/**
 * Keeps secrets out of everything that is shown, logged or written.
 *
 * Two nets: values the program declared as secret (API keys, passwords), in plain form and as addresses, JSON, shells and
 * base64 write them; and the shapes of well-known tokens, and of passwords in addresses, assignments and options.
 *
 * @since 0.1.0
 */
import * as Redacted from "effect/Redacted"

/**
 * The text that replaces a secret.
 *
 * @since 0.1.0
 * @category constants
 */
export const mask = "[REDACTED]"

/**
 * Masks texts.
 *
 * @since 0.1.0
 * @category models
 */
export interface Masking {
  readonly text: (text: string) => string
  /** The same over every string of a JSON-like value. Returns the value itself when nothing was masked. */
  readonly value: (value: unknown) => unknown
}

/**
 * Replaces declared secrets and token shapes in texts.
 *
 * @since 0.1.0
 * @category models
 */
export interface Redactor extends Masking {
  /** Declares a value as secret from now on. Values under four characters are ignored: masking them would garble text. */
  readonly declare: (secret: Redacted.Redacted | string) => void
  /**
   * Replaces declared secrets only. For texts that a person decides about: a text that merely looks like a token may be
   * exactly what the person has to see.
   */
  readonly declared: Masking
  /** For one text that arrives in pieces: a secret that is split between two pieces is masked too. */
  readonly flow: () => Flow
}

/**
 * Masks a text piece by piece. Holds back a part that may become a secret until that is known.
 *
 * @since 0.1.0
 * @category models
 */
export interface Flow {
  /** Takes the next piece; returns what can be shown now, which may be empty. */
  readonly push: (piece: string) => string
  /** Returns the rest of the text, which the stream held back. */
  readonly end: () => string
}

/**
 * Masks these secrets, and all that looks like one.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (secrets: Iterable<Redacted.Redacted | string> = []): Redactor => {
  /** The longest first: a spelling may be the beginning of another. */
  const known = new Set<string>()
  const hidden = (text: string): string => {
    let out = text
    for (const secret of known) if (out.includes(secret)) out = out.split(secret).join(mask)
    return out
  }
  const redactor: Redactor = {
    declare: (secret) => {
      const value = typeof secret === "string" ? secret : Redacted.value(secret)
      if (value.length < 4) return
      const all = [...known, ...spellings(value)].sort((one, other) => other.length - one.length)
      known.clear()
      for (const written of all) known.add(written)
    },
    text: (text) => {
      const out = known.size === 0 ? text : hidden(text)
      return out.length >= shortestToken && hint.test(out)
        ? out.replace(passwords, `$1$2${mask}`).replace(tokenShapes, mask)
        : out
    },
    value: (value) => maskValue(redactor.text, value),
    declared: {
      text: (text) => (known.size === 0 ? text : hidden(text)),
      value: (value) => (known.size === 0 ? value : maskValue(hidden, value))
    },
    flow: () => new MaskedFlow(redactor.text, known)
  }
  for (const secret of secrets) redactor.declare(secret)
  return redactor
}

/**
 * Masks token shapes only.
 *
 * @since 0.1.0
 * @category constructors
 */
export const shapesOnly: Redactor = make()

/**
 * A value as a short text for people and logs: a text as it is, a lone field as its value, several as `name=value, …`. At
 * most `limit` characters, secrets masked. May hold line breaks.
 *
 * @since 0.1.0
 * @category conversions
 */
export const summarize = (value: unknown, redactor: Pick<Masking, "text"> = shapesOnly, limit = 200): string => {
  const all = brief(value)
  // A text is masked before it is cut. Only the beginning of a long text is masked: the rest is never shown.
  const first = redactor.text(all.slice(0, limit + longestSecret))
  const text = all.length > limit + longestSecret && first.length <= limit ? redactor.text(all) : first
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`
}

/**
 * Whether a JSON-like value contains a mask. Such a value differs from the original, so it must not run.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isMasked = (value: unknown): boolean => JSON.stringify(value)?.includes(mask) === true

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// Published shapes: OpenAI and Anthropic (sk-…), GitHub (ghp_, gho_, ghs_, ghu_, ghr_, github_pat_), Google (AIza…),
// Slack (xox?-), AWS access key ids (AKIA…), GitLab (glpat-), bearer headers and JSON web tokens; and the password in an
// address, also with slashes and quotes as JSON may have them, unless it is a placeholder or the user's name again. A quote
// belongs to it where the text goes on behind it.
const tokenShapes =
  /(?<=:(?:\/\/|\\\/\\\/)([^\s/?#:]*):)(?!(?:\1|password|PASSWORD|[x.*]+|\$?\{[^}@]*\}+|\$[A-Z_]+)@|\d+(?:,|\\*["'`]))(?:[^\s/?#[<>"'`\\]|\\+[^\s/"'`\\]|\\*["'`](?![\s,;:.)\]}>])){3,}(?=@)|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bAIza[A-Za-z0-9_-]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{16}\b|\bglpat-[A-Za-z0-9_-]{16,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|(?<=\bBearer\s)(?!auth(?:entic|oriz)ation)[\w.~+/=-]{12,}|(?<=\bbearer\s)(?=[a-zA-Z_.~+/=-]*\d)[\w.~+/=-]{12,}/g

const { raw } = String

/** What is called a password in small letters. */
const small = "[Pp]ass(?:w(?:or)?d|phrase)"

/**
 * What stands before a password: variables of a shell, options of programs, parameters of addresses and headers; and members
 * of JSON before what is made by a machine. In code `password: "…"` is mostly made up, and a model has to read it.
 */
const heads = {
  equal: raw`(?:PASSWORD|PASSWD|PASSPHRASE|_PWD|SECRET|TOKEN|API_?KEY|(?:SECRET|ACCESS|PRIVATE)_KEY|(?<=[?&])${small})=|--(?:pass(?:word|wd)?|token|secret|api-key)[= ]|sshpass -p ?`,
  member: raw`(?<!\.)(?:[Ss]ecret|(?:access|auth|refresh|api|id)_?[Tt]oken|(?:api|access|private|secret)_?[Kk]ey)\\*["']`,
  header: raw`[Aa]uthorization\\*["']?`
}

/** What is written in the place of a password, or is a word of code. */
const noPassword = raw`(?!\$(?:[A-Z_]+\b|[({])|<[^>\n"']*>|\{[^}\n"']*\}|%\w+%?|[xX*.]{3}|[Yy]our|[Ee]nter|[\s+,)\]};]|(?:change_?me|auth(?:entic|oriz)ation|[Pp]assword|PASSWORD|secret|string|null|none|true|false)(?![\w-]))`
/** Of a word without quotes. */
const letter = raw`(?:\\.|[^\s\\'"\x60;&|<>(){}$,[\]])`
/** Within the quotes of the second group, at any depth: one that is escaped belongs to it. */
const quoted = raw`(?:'\\''|(?!\2)(?:[^\\\n]|\\+[^\\\n]))`

/** Behind a name in small letters, which may be an argument in code, only a word with a digit is a password. */
const passwords = new RegExp(
  raw`(${heads.equal}|${heads.member}\s?:\s?(?=\\*["'](?=[^"'\n]*\d)[^"'\n]{12})|(?<=\s)-p(?=["'])|${heads.header}[:=] ?\\*["']?(?:[Bb]asic|[Tt]oken) )${noPassword}(?:(\\*["'])${noPassword}${quoted}{3,4000}(?=\2)|(?:(?<=[A-Z]=|-p ?|[Bb]asic |[^-]token |Token )|(?<=[a-z][= ])(?=${letter}*\d))${letter}{3,4000}(?!${letter}|[(\[]))`,
  "g"
)

/** A text that ends where a password may go on. */
const openPassword = new RegExp(
  raw`(?:${heads.equal}|${heads.member}\s?:?\s?|(?<=\s)-p(?=["'])|sshpass(?: -?)?|${heads.header}(?:[:=] ?\\*["']?[A-Za-z]{0,5} ?)?)(?:(\\*["'])${quoted.replace("2", "1")}{0,4000}(?:'\\?'?)?|${letter}{0,4000})\\*$`,
  "g"
)

const hint =
  /:\\?\/\\?\/[^\s/?#]*@|sk-|gh[pousr]_|github_pat_|AIza|xox|AKIA|glpat-|eyJ|[Bb]earer|ass(?:w|phrase)|ASS[WP]|(?:PWD|SECRET|TOKEN|KEY)=|--(?:pass|token|secret|api-key)|sshpass|(?:ecret|oken|[Kk]ey)\\*["']|-p["' ]|uthorization/

/** Length of the shortest text that one of the shapes matches: ` -p'abc'`, and in an address `://:abc@`. */
const shortestToken = 8

/** The ways in which a longer text may write the secret. */
const spellings = (secret: string): ReadonlyArray<string> => {
  // A lone surrogate is no text: no address and no base64 is made of it.
  const text = secret.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
  const address = encodeURIComponent(text)
  const strict = address.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
  const form = strict.replaceAll("%2A", "*").replaceAll("~", "%7E")
  const addresses = [address, strict, form, encodeURI(text)].flatMap((written) => [
    written,
    written.replaceAll("%20", "+"),
    written.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())
  ])
  const coded = [0, 1, 2].flatMap((before) => inBase64(text, before))
  // A secret that reaches a sink inside JSON text, or a command of a shell, is escaped there; in a rule, its wildcards are.
  const json = inJson(secret)
  const quoted = [`'\\''`, `'"'"'`, "''"].map((quote) => secret.replaceAll("'", quote))
  const escaped = [/[^\w@%+=:,./-]/g, /["\\$`]/g].map((special) => secret.replace(special, "\\$&"))
  return [secret, json, inJson(json), ...quoted, ...escaped, secret.replace(/[*?[]/g, "[$&]"), ...addresses, ...coded]
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** A shorter secret could be part of any word. */
const shortestBase64 = 6

/**
 * The characters that base64 always makes of the secret when so many bytes stand before it in a group of three, in both
 * alphabets.
 */
const inBase64 = (text: string, before: number): ReadonlyArray<string> => {
  const bytes = new TextEncoder().encode(text)
  let binary = "\0".repeat(before)
  for (const byte of bytes) binary += String.fromCharCode(byte)
  // The first and last characters of an incomplete group also depend on the neighbouring bytes.
  const first = before === 0 ? 0 : before + 1
  const last = Math.floor((binary.length * 8) / 6)
  const written = btoa(binary).slice(first, last)
  if (written.length < shortestBase64) return []
  const wrapped = before === 0 ? lineLengths.flatMap((length) => inLines(written, length)) : []
  return [written, written.replaceAll("+", "-").replaceAll("/", "_"), ...wrapped]
}

/** Programs that write base64 break its lines at these lengths: `base64` and mail, `openssl` and PEM. */
const lineLengths = [76, 64]

/** The forms of a text that begins a line and is longer than one line. */
const inLines = (text: string, length: number): ReadonlyArray<string> => {
  if (text.length <= length) return []
  const lines = text.match(new RegExp(`.{1,${length}}`, "g")) ?? []
  return [lines.join("\n"), lines.join("\r\n")]
}

/** How many characters behind the shown part a secret may end that begins in the shown part. */
const longestSecret = 20_000

const brief = (value: unknown): string => {
  if (!isRecord(value)) return written(value)
  const names = Object.keys(value)
  const [only] = names
  if (names.length === 1 && only !== undefined) return written(value[only])
  let text = ""
  for (const name of names) text += `${text === "" ? "" : ", "}${name}=${written(value[name])}`
  return text
}

const written = (value: unknown): string => {
  if (typeof value === "string") return value
  // The same text as JSON makes of a number, for a third of its price.
  return typeof value === "number" && Number.isFinite(value) ? String(value) : (JSON.stringify(value) ?? "")
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// Longer than any token: a longer run is no token and need not be kept.
const longestToken = 16_384

/** How much of a run is kept after it was shown: more than any hint. */
const longestContext = 16

const inRun = 1
const inHint = 2

/**
 * The token parts that an ASCII character may belong to. Each hint but two has one of `- _ z K J B : = " '`, or is
 * followed by one; most texts have few of them.
 */
const roles = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  return (/[\w.~+/=:\\-]/.test(character) ? inRun : 0) | (/[-_zKJB:="']/.test(character) ? inHint : 0)
})

const isIn = (text: string, at: number, role: number): boolean => {
  const code = text.charCodeAt(at)
  return code < roles.length && ((roles[code] ?? 0) & role) !== 0
}

/** The start of the last characters that a token shape may extend over; everything before them is final. */
const runAt = (text: string): number => {
  let at = runBefore(text, text.length)
  // The text behind that word is a token because of the word, also where the word is the end of another one.
  while (/[Bb]earer\s$/.test(text.slice(Math.max(0, at - 7), at))) at = runBefore(text, at - 7)
  return at
}

const runBefore = (text: string, end: number): number => {
  let at = end
  while (at > 0 && isIn(text, at - 1, inRun)) at--
  return at
}

/** Where the text ends with who is let in at an address, of whom a password may come; the text's length when nowhere. */
const authorityAt = (text: string): number => {
  const slashes = /^[^]*:\\?\/\\?\//.exec(text)
  const at = slashes === null ? 0 : slashes[0].length
  return at > 0 && !/[\s/?#]|["'`][\s,;:.)\]}>]/.test(text.slice(at)) ? at : text.length
}

/** The same place in a text, or one before it where no token is split, and no password that may go on. */
const shapeAt = (text: string, cut: number): number => {
  if (!hint.test(text)) return cut
  for (const { 0: match, index } of text.matchAll(tokenShapes)) {
    const end = index + match.length
    if (index >= cut) break
    if (end >= cut) return text[end] === "@" ? text.lastIndexOf("/", index) + 1 : runAt(text.slice(0, index))
  }
  // What ends at the cut is looked at alone, too: it is what is shown.
  return Math.min(passwordAt(text, cut), passwordAt(text.slice(0, cut), cut))
}

const passwordAt = (text: string, cut: number): number => {
  for (let from = 0; ;) {
    openPassword.lastIndex = passwords.lastIndex = from
    const open = openPassword.exec(text)
    const whole = passwords.exec(text)
    const first = open !== null && open.index <= (whole?.index ?? cut) ? open : whole
    if (first === null || first.index >= cut) return cut
    from = first.index + first[0].length
    if (first === open || from >= cut) return runAt(text.slice(0, first.index))
  }
}

const mayHint = (text: string): boolean => {
  for (let at = 0; at < text.length; at++) if (isIn(text, at, inHint)) return true
  return false
}

/**
 * Shows a text up to the point where a secret may have begun. For a token shape that point is the end of its hint; the
 * hint itself gives nothing away, so a shown hint is kept as context. For a declared secret it is the first character.
 */
class MaskedFlow implements Flow {
  private shown = ""
  private held = ""

  constructor(
    private readonly text: (text: string) => string,
    private readonly known: ReadonlySet<string>
  ) {}

  push(piece: string): string {
    if (this.held === "" && this.isPlain(piece)) {
      this.shown = contextOf(this.shown, piece)
      return piece
    }
    this.held += piece
    const all = this.shown + this.held
    const isEndless = this.held.length > longestToken
    const run = isEndless ? all.length : runAt(all)
    let cut = isEndless ? all.length : authorityAt(all)
    if (hint.test(all.slice(run))) cut = Math.min(cut, run)
    for (const secret of this.known) cut = Math.min(cut, openAt(all, secret))
    // A complete secret is not split by the beginning of another one.
    for (let before = -1; before !== cut;) {
      before = cut
      if (!isEndless) cut = shapeAt(all, cut)
      for (const secret of this.known) {
        const at = all.lastIndexOf(secret, cut - 1)
        if (at >= 0 && at + secret.length > cut) cut = at
      }
    }
    return this.release(Math.max(cut - this.shown.length, 0))
  }

  end(): string {
    return this.held === "" ? "" : this.release(this.held.length)
  }

  /** The piece holds no secret and no beginning of one, alone or with the text already shown. Most pieces are plain. */
  private isPlain(piece: string): boolean {
    const { known, shown } = this
    const all = shown + piece
    if (known.size === 0 && !mayHint(piece) && !mayHint(shown) && !/bearer|sshpass/.test(all)) return true
    if (hint.test(all) || authorityAt(all) < all.length) return false
    for (const secret of known) if (openAt(all, secret) < all.length || all.includes(secret)) return false
    return true
  }

  private release(length: number): string {
    const raw = this.shown + this.held.slice(0, length)
    const masked = this.text(raw)
    const before = this.shown
    this.held = this.held.slice(length)
    this.shown = masked.slice(Math.max(0, masked.length - longestContext, runAt(masked) - 1))
    // A token may have begun in the text already shown.
    let same = 0
    while (same < before.length && masked[same] === before[same]) same++
    return masked.slice(same)
  }
}

/** The context kept of plain text: the run at its end with what stands before it. It may begin in the text already shown. */
const contextOf = (shown: string, piece: string): string => {
  const least = Math.max(0, piece.length - longestContext)
  let at = piece.length
  while (at > least && isIn(piece, at - 1, inRun)) at--
  return at > 1 || shown === "" ? piece.slice(Math.max(0, at - 1)) : (shown + piece).slice(-longestContext)
}

/** The position where the text ends with an incomplete `secret`; the text's length when there is none. */
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
  if (Array.isArray(value)) return maskItems(text, value)
  return isRecord(value) ? maskMembers(text, value) : value
}

const maskItems = (text: (text: string) => string, items: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  let out: Array<unknown> | undefined
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    const masked = maskValue(text, item)
    if (Object.is(masked, item)) continue
    out ??= items.slice()
    out[index] = masked
  }
  return out ?? items
}

const maskMembers = (text: (text: string) => string, value: { readonly [key: string]: unknown }) => {
  let out: Record<string, unknown> | undefined
  for (const key of Object.keys(value)) {
    const member = value[key]
    const maskedKey = text(key)
    const masked = maskValue(text, member)
    if (Object.is(masked, member) && maskedKey === key) continue
    out ??= { ...value }
    if (maskedKey !== key) delete out[key]
    out[maskedKey] = masked
  }
  return out ?? value
}
