/**
 * Programs and shell builtins that run a program or a text behind their options: what they are told to run, for rules
 * that deny. {@link Runner} says the same for rules that allow, for fewer programs and more strictly.
 */
import * as Order from "./Order.js"

/** Nothing for other programs. */
export const orderOf = (ran: Order.Ran): Order.Order | undefined => Order.known(wrappers, ran.words[0] ?? "")?.(ran)

export const names = (): ReadonlyArray<string> => [...wrappers.keys()]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Wrapper = (ran: Order.Ran) => Order.Order

interface Prefix extends Order.Shape {
  /** Words between the options and the program. */
  readonly skipped?: number
}

/** Options, then a program. */
const prefix =
  (shape: Prefix): Wrapper =>
  (ran) => {
    const { skipped = 0 } = shape
    const scanned = Order.scan(ran, shape, "first")
    if (scanned === undefined) return Order.dark
    const [first] = scanned.operands
    const told = Order.text(...scanned.texts)
    if (first === undefined) return told
    const at = first + skipped
    if (at >= ran.words.length) return told
    if (ran.unknown.some((place) => place < at)) return Order.dark
    const part = Order.part(ran, at)
    return part === undefined ? told : Order.both(told, Order.program(part))
  }

/** Its words, joined, are a text. */
const joined =
  (shape: Order.Shape): Wrapper =>
  (ran) => {
    const scanned = Order.scan(ran, shape, "first")
    if (scanned === undefined) return Order.dark
    const [first] = scanned.operands
    if (first === undefined) return Order.nothing
    if (ran.unknown.some((at) => at >= first)) return Order.dark
    return Order.text(ran.words.slice(first).join(" "))
  }

/** Every operand is a text. */
const each =
  (shape: Order.Shape): Wrapper =>
  (ran) => {
    const scanned = Order.scan(ran, shape, "anywhere")
    if (scanned === undefined || scanned.operands.some((at) => Order.isUnknown(ran, at))) return Order.dark
    return Order.text(...scanned.texts, ...scanned.operands.map((at) => ran.words[at] ?? ""))
  }

/** Only the first words of the program are known; it gets more from its input. */
const fedWith = (ran: Order.Ran, replaced: string | undefined): Order.Ran =>
  replaced === undefined
    ? { ...ran, words: [...ran.words, "$@"], unknown: [...ran.unknown, ran.words.length], fed: false }
    : { ...ran, unknown: Order.places(ran, (word, at) => word.includes(replaced) || Order.isUnknown(ran, at)) }

const xargsShape: Order.Shape = {
  flags:
    /^(?:-[0rtxop]+|--null|--no-run-if-empty|--verbose|--exit|--interactive|--open-tty|-[nLPsEdJRS].+|-[eli].*|--(?:max-args|max-lines|max-procs|max-chars|delimiter|eof|arg-file|replace|process-slot-var)(?:=.*)?|-a.+|-I.+)$/s,
  values: /^-[nLPsEdaIJRS]$/
}

const xargs: Wrapper = (ran) => {
  const scanned = Order.scan(ran, xargsShape, "first")
  if (scanned === undefined) return Order.dark
  const [first] = scanned.operands
  if (first === undefined) return Order.nothing
  const options = ran.words.slice(1, first)
  let replaced: string | undefined
  for (const [at, word] of options.entries()) {
    const [, glued] = /^(?:-[Ii]|--replace=)(.+)$/s.exec(word) ?? []
    if (glued !== undefined) replaced = glued
    else if (word === "-i" || word === "--replace") replaced = "{}"
    else if (word === "-I" || word === "-J") replaced = options[at + 1] ?? "{}"
  }
  const part = Order.part(ran, first)
  return part === undefined ? Order.dark : Order.program(fedWith(part, replaced))
}

const find: Wrapper = (ran) => {
  let order = Order.nothing
  for (let at = 1; at < ran.words.length && order !== Order.tooMany; at++) {
    if (!/^-(?:exec|ok)(?:dir)?$/.test(ran.words[at] ?? "")) continue
    let end = at + 1
    while (end < ran.words.length && ran.words[end] !== ";" && !(ran.words[end] === "+" && ran.words[end - 1] === "{}"))
      end++
    const part = end < ran.words.length && end > at + 1 ? Order.part(ran, at + 1, end) : undefined
    if (part === undefined) return Order.dark
    order = Order.both(order, Order.program(fedWith(part, "{}")))
    at = end
  }
  return order
}

