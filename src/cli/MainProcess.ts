/** The program behind its words: it runs in one fiber, turns signals into interruption, and ends with its exit code. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Cli from "./Cli.js"
import * as ExitCode from "../host/ExitCode.js"
import * as Interrupts from "../tui/process/Interrupts.js"
import * as LostTerminal from "../tui/process/LostTerminal.js"
import * as Output from "../tui/process/Output.js"
import * as Tty from "../tui/process/Tty.js"

/**
 * Node sets the mode of the terminal again when it exits, for which the system stops a job in the background: one that was
 * stopped, and then ended by `kill %1`, would stay. The signal's own end sets nothing.
 */
const endBehindShell = (): void => {
  process.removeAllListeners("SIGHUP")
  process.kill(process.pid, "SIGHUP")
}

const leave = (code: number): never => {
  LostTerminal.letGo()
  process.exit(code)
}

export const run = (argv: ReadonlyArray<string>): void => {
  const fiber = Effect.runFork(Cli.main(argv))

  let signals = 0
  const stop = () => {
    // The third signal ends the process at once. Scopes have ended work in process groups of its own before that.
    if (++signals > 2) leave(ExitCode.cancelled)
    Interrupts.end()
    Effect.runFork(Fiber.interruptFork(fiber))
  }
  process.on("SIGINT", () => {
    if (!Interrupts.pressed()) stop()
  })
  process.on("SIGTERM", () => {
    if (!Interrupts.ended()) stop()
  })
  process.on("SIGHUP", () => {
    LostTerminal.hungUp()
    stop()
  })
  // It would open Node's debugger, by which any program of this machine may have this one do what it likes.
  process.on("SIGUSR1", () => {})
  // Our code never throws outside the fiber. What a package throws there is reported like every failure, not by Node.
  process.on("uncaughtException", (error) => {
    Output.writeNow(`assent: ${error instanceof Error ? error.message : String(error)}`)
    leave(ExitCode.failed)
  })

  fiber.addObserver((exit) => {
    if (Interrupts.isEnding() && Tty.isBehindShell()) process.on("exit", endBehindShell)
    leave(Exit.isSuccess(exit) ? exit.value : ExitCode.cancelled)
  })
}
