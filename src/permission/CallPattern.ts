/**
 * Patterns over the calls of a tool, `deploy(target=production*)`, read to deny: what may be meant is enough.
 *
 * Such a pattern means every call whose arguments are as it says, in whatever order, and whatever others there are beside
 * them: who adds an argument has not made another call of it. Without names it means any one argument. Of a tool that
 * runs commands it means those: they are taken apart, so the tool's name and a parameter's are not in the texts that are
 * searched. `*(path=.env)` means every tool that has the parameter.
 *
 * Blanks around names and values, and quotes around a whole value, are no part of what a rule means:
 * `deploy( to = 'x' )` is `deploy(to=x)`.
 */
import type * as Tool from "@effect/ai/Tool"
import * as Glob from "../core/Glob.js"
import type { CommandField } from "../shell/CommandField.js"
import * as CommandText from "../shell/CommandText.js"
import * as Location from "../shell/Location.js"
import * as DenyPattern from "./DenyPattern.js"
import * as Signature from "./Signature.js"

/** A tool, as far as patterns over its calls are concerned. */
export interface Called {
  readonly tool: string
  /** The parameter that holds a shell command. */
  readonly commandField?: CommandField | undefined
  /** The parameters that hold paths, and where relative ones begin. */
  readonly pathFields?: ReadonlyArray<string> | undefined
  readonly workspace?: string | undefined
  /** What is known of its parameters. */
  readonly takes?: Pick<Tool.Any, "parametersSchema"> | undefined
}

/** Whether a call of this tool may be meant. A path means the place, by whatever text. */
export const means = (
  pattern: DenyPattern.DenyPattern,
  { pathFields = [], tool, workspace }: Pick<Called, "pathFields" | "tool" | "workspace">,
  params: unknown
): boolean => {
  const own = read(pattern)
  if (own === false || !Glob.matches(own.tool, tool) || !Signature.isRecord(params)) return false
  const isIt = (glob: Glob.Glob, text: string): boolean => Glob.matches(glob, text) || Glob.matches(glob, single(text))
  if (own.named.length > 0)
    return own.named.every(({ name, value }) => {
      if (!Object.hasOwn(params, name)) return false
      const text = Signature.shown(params[name])
      if (isIt(value, text) || !pathFields.includes(name)) return isIt(value, text)
      return Glob.test(Location.normal(value.pattern, workspace) || ".", text)
    })
  return Object.entries(params).some(([name, value]) => {
    const text = Signature.shown(value)
    return isIt(own.whole, text) || isIt(own.whole, `${name}=${text}`)
  })
}

/** Whether a pattern is over the calls of tools. Any other is over commands. */
export const isOne = (pattern: DenyPattern.DenyPattern): boolean => read(pattern) !== false

/**
 * What a pattern that names the tool of this call, `run_command(rm *)` or `run_command(command=rm *, cwd=src)`, means as one
 * for its commands. What it says of other parameters is left out, which denies more. None for other patterns, and for one that
 * speaks of other parameters alone.
 */
export const commands = (
  pattern: DenyPattern.DenyPattern,
  { commandField, takes, tool }: Called
): ReadonlyArray<DenyPattern.DenyPattern> => {
  const own = read(pattern)
  if (own === false || commandField === undefined || !Glob.matches(own.tool, tool)) return []
  const fields: object = takes?.parametersSchema?.fields ?? {}
  // A pattern for many tools names parameters of some of them.
  const isOther = (name: string) => name !== commandField.name && (own.tool.wild || Object.hasOwn(fields, name))
  if (own.named.length > 0 && own.named.every(({ name }) => isOther(name))) return []
  const text = own.named.some(({ name }) => name === commandField.name) ? own.spelled : own.text
  return (own.commands ??= commandsIn(text))
}

/** A pattern over the calls of a tool, read to deny; nothing for other patterns. */
export const parse = (pattern: string): CallPattern | undefined => readText(pattern.trim()) || undefined

/**
 * The same rule as calls are written: without what is no part of its meaning, and, where it spells out all arguments, in
 * the order of their names. Other patterns stay as they are.
 */