const fd: Wrapper = (ran) => {
  const at = ran.words.findIndex((word) => /^(?:-[A-Za-z]*[xX]|--exec(?:-batch)?)$/.test(word))
  if (ran.words.some((word) => /^(?:-[xX].|--exec[^=]*=)/.test(word))) return Order.dark
  if (at < 0) return Order.nothing
  const part = Order.part(ran, at + 1)
  if (part === undefined) return Order.dark
  return Order.program(fedWith(part, part.words.some((word) => word.includes("{")) ? "{" : undefined))
}

/** The text stands behind the file, in the place of the program. */
const flock: Wrapper = (ran) => {
  const at = ran.words.findIndex((word) => /^(?:-[nxseouF]*c|--command)$/.test(word))
  if (at > 0) return Order.isUnknown(ran, at + 1) ? Order.dark : Order.text(ran.words[at + 1] ?? "")
  return prefix({
    flags: /^(?:-[nxseouF]+|--(?:nonblock|exclusive|shared|unlock|close|no-fork|verbose))$/,
    values: /^(?:-[wE]|--timeout|--wait)$/,
    skipped: 1
  })(ran)
}

const env: Wrapper = (ran) => {
  let at = 1
  while (ran.words[at]?.startsWith("-") === true) {
    const word = ran.words[at] ?? ""
    if (/^(?:-[iv0]*S|--s)/.test(word)) return splitting(ran, at)
    at += /^(?:-[uC]|--unset|--chdir)$/.test(word) ? 2 : 1
  }
  // It accepts names of variables that no shell would.
  for (; ran.words[at]?.includes("=") === true; at++) if (!Order.isAssignment(ran, at)) return Order.dark
  return plainEnv(ran)
}

const plainEnv = prefix({
  flags: /^(?:-[i0v]+|--ignore-environment|--null|--debug|--unset=.+|-u.+|-C.+|--chdir=.+)$/,
  values: /^-[uC]$|^--(?:unset|chdir)$/
})

/** A word that the program splits into several. */
const splitting = (ran: Order.Ran, at: number): Order.Order => {
  const glued = (ran.words[at] ?? "").replace(/^(?:-[iv0]*S|--s[a-z-]*=?)/, "")
  const given = glued === "" ? at + 1 : at
  if (ran.unknown.length > 0 || /[$\\]/.test(ran.words[given] ?? "")) return Order.dark
  return Order.text([glued, ...ran.words.slice(at + 1)].join(" "))
}

/**
 * Shell builtins that evaluate expressions in brackets, and run commands inside them. `names`: operands that are names
 * of variables, which may hold brackets too.
 */
