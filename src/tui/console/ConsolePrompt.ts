/**
 * How each kind of interaction looks on a console, and what a typed line means there. All pure.
 *
 * Text by models, tools or other people is shown with its control characters revealed, and below the title, so it can
 * neither hide what will run nor pass for a prompt of ours. The asker comes first: `[subagent:code_reviewer] Allow
 * run_command?`.
 */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as UntrustedJson from "../../core/UntrustedJson.js"
import * as Origin from "../../core/Origin.js"
import * as Redaction from "../../core/Redaction.js"
import * as AnswerWords from "../../interaction/AnswerWords.js"
import * as Field from "../../interaction/Field.js"
import type { Answer, Approve, ApproveAnswer, ApproveOption, Interaction } from "../../interaction/Interaction.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as NeedText from "../../interaction/NeedText.js"
import * as PermissionOption from "../../interaction/PermissionOption.js"
import type { Question, QuestionAnswer } from "../../interaction/Question.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"
import * as Display from "../terminal/Display.js"
import * as Menu from "../terminal/Menu.js"
import * as ConsoleCall from "./ConsoleCall.js"

/** A dialog that is ready to be drawn. */
export interface Prompt {
  /** One line that begins with the asker. */
  readonly title: string
  readonly lines: ReadonlyArray<string>
  /** The text before the answer. */
  readonly label: string
  /** Of the lines those that say how to answer. */
  readonly options: ReadonlyArray<string>
  /** Shown when an answer was not understood. */
  readonly help: ReadonlyArray<string>
  /** Keys that answer by themselves, with the words that they stand for. */
  readonly keys: ReadonlyMap<string, ReadonlyArray<string>>
  /** What can be taken by arrows, where choices do not stand among the lines. */
  readonly menu?: Menu.Menu
  /** The whole text, where `lines` leave something of it out, or cannot be seen at once. */
  readonly whole?: () => ReadonlyArray<string>
}

/** What a typed line means. */
export type Parsed<A> = Data.TaggedEnum<{
  readonly Answered: { readonly answer: A }
  /** Not understood; the reason says what to type instead. */
  readonly Again: { readonly reason: string }
  /** The request is withdrawn. */
  readonly Cancelled: {}
  /** Deny, with words for the agent that are still to be typed. */
  readonly NeedsComment: {}
  /** The arguments are to be edited. */
  readonly NeedsEdit: {}
  /** The person wants to see the whole text. */
  readonly NeedsView: {}
  /** The person wants to see all options. */
  readonly NeedsHelp: {}
  /** The call is to be allowed in this workspace from now on. */
  readonly NeedsProject: {}
}>
interface ParsedDefinition extends Data.TaggedEnum.WithGenerics<1> {
  readonly taggedEnum: Parsed<this["A"]>
}
export const {
  Answered,
  Again,
  Cancelled,
  NeedsComment,
  NeedsEdit,
  NeedsView,
  NeedsHelp,
  NeedsProject,
  $match: match
} = Data.taggedEnum<ParsedDefinition>()

export interface Options extends ConsoleCall.Look {
  /** Milliseconds since the epoch; used to say how long a code is valid. */
  readonly now: number
  /** Shows the usual options of a permission first, and the others behind a key. Default: all at once. */
  readonly grouped?: boolean | undefined
  /** Whether a call can be allowed in this workspace from now on. Default: false. */
  readonly project?: boolean | undefined
  /** Whether choices have a menu, and do not stand among the lines. Default: false. */
  readonly menus?: boolean | undefined
  /** Whether a dialog of these can be seen at once. Default: all can. */
  readonly fits?: ((title: string, lines: ReadonlyArray<string>) => boolean) | undefined
}

/** The parameters of a call that may be edited. */
export type Editable = NonNullable<Approve["editable"]>

// -----------------------------------------------------------------------------------------------------------------
// rendering
// -----------------------------------------------------------------------------------------------------------------

/**
 * The dialog of a request. For a `Clarify` only title and context: {@link renderQuestion} renders the questions; for an
 * `Elicit` only what stands above its fields.
 */
