/**
 * Why it cannot be told what a command runs. Either the command cannot be parsed, or a program's name is not known
 * before it runs, or something unseen tells a program what to run.
 */
import * as Either from "effect/Either"
import * as CommandOption from "./CommandOption.js"
import * as HarmlessVariable from "./HarmlessVariable.js"
import * as Interpreter from "./Interpreter.js"
import * as Order from "./Order.js"
import { parse, type CommandLine, type SimpleCommand } from "./ShellGrammar.js"
import * as Wrapper from "./Wrapper.js"
import * as Written from "./Written.js"

/** A sentence with the reason; nothing when it can be told. */
export const of = (line: CommandLine): string | undefined => inLine(line, false, 0, Written.none)

/** The texts that a command hands to a shell by its words and assignments. Rules that deny look into them. */
export const texts = (command: SimpleCommand): ReadonlyArray<string> =>
  textsOf(Order.ranBy(command), 0, orderOfCommand(command))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<string> = []

/** Limits for programs that run programs, and for texts within texts. */
const maxDepth = 8
const maxTexts = 2
const maxText = 20_000
const maxAssignments = 64

const orderOf = (ran: Order.Ran): Order.Order | undefined =>
  Wrapper.orderOf(ran) ?? Interpreter.orderOf(ran) ?? CommandOption.orderOf(ran)

// Kept, because the texts and the doubt both need it, and a long script takes time to be read.
const orders = new WeakMap<SimpleCommand, { readonly order: Order.Order | undefined }>()

const orderOfCommand = (command: SimpleCommand): Order.Order | undefined => {
  const known = orders.get(command)
  if (known !== undefined) return known.order
  const order = orderOf(Order.ranBy(command))
  orders.set(command, { order })
  return order
}

const textsOf = (ran: Order.Ran, depth: number, order = orderOf(ran)): ReadonlyArray<string> => {
  const own = order?.texts ?? none
  if (ran.assignments.length === 0 && (order === undefined || order.programs.length === 0))
    return own.filter((text) => text.length <= maxText)
  const given = ran.assignments.slice(0, maxAssignments).flatMap((text) => HarmlessVariable.orderOf(text, false).texts)
  const inner = depth < maxDepth ? (order?.programs ?? []).flatMap((program) => textsOf(program, depth + 1)) : none
  return [...own, ...given, ...inner].filter((text) => text.length <= maxText)
}