const computing =
  (names: (word: string, before: string) => boolean): Wrapper =>
  (ran) =>
    ran.words.some((word, at) =>
      at === 0 ? false : Order.isUnknown(ran, at) ? names(word, ran.words[at - 1] ?? "") : /\$\(|`/.test(word)
    )
      ? Order.dark
      : Order.nothing

const byOption = (_: string, before: string): boolean => /^-[A-Za-z]*v$/.test(before)
const byWait = (_: string, before: string): boolean => /^-[A-Za-z]*p$/.test(before)
const byNone = (): boolean => false
const byExpansion = (word: string): boolean => /^[$`]/.test(word)

const trap: Wrapper = (ran) => {
  const at = ran.words[1] === "--" ? 2 : 1
  const text = ran.words[at]
  if (text === undefined || ran.words.length === at + 1 || /^-[lp]?$/.test(text)) return Order.nothing
  return Order.isUnknown(ran, at) ? Order.dark : text.trim() === "" ? Order.nothing : Order.text(text)
}

const alias: Wrapper = (ran) => {
  const given = ran.words.slice(1).filter((word) => word.includes("="))
  if (ran.unknown.length > 0) return Order.dark
  return Order.text(...given.map((word) => word.slice(word.indexOf("=") + 1)).filter((text) => text.trim() !== ""))
}

const source: Wrapper = (ran) => {
  const file = ran.words[1]
  if (file === undefined) return Order.nothing
  return Order.isUnknown(ran, 1) || Order.isInput(file) || /[*?[]/.test(file) ? Order.dark : Order.nothing
}

const told =
  (pattern: RegExp): Wrapper =>
  (ran) =>
    ran.words.some((word, at) => at > 0 && pattern.test(word)) ? Order.dark : Order.nothing

/** With operands, nothing is known about what it runs. */
const opaque: Wrapper = (ran) =>
  ran.words.length === 1 || (ran.words.length === 2 && /^--?(?:version|help|[vhV])$/.test(ran.words[1] ?? ""))
    ? ran.fed
      ? Order.dark
      : Order.nothing
    : Order.dark

const many = (names: string, wrapper: Wrapper): ReadonlyArray<readonly [string, Wrapper]> =>
  names.split(" ").map((name) => [name, wrapper] as const)

const anyFlag = /^-/

const wrappers: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  ["env", env],
  ["xargs", xargs],
  ...many("find gfind", find),
  ...many("fd fdfind", fd),
  ["nice", prefix({ flags: /^(?:-n?-?\d+|--adjustment=-?\d+)$/, values: /^(?:-n|--adjustment)$/ })],
  ...many(
    "nohup exec builtin busybox toybox unbuffer chronic fakeroot dbus-run-session cross-env noglob nocorrect",
    prefix({})
  ),
  ["command", (ran) => (/^-[vV]/.test(ran.words[1] ?? "") ? Order.nothing : prefix({ flags: /^-p$/ })(ran))],
  [
    "timeout",
    prefix({
      flags: /^(?:-[ks].+|-[vfp]+|--preserve-status|--foreground|--verbose|--signal=.+|--kill-after=.+)$/,
      values: /^(?:-[ks]|--signal|--kill-after)$/,
      skipped: 1
    })
  ],
  [
    "time",
    prefix({ flags: /^(?:-[pvaql]+|--verbose|--portability|--format=.*)$/, values: /^(?:-[fo]|--format|--output)$/ })
  ],
  ["stdbuf", prefix({ flags: /^(?:-[ioe].+|--(?:input|output|error)=.+)$/, values: /^-[ioe]$/ })],
  ["setsid", prefix({ flags: /^(?:-[cfw]+|--ctty|--fork|--wait)$/ })],
  ["ionice", prefix({ flags: /^(?:-[cn]\d+|-t|-[cn]=?\d+)$/, values: /^-[cn]$/ })],
  ["taskset", prefix({ flags: /^(?:-a|--all-tasks|--cpu-list|-a?c)$/, skipped: 1 })],
  ["caffeinate", prefix({ flags: /^-[dimsu]+$/, values: /^-t$/ })],
  ["strace", prefix({ flags: /^-[fqtTvcCyi]+$/, values: /^-[eosP]$/ })],
  ["xvfb-run", prefix({ flags: /^(?:-a|--auto-servernum)$/, values: /^-[sn]$/ })],
  ["sudo", prefix({ flags: /^-[nEHkbSP]+$/, values: /^-[ug]$/ })],
  ["doas", prefix({ flags: /^-n$/, values: /^-u$/ })],
  ["flock", flock],
  ["eval", joined({})],
  [
    "watch",
    joined({
      flags: /^-(?:[tdegcbpx]+|n[\d.]+|-interval=[\d.]+|-no-title|-differences|-color|-exec)$/,
      values: /^(?:-n|--interval)$/
    })
  ],
  ...many("hyperfine concurrently", each({ flags: anyFlag })),
  ["trap", trap],
  ["alias", alias],
  ...many(". source", source),
  ...many("test [ printf", computing(byOption)),
  ["wait", computing(byWait)],
  // Some shells compute the number that they take.
  ...many("shift return exit break continue ulimit umask kill", computing(byNone)),
  ["jobs", (ran) => (Order.scan(ran, { flags: /^-[lnprs]+$/ }, "first") === undefined ? Order.dark : Order.nothing)],
  ...many("let declare typeset local export readonly unset read getopts", computing(byExpansion)),
  ...many("hash enable", told(/^-[A-Za-z]*[pf]/)),
  ...many("mapfile readarray", (ran) => Order.both(told(/^-[A-Za-z]*C/)(ran), computing(byExpansion)(ran))),
  ...many("bind complete compgen fc coproc", opaque),
  ...many(
    "parallel sem chrt setpriv runuser gosu su pkexec ltrace gdb lldb valgrind script chroot unshare nsenter run-parts " +
      "systemd-run direnv ifne mispipe prlimit numactl cgexec firejail bwrap proot torsocks proxychains watchexec entr nodemon " +
      "arch rlwrap ld.so start-stop-daemon chpst dotenv tmux screen at batch crontab",
    opaque
  )
])
