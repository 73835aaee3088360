/**
 * Asks a person at a console: all kinds, one dialog at a time. It always shows who asks.
 *
 * When an answer is not understood the question is asked again, without limit: nonsense is never an answer. Behind a
 * pipe there may be no person to correct it, so after the third such line the request is left to others. Ctrl-C cancels,
 * and so do Ctrl-D and the end of input, unless `atEnd` leaves the question open; escape, or Ctrl-D where nothing is typed,
 * leads out of a comment and an edit, back to the question; so does an empty line where lines are read. Interrupting a
 * request takes its dialog off the screen.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LazyModule from "../../core/LazyModule.js"
import * as Interactor from "../../interaction/Interactor.js"
import type { Options } from "./ConsoleOptions.js"
import * as ConsoleScreen from "./ConsoleScreen.js"

export { patience, type Options } from "./ConsoleOptions.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The interactor `console` of the screen.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Interactor.Service, never, ConsoleScreen.ConsoleScreen> =>
  Effect.flatMap(ConsoleScreen.ConsoleScreen, (screen) =>
    Effect.map(loaded, (ConsoleInteractor) => ConsoleInteractor.make(screen, options))
  )

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * An interactor that asks a person at the screen; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Interactor.Interactor, never, ConsoleScreen.ConsoleScreen> =>
  Layer.effect(Interactor.Interactor, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const loaded = LazyModule.make(() => import("./ConsoleInteractor.js"))
