/**
 * An answer as a person types it, on one line. This is the only parser of such lines: consoles with dialogs of their
 * own, queues, files, webhooks and JSON peers all use it.
 *
 * | kind | what may be typed |
 * |---|---|
 * | `Approve` | an option, short or full (`y`, `never`, …); `c: words` and `no, words` deny and tell the agent why |
 * | `grantStageTool` | `approve`, `deny` or `defer` (`y`, `n`, `d`), a note after a colon: `approve: words`; also `no, words`, `yes, but words` |
 * | `approveSubagentEnvelope` | `approve` or `deny` (`y`, `n`), a note after a colon, or as above |
 * | `Clarify` | one question: its answer; several: one line each, or JSON `{"1": "…", "2": "…"}` |
 * | `Ask` | any text |
 * | `Select` | a number from 1, or an option's own text |
 * | `Confirm` | `y`, `yes`, `true`, `n`, `no`, `false`; nothing means the default |
 * | `Elicit` | one field: its value; several: one line each, or JSON `{"name": …}` |
 * | `Auth.DeviceCode` | `completed`, `done` or `y` |
 * | `Auth.Password` | the password |
 *
 * A line that is not understood gives a left: a sentence that says what to type. It never allows anything.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as AnswerWords from "./AnswerWords.js"
import * as Field from "./Field.js"
import * as Interaction from "./Interaction.js"
import * as PermissionOption from "./PermissionOption.js"
import * as Question from "./Question.js"

/**
 * The longest line that is read at all, in characters.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxLength = 1_000_000

/**
 * Parses a typed line as the answer to `interaction`. A left says what to type instead; it quotes nothing secret.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parse = <I extends Interaction.Interaction>(
  interaction: I,
  line: string
): Either.Either<Interaction.Answer<I>, string> => {
  if (line.length > maxLength) return Either.left(`That is too long; at most ${maxLength} characters are read.`)
  // Each case parses the kind it is named after, which the type system cannot follow back to I.
  return parseAny(interaction, line) as Either.Either<Interaction.Answer<I>, string>
}

/**
 * Whether the line withdraws the request instead of answering it: the word `cancel`, where it can mean nothing else. Check
 * it before {@link parse}. Never true for kinds that have a way to say no, nor for free text and passwords.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isCancel = (interaction: Interaction.Interaction, line: string): boolean => {
  switch (interaction._tag) {
    case "Clarify":
      // One of several lines may well be the word `cancel`. Only the whole text, or a whole answer, cancels the form.
      return Question.isCancel(line) || [...(jsonLines(line)?.values() ?? [])].some(Question.isCancel)
    case "Select":
      return Question.isCancel(line) && !interaction.options.some(Question.isCancel)
    case "Elicit":
      return Question.isCancel(line) && !isOnlyChoice(interaction.fields, line)
    case "Confirm":
    case "Auth.DeviceCode":
      return Question.isCancel(line)
    case "Approve":
    case "grantStageTool":
    case "approveSubagentEnvelope":
    case "Ask":
    case "Auth.Password":
      return false
  }
}

/**
 * Decodes an encoded answer. The reason in a left is short enough to be shown, and holds no part of a secret.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = <I extends Interaction.Interaction>(
  interaction: I,
  input: unknown
): Either.Either<Interaction.Answer<I>, string> => Interaction.decodeAnswer(interaction, input)

/**
 * A string is taken as typed by a person, anything else as an encoded answer: the rule of every JSON wire.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decodeOrParse = <I extends Interaction.Interaction>(
  interaction: I,
  input: unknown
): Either.Either<Interaction.Answer<I>, string> =>
  typeof input === "string" ? parse(interaction, input) : decode(interaction, input)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const parseAny = (
  interaction: Interaction.Interaction,
  line: string
): Either.Either<Interaction.Answer<Interaction.Interaction>, string> => {
  switch (interaction._tag) {
    case "Approve":
      return parseApprove(interaction, line)
    case "grantStageTool":
      return parseOutcome(line, grantWords, "Please type approve, deny or defer; a note may follow a colon.")
    case "approveSubagentEnvelope":
      return parseOutcome(line, envelopeWords, "Please type approve or deny; a note may follow a colon.")
    case "Clarify":
      return parseClarify(interaction.questions, line)
    case "Ask":
      return Either.right(withoutLineEnd(line))
    case "Select":
      return Either.map(parseChoice(interaction.options, line), (number) => number - 1)
    case "Confirm": {
      const word = line.trim().toLowerCase()
      if (word === "") return Either.right(interaction.default)
      const answer = Field.booleans.get(word)
      if (answer !== undefined) return Either.right(answer)
      const isAnswer = Field.booleans.has(AnswerWords.split(word)?.answer ?? "")
      return Either.left(
        isAnswer ? "Please type yes or no alone. This question takes no words." : "Please type yes or no."
      )
    }
    case "Elicit":
      return parseElicit(interaction.fields, line)
    case "Auth.DeviceCode":
      return deviceWords.has(line.trim().toLowerCase())
        ? Either.right("completed")
        : Either.left("Please type done once you have signed in.")
    case "Auth.Password": {
      const password = withoutLineEnd(line)
      return password === "" ? Either.left("Please type the password.") : Either.right(Redacted.make(password))
    }
  }
}

const parseApprove = (
  interaction: Interaction.Approve,
  line: string
): Either.Either<Interaction.ApproveAnswer, string> => {
  const offer = { editable: interaction.editable !== undefined, onceOnly: interaction.onceOnly }
  return Either.match(PermissionOption.read(line, offer), {
    onLeft: (reason) => {
      const words = PermissionOption.offered(offer).map((option) => option.short ?? option.full)
      return Either.left(reason ?? `Please type one of ${words.join(", ")}.`)
    },
    onRight: PermissionOption.match({
      Answer: ({ answer }) => Either.right(answer),
      NeedsComment: () => Either.left("Please type the words too, as in c: use the other directory"),
      NeedsEdit: () =>
        Either.left('Please send the edited arguments as {"decision": "edit", "editedArguments": {"name": "value"}}.')
    })
  })
}

const grantWords: ReadonlyMap<string, "approve" | "deny" | "defer"> = new Map([
  ["approve", "approve"],
  ["y", "approve"],
  ["yes", "approve"],
  ["deny", "deny"],
  ["n", "deny"],
  ["no", "deny"],
  ["defer", "defer"],
  ["d", "defer"]
])

const envelopeWords: ReadonlyMap<string, "approve" | "deny"> = new Map([
  ["approve", "approve"],
  ["y", "approve"],
  ["yes", "approve"],
  ["deny", "deny"],
  ["n", "deny"],
  ["no", "deny"]
])

const deviceWords: ReadonlySet<string> = new Set(["completed", "done", "y"])

const parseOutcome = <Outcome extends string>(
  line: string,
  words: ReadonlyMap<string, Outcome>,
  otherwise: string
): Either.Either<{ readonly outcome: Outcome; readonly note?: string }, string> => {
  const alone = words.get(line.trim().toLowerCase())
  if (alone !== undefined) return Either.right({ outcome: alone })
  const said = AnswerWords.split(line)
  const outcome = said === undefined ? undefined : words.get(said.answer)
  if (said === undefined || outcome === undefined) return Either.left(otherwise)
  const note = said.words
  if (AnswerWords.isPhrase(said) || contradicts(outcome, said, words))
    return Either.left(`Is that a yes or a no? ${otherwise}`)
  return Either.right(note === "" ? { outcome } : { outcome, note })
}

/** Whether the words behind an answer may take it back. One that approves has a note behind a colon, or one with `but`. */
const contradicts = <Outcome extends string>(
  outcome: Outcome,
  { mark, words }: AnswerWords.AnswerWords,
  known: ReadonlyMap<string, Outcome>
): boolean => {
  if (mark === ":") return false
  if (outcome === "approve") return !/^but\s+\S/i.test(words)
  return known.get(words.toLowerCase()) === "approve"
}

