/**
 * What stands for the kind of a row, and between its parts: signs for people who look, words for those who listen, to whom
 * a screen reader says "vertical line" and "check mark", or nothing.
 */

/** How rows are marked: by drawn signs, or in words for a screen reader. */
export interface Glyphs {
  /** Before an agent's words, behind its name. */
  readonly says: string
  /** Before the words that began a turn. */
  readonly words: string
  readonly task: string
  readonly call: string
  readonly succeeded: string
  readonly failed: string
  readonly note: string
  /** Before what a person said meanwhile. */
  readonly heard: string
  /** Before what is left out. */
  readonly more: string
  /** Between two facts. */
  readonly between: string
  /** Around how a turn ended. */
  readonly edge: (text: string) => string
  /** Before lines that were quoted or belong to somebody else. */
  readonly bar: string
  /** Before the one of a list that there is now, and before the others. */
  readonly present: readonly [present: string, other: string]
}

export const drawn: Glyphs = {
  says: "▸",
  words: "›",
  task: "○",
  call: "●",
  succeeded: "✓",
  failed: "✗",
  note: "·",
  heard: "↳",
  more: "… ",
  between: " · ",
  edge: (text) => `— ${text} —`,
  bar: "│ ",
  present: ["● ", "  "]
}

export const said: Glyphs = {
  says: ":",
  words: "words:",
  task: "begins:",
  call: "calls",
  succeeded: "done:",
  failed: "failed:",
  note: ":",
  heard: ":",
  more: "",
  between: ", ",
  edge: (text) => text,
  // Blanks are not said, and still keep apart what is quoted for those who look.
  bar: "  ",
  present: ["now: ", ""]
}

/** Those of a screen. */
export const of = ({ signs }: { readonly signs?: "drawn" | "said" | undefined }): Glyphs =>
  signs === "said" ? said : drawn
