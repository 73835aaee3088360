/** The program behind its words: it runs in one fiber, turns signals into interruption, and ends with its exit code. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Cli from "./Cli.js"
import * as ExitCode from "./ExitCode.js"
import * as Interrupts from "./terminal/Interrupts.js"
import * as LostTerminal from "./terminal/LostTerminal.js"
import * as Output from "./terminal/Output.js"

export const run = (argv: ReadonlyArray<string>): void => {
  const fiber = Effect.runFork(Cli.main(argv))

  let signals = 0
  const stop = () => {
    // The third signal ends the process at once. Scopes have ended work in process groups of its own before that.
    if (++signals > 2) {
      LostTerminal.letGo()
      process.exit(ExitCode.cancelled)
    }
    Interrupts.end()
    Effect.runFork(Fiber.interruptFork(fiber))
  }
  process.on("SIGINT", () => {
    if (!Interrupts.pressed()) stop()
  })
  process.on("SIGTERM", stop)
  process.on("SIGHUP", () => {
    LostTerminal.hungUp()
    stop()
  })
  // It would open Node's debugger, by which any program of this machine may have this one do what it likes.
  process.on("SIGUSR1", () => {})
  // Our code never throws outside the fiber. What a package throws there is reported like every failure, not by Node.
  process.on("uncaughtException", (error) => {
    Output.writeNow(`assent: ${error instanceof Error ? error.message : String(error)}`)
    process.exit(ExitCode.failed)
  })

  fiber.addObserver((exit) => {
    LostTerminal.letGo()
    process.exit(Exit.isSuccess(exit) ? exit.value : ExitCode.cancelled)
  })
}
