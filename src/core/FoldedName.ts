/**
 * A name so that all are equal which some file system takes for equal: case, accents and characters without width do not
 * count, nor does a form that stands for another, as `ſ` does for `s`. Whoever uses it is safe when too many names are equal.
 */

/** A path keeps its parts: what only looks like a slash or leads upward stays as it is. */
export const of = (path: string): string =>
  ascii.test(path) ? path.toLowerCase() : path.split("/").map(folded).join("/")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const ascii = /^[\0-\x7f]*$/

const folded = (name: string): string => {
  const plain = name
    .replace(/[^\0-\x7f]/gu, (character) => {
      const form = character.normalize("NFKD")
      return form.includes("/") ? character : form
    })
    .replace(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, "")
    .toUpperCase()
    .toLowerCase()
  return /^\.{0,2}$/.test(plain) ? name : plain
}
