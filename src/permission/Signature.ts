/** A call in one line, as patterns see it: `name(k=v, k2=v2)` with sorted keys. */
import * as Either from "effect/Either"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Glob from "../core/Glob.js"
import * as WebAddress from "../core/WebAddress.js"
import * as Location from "../shell/Location.js"

export const ofCall = (tool: string, params: unknown): string => signature(tool, params, false)

/**
 * The signature for rules that allow. A value may imitate the signature around it: `content` set to "…, path=src/a", or
 * to "path=src/a" alone, looks like a path argument to `*path=src/*`. In such values every possible separator is
 * masked.
 */
export const toAllow = (tool: string, params: unknown): string => {
  if (!isRecord(params)) return signature(tool, params, false)
  const given = Object.entries(params).filter(([, value]) => value !== undefined)
  // A lone value may have an `=` in it, such as an address, unless it begins like an argument.
  const doubtful = given.length > 1 ? /=/ : imitation
  return signature(
    tool,
    params,
    given.some(([key, value]) => separator.test(key) || imitates(value, doubtful))
  )
}

/** A pattern's globs over signatures with shortened paths: the pattern as written, and with its own paths shortened. */
export const globs = (pattern: string): ReadonlyArray<Glob.Glob> => {
  const short = pattern.replace(/=(?:\.\/+)+/g, "=").replace(/\/(?:\.?\/)+/g, "/")
  return short === pattern ? [Glob.compile(pattern)] : [Glob.compile(pattern), Glob.compile(short)]
}

/** The arguments with their paths in the shortest form; the same value where nothing can be shortened. */
export const withPlaces = (params: unknown, fields: ReadonlyArray<string>, workspace: string | undefined): unknown => {
  if (!isRecord(params)) return params
  const short = (value: unknown): unknown =>
    typeof value === "string"
      ? Location.normal(value, workspace) || "."
      : Array.isArray(value)
        ? value.map(short)
        : value
  const changed = fields.filter((field) => Object.hasOwn(params, field))
  return changed.length === 0
    ? params
    : { ...params, ...Object.fromEntries(changed.map((field) => [field, short(params[field])])) }
}

/** The address of the web that a value is, in its canonical form. */
export const addressIn = (value: unknown): URL | undefined =>
  typeof value === "string" ? Either.getOrUndefined(WebAddress.parse(value)) : undefined

/** The arguments with the address in this field in its canonical form: `HTTPS://EXAMPLE.com` is `https://example.com/`. */
export const withAddress = (params: unknown, field: string | undefined): unknown => {
  if (field === undefined || !isRecord(params) || !Object.hasOwn(params, field)) return params
  const url = addressIn(params[field])
  return url === undefined ? params : { ...params, [field]: url.href }
}

/**
 * To deny: with the address that a lenient tool may reach, where blanks, slashes and a name before the host do not matter. A
 * host with a dot at its end is the same host.
 */
export const withReached = (params: unknown, field: string): unknown => {
  if (!isRecord(params)) return params
  const value = params[field]
  if (typeof value !== "string" || !URL.canParse(value)) return params
  const url = new URL(value)
  url.username = url.password = ""
  url.hostname = url.hostname.replace(/\.+$/, "")
  return { ...params, [field]: url.href }
}

/** Every string in a value, at any depth. */
export const stringsIn = (value: unknown, out: Array<string> = []): ReadonlyArray<string> => {
  if (typeof value === "string") out.push(value)
  else if (Array.isArray(value)) for (const item of value) stringsIn(item, out)
  else if (isRecord(value)) for (const key of Object.keys(value)) stringsIn(value[key], out)
  return out
}

export const shown = (value: unknown): string => (typeof value === "string" ? value : canonicalJson(value))

export const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const signature = (tool: string, params: unknown, masked: boolean): string => {
  if (!isRecord(params)) return params === undefined || params === null ? `${tool}()` : `${tool}(${shown(params)})`
  const members = Object.keys(params)
    .filter((key) => params[key] !== undefined)
    .sort()
    .map((key) => {
      const value = shown(params[key])
      return masked ? `${separator.test(key) ? mask : key}=${value.replace(separators, mask)}` : `${key}=${value}`
    })
  return `${tool}(${members.join(", ")})`
}

const imitation = /(?:,\s*|^)[^\s=,:/?&]*=/
const separator = /[,=\s]/
const separators = /=|,\s*/g
const mask = "\uffff"

const imitates = (value: unknown, doubtful: RegExp): boolean => {
  if (typeof value === "string") return doubtful.test(value)
  if (typeof value !== "object" || value === null) return false
  return doubtful.test(canonicalJson(value)) || stringsIn(value).some((text) => doubtful.test(text))
}
