/**
 * Several approvals of one tool in one dialog, each answered for itself.
 *
 * Only the first of them is open; the others are asked when their turn comes. What the person said about one of those is kept
 * here, and answers its request once it comes, if that asks exactly what was shown:
 *
 * ```
 *  request 1 ─► dialog of 1, 2, 3 ── "2 n" ──► kept for 2 ── "y" ──► kept for 3, answers 1
 *  request 2 ─► shows what was shown? ── yes ─► answered: no          (no dialog)
 *                                    └─ no ──► asked, and said so    (what was said does not count)
 * ```
 *
 * So every request keeps its id, its time, its checks and its record, and passes everybody else who is asked. What is kept
 * never lasts beyond its call: an answer that does, such as `always`, is taken only while nothing is kept that it could undo.
 */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Digest from "../../core/Digest.js"
import * as Origin from "../../core/Origin.js"
import type { Approve, ApproveAnswer } from "../../interaction/Interaction.js"
import type { BatchPlace, InteractionRequest } from "../../interaction/InteractionRequest.js"
import type { Upcoming } from "../../interaction/InteractorPort.js"
import * as PermissionOption from "../../interaction/PermissionOption.js"
import * as Display from "../terminal/Display.js"
import type * as Glyphs from "../terminal/Glyphs.js"
import * as ConsoleCall from "./ConsoleCall.js"
import type * as ConsolePrompt from "./ConsolePrompt.js"

/** One approval of a batch; the number is that of its call, and stays while others are answered. */
export interface Item extends Upcoming {
  /** What exactly is asked. */
  readonly form: string
}

/** How a dialog of several looks. */
export interface Look extends Pick<ConsolePrompt.Options, "color" | "now" | "diff"> {
  readonly columns: number
  readonly signs: Glyphs.Glyphs
  /** How many rows can be seen at once. */
  readonly rows: number
}

/** What a line means that was typed at a dialog of several. */
export type Typed = Data.TaggedEnum<{
  /** An answer for this one, in the words of its own dialog. */
  readonly One: { readonly item: Item; readonly words: string }
  /** An answer for the one that is open, which lasts beyond the call and may decide the others. */
  readonly Lasting: { readonly words: string }
  /** The same answer for all that are not answered yet. */
  readonly All: { readonly answer: ApproveAnswer }
  readonly View: { readonly items: ReadonlyArray<Item> }
  /** From now on one dialog for each. */
  readonly Singly: {}
  readonly Help: {}
  readonly Again: { readonly reason: string }
}>
export const { One, Lasting, All, View, Singly, Help, Again, $match: match } = Data.taggedEnum<Typed>()

/** What a person has seen of the approvals of one batch, and said about those that are still to be asked. */
export class Batch {
  private readonly given = new Map<number, { readonly form: string; readonly answer: ApproveAnswer }>()
  private readonly seen = new Set<string>()
  /** The person wants a dialog for each. */
  isSplit = false

  /** The answer that was given to exactly this; `changed` where something else was shown then. It is given once. */
  take(index: number, interaction: Approve): ApproveAnswer | "changed" | undefined {
    const found = this.given.get(index)
    this.given.delete(index)
    if (found === undefined) return undefined
    return found.form === formOf(interaction) ? found.answer : "changed"
  }

  /** The latest answer counts. */
  give({ form, index }: Item, answer: ApproveAnswer): void {
    this.given.set(index, { form, answer })
  }

  answerTo({ form, index }: Item): ApproveAnswer | undefined {
    const found = this.given.get(index)
    return found?.form === form ? found.answer : undefined
  }

  /** The numbers of the calls with an answer that was not asked for yet. */
  get answered(): ReadonlyArray<number> {
    return [...this.given.keys()].sort((one, other) => one - other)
  }

  saw({ form }: Item): void {
    this.seen.add(form)
  }

  hasSeen({ form }: Item): boolean {
    return this.seen.has(form)
  }

  split(): void {
    this.isSplit = true
    this.given.clear()
  }
}

/** The batches of one console. The oldest is forgotten, and asked again, when there are too many. */
export class Batches {
  private readonly batches = new Map<string, Batch>()

  of({ id }: BatchPlace): Batch {
    const found = this.batches.get(id) ?? new Batch()
    this.batches.delete(id)
    this.batches.set(id, found)
    for (const oldest of this.batches.keys()) {
      if (this.batches.size <= most) break
      this.batches.delete(oldest)
    }
    return found
  }
}

// -----------------------------------------------------------------------------------------------------------------
// rendering
// -----------------------------------------------------------------------------------------------------------------

