/**
 * Completes the words of the command line. A shell runs `assent __complete WORD… CURRENT` and reads lines:
 *
 * ```
 *  WORD ⇥ what it does        goes on behind `:` and `/` without a blank
 *  /files ⇥ BEGINNING         paths, behind this beginning of the word; also /directories
 *  /sessions ⇥ BEGINNING      the ids of sessions; also /profiles and /servers
 * ```
 */
import * as Table from "./CompletionTable.js"

export const shells = ["bash", "zsh", "fish"] as const
export type Shell = (typeof shells)[number]

/** The hidden command that the scripts run. */
export const command = "__complete"

/** What can stand in the place of the last word. */
export const of = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const current = words.at(-1) ?? ""
  const before = words.slice(0, -1)
  const flag = flagOf(before.at(-1) ?? "")
  if (flag?.takes !== undefined) return valuesOf(flag.takes, current)
  const [, beginning = "", name = "", value = ""] = /^(--([\w-]+)=)(.*)$/s.exec(current) ?? []
  if (beginning !== "") return valuesOf(flagOf(`--${name}`)?.takes, value, beginning)
  const [named = "chat", verb, ...rest] = before.filter(
    (word, at) => !word.startsWith("-") && flagOf(before[at - 1] ?? "")?.takes === undefined
  )
  const found = Table.commands.find((one) => one.name === named)
  if (current.startsWith("-")) {
    const own = found?.flagsOf.find(([word]) => word === verb)?.[1] ?? found?.flags ?? []
    return lines(
      own.map(({ help, name }) => [`--${name}`, help]),
      current
    )
  }
  if (!before.includes(named))
    return lines(
      Table.commands.map(({ name, what }) => [name, what]),
      current
    )
  if (verb === undefined)
    return found?.first === undefined ? lines(found?.verbs ?? [], current) : valuesOf(found.first, current)
  const behind = found?.behind.find((one) => one.verb === verb && (one.isRepeated || rest.length === 0))
  return valuesOf(behind?.takes, current)
}

/** What the person's shell runs when it starts. */
export const script = (shell: Shell): string => `${scripts[shell]}\n`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const flagOf = (word: string): Table.Flag | undefined =>
  Table.flags.find(({ name, short }) => word === `--${name}` || (short !== undefined && word === `-${short}`))

const lines = (list: ReadonlyArray<readonly [word: string, what: string]>, begun: string): ReadonlyArray<string> =>
  list.flatMap(([word, what]) => (word.startsWith(begun) ? [`${word}\t${what}`] : []))

/** `beginning` stands before the value in the same word. */
const valuesOf = (takes: Table.Flag["takes"], begun: string, beginning = ""): ReadonlyArray<string> => {
  if (takes === undefined || takes === "any") return []
  const { behind, from, words } = takes
  const [lead, source] = behind ?? []
  if (lead !== undefined && begun.startsWith(lead)) return [`/${source}\t${beginning}${lead}`]
  return [
    ...lines(
      words.map((word) => [`${beginning}${word}`, ""]),
      `${beginning}${begun}`
    ),
    ...(from === undefined ? [] : [`/${from}\t${beginning}`])
  ]
}

/** Of JSON lines: the id and the title of each session. Of a table: the name and the rest. */
const session = String.raw`s/^{"rootSessionId":"\([^"]*\)".*"title":"\([^"\\]*\).*/\1	\2/p`
const profile = String.raw`s/^\([^ ][^ ]*\)  \(.*\)/\1	\2/p`

