/** A call as rules see it. Expensive parts are computed when the first rule needs them, and kept. */
import type * as Tool from "@effect/ai/Tool"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { canonicalJson } from "../core/CanonicalJson.js"
import type { CommandField, CommandReader, Quotes } from "../shell/CommandField.js"
import type * as CommandLine from "../shell/CommandLine.js"
import type * as CommandPattern from "../shell/CommandPattern.js"
import * as CommandText from "../shell/CommandText.js"
import * as CallPattern from "./CallPattern.js"
import type * as FileSurvey from "./FileSurvey.js"
import * as Glob from "../core/Glob.js"
import * as DenyPattern from "./DenyPattern.js"
import * as Location from "../shell/Location.js"
import type * as ProgramRun from "../shell/ProgramRun.js"
import type { ToolDefinition } from "../tool/ToolDefinition.js"
import * as Signature from "./Signature.js"

export interface Call {
  readonly tool: string
  /** Encoded arguments. */
  readonly params: unknown
  /** The parameter that holds a shell command, for tools annotated so. */
  readonly commandField?: CommandField | undefined
  /** The texts that may be commands, for a tool that knows its call by the words of others. */
  readonly quotes?: Quotes | undefined
  /** The parameters that hold paths. For a command tool the first is the directory in which the command runs. */
  readonly pathFields?: ReadonlyArray<string> | undefined
  /** The parameter that holds an address of the web. */
  readonly webField?: string | undefined
  /** The parameter that lets what the call starts live on beside the turns. */
  readonly lastingField?: string | undefined
  /** Absolute: where relative paths begin. Without it no absolute path is taken for one in the workspace. */
  readonly workspace?: string | undefined
  /**
   * The tool whose parameters are known: further arguments do not count for rules that allow, because the tool never
   * sees them.
   */
  readonly takes?: Pick<Tool.Any, "parametersSchema"> | undefined
  /** It runs in a sandbox. A function, because that is known with the first command only. */
  readonly confined?: boolean | (() => boolean) | undefined
  /** Links can be followed: until that is done, it is not known where the paths lead. */
  readonly linked?: boolean | undefined
  /** Where the paths lead, once links were followed. */
  readonly places?: FileSurvey.Places | undefined
  /** Why it cannot be told where the paths lead, though a rule may be about that. */
  readonly doubt?: string | undefined
  /**
   * For a command that runs git: `harmless` if nothing in the repository's own settings makes git run a program or read
   * elsewhere, else a sentence. Nobody has looked if it is absent.
   */
  readonly repository?: "harmless" | { readonly reason: string } | undefined
  /** The command can reach a `.git` or `.assent`. Absent until somebody has looked. */
  readonly isBesideGuarded?: boolean | undefined
  /** Present for a tool of a server. */
  readonly definition?: ToolDefinition | undefined
  /** The paths that nobody touches. */
  readonly denied?: ReadonlyArray<string> | undefined
}

/**
 * A call as rules see it: its tool, its arguments, the parsed command, and every string among them. Made once per call.
 *
 * @since 0.1.0
 * @category models
 */
export interface Subject {
  readonly tool: string
  readonly params: unknown
  /** The shell command, for a command tool. */
  readonly command: string | undefined
  /**
   * The same with what takes it apart: there is no command without that.
   *
   * @internal
   */
  readonly spoken: Spoken | undefined
  /**
   * Where the command runs.
   *
   * @internal
   */
  readonly cwd: Location.Directory
  /**
   * The parsed command; nothing for other tools and for a command that cannot be parsed.
   *
   * @internal
   */
  readonly line: CommandLine.CommandLine | undefined
  readonly signature: string
  /** What the call starts lives on beside the turns, as long as its session. */
  readonly lasting: boolean
  /**
   * The texts that may be commands, taken apart; for a tool that knows its call by the words of others.
   *
   * @internal
   */
  readonly quoted: ReadonlyArray<Quoted>
  /**
   * The programs that the command itself runs, or the quoted commands; none for other tools.
   *
   * @internal
   */
  readonly started: ReadonlyArray<CommandLine.StartedProgram>
  /** Every string among the arguments, at any depth. */
  readonly strings: ReadonlyArray<string>
  /** It runs in a sandbox, as far as that is known by now. */
  readonly confined: boolean
  /** Why it cannot be told which programs a command runs: a sentence. Nothing when it can be told. */
  readonly unresolved: string | undefined
  /** Why it cannot be told where the paths lead; nothing when it can be told. */
  readonly doubt: string | undefined
  /**
   * The texts that rules search.
   *
   * @internal
   */
  readonly evidence: Evidence
  /** @internal */
  readonly call: Call
  /**
   * Its paths were not followed yet: no rule over arguments allows it. See `Destination`.
   *
   * @internal
   */
  readonly open: boolean
}

