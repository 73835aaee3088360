/**
 * The elements inside of a response, written and read.
 *
 * | kind | elements |
 * |---|---|
 * | `Approve` | `<decision>`, with `<comment>` for a denial, with `<edited_arguments>` for an edit |
 * | `grantStageTool`, `approveSubagentEnvelope` | `<outcome>`, and `<note>` |
 * | `Clarify` | `<answer index="…">` for each question that is answered |
 * | `Ask`, `Select`, `Confirm`, `Auth.DeviceCode` | `<answer>` |
 *
 * Any of them may be `<cancelled/>` instead. There is none for a password.
 */
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Interaction from "./Interaction.js"
import * as PermissionOption from "./PermissionOption.js"
import * as Question from "./Question.js"
import * as TypedAnswer from "./TypedAnswer.js"
import * as XmlElement from "./XmlElement.js"

/** Why a reply is not an answer. */
export interface Unreadable {
  /** A sentence that says what is wrong. */
  readonly reason: string
  /** True when nothing is wrong: the reply withdraws the request. */
  readonly cancelled: boolean
}

type AnyAnswer = Interaction.Answer<Interaction.Interaction>
type Fields = ReadonlyArray<XmlElement.XmlElement>
type Read<A> = Either.Either<A, Unreadable>

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Something is wrong with the reply. */
export const because = (reason: string): Unreadable => ({ reason, cancelled: false })

export const unreadable = (reason: string): Read<never> => Either.left(because(reason))

/** The reply withdraws the request. */
export const withdrawn = (by?: string): Unreadable => ({
  reason: by === undefined ? "The request was withdrawn." : `The request was withdrawn by ${by}.`,
  cancelled: true
})

/** The elements that say this answer; nothing for a password, and for edited arguments that are not JSON. */
export const make = <I extends Interaction.Interaction>(
  interaction: I,
  answer: Interaction.Answer<I>
): Option.Option<Fields> =>
  // The case is chosen by the interaction's own tag, which decides what its answer is.
  writers[interaction._tag](answer as never)