const scripts: { readonly [Name in Shell]: string } = {
  // It makes words of a colon and of a sign, and replaces what is behind the last of them. 3.2 on a Mac has no compopt.
  bash: String.raw`_assent_take() {
  local word
  while IFS= read -r word; do COMPREPLY+=("${'${word#"$lead"}'}"); done < <(compgen "$@")
}
_assent() {
  local program="${"${COMP_WORDS[0]}"}" current="${"${COMP_WORDS[COMP_CWORD]}"}" line="${"${COMP_LINE:0:COMP_POINT}"}" typed lead words word what
  read -a words <<< "$line"
  if [[ "$line" == *[[:blank:]] ]]; then words+=(""); fi
  typed="${"${words[${#words[@]}-1]}"}"
  if [[ "$current" == [:=] ]]; then current=""; fi
  lead="${'${typed%"$current"}'}"
  COMPREPLY=()
  while IFS=$'\t' read -r word what; do
    case "$word" in
      /files|/directories)
        if [[ "$what" != "$lead" ]]; then continue; fi
        compopt -o filenames 2> /dev/null
        lead="" _assent_take "-${"${word:1:1}"}" -- "$current";;
      /sessions) _assent_take -P "$what" -W "$("$program" sessions --json 2> /dev/null < /dev/null | sed -n '${session}' | cut -f 1)" -- "${'${typed#"$what"}'}";;
      /profiles) _assent_take -P "$what" -W "$("$program" profiles 2> /dev/null < /dev/null | sed -n '${profile}' | cut -f 1)" -- "${'${typed#"$what"}'}";;
      /servers) _assent_take -P "$what" -W "$("$program" mcp 2> /dev/null < /dev/null | sed -n '${profile}' | cut -f 1)" -- "${'${typed#"$what"}'}";;
      ?*) COMPREPLY+=("${'${word#"$lead"}'}");;
    esac
  done < <("$program" ${command} "${"${words[@]:1}"}" 2> /dev/null < /dev/null)
  if [[ "${"${COMPREPLY[0]-}"}" == *[:/] ]]; then compopt -o nospace 2> /dev/null; fi
}
complete -F _assent assent`,
  zsh: String.raw`#compdef assent
_assent_list() {
  local -a list
  local word what
  while IFS=$'\t' read -r word what; do list+=("${"${word//:/\\\\:}"}:$what"); done
  if (( $#list )); then _describe "$1" list; fi
}
_assent() {
  local program="${"${(Q)words[1]}"}" typed="$PREFIX" lead="" line word what
  local -a list open found
  found=("${'${(@f)$("$program" ' + command + ' "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null < /dev/null)}'}")
  if [[ "$typed" == --*=* ]]; then lead="${"${typed%%=*}"}="; compset -P 1 '*='; fi
  for line in $found; do
    word="${"${line%%$'\\t'*}"}" what="${"${line#*$'\\t'}"}"
    case "$word" in
      /files) compset -P "${"${what#$lead}"}"; _files;;
      /directories) compset -P "${"${what#$lead}"}"; _files -/;;
      /sessions) "$program" sessions --json 2> /dev/null < /dev/null | sed -n '${session}' | _assent_list session;;
      /profiles) "$program" profiles 2> /dev/null < /dev/null | sed -n '${profile}' | _assent_list profile;;
      /servers) "$program" mcp 2> /dev/null < /dev/null | sed -n '${profile}' | _assent_list server;;
      *[:/]) open+=("${"${word#$lead}"}");;
      *) list+=("${"${${word#$lead}//:/\\\\:}"}${"${what:+:$what}"}");;
    esac
  done
  if (( $#open )); then compadd -S "" -- $open; fi
  if (( $#list )); then _describe word list; fi
}
if [ "$funcstack[1]" = "_assent" ]; then _assent "$@"; else compdef _assent assent; fi`,
  fish: String.raw`function __assent
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  for line in ($words[1] ${command} $words[2..] "$typed" 2> /dev/null < /dev/null)
    set -l parts (string split -m 1 \t -- $line)
    set -l rest (string sub -s (math (string length -- "$parts[2]") + 1) -- $typed)
    switch $parts[1]
      case /files
        __fish_complete_path "$rest" | string replace -r -- '^' "$parts[2]"
      case /directories
        __fish_complete_directories "$rest" | string replace -r -- '^' "$parts[2]"
      case /sessions
        $words[1] sessions --json 2> /dev/null < /dev/null | sed -n '${session}' | string replace -r -- '^' "$parts[2]"
      case /profiles
        $words[1] profiles 2> /dev/null < /dev/null | sed -n '${profile}' | string replace -r -- '^' "$parts[2]"
      case /servers
        $words[1] mcp 2> /dev/null < /dev/null | sed -n '${profile}' | string replace -r -- '^' "$parts[2]"
      case '*'
        echo $line
    end
  end
end
complete -c assent -f -a "(__assent)"`
}