const inLine = (line: CommandLine, fed: boolean, depth: number, around: Written.Written): string | undefined => {
  const { commands } = line
  // After `exec` redirects the shell's own input, all later commands read from there.
  const feeds = fed || (line.redirects.length > 0 && commands.some(({ program }) => program === "exec"))
  const exports = commands.some(({ words: [program = "", option = ""] }) =>
    program === "set" ? /^-[a-z]*[ao]/.test(option) : exporting.has(program)
  )
  const sets = commands.some(({ assignments, program }) => assignments.length > 0 || setting.has(program))
  if (sets && computes(line)) return "What is computed cannot be told before it runs; write the numbers out."
  if (/@P\}/.test(line.text)) return "What a value expands to cannot be told before it runs; write it out."
  const written = Written.inLine(line, around)
  const seen = new Set<string>()
  for (const command of commands) {
    // Long lines repeat the same command.
    if (seen.has(command.text) && !command.fed) continue
    if (!command.fed) seen.add(command.text)
    const { named, program } = command
    if (!named) return `Which program ${program} is cannot be told before it runs; name it.`
    const ran = { ...Order.ranBy(command), fed: command.fed || feeds }
    // A variable that no command sets is empty, and adds no words.
    if (
      searches.test(program) &&
      command.dynamic &&
      command.words.some((word, at) => (sets || /^(?:\$\(|`)/.test(word)) && Order.mayBeOption(ran, at))
    )
      return untold(program)
    const found = inRun(
      ran,
      depth,
      exports,
      written,
      ran.fed === command.fed ? () => orderOfCommand(command) : undefined
    )
    if (found !== undefined) return found
  }
  return undefined
}

const searches = /(?:^|\/)(?:g?find|fd|fdfind)$/

/** Beside assignments, these set variables. */
const setting: ReadonlySet<string> = new Set(
  "read mapfile readarray getopts set declare typeset local export readonly".split(" ")
)

/** Arithmetic on a variable also evaluates its value, which may run a command in brackets. */
const computes = (line: CommandLine): boolean => counts(line) || (evaluates(line) && takesValues(line))

/** Giving a value to one of the shell's own numbers evaluates it. */
const counts = ({ commands }: CommandLine): boolean =>
  commands.some(({ assignments, program, words }) =>
    [...assignments, ...(setting.has(program) ? words : [])].some(
      (word) => counting.test(word) && (reading.test(program) || word.includes("["))
    )
  )

const counting = /^(?:RANDOM|SRANDOM|SECONDS|OPTIND|LINENO|HISTCMD|EPOCH[A-Z]+|BASH_ARGV0|HIST(?:FILE)?SIZE)(?:\+?=|$)/

const evaluates = ({ commands, text }: CommandLine): boolean =>
  arithmetic.test(text) ||
  commands.some(
    ({ program, unknown, words }) =>
      program === "let" ||
      // A variable that its option names.
      (program === "wait" && unknown.length > 0) ||
      (setting.has(program) && words.some((word) => /^-[A-Za-z]*i/.test(word)))
  )

const takesValues = ({ commands }: CommandLine): boolean =>
  commands.some(
    ({ assignments, program }) => reading.test(program) || assignments.some((assignment) => assignment.includes("["))
  )

/** In `$((…))`, in `${x:from:length}`, between the brackets of `${x[at]}`, and in the name that `${!x}` stands for. */
const arithmetic =
  /\$\(\([^)]*[A-Za-z_]|\$\{![A-Za-z_]|\$\{[!#]?(?:\w+|[@*])(?::(?![-=?+])[^}]*[A-Za-z_]|\[[^\]}]*[A-Za-z_])/

const reading = /^(?:read|mapfile|readarray)$/

const exporting: ReadonlySet<string> = new Set(["export", "declare", "typeset"])

const inRun = (
  ran: Order.Ran,
  depth: number,
  exports: boolean,
  written: Written.Written,
  ordered = (): Order.Order | undefined => orderOf(ran)
): string | undefined => {
  const { assignments, fed, words } = ran
  const [program = ""] = words
  const declares = exporting.has(program) || program === "readonly" || program === "local"
  const given = declares ? [...assignments, ...words.slice(1)] : assignments
  const isAlone = words.length === 0 || (declares && !exporting.has(program))
  if (given.length > maxAssignments) return untold(program)
  for (const text of given) {
    if (!text.includes("=")) continue
    const unknown = /[$`]/.test(text)
    const order = isAlone
      ? HarmlessVariable.orderAlone(text, unknown, exports)
      : HarmlessVariable.orderOf(text, unknown)
    const name = text.slice(0, text.indexOf("="))
    if (order.dark || inTexts(order.texts, true, depth, written) !== undefined)
      return `What ${name} makes programs run cannot be told; leave it out.`
  }
  if (words.length === 0) return undefined
  if (Written.isRunBy(written, words))
    return `What ${program} runs is written by the same command, so it cannot be told before.`
  if (depth > maxDepth) return untold(program)
  const order = ordered()
  if (order === undefined) return undefined
  if (order.dark) return untold(program)
  for (const inner of order.programs) {
    if (Order.isUnknown(inner, 0)) return untold(program)
    const found = inRun(inner, depth + 1, false, written)
    if (found !== undefined) return found
  }
  // A program that reads through another one is fed by that: a pager, a filter.
  const feeds = fed || CommandOption.tells(program)
  return inTexts(order.texts, feeds, depth, written) === undefined ? undefined : untold(program)
}

const inTexts = (
  texts: ReadonlyArray<string>,
  fed: boolean,
  depth: number,
  written: Written.Written
): string | undefined => {
  for (const text of texts) {
    const line = depth >= maxTexts * 4 || text.length > maxText ? undefined : Either.getOrUndefined(parse(text))
    const found = line === undefined ? text : inLine(line, fed, depth + 4, written)
    if (found !== undefined) return found
  }
  return undefined
}

const untold = (program: string): string =>
  `What ${program} is told to run cannot be told before it runs; write it out.`
