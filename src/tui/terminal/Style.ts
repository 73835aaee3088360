/** Colours and weights of a text on a terminal. */

/** Colours and weights; each closes what it opens. All of them are the identity when colours are off. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly blue: (text: string) => string
  readonly magenta: (text: string) => string
  readonly cyan: (text: string) => string
}

export const style = (color: boolean): Style => (color ? colored : plain)

/** Closes every style. */
export const reset = "\x1b[0m"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sgr = (code: number) => (text: string) => (text === "" ? "" : `\x1b[${code}m${text}${reset}`)
const identity = (text: string): string => text

const colored: Style = {
  bold: sgr(1),
  dim: sgr(2),
  red: sgr(31),
  green: sgr(32),
  yellow: sgr(33),
  blue: sgr(34),
  magenta: sgr(35),
  cyan: sgr(36)
}
const plain: Style = {
  bold: identity,
  dim: identity,
  red: identity,
  green: identity,
  yellow: identity,
  blue: identity,
  magenta: identity,
  cyan: identity
}