export const itemOf = ({ index, interaction }: Upcoming): Item => ({ index, interaction, form: formOf(interaction) })

/** How many of them there is room for, a row each; fewer than two need no dialog of their own. */
export const fitting = (items: ReadonlyArray<Item>, { rows }: Look): ReadonlyArray<Item> =>
  items.slice(0, Math.max(0, rows - around))

/**
 * The dialog of these, of which the first is open. Each is shown whole as long as there is room, else in a row.
 */
export const render = (
  request: InteractionRequest,
  items: ReadonlyArray<Item>,
  batch: Batch,
  look: Look
): {
  readonly title: string
  readonly lines: ReadonlyArray<string>
  /** Those that are shown whole. */
  readonly whole: ReadonlyArray<Item>
} => {
  const chip = Display.oneLine(Origin.chip(request))
  const tool = Display.oneLine(items[0]?.interaction.tool ?? "")
  const title = `Allow ${items.length} calls of ${tool}?`
  let room = look.rows - around - items.length
  const shown: Array<Item> = []
  const lines = items.flatMap((item) => {
    const { isShort, lines } = ConsoleCall.make(item.interaction, look)
    const [first = "", ...others] = lines
    const whole = [numbered(item, first, items), ...others.map((line) => `   ${line}`)]
    const height = whole.reduce((sum, line) => sum + Display.wrapBelow(line, widthOf(look)).length, 0)
    if (isShort || height - 1 > room) return [brief(item, items, batch, look)]
    room -= height - 1
    shown.push(item)
    return whole
  })
  return {
    title: chip === "" ? title : `${chip} ${title}`,
    lines: [...lines, ...legend(items, batch, look)],
    whole: shown
  }
}

/** The same again after something was answered or looked at: a row each. */
export const renderAgain = (items: ReadonlyArray<Item>, batch: Batch, look: Look): ReadonlyArray<string> => [
  ...items.map((item) => brief(item, items, batch, look)),
  ...legend(items, batch, look)
]

/** All of one of them. */
export const renderWhole = (item: Item, items: ReadonlyArray<Item>, look: Look): ReadonlyArray<string> => {
  const [first = "", ...others] = ConsoleCall.make(item.interaction, { ...look, whole: true }).whole()
  return [numbered(item, first, items), ...others]
}

export const help: ReadonlyArray<string> = [
  "[y]es       allow all that are listed and have no answer, each this once",
  "[n]o        deny all that are listed and have no answer",
  "2 y, 2 n    an answer for number 2 alone",
  "2 c: words  deny number 2, and tell the agent why",
  "2 e         edit the arguments of number 2",
  "2           show all of number 2; v shows all that is not shown whole",
  "[s]ingly    a dialog for each, with all options; answers given here are forgotten",
  "turn, idle, all  allow every call from now on: until the turn ends, the agent is idle, the session ends"
]

/** The keys that answer by themselves. */
export const keys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["y", ["yes"]],
  ["n", ["no", "never"]],
  ["s", ["singly"]],
  ["v", ["view"]],
  ["m", ["more"]]
])

/** What is said in place of a dialog, when the answer was given before. */
export const told = (
  { batch, interaction }: InteractionRequest<Approve>,
  answer: ApproveAnswer,
  signs: Glyphs.Glyphs
): string => {
  const what = Display.oneLine(interaction.display?.summary ?? interaction.argumentsSummary, 100)
  return `${batch?.index ?? 1}. ${Display.oneLine(interaction.tool)}: ${what}${signs.between}${wordOf(answer)}, as you said`
}

// -----------------------------------------------------------------------------------------------------------------
// parsing
// -----------------------------------------------------------------------------------------------------------------