export interface Spoken {
  readonly command: string
  readonly reader: CommandReader
}

/** A text that may be a command. */
export interface Quoted extends Spoken {
  readonly line: CommandLine.CommandLine | undefined
  readonly started: ReadonlyArray<CommandLine.StartedProgram>
}

/** What such a call starts lives on beside the turns. */
export const lasts = (field: string | undefined, params: unknown): boolean => {
  if (field === undefined || !Signature.isRecord(params)) return false
  const value = params[field]
  return value !== undefined && value !== false
}

/** `evidence` makes the texts that rules search. */
export const make = (call: Call, evidence?: (self: Subject) => Evidence): Subject => new LazySubject(call, evidence)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Texts that rules search. A command of 100 kB has some 10,000, and most rules are in none, so they are also one text. */
interface Searched {
  readonly texts: ReadonlyArray<string>
  readonly whole: string
}

const searched = (all: ReadonlyArray<string>): Searched => {
  const texts = [...new Set(all)]
  return { texts, whole: texts.join("\n") }
}

class LazySubject implements Subject {
  readonly tool: string
  readonly params: unknown
  readonly command: string | undefined
  readonly spoken: Spoken | undefined
  private readonly isText: boolean
  private parsedMemo: Parsed | undefined
  private cwdMemo: Location.Directory | undefined
  private signatureMemo: string | undefined
  private startedMemo: ReadonlyArray<CommandLine.StartedProgram> | undefined
  private quotedMemo: ReadonlyArray<Quoted> | undefined
  private stringsMemo: ReadonlyArray<string> | undefined
  private evidenceMemo: Evidence | undefined
  readonly open: boolean

  constructor(
    readonly call: Call,
    private readonly evidenceOf?: (self: Subject) => Evidence
  ) {
    const { tool, params, commandField } = call
    this.tool = tool
    this.params = params
    const command = commandField === undefined || !Signature.isRecord(params) ? undefined : params[commandField.name]
    this.isText = typeof command === "string"
    // A command tool stays one when its command is missing or no text; then only its name can allow it.
    this.spoken =
      commandField === undefined
        ? undefined
        : {
            command: typeof command === "string" ? command : Signature.shown(command ?? ""),
            reader: commandField.reader
          }
    this.command = this.spoken?.command
    this.open = call.linked === true && commandField === undefined && call.pathFields?.[0] !== undefined
  }

  private parsed({ command, reader }: Spoken): Parsed {
    return (this.parsedMemo ??= reader.parse(command))
  }

  get line(): CommandLine.CommandLine | undefined {
    return this.spoken === undefined || !this.isText ? undefined : Either.getOrUndefined(this.parsed(this.spoken))
  }

  get confined(): boolean {
    const { confined = false } = this.call
    return typeof confined === "boolean" ? confined : confined()
  }

  get unresolved(): string | undefined {
    const { spoken } = this
    return spoken === undefined ? undefined : spoken.reader.unresolved(this.parsed(spoken), this.started)
  }

  get doubt(): string | undefined {
    return this.call.doubt
  }

  get cwd(): Location.Directory {
    if (this.cwdMemo !== undefined) return this.cwdMemo
    const { params, pathFields = [], workspace } = this.call
    const value = Signature.isRecord(params) ? params[pathFields[0] ?? ""] : undefined
    // A value that is no path is not the workspace either.
    const path =
      value === undefined || value === null ? undefined : typeof value === "string" ? value : canonicalJson(value)
    return (this.cwdMemo = Location.directory(path, workspace))
  }

  get signature(): string {
    return (this.signatureMemo ??= this.command ?? Signature.ofCall(this.tool, this.params))
  }

