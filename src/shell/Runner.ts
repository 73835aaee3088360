/**
 * What a program that runs programs would run, as far as its arguments tell.
 *
 * The wrappers here are understood completely or not at all. With an option that is not named here, a program that is
 * not known before it runs, or another directory, nothing is said about what would run.
 */
import * as Program from "./Program.js"
import type { Open } from "./Harmless.js"
import { maxCommands } from "./ShellSyntax.js"

/** A program that would be run. */
export interface Inner {
  /** The program first. */
  readonly words: ReadonlyArray<string>
  /** `NAME=value` that it would be given. */
  readonly assignments: ReadonlyArray<string>
  readonly open: Open | undefined
  /** Where its words begin among those of the program that runs it. */
  readonly at: number
}

export type Runs =
  /** It runs no other program that its arguments name. */
  | { readonly _tag: "Nothing" }
  /** It runs these, and reads `own` itself. */
  | { readonly _tag: "Programs"; readonly inner: ReadonlyArray<Inner>; readonly own: ReadonlyArray<string> }
  /** It runs this text in a shell. `end`: what stands behind these words is not in the text. */
  | { readonly _tag: "Text"; readonly text: string; readonly own: ReadonlyArray<string>; readonly end: number }
  /** It runs something else, or may. */
  | { readonly _tag: "Unknown" }

/** It runs the program it is given, and for some of its calls that program can be told. */
export const isWrapper = (program: string): boolean => wrappers.has(program)

/** `words` are unquoted, the program first. */
export const runs = (words: ReadonlyArray<string>): Runs => {
  const program = words[0] ?? ""
  const wrapper = wrappers.get(program)
  if (wrapper !== undefined) return wrapper(words)
  return opaque.has(Program.nameOf(program)) ? unknown : nothing
}

/** What it runs may get other variables than it has itself. `own`: the words that it reads itself. */
export const changesVariables = (own: ReadonlyArray<string>): boolean =>
  !passing.has(own[0] ?? "") && (own[0] !== "env" || own.length > 1)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Wrapper = (words: ReadonlyArray<string>) => Runs

const nothing: Runs = { _tag: "Nothing" }
const unknown: Runs = { _tag: "Unknown" }

const assignment = /^[A-Za-z_][A-Za-z0-9_]*\+?=/

/** The program that begins here; assignments in front of it belong to it. */
const programAt = (words: ReadonlyArray<string>, at: number, open?: Open): Runs => {
  let start = at
  while (assignment.test(words[start] ?? "")) start++
  if (start >= words.length) return start === at ? { _tag: "Programs", inner: [], own: words } : unknown
  const inner = { words: words.slice(start), assignments: words.slice(at, start), open, at: start }
  return { _tag: "Programs", inner: [inner], own: words.slice(0, at) }
}

interface Shape {
  /** Options without a value. */
  readonly flags?: RegExp
  /** Options with a value in the next word. */
  readonly values?: RegExp
  /** Words that stand between the options and the program. */
  readonly operands?: number
  readonly open?: Open
}

/** Options, then a program. */
const prefix =
  ({ flags = /^$/, values = /^$/, operands = 0, open }: Shape): Wrapper =>
  (words) => {
    let at = 1
    for (; words[at]?.startsWith("-") === true; at++) {
      const word = words[at] ?? ""
      if (word === "--") {
        at++
        break
      }
      if (values.test(word)) at++
      else if (!flags.test(word)) return unknown
    }
    for (let i = 0; i < operands; i++, at++) if (words[at]?.startsWith("-") === true) return unknown
    return at > words.length ? unknown : programAt(words, at, open)
  }

const xargs = prefix({
  // `-I` and `-i` put the input anywhere in the command, into the program's name too.
  flags:
    /^(?:-[0rtx]+|--null|--no-run-if-empty|--verbose|--exit|-[nLPsEd].+|--(?:max-args|max-lines|max-procs|max-chars|delimiter|eof)=.+)$/,
  values: /^-[nLPsEd]$/,
  open: "words"
})

const shell: Wrapper = (words) => {
  if (words.length === 2 && words[1] === "--version") return nothing
  let at = 1
  let hasText = false
  for (; words[at]?.startsWith("-") === true; at++) {
    // A login shell reads the person's own files first, as each shell of theirs does.
    if (!/^-[celux]+$/.test(words[at] ?? "")) return unknown
    hasText ||= words[at]?.includes("c") === true
  }
  const text = words[at]
  if (text === undefined) return unknown
  // A script file is not looked into, as for every other interpreter.
  return hasText ? { _tag: "Text", text, own: words.slice(0, at), end: at + 1 } : nothing
}

