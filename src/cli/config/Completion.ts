/**
 * Scripts with which shells complete the words and flags of the command line. What they know is in them, but for ids of
 * sessions: for those they run the program that is being completed, which reads and asks nothing.
 */
import * as Sandbox from "../../sandbox/Sandbox.js"
import { modes } from "../../permission/PermissionState.js"
import { providers } from "../../model/ProviderName.js"
import * as Flags from "./Flags.js"
import * as Help from "./Help.js"

export const shells = ["bash", "zsh", "fish"] as const
export type Shell = (typeof shells)[number]

export const script = (shell: Shell): string => `${{ bash, zsh, fish }[shell]()}\n`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Flag = keyof typeof Flags.table

const flags = Object.entries(Flags.table).map(([name, row]) => ({ name, ...row, values: valuesOf(name) }))

type Values = ReadonlyArray<string> | "files" | "directories" | "sessions"

/** What a flag takes: words, `files`, `directories`, `sessions`, something else, or nothing. */
function valuesOf(name: string): Values | "any" | undefined {
  const known: { readonly [Name in Flag]?: Values } = {
    model: ["offline", "script:", ...providers.map((provider) => `${provider}/`)],
    reviewer: ["none", "offline", "script:", ...providers.map((provider) => `${provider}/`)],
    channel: ["console", "auto", "halt", "file:", "webhook:"],
    mode: [...modes],
    mediator: ["forward", "agent"],
    vouch: ["file", "webhook", "json"],
    sandbox: [...Sandbox.modes],
    "log-level": ["debug", "info", "warning", "error", "none"],
    policy: "files",
    image: "files",
    file: "files",
    store: "files",
    key: "files",
    workspace: "directories",
    "add-dir": "directories",
    resume: "sessions"
  }
  const row = Object.entries(Flags.table).find(([flag]) => flag === name)?.[1]
  return Object.entries(known).find(([flag]) => flag === name)?.[1] ?? (row?.type === "string" ? "any" : undefined)
}

const verbsOf = (name: Flags.CommandName): ReadonlyArray<readonly [verb: string, what: string]> =>
  name === "help"
    ? Flags.commands.map((command) => [command, Help.commands[command].what])
    : (Help.commands[name].verbs ?? []).map(([usage, what]) => [usage.split(" ")[0] ?? usage, what])

/** The verbs of a command that a session's id comes behind. */
const ofSession = (name: Flags.CommandName): ReadonlyArray<string> =>
  (Help.commands[name].verbs ?? []).flatMap(([usage]) =>
    /^\w+ \[?SESSION\]?$/.test(usage) ? [usage.split(" ")[0] ?? usage] : []
  )

const words = (list: ReadonlyArray<readonly [string, string]>): string => list.map(([word]) => word).join(" ")

const bash = (): string => {
  const spelled = ({ name, short }: { readonly name: string; readonly short?: string }) =>
    short === undefined ? `--${name}` : `--${name}|-${short}`
  const cases = flags.flatMap((flag) => {
    if (flag.values === undefined) return []
    const how =
      flag.values === "files"
        ? "_assent_paths -f"
        : flag.values === "directories"
          ? "_assent_paths -d"
          : flag.values === "sessions"
            ? "_assent_sessions"
            : flag.values === "any"
              ? ":"
              : `_assent_words "${flag.values.join(" ")}"; [[ \${COMPREPLY[0]-} == *[:/] ]] && compopt -o nospace 2> /dev/null`
    return [`    ${spelled(flag)}) ${how}; return;;`]
  })
  const verbs = Flags.commands.flatMap((name) => {
    const list = words(verbsOf(name))
    return list === "" ? [] : [`    ${name}) list="${list}";;`]
  })
  const ids = Flags.commands.flatMap((name) => ofSession(name).map((verb) => `${name}/${verb}`))
  return String.raw`_assent_take() {
  local word
  while IFS= read -r word; do COMPREPLY+=("$word"); done
}
_assent_words() { _assent_take < <(compgen -W "$1" -- "$current"); }
_assent_paths() {
  compopt -o filenames 2> /dev/null
  _assent_take < <(compgen "$1" -- "$current")
}
_assent_sessions() {
  _assent_words "$("$program" sessions --json 2> /dev/null < /dev/null | sed -n 's/^{"rootSessionId":"\([^"]*\)".*/\1/p')"
}
_assent() {
  local program="${"${COMP_WORDS[0]}"}" current="${"${COMP_WORDS[COMP_CWORD]}"}" previous="${"${COMP_WORDS[COMP_CWORD-1]}"}"
  local command="" list="" word
  COMPREPLY=()
  # Bash takes a colon for the end of a word.
  if declare -F _get_comp_words_by_ref > /dev/null; then _get_comp_words_by_ref -n : -c current -p previous; fi
  # And the sign behind a flag.
  if [[ "$current" == "=" ]]; then current=""; elif [[ "$previous" == "=" ]]; then previous="${"${COMP_WORDS[COMP_CWORD-2]}"}"; fi
  for word in "${"${COMP_WORDS[@]:1:COMP_CWORD-1}"}"; do
    case "$word" in ${Flags.commands.join("|")}) command="$word"; break;; esac
  done
  case "$previous" in
${cases.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    _assent_words "${flags.map(({ name }) => `--${name}`).join(" ")}"; return
  fi
  case "$command/$previous" in ${ids.join("|")}) _assent_sessions; return;; esac
  case "$command" in
    "") list="${Flags.commands.join(" ")}";;
    answer) _assent_paths -d; return;;
${verbs.join("\n")}
  esac
  _assent_words "$list"
}
complete -F _assent assent`
}

