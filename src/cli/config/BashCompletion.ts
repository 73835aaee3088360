/** What Bash is to run. It makes words of `=` and `:`, and may be as old as on a Mac: 3.2 has no `compopt`. */
import * as Table from "./CompletionTable.js"

export const script = (): string => {
  const cases = Table.flags.flatMap(({ name, short, takes }) =>
    takes === undefined
      ? []
      : [`    ${short === undefined ? "" : `-${short}|`}--${name}) ${takes === "any" ? ":" : given(takes)}; return;;`]
  )
  const listed = (place: string, names: ReadonlyArray<Table.Flag>) =>
    `      ${place}) list="${names.map(({ name }) => `--${name}`).join(" ")}";;`
  const flags = Table.commands.flatMap(({ flags, flagsOf, name }) => [
    ...flagsOf.map(([verb, own]) => listed(`${name}/${verb}`, own)),
    listed(`${name}/*`, flags)
  ])
  const first = Table.commands.flatMap(({ first, name, verbs }) =>
    first === undefined && verbs.length === 0
      ? []
      : [`      ${name}) ${given(first ?? { words: verbs.map(([verb]) => verb) })};;`]
  )
  const behind = Table.commands.flatMap(({ behind, name }) =>
    behind.map(({ isRepeated, takes, verb }) => `    ${name}/${verb}/${isRepeated ? "*" : ""}) ${given(takes)};;`)
  )
  return String.raw`_assent_take() {
  local word
  while IFS= read -r word; do COMPREPLY+=("$word"); done
}
_assent_words() {
  # Bash replaces what is behind the last colon.
  _assent_take < <(compgen -W "$1" -- "$lead$current" | while IFS= read -r word; do printf '%s\n' "${'${word#"$lead"}'}"; done)
  if [[ "${"${COMPREPLY[0]-}"}" == *[:/] ]]; then compopt -o nospace 2> /dev/null; fi
}
_assent_paths() {
  compopt -o filenames 2> /dev/null
  _assent_take < <(compgen "$1" -- "$current")
}
_assent_source() {
  case "$1" in
    files) [[ -n "$lead" ]] || _assent_paths -f;;
    directories) [[ -n "$lead" ]] || _assent_paths -d;;
    sessions) _assent_words "$("$program" sessions --json 2> /dev/null < /dev/null | sed -n 's/^{"rootSessionId":"\([^"]*\)".*/\1/p')";;
    profiles) _assent_words "$("$program" profiles 2> /dev/null < /dev/null | sed -n 's/^\([^ ][^ ]*\)  .*/\1/p')";;
  esac
}
_assent_behind() {
  local before="$lead"
  if [[ "$lead" == "$1" ]]; then lead=""; _assent_source "$2"; lead="$before"; fi
}
_assent() {
  local program="${"${COMP_WORDS[0]}"}" current="${"${COMP_WORDS[COMP_CWORD]}"}" previous="${"${COMP_WORDS[COMP_CWORD-1]}"}"
  local command="" verb="" rest="" list="" lead="" word i
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
  # Of a word with a colon, all that stands before its last one.
  i=COMP_CWORD
  if [[ "$current" == ":" ]]; then lead=":" current=""; elif ((i > 1)) && [[ "${"${COMP_WORDS[i-1]}"}" == ":" ]]; then lead=":"; ((i--)); fi
  while [[ -n "$lead" ]] && ((i > 1)) && [[ "${"${COMP_WORDS[i-1]}"}" != [-=]* ]]; do ((i--)); lead="${"${COMP_WORDS[i]}$lead"}"; done
  previous="${"${COMP_WORDS[i-1]}"}"
  if [[ "$current" == "=" ]]; then current=""; elif [[ "$previous" == "=" ]]; then previous="${"${COMP_WORDS[i-2]}"}"; fi
  case "$previous" in
${cases.join("\n")}
  esac
  if [[ "$current" == -* ]]; then
    case "${"${command:-chat}"}/$verb" in
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

const given = ({ behind, from, words }: Table.Values): string =>
  [
    ...(words.length === 0 ? [] : [`_assent_words "${words.join(" ")}"`]),
    ...(from === undefined ? [] : [`_assent_source ${from}`]),
    ...(behind === undefined ? [] : [`_assent_behind ${behind.join(" ")}`])
  ].join("; ")
