/** All that rules ask of the readers of commands. It is loaded by `CommandField`, and by nobody else. */
import * as CommandPattern from "./CommandPattern.js"

export { allowing, asPattern, isWhole, parse, remembered, startedBy, touches, type Allowing } from "./CommandLine.js"
export { beginning, confined, pattern } from "./CommandPattern.js"
export { ofLine as runsOf } from "./ProgramRun.js"
export { isGit, targets, texts, unresolved } from "./StartedProgram.js"

/** What allows every program that only reads and prints. */
export const readers: CommandPattern.CommandPattern = CommandPattern.harmless("programs that only read")
