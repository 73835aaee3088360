/**
 * Canonical JSON and its SHA-256: the identity of a tool call's arguments and of an audit record.
 *
 * @since 0.1.0
 */
import { nodeCrypto } from "./NodeCrypto.js"
import * as Sha256 from "./Sha256.js"

/**
 * JSON with object keys sorted at every depth and no white space, so equal values have equal text.
 * `undefined` members are left out, as in `JSON.stringify`. Throws for what JSON cannot write: cycles and bigints.
 *
 * @since 0.1.0
 * @category conversions
 */
export const canonicalJson = (value: unknown): string => JSON.stringify(sortKeys(value)) ?? "null"

/**
 * Lower-case hexadecimal SHA-256 of the value's canonical JSON.
 *
 * @since 0.1.0
 * @category conversions
 */
export const digest = (value: unknown): string => sha256(canonicalJson(value))

/**
 * Lower-case hexadecimal SHA-256 of bytes, or of a text's UTF-8 bytes. Node's is many times faster than ours.
 *
 * @since 0.1.0
 * @category conversions
 */
export const sha256 = (text: string | Uint8Array): string =>
  nodeCrypto()?.createHash("sha256").update(text).digest("hex") ??
  Sha256.hex(Sha256.digest(typeof text === "string" ? bytesOf(text) : text))

/**
 * Lower-case hexadecimal HMAC-SHA-256 of a text's UTF-8 bytes.
 *
 * @since 0.1.0
 * @category conversions
 */
export const hmacSha256 = (key: string, text: string): string =>
  nodeCrypto()?.createHmac("sha256", key).update(text).digest("hex") ??
  Sha256.hex(Sha256.hmac(bytesOf(key), bytesOf(text)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!isRecord(value)) return value
  if (typeof value["toJSON"] === "function") return sortKeys(value["toJSON"]())
  const sorted: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    const member = sortKeys(value[key])
    // A plain assignment to `__proto__` would set the prototype and add no member.
    if (key === "__proto__") Object.defineProperty(sorted, key, { value: member, enumerable: true })
    else sorted[key] = member
  }
  return sorted
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null