export const render = (request: InteractionRequest, options: Options): Prompt => {
  const style = Display.style(options.color)
  const { interaction } = request
  const chip = Display.oneLine(Origin.chip(request))
  const prompt = (
    title: string,
    lines: ReadonlyArray<string>,
    label: string,
    keys: ReadonlyMap<string, ReadonlyArray<string>> = noKeys
  ) => ({ title: chip === "" ? title : `${chip} ${title}`, lines, label, options: noLines, help: noLines, keys })
  switch (interaction._tag) {
    case "Approve": {
      const { isShort, lines: body, whole } = ConsoleCall.make(interaction, options)
      const kept = ConsoleCall.remembered(style, interaction, !isShort)
      const offering = (words: ReadonlyArray<ApproveOption>): Prompt => {
        const first = options.grouped === true ? usual(words) : words
        const choice = [style.cyan(first.map(optionWord).join(" ")), ...kept]
        return {
          ...prompt(
            `Allow ${Display.oneLine(interaction.tool)}?`,
            [...agreement(style, interaction), ...body, ...choice],
            "answer> ",
            keysOf(first.length < words.length ? [...words, helpOption] : words)
          ),
          options: choice,
          help: helpOf(style, words)
        }
      }
      const words = optionsOf(interaction, options)
      const all = offering(words)
      return isShort || options.fits?.(all.title, all.lines) === false
        ? { ...offering([...words, viewOption]), whole }
        : all
    }
    case "grantStageTool":
      return prompt(
        `Let this stage use ${Display.oneLine(interaction.tool)} once?`,
        [
          Display.oneLine(interaction.argsSummary),
          ...(interaction.reason === undefined ? [] : [`reason: ${Display.reveal(interaction.reason)}`]),
          style.dim(`stage ${Display.oneLine(interaction.stageExecutionId)}, attempt ${interaction.attempt + 1}`),
          style.cyan("[y] approve  [n] deny  [d] defer; a note may follow a colon")
        ],
        "answer> ",
        grantKeys
      )
    case "approveSubagentEnvelope":
      return prompt(
        `Let subagent ${Display.oneLine(interaction.subagentId)} use these tools without asking?`,
        [
          ...interaction.requestedEnvelope.map((tool) => `- ${Display.oneLine(tool)}`),
          `task: ${Display.reveal(interaction.promptSummary)}`,
          style.dim(`model: ${Display.oneLine(`${interaction.model.providerId}/${interaction.model.modelId}`)}`),
          style.dim(levels(interaction.depth)),
          style.cyan("[y] approve  [n] deny; a note may follow a colon")
        ],
        "answer> ",
        yesNo
      )
    case "Clarify":
      return prompt("Please clarify", foreign(interaction.context), "answer> ")
    case "Ask":
      return prompt("A question", foreign(interaction.prompt), "answer> ")
    case "Select": {
      const { menus = false } = options
      const select = prompt(
        "A choice",
        [...foreign(interaction.prompt), ...(menus ? [] : Menu.numbered({ labels: interaction.options }, style))],
        `1-${interaction.options.length}> `,
        numberKeys(interaction.options.length)
      )
      return menus ? { ...select, menu: { labels: interaction.options } } : select
    }
    case "Confirm":
      return prompt("Yes or no?", foreign(interaction.prompt), interaction.default ? "Y/n> " : "y/N> ", yesNo)
    case "Elicit":
      return prompt(
        "Please fill in",
        [
          ...foreign(interaction.title),
          ...Field.problemsAt(interaction.problems ?? [], undefined).flatMap((problem) =>
            foreign(problem).map((line) => style.yellow(line))
          )
        ],
        "answer> "
      )
    case "Auth.DeviceCode":
      return prompt(
        "Please sign in",
        [
          `open ${Display.oneLine(interaction.url)}`,
          `and enter the code ${style.bold(Display.oneLine(interaction.code))}`,
          style.dim(expiry(interaction.expiresAt - options.now))
        ],
        "Enter when done> "
      )
    case "Auth.Password":
      return prompt("A password is needed", foreign(interaction.prompt), "password (not shown)> ")
  }
}

