/**
 * A projection of events to printed lines and a status line.
 *
 * The main agent's words are printed as they come. The words of other agents are buffered until a row is full or a line
 * ends, and printed behind a {@link Indent}, so that agents that speak at the same time never share a row:
 *
 * ```
 *  words of the main agent alone ───────────────► the screen, piece by piece
 *  words while others work, and of others ──► strand, one an agent ──► whole rows ──► the screen
 *                                                                        ▲
 *                            rows of others wait here while the main agent is in the middle of a line
 * ```
 *
 * On a terminal that draws, all words go through {@link AgentText} instead, and come as rows of finished blocks; the main
 * agent's open block is drawn live.
 */
import * as Option from "effect/Option"
import type { Live } from "../console/ConsoleScreen.js"
import * as Display from "../terminal/Display.js"
import type { RequestId, SessionId, ToolCallId } from "../../core/Id.js"
import * as Todo from "../../core/Todo.js"
import * as Redaction from "../../core/Redaction.js"
import * as NeedText from "../../interaction/NeedText.js"
import type { AgentEvent, EventOf } from "../../event/AgentEvent.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as Activity from "./Activity.js"
import * as CallEnd from "./CallEnd.js"
import * as Cleaned from "./Cleaned.js"
import * as TodoLines from "./TodoLines.js"
import * as Indent from "./Indent.js"
import * as JobReport from "./JobReport.js"
import * as Piece from "./Piece.js"
import type * as Printed from "./Printed.js"
import * as Retries from "./Retries.js"
import type * as AgentText from "./AgentText.js"
import * as AgentOutline from "./AgentOutline.js"
import { serverWords } from "../../mcp/ServerWords.js"

export interface Options {
  readonly color: boolean
  /** True: the main agent's words and the end of its turn are printed elsewhere. Default: false. */
  readonly quiet?: boolean | undefined
  /** True: the words and answers of people are printed too, as nothing else shows them for a past session. Default: false. */
  readonly retold?: boolean | undefined
  /** True: what the main agent remembers stands above, and is not counted. Default: false. */
  readonly isPastTold?: boolean | undefined
  /** Shown behind what the tree does: how commands run, once that is known. */
  readonly sign?: (() => string | undefined) | undefined
  /** Default: drawn. */
  readonly signs?: Glyphs.Glyphs | undefined
}

export interface Transcript {
  /** The pieces to print for the next event. Without columns lines are not broken. */
  readonly show: (event: AgentEvent, columns: number | undefined) => ReadonlyArray<Piece.Piece>
  /** What the tree does, in one row of this many columns. */
  readonly status: (columns: number) => Activity.Activity | undefined
  readonly outline: AgentOutline.AgentOutline
  /** From now on words, or at least what commands print, are shown by these; nothing is drawn without them. */
  readonly draw: (drawing: Partial<Drawing>) => void
  /** Somebody else has printed: what comes next does not stand below what was printed last here. */
  readonly part: () => void
  /** The next helping of words that are finished, when words are drawn. */
  readonly settle: (columns: number) => { readonly pieces: ReadonlyArray<Piece.Piece>; readonly more: boolean }
  /** All that is left: of words, and of what commands print, without an end of either. */
  readonly rest: (columns: number | undefined) => ReadonlyArray<Piece.Piece>
  /** What changes all the time: the words that are just said. */
  readonly live: Live
}

