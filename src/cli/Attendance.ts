/** Whether a person is there. Apart from the screen, which is loaded for a person alone. */

/** Whether a person can be asked at this output: both it and standard input are terminals. */
export const isInteractive = (output: "stdout" | "stderr"): boolean =>
  process.stdin.isTTY === true && process[output].isTTY === true