/** One question of a form: `number` is 1-based. */
export const renderQuestion = (
  question: Question,
  number: number,
  total: number,
  { color, menus = false }: Pick<Options, "color" | "menus">,
  /** What an empty line means, because it was answered so before. */
  earlier?: QuestionAnswer
): ReadonlyArray<string> => {
  const style = Display.style(color)
  const stands = earlier === undefined ? "" : `; nothing for ${earlierWords(earlier)}`
  const hint = {
    free_text: question.required || stands !== "" ? "type an answer" : "type an answer, or nothing to skip",
    single_choice: `${menus ? "arrows and Enter, or " : ""}type a number or a choice`,
    multiple_choice: `${menus ? "arrows, space and Enter, or " : ""}type numbers or choices, separated by commas`
  }[question.question_type]
  return [
    style.bold(`Question ${number}/${total} [${question.required ? "required" : "optional"}]`),
    ...foreign(question.text),
    ...(menus ? [] : Menu.numbered({ labels: question.choices, preset: question.default_choice }, style)),
    style.dim(`${hint}${stands}${number > 1 ? "; back to the one before" : ""}; cancel ends all questions`)
  ]
}

/** What can be taken by arrows at one question of a form. */
export const questionMenu = (
  { choices, default_choice, question_type }: Question,
  earlier?: QuestionAnswer
): Menu.Menu | undefined =>
  question_type === "free_text"
    ? undefined
    : {
        labels: choices,
        preset: default_choice,
        several: question_type === "multiple_choice",
        before: earlier !== undefined && "selected" in earlier ? [earlier.selected].flat() : []
      }

/** The keys that answer one question of a form by themselves. */
export const questionKeys = ({ choices, question_type }: Question): ReadonlyMap<string, ReadonlyArray<string>> =>
  question_type === "single_choice" ? numberKeys(choices.length) : noKeys

/** What is asked before a rule is kept for a workspace. */
export const projectQuestion = (interaction: Approve): ReadonlyArray<string> => [
  "In this workspace, in every session from now on, this is allowed without a question:",
  `  ${Display.oneLine(ConsoleCall.rule(interaction, "allow"))}`,
  "/permissions shows it and takes it back."
]

/** The text in which a person edits a call's arguments: a lone text as it is, anything else as JSON. */
export const editText = (editable: Editable): string => {
  const name = plainParameter(editable)
  if (name !== undefined) return String(editable.current[name] ?? "")
  return JSON.stringify(pick(editable.current, editable.parameters), null, 2)
}

// -----------------------------------------------------------------------------------------------------------------
// parsing
// -----------------------------------------------------------------------------------------------------------------

/** What a dialog offers beside the options of its request. */
interface Offered extends Pick<Options, "project"> {
  /** Whether the whole text can be seen. Default: false. */
  readonly view?: boolean | undefined
}

/** What a line typed at the dialog of `interaction` means. Only the exact words allow anything. */
export const parse = <I extends Interaction>(
  interaction: I,
  line: string,
  options: Offered = {}
): Parsed<Answer<I>> => {
  if (interaction._tag === "Approve") {
    // The parser fits the interaction's own tag, which the type system cannot follow back to I.
    return parseApprove(interaction, line, options) as Parsed<Answer<I>>
  }
  if (TypedAnswer.isCancel(interaction, line)) return Cancelled()
  const typed = interaction._tag === "Auth.DeviceCode" && line.trim() === "" ? "done" : line
  return Either.match(TypedAnswer.parse(interaction, typed), {
    onLeft: (reason): Parsed<Answer<I>> => Again({ reason }),
    onRight: (answer) => Answered({ answer })
  })
}

