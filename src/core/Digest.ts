/**
 * Canonical JSON and its SHA-256: the identity of a tool call's arguments and of an audit record.
 *
 * @since 0.1.0
 */
import { canonicalJson } from "./CanonicalJson.js"
import { nodeCrypto } from "./NodeCrypto.js"
import * as Sha256 from "./Sha256.js"

export { canonicalJson } from "./CanonicalJson.js"

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
