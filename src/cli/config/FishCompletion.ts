/** What fish is to run: a line for each thing that can be completed, with where it can. */
import * as Table from "./CompletionTable.js"

export const script = (): string => {
  const line = (condition: string, rest: string) => `complete -c assent -n "${condition}" ${rest}`
  const words = (condition: string, list: ReadonlyArray<readonly [string, string]>) =>
    list.map(([word, what]) => line(condition, `-a ${word} -d ${told(what)}`))
  const places = Table.commands.flatMap(({ behind, first, name, verbs }) => [
    ...words(`__assent_at ${name}`, verbs),
    ...(first === undefined ? [] : [line(`__assent_at ${name}`, given(first))]),
    ...behind.map(({ isRepeated, takes, verb }) =>
      line(`__assent_at ${name} ${verb}${isRepeated ? "; or __assent_below " + `${name} ${verb}` : ""}`, given(takes))
    )
  ])
  const options = Table.flags.map(({ help, name, short, takes }) => {
    const has = (flags: ReadonlyArray<Table.Flag>) => flags.some((flag) => flag.name === name)
    const users = Table.commands.flatMap((command) =>
      command.flagsOf.length === 0
        ? has(command.flags)
          ? [`${command.name}/*`]
          : []
        : [...command.flagsOf, ["", command.flags] as const].flatMap(([verb, flags]) =>
            has(flags) ? [`${command.name}/${verb}`] : []
          )
    )
    const taken = takes === undefined ? "" : takes === "any" ? " -x" : ` -r ${given(takes)}`
    const called = `-l ${name}${short === undefined ? "" : ` -s ${short}`}`
    return line(`__assent_of ${users.map((user) => `'${user}'`).join(" ")}`, `${called}${taken} -d ${told(help)}`)
  })
  return [
    String.raw`function __assent_words
  # The words before this one that belong to no flag.
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
    else
      switch $word
        case ${Table.valued.join(" ")}
          set skip 1
        case '-*'
        case '*'
          echo -- $word
      end
    end
  end
end
function __assent_at
  set -l words (__assent_words)
  test "$words" = "$argv"
end
function __assent_below
  set -l words (__assent_words)
  test (count $words) -gt (count $argv); and test "$words[1..$(count $argv)]" = "$argv"
end
function __assent_of
  set -l words (__assent_words)
  test (count $words) -gt 0; or set words chat
  contains -- "$words[1]/*" $argv; or contains -- "$words[1]/$words[2]" $argv
end
function __assent_sessions
  set -l program (commandline -opc)[1]
  $program sessions --json 2> /dev/null < /dev/null | string replace -rf '^\{"rootSessionId":"([^"]*)".*"title":"([^"\\\\]*).*' '$1'\t'$2'
end
function __assent_profiles
  set -l program (commandline -opc)[1]
  $program profiles 2> /dev/null < /dev/null | string replace -rf '^(\S+)  (.*)' '$1'\t'$2'
end
function __assent_behind
  set -l token (commandline -ct | string replace -r -- '^--[\w-]+=' '')
  string match -q -- "$argv[1]*" $token; or return
  set -l rest (string sub -s (math (string length -- $argv[1]) + 1) -- $token)
  switch $argv[2]
    case files
      __fish_complete_path "$rest" | string replace -r -- '^' $argv[1]
    case directories
      __fish_complete_directories "$rest" | string replace -r -- '^' $argv[1]
  end
end`,
    "complete -c assent -f",
    ...words(
      "__assent_at",
      Table.commands.map(({ name, what }) => [name, what])
    ),
    ...places,
    ...options
  ].join("\n")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const told = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`

const sources: { readonly [Source in Table.Source]: ReadonlyArray<string> } = {
  files: [],
  directories: ["(__fish_complete_directories)"],
  sessions: ["(__assent_sessions)"],
  profiles: ["(__assent_profiles)"]
}

const given = ({ behind, from, words }: Table.Values): string => {
  const list = [
    ...words,
    ...(from === undefined ? [] : sources[from]),
    ...(behind === undefined ? [] : [`(__assent_behind ${behind.join(" ")})`])
  ]
  return [from === "files" ? "-F" : "-f", ...(list.length === 0 ? [] : [`-a ${told(list.join(" "))}`])].join(" ")
}