/** What a typed line means. All of them are allowed only after each was seen whole. */
export const parse = (line: string, items: ReadonlyArray<Item>, batch: Batch): Typed => {
  const text = line.trim()
  const word = text.toLowerCase()
  const numbered = /^(\d+)\s*[.:)]?\s*([^]*)$/.exec(text)
  if (numbered !== null) {
    const item = items.find(({ index }) => index === Number(numbered[1]))
    const words = (numbered[2] ?? "").trim()
    if (item === undefined) return Again({ reason: `Here are ${listed(items)}.` })
    return words === "" ? View({ items: [item] }) : One({ item, words })
  }
  if (/^(?:y|yes|once)$/.test(word)) {
    const unseen = items.filter((item) => batch.answerTo(item) === undefined && !batch.hasSeen(item))
    return unseen.length === 0
      ? All({ answer: { decision: "allow", scope: "once" } })
      : Again({
          reason: `You have not seen all of ${listed(unseen)}: ${unseen[0]?.index} shows that one, v shows them all.`
        })
  }
  if (/^(?:n|no)$/.test(word)) return All({ answer: { decision: "deny", scope: "once" } })
  if (/^(?:s|singly|single)$/.test(word)) return Singly()
  if (/^(?:m|more|\?|help)$/.test(word)) return Help()
  if (/^(?:v|view)$/.test(word)) {
    const unseen = items.filter((item) => !batch.hasSeen(item))
    return View({ items: unseen.length === 0 ? items : unseen })
  }
  if (/^(?:t|turn|i|idle|all)$/.test(word)) return Lasting({ words: word })
  const said = /^(?:n|no)\b/.test(word) ? PermissionOption.read(text, { editable: false }) : undefined
  if (said !== undefined && Either.isRight(said) && said.right._tag === "Answer") return All(said.right)
  if (said !== undefined && Either.isLeft(said) && said.left !== undefined) return Again({ reason: said.left })
  const example = items[0]?.index ?? 1
  return Again({
    reason: /^(?:a|always|p|project|never|e|edit|c|comment)$|^(?:c|comment):/.test(word)
      ? `That answer is for one call. Put its number before it, as in ${example} ${word.startsWith("c") ? "c: why not" : word}.`
      : `Please type yes, no, singly, or a number with an answer, such as ${example} n.`
  })
}

/** Why this answer to one of them cannot be taken; nothing where it can. */
export const refusal = (
  item: Item,
  answer: ApproveAnswer,
  items: ReadonlyArray<Item>,
  batch: Batch
): string | undefined => {
  const isFirst = item === items[0]
  if (answer.decision === "allow" && !batch.hasSeen(item)) return unseen(item)
  if (answer.decision === "edit" || answer.scope === "once") return undefined
  if (!isFirst) return `An answer that lasts goes to the first call, or singly: ${items[0]?.index ?? 1}, or s.`
  return lastingRefusal(item, batch)
}

/** Why no answer that lasts can be taken: it is said to the first, and would answer others a second time. */
export const lastingRefusal = (first: Item, batch: Batch): string | undefined => {
  const { answered } = batch
  if (answered.length > 0) {
    return `You have answered ${answered.join(", ")} already, and that would answer it once more. Answer each with yes or no, or type s to begin again.`
  }
  return batch.hasSeen(first) ? undefined : unseen(first)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** How many batches a console remembers. */
const most = 64

/** Rows for the title, the legend and what may be wrong. */
const around = 5

const unseen = ({ index }: Item): string => `You have not seen all of ${index}: ${index} shows it.`

const widthOf = ({ columns }: Look): number => Math.max(1, columns - 2)

const formOf = (interaction: Approve): string => Digest.digest(interaction)

const numbered = ({ index }: Item, text: string, items: ReadonlyArray<Item>): string => {
  const width = String(items[items.length - 1]?.index ?? index).length
  return `${String(index).padStart(width)}. ${text}`
}

const brief = (item: Item, items: ReadonlyArray<Item>, batch: Batch, look: Look): string => {
  const { display, argumentsSummary } = item.interaction
  const answer = batch.answerTo(item)
  const said = answer !== undefined ? wordOf(answer) : batch.hasSeen(item) ? "" : "not shown whole"
  const note = said === "" ? "" : look.signs.between + said
  const row = numbered(item, Display.oneLine(display?.summary ?? argumentsSummary), items)
  const style = Display.style(look.color)
  const marked = answer !== undefined || batch.hasSeen(item) ? style.bold : style.yellow
  return Display.truncate(row, Math.max(1, widthOf(look) - Display.width(note))) + (note === "" ? "" : marked(note))
}

const legend = (items: ReadonlyArray<Item>, batch: Batch, { color }: Look): ReadonlyArray<string> => {
  const style = Display.style(color)
  const open = items.filter((item) => batch.answerTo(item) === undefined)
  const example = (items[1] ?? items[0])?.index ?? 1
  return [
    style.cyan(
      `[y]es to ${open.length === items.length ? "all" : "the other"} ${open.length}  [n]o to them  [s]ingly  [m]ore`
    ),
    style.cyan(`${example} y, ${example} n for one alone; ${example} shows it`)
  ]
}

const listed = (items: ReadonlyArray<Item>): string => items.map(({ index }) => index).join(", ")

const wordOf = (answer: ApproveAnswer): string => {
  if (answer.decision === "edit") return "edited"
  return answer.decision === "allow" ? "yes" : "no"
}
