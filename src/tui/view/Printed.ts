/** What running commands print: the last lines of each while it runs and behind it, and the whole of the last ones on demand. */
import { PrintedTail } from "../../builtin/PrintedTail.js"
import type { Text } from "../console/ConsoleScreen.js"
import { ToolCallId } from "../../core/Id.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as PrintedStyles from "../terminal/PrintedStyles.js"
import * as StyledText from "../terminal/StyledText.js"
import { PrintedRows } from "../../tool/PrintedRows.js"

export interface Printed {
  readonly begin: (id: ToolCallId, title: string, isShown: boolean) => void
  /** A command of the person's own, who wants to read it: more of it is shown, and as it is. Yields what it is called here. */
  readonly beginOwn: (command: string) => ToolCallId
  /** Takes the next piece of what a call prints, and how many lines more were printed before it than came here. */
  readonly take: (id: ToolCallId, text: string, unshown?: number) => void
  /** A command of the person's own has run for so many seconds. */
  readonly ran: (id: ToolCallId, seconds: number) => void
  /** The last lines of a call that has ended, for the transcript. */
  readonly end: (id: ToolCallId, columns: number, hasFailed: boolean) => ReadonlyArray<string>
  /** The last lines of the calls that run. */
  readonly live: (columns: number, rows: number) => ReadonlyArray<string>
  /** All that a call printed which printed anything: of those the one that began or ended last. */
  readonly whole: () => Text | undefined
}

