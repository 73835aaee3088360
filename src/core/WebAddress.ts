/**
 * Addresses from settings that we send something to: a webhook, a provider, a collector. This is the one place that
 * says which addresses are taken.
 *
 * Only http and https, and never with a user name or a password: those would be shown everywhere the address is shown,
 * and be sent on to every place it redirects to.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"

/**
 * The address is refused. The message is the end of a sentence, and quotes nothing of the address.
 *
 * @since 0.1.0
 * @category errors
 */
export class WebAddressRefused extends Schema.TaggedError<WebAddressRefused>("assent/core/WebAddressRefused")(
  "WebAddressRefused",
  { reason: Schema.Literal("unreadable", "scheme", "credentials") }
) {
  override get message(): string {
    return sentences[this.reason]
  }
}

/** Reads an address. Blanks around it are not part of it. */
export const parse = (text: string): Either.Either<URL, WebAddressRefused> => {
  const address = text.trim()
  // A URL parser drops these characters anywhere, so the address that was read would not be the one that is reached.
  if (/[\s\p{Cc}\\]/u.test(address) || !URL.canParse(address)) return refused("unreadable")
  const url = new URL(address)
  if (url.protocol !== "http:" && url.protocol !== "https:") return refused("scheme")
  // A URL parser takes `http:host` too.
  if (!/^https?:\/\//i.test(address)) return refused("unreadable")
  return url.username === "" && url.password === "" ? Either.right(url) : refused("credentials")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const refused = (reason: WebAddressRefused["reason"]) => Either.left(new WebAddressRefused({ reason }))

const sentences: { readonly [Reason in WebAddressRefused["reason"]]: string } = {
  unreadable: "is not an address such as https://host/path.",
  scheme: "is not an http or https address.",
  credentials: "holds a user name or a password. Leave them out, and set a token or a header instead."
}
