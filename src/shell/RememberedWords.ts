/** What is remembered of a command, in words. It is apart from `Remembered` because only who shows rules has to load it. */
import * as Remembered from "./Remembered.js"

/**
 * What the text form of an entry means, as a person would say it: ``any `git` command that only reads``, ``exactly `npm
 * test` ``, each with its directory unless that is the workspace. Nothing for a text that is no such entry.
 */
export const describe = (text: string): string | undefined => {
  if (!Remembered.is(text)) return undefined
  const entry = Remembered.parse(text)
  const where = entry.cwd === "" ? "" : `, in ${JSON.stringify(entry.cwd)}`
  return entry._tag === "Program"
    ? `any \`${entry.program}\` command that only reads${where}`
    : `exactly \`${entry.command}\`${where}`
}
