/**
 * Foreign text on which a person decides, with everything in it that cannot be seen spelled out: control characters as
 * `␛`, and what a screen hides, joins or turns round as `⟨U+202E⟩`. Line feeds and tabs stay.
 */
export const visible = (text: string): string => text.replace(controls, picture).replace(unseen, codePoint)

/** The code point of a character, as a person reads it. */
export const codePoint = (char: string): string =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`

/** A control character by its picture, where it has one. */
export const picture = (char: string): string => {
  const code = char.charCodeAt(0)
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : codePoint(char)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const controls = /[\0-\x08\x0b-\x1f\x7f-\x9f]/g

/** Format characters, joiners, selectors, fillers, tags, separators of lines, and a blank that is a letter. */
const unseen = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu
