/** What git is told to run by its options: by settings for one call, and by options of some subcommands. */
import * as GitSetting from "./GitSetting.js"
import * as Order from "./Order.js"

export const orderOf = (ran: Order.Ran): Order.Order => {
  const { words } = ran
  let order = Order.nothing
  let at = 1
  for (; words[at]?.startsWith("-") === true; at++) {
    if (order === Order.tooMany) return order
    const word = words[at] ?? ""
    if (Order.isUnknown(ran, at)) return Order.dark
    if (word === "-c") order = Order.both(order, setting(ran, ++at, words[at] ?? ""))
    else if (/^-c./s.test(word)) order = Order.both(order, setting(ran, at, word.slice(2)))
    else if (valued.test(word)) at++
    else if (!plain.test(word)) return Order.dark
  }
  const subcommand = words[at]
  if (Order.isUnknown(ran, at)) return Order.dark
  if (subcommand === undefined) return order
  const rest: Order.Ran = {
    ...ran,
    words: words.slice(at),
    unknown: ran.unknown.filter((place) => place >= at).map((place) => place - at)
  }
  return Order.both(order, subcommands.get(subcommand)?.(rest) ?? transports(rest))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Subcommand = (ran: Order.Ran) => Order.Order

const valued = /^(?:-C|--git-dir|--work-tree|--namespace|--super-prefix|--attr-source)$/

const plain =
  /^(?:--no-pager|-p|-P|--paginate|--no-optional-locks|--no-replace-objects|--literal-pathspecs|--glob-pathspecs|--noglob-pathspecs|--icase-pathspecs|--bare|--version|-v|--help|-h|--exec-path|--html-path|--man-path|--info-path|--no-lazy-fetch|--(?:git-dir|work-tree|namespace|super-prefix|attr-source|list-cmds)=.*)$/s

/** Settings whose value git runs. */
const programs = /^(?:core\.(?:pager|editor|askpass|sshcommand)|pager\..+|sequence\.editor|diff\.external)$/i

/** More settings by which git neither runs nor loads anything. */
const more =
  /^(?:(?:commit|tag|push|log)\.gpgsign|(?:http|https)\..*extraheader|gc\..+|(?:fetch|submodule|pack|index)\.(?:parallel|fetchjobs|threads|recursesubmodules)|protocol\.version|core\.(?:compression|preloadindex|symlinks|whitespace|bare|precomposeunicode|protectntfs)|diff\..*(?:noprefix|mnemonicprefix|context|submodule|indentheuristic|wserrorhighlight|suppressblankempty)|(?:log|format)\.(?:date|decorate|showsignature|pretty|follow|abbrevcommit)|rebase\.(?:autosquash|autostash|updaterefs)|merge\.(?:ff|stat|log)|commit\.(?:verbose|cleanup|status)|status\..+|grep\.(?:linenumber|patterntype|column)|blame\..+|stash\.show\w+|checkout\.\w+|clone\.defaultremotename|receive\.denycurrentbranch)$/i

const setting = (ran: Order.Ran, at: number, word: string): Order.Order => {
  const equals = word.indexOf("=")
  const key = equals < 0 ? word : word.slice(0, equals)
  if (/[$`]/.test(key)) return Order.dark
  if (GitSetting.isHarmless(key) || more.test(key)) return Order.nothing
  if (/^core\.hookspath$/i.test(key) && /^(?:\/dev\/null)?$/.test(word.slice(equals + 1))) return Order.nothing
  if (!programs.test(key) || Order.isUnknown(ran, at)) return Order.dark
  return Order.text(...[equals < 0 ? "" : word.slice(equals + 1)].filter((text) => text.trim() !== ""))
}

/** `ext::sh -c x`: the name before the colons is a program. */
const transports: Subcommand = ({ words }) =>
  words.some((word) => word.includes("::") && /^(?:--[a-z-]+=)?[A-Za-z0-9+.-]+::/.test(word))
    ? Order.dark
    : Order.nothing

/** Options that take a text. An option may be shortened, and its letter may stand behind other letters. */
const taking =
  (joined: RegExp, next: RegExp): Subcommand =>
  (ran) => {
    let order = transports(ran)
    for (let at = 1; at < ran.words.length && order !== Order.tooMany; at++) {
      const word = ran.words[at] ?? ""
      const found = joined.exec(word)
      const place = found === null ? at + 1 : at
      const text =
        found?.slice(1).find((group) => group !== undefined) ?? (next.test(word) ? ran.words[at + 1] : undefined)
      if (text === undefined) continue
      if (Order.isUnknown(ran, place)) return Order.dark
      order = Order.both(order, Order.text(text))
    }
    return order
  }

const exposed =
  (subcommand: Subcommand): Subcommand =>
  (ran) =>
    ran.words.some((_, at) => at > 0 && Order.mayBeOption(ran, at)) ? Order.dark : subcommand(ran)

const remote = taking(
  /^(?:--(?:upl|rec|exe)[a-z-]*=([^]*)|-[a-zA-Z46]*u([^]+))$/,
  /^(?:--(?:upl|rec|exe)[a-z-]*|-[a-zA-Z46]*u)$/
)

const clone: Subcommand = (ran) => {
  let order = remote(ran)
  for (let at = 1; at < ran.words.length && order !== Order.tooMany; at++) {
    const word = ran.words[at] ?? ""
    if (/^(?:-[a-z]*c|--conf[a-z]*)$/.test(word))
      order = Order.both(order, setting(ran, at + 1, ran.words[at + 1] ?? ""))
    else if (/^--conf[a-z]*=/.test(word)) order = Order.both(order, setting(ran, at, word.slice(word.indexOf("=") + 1)))
    else if (/^-[a-z]*c./s.test(word) && !word.startsWith("--")) return Order.dark
  }
  return order
}

/** `git bisect run` and the program. */
const bisect: Subcommand = (ran) => {
  if (ran.words[1] !== "run") return Order.isUnknown(ran, 1) ? Order.dark : transports(ran)
  const part = Order.part(ran, 2)
  return part === undefined ? Order.nothing : Order.program(part)
}

/** `git submodule foreach` and a text, or words that are joined to one. */
const submodule: Subcommand = (ran) => {
  const at = ran.words.indexOf("foreach")
  if (at < 0) return Order.isUnknown(ran, 1) ? Order.dark : transports(ran)
  let first = at + 1
  while (ran.words[first]?.startsWith("-") === true) first++
  if (ran.unknown.some((place) => place >= first)) return Order.dark
  const text = ran.words.slice(first).join(" ")
  return text.trim() === "" ? Order.nothing : Order.text(text)
}

const ownStrategies = /^(?:ours|recursive|resolve|octopus|subtree|ort|theirs)$/

/** An unknown merge strategy is a program. */
const merging: Subcommand = (ran) =>
  ran.words.some((word, at) => {
    if (!word.startsWith("-")) return false
    const [, glued] = /^(?:-s|--strat[a-z]*=)(.+)$/s.exec(word) ?? []
    if (/^--strategy-o|^-X/.test(word)) return false
    const value = glued ?? (/^(?:-s|--strat[a-z]*)$/.test(word) ? (ran.words[at + 1] ?? "") : undefined)
    return value !== undefined && !ownStrategies.test(value)
  })
    ? Order.dark
    : transports(ran)

const rebase = exposed((ran) =>
  Order.both(merging(ran), taking(/^(?:--ex[a-z]*=([^]*)|-[a-z]*x([^]+))$/, /^(?:--ex[a-z]*|-[a-z]*x)$/)(ran))
)

const filters: Subcommand = (ran) =>
  ran.words.length > 1 && ran.unknown.length > 0
    ? Order.dark
    : taking(/^--[a-z]+-filter=([^]*)$/, /^(?:--(?!subdirectory)[a-z]+-filter|--setup)$/)(ran)

const opaque: Subcommand = (ran) => (ran.words.length === 1 ? Order.nothing : Order.dark)

const subcommands: ReadonlyMap<string, Subcommand> = new Map<string, Subcommand>([
  ["clone", clone],
  ["fetch", remote],
  ["pull", (ran) => Order.both(remote(ran), merging(ran))],
  ["ls-remote", remote],
  ["fetch-pack", remote],
  ["send-pack", remote],
  ["archive", remote],
  ["push", taking(/^--(?:rec|exe)[a-z-]*=([^]*)$/, /^--(?:rec|exe)[a-z-]*$/)],
  ["rebase", rebase],
  ["merge", merging],
  ["cherry-pick", merging],
  ["revert", merging],
  ["bisect", bisect],
  ["submodule", submodule],
  ["for-each-repo", opaque],
  ["difftool", exposed(taking(/^(?:-x([^]+)|--ex[a-z]*=([^]*))$/, /^(?:-x|--ex[a-z]*)$/))],
  ["mergetool", transports],
  ["grep", taking(/^(?:-[a-zA-Z]*O([^]+)|--op[a-z-]*=([^]*))$/, /^(?!)/)],
  ["filter-branch", filters],
  ["send-email", opaque],
  ["daemon", opaque],
  ["remote-ext", opaque],
  ["shell", opaque],
  ["hook", opaque],
  ["p4", opaque],
  ["svn", opaque],
  ["cvsimport", opaque],
  ["cvsserver", opaque],
  ["instaweb", opaque],
  ["web--browse", opaque],
  ["credential", transports],
  [
    "interpret-trailers",
    (ran) => (ran.words.some((word) => /^--(?:trailer|if)/.test(word)) ? transports(ran) : Order.nothing)
  ]
])
