/** Shows a request as plain lines and parses the typed answer, where no dialog is drawn. */
import * as Either from "effect/Either"
import * as ConsoleForm from "../console/ConsoleForm.js"
import * as ConsolePrompt from "../console/ConsolePrompt.js"
import * as UntrustedJson from "../../core/UntrustedJson.js"
import * as Field from "../../interaction/Field.js"
import type * as Interaction from "../../interaction/Interaction.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"
import * as Display from "../terminal/Display.js"

/**
 * The request as text, without control characters; `label` stands before the answer. `now` is in milliseconds since the
 * epoch.
 */
export const render = (
  request: InteractionRequest,
  now: number
): { readonly lines: ReadonlyArray<string>; readonly label: string } => {
  const { title, lines, label } = ConsolePrompt.render(request, { color: false, now, whole: true })
  const { interaction } = request
  const questions = interaction._tag === "Clarify" ? interaction.questions : []
  const { fields, problems = [] } = interaction._tag === "Elicit" ? interaction : { fields: [] }
  const names = fields.map(({ name }) => `${JSON.stringify(Display.oneLine(name))}: "…"`)
  const form = [
    ...lines,
    ...questions.flatMap((question, index) =>
      ConsolePrompt.renderQuestion(question, index + 1, questions.length, { color: false })
    ),
    ...(questions.length > 1 ? ['all on one line: {"1": "…", "2": "…"}'] : []),
    ...fields.flatMap((field, index) =>
      ConsoleForm.renderField(field, index + 1, fields.length, {
        color: false,
        problems: Field.problemsAt(problems, field)
      })
    ),
    ...(fields.length > 1 ? [`all on one line: {${names.join(", ")}}`] : [])
  ]
  return { lines: [title, ...form.flatMap((text) => text.split("\n")).map((line) => `│ ${line}`)], label }
}

/** A line that answers. */
export interface Typed<I extends Interaction.Interaction> {
  /** Its form on a JSON wire: a JSON object as itself, anything else as a typed string. */
  readonly input: unknown
  readonly answer: Interaction.Answer<I>
}

/** Parses a line. A left says what to type instead. The caller checks for a withdrawal first. */
export const parse = <I extends Interaction.Interaction>(
  interaction: I,
  line: string
): Either.Either<Typed<I>, string> => {
  const isObject = interaction._tag === "Approve" && line.trim().startsWith("{")
  const parsed = isObject ? UntrustedJson.parse(line) : Either.right(line)
  if (Either.isLeft(parsed)) return Either.left(`that ${parsed.left.message}.`)
  const input = parsed.right
  return Either.map(TypedAnswer.decodeOrParse(interaction, input), (answer) => ({ input, answer }))
}
