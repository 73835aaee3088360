/**
 * The text of a git configuration, and the keys of it that are harmless.
 *
 * A repository's own configuration may name programs and files, and git runs and reads them. No list of dangerous keys
 * is complete: each version of git adds keys, and other programs read theirs from the same file. So a key is harmless if
 * it is listed here, and its value is too where the value matters. Text that git may read otherwise is no settings.
 */

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

export interface Setting {
  /** In lower case, and so is the variable; git ignores their case. */
  readonly section: string
  readonly subsection: string | undefined
  readonly variable: string
  /** Absent: the key has no `=`, which means true. */
  readonly value: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The settings in the order of the text, included files not followed. Nothing if the text is not certain to be valid. */
export const parse = (text: string): ReadonlyArray<Setting> | undefined => {
  const plain = text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n")
  return unfit.test(plain) ? undefined : new Reader(`${plain}\n`).settings()
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** As git prints it: `branch.main.remote`. */
export const keyOf = ({ section, subsection, variable }: Setting): string =>
  [section, ...(subsection === undefined ? [] : [subsection]), variable].join(".")

/** Git runs no program and reads no other place because of this setting, whatever it is asked to do. */
export const isHarmless = ({ section, subsection, value, variable }: Setting): boolean => {
  if (section === "pretty") return verifiesNothing.test(value ?? "")
  const pattern = subsection === undefined ? `${section}.${variable}` : `${section}.*.${variable}`
  const limit = limited.get(pattern)
  if (limit !== undefined) return limit.test(value ?? "true")
  return whole.has(section) || any.has(pattern) || (pattern.startsWith("branch.*.") && ofEditors.test(variable))
}

/**
 * Names a program that git does not start while it reads with Assent's settings: these exchange the pager and the file
 * monitor, and turn the look at signatures off.
 */
export const isHeld = ({ section, subsection, variable }: Setting): boolean =>
  subsection === undefined && held.has(`${section}.${variable}`)

/** How many bytes a name of an object has. */
export const hashBytes = (settings: ReadonlyArray<Setting>): 20 | 32 =>
  settings.some((one) => keyOf(one) === "extensions.objectformat" && one.value?.toLowerCase() === "sha256") ? 32 : 20

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Control characters: git reads some as blanks, and ends names or values at others. */
const unfit = /[\0-\x08\x0b-\x1f\x7f]/

/** Reads as git does, letter by letter: an expression would need memory for each letter of a long value. */
class Reader {
  private at = 0

  /** The text ends with a line's end. */
  constructor(private readonly text: string) {}

  settings(): ReadonlyArray<Setting> | undefined {
    const found: Array<Setting> = []
    let section: Pick<Setting, "section" | "subsection"> | undefined
    while (this.at < this.text.length) {
      const letter = this.text.charAt(this.at)
      if (letter === " " || letter === "\t" || letter === "\n") this.at++
      else if (letter === "#" || letter === ";") this.at = this.text.indexOf("\n", this.at)
      else {
        const isHeading = letter === "["
        if (isHeading) section = this.heading()
        if (section === undefined) return undefined
        if (isHeading) continue
        const variable = this.take(/[A-Za-z][A-Za-z0-9-]*/y)
        if (variable === undefined) return undefined
        this.take(blanks)
        const mark = this.text.charAt(this.at++)
        const value = mark === "=" ? this.value() : undefined
        if (mark !== "\n" && value === undefined) return undefined
        found.push({ ...section, variable: variable.toLowerCase(), value })
      }
    }
    return found
  }

  private take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    this.at += found?.length ?? 0
    return found
  }

  /** `[section.sub]` is an old form of `[section "sub"]`, in which case does not count. */
  private heading(): Pick<Setting, "section" | "subsection"> | undefined {
    this.at++
    const base = this.take(/[A-Za-z0-9.-]+/y)?.toLowerCase()
    if (base === undefined) return undefined
    const dot = base.indexOf(".")
    const section = dot < 0 ? base : base.slice(0, dot)
    const parts = dot < 0 ? [] : [base.slice(dot + 1)]
    if (this.take(blanks) !== "") {
      if (this.text.charAt(this.at++) !== '"') return undefined
      let quoted = ""
      while (true) {
        let letter = this.text.charAt(this.at++)
        if (letter === '"') break
        if (letter === "\\") letter = this.text.charAt(this.at++)
        if (letter === "\n" || letter === "") return undefined
        quoted += letter
      }
      parts.push(quoted)
    }
    if (this.text.charAt(this.at++) !== "]") return undefined
    return { section, subsection: parts.length === 0 ? undefined : parts.join(".") }
  }

  private value(): string | undefined {
    let value = ""
    let space = ""
    let isQuoted = false
    while (true) {
      const letter = this.text.charAt(this.at++)
      if (letter === "\n" || letter === "") return isQuoted ? undefined : value
      if (!isQuoted && (letter === " " || letter === "\t")) {
        if (value !== "") space += letter
      } else if (!isQuoted && (letter === "#" || letter === ";")) {
        this.at = this.text.indexOf("\n", this.at)
      } else if (letter === '"') isQuoted = !isQuoted
      else {
        const escaped = letter === "\\" ? escapes[this.text.charAt(this.at++)] : letter
        if (escaped === undefined) return undefined
        value += space + escaped
        space = ""
      }
    }
  }
}

const blanks = /[ \t]*/y
/** A backslash at the end of a line continues the value. */
const escapes: { readonly [letter: string]: string } = { n: "\n", t: "\t", b: "\b", "\\": "\\", '"': '"', "\n": "" }

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** All variables of these sections are colours, switches and layouts. */
const whole = words("advice color column i18n")

/** With any value. */
const any = words(`
  core.abbrev core.autocrlf core.bare core.bigfilethreshold core.checkstat core.commentchar core.commentstring
  core.commitgraph core.compression core.deltabasecachelimit core.eol core.filemode core.fscache core.hidedotfiles
  core.ignorecase core.ignorestat core.logallrefupdates core.longpaths core.loosecompression core.multipackindex
  core.notesref core.packedgitlimit core.packedgitwindowsize core.precomposeunicode core.preloadindex core.quotepath
  core.repositoryformatversion core.safecrlf core.sharedrepository core.sparsecheckout core.sparsecheckoutcone
  core.splitindex core.symlinks core.trustctime core.untrackedcache core.usereplacerefs core.warnambiguousrefs
  core.whitespace
  extensions.noop extensions.objectformat extensions.preciousobjects extensions.relativeworktrees extensions.worktreeconfig
  index.recordendofindexentries index.recordoffsettable index.skiphash index.sparse index.threads index.version
  feature.experimental feature.manyfiles
  user.email user.name user.signingkey user.useconfigonly author.email author.name committer.email committer.name
  init.defaultbranch init.defaultobjectformat init.defaultrefformat
  apply.ignorewhitespace apply.whitespace
  blame.blankboundary blame.coloring blame.date blame.markignoredlines blame.markunblamablelines blame.showemail
  blame.showroot
  branch.autosetupmerge branch.autosetuprebase branch.*.description branch.*.merge branch.*.rebase
  checkout.defaultremote checkout.guess checkout.workers clean.requireforce
  commit.cleanup commit.gpgsign commit.status commit.verbose
  diff.algorithm diff.autorefreshindex diff.colormoved diff.colormovedws diff.context diff.dirstat diff.ignoresubmodules
  diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative diff.renamelimit diff.renames
  diff.statgraphwidth diff.statnamewidth diff.suppressblankempty diff.wordregex diff.wserrorhighlight
  diff.*.binary diff.*.funcname diff.*.wordregex diff.*.xfuncname
  fetch.fsckobjects fetch.output fetch.parallel fetch.prune fetch.prunetags fetch.recursesubmodules
  fetch.showforcedupdates fetch.writecommitgraph
  gc.aggressivedepth gc.aggressivewindow gc.auto gc.autodetach gc.autopacklimit gc.packrefs gc.pruneexpire
  gc.reflogexpire gc.reflogexpireunreachable gc.rerereresolved gc.rerereunresolved gc.worktreepruneexpire
  gc.writecommitgraph gc.*.reflogexpire gc.*.reflogexpireunreachable
  grep.column grep.extendedregexp grep.fullname grep.linenumber grep.patterntype grep.threads
  gui.geometry gui.wmstate
  http.lowspeedlimit http.lowspeedtime http.postbuffer http.sslverify http.version http.*.extraheader
  lfs.repositoryformatversion lfs.*.access lfs.*.locksverify
  log.abbrevcommit log.date log.decorate log.diffmerges log.excludedecoration log.follow log.graphcolors
  log.initialdecorationset log.mailmap log.showroot
  maintenance.auto maintenance.strategy
  merge.autostash merge.conflictstyle merge.defaulttoupstream merge.directoryrenames merge.ff merge.log merge.renamelimit
  merge.renames merge.renormalize merge.stat merge.verbosity merge.*.name
  pack.compression pack.deltacachesize pack.depth pack.indexversion pack.packsizelimit pack.threads pack.usesparse
  pack.window pack.windowmemory
  protocol.version
  pull.ff pull.rebase push.autosetupremote push.default push.followtags push.recursesubmodules
  rebase.autosquash rebase.autostash rebase.missingcommitscheck rebase.stat rebase.updaterefs
  receive.denycurrentbranch receive.denydeletes receive.denynonfastforwards
  remote.pushdefault remote.*.fetch remote.*.gh-resolved remote.*.mirror remote.*.prune remote.*.prunetags remote.*.push
  remote.*.skipdefaultupdate remote.*.skipfetchall remote.*.tagopt
  repack.usedeltabaseoffset repack.writebitmaps rerere.autoupdate rerere.enabled
  showbranch.default
  stash.showincludeuntracked stash.showpatch stash.showstat
  status.aheadbehind status.branch status.displaycommentprefix status.relativepaths status.renamelimit status.renames
  status.short status.showstash status.showuntrackedfiles
  submodule.active submodule.fetchjobs submodule.propagatebranches submodule.recurse
  submodule.*.active submodule.*.branch submodule.*.fetchrecursesubmodules submodule.*.ignore submodule.*.shallow
  tag.gpgsign transfer.fsckobjects versionsort.suffix worktree.guessremote
`)

/** `HELPER::ADDRESS` starts the program `git-remote-HELPER`. */
const address = /^(?![A-Za-z0-9+.-]*::|-)/
/** A sort key or a format with a signature runs the program that verifies it. */
const sort = /^(?!.*signature)/
const verifiesNothing = /^(?![^]*%[-+ ]?G)/

const limited: ReadonlyMap<string, RegExp> = new Map([
  ["branch.*.pushremote", address],
  ["branch.*.remote", address],
  ["branch.sort", sort],
  // A whole diff of a submodule may be one of a directory that is a submodule no more.
  ["diff.submodule", /^(?:log|short)$/],
  ["extensions.refstorage", /^(?:files|reftable)$/],
  ["format.pretty", verifiesNothing],
  ["gpg.format", /^(?:openpgp|ssh|x509)$/],
  ["remote.*.pushurl", address],
  ["remote.*.url", address],
  ["submodule.*.update", /^(?:checkout|merge|none|rebase)$/],
  ["submodule.*.url", address],
  ["tag.sort", sort]
])

const held = words("core.fsmonitor core.pager gpg.program log.showsignature")

/** What editors and other clients note about a branch. */
const ofEditors = /^(?:vscode|github-pr|gk|gh)-/