export const spelled = (pattern: string): string => {
  const own = parse(pattern)
  if (own === undefined || own.named.length === 0) return pattern
  const [, end = ""] = /(\)\**)$/.exec(pattern.trim()) ?? []
  return `${own.tool.pattern}(${own.spelled}${end}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

export interface CallPattern {
  /** For the tool's name. */
  readonly tool: Glob.Glob
  /** What stands between the parentheses. */
  readonly text: string
  /** The same as calls are written. */
  readonly spelled: string
  readonly whole: Glob.Glob
  /** The arguments that it names. */
  readonly named: ReadonlyArray<Named>
  commands: ReadonlyArray<DenyPattern.DenyPattern> | undefined
}

interface Named {
  readonly name: string
  readonly value: Glob.Glob
}

/** What stands between the parentheses of a pattern over a tool's calls, as patterns for its commands. */
const commandsIn = (text: string): ReadonlyArray<DenyPattern.DenyPattern> => {
  const starts = [...text.matchAll(/(?:^\*?|, *\*?)[^\s=,:/?&*()[\]]+=/g)]
  if (starts.length > mostArguments) return [DenyPattern.make("*")]
  const values = starts.map(({ 0: start, index }, at) => {
    const from = index + start.length
    return [text.slice(from), text.slice(from, starts[at + 1]?.index)]
  })
  return [...new Set([text, ...values.flat()])].map(DenyPattern.make)
}

/** Who writes more of them means no call of a tool that there is; all of its commands are denied then. */
const mostArguments = 16

const known = new WeakMap<DenyPattern.DenyPattern, CallPattern | false>()

const read = (pattern: DenyPattern.DenyPattern): CallPattern | false => {
  let found = known.get(pattern)
  if (found === undefined) known.set(pattern, (found = readText(pattern.text.trim())))
  return found
}

/** The end of the arguments, and stars behind it. */
const isClosed = /\)\**$/

const single = (text: string): string => text.replace(/[ \t]+/g, " ").trim()

const readText = (pattern: string): CallPattern | false => {
  const tool = /^[\w*?-]+(?=\()/.exec(pattern)?.[0]
  if (tool === undefined) return false
  const body = pattern.slice(tool.length + 1).replace(isClosed, "")
  const text = single(body)
  const { before, pieces } = argumentsIn(text)
  const isNamed = CommandText.isStars(`*${before}`.replace(/,/g, ""))
  // Other texts behind stars, such as `*(cd x` , are those of commands.
  if (!/\w/.test(tool) && !isClosed.test(pattern) && !(isNamed && pieces.length > 0)) return false
  return {
    tool: Glob.compile(tool),
    text,
    // Blanks within a value count where a call is allowed.
    spelled: isNamed ? written(text === body ? { before, pieces } : argumentsIn(body.trim())) : body,
    whole: Glob.compile(text),
    named: isNamed ? pieces.map(({ name, value }) => ({ name, value: Glob.compile(value) })) : [],
    commands: undefined
  }
}

/** An argument as a pattern has it. */
interface Piece {
  /** A star before its name, which stands for other arguments. */
  readonly star: string
  readonly name: string
  readonly value: string
  /** Stars behind it that stand for other arguments. */
  readonly rest: string
}

interface Arguments {
  readonly before: string
  readonly pieces: ReadonlyArray<Piece>
}

const argumentsIn = (text: string): Arguments => {
  const pieces: Array<Piece> = []
  const start = new RegExp(argument)
  let found = start.exec(text)
  const before = text.slice(0, found?.index)
  while (found !== null) {
    const [, star = "", name = ""] = found
    quoted.lastIndex = start.lastIndex
    const quote = quoted.exec(text)
    const from = start.lastIndex
    if (quote !== null) start.lastIndex = quoted.lastIndex
    found = start.exec(text)
    const value = text.slice(from, found?.index)
    const rest = otherArguments.exec(value)?.[0] ?? ""
    pieces.push({
      star,
      name,
      value: quote?.[2] ?? value.slice(0, value.length - rest.length).trim(),
      rest: rest.trim()
    })
  }
  return { before, pieces }
}

const written = ({ before, pieces }: Arguments): string => {
  const isWhole = before === "" && pieces.every(({ rest, star }) => star === "" && rest === "")
  const inOrder = isWhole ? [...pieces].sort((a, b) => (a.name < b.name ? -1 : 1)) : pieces
  const texts = inOrder.map(({ name, rest, star, value }) => `${star}${name}=${value}${rest}`)
  return [...(before === "" ? [] : [before]), ...texts].join(", ")
}

/** The beginning of an argument. */
const argument = /(?:^|,[ \t]*)(\*?)([^\s=,:/?&*()[\]]+)[ \t]*=[ \t]*/g

/** A value between quotes, with another argument or nothing behind it. */
const quoted = /(["'])((?:(?!\1).)*)\1(?=[ \t]*(?:,|$))/sy

/** Stars that stand for other arguments. */
const otherArguments = /(?:,[ \t]*\*+)+[ \t]*$/
