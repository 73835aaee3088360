/** What a schema refuses about a value that a person wrote, in words: one problem for each place. */
import * as ParseResult from "effect/ParseResult"
import * as Nearest from "./Nearest.js"

/** A place in the value, and what is wrong there. */
export interface SchemaProblem {
  readonly path: ReadonlyArray<PropertyKey>
  /** Without a full stop at its end. */
  readonly message: string
}

/** The problems in the order of the schema. The members of a union are one problem. */
export const of = (error: ParseResult.ParseError): ReadonlyArray<SchemaProblem> => {
  const places = new Map<string, { readonly path: ReadonlyArray<PropertyKey>; readonly messages: Array<string> }>()
  for (const { message, path } of ParseResult.ArrayFormatter.formatErrorSync(error)) {
    // An optional field also reports that `undefined` was expected.
    if (message.startsWith("Expected undefined,")) continue
    const key = JSON.stringify(path.map(String))
    const place = places.get(key) ?? { path, messages: [] }
    if (!place.messages.includes(message)) place.messages.push(message)
    places.set(key, place)
  }
  return [...places.values()].map(({ messages, path }) => ({ path, message: inWords(path, messages) }))
}

/** A path as text, such as `$.whitelist.tools[0]`. A name that is no identifier is quoted, and shortened to `most` characters. */
export const place = (path: ReadonlyArray<PropertyKey>, most = Infinity): string =>
  path.reduce<string>((at, key) => at + step(key, most), "$")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const step = (key: PropertyKey, most: number): string => {
  const name = String(key)
  if (typeof key === "number") return `[${name}]`
  const quoted = JSON.stringify(name)
  return /^[A-Za-z_$][\w$]*$/.test(name)
    ? `.${name}`
    : `[${quoted.length > most ? `${quoted.slice(0, most)}…` : quoted}]`
}

const inWords = (path: ReadonlyArray<PropertyKey>, messages: ReadonlyArray<string>): string => {
  const [first = ""] = messages
  if (first.startsWith("is unexpected")) return unknownField(String(path.at(-1)), first)
  const expected = messages.flatMap((message) => {
    const [, wanted, actual] = /^Expected (.*), actual (.*)$/s.exec(message) ?? []
    return wanted === undefined || actual === undefined ? [] : membersOf(wanted).map((wanted) => ({ wanted, actual }))
  })
  const others = messages.filter((message) => !message.startsWith("Expected "))
  const [{ actual = "" } = {}] = expected
  if (others.length > 0 || expected.length === 0) return others.join("; ") || first
  const wanted = [...new Set(expected.map(({ wanted }) => wanted))]
  const last = wanted.pop() ?? ""
  return `Expected ${wanted.length === 0 ? last : `${wanted.join(", ")} or ${last}`}, actual ${actual}`
}

const unknownField = (name: string, message: string): string => {
  const known = Array.from(message.slice(message.indexOf("expected:")).matchAll(/"([^"]*)"/g), ([, name = ""]) => name)
  const near = Nearest.of(name, known)
  return `there is no such field here${near === undefined ? "" : `. Did you mean ${near}?`}`
}

/** A union is one message if no member takes such a value at all. */
const membersOf = (wanted: string): ReadonlyArray<string> =>
  kindOf(wanted) === wanted ? wanted.split(" | ").map(kindOf) : [kindOf(wanted)]

/** The type of an object or a list is a page of TypeScript. */
const kindOf = (wanted: string): string => {
  if (/^\{ (?:readonly |\{)/.test(wanted)) return "an object"
  return /^(?:ReadonlyArray<|readonly )/.test(wanted) ? "a list" : wanted
}
