/**
 * Rules about tool calls, and their evaluation: pure, synchronous, and without surprises in either direction.
 *
 * A rule set has three lists, tried in this order: `tools` (exact names, or `mcp__SERVER__*`), `patterns` (globs over
 * the call's signature) and `arguments` (whole words of its string arguments; a rule of several words matches them in a
 * row). A list is read by its direction:
 *
 * - To deny, a pattern is compared with the whole command, with every program that the line itself runs, and with what
 *   programs such as `sudo` would run. An argument rule is found anywhere.
 * - To allow, everything must be meant: every program that would run needs a rule, where it would run; expansions and
 *   redirections to files need a person; an argument rule must start the command, or every string argument of another tool.
 *
 * A parameter that holds a path, by the tool's declaration, counts as written and as the place to which links lead it: to
 * deny, either is enough; to allow, both must be meant. `Destination` finds that place. If nobody knows the files, as for
 * tools of a library without a workspace, the path counts as written.
 */
import type { CommandField, CommandReader } from "../shell/CommandField.js"
import type { Allowing } from "../shell/CommandLine.js"
import type { CommandPattern } from "../shell/CommandPattern.js"
import * as CallPattern from "./CallPattern.js"
import * as CommandText from "../shell/CommandText.js"
import * as Glob from "../core/Glob.js"
import * as DenyPattern from "./DenyPattern.js"
import * as Location from "../shell/Location.js"
import * as Remembered from "../shell/Remembered.js"
import * as Signature from "./Signature.js"
import type { Subject } from "./Subject.js"

export { make as subject, type Call, type Subject } from "./Subject.js"

export interface RuleSet {
  readonly tools: ReadonlyArray<string>
  readonly patterns: ReadonlyArray<string>
  readonly arguments: ReadonlyArray<string>
}

/** A rule set ready for evaluation. */
export interface Compiled {
  readonly rules: RuleSet
  readonly tools: ReadonlySet<string>
  /** Prefixes of tool names. */
  readonly servers: ReadonlyArray<string>
  readonly patterns: ReadonlyArray<Pattern>
  readonly arguments: ReadonlyArray<ReadonlyArray<string>>
  /** The rules hold tool names only: calls of other tools need no further check. */
  readonly namesOnly: boolean
  /** The patterns that allow commands: they are made for the first call that has one. */
  readonly commands: (reader: CommandReader) => ReadonlyArray<CommandPattern>
}