const parseChoice = (options: ReadonlyArray<string>, line: string): Either.Either<number, string> =>
  Either.flatMap(
    Question.parse({ text: "", question_type: "single_choice", choices: options, required: true }, line),
    (answer) =>
      "text" in answer ? Either.right(answer.selected) : Either.left(`Please choose from 1 to ${options.length}.`)
  )

const parseClarify = (
  questions: ReadonlyArray<Question.Question>,
  line: string
): Either.Either<Question.ClarifyAnswers, string> => {
  const only = questions[0]
  if (only !== undefined && questions.length === 1 && jsonLines(line) === undefined) {
    return Either.map(Question.parse(only, line), (answer) => ({ "1": answer }))
  }
  const lines = typedLines(line)
  const foreign = [...lines.keys()].filter((number) => questions[Number(number) - 1] === undefined)
  if (foreign.length > 0) {
    return Either.left(`There are ${questions.length} questions; there is no question ${foreign.join(", ")}.`)
  }
  const answers: Record<string, Question.QuestionAnswer> = {}
  const problems: Array<string> = []
  for (const [index, question] of questions.entries()) {
    const number = String(index + 1)
    Either.match(Question.parse(question, lines.get(number) ?? ""), {
      onLeft: (reason) => problems.push(`Question ${number}: ${reason}`),
      onRight: (answer) => {
        answers[number] = answer
      }
    })
  }
  return problems.length === 0 ? Either.right(answers) : Either.left(problems.join(" "))
}

