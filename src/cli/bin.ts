/**
 * The program. Help and the version are told before the rest of it is loaded: that takes twice as long as Node does.
 */
import * as ExitCode from "./ExitCode.js"
import * as Fitted from "./terminal/Fitted.js"
import * as StandardStream from "./terminal/StandardStream.js"
import * as Told from "./Told.js"

StandardStream.outliveReaders()
const argv = process.argv.slice(2)
const text = Told.of(argv)
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
