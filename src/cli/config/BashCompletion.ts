/** What Bash is to run. It makes words of `=` and `:`, and may be as old as on a Mac: 3.2 has no `compopt`. */
import * as Table from "./CompletionTable.js"

export const script = (): string => {
  const cases = Table.flags.flatMap(({ name, short, takes }) =>
    takes === undefined
      ? []
      : [`    ${short === undefined ? "" : `-${short}|`}--${name}) ${takes === "any" ? ":" : given(takes)}; return;;`]
  )
  const flags = Table.commands.map(
    (command) => `      ${command.name}) list="${command.flags.map(({ name }) => `--${name}`).join(" ")}";;`
  )
  const first = Table.commands.flatMap(({ first, name, verbs }) =>
    first === undefined && verbs.length === 0 ? [] : [`      ${name}) ${given(first ?? verbs.map(([verb]) => verb))};;`]
  )
  const behind = Table.commands.flatMap(({ behind, name }) =>
    behind.map(({ isRepeated, takes, verb }) => `    ${name}/${verb}/${isRepeated ? "*" : ""}) ${given(takes)};;`)
  )
  return String.raw`_assent_take() {
  local word
  while IFS= read -r word; do COMPREPLY+=("$word"); done
}
_assent_words() {
  _assent_take < <(compgen -W "$1" -- "$current")
  if [[ "${"${COMPREPLY[0]-}"}" == *[:/] ]]; then compopt -o nospace 2> /dev/null; fi
}
_assent_paths() {
  compopt -o filenames 2> /dev/null
  _assent_take < <(compgen "$1" -- "$current")
}
_assent_sessions() {
  _assent_words "$("$program" sessions --json 2> /dev/null < /dev/null | sed -n 's/^{"rootSessionId":"\([^"]*\)".*/\1/p')"
}
_assent_profiles() {
  _assent_words "$("$program" profiles 2> /dev/null < /dev/null | sed -n 's/^\([^ ][^ ]*\)  .*/\1/p')"
}
_assent() {
  local program="${"${COMP_WORDS[0]}"}" current="${"${COMP_WORDS[COMP_CWORD]}"}" previous="${"${COMP_WORDS[COMP_CWORD-1]}"}"
  local command="" verb="" rest="" list="" word i
  COMPREPLY=()
  # The words before this one that belong to no flag. Bash makes words of a colon, and of the sign behind a flag.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${"${COMP_WORDS[i]}"}"
    case "$word" in
      [=:]) ((i++));;
      ${Table.valued.join("|")}) [[ "${"${COMP_WORDS[i+1]}"}" == "=" ]] || ((i++));;
      -*) ;;
      *) if [[ -z "$command" ]]; then command="$word"; elif [[ -z "$verb" ]]; then verb="$word"; else rest+="$word/"; fi;;
    esac
  done
  if declare -F _get_comp_words_by_ref > /dev/null; then _get_comp_words_by_ref -n : -c current -p previous; fi
  if [[ "$current" == "=" ]]; then current=""; elif [[ "$previous" == "=" ]]; then previous="${"${COMP_WORDS[COMP_CWORD-2]}"}"; fi
  case "$previous" in
${cases.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    case "${"${command:-chat}"}" in
${flags.join("\n")}
    esac
    _assent_words "$list"
  elif [[ -z "$command" ]]; then
    _assent_words "${Table.commands.map(({ name }) => name).join(" ")}"
  elif [[ -z "$verb" ]]; then
    case "$command" in
${first.join("\n")}
    esac
  else
    case "$command/$verb/$rest" in
${behind.join("\n")}
    esac
  fi
}
complete -F _assent assent`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const given = (takes: Table.Values): string => {
  if (typeof takes !== "string") return `_assent_words "${takes.join(" ")}"`
  return {
    files: "_assent_paths -f",
    directories: "_assent_paths -d",
    sessions: "_assent_sessions",
    profiles: "_assent_profiles"
  }[takes]
}
