/** Leaving a chat at a question, which stays open. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as ExitCode from "../../host/ExitCode.js"
import type * as AgentOutline from "../view/AgentOutline.js"

export interface Options {
  readonly agent: SessionHandle
  readonly screen: Screen
  readonly outline: AgentOutline.AgentOutline
  /** Waits until the person leaves; yields what becomes of the question. */
  readonly left: Effect.Effect<string>
}

/**
 * Waits until somebody leaves at a question that no turn of the main agent's waits for, as one of a child in the background.
 * A turn that asks ends by that, and the screen hears it then.
 */
export const atRest = ({ agent, left, outline }: Options): Effect.Effect<string> =>
  Effect.flatMap(left, (detail) =>
    Option.exists(outline.of(agent.id), isAtRest) ? Effect.succeed(detail) : Effect.never
  )

/** Waits for tools that run, and not where the person leaves once more. The session is left as it stands. */
export const leave = ({ agent, screen }: Options, detail: string): Effect.Effect<number> =>
  Effect.raceFirst(agent.awaitTools, Effect.asVoid(screen.next)).pipe(
    Effect.zipRight(screen.printLine(Display.style(screen.color).red(Glyphs.of(screen).edge(`halted: ${detail}`)))),
    Effect.as(ExitCode.halted)
  )

const isAtRest = ({ status }: AgentOutline.Node): boolean => status === "idle" || status === "waiting"