/** Parses the edited text into arguments; a left says what is wrong with it. */
export const parseEdit = (
  editable: Editable,
  text: string
): Either.Either<{ readonly [name: string]: unknown }, string> => {
  const name = plainParameter(editable)
  if (name !== undefined) return Either.right({ [name]: text })
  return Either.flatMap(
    Either.mapLeft(UntrustedJson.parse(text), (refused) => `That ${refused.message}.`),
    (value) => {
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        return Either.left(`Please give a JSON object with ${editable.parameters.join(", ")}.`)
      }
      const foreign = Object.keys(value).filter((key) => !editable.parameters.includes(key))
      return foreign.length === 0
        ? Either.right({ ...value })
        : Either.left(`These arguments cannot be edited: ${Display.oneLine(foreign.join(", "), 100)}.`)
    }
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const projectOption: ApproveOption = {
  short: "p",
  full: "project",
  description: "allow in this workspace, in every session from now on"
}
const helpOption: ApproveOption = { short: "m", full: "more", description: "all options" }

const isForProject = ({ approvalKey, options }: Approve, { project }: Pick<Options, "project">): boolean =>
  project === true && approvalKey !== "" && isPublic(approvalKey) && options.some(({ full }) => full === "always")

/** A rule that is kept holds no secret, and no mask: that would make it another rule. */
const isPublic = (key: string): boolean => !Redaction.isMasked(key) && Redaction.shapesOnly.text(key) === key

const optionsOf = (interaction: Approve, options: Pick<Options, "project">): ReadonlyArray<ApproveOption> =>
  isForProject(interaction, options)
    ? interaction.options.flatMap((option) => (option.full === "always" ? [option, projectOption] : [option]))
    : interaction.options

/** The four that are wanted most, of those there are, and the way to the others. */
const usual = (words: ReadonlyArray<ApproveOption>): ReadonlyArray<ApproveOption> => {
  const first = usualWords.flatMap((full) => words.filter((option) => option.full === full)).slice(0, 4)
  const view = words.filter((option) => option === viewOption)
  return words.length - view.length <= first.length + 1 ? words : [...first, ...view, helpOption]
}
const usualWords = ["yes", "no", "always", "comment", "edit"]

const noLines: ReadonlyArray<string> = []
const noKeys: ReadonlyMap<string, ReadonlyArray<string>> = new Map()
const yesNo = new Map([
  ["y", ["yes"]],
  ["n", ["no"]]
])
const grantKeys = new Map([...yesNo, ["d", ["defer"]] as const])

/** Each short form, with all the words that begin with it: those of other options must be typed to their end. */
const keysOf = (options: ReadonlyArray<ApproveOption>): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    options.flatMap(({ short }) =>
      short === undefined
        ? []
        : [[short, options.map(({ full }) => full).filter((full) => full.startsWith(short))] as const]
    )
  )

/** Of two digits the first would be an answer. */
const numberKeys = (count: number): ReadonlyMap<string, ReadonlyArray<string>> =>
  count > 9 ? noKeys : new Map(Array.from({ length: count }, (_, index) => [String(index + 1), noLines] as const))

/** Whose agreement the call needs, and who has voted. */
const agreement = (style: Display.Style, { needs }: Approve): ReadonlyArray<string> => {
  if (needs === undefined) return []
  const votes = NeedText.describeVotes(needs.votes)
  const who = votes === undefined ? "" : `; ${votes}`
  return [style.yellow(`! ${Display.oneLine(`it ${NeedText.describeAll(needs.all)}${who}`)}`)]
}

/** All options in groups, each once, with what they do in a few words. */
const helpOf = (style: Display.Style, words: ReadonlyArray<ApproveOption>): ReadonlyArray<string> => {
  const isOffered = (full: string) => words.find((option) => option.full === full)
  const row = (option: ApproveOption, what: string) => `  ${optionWord(option).padEnd(10)} ${what}`
  const known = groups.flatMap(([about, rows]) => {
    const offered = rows.flatMap(([full, what]) => {
      const option = isOffered(full)
      return option === undefined ? [] : [row(option, what)]
    })
    return offered.length === 0 ? [] : [style.bold(about), ...offered]
  })
  const others = words.filter(
    ({ full }) => full !== "once" && !groups.some(([, rows]) => rows.some(([one]) => one === full))
  )
  return [...known, ...others.map((option) => row(option, option.description))]
}

