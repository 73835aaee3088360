/**
 * What agents say and think, on its way to a terminal that draws: words as Markdown, block by block, and thoughts in
 * one line that can be unfolded. It is loaded with the first turn, because its parser and its colours take longer to
 * load than a prompt takes to appear.
 */
import * as Effect from "effect/Effect"
import type { SessionId } from "../../core/Id.js"
import * as CodeColors from "../terminal/CodeColors.js"
import * as Display from "../terminal/Display.js"
import * as MarkdownStream from "../terminal/MarkdownStream.js"
import * as StyledText from "../terminal/StyledText.js"
import * as Output from "../process/Output.js"
import * as Screen from "../process/Screen.js"
import * as Activity from "./Activity.js"
import type { Node } from "./AgentOutline.js"

/** Rows of an agent's words. */
export interface Rows {
  readonly node: Node
  readonly rows: ReadonlyArray<string>
  /** Rows of the same words were taken before. */
  readonly continues: boolean
}

export interface AgentText {
  /** Takes words of an agent. */
  readonly say: (node: Node, text: string) => void
  /** The next helping of finished rows of all agents; `columns` are those for the agent's text. */
  readonly take: (columns: (node: Node) => number) => { readonly rows: ReadonlyArray<Rows>; readonly more: boolean }
  /** All that is left of an agent's words, which are complete. */
  readonly end: (node: Node, columns: number) => Rows | undefined
  /** Takes a thought of the main agent, at this time in milliseconds since the epoch. */
  readonly think: (text: string, at: number) => void
  /** The thought is complete: its rows, or one that says how long it took. None when nothing was thought. */
  readonly thought: (at: number, columns: number) => ReadonlyArray<string>
  /** Shows thoughts whole from now on, or no longer; yields rows that say so, with the last thought. */
  readonly unfold: (columns: number) => ReadonlyArray<string>
  /** What the main agent is saying or thinking. */
  readonly live: (columns: number, rows: number) => ReadonlyArray<string>
}

export const make = (options: { readonly color: boolean }): AgentText => {
  const colors = options.color ? CodeColors.ofCode : undefined
  const dim = options.color ? StyledText.weights.dim : 0
  const spoken = new Map<SessionId, Spoken>()
  const thinking: { text: string; since: number | undefined } = { text: "", since: undefined }
  let last = ""
  let unfolded = false

  const thoughtRows = (text: string, columns: number): ReadonlyArray<string> =>
    StyledText.rows([{ text: text.trim(), style: dim }], columns, { margin: thoughtMargin })

  return {
    say: (node, text) => {
      const known = spoken.get(node.sessionId)
      const words = known ?? { node, stream: MarkdownStream.make({ color: options.color, colors }), begun: false }
      if (known === undefined) spoken.set(node.sessionId, words)
      words.stream.push(text)
    },
    take: (columns) => {
      let more = false
      const rows = [...spoken.values()].flatMap((words): ReadonlyArray<Rows> => {
        const taken = words.stream.take(columns(words.node))
        more ||= taken.more
        return taken.rows.length === 0 ? [] : [begin(words, taken.rows)]
      })
      return { rows, more }
    },
    end: (node, columns) => {
      const words = spoken.get(node.sessionId)
      if (words === undefined) return undefined
      spoken.delete(node.sessionId)
      words.stream.end()
      const rows: Array<string> = []
      for (let more = true; more;) {
        const taken = words.stream.take(columns)
        rows.push(...taken.rows)
        more = taken.more
      }
      return rows.length === 0 ? undefined : begin(words, rows)
    },
    think: (text, at) => {
      thinking.since ??= at
      // What is too long to be read is not kept.
      if (thinking.text.length < longestThought) thinking.text += text
    },
    thought: (at, columns) => {
      const { since = at, text } = thinking
      thinking.text = ""
      thinking.since = undefined
      if (text.trim() === "") return []
      last = text
      if (unfolded) return thoughtRows(text, columns)
      const told = `thought for ${Activity.duration(at - since)} · Ctrl-T shows it`
      return [StyledText.line([{ text: Display.truncate(`  · ${told}`, columns), style: dim }])]
    },
    unfold: (columns) => {
      unfolded = !unfolded
      const told = unfolded ? "Thoughts are shown from now on; Ctrl-T folds them." : "Thoughts are folded."
      return [
        ...(unfolded && last !== "" ? thoughtRows(last, columns) : []),
        StyledText.line([{ text: told, style: dim }])
      ]
    },
    live: (columns, height) => {
      if (thinking.text !== "") {
        const rows = thoughtRows(thinking.text.slice(-longestPeek), columns)
        return rows.slice(-Math.min(height, unfolded ? height : folded))
      }
      const main = [...spoken.values()].find(({ node }) => node.depth === 0)
      const rows = main?.stream.open(columns, height) ?? []
      return main?.begun === false && rows.length > 0 && rows.length < height ? ["", ...rows] : rows
    }
  }
}

/** A short answer as rows, at once. */
export const rowsOf = (text: string, columns: number, color: boolean): ReadonlyArray<string> => {
  const options = { color, colors: color ? CodeColors.ofCode : undefined }
  return MarkdownStream.rows(Display.sanitize(text), columns, options)
}

/** A whole answer as rows for standard output, in helpings: a long one must not hold up what interrupts it. */
export const answer = (text: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    return yield* inHelpings(text, Output.columns("stdout") ?? 80, yield* Screen.wantsColor("stdout"))
  })

/** The same for any place. */
export const inHelpings = (text: string, columns: number, color: boolean): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const stream = MarkdownStream.make({ color, colors: color ? CodeColors.ofCode : undefined })
    stream.push(Display.sanitize(text))
    stream.end()
    const rows: Array<string> = []
    for (let more = true; more;) {
      const taken = stream.take(columns)
      for (const row of taken.rows) rows.push(row)
      more = taken.more
      yield* Effect.sleep(0)
    }
    return rows
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Spoken {
  readonly node: Node
  readonly stream: MarkdownStream.MarkdownStream
  begun: boolean
}

const begin = (words: Spoken, rows: ReadonlyArray<string>): Rows => {
  const continues = words.begun
  words.begun = true
  return { node: words.node, rows, continues }
}

/** Characters. */
const longestThought = 200_000
const longestPeek = 4_000

/** Rows of a folded thought while it is thought. */
const folded = 3

const thoughtMargin = { first: StyledText.run("  "), rest: StyledText.run("  ") }
