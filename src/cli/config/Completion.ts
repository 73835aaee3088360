/** Scripts with which shells complete the words and flags of the command line. They call nothing: all they know is in them. */
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

/** What a flag takes: words, `files`, `directories`, something else, or nothing. */
function valuesOf(name: string): ReadonlyArray<string> | "files" | "directories" | "any" | undefined {
  const known: { readonly [Name in Flag]?: ReadonlyArray<string> | "files" | "directories" } = {
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
    "add-dir": "directories"
  }
  const row = Object.entries(Flags.table).find(([flag]) => flag === name)?.[1]
  return Object.entries(known).find(([flag]) => flag === name)?.[1] ?? (row?.type === "string" ? "any" : undefined)
}

const verbsOf = (name: Flags.CommandName): ReadonlyArray<readonly [verb: string, what: string]> =>
  name === "help"
    ? Flags.commands.map((command) => [command, Help.commands[command].what])
    : (Help.commands[name].verbs ?? []).map(([usage, what]) => [usage.split(" ")[0] ?? usage, what])

const words = (list: ReadonlyArray<readonly [string, string]>): string => list.map(([word]) => word).join(" ")

const bash = (): string => {
  const spelled = ({ name, short }: { readonly name: string; readonly short?: string }) =>
    short === undefined ? `--${name}` : `--${name}|-${short}`
  const cases = flags.flatMap((flag) => {
    if (flag.values === undefined) return []
    const how =
      flag.values === "files"
        ? 'COMPREPLY=($(compgen -f -- "$current"))'
        : flag.values === "directories"
          ? 'COMPREPLY=($(compgen -d -- "$current"))'
          : flag.values === "any"
            ? "COMPREPLY=()"
            : `COMPREPLY=($(compgen -W "${flag.values.join(" ")}" -- "$current")); [[ \${COMPREPLY[0]-} == *[:/] ]] && compopt -o nospace 2> /dev/null`
    return [`    ${spelled(flag)}) ${how}; return;;`]
  })
  const verbs = Flags.commands.flatMap((name) => {
    const list = words(verbsOf(name))
    return list === "" ? [] : [`    ${name}) list="${list}";;`]
  })
  return `_assent() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="" list="" word
  # Bash takes a colon for the end of a word.
  if declare -F _get_comp_words_by_ref > /dev/null; then _get_comp_words_by_ref -n : -c current -p previous; fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in ${Flags.commands.join("|")}) command="$word"; break;; esac
  done
  case "$previous" in
${cases.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "${flags.map(({ name }) => `--${name}`).join(" ")}" -- "$current")); return
  fi
  case "$command" in
    "") list="${Flags.commands.join(" ")}";;
    answer) COMPREPLY=($(compgen -d -- "$current")); return;;
${verbs.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$list" -- "$current"))
}
complete -F _assent assent`
}

const zsh = (): string => {
  const told = (text: string) => text.replace(/[[\]:\\]/g, "\\$&").replace(/'/g, "'\\''")
  const specs = flags.map(({ help, multiple, name, short, value, values }) => {
    const takes =
      values === undefined
        ? ""
        : `:${value ?? "VALUE"}:${values === "files" ? "_files" : values === "directories" ? "_files -/" : values === "any" ? "" : `(${values.map(told).join(" ")})`}`
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
  return `#compdef assent
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
    verbsOf(name).map(
      ([verb, what]) => `complete -c assent -n "__fish_seen_subcommand_from ${name}" -a ${verb} -d ${told(what)}`
    )
  )
  const options = flags.map(({ help, name, short, values }) => {
    const takes =
      values === undefined
        ? ""
        : values === "files"
          ? " -r -F"
          : values === "directories"
            ? " -x -a '(__fish_complete_directories)'"
            : values === "any"
              ? " -x"
              : ` -x -a ${told(values.join(" "))}`
    return `complete -c assent -l ${name}${short === undefined ? "" : ` -s ${short}`}${takes} -d ${told(help)}`
  })
  return ["complete -c assent -f", ...commands, ...verbs, ...options].join("\n")
}
