/**
 * Rules about tool calls, and their evaluation: pure, synchronous, and without surprises in either direction.
 *
 * A rule set has three lists, tried in this order: `tools` (exact names), `patterns` (globs over the call's signature) and
 * `arguments` (whole words of its string arguments, a rule of several words matches them in a row). Which direction a
 * list is used in decides how it is read:
 *
 * - To deny, anything that may be meant is enough: a pattern is tried on the whole command, on every simple command in it
 *   and on what programs such as `sudo` would run; an argument rule is found anywhere.
 * - To allow, everything must be meant: each simple command of a compound needs a rule, expansions and redirections to
 *   files need a person, a program that runs others by an argument (`git -c`, `find -exec`) needs a pattern that spells
 *   that argument; an argument rule must start the command, or every string argument of another tool.
 */
import * as Either from "effect/Either"
import { canonicalJson } from "../core/Digest.js"
import * as CommandLine from "./CommandLine.js"
import * as Glob from "./Glob.js"
import * as Program from "./Program.js"

export interface RuleSet {
  readonly tools: ReadonlyArray<string>
  readonly patterns: ReadonlyArray<string>
  readonly arguments: ReadonlyArray<string>
}

export interface Call {
  readonly tool: string
  /** Encoded arguments. */
  readonly params: unknown
  /** The parameter that holds a shell command, for tools annotated so. */
  readonly commandField?: string | undefined
}

/** A call as rules see it. Made once per call; whatever costs more than a field access is computed when asked for. */
export interface Subject {
  readonly tool: string
  readonly params: unknown
  /** The shell command, for a command tool. */
  readonly command: string | undefined
  /** The command taken apart; nothing for other tools and for a command that cannot be taken apart. */
  readonly line: CommandLine.CommandLine | undefined
  readonly signature: string
  /** {@link CommandLine.readings} of the command; none for other tools. */
  readonly readings: ReadonlyArray<CommandLine.Reading>
  /** Every string among the arguments, at any depth. */
  readonly strings: ReadonlyArray<string>
}

/** A rule set ready for evaluation. */
export interface Compiled {
  readonly rules: RuleSet
  readonly tools: ReadonlySet<string>
  readonly patterns: ReadonlyArray<Glob.Glob>
  readonly arguments: ReadonlyArray<ReadonlyArray<string>>
  /** Nothing but tool names: a call of another tool needs no further look. */
  readonly namesOnly: boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const subject = (call: Call): Subject => new LazySubject(call)

export const noRules: RuleSet = { tools: [], patterns: [], arguments: [] }

/** Never fails: every text is a valid rule. Argument rules without a word are dropped. */
export const compile = (rules: RuleSet): Compiled => ({
  rules,
  tools: new Set(rules.tools),
  patterns: rules.patterns.map(Glob.compile),
  arguments: rules.arguments.map(tokens).filter((rule) => rule.length > 0),
  namesOnly: rules.patterns.length === 0 && rules.arguments.length === 0
})

export const empty: Compiled = { rules: noRules, tools: new Set(), patterns: [], arguments: [], namesOnly: true }

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The command of a command tool; `name()` or `name(k=v, k2=v2)` with sorted keys for others. For people and patterns. */
export const signature = (self: Subject): string => self.signature

/** The rule that denies the call, as written, with a remark where it is not obvious. */
export const denies = (compiled: Compiled, self: Subject): string | undefined => {
  if (compiled.tools.has(self.tool)) return self.tool
  if (compiled.namesOnly) return undefined
  for (const glob of compiled.patterns) {
    const found = deniedBy(glob, self)
    if (found !== undefined) return found
  }
  return compiled.arguments.find((rule) => mentions(rule, self))?.join(" ")
}

/** The rule that allows the call, as written; several, joined by ` + `, when the parts of a compound needed several. */
export const allows = (compiled: Compiled, self: Subject): string | undefined => {
  if (compiled.tools.has(self.tool)) return self.tool
  if (compiled.namesOnly) return undefined
  if (self.command !== undefined) {
    return everyCommand(self, (command) => {
      const glob = compiled.patterns.find((pattern) => allowsCommand(pattern, command))
      return glob?.pattern ?? compiled.arguments.find((rule) => opens(rule, command))?.join(" ")
    })
  }
  const glob = compiled.patterns.find((pattern) => Glob.matches(pattern, allowSignature(self)))
  if (glob !== undefined) return glob.pattern
  if (compiled.arguments.length === 0 || self.strings.length === 0) return undefined
  const used = self.strings.map((text) => compiled.arguments.find((rule) => startsWith(tokens(text), rule, 0)))
  return joined(used.map((rule) => rule?.join(" ")))
}

/**
 * How an entry of a session list matches a call. An entry is an exact tool name (`exact`), a glob over names (`name`), or
 * a glob over signatures or the text form of something remembered (`signature`).
 */
export const entryMatches = (
  entry: string,
  self: Subject,
  use: "allow" | "deny"
): "exact" | "name" | "signature" | undefined => {
  if (entry === self.tool) return "exact"
  const glob = Glob.compile(entry)
  if (Glob.matches(glob, self.tool)) return "name"
  if (self.command === undefined) {
    const text = use === "allow" ? allowSignature(self) : self.signature
    return Glob.matches(glob, text) ? "signature" : undefined
  }
  if (use === "deny") {
    const remembered = asRemembered(entry)
    const found = remembered !== undefined && CommandLine.touches(remembered, self.command)
    return found || deniedBy(glob, self) !== undefined ? "signature" : undefined
  }
  return entriesAllow([entry], self) === undefined ? undefined : "signature"
}

/**
 * The session entries that together allow a call: a compound may need several, one for each of its simple commands.
 * Entries that are names count as well.
 */
export const entriesAllow = (entries: Iterable<string>, self: Subject): string | undefined => {
  const compiled: Array<SessionEntry> = []
  for (const entry of entries) {
    if (entry === self.tool) return entry
    const glob = Glob.compile(entry)
    if (Glob.matches(glob, self.tool)) return entry
    if (self.command === undefined) {
      if (Glob.matches(glob, allowSignature(self))) return entry
      continue
    }
    const remembered = asRemembered(entry)
    if (remembered?._tag === "Exact" && CommandLine.covers(remembered, self.command)) return entry
    compiled.push({ entry, remembered, glob })
  }
  if (compiled.length === 0) return undefined
  return everyCommand(
    self,
    (command) =>
      compiled.find(({ remembered, glob }) =>
        remembered === undefined ? allowsCommand(glob, command) : CommandLine.coversCommand(remembered, command)
      )?.entry
  )
}

/** One line per rule, for people. */
export const describe = ({ rules }: Compiled): ReadonlyArray<string> => [
  ...rules.tools.map((rule) => `tool ${rule}`),
  ...rules.patterns.map((rule) => `pattern ${rule}`),
  ...rules.arguments.map((rule) => `argument ${rule}`)
]

/** What `always` and `never` remember of a call: a command's {@link CommandLine.remembered}, another tool's name. */
export const rememberKey = (self: Subject): string =>
  self.command === undefined || CommandLine.trim(self.command) === ""
    ? self.tool
    : CommandLine.formatRemembered(CommandLine.remembered(self.command))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface SessionEntry {
  readonly entry: string
  readonly remembered: CommandLine.Remembered | undefined
  readonly glob: Glob.Glob
}

class LazySubject implements Subject {
  readonly tool: string
  readonly params: unknown
  readonly command: string | undefined
  private readonly isText: boolean
  private lineMemo: CommandLine.CommandLine | undefined | null = null
  private signatureMemo: string | undefined
  private readingsMemo: ReadonlyArray<CommandLine.Reading> | undefined
  private stringsMemo: ReadonlyArray<string> | undefined

