/** Settings that `git config` writes: most of them can make git run something, later and unasked. */
import * as Program from "./Program.js"

/** A list of words, and where in it a program begins. */
interface Reading {
  readonly program: string
  readonly words: ReadonlyArray<string>
  readonly start: number
}

/** The words write settings, apart from the few by which git runs nothing and reads nothing from elsewhere. */
export const isWritten = ({ program, start, words }: Reading): boolean => {
  if (Program.nameOf(program) !== "git" || words[start + 1] !== "config") return false
  const rest = words.slice(start + 2)
  if (rest.some((word) => /^(?:--get(?:-[a-z]+)?|--list|-l)$/.test(word)) && rest.every(isReading)) return false
  if (!rest.every(isReading)) return true
  const operands = rest.filter((word) => !word.startsWith("-"))
  const [first = ""] = operands
  if (operands.length <= 1 || first === "get" || first === "list") return false
  const key = first === "set" ? operands[1] : first
  return !isHarmless(key ?? "")
}

/** The words put their own settings or hooks into a new repository. */
export const isPlanted = ({ program, start, words }: Reading): boolean => {
  if (Program.nameOf(program) !== "git" || !/^(?:init|clone)$/.test(words[start + 1] ?? "")) return false
  const rest = words.slice(start + 2)
  return rest.some((word, at) => {
    if (word.startsWith("--te")) return !/^--te[a-z]*=$/.test(word)
    const [, glued] = /^(?:--conf[a-z]*=|-c)(.+)$/s.exec(word) ?? []
    const given = glued ?? (/^(?:-c|--conf[a-z]*)$/.test(word) ? rest[at + 1] : undefined)
    return given !== undefined && words[start + 1] === "clone" && !isHarmless(given.split("=")[0] ?? "")
  })
}

/** This setting makes git run nothing and read nothing from elsewhere. */
export const isHarmless = (key: string): boolean => harmless.test(key)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An operand, or an option that only says what is read, how it is shown, or for which scope it is set. */
const isReading = (word: string): boolean =>
  !word.startsWith("-") ||
  /^(?:--(?:get(?:-[a-z]+)?|list|all|name-only|null|local|global|system|worktree|show-origin|show-scope|show-names|(?:no-)?includes|bool|int|path|(?:type|default|regexp|url|value)(?:=.*)?)|-[lz]+)$/s.test(
    word
  )

const harmless =
  /^(?:user\.(?:name|email)|init\.defaultbranch|core\.(?:autocrlf|eol|safecrlf|ignorecase|quotepath|longpaths|filemode|abbrev)|(?:color|advice|column)\..+|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|fetch\.prune|branch\..+\.(?:remote|merge|rebase|description)|(?:merge|diff)\.(?:conflictstyle|renames|algorithm|colormoved)|rerere\.enabled)$/i
