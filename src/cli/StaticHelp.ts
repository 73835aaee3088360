/** What some command lines ask for are our own words only: help, and the version. */
import * as Invocation from "./config/Invocation.js"
import * as Help from "./config/Help.js"
import * as Version from "../host/Version.js"
import { commandNames } from "../host/CommandName.js"

/** Nothing where there is something to do, and where the words cannot be understood. */
export const of = (argv: ReadonlyArray<string>): string | undefined => {
  const read = Invocation.read(argv)
  if (typeof read === "string") return undefined
  const { command, flags, isNamed, words } = read
  if (flags.help === true) return isNamed === true ? Help.of(command) : Help.all()
  if (flags.version === true) return Version.version
  if (command !== "help") return undefined
  const [word] = words
  if (word === undefined) return Help.all()
  const named = commandNames.find((name) => name === word)
  return named === undefined ? undefined : Help.of(named)
}
