/** What is wrong with a text that is to be JSON, and where, behind a plural subject such as "the arguments". */
import * as Either from "effect/Either"
import * as UntrustedJson from "./UntrustedJson.js"

/** Nothing for JSON that may be read. */
export const of = (text: string): string | undefined => {
  const parsed = UntrustedJson.parse(text)
  if (Either.isRight(parsed)) return undefined
  const { detail = `the text ${parsed.left.message}` } = parsed.left
  // Engines say it in their own words; a text that was cut off is what happens, and is said in ours.
  const isCut = /end of |EOF|unterminated s/i.test(detail) || Number(/ position (\d+)/.exec(detail)?.[1]) >= text.length
  return `are no JSON: ${isCut ? `the text ends too early, after character ${text.length}` : detail}`
}
