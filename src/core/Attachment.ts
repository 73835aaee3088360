/**
 * A file that was given with words: what it is called and how its bytes are found. The bytes themselves are kept once, by
 * their digest; everything else has this description only.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Lazy from "./Lazy.js"

/**
 * The description of an attached file, in journals and events.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Attachment = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    /** A file name, without its directory. */
    name: Schema.String,
    /** Such as `image/png`. */
    mediaType: Schema.String,
    /** Bytes. */
    size: Schema.Number,
    /** SHA-256 of the bytes; lower-case hexadecimal. */
    sha256: Schema.String
  })
)
export type Attachment = typeof Attachment.Type

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * An attachment in a few words, for people and models: `shot.png (image/png, 12 kB)`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const describe = ({ mediaType, name, size }: Attachment): string => `${name} (${mediaType}, ${sized(size)})`

/**
 * A number of bytes for people, in units of a thousand.
 *
 * @since 0.1.0
 * @category conversions
 */
export const sized = (bytes: number): string => {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  const [amount, unit] = bytes < 999_500 ? [bytes / 1_000, "kB"] : [bytes / 1_000_000, "MB"]
  return `${amount < 10 ? Math.round(amount * 10) / 10 : Math.round(amount)} ${unit}`
}

/**
 * The address that stands for content in a stored message.
 *
 * @internal
 */
export const address = (sha256: string): URL => new URL(`${scheme}${sha256}`)

/**
 * The digest that an address names; undefined for every other URL.
 *
 * @internal
 */
export const digestIn = ({ href }: URL): string | undefined =>
  href.startsWith(scheme) ? href.slice(scheme.length) : undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const scheme = "sha256:"
