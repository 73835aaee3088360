/**
 * Scripts with which shells complete the words and flags of the command line. What they know is in them, but for sessions
 * and profiles: for those they run the program that is being completed, which reads and asks nothing.
 */
import * as BashCompletion from "./BashCompletion.js"
import * as FishCompletion from "./FishCompletion.js"
import * as ZshCompletion from "./ZshCompletion.js"

export const shells = ["bash", "zsh", "fish"] as const
export type Shell = (typeof shells)[number]

const scripts = { bash: BashCompletion.script, zsh: ZshCompletion.script, fish: FishCompletion.script }

export const script = (shell: Shell): string => `${scripts[shell]()}\n`