/** `opens` says whether a key opens the whole of it. */
export const make = (options: {
  readonly color: boolean
  readonly opens?: boolean
  readonly signs?: Glyphs.Glyphs
}): Printed => {
  const { more } = options.signs ?? Glyphs.drawn
  const dim = options.color ? StyledText.weights.dim : 0
  /** In the order in which they began, or ended if they have. */
  const calls = new Map<ToolCallId, Call>()
  const rowOf = (text: string, columns: number, { isOwn }: Pick<Call, "isOwn">, weight = isOwn ? 0 : dim): string =>
    StyledText.cut(
      [
        StyledText.run(isOwn ? ownIndent : indent),
        ...PrintedStyles.runs(text).map(({ style, text }) => ({ text, style: StyledText.over(weight, style) }))
      ],
      columns
    )
  let own = 0
  const begin = (id: ToolCallId, call: Pick<Call, "title" | "isShown" | "isOwn">): void => {
    calls.set(id, {
      ...call,
      text: new KeptText(),
      styles: PrintedStyles.make(options.color),
      last: makeLast(),
      runs: true,
      seconds: 0
    })
    for (const [old, call] of calls) {
      if (calls.size <= kept) return
      if (!call.runs) calls.delete(old)
    }
  }
  return {
    begin: (id, title, isShown) => begin(id, { title, isShown, isOwn: false }),
    beginOwn: (command) => {
      const id = ToolCallId.make(`!${own++}`)
      begin(id, { title: `!${command}`, isShown: true, isOwn: true })
      return id
    },
    take: (id, text, unshown = 0) => {
      const call = calls.get(id)
      if (call === undefined || text === "") return
      const rows = call.text.take(call.styles.take(text))
      call.last.take(rows, call.text.open, unshown)
    },
    ran: (id, seconds) => {
      const call = calls.get(id)
      if (call !== undefined) call.seconds = seconds
    },
    end: (id, columns, hasFailed) => {
      const call = calls.get(id)
      if (call === undefined) return []
      call.runs = false
      // What it printed stands on the screen as the last of all now.
      calls.delete(id)
      if (!call.text.isEmpty) calls.set(id, call)
      if (!call.isShown) return []
      const isLong = hasFailed || call.isOwn
      const { above, lines } = call.last.lines(isLong ? longTail : tail)
      // One line is said behind the mark, where it is no failure.
      if (lines.length === 0 || (!isLong && above === 0 && lines.length === 1)) return []
      const way = options.opens === true ? " · Ctrl-O shows all" : ""
      const before =
        above === 0 ? [] : [rowOf(`${more}${above} ${above === 1 ? "line" : "lines"} above${way}`, columns, call, dim)]
      return [...before, ...lines.map((line) => rowOf(line, columns, call))]
    },
    live: (columns, height) => {
      const running = [...calls.values()].filter(
        ({ isOwn, isShown, runs, text }) => isShown && runs && (isOwn || !text.isEmpty)
      )
      const each = Math.max(1, Math.floor(height / Math.max(1, running.length)) - 1)
      const rows = running.flatMap((call) => [
        ...(running.length > 1 ? [rowOf(call.title, columns, call)] : []),
        ...call.last
          .lines(Math.min(each - (call.isOwn ? 1 : 0), call.isOwn ? longTail : tail))
          .lines.map((line) => rowOf(line, columns, call)),
        ...(call.isOwn && (call.text.isEmpty || call.seconds > 0) ? [rowOf(stillRuns(call), columns, call, dim)] : [])
      ])
      return rows.slice(-height)
    },
    whole: () => {
      const call = [...calls.values()].findLast(({ text }) => !text.isEmpty)
      if (call === undefined) return undefined
      const { text, title } = call
      return {
        title: Display.oneLine(title, 60),
        lines: (columns) =>
          text.whole
            .replace(/\n$/, "")
            .split("\n")
            .map((line) => StyledText.rows(PrintedStyles.runs(line), columns, { exact: true }))
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Call {
  readonly title: string
  readonly text: KeptText
  readonly styles: PrintedStyles.PrintedStyles
  readonly last: Last
  readonly isShown: boolean
  readonly isOwn: boolean
  runs: boolean
  seconds: number
}

/** What a call printed: its beginning and its end where it is very much. */
class KeptText {
  private readonly rows = new PrintedRows()
  private readonly first: Array<string> = []
  private room = mostKept
  private readonly rest = new PrintedTail(mostKept)

  /** Takes the next piece; yields the rows that have ended with it. */
  take(piece: string): string {
    const ended = this.rows.push(piece)
    if (ended === "") return ended
    if (this.room > 0) {
      this.room -= ended.length
      this.first.push(ended)
    } else this.rest.push(ended)
    return ended
  }

  /** The row that has no end yet. */
  get open(): string {
    return this.rows.open
  }

  get isEmpty(): boolean {
    return this.first.length === 0 && this.open === ""
  }

  get whole(): string {
    const { leftOut, text } = this.rest.last(Infinity)
    const gap = leftOut === 0 ? "" : `[… ${leftOut} characters are not shown]\n`
    // The end of a row that was cut says little, and may be half of a style.
    return this.first.join("") + gap + (leftOut === 0 ? text : text.slice(text.indexOf("\n") + 1)) + this.open
  }
}

/** The last lines of a text that comes in pieces, without blank ones at its end. */
interface Last {
  /** Rows that have ended, and the one that has not; and lines before them that are not here. */
  readonly take: (rows: string, open: string, unshown: number) => void
  /** As many as wanted, and how many there are above them. */
  readonly lines: (most: number) => { readonly lines: ReadonlyArray<string>; readonly above: number }
}

const isBlank = (line: string): boolean => PrintedStyles.bare(line).trim() === ""

/** They are asked for many times a second, so neither a look nor a piece costs more when much was printed before. */
const makeLast = (): Last => {
  /** Lines that have ended, up to the last one that is not blank; the oldest are dropped. */
  let ended: Array<string> = []
  let count = 0
  /** Blank lines behind those. */
  let blank = 0
  /** The row that has no end yet, and what was given away of it. */
  let open = ""
  let begun = ""
  const upTo = (line: string): ReadonlyArray<string> => [
    ...ended,
    ...Array.from({ length: Math.min(blank, longTail) }, () => ""),
    line
  ]
  return {
    take: (rows, rest, unshown) => {
      count += unshown
      let from = 0
      for (let end = rows.indexOf("\n"); end >= 0; end = rows.indexOf("\n", from)) {
        const row = (begun + rows.slice(from, end)).slice(0, widest)
        begun = ""
        from = end + 1
        if (isBlank(row)) blank++
        else {
          ended = upTo(row).slice(-longTail)
          count += blank + 1
          blank = 0
        }
      }
      begun = (begun + rows.slice(from)).slice(0, widest)
      open = (begun + rest).slice(0, widest)
    },
    lines: (most) => {
      const isOpen = !isBlank(open)
      const lines = (isOpen ? upTo(open) : ended).slice(-most)
      return { lines, above: (isOpen ? count + blank + 1 : count) - lines.length }
    }
  }
}

/** Calls whose output can still be looked at, and characters that are kept of its beginning, and of its end. */
const kept = 8
const mostKept = 1_000_000

/** Lines under a call; the long one of what failed, and of what somebody wants to read. */
const tail = 5
const longTail = 12

/** Characters of a line that can be seen. */
const widest = 2_000

/** Below a command of the person's own, whose end is all that would be seen of some. */
const stillRuns = ({ seconds, text }: Call): string =>
  [...(text.isEmpty ? ["nothing printed yet"] : []), ...(seconds === 0 ? [] : [`${seconds} s`]), "Esc stops it"].join(
    " · "
  )

const indent = "    "
const ownIndent = "  "
