/**
 * The name of a person who decides, and which spellings are one person's.
 *
 * A name keeps the form in which it was first written. Names are compared without regard to case, width, Unicode form,
 * blanks at the ends and invisible characters. Accents and punctuation tell people apart, and so do letters of different
 * scripts. Roles are compared in the same way.
 */
import type * as Brand from "effect/Brand"
import * as Either from "effect/Either"

/** A name that can stand for a person. {@link of} is the only constructor. */
export type Principal = string & Brand.Brand<"Principal">

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The name without blanks at its ends; a left is the end of a sentence about a text that names nobody. */
export const of = (text: string): Either.Either<Principal, string> => {
  const name = spaced(text.normalize("NFC"))
  if (name === "") return Either.left("is empty")
  if (name.length > longest) return Either.left(`has more than ${longest} characters`)
  // A line break in the middle hides something, too. This is the only place that makes a principal.
  return invisible.test(text.replace(ends, ""))
    ? Either.left("holds characters that nobody can see")
    : Either.right(name as Principal)
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** Equal for all spellings of one name. It is for comparing only. */
export const keyOf = (name: string): string => {
  if (plain.test(name)) return name.toLowerCase()
  const shown = spaced(name.normalize("NFKC")).replace(everyInvisible, "")
  // Upper case first: `ß` is `SS`, which no lower case says.
  return spaced(shown.toUpperCase().toLowerCase().normalize("NFKC"))
}

/** The last of each person's entries, in the order of the people. */
export const lastOfEach = <A extends { readonly by: string }>(entries: ReadonlyArray<A>): ReadonlyArray<A> => [
  ...new Map(entries.map((entry) => [keyOf(entry.by), entry])).values()
]

/** The entries of all other people. */
export const others = <A extends { readonly by: string }>(entries: ReadonlyArray<A>, name: string): ReadonlyArray<A> =>
  entries.filter(({ by }) => !isSame(by, name))

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/** Whether both are spellings of one name. */
export const isSame = (one: string, other: string): boolean => one === other || keyOf(one) === keyOf(other)

/** Whether some of the names is a spelling of this one. */
export const isAmong = (names: ReadonlyArray<string>, name: string): boolean =>
  names.some((other) => isSame(other, name))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The most characters of a name. */
const longest = 200

/** Nearly all names: nothing to fold but the case. */
const plain = /^[!-~]+$/

const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}]/u

const everyInvisible = new RegExp(invisible, "gu")

const ends = /^[\s\u2800]+|[\s\u2800]+$/g

/** Blanks as one space each. The pattern for Braille has a blank that is no white space. */
const spaced = (text: string): string => text.replace(/[\s\u2800]+/g, " ").trim()
