/** `/rewind` in a chat: back to the end of a turn, in a fork that becomes the session of the chat. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Service as Screen } from "../../channel/ConsoleScreen.js"
import * as Display from "../../terminal/Display.js"
import type { Forked, Turn } from "../../journal/SessionFork.js"
import type * as Agent from "../../runtime/Agent.js"
import * as Arguments from "../config/Arguments.js"
import * as SessionReport from "../view/SessionReport.js"

export interface Past {
  /** The turns of the session so far. */
  readonly turns: Effect.Effect<ReadonlyArray<Turn>, { readonly message: string }>
  /** Forks the session, which goes on as it is. */
  readonly fork: (turn: number) => Effect.Effect<Forked, { readonly message: string }>
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
    const turns = yield* past.turns
    if (argument === "") {
      const lines = SessionReport.turns(turns).slice(-shown)
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
  }).pipe(Effect.catchAll(({ message }) => refuse(screen, message)))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Turns that are listed at once. */
const shown = 20

const refuse = (screen: Screen, ...lines: ReadonlyArray<string>): Effect.Effect<undefined> =>
  Effect.as(screen.printLine(lines.join("\n")), undefined)
