/** All that rules ask of the readers of commands. It is loaded by `CommandField`, and by nobody else. */
import * as CommandPattern from "./CommandPattern.js"

export { allowing, asPattern, doubt, parse, readings, remembered, touchesAny } from "./CommandLine.js"
export { beginning, pattern } from "./CommandPattern.js"
export { ofLine as runsOf } from "./ProgramRun.js"
export { commandsIn, mayBecome, texts } from "./Spelling.js"
export { WordLists } from "./WordLists.js"

/** What allows every program that only reads and prints. */
export const readers: ReadonlyArray<CommandPattern.CommandPattern> = [
  CommandPattern.harmless("programs that only read")
]
