/** Going on with another session in a chat: a list to pick from, and what was said last. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { DialogClosed, Service as Screen } from "../../channel/ConsoleScreen.js"
import type { Turn } from "../../journal/SessionFork.js"
import type { Listed } from "../../journal/SessionSummary.js"
import * as Display from "../../terminal/Display.js"
import * as SessionName from "../config/SessionName.js"
import * as SessionReport from "../view/SessionReport.js"

/** The session that a chat goes on with. */
export interface Resumed {
  readonly session: Listed
}

/** Those of a list that can be gone on with here, or else what is in the way of the one that is named. */
export const choose = (
  sessions: ReadonlyArray<Listed>,
  name: string,
  where: { readonly workspace: string; readonly present?: string | undefined }
): Either.Either<Listed, string> =>
  Either.flatMap(SessionName.find(sessions, name), (found) => {
    if (found === undefined) return Either.left(`There is no session ${Display.oneLine(name, 80)}.`)
    const { holder, rootSessionId, workspace } = found
    if (rootSessionId === where.present) return Either.left("That is this session.")
    if (holder !== undefined)
      return Either.left(`${rootSessionId} is run by process ${holder.pid} on ${Display.oneLine(holder.host)}.`)
    return workspace === undefined || workspace === where.workspace
      ? Either.right(found)
      : Either.left(`${rootSessionId} works in ${Display.oneLine(workspace)}.`)
  })

/** Shows the sessions, last used first, until one is named by number or id. Nothing when the person wants none. */
export const pick = (
  screen: Screen,
  sessions: ReadonlyArray<Listed>,
  where: { readonly workspace: string; readonly present?: string | undefined }
): Effect.Effect<Listed | undefined> => {
  const here = sessions.filter(({ rootSessionId }) => Either.isRight(choose(sessions, rootSessionId, where)))
  if (here.length === 0) return Effect.as(screen.printLine("There is no other session to go on with here."), undefined)
  const style = Display.style(screen.color)
  const shown = here.slice(0, most)
  const rows = shown.map((one, index) => `${String(index + 1).padStart(2)}. ${SessionReport.pickable(one)}`)
  const more =
    here.length > shown.length ? [style.dim(`… and ${here.length - shown.length} more: assent sessions`)] : []
  return screen
    .dialog("Go on with which session?", (ask) => {
      const go = (lines: ReadonlyArray<string>): Effect.Effect<Listed | undefined, DialogClosed> =>
        Effect.flatMap(
          ask({
            lines: [...rows, ...more, ...lines, style.dim("a number, or the beginning of an id; nothing for none")],
            label: "session> ",
            keys: numbers(shown.length),
            back: true,
            followUp: true,
            commands: false
          }),
          (line) => {
            const word = line.trim()
            if (word === "") return Effect.succeed(undefined)
            const numbered = /^\d{1,2}$/.test(word) ? shown[Number(word) - 1] : undefined
            if (numbered !== undefined) return Effect.succeed(numbered)
            return Either.match(choose(sessions, word, where), {
              onLeft: (why) => go([style.yellow(why)]),
              onRight: (found) => Effect.succeed(found)
            })
          }
        )
      return go([])
    })
    .pipe(Effect.catchAll(() => Effect.succeed(undefined)))
}

/** The last turns of a session, as they were said. Foreign text is made harmless by whoever draws or prints it. */
export const lastTurns = (
  screen: Screen,
  turns: ReadonlyArray<Turn>,
  draw: (text: string, columns: number) => ReadonlyArray<string>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (turns.length === 0) return
    const style = Display.style(screen.color)
    const columns = yield* screen.columns
    const last = turns.slice(-shownTurns)
    const before = turns.length - last.length
    const lines = last.flatMap(({ ended, words }) => [
      ...Display.wrap(Display.sanitize(`> ${cut(words, 8)}`), columns).map(style.bold),
      ...answerOf(ended?.end, (text) => draw(text, columns)),
      ""
    ])
    if (before > 0)
      lines.unshift(style.dim(`… ${before} ${before === 1 ? "turn" : "turns"} before: /rewind lists them`))
    yield* screen.printLine(lines.slice(0, -1).join("\n"))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Sessions in a list. */
const most = 15
const shownTurns = 3
const shownRows = 24

const numbers = (count: number): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(count > 9 ? [] : Array.from({ length: count }, (_, index) => [String(index + 1), []]))

const cut = (text: string, most: number): string => {
  const lines = text.split("\n")
  return lines.length <= most ? text : `${lines.slice(0, most).join("\n")}\n… ${lines.length - most} more lines`
}

const answerOf = (
  end: NonNullable<Turn["ended"]>["end"] | undefined,
  draw: (text: string) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  switch (end?._tag) {
    case undefined:
      return ["— this turn has no end yet —"]
    case "Completed":
    case "TurnLimit": {
      const rows = draw(end.text)
      const above = rows.length - shownRows
      return above > 1 ? [`… ${above} rows above`, ...rows.slice(-shownRows)] : rows
    }
    case "Cancelled":
      return [`— cancelled (${end.reason}) —`]
    case "Failed":
      return [`— failed: ${Display.oneLine(end.error, 200)} —`]
    case "Halted":
    case "Denied":
      return [`— ${Display.oneLine(end.detail, 200)} —`]
  }
}