const watch: Wrapper = (words) => {
  let at = 1
  for (; words[at]?.startsWith("-") === true; at++) {
    if (/^(?:-n|--interval)$/.test(words[at] ?? "")) at++
    else if (!/^(?:-[tdeg]+|-n[\d.]+|--interval=[\d.]+|--no-title|--differences)$/.test(words[at] ?? "")) return unknown
  }
  if (at >= words.length) return unknown
  return { _tag: "Text", text: words.slice(at).join(" "), own: words.slice(0, at), end: words.length }
}

/** Each `-exec … ;` or `-exec … {} +`. */
const find: Wrapper = (words) => {
  if (words.some((word) => word === "-execdir" || word === "-okdir")) return unknown
  const inner: Array<Inner> = []
  const own: Array<string> = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word !== "-exec" && word !== "-ok") {
      own.push(word)
      continue
    }
    let end = at + 1
    while (end < words.length && words[end] !== ";" && !(words[end] === "+" && words[end - 1] === "{}")) end++
    const ran = words.slice(at + 1, end)
    // A found path replaces the braces, so the program's name must not hold them.
    if (end >= words.length || ran.length === 0 || ran[0]?.includes("{}") === true) return unknown
    if (inner.length >= maxCommands) return unknown
    const many = words[end] === "+" ? "paths" : "path"
    const open = ran.some((text) => text.includes("{}")) ? many : undefined
    inner.push({ words: ran, assignments: [], open, at: at + 1 })
    at = end
  }
  return inner.length === 0 ? nothing : { _tag: "Programs", inner, own }
}

const command: Wrapper = (words) => (/^-[vV]$/.test(words[1] ?? "") ? nothing : prefix({ flags: /^-p$/ })(words))

const sudo = prefix({ flags: /^-[nEHkbS]+$/, values: /^-[ug]$/ })

/** They hand their variables on. */
const passing: ReadonlySet<string> = new Set(
  "nice nohup timeout time setsid command exec xargs find gfind watch sh bash dash".split(" ")
)

const wrappers: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  ["env", prefix({ flags: /^(?:-i|-|-0|--ignore-environment|--null|--unset=.+|-u.+)$/, values: /^-u$/ })],
  ["nice", prefix({ flags: /^(?:-n?-?\d+|--adjustment=-?\d+)$/, values: /^(?:-n|--adjustment)$/ })],
  ["nohup", prefix({})],
  [
    "timeout",
    prefix({
      flags: /^(?:-[ks].+|-v|--preserve-status|--foreground|--verbose|--signal=.+|--kill-after=.+)$/,
      values: /^(?:-[ks]|--signal|--kill-after)$/,
      operands: 1
    })
  ],
  ["time", prefix({ flags: /^-[pv]$/ })],
  ["stdbuf", prefix({ flags: /^(?:-[ioe].+|--(?:input|output|error)=.+)$/, values: /^-[ioe]$/ })],
  ["setsid", prefix({ flags: /^(?:-[cfw]+|--ctty|--fork|--wait)$/ })],
  ["command", command],
  ["exec", prefix({})],
  ["busybox", prefix({})],
  ["toybox", prefix({})],
  ["sudo", sudo],
  ["doas", prefix({ flags: /^-n$/, values: /^-u$/ })],
  ["xargs", xargs],
  ["find", find],
  ["gfind", find],
  ["watch", watch],
  ...["sh", "bash", "dash"].map((name): [string, Wrapper] => [name, shell])
])

/** Programs that run what they are given, in ways that are not understood here. */
const opaque: ReadonlySet<string> = new Set(
  [
    "env nice nohup timeout time stdbuf setsid command exec busybox toybox sudo doas xargs find gfind watch eval trap builtin",
    "sh bash dash zsh ksh mksh ash fish csh tcsh rbash . source coproc",
    "parallel sem ionice renice chrt taskset setpriv runuser gosu su pkexec strace ltrace gdb valgrind unbuffer script expect",
    "chroot unshare nsenter fakeroot flock run-parts systemd-run dbus-run-session xvfb-run direnv chronic ifne mispipe prlimit",
    "numactl cgexec firejail bwrap proot torsocks proxychains hyperfine watchexec entr nodemon concurrently caffeinate arch"
  ].flatMap((line) => line.split(" "))
)
