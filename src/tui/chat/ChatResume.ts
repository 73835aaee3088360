/** Going on with another session in a chat: a list to pick from, and what was said last. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { DialogClosed, Service as Screen } from "../console/ConsoleScreen.js"
import type { AgentEvent } from "../../event/AgentEvent.js"
import * as Replay from "../../journal/Replay.js"
import * as SessionFork from "../../journal/SessionFork.js"
import type { Loaded, Page, Place } from "../../journal/SessionStore.js"
import type { Listed } from "../../journal/SessionSummary.js"
import type { StoreUnusable } from "../../journal/StoreError.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as SessionName from "../../host/SessionName.js"
import * as Piece from "../view/Piece.js"
import * as SessionReport from "../view/SessionReport.js"
import * as Transcript from "../view/Transcript.js"

/** Where a session is to be gone on with. */
export interface Where {
  readonly workspace: string
  /** The session that is there now. */
  readonly present?: string | undefined
}

/** The session that a chat goes on with. */
export interface Resumed {
  readonly session: Listed
}

/** The session that a word names, or a sentence that says why a chat cannot go on with it here. */
export const choose = (
  sessions: SessionName.Sessions,
  name: string,
  where: Where
): Effect.Effect<Either.Either<Listed, string>, StoreUnusable> =>
  Effect.map(
    SessionName.find(sessions, name),
    Either.flatMap((found) =>
      found === undefined ? Either.left(`There is no session ${Display.oneLine(name, 80)}.`) : fitting(found, where)
    )
  )

/** Shows the sessions, last used first, until one is picked, or named by number or id. Nothing when the person wants none. */
export const pick = (
  screen: Screen,
  sessions: SessionName.Sessions,
  where: Where
): Effect.Effect<Listed | undefined, StoreUnusable> =>
  Effect.gen(function* () {
    const { found, isAll } = yield* lastOf(sessions, where)
    if (found.length === 0) {
      yield* screen.printLine("There is no other session to resume.")
      return undefined
    }
    const style = Display.style(screen.color)
    const now = yield* Clock.currentTimeMillis
    // The mark, the number, and the last column.
    const columns = Math.max(16, (yield* screen.columns) - 8)
    const choices = found.map((one) => ({
      text: one.rootSessionId,
      label: SessionReport.pickable(one, { columns, now })
    }))
    const more = isAll ? [] : [style.dim(`${Glyphs.of(screen).more}and more: assent sessions`)]
    const picking = screen.dialog("Resume which session?", (ask) => {
      const go = (lines: ReadonlyArray<string>): Effect.Effect<Listed | undefined, DialogClosed | StoreUnusable> =>
        Effect.flatMap(
          ask({
            lines: [
              ...more,
              ...lines,
              style.dim(
                `a number, some letters, or the beginning of an id; ${screen.reads === "lines" ? "nothing" : "Escape"} for none`
              )
            ],
            choices,
            label: "session> ",
            keys: numbers(choices.length),
            back: true,
            followUp: true,
            commands: false
          }),
          (line) => {
            const word = line.trim()
            if (word === "") return Effect.succeed(undefined)
            const numbered = /^\d{1,3}$/.test(word) ? found[Number(word) - 1] : undefined
            // It is looked up anew: another process may have ended meanwhile.
            return Effect.flatMap(
              choose(sessions, numbered?.rootSessionId ?? word, where),
              Either.match({
                onLeft: (why) => go([style.yellow(why)]),
                onRight: (found) => Effect.succeed(found)
              })
            )
          }
        )
      return go([])
    })
    return yield* Effect.catchTag(picking, "DialogClosed", () => Effect.succeed(undefined))
  })

/**
 * The last turns of a session, as they were said; of one that has no end yet, as of a process that was killed, also what
 * was done in it.
 */
