/** Settings that `git config` writes: most of them can make git run something, later and unasked. */
import * as Program from "./Program.js"

/**
 * Where git is among the words, it writes settings, or puts its own settings or hooks into a new repository; a few
 * settings by which it runs nothing and reads nothing from elsewhere are free. `deep`: it may be any of the words.
 */
export const isChanged = (words: ReadonlyArray<string>, deep: boolean): boolean => {
  let looks = 0
  for (let at = 0; at < words.length && (deep || at === 0); at++) {
    const subcommand = words[at + 1] ?? ""
    if (!changing.test(subcommand) || !Program.isGit(words[at] ?? "")) continue
    if (isUnseen(subcommand)) return true
    // Each look takes as long as the words behind are many, and nobody writes that many.
    if (++looks > maxLooks) return true
    const rest = words.slice(at + 2)
    if (subcommand === "config" ? isWritten(rest) : isPlanted(rest, subcommand === "clone")) return true
  }
  return false
}

/** This setting makes git run nothing and read nothing from elsewhere. */
export const isHarmless = (key: string): boolean => harmless.test(key)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Also a subcommand that cannot be seen. */
const changing = /^(?:config|init|clone|[$`].*|\{\})$/s

const isUnseen = (subcommand: string): boolean => /^[$`{]/.test(subcommand)

const maxLooks = 8

const isWritten = (rest: ReadonlyArray<string>): boolean => {
  if (rest.some((word) => /^(?:--get(?:-[a-z]+)?|--list|-l)$/.test(word)) && rest.every(isReading)) return false
  if (!rest.every(isReading)) return true
  const operands = rest.filter((word) => !word.startsWith("-"))
  const [first = ""] = operands
  if (first === "edit") return true
  if (operands.length <= 1 || first === "get" || first === "list") return false
  const key = first === "set" ? operands[1] : first
  return !isHarmless(key ?? "")
}

/** A template, or settings that are given along. */
const isPlanted = (rest: ReadonlyArray<string>, clones: boolean): boolean =>
  rest.some((word, at) => {
    if (word.startsWith("--te")) return !/^--te[a-z]*=$/.test(word)
    const [, glued] = /^(?:--conf[a-z]*=|-c)(.+)$/s.exec(word) ?? []
    const given = glued ?? (/^(?:-c|--conf[a-z]*)$/.test(word) ? rest[at + 1] : undefined)
    return given !== undefined && clones && !isHarmless(given.split("=")[0] ?? "")
  })

/** An operand, or an option that only says what is read, how it is shown, or for which scope it is set. */
const isReading = (word: string): boolean =>
  !word.startsWith("-") ||
  /^(?:--(?:get(?:-[a-z]+)?|list|all|name-only|null|local|global|system|worktree|show-origin|show-scope|show-names|(?:no-)?includes|bool|int|path|(?:type|default|regexp|url|value)(?:=.*)?)|-[lz]+)$/s.test(
    word
  )

const harmless =
  /^(?:user\.(?:name|email)|init\.defaultbranch|core\.(?:autocrlf|eol|safecrlf|ignorecase|quotepath|longpaths|filemode|abbrev)|(?:color|advice|column)\..+|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|fetch\.prune|branch\..+\.(?:remote|merge|rebase|description)|(?:merge|diff)\.(?:conflictstyle|renames|algorithm|colormoved)|rerere\.enabled)$/i
