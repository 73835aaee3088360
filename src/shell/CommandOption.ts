/**
 * What ordinary programs are told to run by some of their options.
 *
 * For each program the understood options are named. Any other option may tell it to run anything.
 */
import * as GitOrder from "./GitOrder.js"
import * as Harmless from "./Harmless.js"
import * as HarmlessVariable from "./HarmlessVariable.js"
import * as Interpreter from "./Interpreter.js"
import * as Order from "./Order.js"
import * as Program from "./Program.js"
import * as TextScript from "./TextScript.js"
import * as Wrapper from "./Wrapper.js"

/** Nothing for a program that has no known option to run something. */
export const orderOf = (ran: Order.Ran): Order.Order | undefined => {
  const teller = Order.known(tellers, ran.words[0] ?? "")
  if (teller !== undefined) return teller(ran)
  const [program = ""] = ran.words
  if (Program.alwaysRuns(program)) return Order.both(texts(ran), behind(ran))
  return Harmless.isKnown(program) ? undefined : behind(ran)
}

/**
 * For rules that allow: with these words the program, which some of its options tell to run others, does its own work
 * only, where it was called. What runs on another machine is its own work.
 */
export const isOwnWork = (words: ReadonlyArray<string>): boolean => {
  const [program = ""] = words
  const ran: Order.Ran = { words, unknown: [], fed: false, assignments: [] }
  const builder = Order.known(builders, program)
  const teller = builder ?? Order.known(tellers, program)
  const builds = builder !== undefined || teller === make || (teller === undefined && Program.alwaysRuns(program))
  if (builds && words.some((word, at) => at > 0 && elsewhere.test(word))) return false
  if (teller === undefined) return !packagers.has(Program.nameOf(program)) || isNothing(texts(ran))
  const script = scripts.get(teller)
  if (script !== undefined && words.some((word, at) => at > 0 && script.test(word))) return false
  const order = teller(ran)
  return teller === ssh ? !order.dark : isNothing(order)
}

/** The program feeds what it runs, or may do so. */
export const tells = (program: string): boolean => Order.known(tellers, program) !== undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isNothing = ({ dark, programs, texts }: Order.Order): boolean =>
  !dark && programs.length === 0 && texts.every(HarmlessVariable.isPlainValue)

/** Options that name another place for a project, whose files then say what runs. */
const elsewhere =
  /^(?:-C|--?(?:C|modfile|overlay|prefix|cwd|dir|directory|chdir|project-dir|root|manifest-path)(?:=|$))/

/** A command with more programs than this is not written by anybody. */
const maxBehind = 8

/** Programs whose operands name packages, not programs to run. */
const installing =
  /^(?:install|add|i|ci|remove|rm|uninstall|update|upgrade|info|show|view|search|list|ls|outdated|pull|push)$/

/**
 * For a program that may run others in ways that are not understood: each of its words is looked at as if a program
 * began there, so that `docker exec box sh` runs a shell.
 */
const behind = (ran: Order.Ran): Order.Order => {
  if (installing.test(ran.words[1] ?? "") && Order.isKnown(ran, 1)) return Order.nothing
  let order = Order.nothing
  let seen = 0
  for (let at = 1; at < ran.words.length; at++) {
    const word = ran.words[at] ?? ""
    if (!mayTell(word)) continue
    // No known name begins with a dash or has a blank.
    if (/^-|\s/.test(word) && !word.includes("/")) continue
    if (Order.isUnknown(ran, at) || ++seen > maxBehind) return Order.dark
    let from = at
    while (from > 1 && Order.isAssignment(ran, from - 1)) from--
    const part = Order.part(ran, from)
    if (part !== undefined) order = Order.both(order, Order.program(part))
  }
  return order
}

/** One look for each word, because a long command has many of them. */
const mayTell = (word: string): boolean => {
  const name = Program.nameOf(word)
  if (telling.has(name)) return true
  return (
    (/^[pi]/.test(name) && /^(?:python|pypy|ipython)/.test(name)) ||
    (name !== word && telling.has(Program.basename(word).toLowerCase()))
  )
}

type Teller = (ran: Order.Ran) => Order.Order

/** For otherwise unknown programs: options that hand a text to a shell. */
const textOption = /^(?:-c|--(?:command|cmd|call|exec|run|shell-command))(?:=([^]*))?$/