  constructor({ tool, params, commandField }: Call) {
    this.tool = tool
    this.params = params
    const command = commandField === undefined || !isRecord(params) ? undefined : params[commandField]
    this.isText = typeof command === "string"
    // A command tool stays one when its command is missing or no text; then nothing but its name can allow it.
    this.command = commandField === undefined ? undefined : typeof command === "string" ? command : shown(command ?? "")
  }

  get line(): CommandLine.CommandLine | undefined {
    if (this.lineMemo !== null) return this.lineMemo
    this.lineMemo =
      this.command === undefined || !this.isText ? undefined : Either.getOrUndefined(CommandLine.parse(this.command))
    return this.lineMemo
  }

  get signature(): string {
    return (this.signatureMemo ??= this.command ?? callSignature(this.tool, this.params, false))
  }

  get readings(): ReadonlyArray<CommandLine.Reading> {
    return (this.readingsMemo ??= this.command === undefined ? [] : CommandLine.readings(this.command))
  }

  get strings(): ReadonlyArray<string> {
    return (this.stringsMemo ??= stringsIn(this.params, []))
  }
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const callSignature = (tool: string, params: unknown, masked: boolean): string => {
  if (!isRecord(params)) return params === undefined || params === null ? `${tool}()` : `${tool}(${shown(params)})`
  const members = Object.keys(params)
    .filter((key) => params[key] !== undefined)
    .sort()
    .map((key) => {
      const value = shown(params[key])
      return masked ? `${separator.test(key) ? mask : key}=${value.replace(separators, mask)}` : `${key}=${value}`
    })
  return `${tool}(${members.join(", ")})`
}

const shown = (value: unknown): string => (typeof value === "string" ? value : canonicalJson(value))

// A value may imitate the signature it stands in: `content` set to "…, path=src/a" looks like a path argument. To allow,
// such a call is matched with what could be taken for a separator masked.
const imitation = /,\s*[^\s=,]*=/
const separator = /[,=\s]/
const separators = /=|,\s*/g
const mask = "\uffff"

const allowSignature = (self: Subject): string =>
  isRecord(self.params) && Object.entries(self.params).some(([key, value]) => separator.test(key) || imitates(value))
    ? callSignature(self.tool, self.params, true)
    : self.signature

const imitates = (value: unknown): boolean =>
  typeof value === "string" ? imitation.test(value) : typeof value === "object" && imitation.test(canonicalJson(value))

const stringsIn = (value: unknown, out: Array<string>): ReadonlyArray<string> => {
  if (typeof value === "string") out.push(value)
  else if (Array.isArray(value)) for (const item of value) stringsIn(item, out)
  else if (isRecord(value)) for (const key of Object.keys(value)) stringsIn(value[key], out)
  return out
}

const tokens = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((token) => token !== "")

const startsWith = (words: ReadonlyArray<string>, rule: ReadonlyArray<string>, at: number): boolean =>
  rule.every((token, i) => words[at + i] === token)

const inARow = (words: ReadonlyArray<string>, rule: ReadonlyArray<string>): boolean =>
  words.some((_, at) => startsWith(words, rule, at))

const mentions = (rule: ReadonlyArray<string>, self: Subject): boolean =>
  self.readings.some((reading) => reading.start === 0 && inARow(reading.words, rule)) ||
  self.strings.some((text) => inARow(tokens(text), rule))

const programWord = /^([A-Za-z0-9_][A-Za-z0-9_.+-]*)(?: |$)/

const deniedBy = (glob: Glob.Glob, self: Subject): string | undefined => {
  if (self.command === undefined) return Glob.matches(glob, self.signature) ? glob.pattern : undefined
  if (Glob.matches(glob, self.command) || Glob.matches(glob, CommandLine.trim(self.command))) return glob.pattern
  if (self.line?.commands.some((command) => Glob.matches(glob, command.text)) === true) return glob.pattern
  const names = programWord.test(glob.head)
  const starts = glob.pattern[glob.head.length] === "*"
  const exhausted = new Set<CommandLine.Reading["words"]>()
  for (const { program, named, text, words } of self.readings) {
    if (!named && names) return `${glob.pattern} (${program} may be any program)`
    if (exhausted.has(words)) continue
    // By its path it is the same program.
    const plain = program.includes("/") ? text.slice(program.length - Program.basename(program).length) : undefined
    if (matchesCommand(glob, text) || (plain !== undefined && matchesCommand(glob, plain))) return glob.pattern
    // A star found nothing in these words; it finds nothing in fewer of them. This keeps long lists of words cheap.
    if (starts && text.startsWith(glob.head)) exhausted.add(words)
  }
  return undefined
}

/** As a glob, and `git *` also means a bare `git`. */
const matchesCommand = (glob: Glob.Glob, text: string): boolean =>
  Glob.matches(glob, text) || (glob.pattern.endsWith(" *") && Glob.matches(glob, `${text} `))

const allowsCommand = (glob: Glob.Glob, command: CommandLine.SimpleCommand): boolean => {
  if (!isKnown(command) || !matchesCommand(glob, command.text)) return false
  // A pattern of stars alone was meant for everything.
  if (/^\*+$/.test(glob.pattern)) return true
  const words = tokens(glob.pattern)
  const runner = Program.runner(command.words)
  return (
    (runner === undefined || words.some((word) => spells(word, runner))) &&
    command.assignments.every((text) => words.some((word) => spells(word, text)))
  )
}

/** A word of a pattern means a word of a command when more than wildcards and dashes say so. */
const spells = (pattern: string, word: string): boolean =>
  /^[^*?[]*[A-Za-z0-9_]/.test(pattern) && Glob.test(pattern, word)

const opens = (rule: ReadonlyArray<string>, command: CommandLine.SimpleCommand): boolean => {
  const runner = Program.runner(command.words)
  return (
    isKnown(command) &&
    command.assignments.length === 0 &&
    startsWith(command.words, rule, 0) &&
    (runner === undefined || runner === command.program || rule.includes(runner))
  )
}

const isKnown = (command: CommandLine.SimpleCommand): boolean => !command.dynamic && command.words.length > 0

/** The rules by which every simple command passes; nothing when one does not, or the line has to be asked about. */
const everyCommand = (
  self: Subject,
  rule: (command: CommandLine.SimpleCommand) => string | undefined
): string | undefined =>
  self.line === undefined || !CommandLine.writesNothing(self.line) ? undefined : joined(self.line.commands.map(rule))

const joined = (rules: ReadonlyArray<string | undefined>): string | undefined => {
  const found = rules.filter((rule) => rule !== undefined)
  return found.length === rules.length && found.length > 0 ? [...new Set(found)].join(" + ") : undefined
}

// `bash *` is never remembered, so whoever entered it means the pattern.
const asRemembered = (entry: string): CommandLine.Remembered | undefined => {
  if (!CommandLine.isRemembered(entry)) return undefined
  const remembered = CommandLine.parseRemembered(entry)
  return remembered._tag === "Program" && Program.alwaysRuns(remembered.program) ? undefined : remembered
}
