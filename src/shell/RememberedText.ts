/** What is remembered of a command, in words. It is apart from `Remembered` because only who shows rules has to load it. */
import * as Glob from "../core/Glob.js"
import * as CommandText from "./CommandText.js"
import * as Program from "./Program.js"
import * as Remembered from "./Remembered.js"

/**
 * What the text form of an entry means, as a person would say it: `git commands that only read`, ``exactly `npm test` ``,
 * each with its directory unless that is the workspace. Nothing for a text that is no such entry. To deny, an entry means
 * more: every command of the program, and the very command also inside others, in any directory.
 */
export const describe = (text: string, verb: "allow" | "deny" = "allow"): string | undefined => {
  if (!Remembered.is(text)) return undefined
  const entry = Remembered.parse(text)
  if (verb === "deny")
    return entry._tag === "Program"
      ? `every ${entry.program} command`
      : `\`${entry.command}\`, also inside a longer one`
  const where = entry.cwd === "" ? "" : `, in ${JSON.stringify(entry.cwd)}`
  return entry._tag === "Program"
    ? `${entry.program} commands that only read${where}`
    : `exactly \`${entry.command}\`${where}`
}

/** The rule of a decision, in words: one of these entries, or several, as they are joined where a command needed them. */
export const ofRule = (rule: string, entries: Iterable<string>, verb: "allow" | "deny"): string => {
  const known = [...entries]
  const tiled = (left: string): ReadonlyArray<string> | undefined => {
    for (const entry of known) {
      if (left === entry) return [entry]
      const rest = left.startsWith(`${entry}${joint}`) ? tiled(left.slice(entry.length + joint.length)) : undefined
      if (rest !== undefined) return [entry, ...rest]
    }
    return undefined
  }
  return (
    tiled(rule)
      ?.map((entry) => describe(entry, verb) ?? entry)
      .join(joint) ?? rule
  )
}

/**
 * A caution about a pattern that a person wrote: its star stands for any options. Nothing for a program without options
 * that start others, and for what Assent remembers itself, which covers no option that was not seen.
 */
export const caution = (pattern: string): string | undefined => {
  if (Remembered.is(pattern) || !Glob.isWild(pattern)) return undefined
  const [first = ""] = CommandText.words(pattern).filter((word) => !CommandText.isAssignment(word))
  const program = first.replace(/\*+$/, "")
  return Program.alwaysRuns(program) ? `Options of \`${program}\` can start other programs.` : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const joint = " + "
