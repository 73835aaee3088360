/** What a call does and what an answer about it is remembered for, as dialogs of a console show it. All pure. */
import * as Either from "effect/Either"
import * as UntrustedJson from "../../core/UntrustedJson.js"
import * as Truncated from "../../core/Truncated.js"
import type { Approve } from "../../interaction/Interaction.js"
import * as Remembered from "../../shell/Remembered.js"
import * as RememberedText from "../../shell/RememberedText.js"
import * as DiffLines from "../terminal/DiffLines.js"
import * as Display from "../terminal/Display.js"
import type { ToolDisplay } from "../../tool/ToolCall.js"

/** How calls look. */
export interface Look {
  readonly color: boolean
  /** Shows the whole text at once, where nobody can ask for it. Default: false. */
  readonly whole?: boolean | undefined
  /** Shows diffs as a person at a screen reads them, with the colours of code where there are any. Default: as they are. */
  readonly diff?: Pick<DiffLines.Look, "colors" | "signs"> | undefined
  /** Draws Markdown. Default: it is shown as it is written. */
  readonly draw?: ((text: string) => ReadonlyArray<string>) | undefined
}

/** What a call does, as its dialog shows it, and all of that with what would be remembered. */
export const make = (
  interaction: Approve,
  options: Look
): {
  readonly lines: ReadonlyArray<string>
  /** Whether the lines leave something out. */
  readonly isShort: boolean
  readonly whole: () => ReadonlyArray<string>
} => {
  const style = Display.style(options.color)
  const diff = diffOf(interaction, options, mostDiff)
  const isShort = options.whole !== true && (diff === undefined ? isShortened(interaction) : isCut(interaction))
  return {
    lines: call(style, interaction, !isShort, diff, options.draw),
    isShort,
    whole: () => [
      ...call(style, interaction, true, diffOf(interaction, options, Infinity), options.draw),
      ...remembered(style, interaction, true)
    ]
  }
}

/** What an answer that lasts allows or denies from then on, a row each. */
export const remembered = (style: Display.Style, interaction: Approve, whole: boolean): ReadonlyArray<string> => {
  const { approvalKey, onceOnly } = interaction
  if (approvalKey === "") return []
  const said = (verb: "allow" | "deny") =>
    thisCommand(interaction, verb) ?? Display.oneLine(rule(interaction, verb), whole ? shownAtAll.head : longestKey)
  const always = onceOnly === true ? [] : [`\`always\` allows: ${said("allow")}`]
  return [...always, `\`never\` denies: ${said("deny")}`].map(style.dim)
}