export const tellPast = (
  screen: Screen,
  loaded: Loaded,
  { drawn, interactive }: { readonly interactive: boolean; readonly drawn: boolean }
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const turns = SessionFork.turns(loaded)
    if (turns.length === 0) return
    const { color } = screen
    const signs = Glyphs.of(screen)
    const columns = interactive ? yield* screen.columns : Infinity
    const views = () => Promise.all([import("../view/AgentText.js"), import("../view/Printed.js")])
    const [AgentText, Printed] = drawn ? yield* Effect.promise(views) : []
    const draw = (text: string) =>
      AgentText?.inHelpings(text, columns, color) ?? Effect.succeed(Display.sanitize(text).split("\n"))
    // Its own: what has no end here must not count as running on the screen.
    const drawing =
      AgentText === undefined || Printed === undefined
        ? undefined
        : { speech: AgentText.make({ color }), printed: Printed.make({ color }) }
    const style = Display.style(color)
    const last = turns.slice(-shownTurns)
    const before = turns.length - last.length
    const lines: Array<string> = []
    for (const [index, { ended, first, words }] of last.entries()) {
      const end = last[index + 1]?.first ?? Infinity
      const isHeard = loaded.entries.some(({ entry, seq }) => entry._tag === "MessageTaken" && seq > first && seq < end)
      const rows =
        ended === undefined || isHeard
          ? yield* soFar(loaded, [first, end], {
              columns,
              color,
              drawing,
              signs,
              // An answer is to what was said last.
              isTold: ({ _tag }) => ended === undefined || _tag === "UserInterjected"
            })
          : []
      lines.push(
        ...Display.wrap(Display.sanitize(`> ${cut(words, 8, signs)}`), columns).map(style.bold),
        ...rows,
        ...(ended === undefined
          ? [style.dim(signs.edge("this turn has no end yet"))]
          : yield* answerOf(ended.end, draw, signs)),
        ""
      )
    }
    if (before > 0)
      lines.unshift(style.dim(`${signs.more}${before} ${before === 1 ? "turn" : "turns"} before: /rewind lists them`))
    yield* screen.printLine(lines.slice(0, -1).join("\n"))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Sessions in a list. */
const most = 200
const shownTurns = 3
const shownRows = 24

/** Why a session cannot be gone on with here, else the session. */
const fitting = (found: Listed, where: Where): Either.Either<Listed, string> => {
  const { holder, rootSessionId, workspace } = found
  if (rootSessionId === where.present) return Either.left("That is this session.")
  if (holder !== undefined)
    return Either.left(
      `${rootSessionId} runs in process ${holder.pid} on ${Display.oneLine(holder.host)}. Use it there, or end it first with /quit.`
    )
  return workspace === undefined || workspace === where.workspace
    ? Either.right(found)
    : Either.left(`${rootSessionId} works in ${Display.oneLine(workspace)}.`)
}

/** The last sessions of this workspace, those too that run elsewhere now, and whether there are no others. */
const lastOf = (sessions: SessionName.Sessions, where: Where) =>
  Effect.gen(function* () {
    const found: Array<Listed> = []
    let after: Place | undefined
    do {
      const page: Page = yield* sessions.page({ workspace: where.workspace, limit: most + 1, after })
      found.push(...page.sessions.filter((one) => one.rootSessionId !== where.present))
      after = page.next
    } while (after !== undefined && found.length <= most)
    return { found: found.slice(0, most), isAll: found.length <= most }
  })

const numbers = (count: number): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(count > 9 ? [] : Array.from({ length: count }, (_, index) => [String(index + 1), []]))

const cut = (text: string, most: number, { more }: Glyphs.Glyphs): string => {
  const lines = text.split("\n")
  return lines.length <= most ? text : `${lines.slice(0, most).join("\n")}\n${more}${lines.length - most} more lines`
}

/** The rows that a turn between these entries had on the screen, without the words that began it. */
const soFar = (
  { entries }: Loaded,
  [first, end]: readonly [number, number],
  options: {
    readonly columns: number
    readonly color: boolean
    readonly drawing: Transcript.Drawing | undefined
    readonly signs: Glyphs.Glyphs
    readonly isTold: (event: AgentEvent) => boolean
  }
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const transcript = Transcript.make({ color: options.color, signs: options.signs, isPastTold: true })
    if (options.drawing !== undefined) transcript.draw(options.drawing)
    const columns = options.columns === Infinity ? undefined : options.columns
    const teller = Replay.teller()
    const pieces: Array<Piece.Piece> = []
    for (const written of entries) {
      if (written.seq >= end) break
      for (const event of teller(written)) {
        if (written.seq >= first && options.isTold(event)) pieces.push(...transcript.show(event, columns))
        else transcript.outline.apply(event)
        for (let more = columns !== undefined && event._tag === "TextDelta"; more;) {
          const taken = transcript.settle(columns ?? Infinity)
          for (const piece of taken.pieces) pieces.push(piece)
          more = taken.more
          yield* Effect.sleep(0)
        }
      }
    }
    const text = Piece.joined(pieces).map((piece) => piece.text.replace(/\n+$/, ""))
    return text.length === 0 ? [] : lastRows(text.join("\n").replace(/^\n+/, "").split("\n"), options.signs)
  })

const lastRows = (rows: ReadonlyArray<string>, { more }: Glyphs.Glyphs): ReadonlyArray<string> => {
  const above = rows.length - shownRows
  return above > 1 ? [`${more}${above} rows above`, ...rows.slice(-shownRows)] : rows
}

const answerOf = (
  end: NonNullable<SessionFork.Turn["ended"]>["end"],
  draw: (text: string) => Effect.Effect<ReadonlyArray<string>>,
  signs: Glyphs.Glyphs
): Effect.Effect<ReadonlyArray<string>> => {
  switch (end._tag) {
    case "Completed":
    case "TurnLimit":
      return Effect.map(draw(end.text), (rows) => lastRows(rows, signs))
    case "Cancelled":
      return Effect.succeed([signs.edge(`cancelled (${end.reason})`)])
    case "Failed":
      return Effect.succeed([signs.edge(`failed: ${Display.oneLine(end.error, 200)}`)])
    case "Halted":
    case "Denied":
      return Effect.succeed([signs.edge(Display.oneLine(end.detail, 200))])
  }
}
