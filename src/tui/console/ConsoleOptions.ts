/** What can be set about a person at a console. */
import type * as Effect from "effect/Effect"
import type * as Interactor from "../../interaction/Interactor.js"
import type * as ConsoleScreen from "./ConsoleScreen.js"

/**
 * How long the channel waits for a person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The person at the console, as the program knows them: the operating system's user. Default: `console` stands for them. */
  readonly principal?: string | undefined
  /** Default: a person may take as long as they like. */
  readonly timeouts?: Interactor.Timeouts | undefined
  /**
   * Keeps a rule that allows a call in this workspace, in every session from now on; fails with a sentence. It is called
   * for the person at this console alone: no other channel has such an answer. Default: that is not offered.
   */
  readonly keepForProject?: ((rule: string) => Effect.Effect<void, string>) | undefined
  /**
   * What is said, as a sentence, where the input ends at the question of an agent: its turn halts with that, and a question
   * that is kept stays open. Default: the question is left to others, and withdrawn where nobody else is asked.
   */
  readonly atEnd?: Effect.Effect<string> | undefined
  /**
   * Says what becomes of an agent's question at which the program is ended, as by a signal: see `ConsoleScreen.Options`.
   * Default: nothing is said.
   */
  readonly left?: ((screen: ConsoleScreen.Service) => Effect.Effect<void>) | undefined
  /** What a line that is no answer may have been meant for, as a sentence; see `ConsoleScreen.setCommands`. Default: nothing. */
  readonly meant?: ((line: string) => string | undefined) | undefined
}

/**
 * How many lines of a pipe may be nonsense before the request is left to others.
 *
 * @since 0.1.0
 * @category constants
 */
export const patience = 3