/** Each session's id and its first words, as far as they need no escape. */
const titled = String.raw`sed -n 's/^{"rootSessionId":"\([^"]*\)".*"title":"\([^"\\]*\).*/\1:\2/p'`

const zsh = (): string => {
  const told = (text: string) => text.replace(/[[\]:\\]/g, "\\$&").replace(/'/g, "'\\''")
  const specs = flags.map(({ help, multiple, name, short, value, values }) => {
    const takes =
      values === undefined
        ? ""
        : `:${value ?? "VALUE"}:${values === "files" ? "_files" : values === "directories" ? "_files -/" : values === "sessions" ? "_assent_sessions" : values === "any" ? "" : `(${values.map(told).join(" ")})`}`
    const names = short === undefined ? `--${name}` : `{-${short},--${name}}`
    const again = multiple === true ? "*" : ""
    return short === undefined
      ? `    '${again}${names}[${told(help)}]${takes}' \\`
      : `    ${again}${names}'[${told(help)}]${takes}' \\`
  })
  const described = (list: ReadonlyArray<readonly [string, string]>) =>
    list.map(([word, what]) => `'${told(word)}:${told(what)}'`).join(" ")
  const verbs = Flags.commands.flatMap((name) => {
    const list = verbsOf(name)
    return list.length === 0 ? [] : [`        ${name}) list=(${described(list)});;`]
  })
  const ids = Flags.commands.flatMap((name) => ofSession(name).map((verb) => `${name}/${verb}`))
  return `#compdef assent
_assent_sessions() {
  local -a ids
  ids=(\${(f)"$("\${(Q)words[1]}" sessions --json 2> /dev/null < /dev/null | ${titled})"})
  _describe session ids
}
_assent() {
  local -a list
  local state line
  _arguments -C \\
${specs.join("\n")}
    '1: :->command' \\
    '*: :->words'
  case "$state" in
    command)
      list=(${described(Flags.commands.map((name) => [name, Help.commands[name].what]))})
      _describe command list;;
    words)
      case "$line[1]/\${words[CURRENT-1]}" in ${ids.join("|")}) _assent_sessions; return;; esac
      case "$line[1]" in
        answer) _files -/; return;;
${verbs.join("\n")}
      esac
      (( CURRENT == 3 )) && _describe word list;;
  esac
}
if [ "$funcstack[1]" = "_assent" ]; then _assent "$@"; else compdef _assent assent; fi`
}

const fish = (): string => {
  const told = (text: string) => `'${text.replace(/[\\']/g, "\\$&")}'`
  const commands = Flags.commands.map(
    (name) =>
      `complete -c assent -n "not __fish_seen_subcommand_from ${Flags.commands.join(" ")}" -a ${name} -d ${told(Help.commands[name].what)}`
  )
  const verbs = Flags.commands.flatMap((name) =>
    verbsOf(name).map(([verb, what], _, all) => {
      const before = `__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${words(all.filter(([word]) => word !== name))}`
      return `complete -c assent -n "${before}" -a ${verb} -d ${told(what)}`
    })
  )
  const options = flags.map(({ help, name, short, values }) => {
    const takes =
      values === undefined
        ? ""
        : values === "files"
          ? " -r -F"
          : values === "directories"
            ? " -x -a '(__fish_complete_directories)'"
            : values === "sessions"
              ? " -x -a '(__assent_sessions)'"
              : values === "any"
                ? " -x"
                : ` -x -a ${told(values.join(" "))}`
    return `complete -c assent -l ${name}${short === undefined ? "" : ` -s ${short}`}${takes} -d ${told(help)}`
  })
  const ids = Flags.commands.flatMap((name) => {
    const behind = ofSession(name).join(" ")
    const seen = `__fish_seen_subcommand_from ${name}; and __fish_seen_subcommand_from ${behind}`
    return behind === "" ? [] : [`complete -c assent -n "${seen}" -a "(__assent_sessions)"`]
  })
  const sessions = String.raw`function __assent_sessions
  set -l program (commandline -opc)[1]
  $program sessions --json 2> /dev/null < /dev/null | string replace -rf '^\{"rootSessionId":"([^"]*)".*"title":"([^"\\\\]*).*' '$1'\t'$2'
end`
  return [sessions, "complete -c assent -f", ...commands, ...verbs, ...ids, ...options].join("\n")
}
