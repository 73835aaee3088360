/**
 * What a chat can take back: `/rewind` goes to the end of a turn, in a fork that becomes the session of the chat; `/undo`
 * puts back the files of the last turn.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import * as Display from "../terminal/Display.js"
import type * as Undo from "../../builtin/Undo.js"
import * as SessionFork from "../../journal/SessionFork.js"
import type { Forked } from "../../journal/SessionFork.js"
import type { Loaded } from "../../journal/SessionStore.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as SessionReport from "../view/SessionReport.js"
import * as UndoReport from "../view/UndoReport.js"
import * as ChatFiles from "./ChatFiles.js"
import * as Remedy from "../../host/Remedy.js"

export interface Past {
  /** All that is kept of the session; undefined before its first words. */
  readonly loaded: Effect.Effect<Loaded | undefined, { readonly message: string }>
  /** Forks the session, which goes on as it is. */
  readonly fork: (turn: number) => Effect.Effect<Forked, { readonly message: string }>
  /** Puts back the files that tools changed in the last turn; fails with a sentence. */
  readonly undo: (loaded: Loaded) => Effect.Effect<Undo.Outcome, string>
}

/** The fork that the chat is to go on with, and the words that came after its end. */
export interface Rewound {
  readonly forked: Forked
  /** What the next turn of the old session began with; empty when there was none. */
  readonly words: string
}

/**
 * Goes back to the end of a turn, which a person picks from a list where none is named; yields the fork when there is one.
 * Where nobody can pick, the turns are listed.
 */
export const rewind = (
  argument: string,
  {
    agent,
    asks = true,
    columns = Infinity,
    past,
    screen
  }: {
    readonly agent: SessionHandle
    readonly screen: Screen
    readonly past: Past | undefined
    readonly columns?: number | undefined
    /** False where a question is open. Default: true. */
    readonly asks?: boolean
  }
): Effect.Effect<Rewound | undefined> =>
  Effect.gen(function* () {
    if (past === undefined) return yield* refuse(screen, "This chat stores no turns to go back to.")
    const loaded = yield* past.loaded
    const turns = loaded === undefined ? [] : SessionFork.turns(loaded)
    const typed = turns.map((turn) => ({ ...turn, words: ChatFiles.typedOf(turn.words) }))
    const isPicked = argument === "" && asks && screen.source === "person" && turns.length > 0 && (yield* agent.isIdle)
    const named = isPicked ? yield* pick(screen, typed) : argument
    if (named === undefined) return undefined
    if (named === "") {
      const lines = SessionReport.turns(typed, yield* Clock.currentTimeMillis).slice(-shown)
      const more =
        turns.length > lines.length
          ? [`… and ${turns.length - lines.length} before them: assent sessions turns ${agent.id}`]
          : []
      const what =
        turns.length === 0
          ? ["Nothing was said yet."]
          : [...more, ...lines.map((line) => Display.truncate(line, columns))]
      return yield* refuse(
        screen,
        ...what,
        "To go back to the end of a turn: /rewind NUMBER; 0 is the beginning. This session is unchanged."
      )
    }
    const turn = SessionFork.turnNumber(named)
    if (turn === undefined)
      return yield* refuse(screen, `${JSON.stringify(named)} is not the number of a turn. /rewind lists the turns.`)
    if (!(yield* agent.isIdle)) return yield* refuse(screen, "Wait until the agent is idle, or cancel with Ctrl-C.")
    if (turn > turns.length) {
      const there = turns.length === 1 ? "There is 1 turn" : `There are ${turns.length} turns`
      return yield* refuse(screen, `${there}. /rewind lists them.`)
    }
    const forked = yield* past.fork(turn)
    return { forked, words: turns.find(({ number }) => number === forked.turn + 1)?.words ?? "" }
  }).pipe(Effect.catchAll((error) => refuse(screen, Remedy.said(error))))

/** Puts back the files of the last turn, and tells what became of each. */
export const undo = ({
  agent,
  past,
  screen
}: {
  readonly agent: SessionHandle
  readonly screen: Screen
  readonly past: Past | undefined
}): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!(yield* agent.isIdle)) return yield* refuse(screen, "Wait until the agent is idle, or cancel with Ctrl-C.")
    const loaded = yield* past?.loaded ?? Effect.succeed(undefined)
    if (past === undefined || loaded === undefined)
      return yield* refuse(screen, "Nothing was done in this session yet.")
    const outcome = yield* Effect.either(past.undo(loaded))
    yield* refuse(screen, ...(Either.isLeft(outcome) ? [outcome.left] : UndoReport.lines(outcome.right)))
  }).pipe(Effect.catchAll(({ message }) => refuse(screen, message)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Turns that are listed at once. */
const shown = 20

/** The number of the turn that a person picks, as it is typed; nothing when they want none. */
const pick = (screen: Screen, turns: ReadonlyArray<SessionFork.Turn>): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const style = Display.style(screen.color)
    // The mark, the number, and the last column.
    const columns = Math.max(16, (yield* screen.columns) - 8)
    const picking = screen.dialog("Go back to the end of which turn?", (ask) =>
      ask({
        lines: [style.dim("a number or some letters; Escape for none. This session is unchanged.")],
        choices: [
          ...turns.map((turn) => ({
            text: String(turn.number),
            label: Display.truncate(SessionReport.turn(turn, now), columns)
          })),
          { text: "0", label: "the beginning, before all of them" }
        ],
        label: "turn> ",
        back: true,
        followUp: true,
        commands: false
      })
    )
    const word = (yield* Effect.catchTag(picking, "DialogClosed", () => Effect.succeed(""))).trim()
    // The beginning stands behind the last turn, and may be named by its number there.
    return word === "" ? undefined : Number(word) === turns.length + 1 ? "0" : word
  })

const refuse = (screen: Screen, ...lines: ReadonlyArray<string>): Effect.Effect<undefined> =>
  Effect.as(screen.printLine(lines.join("\n")), undefined)