const parseElicit = (fields: Field.Fields, line: string): Either.Either<Field.Values, string> => {
  const json = line.trimStart().startsWith("{") ? UntrustedJson.parse(line) : undefined
  const object = json !== undefined && Either.isRight(json) ? json.right : undefined
  const isObject = typeof object === "object" && object !== null
  const lines = withoutLineEnd(line).split(/\r?\n/)
  // A lone text may well have several lines.
  const typed = fields.length === 1 ? [line] : lines
  if (!isObject && typed.length > fields.length) {
    return Either.left(`There are ${fields.length} fields and ${typed.length} lines.`)
  }
  const given = new Map<string, unknown>(
    isObject ? Object.entries(object) : fields.map(({ name }, index) => [name, typed[index] ?? ""])
  )
  const values: Record<string, Field.Value> = {}
  const problems: Array<Field.Problem> = []
  for (const name of given.keys()) {
    if (!fields.some((field) => field.name === name)) problems.push({ field: name, message: "There is no such field." })
  }
  for (const field of fields) {
    const value = given.get(field.name)
    Either.match(isObject ? jsonValue(field, value) : Field.parse(field, String(value ?? "")), {
      onLeft: (message) => problems.push({ field: field.name, message }),
      onRight: (value) => {
        if (value !== undefined) values[field.name] = value
      }
    })
  }
  return problems.length === 0
    ? Either.right(values)
    : Either.left(UntrustedJson.echo(Field.told(fields, problems), maxReason))
}

/** A member of a JSON object: the value itself, else what a person typed for it. */
const jsonValue = (field: Field.Field, given: unknown): Either.Either<Field.Value | undefined, string> => {
  if (given === undefined || given === "") return Field.parse(field, "")
  const problem = Field.problemOf(field, given)
  // The field takes the value, so it is one.
  if (problem === undefined) return Either.right(given as Field.Value)
  return typeof given === "string" ? Field.parse(field, given) : Either.left(problem)
}

/** In characters. */
const maxReason = 2_000

/** A word that cancels elsewhere, and is a choice here. */
const isOnlyChoice = ([field, ...others]: Field.Fields, word: string): boolean =>
  others.length === 0 && Field.isChoice(field, word)

/** What was typed for each question. Without JSON: one line each; a semicolon may well be part of a free text. */
const typedLines = (text: string): ReadonlyMap<string, string> =>
  jsonLines(text) ??
  new Map(
    withoutLineEnd(text)
      .split(/\r?\n/)
      .map((line, index) => [String(index + 1), line])
  )

/** The members of a JSON object whose values are texts or numbers; nothing when it is not one. */
const jsonLines = (text: string): ReadonlyMap<string, string> | undefined => {
  if (!text.trimStart().startsWith("{")) return undefined
  const parsed = UntrustedJson.parse(text)
  if (Either.isLeft(parsed) || typeof parsed.right !== "object" || parsed.right === null) return undefined
  const lines = new Map<string, string>()
  for (const [number, value] of Object.entries(parsed.right)) {
    if (!/^[1-9][0-9]*$/.test(number)) return undefined
    if (typeof value !== "string" && typeof value !== "number") return undefined
    lines.set(number, String(value))
  }
  return lines
}

const withoutLineEnd = (line: string): string => line.replace(/\r?\n$/, "")
