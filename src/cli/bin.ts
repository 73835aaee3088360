/**
 * The program. Help and the version are told before the rest of it is loaded: that takes twice as long as Node does.
 */
import * as ExitCode from "../host/ExitCode.js"
import * as Fitted from "../tui/process/Fitted.js"
import * as StandardStream from "../tui/process/StandardStream.js"
import * as StaticHelp from "./StaticHelp.js"

StandardStream.outliveReaders()
const argv = process.argv.slice(2)
const text = StaticHelp.of(argv)
if (text === undefined) void import("./MainProcess.js").then(({ run }) => run(argv))
else
  StandardStream.write(
    "stdout",
    () => `${Fitted.lines(text, StandardStream.columns("stdout"))}\n`,
    (lost) => {
      if (lost === undefined) return
      process.exitCode = ExitCode.failed
      StandardStream.write(
        "stderr",
        () => `assent: ${lost.message}\n`,
        () => {}
      )
    }
  )