/** What each option does, by how far it reaches. `once` is another word for `yes`. */
const groups: ReadonlyArray<readonly [about: string, rows: ReadonlyArray<readonly [full: string, what: string]>]> = [
  [
    "This call",
    [
      ["yes", "allow it once"],
      ["no", "deny it once; no, WORDS tells the agent why"],
      ["comment", "deny it and tell the agent why"],
      ["edit", "change its arguments first"],
      ["view", "show all of it"]
    ]
  ],
  [
    "Calls like this one: see the lines at `always` and `never`",
    [
      ["always", "allow it in this session"],
      ["project", "allow it in this workspace, in every session"],
      ["never", "deny it in this session"]
    ]
  ],
  [
    "Every call from now on",
    [
      ["turn", "allow until this turn ends"],
      ["idle", "allow until this agent has nothing left to do"],
      ["all", "allow, for all agents, until the session ends or /permissions resume"]
    ]
  ]
]

const viewOption: ApproveOption = { short: "v", full: "view", description: "show the whole request" }

const parseApprove = (interaction: Approve, line: string, options: Offered): Parsed<ApproveAnswer> => {
  if (/^(?:m|more|\?|help)$/i.test(line.trim())) return NeedsHelp()
  if (/^(?:p|project)$/i.test(line.trim()) && isForProject(interaction, options)) return NeedsProject()
  if (/^(?:v|view)$/i.test(line.trim()) && options.view === true) return NeedsView()
  const typed = PermissionOption.read(line, {
    editable: interaction.editable !== undefined,
    onceOnly: interaction.onceOnly
  })
  const [word] = /^\w+/.exec(line.trim().toLowerCase()) ?? []
  // A word that this request does not offer counts as not understood.
  const offered = interaction.options.some((option) => option.full === word || option.short === word)
  if (Either.isLeft(typed) || !offered) {
    const view = options.view === true ? [viewOption] : []
    const words = [...optionsOf(interaction, options), ...view].map((option) => option.short ?? option.full)
    const asked = Either.isLeft(typed) && offered ? typed.left : undefined
    const isSentence = /\s/.test(line.trim())
    return Again({ reason: asked ?? (isSentence ? AnswerWords.unclear : `Please type one of ${words.join(", ")}.`) })
  }
  return PermissionOption.match(typed.right, {
    Answer: ({ answer }): Parsed<ApproveAnswer> => Answered({ answer }),
    NeedsComment: () => NeedsComment(),
    NeedsEdit: () => NeedsEdit()
  })
}

const earlierWords = (answer: QuestionAnswer): string => {
  if ("skipped" in answer) return "no answer"
  if ("value" in answer) return Display.oneLine(answer.value, 60)
  return Display.oneLine("texts" in answer ? answer.texts.join(", ") : answer.text, 60)
}

const levels = (depth: number): string => `depth: ${depth}${depth > 1 ? " (a subagent of a subagent)" : ""}`

const foreign = (text: string): ReadonlyArray<string> => Display.reveal(text).split("\n")

/** Renders `[y]es` where the short form begins the full one. */
const optionWord = ({ short, full }: ApproveOption): string => {
  if (short === undefined) return full
  return full.startsWith(short) ? `[${short}]${full.slice(short.length)}` : `[${short}] ${full}`
}

const expiry = (left: number): string => {
  if (left <= 0) return "the code has expired"
  const seconds = Math.ceil(left / 1000)
  const minutes = Math.floor(seconds / 60)
  return `the code expires in ${minutes > 0 ? `${minutes} min ` : ""}${seconds % 60} s`
}

/** The one parameter that is edited as plain text. */
const plainParameter = ({ parameters, format, current }: Editable): string | undefined => {
  const [name, ...others] = parameters
  if (name === undefined || others.length > 0 || format !== "text") return undefined
  const value = current[name]
  return value === undefined || typeof value === "string" ? name : undefined
}

const pick = (
  values: { readonly [name: string]: unknown },
  names: ReadonlyArray<string>
): { readonly [name: string]: unknown } =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(values, name)).map((name) => [name, values[name]]))
