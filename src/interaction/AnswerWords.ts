/**
 * Words behind an answer, as people type them: `no, use ls instead`. Which answers carry words is for the kind to say.
 *
 * A mark parts the words from the answer: `no, …`, `no: …`, `no. …`, `no - …`. A blank alone leaves open whether the first
 * word is an answer: `no use ls` is one, `no problem` is none.
 */

export interface AnswerWords {
  /** In small letters. */
  readonly answer: string
  /** Empty behind a mark with nothing after it. */
  readonly words: string
  /** What parts the two; empty where a blank alone does. */
  readonly mark: string
}

/** Nothing for a line of one word, and for one that begins with no word. */
export const split = (line: string): AnswerWords | undefined => {
  const [, answer, mark = "", words = ""] = form.exec(line.trim()) ?? []
  if (answer === undefined) return undefined
  return { answer: answer.toLowerCase(), words: words.trim(), mark: mark.trim() }
}

/** Whether the answer is only how a phrase begins that means something else. */
export const isPhrase = ({ answer, mark, words }: AnswerWords): boolean =>
  mark === "" && (answer === "never" || (answer === "no" && phrases.test(words)))

/** What is asked of a person whose words may mean either. */
export const unclear = "Is that a yes or a no? Type yes alone, or no and your words for the agent."

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const form = /^([a-z]+)(\s*[,;:.!–—]+\s*|\s+-+\s+|\s+)([^]*)$/i

const phrases = /^(?:problem|worries|worry|objections?|idea|matter|doubt|need)\b/i
