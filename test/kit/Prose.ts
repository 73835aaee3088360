/**
 * What a test can hold of plain English: short sentences that begin with their subject.
 *
 * Code in backticks counts as one word, and each cell of a table as a paragraph. A colon and a semicolon end a sentence.
 */

/** The sentences of a Markdown text. Headings and blocks of code are none. */
export const sentences = (markdown: string): ReadonlyArray<string> => {
  const paragraphs: Array<string> = []
  let open = false
  for (const line of markdown.replace(/```[^]*?```|<!--[^]*?-->/g, "").split("\n")) {
    const item = /^\s*(?:[-*]|\d+\.)\s+(.*)$/.exec(line)?.[1]
    if (/^\s*\|/.test(line)) paragraphs.push(...line.split("|").filter((cell) => /\w/.test(cell)))
    else if (item !== undefined) paragraphs.push(item)
    else if (line.trim() !== "" && !line.startsWith("#")) {
      if (open) paragraphs.push(`${paragraphs.pop() ?? ""} ${line.trim()}`)
      else paragraphs.push(line.trim())
    }
    open = line.trim() !== "" && !/^(?:\s*\||#)/.test(line)
  }
  return paragraphs.flatMap((paragraph) =>
    paragraph
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replace(/`[^`]*`/g, "CODE")
      .split(/(?<=[.!?:;])\s+/)
      .filter((sentence) => /\w/.test(sentence))
  )
}

/** What is wrong with a sentence. */
export const fault = (sentence: string): string | undefined => {
  const count = sentence.split(/\s+/).filter((word) => /\w/.test(word)).length
  if (count > most) return `${count} words: ${sentence}`
  return openings.test(sentence.trim()) ? `begins without its subject: ${sentence}` : undefined
}

/** What is wrong with the subject of a commit: it is an imperative of at most 60 characters, without a full stop. */
export const subjectFault = (subject: string): string | undefined => {
  const [verb = ""] = subject.split(" ")
  if (subject.length > 60) return `${subject.length} characters: ${subject}`
  if (/[.!…]$/.test(subject)) return `ends with a full stop: ${subject}`
  if (!/^[A-Z][a-z]+,?$/.test(verb)) return `begins without a verb: ${subject}`
  return /(?:[^e]ed|ing)$/.test(verb) && !verbs.has(verb) ? `is no imperative: ${subject}` : undefined
}

/** Imperatives that end like participles. */
const verbs = new Set(["Bring", "Embed", "Ping", "Shed", "Spring", "String", "Swing", "Wed"])

const most = 20

/** They hide who does what. */
const openings = /^(?:Whoever|Whatever|Who |What .* is\b|Where .*,|So (?:is|are)|Of |Nobody|None )/