/** Settings of package managers that name a program. Their names may be shortened. */
const namesProgram =
  /^--?(?:scr|node-op|onload|shell(?:$|=)|edi|view|git(?:$|=)|userc|globalc|init[.-]m|node-gyp|python(?:$|=))/

const texts: Teller = (ran) => {
  let order = Order.nothing
  const packages = packagers.has(Program.nameOf(ran.words[0] ?? ""))
  for (let at = 1; at < ran.words.length && order !== Order.tooMany; at++) {
    const word = ran.words[at] ?? ""
    if (word === "--") break
    if (!word.startsWith("-")) continue
    if (packages && namesProgram.test(word)) return Order.dark
    const found = textOption.exec(word)
    if (found === null) continue
    const place = found[1] === undefined ? at + 1 : at
    const text = found[1] ?? ran.words[at + 1]
    if (text === undefined) continue
    // A mere name, such as a directory, is looked at together with the words behind it.
    if (Order.isUnknown(ran, place)) return Order.dark
    if (/[\s;&|$`]/.test(text)) order = Order.both(order, Order.text(text))
  }
  return order
}

const packagers: ReadonlySet<string> = new Set("npm npx pnpm pnpx yarn yarnpkg bunx corepack".split(" "))

/** Reads all options, anywhere in the command. */
const options =
  (shape: Order.Shape, check?: (ran: Order.Ran, scanned: Order.Scanned) => boolean): Teller =>
  (ran) => {
    const scanned = Order.scan(ran, shape, "anywhere")
    if (scanned === undefined || (check !== undefined && !check(ran, scanned))) return Order.dark
    return Order.text(...scanned.texts)
  }

const wordAt = (ran: Order.Ran, at: number): string => ran.words[at] ?? ""

// ---- sed and awk

const sed: Teller = (ran) => {
  const { words } = ran
  const scripts: Array<number> = []
  const operands: Array<number> = []
  let hasFile = false
  for (let at = 1; at < words.length; at++) {
    const word = wordAt(ran, at)
    if (operands.length + scripts.length === 0 ? false : Order.mayBeOption(ran, at)) return Order.dark
    if (!word.startsWith("-") || word === "-") operands.push(at)
    else if (/^(?:-[nErszu]*e|--expression)$/.test(word)) scripts.push(++at)
    else if (/^(?:-[nErszu]*f|--file)$/.test(word)) {
      hasFile = true
      if (!Order.isKnown(ran, ++at) || Order.isInput(wordAt(ran, at))) return Order.dark
    } else if (word.startsWith("--expression=")) {
      if (!Order.isKnown(ran, at) || !TextScript.sedOnlyEdits(word.slice("--expression=".length))) return Order.dark
      hasFile = true
    } else if (
      // The text behind `-i` is a suffix of file names.
      !/^(?:-[nErszu]+|-[nErszu]*i[^]*|--(?:quiet|silent|regexp-extended|null-data|posix|debug|sandbox|separate|unbuffered|version|help|in-place(?:=[^]*)?)|--)$/.test(
        word
      )
    )
      return Order.dark
  }
  const [first] = operands
  if (scripts.length === 0 && !hasFile && first !== undefined) {
    scripts.push(first)
    // The BSD form `sed -i '' script`: the first operand is empty.
    if (wordAt(ran, first) === "" && operands[1] !== undefined) scripts.push(operands[1])
  }
  return scripts.every((at) => Order.isKnown(ran, at) && TextScript.sedOnlyEdits(wordAt(ran, at)))
    ? Order.nothing
    : Order.dark
}

const awk: Teller = (ran) => {
  for (let at = 1; at < ran.words.length; at++) {
    const word = wordAt(ran, at)
    if (/^(?:-[Fv]|--field-separator|--assign)$/.test(word)) at++
    else if (/^-[Fv]./s.test(word) || /^--(?:field-separator|assign)=/.test(word)) continue
    else if (word === "-f" || word === "--file") {
      return Order.isKnown(ran, at + 1) && !Order.isInput(wordAt(ran, at + 1)) ? Order.nothing : Order.dark
    } else if (word === "--") continue
    else if (word.startsWith("-"))
      return /^--(?:version|help|posix|re-interval)$/.test(word) ? Order.nothing : Order.dark
    else return Order.isKnown(ran, at) && TextScript.awkOnlyPrints(word) ? Order.nothing : Order.dark
  }
  return Order.nothing
}

// ---- archives and copies

const tarLetters = "cxtruAvzjJaZpPhkmOSWlBnwosoGidU0-9"

const tarShape: Order.Shape = {
  flags: new RegExp(
    `^(?:-[${tarLetters}]+|-[${tarLetters}]*[fCTXbKNgVHL].+|` +
      "--(?:extract|get|create|list|append|update|concatenate|catenate|diff|compare|delete|verbose|gzip|gunzip|ungzip|bzip2|xz|lzma|lzip|zstd|" +
      "auto-compress|no-same-owner|no-same-permissions|same-owner|same-permissions|preserve-permissions|numeric-owner|wildcards|" +
      "no-wildcards|anchored|keep-old-files|keep-newer-files|skip-old-files|overwrite|unlink-first|dereference|hard-dereference|" +
      "to-stdout|null|touch|totals|no-recursion|ignore-failed-read|absolute-names|force-local|sparse|verify|exclude-vcs|" +
      "exclude-vcs-ignores|exclude-caches|version|help|checkpoint|xattrs|acls|selinux|one-file-system|remove-files|no-auto-compress)|" +
      "--(?:file|directory|exclude|exclude-from|files-from|strip-components|strip|owner|group|mode|mtime|sort|transform|xform|format|" +
      "warning|one-top-level|newer|newer-mtime|after-date|label|checkpoint|blocking-factor|level|occurrence|suffix|backup|" +
      "listed-incremental|starting-file|totals|pax-option|no-check-device)(?:=[^]*)?)$",
    "s"
  ),
  values: new RegExp(
    `^(?:-[${tarLetters}]*[fCTXbKNgVHL]|--(?:file|directory|exclude|exclude-from|files-from|owner|group|mode|mtime|transform|xform|strip-components))$`
  ),
  texts: new RegExp(
    `^(?:-[${tarLetters}]*[IF]|--(?:use-compress-program|to-command|info-script|new-volume-script|rsh-command|rmt-command))$`
  ),
  joined:
    /^(?:--(?:use-compress-program|to-command|info-script|new-volume-script|rsh-command|rmt-command)=([^]*)|--checkpoint-action=exec=([^]*))$/s
}

/** `host:file`: tar runs a remote shell to get there. */
const isRemote = ({ words }: Order.Ran): boolean =>
  words.some(
    (word, at) =>
      /^(?:--file=|-[A-Za-z]*f)[^/]*:/.test(word) ||
      (/^[^/]*:/.test(word) && /^(?:-?[A-Za-z]*f[A-Za-z]*|--file)$/.test(words[at - 1] ?? ""))
  )

const tar: Teller = (ran) => {
  if (isRemote(ran)) return Order.dark
  const [program = "tar", first = "", ...rest] = ran.words
  // The old form of tar: letters without a dash, their values behind.
  const bundle = /^[A-Za-z]+$/.test(first) && Order.isKnown(ran, 1)
  if (!bundle) return options(tarShape)(ran)
  if (/[IF]/.test(first) || !new RegExp(`^[${tarLetters}fCTXbKNgVHL]+$`).test(first)) return Order.dark
  const taken = first.replace(/[^fCTXbKNgVHL]/g, "").length
  if (rest.slice(taken).length === 0) return Order.nothing
  return options(tarShape)({
    ...ran,
    words: [program, ...rest.slice(taken)],
    unknown: ran.unknown.filter((at) => at >= taken + 2).map((at) => at - taken - 1)
  })
}

const rsync = options({
  flags:
    /^(?:-[avzrltpgoDPhnuHAXSxcCmiIqWbdkLKOJyEN0-9RF]+|--(?!rsh|rsync-path|remote-option|daemon|config|copy-as|password|early|read-batch|dparam)[a-z0-9-]+(?:=[^]*)?)$/s,
  values: /^(?:-[fTM]|--(?:exclude|include|filter|exclude-from|include-from|files-from))$/,
  texts: /^(?:-[avzrltpgoDPhnuHAXSxcCmiIqW]*e|--rsh|--rsync-path)$/,
  joined: /^(?:-[avzrltpgoDPhnuHAXSxcCmiIqW]*e([^]+)|--(?:rsh|rsync-path)=([^]*))$/s
})

const sshSetting =
  /^(?:StrictHostKeyChecking|BatchMode|ConnectTimeout|ConnectionAttempts|UserKnownHostsFile|LogLevel|ServerAlive\w+|TCPKeepAlive|Port|User|HostName|IdentityFile|IdentitiesOnly|Compression|ForwardAgent|RequestTTY|PasswordAuthentication|PubkeyAuthentication|PreferredAuthentications|AddKeysToAgent|ControlMaster|ControlPath|ControlPersist|ExitOnForwardFailure|HostKeyAlgorithms|KexAlgorithms|Ciphers|MACs|AddressFamily|VisualHostKey)(?:=|\s|$)/i

const sshShape: Order.Shape = {
  flags: /^(?:-[46AaCfGgKkMNnqsTtVvXxYyr123Bp]+|-[pilLRDbBcmOQWwEJ].+)$/s,
  values: /^-[46AaCfGgKkMNnqsTtVvXxYyr]*[pPilLRDbcmOQWwEJo]$/
}

const sshSettings = (ran: Order.Ran): boolean =>
  ran.words.every((word, at) => {
    if (!/^-[46AaCfGgKkMNnqsTtVvXxYyr]*o$/.test(word)) return true
    return Order.isKnown(ran, at + 1) && sshSetting.test(wordAt(ran, at + 1))
  })

/** The remote shell runs the joined words behind the host; without any, it runs its input. */
const ssh: Teller = (ran) => {
  const scanned = Order.scan(ran, sshShape, "first")
  if (scanned === undefined || !sshSettings(ran)) return Order.dark
  const [host] = scanned.operands
  if (host === undefined) return Order.nothing
  const rest: Order.Ran = {
    ...ran,
    words: ["ssh", ...ran.words.slice(host + 1)],
    unknown: ran.unknown.filter((at) => at > host).map((at) => at - host)
  }
  // Options may stand behind the host, too.
  const behindHost = Order.scan(rest, sshShape, "first")
  if (behindHost === undefined) return Order.dark
  if (behindHost.operands[0] === undefined) return ran.fed ? Order.dark : Order.nothing
  const first = host + behindHost.operands[0]
  if (ran.unknown.some((at) => at >= first)) return Order.dark
  const text = ran.words.slice(first).join(" ")
  return ran.fed ? Order.both(Order.text(text), behind(ran)) : Order.text(text)
}

/** A batch of `sftp` may hold commands, so it has to be written out where it is allowed. */
const scp = options(
  { flags: /^(?:-[46ACpqrTv1238ON]+|-[bcilPXJBR].+)$/, values: /^-[46ACpqrTv1238ON]*[bcilPXJBRo]$/ },
  sshSettings
)

// ---- builders, pagers, editors, consoles

const makeShape: Order.Shape = {
  flags:
    /^(?:-[bmBdeiknpqrRsStwv]+|-[jlOC].*|-[fIWo].+|--(?:always-make|directory=.*|debug(?:=.*)?|dry-run|just-print|recon|file=.*|makefile=.*|help|ignore-errors|include-dir=.*|jobs(?:=\d+)?|keep-going|load-average(?:=.*)?|no-builtin-rules|no-builtin-variables|no-print-directory|print-directory|print-data-base|question|quiet|silent|no-silent|stop|touch|trace|version|warn-undefined-variables|output-sync(?:=.*)?|old-file=.*|what-if=.*))$/s,
  values: /^(?:-[CfIWo]|--(?:directory|file|makefile|include-dir))$/
}

/** The value of a variable may be run; make expands it first. */
const make: Teller = (ran) => {
  const scanned = Order.scan(ran, makeShape, "anywhere")
  if (scanned === undefined) return Order.dark
  if (
    ran.words.some(
      (word, at) =>
        (/^(?:-f|--(?:make)?file=?)/.test(word) && /^(?:-f-|-f\/dev\/|.*=-$|.*=\/dev\/)/.test(word)) ||
        (/^(?:-f|--(?:make)?file)$/.test(word) && Order.isInput(wordAt(ran, at + 1)))
    )
  )
    return Order.dark
  const values: Array<string> = []
  for (const at of scanned.operands) {
    const word = wordAt(ran, at)
    if (/\$[({]/.test(word)) return Order.dark
    const [, name, value = ""] = /^([^=]*?)(?:[:?+!]{0,3})=([^]*)$/.exec(word) ?? []
    if (name === undefined) continue
    if (Order.isUnknown(ran, at) || /[$`]/.test(value)) return Order.dark
    if (/SHELL|FLAGS|MAKE/.test(name) && !/^[\w .,/:=+-]*$/.test(value)) return Order.dark
    if (value.trim() !== "" && !HarmlessVariable.isShell(name, value)) values.push(value)
  }
  return Order.text(...values)
}

const man = options({
  flags: /^(?:-[aKkfwWdDihuV\d]+|-[LmMSse].+|--(?:all|apropos|whatis|where|path|help|version))$/,
  values: /^-[LmMSsep]$/,
  texts: /^(?:-P|--pager)$/,
  joined: /^(?:-P([^]+)|--pager=([^]*))$/
})

const pager: Teller = (ran) =>
  ran.words.some((word) => /\+|^-[A-Za-z]*[koOptT]|^--(?:lesskey|log|LOG|pattern|tag|TAG)/.test(word))
    ? Order.dark
    : Order.nothing

/** Any option may be a command of the editor, and so may its input. */
const editor: Teller = (ran) =>
  ran.fed || ran.words.some((word, at) => at > 0 && (/^[-+]./.test(word) || Order.mayBeOption(ran, at)))
    ? ran.words.length === 2 && /^--(?:version|help)$/.test(ran.words[1] ?? "")
      ? Order.nothing
      : Order.dark
    : Order.nothing

/** Consoles with commands of their own beside their language; some of those run others. */
const console: Teller = (ran) => {
  const gives = ran.words.some((word) => /^(?:-[a-z]*[ce]|--(?:command|execute|eval)(?:=[^]*)?)$/i.test(word))
  if (ran.fed && !gives) return Order.dark
  return ran.words.some((word, at) => at > 0 && (hasConsoleCommand(word) || (Order.isUnknown(ran, at) && gives)))
    ? Order.dark
    : Order.nothing
}

const plainConsoleCommand =
  /^(?:\\(?:d\S*|l\+?|conninfo|x|timing)(?:\s[\w.*"]*)?|\.(?:tables|schema|headers?|mode|databases|indexes|indices|width|timeout|stats|show|dump)(?:\s[\w.* -]*)?)$/

const hasConsoleCommand = (word: string): boolean =>
  !plainConsoleCommand.test(word) &&
  (/\\(?!['"])|^!/.test(word) || /(?:^|[;\n])\s*(?:\.[a-z]|(?:system|pager|source|tee|edit|delimiter)\b)/i.test(word))

/** What is shown may be handed to a program instead. */
const psql: Teller = (ran) =>
  ran.words.some(
    (word, at) =>
      /^(?:-[A-Za-z01]*o|--out[a-z]*=)\s*\|/.test(word) ||
      (/^(?:-[A-Za-z01]*o|--out[a-z]*)$/.test(word) &&
        (Order.isUnknown(ran, at + 1) || /^\s*\|/.test(wordAt(ran, at + 1))))
  )
    ? Order.dark
    : console(ran)

const sqlite: Teller = (ran) => (ran.words.some((word) => /^--?(?:cmd|init)$/.test(word)) ? Order.dark : console(ran))

// ---- programs that mostly do their own work

/** Options that take a text, for programs whose other options run nothing. */
const taking =
  (names: string): Teller =>
  (ran) => {
    let order = Order.nothing
    const shape = new RegExp(`^(?:${names})(=|$)`)
    for (let at = 1; at < ran.words.length && order !== Order.tooMany; at++) {
      const word = wordAt(ran, at)
      const found = shape.exec(word)
      if (found === null) continue
      const place = found[1] === "=" ? at : at + 1
      const text = found[1] === "=" ? word.slice(found[0].length) : wordAt(ran, at + 1)
      if (text === "" || Order.isUnknown(ran, place)) return Order.dark
      order = Order.both(order, Order.text(text))
    }
    return order
  }

/** Words by which such a program may run or load something. */
const unlike =
  (words: RegExp): Teller =>
  (ran) =>
    ran.words.some((word, at) => at > 0 && words.test(word)) ? Order.dark : Order.nothing

const goTools = taking("--?(?:exec|toolexec|vettool)")

/** Its linker may be another program, and so may what compiles for it. */
const go: Teller = (ran) =>
  ran.words.some((word) => /-ext(?:ld|ar)|^--?gccgoflags/.test(word)) ? Order.dark : goTools(ran)

const many = (names: string, teller: Teller): ReadonlyArray<readonly [string, Teller]> =>
  names.split(" ").map((name) => [name, teller] as const)

/** What these are told by their options. Their other words may be programs, too. */
const builders: ReadonlyMap<string, Teller> = new Map<string, Teller>([
  ["go", go],
  ["cargo", unlike(/^--config/)],
  ...many("gradle gradlew", unlike(/^(?:-I|--init-script)/))
])

/** Options that name a file with what is to be run; those of `sed` also edit the files that it is given. */
const scripts: ReadonlyMap<Teller, RegExp> = new Map([
  [sed, /^(?:-[nErszu]*[fi]|--(?:file|in-place))/],
  [awk, /^(?:-[fEil]|--(?:file|exec|include|load))/],
  [make, /^(?:-[A-Za-z]*[fI]|--(?:(?:make)?file|include-dir))/],
  [psql, /^(?:-[A-Za-z01]*f|--fil)/],
  [scp, /^-[A-Za-z0-9]*b/]
])

const tellers: ReadonlyMap<string, Teller> = new Map<string, Teller>([
  ...many("sed gsed", sed),
  ...many("awk gawk mawk nawk", awk),
  ...many("tar gtar bsdtar", tar),
  ["rsync", rsync],
  ...many("ssh slogin", ssh),
  ...many("scp sftp", scp),
  ...many("make gmake bmake", make),
  ["man", man],
  ...many("less more most", pager),
  ...many("vi vim nvim vimdiff view ex emacs emacsclient nano pico ed", editor),
  ["psql", psql],
  ...many("mysql mariadb mongo mongosh dc", console),
  ...many("sqlite sqlite3", sqlite),
  ...many("zip", options({ flags: /^(?:-[rqujmy9@xiD0-8e]+|--(?:exclude|recurse-paths|quiet)(?:=.*)?)$/ })),
  ["split", taking("--f[a-z]*")],
  ["install", taking("--strip-[a-z]*")],
  ["sort", taking("--co[a-z-]*")],
  ["rg", taking("--pre|--hostname-bin")],
  ["ag", taking("--pager")],
  ["journalctl", taking("--pager")],
  ["wget", unlike(/^(?:-[A-Za-z]*e|--ex|--use-a|--conf)/)],
  ["curl", unlike(/^(?:-[A-Za-z]*K|--(?:conf|eng))/)],
  ...many(
    "gcc g++ cc c++ clang clang++ c89 c99 cpp",
    unlike(
      /^(?:--?wrapper|-fplugin|-iplugindir|-B|--?specs|-Xclang|-Xlinker|-load|--config|--ld-path|-fuse-ld=.*\/|-W[alp],(?:.*,)?(?:-*[fi]?plugin|@))/
    )
  ),
  ...many("nc ncat netcat", unlike(/^(?:-[A-Za-z]*[ec]|--(?:sh-|lua-)?exec)/)),
  ["socat", unlike(/exec:|system:|shell:/i)],
  ["ssh-keygen", unlike(/^-[A-Za-z]*[Dw]/)],
  ["ssh-add", unlike(/^-[A-Za-z]*s/)],
  ["tcpdump", unlike(/^-[A-Za-z]*z/)],
  ["openssl", unlike(/engine|provider/)],
  ["cpio", unlike(/^--rsh/)],
  ...many("apt apt-get aptitude dpkg", unlike(/^(?:-[a-z]*o|--option|--(?:pre|post)-invoke|-[a-z]*c$|--config)/)),
  ...many("xterm gnome-terminal konsole", unlike(/^(?:-e|-x|--)/)),
  ...Array.from(builders, ([name, told]): readonly [string, Teller] => [
    name,
    (ran) => Order.both(told(ran), behind(ran))
  ]),
  ["git", GitOrder.orderOf]
])

/** Programs that may run something by their words. */
const telling: ReadonlySet<string> = new Set([...Interpreter.names(), ...Wrapper.names(), ...tellers.keys()])
