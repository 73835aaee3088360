/**
 * Text from outside for a model. A mark names its source. Nothing parses the text as an answer, a command or a grant.
 */

/** The text without control characters and without characters that turn the direction of text or hide it. */
export const clean = (text: string): string =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{C}\n\t]/gu, "")
    .replace(/\n{3,}/g, "\n\n")
    .trim()

/** The text between marks that name its source. The text cannot hold the mark at its end. */
export const mark = (source: string, text: string): string =>
  `<foreign-text source=${JSON.stringify(source)}>\n${text.replace(/<(?=\/?foreign-text)/gi, "‹")}\n</foreign-text>`
