/** What zsh is to run. `_arguments` knows the flags; what stands between them is counted here. */
import * as Table from "./CompletionTable.js"

export const script = (): string => {
  const specs = Table.flags.flatMap(({ help, isRepeated, name, short, takes, value }) => {
    const taken = takes === undefined ? "" : `:${value}:${takes === "any" ? " " : given(takes)}`
    const what = `[${told(help)}]${taken}`
    const both = short === undefined || isRepeated ? "" : `(-${short} --${name})`
    const begin = isRepeated ? "*" : both
    const long = `    --${name} '${begin}--${name}${takes === undefined ? "" : "="}${what}'`
    return short === undefined ? [long] : [long, `    -${short} '${begin}-${short}${what}'`]
  })
  const listed = (place: string, names: ReadonlyArray<Table.Flag>) =>
    `    ${place}) names=(${names
      .flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
      .join(" ")});;`
  const flags = Table.commands.flatMap(({ flags, flagsOf, name }) => [
    ...flagsOf.map(([verb, own]) => listed(`${name}/${verb}`, own)),
    listed(`${name}/*`, flags)
  ])
  const first = Table.commands.flatMap(({ first, name, verbs }) => {
    if (first !== undefined) return [`      ${name})${given(first)};;`]
    return verbs.length === 0 ? [] : [`      ${name}) list=(${described(verbs)}); _describe word list;;`]
  })
  const behind = Table.commands.flatMap(({ behind, name }) =>
    behind.map(({ isRepeated, takes, verb }) => `      ${name}/${verb}${isRepeated ? "*" : ""})${given(takes)};;`)
  )
  return String.raw`#compdef assent
_assent_values() {
  local from="$1" behind="$2" rest="$3"
  shift 3
  if [[ -n "$behind" && "$PREFIX" == "$behind"* ]]; then
    compset -P "$behind"
    _assent_source "$rest"
    return
  fi
  compadd -S "" -- "${"${(@M)@:#*[:/]}"}"
  compadd -- "${"${(@)@:#*[:/]}"}"
  _assent_source "$from"
}
_assent_source() {
  case "$1" in
    files) _files;;
    directories) _files -/;;
    sessions) _assent_sessions;;
    profiles) _assent_profiles;;
  esac
}
_assent_sessions() {
  local -a ids
  ids=(${"${(f)"}"$("${"${(Q)words[1]}"}" sessions --json 2> /dev/null < /dev/null | sed -n 's/^{"rootSessionId":"\([^"]*\)".*"title":"\([^"\\]*\).*/\1:\2/p')"})
  _describe session ids
}
_assent_profiles() {
  local -a profiles
  profiles=(${"${(f)"}"$("${"${(Q)words[1]}"}" profiles 2> /dev/null < /dev/null | sed -n 's/:/\\:/g; s/^\([^ ][^ ]*\)  \(.*\)/\1:\2/p')"})
  _describe profile profiles
}
_assent_rest() {
  local -a list
  case $#at in
    0)
      list=(${described(Table.commands.map(({ name, what }) => [name, what]))})
      _describe command list;;
    1) case "$at[1]" in
${first.join("\n")}
    esac;;
    *) case "${"${(j:/:)at}"}" in
${behind.join("\n")}
    esac;;
  esac
}
_assent() {
  local -a at names specs
  local -A of
  local word i
  # The words before this one that belong to no flag.
  for ((i = 2; i < CURRENT; i++)); do
    word="${"${(Q)words[i]}"}"
    case "$word" in
      ${Table.valued.join("|")}) ((i++));;
      -*) ;;
      *) at+=("$word");;
    esac
  done
  case "${"${at[1]:-chat}"}/$at[2]" in
${flags.join("\n")}
  esac
  of=(
${specs.join("\n")}
  )
  for word in $names; do specs+=("$of[$word]"); done
  _arguments $specs '*: :_assent_rest'
}
if [ "$funcstack[1]" = "_assent" ]; then _assent "$@"; else compdef _assent assent; fi`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const told = (text: string): string => text.replace(/[[\]:\\]/g, "\\$&").replace(/'/g, "'\\''")

const described = (list: ReadonlyArray<readonly [string, string]>): string =>
  list.map(([word, what]) => `'${told(word)}:${told(what)}'`).join(" ")

/** Behind a blank: it is called as it stands. */
const given = ({ behind, from, words }: Table.Values): string => {
  if (words.length === 0) return ` _assent_source ${from}`
  const [before, rest] = behind === undefined ? ['""', '""'] : [told(behind[0]), behind[1]]
  return ` _assent_values ${[from ?? '""', before, rest, ...words.map(told)].join(" ")}`
}