/** The rule that an answer which lasts makes, as a person would say it: what it allows, or denies. */
export const rule = ({ approvalKey, tool }: Approve, verb: "allow" | "deny"): string => {
  if (approvalKey === tool) return `every call of ${tool}`
  const [, name, origin] = /^([\w-]+)\(\w+=(https?:\/\/[^/*]+)\/\*\)$/.exec(approvalKey) ?? []
  // A bracket of an address is written as a class of one character in a pattern.
  if (name === tool && origin !== undefined) return `every address at ${origin.replaceAll("[[]", "[")}`
  return RememberedText.describe(approvalKey, verb) ?? approvalKey
}

/** Where a rule is about the very command that stands above: it need not be read twice. */
const thisCommand = ({ approvalKey, display }: Approve, verb: "allow" | "deny"): string | undefined => {
  const { _tag, cwd, ...exact } = Remembered.parse(approvalKey)
  if (display?.format !== "code" || !("command" in exact) || display.details?.trim() !== exact.command) return undefined
  if (verb === "deny") return "this command, also inside a longer one"
  return `exactly this command${cwd === "" ? "" : `, in ${Display.oneLine(cwd)}`}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** How many characters and lines of a call are shown before somebody asks for all of them. */
const shownAtOnce = { head: 4_000, tail: 2_000, headLines: 60, tailLines: 20 }
/** How many are shown to somebody who asks: no key is read while they are drawn. */
const shownAtAll = { head: 80_000, tail: 20_000 }
const longestKey = 200

/** Lines of a diff beyond which only those are shown that change. */
const mostDiff = 60
/** Characters beyond which a diff is shown as it is: where somebody asks for all of it, and before. */
const longestDiff = shownAtAll.head + shownAtAll.tail
const longestDiffAtOnce = 20_000

/** The diff of a call that changes a file, as a person reads it. */
const diffOf = ({ display }: Approve, { color, diff }: Look, most: number): ReadonlyArray<string> | undefined => {
  if (diff === undefined || display?.format !== "diff" || display.details === undefined) return undefined
  if (display.details.length > (most === Infinity ? longestDiff : longestDiffAtOnce)) return undefined
  return DiffLines.make(display.details, { color, ...diff, most })
}

/** Whether lines of a diff are left out that are the same in both versions, or a part of what is remembered. */
const isCut = (interaction: Approve): boolean =>
  (interaction.display?.details ?? "").split("\n").length > mostDiff ||
  (interaction.display?.summary ?? "").length > longestWords ||
  interaction.approvalKey.length > longestKey

const isShortened = ({ approvalKey, argumentsSummary, display }: Approve): boolean =>
  Truncated.make(display?.details ?? "", shownAtOnce) !== undefined ||
  (display?.summary ?? argumentsSummary).length > longestWords ||
  approvalKey.length > longestKey

/** A summary, which stands on one line. */
const words = (text: string, whole: boolean): string => Display.oneLine(text, whole ? shownAtAll.head : longestWords)
const longestWords = 4_000

const call = (
  style: Display.Style,
  { display, argumentsSummary }: Approve,
  whole: boolean,
  diff?: ReadonlyArray<string>,
  draw?: Look["draw"]
): ReadonlyArray<string> => [
  ...(display?.summary === undefined ? [] : [words(display.summary, whole)]),
  ...(display?.details === undefined
    ? [words(argumentsSummary, whole)]
    : isSaid(display)
      ? []
      : (diff ?? details(style, display, display.details, whole, draw))),
  ...(display?.truncated === true ? [style.dim("(something is left out here)")] : []),
  ...(display?.warnings ?? []).map((warning) => style.yellow(`! ${Display.oneLine(warning)}`))
]

/** Whether the summary has all of the code: what a command of one line is need not be read twice. */
const isSaid = ({ details = "", format, summary = "", truncated }: ToolDisplay): boolean => {
  const code = details.trim()
  return (
    code !== "" && format === "code" && truncated !== true && code === Display.oneLine(code) && summary.includes(code)
  )
}

const details = (
  style: Display.Style,
  { format, language }: ToolDisplay,
  text: string,
  whole: boolean,
  draw: Look["draw"] = foreign
): ReadonlyArray<string> => {
  const written = format === "json" ? pretty(text) : text.replace(/\n$/, "")
  const styled = (part: string) =>
    format === "diff"
      ? foreign(part).map((line) => diffLine(style, line))
      : (format === "markdown" ? draw : foreign)(part)
  const shortened = Truncated.make(written, whole ? shownAtAll : shownAtOnce)
  const lines =
    shortened === undefined
      ? styled(written)
      : [
          ...styled(shortened.head.replace(/\n$/, "")),
          style.yellow(
            `[${Truncated.note(shortened)}${whole ? "" : `; v shows ${Truncated.make(written, shownAtAll) === undefined ? "everything" : "more"}`}]`
          ),
          ...styled(shortened.tail)
        ]
  return format === "code" && language !== undefined ? [style.dim(`${Display.oneLine(language)}:`), ...lines] : lines
}

const diffLine = (style: Display.Style, line: string): string => {
  if (line.startsWith("+++") || line.startsWith("---")) return style.bold(line)
  if (line.startsWith("+")) return style.green(line)
  if (line.startsWith("-")) return style.red(line)
  return line.startsWith("@@") ? style.cyan(line) : line
}

const pretty = (text: string): string =>
  Either.match(UntrustedJson.parse(text), {
    onLeft: () => text,
    onRight: (value) => JSON.stringify(value, null, 2)
  })

const foreign = (text: string): ReadonlyArray<string> => Display.reveal(text).split("\n")
