/** What running commands print: the last lines of each while it runs and behind it, and the whole of the last ones on demand. */
import type { Text } from "../../channel/ConsoleScreen.js"
import type { ToolCallId } from "../../core/Id.js"
import * as Display from "../../terminal/Display.js"
import * as StyledText from "../../terminal/StyledText.js"

export interface Printed {
  readonly begin: (id: ToolCallId, title: string, isShown: boolean) => void
  readonly take: (id: ToolCallId, text: string) => void
  /** The last lines of a call that has ended, for the transcript. */
  readonly end: (id: ToolCallId, columns: number, hasFailed: boolean) => ReadonlyArray<string>
  /** The last lines of the calls that run. */
  readonly live: (columns: number, rows: number) => ReadonlyArray<string>
  /** All that the last call printed which printed anything. */
  readonly whole: () => Text | undefined
}

export const make = (options: { readonly color: boolean }): Printed => {
  const dim = options.color ? StyledText.weights.dim : 0
  /** Oldest first. */
  const calls = new Map<ToolCallId, Call>()
  const rowOf = (text: string, columns: number): string =>
    StyledText.line([{ text: Display.truncate(`${indent}${text}`, columns), style: dim }])
  /** The last lines, and how many there are. */
  const tail = ({ text }: Call, most: number): { readonly lines: ReadonlyArray<string>; readonly above: number } => {
    const lines = text.replace(/\n+$/, "").split("\n")
    return text.trim() === ""
      ? { lines: [], above: 0 }
      : { lines: lines.slice(-most), above: Math.max(0, lines.length - most) }
  }
  return {
    begin: (id, title, isShown) => {
      calls.set(id, { title, text: "", isShown, runs: true })
      for (const [old, call] of calls) {
        if (calls.size <= kept) return
        if (!call.runs) calls.delete(old)
      }
    },
    take: (id, text) => {
      const call = calls.get(id)
      if (call !== undefined) call.text += Display.sanitize(text)
    },
    end: (id, columns, hasFailed) => {
      const call = calls.get(id)
      if (call === undefined) return []
      call.runs = false
      if (call.text === "") calls.delete(id)
      if (!call.isShown) return []
      const { above, lines } = tail(call, hasFailed ? tailOfFailed : tailOfDone)
      // One line is said behind the mark, where it is no failure.
      if (lines.length === 0 || (!hasFailed && above === 0 && lines.length === 1)) return []
      const more =
        above === 0 ? [] : [rowOf(`… ${above} ${above === 1 ? "line" : "lines"} above · Ctrl-O shows all`, columns)]
      return [...more, ...lines.map((line) => rowOf(line, columns))]
    },
    live: (columns, height) => {
      const running = [...calls.values()].filter(({ isShown, runs, text }) => isShown && runs && text !== "")
      const each = Math.max(1, Math.min(tailOfDone, Math.floor(height / Math.max(1, running.length)) - 1))
      const rows = running.flatMap((call) => [
        ...(running.length > 1 ? [rowOf(call.title, columns)] : []),
        ...tail(call, each).lines.map((line) => rowOf(line, columns))
      ])
      return rows.slice(-height)
    },
    whole: () => {
      const call = [...calls.values()].findLast(({ text }) => text !== "")
      if (call === undefined) return undefined
      const { text, title } = call
      return {
        title: Display.oneLine(title, 60),
        rows: (columns) =>
          text
            .replace(/\n$/, "")
            .split("\n")
            .flatMap((line) => StyledText.rows([{ text: line, style: 0 }], columns, { exact: true }))
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Call {
  readonly title: string
  text: string
  readonly isShown: boolean
  runs: boolean
}

/** Calls whose output can still be looked at. */
const kept = 8

/** Lines under a call. */
const tailOfDone = 5
const tailOfFailed = 12

const indent = "    "