/** What shows words, drawn, and what commands print. */
export interface Drawing {
  /** Absent: words are printed as they come, or elsewhere. */
  readonly speech?: AgentText.AgentText | undefined
  readonly printed: Printed.Printed
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = ({ color, sign, ...options }: Options): Transcript => {
  const { isPastTold = false, quiet = false, retold = false, signs = Glyphs.drawn } = options
  const style = Display.style(color)
  const outline = AgentOutline.make()
  const strands = new Map<SessionId, Strand>()
  const retries = Retries.make()
  const cleaned = Cleaned.make()
  const todos = new Map<SessionId, ReadonlyArray<Todo.Todo>>()
  const suspensions = new Map<SessionId, string | undefined>()
  /** Whether the main agent's words on the screen end in the middle of a line. */
  let midLine = false
  let waiting: Array<Words> = []
  let last: AgentOutline.Node | undefined
  /** The call whose beginning is the last thing that was printed. */
  let lastCall: ToolCallId | undefined
  /** What went wrong last, which the end of the turn does not say again; and what somebody could not answer last. */
  let lastError: string | undefined
  let lastFailed: RequestId | undefined
  let columns: number | undefined
  let pieces: Array<Piece.Piece> = []
  let speech: AgentText.AgentText | undefined
  let printed: Printed.Printed | undefined

  const put = (words: Words): void => {
    const { node } = words
    if (node.depth === 0) midLine = false
    else if (midLine) {
      waiting.push(words)
      // An agent that stops in the middle of a line must not block the others for ever.
      if (waiting.length > patience) breakLine()
      return
    }
    const rows = Indent.rows({ ...words, changes: last !== node }, { style, columns, signs })
    last = node
    lastCall = undefined
    pieces.push({ whole: true, text: rows.join("\n") })
    if (waiting.length > 0) release()
  }
  const release = (): void => {
    const released = waiting
    waiting = []
    for (const words of released) put(words)
  }
  const breakLine = (): void => {
    pieces.push({ whole: false, text: "\n" })
    midLine = false
    release()
  }
  /** Prints whole rows of an agent, which are as wide as its text may be. */
  const putRows = ({ continues, node, rows }: AgentText.Rows): void => {
    if (node.depth > 0)
      return rows.forEach((text, index) => put({ node, mark: signs.says, text, continues: continues || index > 0 }))
    pieces.push({ whole: true, text: (continues ? rows : ["", ...rows]).join("\n") })
    last = node
    lastCall = undefined
  }
  const flush = (node: AgentOutline.Node): void => {
    const words = speech?.end(node, Indent.room(node, columns))
    if (words !== undefined) putRows(words)
    const strand = strands.get(node.sessionId)
    if (strand === undefined) return
    strands.delete(node.sessionId)
    if (strand.text !== "") put({ node, mark: signs.says, text: strand.text, continues: strand.begun })
  }
  const line = (node: AgentOutline.Node, mark: string, text: string, color = (mark: string) => mark): void => {
    flush(node)
    put({ node, mark: color(mark), text, continues: false })
  }
  const note = (node: AgentOutline.Node, text: string, mark: string = signs.note): void =>
    line(node, node.depth === 0 ? `  ${mark}` : mark, style.dim(text), style.dim)

  /** Adds a piece without line breaks to an agent's row, and prints the rows that are full. */
  const gather = (node: AgentOutline.Node, text: string): void => {
    const strand = strands.get(node.sessionId) ?? { text: "", begun: false }
    strands.set(node.sessionId, strand)
    strand.text += text
    const room = Indent.room(node, columns)
    if (room === Infinity || Display.width(strand.text) <= room * Indent.together(columns)) return
    const words = strand.text.trimEnd()
    const blanks = strand.text.slice(words.length)
    const rows = [...Display.wrap(words, room)]
    // A row that has no room for the blanks behind it is full.
    const open = Display.width((rows.at(-1) ?? "") + blanks) > room ? "" : `${rows.pop() ?? ""}${blanks}`
    for (const row of rows) {
      put({ node, mark: signs.says, text: row, continues: strand.begun })
      strand.begun = true
    }
    strand.text = open
  }
  const say = (node: AgentOutline.Node, text: string): void => {
    if (speech !== undefined) return speech.say(node, text)
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) endLine(node)
      if (part === "") continue
      const alone = node.depth === 0 && !strands.has(node.sessionId) && (midLine || isAlone(outline, node))
      if (!alone) gather(node, part)
      else {
        pieces.push({ whole: false, text: part })
        midLine = true
        last = node
        lastCall = undefined
      }
    }
  }
  const endLine = (node: AgentOutline.Node): void => {
    if (node.depth === 0 && (midLine || (last === node && isAlone(outline, node)))) breakLine()
    else if (strands.has(node.sessionId)) flush(node)
    // An empty line is printed only between lines of one agent.
    else if (last === node && !midLine) put({ node, mark: signs.says, text: "", continues: true })
  }

  /** Prints the last of what a call has printed, behind what its agent has said. */
  const putPrinted = (node: AgentOutline.Node, id: ToolCallId, isLong: boolean): void => {
    const rows = printed?.end(id, columns ?? Infinity, isLong) ?? []
    if (rows.length === 0) return
    flush(node)
    pieces.push({ whole: true, text: rows.join("\n") })
  }
  const given = (): ReadonlyArray<Piece.Piece> => {
    const shown = pieces
    pieces = []
    return shown
  }

  const thought = (at: number): void => {
    const rows = speech?.thought(at, columns ?? Infinity) ?? []
    if (rows.length > 0) pieces.push({ whole: true, text: rows.join("\n") })
  }

  const toolEnded = (
    node: AgentOutline.Node,
    call: AgentOutline.Call | undefined,
    event: EventOf<"ToolCallEnded">
  ): void => {
    if (event.tool === Todo.writer && event.outcome === "succeeded") return
    const child = call === undefined ? undefined : outline.workedFor(node, call)
    const summary = call?.summary ?? node.proposed.get(event.toolCallId) ?? ""
    const succeeded = event.outcome === "succeeded" && event.fault === undefined && child?.completed?.success !== false
    flush(node)
    // Its name, unless the beginning of the call stands right above.
    const named = lastCall === event.toolCallId ? "" : `${event.tool} ${clip(summary, 60)}`.trimEnd()
    const text = CallEnd.words(outline, event, { child, named, succeeded }, { style, signs })
    const own = () => putPrinted(node, event.toolCallId, !succeeded)
    const mark = succeeded ? signs.succeeded : signs.failed
    // Below another call's row it would pass for what that one printed.
    if (named === "") own()
    line(node, node.depth === 0 ? `  ${mark}` : mark, text, succeeded ? style.green : style.red)
    if (named !== "") own()
  }

  const read = (event: AgentEvent): void => {
    const before = event._tag === "ToolCallEnded" ? callOf(outline, event) : undefined
    const node = outline.apply(event)
    const isMain = node.depth === 0
    switch (event._tag) {
      case "TextDelta":
        return isMain && quiet ? undefined : say(node, event.text)
      case "ThinkingDelta":
        return isMain && !quiet ? speech?.think(event.text, event.at) : undefined
      case "BlockEnded":
        if (isMain && midLine) breakLine()
        if (isMain) thought(event.at)
        return flush(node)
      case "TurnStarted": {
        if (isMain) return retold ? quote(node, event.input) : undefined
        const isIcon = signs === Glyphs.drawn && Display.clusters(node.icon ?? "").length === 1
        const { model: above = "" } = node.parent ?? {}
        const other = above === "" || node.model === above ? "" : ` with ${Display.oneLine(node.model)}`
        const isTold = lastCall !== undefined && lastCall === node.toolCallId
        return line(
          node,
          (isIcon && node.icon) || signs.task,
          style.dim(isTold ? `started${other}` : clip(event.input))
        )
      }
      case "ToolOutput":
        return printed?.take(event.toolCallId, event.styled ?? event.text, event.unshown)
      case "ToolCallStarted":
        // What the list says now is shown instead.
        if (event.tool === Todo.writer) return
        printed?.begin(event.toolCallId, `${event.tool} ${event.summary}`, isMain)
        line(node, signs.call, `${style.bold(event.tool)} ${style.dim(clip(event.summary))}`.trimEnd(), style.bold)
        lastCall = midLine ? undefined : event.toolCallId
        return
      case "ToolCallEnded":
        return toolEnded(node, before, event)
      case "TodosChanged": {
        const rows = TodoLines.changes(todos.get(node.sessionId) ?? [], event.items, signs)
        todos.set(node.sessionId, event.items)
        return rows.forEach((row) => note(node, row))
      }
      case "McpServerChanged": {
        const words = serverWords(event)
        return words === undefined ? undefined : note(node, clip(words, 400))
      }
      case "FilesSetAside":
        return event.notices.forEach((notice) => note(node, clip(notice, 800)))
      case "JobEnded":
        return note(node, ...JobReport.ended(event, signs))
      case "ModelCallEnded":
        if (event.finishReason === "content-filter") note(node, refused)
        return event.remark === undefined ? undefined : note(node, clip(event.remark, 400))
      case "ModelRetried":
        return note(
          node,
          retries(event, (reason) => clip(reason, 400))
        )
      case "CompactionEnded":
        return event.quiet === true || event.removed === 0
          ? undefined
          : note(
              node,
              `The conversation was shortened: ${CallEnd.count(event.removed, "message")} went, about ${CallEnd.count(event.tokens, "token")} stay.`
            )
      case "SessionRestored":
        return event.messages === 0 || (isPastTold && node.depth === 0)
          ? undefined
          : note(node, `${CallEnd.count(event.messages, "message")} from before.`)
      case "UserInterjected":
        return node.isRetelling && !retold ? undefined : note(node, `from you: ${clip(event.message, 80)}`, signs.heard)
      case "InteractionRequested":
        return retold ? note(node, `${event.kind}: ${clip(event.summary)}`, "?") : undefined
      case "InteractionVoted": {
        const missing = event.missing === undefined ? "" : `; ${event.missing} needed`
        return note(node, `${NeedText.describeVotes([event]) ?? ""}${missing}`, "!")
      }
      case "InteractionAnswered":
        return retold
          ? note(node, `${event.by}: ${clip(Redaction.summarize(event.value ?? "answered"))}`, "!")
          : undefined
      case "InteractionCancelled":
        return retold ? note(node, "The question was cancelled.") : undefined
      case "InteractorFailed":
        lastFailed = event.requestId
        return note(node, clip(event.reason))
      case "InteractionTimedOut":
        // Who did not answer, and in what time, stands right above.
        if (lastFailed === event.requestId) return
        return note(node, `No answer came in time (${Display.oneLine(event.by)}).`)
      case "PermissionStatusChanged": {
        // A rule more or less is told by whoever changed it.
        if (event.before === undefined && event.suspension === suspensions.get(event.sessionId)) return
        suspensions.set(event.sessionId, event.suspension)
        const suspended = event.suspension === undefined ? "" : `, asking nothing (${event.suspension})`
        const before = event.before === undefined ? "" : `, was ${event.before}`
        return note(node, `mode: ${event.mode}${before}${suspended}`)
      }
      case "Lagged":
        return note(node, `${CallEnd.count(event.missed, "event")} not shown`, signs.more.trim())
      case "AgentError":
        lastError = Display.oneLine(event.message)
        return line(node, signs.failed, style.red(lastError), style.red)
      case "TurnEnded":
        return turnEnded(node, event)
      case "AgentCompleted": {
        // For an agent that a call waits for, the end of that call is printed instead.
        if (isMain || outline.waiting(node) !== undefined) return
        const [mark, color] = event.success ? [signs.succeeded, style.green] : [signs.failed, style.red]
        return line(
          node,
          mark,
          style.dim(`finished: ${CallEnd.figures(outline, node, Activity.duration(event.at - node.began))}`),
          color
        )
      }
    }
  }
  const quote = (node: AgentOutline.Node, text: string): void => {
    for (const [index, row] of Display.sanitize(text).split("\n").entries())
      line(node, index === 0 ? signs.words : " ", style.bold(row))
  }
  const turnEnded = (node: AgentOutline.Node, { detail, reason }: EventOf<"TurnEnded">): void => {
    flush(node)
    if (node.depth > 0) return
    if (midLine) breakLine()
    const told = lastError
    lastError = undefined
    if (quiet || reason === "completed") return
    const why = detail === undefined ? "" : Display.oneLine(detail)
    const because = why === "" || why === told ? "" : `: ${why}`
    const text =
      reason === "cancelled"
        ? style.dim(signs.edge(`cancelled (${why === "" ? "user" : why})`))
        : style.red(signs.edge(`${reason.replace("_", " ")}${because}`))
    put({ node, mark: "", text, continues: false })
  }

  return {
    outline,
    draw: (next) => void ({ printed, speech } = next),
    part: () => {
      last = undefined
      lastCall = undefined
    },
    settle: (width) => {
      columns = width
      const taken = speech?.take((node) => Indent.room(node, width))
      for (const rows of taken?.rows ?? []) putRows(rows)
      return { pieces: given(), more: taken?.more === true }
    },
    live: (columns, rows) => {
      const said = speech?.live(columns, rows) ?? []
      return [...said, ...(printed?.live(columns, rows - said.length) ?? [])]
    },
    status: (columns) => Activity.withSign(outline, columns, sign?.()),
    rest: (width) => {
      columns = width
      if (midLine) breakLine()
      for (const node of outline.nodes()) {
        flush(node)
        for (const id of node.calls.keys()) putPrinted(node, id, true)
      }
      return given()
    },
    show: (event, width) => {
      columns = width
      for (const one of cleaned(event)) read(one)
      return given()
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The part of an agent's line that is not on the screen yet. */
interface Strand {
  text: string
  /** Whether rows of the line are on the screen. */
  begun: boolean
}

type Words = Omit<Indent.Line, "changes">

const refused = "The model refused to say more, or its provider stopped the answer."

/** The most lines of others that wait until the main agent ends its line. */
const patience = 200

const isAlone = (outline: AgentOutline.AgentOutline, node: AgentOutline.Node): boolean =>
  outline.working().every((other) => other === node)

const callOf = (outline: AgentOutline.AgentOutline, { sessionId, toolCallId }: EventOf<"ToolCallEnded">) =>
  Option.getOrUndefined(outline.of(sessionId))?.calls.get(toolCallId)

const clip = (text: string, limit = 160): string => Display.oneLine(text, limit)
