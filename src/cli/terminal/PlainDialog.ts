/** A request on plain lines, and what a line means that is typed to it: where nobody draws a dialog. */
import * as Either from "effect/Either"
import * as ConsolePrompt from "../../channel/ConsolePrompt.js"
import * as ForeignJson from "../../core/ForeignJson.js"
import type * as Interaction from "../../interaction/Interaction.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"

/** What is asked, without control characters; `label` stands before the answer. `now` in milliseconds since the epoch. */
export const render = (
  request: InteractionRequest,
  now: number
): { readonly lines: ReadonlyArray<string>; readonly label: string } => {
  const { title, lines, label } = ConsolePrompt.render(request, { color: false, now, whole: true })
  const { interaction } = request
  const questions = interaction._tag === "Clarify" ? interaction.questions : []
  const form = [
    ...lines,
    ...questions.flatMap((question, index) =>
      ConsolePrompt.renderQuestion(question, index + 1, questions.length, { color: false })
    ),
    ...(questions.length > 1 ? ['all on one line: {"1": "…", "2": "…"}'] : [])
  ]
  return { lines: [title, ...form.flatMap((text) => text.split("\n")).map((line) => `│ ${line}`)], label }
}

/** A line that answers. */
export interface Typed<I extends Interaction.Interaction> {
  /** What it stands for on a JSON wire: a JSON object for itself, anything else for what a person types. */
  readonly input: unknown
  readonly answer: Interaction.Answer<I>
}

/** What a line is. A left says what to type instead. A line that withdraws the request is to be looked for before. */
export const parse = <I extends Interaction.Interaction>(
  interaction: I,
  line: string
): Either.Either<Typed<I>, string> => {
  const isObject = interaction._tag === "Approve" && line.trim().startsWith("{")
  const parsed = isObject ? ForeignJson.parse(line) : Either.right(line)
  if (Either.isLeft(parsed)) return Either.left(`that ${parsed.left.message}.`)
  const input = parsed.right
  return Either.map(TypedAnswer.decodeOrParse(interaction, input), (answer) => ({ input, answer }))
}
