/**
 * JSON from outside: answers, edits, the arguments of a model's calls, lines of a peer, files, webhooks. Its depth and
 * its size are bounded where it is read, because everything behind that point works by recursion: decoders, printers,
 * writers.
 *
 * The depth of a text is checked before it is parsed, in one pass that stops at the first level beyond the limit.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { untraced } from "./Untraced.js"

/** How deep objects and arrays may be nested. */
export const maxDepth = 64

/** The default limit for the characters of a text. */
export const maxSize = 16_777_216

export interface Limits {
  /** Characters of the text, or of all texts in a value; every other value counts as one. Default: {@link maxSize}. */
  readonly size?: number | undefined
  /** How deep a text may be nested. Default: {@link maxDepth}. */
  readonly depth?: number | undefined
  /** The value is copied member by member: one named `__proto__` would set a prototype, and is refused at any depth. */
  readonly isCopied?: boolean | undefined
}

/** The JSON is refused. The message is a sentence without its subject, and quotes nothing. */
export class ForeignJsonRefused extends Schema.TaggedError<ForeignJsonRefused>("assent/core/ForeignJsonRefused")(
  "ForeignJsonRefused",
  {
    reason: Schema.Literal("syntax", "depth", "size", "value", "prototype"),
    size: Schema.Number,
    /** What the parser says, without the text: V8 quotes it where it knows no position. */
    detail: Schema.optional(Schema.String)
  }
) {
  override get message(): string {
    switch (this.reason) {
      case "syntax":
        return "is not JSON"
      case "depth":
        return `is nested more than ${maxDepth} levels deep`
      case "size":
        return `is larger than ${this.size} characters`
      case "value":
        return "contains a value that JSON cannot express"
      case "prototype":
        return "has a member named __proto__"
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// reading
// -----------------------------------------------------------------------------------------------------------------

/** Parses a text. Never throws. */
export const parse = (text: string, limits?: Limits): Either.Either<unknown, ForeignJsonRefused> => {
  const refusal = textRefusal(text, limits)
  if (refusal !== undefined) return Either.left(refusal)
  return untraced(() =>
    Either.try({
      try: (): unknown => JSON.parse(text),
      catch: (cause) =>
        refuse("syntax", limits, cause instanceof Error ? echo(cause.message.replace(/, (\.{3})?".*/s, "")) : undefined)
    })
  )
}

/** Why a text is refused before parsing. Nothing when it may be parsed; it may still not be JSON. */
export const textRefusal = (text: string, limits?: Limits): ForeignJsonRefused | undefined => {
  if (text.length > (limits?.size ?? maxSize)) return refuse("size", limits)
  return isTooDeep(text, limits?.depth ?? maxDepth) ? refuse("depth", limits) : undefined
}

/**
 * Why a value that did not come as text is refused; nothing when it is taken. Never throws, whatever the value does.
 */
export const refusal = (value: unknown, limits?: Limits): ForeignJsonRefused | undefined => {
  // The common case: these values cannot nest.
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined) return undefined
  const room = limits?.size ?? maxSize
  try {
    const left = walk(value, maxDepth, room)
    if (left >= 0) return limits?.isCopied === true && namesPrototype(value) ? refuse("prototype", limits) : undefined
    return refuse(left === tooDeep ? "depth" : left === noJson ? "value" : "size", limits)
  } catch {
    // A getter or a proxy of the value threw.
    return refuse("value", limits)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// echoing
// -----------------------------------------------------------------------------------------------------------------

/** How many characters of a foreign text are quoted back to its author. */
const maxEcho = 200

/** The beginning of a foreign text, to quote it back to its author. */
export const echo = (text: string, limit: number = maxEcho): string => {
  if (text.length <= limit) return text
  // Never cut through a surrogate pair.
  const end = isHighSurrogate(text, limit - 2) ? limit - 2 : limit - 1
  return `${text.slice(0, end)}…`
}

/** The first of many foreign texts, each by its beginning, and how many there are more. */
export const few = (texts: ReadonlyArray<string>, most = 20): ReadonlyArray<string> => [
  ...texts.slice(0, most).map((text) => echo(text, 2_000)),
  ...(texts.length > most ? [`and ${texts.length - most} more`] : [])
]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const refuse = (reason: ForeignJsonRefused["reason"], limits: Limits | undefined, detail?: string) =>
  // Made without a stack trace: we make it ourselves, and there may be very many.
  new ForeignJsonRefused({ reason, size: limits?.size ?? maxSize, detail }, true)

const isHighSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xd800

const quote = 0x22
const backslash = 0x5c

/** For a text that is not JSON the result means nothing. */
const isTooDeep = (text: string, most: number): boolean => {
  if (text.length <= most) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > most) return true
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        break
      case quote:
        at = endOfText(text, at)
        if (at < 0) return false
    }
  }
  return false
}

/** The position of the quotation mark that ends the string that begins here. */
const endOfText = (text: string, from: number): number => {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end
    while (text.charCodeAt(before - 1) === backslash) before--
    if ((end - before) % 2 === 0) return end
  }
  return -1
}

const tooLarge = -1
const tooDeep = -2
const noJson = -3

/** How much of `room` is left after the value, or why the value is refused. A cyclic value is too deep. */
const walk = (value: unknown, depth: number, room: number): number => {
  if (room <= 0) return tooLarge
  switch (typeof value) {
    case "string":
      return value.length < room ? room - value.length - 1 : tooLarge
    case "object":
      break
    case "number":
    case "boolean":
    case "undefined":
      return room - 1
    default:
      return noJson
  }
  if (value === null) return room - 1
  if (depth === 0) return tooDeep
  let left = room - 1
  if (Array.isArray(value)) {
    // Holes of a sparse array count as values.
    if (value.length >= room) return tooLarge
    for (let index = 0; index < value.length && left >= 0; index++) left = walk(value[index], depth - 1, left)
    return left
  }
  if (!isPlain(value)) return noJson
  const members = value as { readonly [key: string]: unknown }
  for (const key of Object.keys(members)) {
    left = walk(members[key], depth - 1, left - key.length)
    if (left < 0) return left
  }
  return left
}

/** For a value that is not too deep. */
const namesPrototype = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (Array.isArray(value)) return value.some(namesPrototype)
  return Object.entries(value).some(([key, member]) => key === "__proto__" || namesPrototype(member))
}

/** A plain object, of any realm. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}
