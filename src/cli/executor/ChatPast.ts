/**
 * What a chat can take back: `/rewind` goes to the end of a turn, in a fork that becomes the session of the chat; `/undo`
 * puts back the files of the last turn.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Service as Screen } from "../../channel/ConsoleScreen.js"
import * as Display from "../../terminal/Display.js"
import type * as Undo from "../../builtin/Undo.js"
import * as SessionFork from "../../journal/SessionFork.js"
import type { Forked } from "../../journal/SessionFork.js"
import type { Loaded } from "../../journal/SessionStore.js"
import type * as Agent from "../../runtime/Agent.js"
import * as Arguments from "../config/Arguments.js"
import * as SessionReport from "../view/SessionReport.js"
import * as UndoReport from "../view/UndoReport.js"
import * as ChatFiles from "./ChatFiles.js"
import * as Remedy from "../config/Remedy.js"

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

/** Shows the turns, or goes back to the end of one; yields the fork when there is one. */
export const rewind = (
  argument: string,
  {
    agent,
    columns = Infinity,
    past,
    screen
  }: {
    readonly agent: Agent.Agent
    readonly screen: Screen
    readonly past: Past | undefined
    readonly columns?: number | undefined
  }
): Effect.Effect<Rewound | undefined> =>
  Effect.gen(function* () {
    if (past === undefined) return yield* refuse(screen, "Nothing is kept here to go back to.")
    const loaded = yield* past.loaded
    const turns = loaded === undefined ? [] : SessionFork.turns(loaded)
    if (argument === "") {
      const typed = turns.map((turn) => ({ ...turn, words: ChatFiles.typedOf(turn.words) }))
      const lines = SessionReport.turns(typed).slice(-shown)
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
        "To go back to the end of a turn: /rewind NUMBER; 0 is the beginning. This session stays as it is."
      )
    }
    const turn = Arguments.parseTurn(argument)
    if (Either.isLeft(turn))
      return yield* refuse(screen, `${JSON.stringify(argument)} is no number of a turn. /rewind lists them.`)
    if (!(yield* agent.isIdle)) return yield* refuse(screen, "Wait until the agent is idle, or cancel with Ctrl-C.")
    if (turn.right > turns.length) {
      const there = turns.length === 1 ? "There is 1 turn" : `There are ${turns.length} turns`
      return yield* refuse(screen, `${there}. /rewind lists them.`)
    }
    const forked = yield* past.fork(turn.right)
    return { forked, words: turns.find(({ number }) => number === forked.turn + 1)?.words ?? "" }
  }).pipe(Effect.catchAll((error) => refuse(screen, Remedy.said(error))))

/** Puts back the files of the last turn, and tells what became of each. */
export const undo = ({
  agent,
  past,
  screen
}: {
  readonly agent: Agent.Agent
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

const refuse = (screen: Screen, ...lines: ReadonlyArray<string>): Effect.Effect<undefined> =>
  Effect.as(screen.printLine(lines.join("\n")), undefined)
