/**
 * Canonical JSON and its SHA-256: the identity of a tool call's arguments and of an audit record.
 *
 * @since 0.1.0
 */
import { hmac } from "@noble/hashes/hmac.js"
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js"
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js"
import { canonicalJson } from "./CanonicalJson.js"
import { nodeCrypto } from "./NodeCrypto.js"

export { canonicalJson } from "./CanonicalJson.js"

/**
 * Lower-case hexadecimal SHA-256 of the value's canonical JSON.
 *
 * @since 0.1.0
 * @category conversions
 */
export const digest = (value: unknown): string => sha256(canonicalJson(value))

/**
 * Lower-case hexadecimal SHA-256 of bytes, or of a text's UTF-8 bytes. Node's own is many times faster.
 *
 * @since 0.1.0
 * @category conversions
 */
export const sha256 = (text: string | Uint8Array): string =>
  nodeCrypto()?.createHash("sha256").update(text).digest("hex") ??
  bytesToHex(nobleSha256(typeof text === "string" ? utf8ToBytes(text) : text))

/**
 * Lower-case hexadecimal HMAC-SHA-256 of a text's UTF-8 bytes.
 *
 * @since 0.1.0
 * @category conversions
 */
export const hmacSha256 = (key: string, text: string): string =>
  nodeCrypto()?.createHmac("sha256", key).update(text).digest("hex") ??
  bytesToHex(hmac(nobleSha256, utf8ToBytes(key), utf8ToBytes(text)))