  get lasting(): boolean {
    return lasts(this.call.lastingField, this.call.params)
  }

  get started(): ReadonlyArray<CommandLine.StartedProgram> {
    const { line, spoken } = this
    return (this.startedMemo ??=
      spoken === undefined
        ? this.quoted.flatMap(({ started }) => started)
        : spoken.reader.startedBy(spoken.command, line))
  }

  get quoted(): ReadonlyArray<Quoted> {
    const { params, quotes } = this.call
    if (quotes === undefined) return none
    const { reader } = quotes
    return (this.quotedMemo ??= quotes
      .textsOf(params)
      // A longer text is taken apart line by line: nothing longer is a command.
      .flatMap((text) => (text.length > CommandText.maxLength ? text.split("\n") : [text]))
      .filter((text) => text.length <= CommandText.maxLength)
      .map((command) => {
        const line = Either.getOrUndefined(reader.parse(command))
        return { command, reader, line, started: reader.startedBy(command, line) }
      }))
  }

  get strings(): ReadonlyArray<string> {
    return (this.stringsMemo ??= Signature.stringsIn(this.params))
  }

  get evidence(): Evidence {
    return (this.evidenceMemo ??= this.evidenceOf?.(this) ?? new Evidence(this, this.call))
  }
}

/** The texts that rules search, made at the first search. */
export class Evidence {
  private spelledMemo: Searched | undefined
  private runsMemo:
    { readonly confined: boolean; readonly runs: ReadonlyArray<ProgramRun.ProgramRun> | undefined } | undefined
  private normalMemo: unknown
  private allowSignatureMemo: string | undefined
  private stringsMemo: Searched | undefined
  private formsMemo: ReadonlyArray<unknown> | undefined

  constructor(
    private readonly self: Subject,
    private readonly call: Call
  ) {}

  /** To allow: as {@link Signature.ofCall}, with paths in their shortest form, and an address in its canonical one. */
  get allowSignature(): string {
    return (this.allowSignatureMemo ??= Signature.toAllow(this.self.tool, this.taken))
  }

  /** What `always` and `never` remember of a call with an address of the web: its origin, where it says nothing else. */
  get remembered(): string | undefined {
    const { webField } = this.call
    if (webField === undefined) return undefined
    const { taken } = this
    const given = Signature.isRecord(taken) ? Object.keys(taken) : []
    const url = Signature.isRecord(taken) && given.length === 1 ? Signature.addressIn(taken[webField]) : undefined
    if (url === undefined) return Glob.escape(this.allowSignature)
    return `${this.self.tool}(${webField}=${Glob.escape(url.origin)}/*)`
  }

  /** A pattern in one of its forms allows the call. */
  isWithin(pattern: ReadonlyArray<Glob.Glob>): boolean {
    return !this.self.open && pattern.some((glob) => Glob.matches(glob, this.allowSignature))
  }

  get allowStrings(): ReadonlyArray<string> {
    return this.self.open ? [] : Signature.stringsIn(this.normal)
  }

  /** How far the patterns together allow the programs of the command. */
  allowed({ command, reader }: Spoken, patterns: ReadonlyArray<CommandPattern.CommandPattern>): CommandLine.Allowing {
    const { confined, cwd, line } = this.self
    if (this.runsMemo?.confined !== confined)
      this.runsMemo = { confined, runs: line === undefined ? undefined : reader.runsOf(line, cwd, confined) }
    const { runs } = this.runsMemo
    return runs === undefined ? { rules: [], allowed: [], missing: [command] } : reader.allowing(runs, patterns)
  }

  matches(pattern: DenyPattern.DenyPattern): boolean {
    if (this.finds(pattern)) return true
    const { call } = this
    return (
      this.forms.some((params) => CallPattern.means(pattern, call, params)) ||
      CallPattern.commands(pattern, call).some((one) => this.finds(one))
    )
  }

  private finds(pattern: DenyPattern.DenyPattern): boolean {
    const { texts, whole } = this.spelled
    return whole.includes(pattern.needle) && texts.some((text) => DenyPattern.matches(pattern, text))
  }

  mentions(rule: ReadonlyArray<string>): boolean {
    const [first = ""] = rule
    const { texts, whole } = this.strings
    return whole.includes(first) && texts.some((text) => DenyPattern.holdsRow(text, rule))
  }