/** A pattern in the forms in which it is used. */
interface Pattern extends DenyPattern.DenyPattern {
  readonly allows: ReadonlyArray<Glob.Glob>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const noRules: RuleSet = { tools: [], patterns: [], arguments: [] }

/** Never fails: every text is a valid rule. Argument rules without a word are dropped, patterns of stars allow nothing. */
export const compile = (rules: RuleSet): Compiled => {
  const words = rules.arguments.map(CommandText.words).filter((rule) => rule.length > 0)
  return {
    rules,
    tools: new Set(rules.tools),
    servers: rules.tools.flatMap((name) => (isServer(name) ? [name.slice(0, -1)] : [])),
    patterns: rules.patterns.map((text) => ({
      ...DenyPattern.make(text),
      allows: CommandText.namesNothing(text) ? [] : Signature.globs(CallPattern.spelled(text))
    })),
    arguments: words,
    namesOnly: rules.patterns.length === 0 && rules.arguments.length === 0,
    commands: madeOnce((reader) => [...rules.patterns.map(reader.pattern), ...words.map(reader.beginning)])
  }
}

export const empty: Compiled = {
  rules: noRules,
  tools: new Set(),
  servers: [],
  patterns: [],
  arguments: [],
  namesOnly: true,
  commands: () => []
}

/** The rules of both. */
export const union = (a: Compiled, b: Compiled): Compiled => {
  if (a === empty) return b
  if (b === empty) return a
  return {
    rules: {
      tools: [...a.rules.tools, ...b.rules.tools],
      patterns: [...a.rules.patterns, ...b.rules.patterns],
      arguments: [...a.rules.arguments, ...b.rules.arguments]
    },
    tools: new Set([...a.tools, ...b.tools]),
    servers: [...a.servers, ...b.servers],
    patterns: [...a.patterns, ...b.patterns],
    arguments: [...a.arguments, ...b.arguments],
    namesOnly: a.namesOnly && b.namesOnly,
    commands: madeOnce((reader) => [...a.commands(reader), ...b.commands(reader)])
  }
}

/** The tool of a pattern over the calls of one tool, where its name is written out. */
export const toolIn = (pattern: string): string | undefined => /^[A-Za-z_][\w-]*(?=\()/.exec(pattern)?.[0]

/** `mcp__SERVER__*`: all tools of one server. */
export const isServer = (name: string): boolean => /^mcp__(?:(?!__).)+__\*$/s.test(name)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** The command of a command tool; `name()` or `name(k=v, k2=v2)` with sorted keys for others. For people and patterns. */
export const signature = (self: Subject): string => self.signature

/** The rule that denies the call, as written. */
export const denies = (compiled: Compiled, self: Subject): string | undefined => {
  const name = named(compiled, self.tool)
  if (name !== undefined || compiled.namesOnly) return name
  const { evidence } = self
  const pattern = compiled.patterns.find((pattern) => evidence.matches(pattern))
  return pattern?.text ?? compiled.arguments.find((rule) => evidence.mentions(rule))?.join(" ")
}

/** The rule that allows the call, as written; several, joined by ` + `, when the parts of a compound needed several. */
export const allows = (compiled: Compiled, self: Subject): string | undefined => {
  const name = named(compiled, self.tool)
  if (name !== undefined || compiled.namesOnly) return name
  const { spoken } = self
  if (spoken !== undefined) {
    if (!Location.isWorkspace(self.cwd)) return undefined
    // What cannot be taken apart is itself and nothing else.
    if (self.line === undefined) return spelling(compiled, spoken.command)
    return (
      whole(self.evidence.allowed(spoken, judged(self, compiled.commands(spoken.reader)))) ??
      spelling(compiled, spoken.command)
    )
  }
  const pattern = compiled.patterns.find(({ allows }) => self.evidence.isWithin(allows))
  if (pattern !== undefined) return pattern.text
  const { allowStrings } = self.evidence
  if (compiled.arguments.length === 0 || allowStrings.length === 0) return undefined
  const used = allowStrings.map((text) => {
    const words = CommandText.words(text)
    return compiled.arguments.find((rule) => rule.every((word, i) => words[i] === word))?.join(" ")
  })
  return joined(used.every((rule) => rule !== undefined) ? used : undefined)
}

/** A pattern is this very command. */
export const spellsExactly = (compiled: Compiled, self: Subject): boolean =>
  self.command !== undefined && Location.isWorkspace(self.cwd) && spelling(compiled, self.command) !== undefined

/**
 * The call is a command that only reads, in the workspace, by its text. A confined one runs in a sandbox in which it can change
 * nothing, so its text only has to look like reading. Whether git reads only rests on its repository, too: see `together`.
 */
export const reads = (self: Subject): boolean => {
  const { confined, cwd, lasting, spoken } = self
  if (spoken === undefined || !Location.isWorkspace(cwd)) return false
  if (confined && (lasting || wantsToWrite(self.params))) return false
  const { reader } = spoken
  const pattern = confined ? reader.reads(readingPrograms) : reader.readers
  return whole(self.evidence.allowed(spoken, [pattern])) !== undefined
}

/**
 * All programs of the command are git's, or only read. What git is to run for the command (`rebase -x`) counts as its own if
 * somebody allowed it by name.
 */
export const isGit = (self: Subject, isNamed: boolean): boolean => {
  const { line, spoken, started } = self
  if (spoken === undefined || !spoken.reader.isGit(spoken.command, line, started)) return false
  return isNamed || !spoken.reader.runsOthers(started)
}

/** The directories in which the command runs git, as far as its text tells. */
export const gitDirectories = (self: Subject): ReadonlyArray<string> => {
  const { cwd, started } = self
  const isGit = (program = "") => program.slice(program.lastIndexOf("/") + 1) === "git"
  if (!started.some(({ words: [program] }) => isGit(program))) return []
  const entered = started.flatMap(({ words: [program, target] }) =>
    program === "cd" && target !== undefined ? [target] : []
  )
  return [cwd.path, ...entered]
}

/** What may allow programs of a command. */
export interface Sources {
  /** Entries of session lists. */
  readonly entries: ReadonlyArray<string>
  readonly compiled: Compiled
  /** Programs that certainly only read are allowed, too. */
  readonly readers: boolean
}

/** How far all of them together allow the command. Nothing for other tools. */
export const together = (self: Subject, { compiled, entries, readers }: Sources): Allowing | undefined => {
  const { cwd, spoken } = self
  if (spoken === undefined) return undefined
  const { reader } = spoken
  const patterns = commandPatterns(entries, self, reader)
  if (Location.isWorkspace(cwd)) {
    patterns.push(...compiled.commands(reader))
    if (readers) patterns.push(reader.readers)
  }
  return self.evidence.allowed(spoken, judged(self, patterns))
}

/** Entries that spell commands out, and no entry that was remembered of a program that reads, allow the whole command. */
export const spells = (self: Subject, entries: ReadonlyArray<string>, compiled: Compiled): boolean => {
  const spelled = entries.filter((entry) => asRemembered(entry)?._tag !== "Program")
  const known = together(self, { entries: spelled, compiled, readers: false })
  return (
    (known !== undefined && whole(known) !== undefined) ||
    remembersExactly(spelled, self) ||
    spellsExactly(compiled, self)
  )
}

/** The rules of a whole line, as one text. */
export const whole = ({ missing, rules }: Allowing): string | undefined =>
  missing.length === 0 ? joined(rules) : undefined

/** Some entry of a session list that denies is about commands of this tool. */
export const entriesConcernCommands = (entries: Iterable<string>, call: CallPattern.Called): boolean => {
  for (const entry of entries) {
    const { pattern, remembered } = sessionEntry(entry)
    if (remembered !== undefined) return true
    if ((entryOfCommands.test(entry) || CallPattern.isOne(pattern)) && aboutCommands(pattern, call).length > 0)
      return true
  }
  return false
}

/** Some rule is about commands of this tool. */
export const concernsCommands = ({ arguments: words, patterns }: Compiled, call: CallPattern.Called): boolean =>
  words.length > 0 || patterns.some((pattern) => aboutCommands(pattern, call).length > 0)

/** The refusal of a command that is too long to be checked; the sentence says what to do. */
export const tooLong = (commandField: CommandField | undefined, params: unknown): string | undefined => {
  if (commandField === undefined || !Signature.isRecord(params)) return undefined
  const command = params[commandField.name]
  // A UTF-16 unit takes three bytes at most.
  if (typeof command !== "string" || command.length * 3 <= CommandText.maxLength) return undefined
  const bytes = new TextEncoder().encode(command).length
  return bytes <= CommandText.maxLength
    ? undefined
    : `The command is ${bytes} bytes long; the limit is ${CommandText.maxLength} bytes. Write it into a file and run the file.`
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
  const known = sessionEntry(entry)
  if (Glob.matches(known.name, self.tool)) return "name"
  if (use === "allow") return entriesAllow([entry], self) === undefined ? undefined : "signature"
  const { remembered } = known
  const { spoken } = self
  if (spoken !== undefined && remembered !== undefined) {
    if (spoken.reader.touches(remembered, spoken.command, self.started)) return "signature"
  }
  if (remembered !== undefined)
    for (const { command, reader, started } of self.quoted)
      if (reader.touches(remembered, command, started)) return "signature"
  return self.evidence.matches(known.pattern) ? "signature" : undefined
}

/**
 * The session entries that together allow a call: a compound may need several, one for each of its programs. Entries that
 * are names count as well.
 */
export const entriesAllow = (entries: Iterable<string>, self: Subject): string | undefined => {
  const { cwd, spoken } = self
  const all = [...entries]
  for (const entry of all) {
    if (entry === self.tool) return entry
    const known = sessionEntry(entry)
    if (CommandText.namesNothing(entry)) continue
    if (Glob.matches(known.name, self.tool)) return entry
    if (spoken === undefined) {
      if (self.evidence.isWithin(known.pattern.allows)) return entry
    } else if (known.remembered !== undefined && Remembered.coversText(known.remembered, spoken.command, cwd.path))
      return entry
  }
  if (spoken === undefined) return undefined
  const patterns = commandPatterns(all, self, spoken.reader)
  return patterns.length === 0 ? undefined : whole(self.evidence.allowed(spoken, judged(self, patterns)))
}

/** Some entry is this very command, in this directory. */
export const remembersExactly = (entries: Iterable<string>, self: Subject): boolean => {
  for (const entry of entries) {
    const { remembered } = sessionEntry(entry)
    if (remembered !== undefined && Remembered.coversText(remembered, self.command ?? "", self.cwd.path)) return true
  }
  return false
}

/**
 * For a person's entry about one whole program (`git`, `git*`, `git *`): the entry remembered by the program's name.
 */
export const alsoMeant = (entry: string): string | undefined => {
  const program = CommandText.onlyProgram(entry)
  return program === undefined ? undefined : Remembered.format({ _tag: "Program", program, cwd: "" })
}

/**
 * The present form of an allowing entry from an older journal. Journals of version 0.1 wrote `git *` for a remembered
 * name. A person's pattern looked the same, so the narrower reading is taken.
 */
export const ofOlder = (entry: string): string => (/^\S+ \*$/.test(entry) ? (alsoMeant(entry) ?? entry) : entry)

/** One line per rule, for people. */
export const describe = ({ rules }: Pick<Compiled, "rules">): ReadonlyArray<string> => [
  ...rules.tools.map((rule) => `tool ${rule}`),
  ...rules.patterns.map((rule) => `pattern ${rule}`),
  ...rules.arguments.map((rule) => `argument ${rule}`)
]

/**
 * What `always` and `never` remember of a call: a command's {@link Remembered.Remembered}, the origin of an address of the
 * web, another tool's name.
 */
export const rememberKey = (self: Subject): string =>
  self.spoken === undefined ? (self.evidence.remembered ?? self.tool) : Remembered.format(remembered(self, self.spoken))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** An entry of a session list in the forms in which it is used. */
interface SessionEntry {
  readonly name: Glob.Glob
  readonly remembered: Remembered.Remembered | undefined
  readonly pattern: Pattern
  command: CommandPattern | undefined
}

/** The parameter of a tool that is annotated as sandboxed: see `ToolTrait.Sandboxed`. */
const wantsToWrite = (params: unknown): boolean => Signature.isRecord(params) && params["sandbox"] === "write"

/** A name stands for what reads. Whether git only reads has to be known: see `judged`. */
const remembered = (
  { call, confined, cwd, line }: Subject,
  { command, reader }: NonNullable<Subject["spoken"]>
): Remembered.Remembered => {
  const entry = reader.remembered(command, cwd.path, line, confined)
  const isUnknown = !confined && call.repository !== "harmless"
  return entry._tag === "Program" && entry.program === "git" && isUnknown
    ? Remembered.Exact({ command: CommandText.trim(command), cwd: cwd.path })
    : entry
}

/** The rule that allows confined commands which only read. */
export const readingPrograms = "commands that only read"

/**
 * Git runs what a repository's own settings name. So the harmless table counts for git only if these settings are known to be
 * harmless. A pattern that spells the words out means what it says.
 */
const judged = ({ call }: Subject, patterns: ReadonlyArray<CommandPattern>): ReadonlyArray<CommandPattern> =>
  call.repository === "harmless"
    ? patterns
    : patterns.map((pattern) =>
        pattern.byTable === undefined
          ? pattern
          : { ...pattern, covers: (run) => (run.own[0] === "git" ? undefined : pattern.covers(run)) }
      )

/** What entries of session lists say of commands. */
const commandPatterns = (entries: Iterable<string>, { cwd }: Subject, reader: CommandReader): Array<CommandPattern> => {
  const out: Array<CommandPattern> = []
  for (const entry of entries) {
    const known = sessionEntry(entry)
    if (CommandText.namesNothing(entry)) continue
    if (known.remembered !== undefined) out.push(reader.asPattern(known.remembered, entry))
    else if (Location.isWorkspace(cwd)) out.push((known.command ??= reader.pattern(entry)))
  }
  return out
}

// Cached: entries are few and are used with every call.
const sessionEntries = new Map<string, SessionEntry>()
const maxSessionEntries = 512

const sessionEntry = (entry: string): SessionEntry => {
  const known = sessionEntries.get(entry)
  if (known !== undefined) return known
  const made: SessionEntry = {
    name: Glob.compile(entry),
    remembered: asRemembered(entry),
    pattern: { ...DenyPattern.make(entry), allows: Signature.globs(entry) },
    command: undefined
  }
  if (sessionEntries.size >= maxSessionEntries) sessionEntries.clear()
  sessionEntries.set(entry, made)
  return made
}

/** What a pattern means as one for the commands of this tool; nothing where it is about the calls of another one. */
const aboutCommands = (pattern: Pattern, call: CallPattern.Called): ReadonlyArray<DenyPattern.DenyPattern> =>
  CallPattern.isOne(pattern) ? CallPattern.commands(pattern, call) : [pattern]

/** A tool's name has neither blanks nor wildcards. */
const entryOfCommands = /[ \t\n*?[]/

const spelling = (compiled: Compiled, command: string): string | undefined => {
  const trimmed = CommandText.trim(command)
  return compiled.rules.patterns.find((text) => CommandText.trim(text) === trimmed)
}

/** The rule on names that the tool falls under. */
export const named = ({ servers, tools }: Compiled, tool: string): string | undefined => {
  if (tools.has(tool)) return tool
  if (servers.length === 0) return undefined
  const server = servers.find((server) => tool.startsWith(server))
  return server === undefined ? undefined : `${server}*`
}

const joined = (rules: ReadonlyArray<string> | undefined): string | undefined =>
  rules === undefined || rules.length === 0 ? undefined : [...new Set(rules)].join(" + ")

const asRemembered = (entry: string): Remembered.Remembered | undefined =>
  Remembered.is(entry) ? Remembered.parse(entry) : undefined

const madeOnce = (make: Compiled["commands"]): Compiled["commands"] => {
  let made: ReadonlyArray<CommandPattern> | undefined
  return (reader) => (made ??= make(reader))
}
