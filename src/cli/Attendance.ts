/** Whether a person is there. Apart from the screen, which is loaded for a person alone. */
import type { Options } from "./Screen.js"

/** Whether a person can be asked at this output: both it and standard input are terminals. */
export const isInteractive = (output: Options["output"]): boolean =>
  process.stdin.isTTY === true && process[output].isTTY === true