  /** Every string of the arguments in each of their forms, and each program that starts, with its words. */
  private get strings(): Searched {
    if (this.stringsMemo !== undefined) return this.stringsMemo
    const { params, started, strings } = this.self
    const others = this.forms.filter((form) => form !== params).flatMap((form) => Signature.stringsIn(form))
    return (this.stringsMemo = searched([...strings, ...others, ...started.map(({ words }) => words.join(" "))]))
  }

  /** The arguments as they were given, as the tool takes them, and both with their paths in the shortest form. */
  private get forms(): ReadonlyArray<unknown> {
    if (this.formsMemo !== undefined) return this.formsMemo
    const { params, webField } = this.call
    const taken = asTaken(this.call)
    const more = taken === params ? [] : [taken, this.shortened(taken)]
    const reached = webField === undefined ? [] : [Signature.withReached(taken, webField)]
    return (this.formsMemo = [...new Set([params, this.normal, ...more, ...reached])])
  }

  private get normal(): unknown {
    return (this.normalMemo ??= this.shortened(this.call.params))
  }

  private shortened(params: unknown): unknown {
    const { pathFields = [], webField, workspace } = this.call
    return Signature.withAddress(Signature.withPlaces(params, pathFields, workspace), webField)
  }

  private get taken(): unknown {
    const { normal } = this
    const fields: object | undefined = this.call.takes?.parametersSchema?.fields
    if (fields === undefined || !Signature.isRecord(normal)) return normal
    const own = Object.entries(normal).filter(([name]) => Object.hasOwn(fields, name))
    return own.length === Object.keys(normal).length ? normal : Object.fromEntries(own)
  }

  /** The call in each of its forms; of a command, each text that a rule may mean. */
  private get spelled(): Searched {
    if (this.spelledMemo !== undefined) return this.spelledMemo
    const { line, signature, spoken, started } = this.self
    return (this.spelledMemo = searched(
      spoken === undefined
        ? [
            signature,
            ...this.forms.map((params) => Signature.ofCall(this.self.tool, params)),
            ...this.self.quoted.flatMap(({ command, line, reader, started }) => reader.texts(command, line, started))
          ]
        : spoken.reader.texts(spoken.command, line, started)
    ))
  }
}

interface Codec {
  /** It takes simple values as they are given. */
  readonly isPlain: boolean
  readonly decode: (given: unknown) => Either.Either<unknown, unknown>
  readonly encode: (taken: unknown) => Either.Either<unknown, unknown>
}

const codecs = new WeakMap<object, Codec>()

const codecOf = (schema: Schema.Schema.All): Codec => {
  let codec = codecs.get(schema)
  if (codec === undefined) {
    // A tool's own schema requires nothing; its type does not say so.
    const own = schema as Schema.Schema<unknown>
    const isPlain = SchemaAST.encodedAST(own.ast) === own.ast
    codec = { isPlain, decode: ParseResult.decodeUnknownEither(own), encode: ParseResult.encodeUnknownEither(own) }
    codecs.set(schema, codec)
  }
  return codec
}

/**
 * The arguments as the tool takes them, written out again: without those that it does not know, with those that it has by
 * default, and each in the one form that its schema gives it. As they were given, where that cannot be told.
 */
const asTaken = ({ params, takes }: Call): unknown => {
  const schema = takes?.parametersSchema
  if (schema === undefined) return params
  const { decode, encode, isPlain } = codecOf(schema)
  const fields: object | undefined = schema.fields
  // Most calls are so, and are not decoded once more.
  if (isPlain && fields !== undefined && Signature.isRecord(params) && isSimple(params, fields)) return params
  try {
    const taken = Either.getOrElse(Either.flatMap(decode(params ?? {}), encode), () => params)
    return canonicalJson(taken) === canonicalJson(params) ? params : taken
  } catch {
    return params
  }
}

/** No argument is unknown, and none holds others. */
const isSimple = (params: { readonly [name: string]: unknown }, fields: object): boolean => {
  for (const name of Object.keys(params)) {
    if (typeof params[name] === "object" || !Object.hasOwn(fields, name)) return false
  }
  return true
}

type Parsed = ReturnType<CommandReader["parse"]>

const none: ReadonlyArray<never> = []
