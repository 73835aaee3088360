/** Whether a person is there. Apart from the screen, which is loaded for a person alone. */
import { isatty } from "node:tty"

/** Whether a person can be asked at this output: both it and standard input are terminals. */
export const isInteractive = (output: "stdout" | "stderr"): boolean =>
  // Asked of the descriptor: Node makes a stream of standard input as soon as it is named.
  isatty(0) && isatty(output === "stdout" ? 1 : 2)