/** Reads what is inside of a response of the interaction's own kind. */
export const read = (interaction: Interaction.Interaction, body: XmlElement.XmlElement): Read<AnyAnswer> => {
  const [only] = body.children
  if (only !== undefined && only.name === "cancelled" && body.children.length === 1) {
    return XmlElement.isBlank(body) && XmlElement.isBlank(only) && only.children.length === 0
      ? Either.left(withdrawn())
      : unreadable("<cancelled/> must be empty, and alone.")
  }
  switch (interaction._tag) {
    case "Approve":
      return Either.flatMap(fieldsOf(body, approveFields), (fields) => readApprove(interaction, fields))
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return Either.flatMap(fieldsOf(body, outcomeFields), (fields) => readOutcome(interaction, fields))
    case "Clarify":
      return readClarify(interaction.questions, body)
    case "Ask":
      return Either.flatMap(fieldsOf(body, answerField), (fields) => required(fields, "answer"))
    case "Select":
    case "Confirm":
    case "Auth.DeviceCode":
      return Either.flatMap(fieldsOf(body, answerField), (fields) => readTyped(interaction, fields))
    case "Auth.Password":
      return unreadable("A password is never sent as text.")
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal: writing
// -----------------------------------------------------------------------------------------------------------------

const field = (name: string, text: string): XmlElement.XmlElement => XmlElement.make(name, {}, text)
const optional = (name: string, text: string | undefined): Fields => (text === undefined ? [] : [field(name, text)])
const one = (text: string): Option.Option<Fields> => Option.some([field("answer", text)])

const writeOutcome = (answer: { readonly outcome: string; readonly note?: string | undefined }) =>
  Option.some([field("outcome", answer.outcome), ...optional("note", answer.note)])

const writers: {
  readonly [K in Interaction.Kind]: (answer: Interaction.Answer<Interaction.Interaction<K>>) => Option.Option<Fields>
} = {
  Approve: (answer) => {
    switch (answer.decision) {
      case "allow":
        return Option.some([field("decision", allowWords[answer.scope])])
      case "deny":
        return Option.some([
          field("decision", answer.scope === "once" ? "no" : "never"),
          ...optional("comment", answer.comment)
        ])
      case "edit":
        return Option.map(json(answer.editedArguments), (text) => [
          field("decision", "edit"),
          field("edited_arguments", text)
        ])
    }
  },
  grantStageTool: writeOutcome,
  approveSubagentEnvelope: writeOutcome,
  Clarify: (answers) =>
    Option.some(
      Object.entries(answers).flatMap(([number, answer]) => {
        const text = answerText(answer)
        return text === "" ? [] : [XmlElement.make("answer", { index: number }, text)]
      })
    ),
  Ask: one,
  Select: (index) => one(String(index + 1)),
  Confirm: (yes) => one(yes ? "yes" : "no"),
  "Auth.DeviceCode": one,
  "Auth.Password": () => Option.none()
}

const allowWords: { readonly [S in Interaction.AllowScope]: string } = {
  once: "yes",
  turn: "turn",
  idle: "idle",
  session: "always",
  all: "all"
}

/** Choices go by number: two of them may have the same text, or one the text of another's number. */
const answerText = (answer: Question.QuestionAnswer): string => {
  if ("skipped" in answer) return ""
  return "value" in answer ? answer.value : String(answer.selected)
}

/** JSON with the two characters escaped that it leaves as they are and XML cannot hold; nothing for what it cannot say. */
const json = (value: unknown): Option.Option<string> =>
  Option.liftThrowable(JSON.stringify)(value).pipe(
    Option.filter((text) => typeof text === "string"),
    Option.map((text) => text.replace(/[\uFFFE\uFFFF]/g, (character) => `\\u${character.charCodeAt(0).toString(16)}`))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal: reading
// -----------------------------------------------------------------------------------------------------------------

const approveFields: ReadonlySet<string> = new Set(["decision", "comment", "edited_arguments"])
const outcomeFields: ReadonlySet<string> = new Set(["outcome", "note"])
const answerField: ReadonlySet<string> = new Set(["answer"])

type Texts = ReadonlyMap<string, string>

/** The texts of the elements inside, each at most once and none but those named. */
const fieldsOf = (body: XmlElement.XmlElement, names: ReadonlySet<string>): Read<Texts> => {
  if (!XmlElement.isBlank(body)) return unreadable(`There is text beside the elements in <${body.name}>.`)
  const texts = new Map<string, string>()
  for (const { children, name, text } of body.children) {
    if (!names.has(name)) return unreadable(`<${brief(name)}> does not belong into <${body.name}>.`)
    if (texts.has(name)) return unreadable(`<${name}> is there twice.`)
    if (children.length > 0) return unreadable(`<${name}> must hold text only.`)
    texts.set(name, text)
  }
  return Either.right(texts)
}

const required = (fields: Texts, name: string): Read<string> =>
  Either.fromNullable(fields.get(name), () => because(`<${name}> is missing.`))

const readApprove = (interaction: Interaction.Approve, fields: Texts): Read<Interaction.ApproveAnswer> => {
  const comment = fields.get("comment")
  const edited = fields.get("edited_arguments")
  const editable = interaction.editable !== undefined
  const ofTyped = PermissionOption.match({
    Answer: ({ answer }): Read<Interaction.ApproveAnswer> => {
      if (edited !== undefined) return unreadable("<edited_arguments> belongs to the decision edit.")
      if (comment === undefined) return Either.right(answer)
      return answer.decision === "deny" && answer.comment === undefined
        ? Either.right({ ...answer, comment })
        : unreadable("<comment> belongs to a denial.")
    },
    NeedsComment: (): Read<Interaction.ApproveAnswer> => {
      if (edited !== undefined) return unreadable("<edited_arguments> belongs to the decision edit.")
      return comment === undefined || comment.trim() === ""
        ? unreadable("The decision comment needs a <comment>.")
        : Either.right({ decision: "deny", scope: "once", comment })
    },
    NeedsEdit: (): Read<Interaction.ApproveAnswer> => {
      if (comment !== undefined) return unreadable("<comment> belongs to a denial.")
      return edited === undefined
        ? unreadable("The decision edit needs <edited_arguments>.")
        : readEdit(interaction, edited)
    }
  })
  return Either.flatMap(required(fields, "decision"), (decision) =>
    Option.match(PermissionOption.parse(decision, { editable }), {
      onNone: () => unreadable(`${JSON.stringify(brief(decision))} is not an option of this request.`),
      onSome: ofTyped
    })
  )
}

const readEdit = (interaction: Interaction.Approve, text: string): Read<Interaction.ApproveAnswer> => {
  const parsed = Either.try((): unknown => JSON.parse(text))
  if (Either.isLeft(parsed) || typeof parsed.right !== "object" || parsed.right === null) {
    return unreadable("<edited_arguments> must hold a JSON object.")
  }
  // A record that is copied member by member would lose this one, and with it the reason to refuse it.
  if (Object.hasOwn(parsed.right, "__proto__")) return unreadable("An argument cannot be named __proto__.")
  return Either.mapLeft(TypedAnswer.decode(interaction, { decision: "edit", editedArguments: parsed.right }), because)
}

const readOutcome = (
  interaction: Interaction.GrantStageTool | Interaction.ApproveSubagentEnvelope,
  fields: Texts
): Read<Interaction.Answer<Interaction.GrantStageTool | Interaction.ApproveSubagentEnvelope>> => {
  const note = fields.get("note")
  return Either.flatMap(required(fields, "outcome"), (outcome) =>
    Either.flatMap(Either.mapLeft(TypedAnswer.parse(interaction, outcome), because), (answer) => {
      if (note === undefined) return Either.right(answer)
      return answer.note === undefined ? Either.right({ ...answer, note }) : unreadable("There are two notes.")
    })
  )
}

const readTyped = (
  interaction: Interaction.Select | Interaction.Confirm | Interaction.AuthDeviceCode,
  fields: Texts
): Read<AnyAnswer> =>
  Either.flatMap(required(fields, "answer"), (text): Read<AnyAnswer> => {
    if (TypedAnswer.isCancel(interaction, text)) return Either.left(withdrawn())
    // To a person an empty line means the default; whoever writes an element has said nothing.
    if (text.trim() === "") return unreadable("<answer> is empty.")
    return Either.mapLeft(TypedAnswer.parse(interaction, text), because)
  })

const readClarify = (
  questions: ReadonlyArray<Question.Question>,
  body: XmlElement.XmlElement
): Read<Question.ClarifyAnswers> => {
  if (!XmlElement.isBlank(body)) {
    return body.children.length === 0 && Question.isCancel(body.text)
      ? Either.left(withdrawn())
      : unreadable("There is text beside the answers.")
  }
  const texts = new Map<string, string>()
  for (const { attributes, children, name, text } of body.children) {
    if (name !== "answer") return unreadable(`<${brief(name)}> does not belong into <${body.name}>.`)
    if (children.length > 0) return unreadable("<answer> must hold text only.")
    const index = attributes.get("index")
    if (index === undefined) return unreadable("An <answer> has no index.")
    if (!/^[1-9][0-9]*$/.test(index) || Number(index) > questions.length) {
      return unreadable(`There is no question ${JSON.stringify(brief(index))}; the last is ${questions.length}.`)
    }
    if (texts.has(index)) return unreadable(`Question ${index} is answered twice.`)
    texts.set(index, text)
  }
  const answers: Record<string, Question.QuestionAnswer> = {}
  const problems: Array<string> = []
  for (const [position, question] of questions.entries()) {
    const number = String(position + 1)
    const text = texts.get(number)
    if (text !== undefined && cancels(question, text)) return Either.left(withdrawn())
    Either.match(answerTo(question, text), {
      onLeft: (reason) => problems.push(`Question ${number}: ${reason}`),
      onRight: (answer) => {
        answers[number] = answer
      }
    })
  }
  return problems.length === 0 ? Either.right(answers) : unreadable(problems.join(" "))
}

/** A default stands in for an answer without content, not for one that is not there. */
const answerTo = (
  question: Question.Question,
  text: string | undefined
): Either.Either<Question.QuestionAnswer, string> => {
  if (text === undefined)
    return question.required ? Either.left("an answer is required.") : Either.right({ skipped: true })
  return question.question_type === "free_text" && text.trim() !== ""
    ? Either.right({ value: text })
    : Question.parse(question, text)
}

const cancels = (question: Question.Question, text: string): boolean =>
  question.question_type !== "free_text" && Question.isCancel(text) && !question.choices.some(Question.isCancel)

const brief = (text: string): string => (text.length <= 60 ? text : `${text.slice(0, 59)}…`)
