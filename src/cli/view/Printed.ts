/** What running commands print: the last lines of each while it runs and behind it, and the whole of the last ones on demand. */
import type { Text } from "../../channel/ConsoleScreen.js"
import { ToolCallId } from "../../core/Id.js"
import * as Display from "../../terminal/Display.js"
import * as PrintedStyles from "../../terminal/PrintedStyles.js"
import * as StyledText from "../../terminal/StyledText.js"

export interface Printed {
  readonly begin: (id: ToolCallId, title: string, isShown: boolean) => void
  /** A command of the person's own, who wants to read it: more of it is shown, and as it is. Yields what it is called here. */
  readonly beginOwn: (command: string) => ToolCallId
  readonly take: (id: ToolCallId, text: string) => void
  /** A command of the person's own has run for so many seconds. */
  readonly ran: (id: ToolCallId, seconds: number) => void
  /** The last lines of a call that has ended, for the transcript. */
  readonly end: (id: ToolCallId, columns: number, hasFailed: boolean) => ReadonlyArray<string>
  /** The last lines of the calls that run. */
  readonly live: (columns: number, rows: number) => ReadonlyArray<string>
  /** All that the last call printed which printed anything. */
  readonly whole: () => Text | undefined
}

/** `opens` says whether a key opens the whole of it. */
export const make = (options: { readonly color: boolean; readonly opens?: boolean }): Printed => {
  const dim = options.color ? StyledText.weights.dim : 0
  /** Oldest first. */
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
      pieces: [],
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
    take: (id, text) => {
      const call = calls.get(id)
      if (call === undefined || text === "") return
      const said = call.styles.take(text)
      if (said === "") return
      call.pieces.push(said)
      call.last.take(said)
    },
    ran: (id, seconds) => {
      const call = calls.get(id)
      if (call !== undefined) call.seconds = seconds
    },
    end: (id, columns, hasFailed) => {
      const call = calls.get(id)
      if (call === undefined) return []
      call.runs = false
      if (call.pieces.length === 0) calls.delete(id)
      if (!call.isShown) return []
      const isLong = hasFailed || call.isOwn
      const { above, lines } = call.last.lines(isLong ? longTail : tail)
      // One line is said behind the mark, where it is no failure.
      if (lines.length === 0 || (!isLong && above === 0 && lines.length === 1)) return []
      const way = options.opens === true ? " · Ctrl-O shows all" : ""
      const more =
        above === 0 ? [] : [rowOf(`… ${above} ${above === 1 ? "line" : "lines"} above${way}`, columns, call, dim)]
      return [...more, ...lines.map((line) => rowOf(line, columns, call))]
    },
    live: (columns, height) => {
      const running = [...calls.values()].filter(
        ({ isOwn, isShown, pieces, runs }) => isShown && runs && (isOwn || pieces.length > 0)
      )
      const each = Math.max(1, Math.floor(height / Math.max(1, running.length)) - 1)
      const rows = running.flatMap((call) => [
        ...(running.length > 1 ? [rowOf(call.title, columns, call)] : []),
        ...call.last
          .lines(Math.min(each - (call.isOwn ? 1 : 0), call.isOwn ? longTail : tail))
          .lines.map((line) => rowOf(line, columns, call)),
        ...(call.isOwn && (call.pieces.length === 0 || call.seconds > 0)
          ? [rowOf(stillRuns(call), columns, call, dim)]
          : [])
      ])
      return rows.slice(-height)
    },
    whole: () => {
      const call = [...calls.values()].findLast(({ pieces }) => pieces.length > 0)
      if (call === undefined) return undefined
      const { pieces, title } = call
      return {
        title: Display.oneLine(title, 60),
        rows: (columns) =>
          pieces
            .join("")
            .replace(/\n$/, "")
            .split("\n")
            .flatMap((line) => StyledText.rows(PrintedStyles.runs(line), columns, { exact: true }))
      }
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Call {
  readonly title: string
  readonly pieces: Array<string>
  readonly styles: PrintedStyles.PrintedStyles
  readonly last: Last
  readonly isShown: boolean
  readonly isOwn: boolean
  runs: boolean
  seconds: number
}

/** The last lines of a text that comes in pieces, without blank ones at its end. */
interface Last {
  readonly take: (piece: string) => void
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
  /** The beginning of the line that has no end yet. */
  let open = ""
  const upTo = (line: string): ReadonlyArray<string> => [
    ...ended,
    ...Array.from({ length: Math.min(blank, longTail) }, () => ""),
    line
  ]
  const addOpen = (text: string): void => {
    if (open.length < widest) open += text.slice(0, widest - open.length)
  }
  return {
    take: (piece) => {
      let from = 0
      for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", from)) {
        addOpen(piece.slice(from, end))
        if (isBlank(open)) blank++
        else {
          ended = upTo(open).slice(-longTail)
          count += blank + 1
          blank = 0
        }
        open = ""
        from = end + 1
      }
      addOpen(piece.slice(from))
    },
    lines: (most) => {
      const isOpen = !isBlank(open)
      const lines = (isOpen ? upTo(open) : ended).slice(-most)
      return { lines, above: (isOpen ? count + blank + 1 : count) - lines.length }
    }
  }
}

/** Calls whose output can still be looked at. */
const kept = 8

/** Lines under a call; the long one of what failed, and of what somebody wants to read. */
const tail = 5
const longTail = 12

/** Characters of a line that can be seen. A bar of progress may never end its line. */
const widest = 2_000

/** Below a command of the person's own, whose end is all that would be seen of some. */
const stillRuns = ({ pieces, seconds }: Call): string =>
  [
    ...(pieces.length === 0 ? ["nothing printed yet"] : []),
    ...(seconds === 0 ? [] : [`${seconds} s`]),
    "Esc stops it"
  ].join(" · ")

const indent = "    "
const ownIndent = "  "
