/**
 * The person's terminal for a command: a drawn screen where both ends are terminals, plain lines where one is a pipe.
 *
 * @since 0.1.0
 */
import * as Terminal from "@effect/platform/Terminal"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Readable } from "node:stream"
import * as ConsoleChannel from "../console/ConsoleChannel.js"
import * as ConsolePlain from "../console/ConsolePlain.js"
import * as ConsoleScreen from "../console/ConsoleScreen.js"
import type * as Interactor from "../../interaction/Interactor.js"
import * as Tty from "./Tty.js"
import { canDraw, isDrawable, isForeground, isHeard, isInteractive, mayColor } from "./Tty.js"
import * as Interrupts from "./Interrupts.js"
import * as NodeTerminal from "./NodeTerminal.js"
import * as Output from "./Output.js"
import * as Outside from "./Outside.js"
import * as Worded from "./Worded.js"

export { canDraw, isInteractive }

/**
 * How the screen looks.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Where the screen is drawn. */
  readonly output: "stdout" | "stderr"
  readonly history?: ReadonlyArray<string> | undefined
  /** How {@link withConsole} asks. */
  readonly console?: ConsoleChannel.Options | undefined
}

/**
 * Colours where the output is a terminal that is not dumb, unless `CLICOLOR` is 0. `FORCE_COLOR` or `CLICOLOR_FORCE` wants
 * them everywhere, `FORCE_COLOR` is a no where it is 0 or false, and `NO_COLOR` always
 * (https://no-color.org, https://bixense.com/clicolors).
 *
 * @since 0.1.0
 * @category operations
 */
export const wantsColor = (output: Options["output"]): Effect.Effect<boolean> =>
  Effect.map(
    Effect.forEach(["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM"], (name) =>
      Effect.orElseSucceed(Config.string(name), () => "")
    ),
    ([no, cli, cliForced = "", forced = "", term]) => {
      if (!mayColor() || no !== "" || ["0", "false"].includes(forced)) return false
      if (forced !== "" || !["", "0"].includes(cliForced)) return true
      return Output.isTerminal(output) && cli !== "0" && term !== "dumb"
    }
  )

/**
 * The screen for this terminal: drawn where it can be redrawn, plain elsewhere.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ output, history }: Options): Layer.Layer<ConsoleScreen.ConsoleScreen> =>
  Layer.unwrapEffect(
    Effect.map(wantsColor(output), (color) =>
      canDraw(output)
        ? Layer.provideMerge(
            logShown,
            ConsoleScreen.layer({
              color,
              history,
              isEnding: Interrupts.isEnding,
              outside: Outside.make(),
              call: Output.ring(output, Output.callOf(process.env))
            })
          )
        : Layer.provideMerge(
            // A person reads both here.
            isInteractive(output) && Output.isTerminal("stderr") ? logShown : Layer.empty,
            ConsolePlain.layer({
              color,
              echoes: process.stdin.isTTY === true,
              isEnding: Interrupts.isEnding,
              signs: isHeard(output) ? "said" : "drawn",
              unfinished: NodeTerminal.handOut(process.stdin),
              caughtUp: NodeTerminal.caughtUp,
              unseen: (use) => NodeTerminal.withoutEcho(process.stdin, use)
            })
          )
    )
  ).pipe(Layer.provide(NodeTerminal.layer({ output: Output.screen(output), raw: canDraw(output) })))

/**
 * Takes the terminal over for as long as `use` runs, with the interactor that asks a person there.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withConsole = <A, E, R>(
  options: Options,
  use: (screen: ConsoleScreen.Service, console: Interactor.Service) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, ConsoleScreen.ConsoleScreen>> =>
  Effect.provide(
    Effect.flatMap(
      Effect.all([ConsoleScreen.ConsoleScreen, ConsoleChannel.make(options.console)]),
      ([screen, console]) => use(screen, console)
    ),
    layer(options)
  )

/**
 * The interactor that asks a person line by line at the terminal of the process, while standard input is a pipe. Without a
 * terminal it leaves every question to others.
 *
 * @internal
 */
export const atTerminal = (
  console: ConsoleChannel.Options | undefined
): Effect.Effect<Interactor.Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const ends = yield* Effect.acquireRelease(Effect.sync(Tty.open), (ends) =>
      Effect.sync(() => {
        ends?.input.destroy()
        ends?.output.destroy()
      })
    )
    const input = ends?.input ?? Readable.from([])
    const screen = yield* Effect.provideService(
      ConsolePlain.make({
        color: yield* wantsColor("stderr"),
        echoes: ends !== undefined,
        isEnding: Interrupts.isEnding,
        unfinished: NodeTerminal.handOut(input),
        caughtUp: NodeTerminal.caughtUp,
        unseen: (use) => NodeTerminal.withoutEcho(input, use)
      }),
      Terminal.Terminal,
      NodeTerminal.make({ input, output: ends?.output ?? Output.screen("stderr"), raw: false })
    )
    return yield* Effect.provideService(ConsoleChannel.make(console), ConsoleScreen.ConsoleScreen, screen)
  })

/**
 * A screen for a person who only watches: nothing is read from their terminal. What is going on is drawn below the lines
 * where that can be, where the terminal is not that of another job, and where nobody is asked there.
 *
 * @internal
 */
export const withLines = <A, E, R>(
  output: Options["output"],
  use: (screen: ConsoleScreen.Service) => Effect.Effect<A, E, R>,
  { asks = false }: { readonly asks?: boolean } = {}
): Effect.Effect<A, E, Exclude<R, ConsoleScreen.ConsoleScreen>> =>
  Effect.flatMap(wantsColor(output), (color) =>
    Effect.provide(
      Effect.flatMap(ConsoleScreen.ConsoleScreen, use),
      Layer.provideMerge(logShown, Layer.scoped(ConsoleScreen.ConsoleScreen, watched(output, color, asks))).pipe(
        Layer.provide(NodeTerminal.layer({ input: silent(), output: Output.screen(output), raw: false }))
      )
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A line of the log through a drawn prompt would tear it. */
const logShown = Layer.scopedDiscard(
  Effect.flatMap(ConsoleScreen.ConsoleScreen, (screen) => Output.showLog(Worded.of(screen).printLine))
)

const watched = (output: Options["output"], color: boolean, asks: boolean) =>
  Effect.gen(function* () {
    const lines = yield* ConsolePlain.make({ color, echoes: true, signs: isHeard(output) ? "said" : "drawn" })
    if (asks || !isDrawable(output)) return lines
    const Watched = yield* Effect.promise(() => import("./Watched.js"))
    return yield* Watched.of(lines, isForeground)
  })

/** An input in which nothing ever comes. */
const silent = () => new Readable({ read: () => {} })
