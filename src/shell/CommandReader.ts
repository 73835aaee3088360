/** All that rules ask of the readers of commands. It is loaded by `CommandField`, and by nobody else. */
import * as Either from "effect/Either"
import { parse, startedBy } from "./CommandLine.js"
import * as CommandPattern from "./CommandPattern.js"
import { isGit } from "./StartedProgram.js"

export { allowing, asPattern, isWhole, parse, remembered, startedBy, touches, type Allowing } from "./CommandLine.js"
export { beginning, pattern, reads } from "./CommandPattern.js"
export { ofLine as runsOf } from "./ProgramRun.js"
export { isHarmless } from "./Harmless.js"
export { isGit, runsOthers, targets, texts, unresolved } from "./StartedProgram.js"

/** What allows every program that only reads and prints. */
export const readers: CommandPattern.CommandPattern = CommandPattern.harmless("programs that only read")

/** The same of a command that a person typed. */
export const isGitText = (text: string): boolean => {
  const line = Either.getOrUndefined(parse(text))
  return isGit(text, line, startedBy(text, line))
}
