/**
 * Patterns over the calls of a tool, `deploy(target=production*)`, read to deny: what may be meant is enough.
 *
 * Such a pattern means every call whose arguments are as it says, in whatever order, and whatever others there are beside
 * them: who adds an argument has not made another call of it. Without names it means any one argument. Of a tool that
 * runs commands it means those: they are taken apart, so the tool's name and a parameter's are not in the texts that are
 * searched.
 */
import type * as Tool from "@effect/ai/Tool"
import * as Glob from "../core/Glob.js"
import type { CommandField } from "../shell/CommandField.js"
import * as CommandText from "../shell/CommandText.js"
import * as Haystack from "../shell/Haystack.js"
import * as Signature from "./Signature.js"

/** A tool, as far as patterns over its calls are concerned. */
export interface Called {
  readonly tool: string
  /** The parameter that holds a shell command. */
  readonly commandField?: CommandField | undefined
  /** What is known of its parameters. */
  readonly takes?: Pick<Tool.Any, "parametersSchema"> | undefined
}

/** Whether a call of this tool may be meant. */
export const means = (pattern: Haystack.Needle, tool: string, params: unknown): boolean => {
  const own = read(pattern)
  if (own === false || !Glob.matches(own.tool, tool) || !Signature.isRecord(params)) return false
  const isIt = (glob: Glob.Glob, text: string): boolean => Glob.matches(glob, text) || Glob.matches(glob, single(text))
  if (own.named.length > 0)
    return own.named.every(
      ({ name, value }) => Object.hasOwn(params, name) && isIt(value, Signature.shown(params[name]))
    )
  return Object.entries(params).some(([name, value]) => {
    const text = Signature.shown(value)
    return isIt(own.whole, text) || isIt(own.whole, `${name}=${text}`)
  })
}

/**
 * What a pattern that names the tool of this call, `run_command(rm *)` or `run_command(command=rm *, cwd=src)`, means as one
 * for its commands. What it says of other parameters is left out, which denies more. None for other patterns, and for one that
 * speaks of other parameters alone.
 */
export const commands = (
  pattern: Haystack.Needle,
  { commandField, takes, tool }: Called
): ReadonlyArray<Haystack.Needle> => {
  const own = read(pattern)
  if (own === false || commandField === undefined || !Glob.matches(own.tool, tool)) return []
  const fields: object = takes?.parametersSchema?.fields ?? {}
  const isOther = (name: string) => name !== commandField.name && Object.hasOwn(fields, name)
  if (own.named.length > 0 && own.named.every(({ name }) => isOther(name))) return []
  return (own.commands ??= commandField.reader.commandsIn(own.text))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface CallPattern {
  /** For the tool's name. */
  readonly tool: Glob.Glob
  /** What stands between the parentheses. */
  readonly text: string
  readonly whole: Glob.Glob
  /** The arguments that it names. */
  readonly named: ReadonlyArray<{ readonly name: string; readonly value: Glob.Glob }>
  commands: ReadonlyArray<Haystack.Needle> | undefined
}

const known = new WeakMap<Haystack.Needle, CallPattern | false>()

const read = (pattern: Haystack.Needle): CallPattern | false => {
  let found = known.get(pattern)
  if (found === undefined) known.set(pattern, (found = readText(pattern.text.trim())))
  return found
}

const single = (text: string): string => text.replace(/[ \t]+/g, " ").trim()

const readText = (pattern: string): CallPattern | false => {
  const tool = /^[\w*?-]+(?=\()/.exec(pattern)?.[0]
  if (tool === undefined || !/\w/.test(tool)) return false
  const text = single(pattern.slice(tool.length + 1).replace(/\)\**$/, ""))
  const starts = [...text.matchAll(argument)]
  const named = starts.map(({ 0: start, 1: name = "", index }, at) => {
    const value = text.slice(index + start.length, starts[at + 1]?.index)
    return { name, value: Glob.compile(value.replace(otherArguments, "")) }
  })
  return {
    tool: Glob.compile(tool),
    text,
    whole: Glob.compile(text),
    named: CommandText.isStars(`*${text.slice(0, starts[0]?.index)}`.replace(/,/g, "")) ? named : [],
    commands: undefined
  }
}

/** The beginning of an argument. */
const argument = /(?:^\*?|, *\*?)([^\s=,:/?&*()[\]]+)=/g

/** Stars that stand for other arguments. */
const otherArguments = /(?:, *\*+)+ *$/
