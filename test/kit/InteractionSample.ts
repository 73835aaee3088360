/** One interaction of every kind, with an answer in each of the forms in which it can be given. */
import * as Effect from "effect/Effect"
import type * as Field from "../../src/interaction/Field.js"
import * as Form from "../../src/interaction/Form.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import type { Sample } from "../../src/testing/ChannelSample.js"

export { password, samples, secrets, type Sample } from "../../src/testing/ChannelSample.js"

export const kinds: ReadonlyArray<Interaction.Kind> = Object.keys(Interaction.kinds).filter(Interaction.isKind)

/** An envelope around an interaction, with an id of its own. */
export const request = <I extends Interaction.Interaction>(
  interaction: I
): Effect.Effect<InteractionRequest.InteractionRequest<I>> => InteractionRequest.make(interaction)

/** What is typed at a console's dialog, line by line: a form has a last look before it is sent. */
export const typed = ({ interaction, line }: Sample): ReadonlyArray<string> => [
  ...line.split("\n"),
  ...(interaction._tag === "Elicit" ? [""] : [])
]

/** The answer as the request's form is filled in; nothing where a form does not give it. */
export const filled = ({ answer, interaction }: Sample): Field.Values | undefined =>
  Form.encode<Interaction.Interaction>(interaction, answer)

/** What an answer allows; an answer that fails, or denies, allows nothing. */
export const allows = (answer: unknown): boolean =>
  answer === true ||
  (typeof answer === "object" &&
    answer !== null &&
    (("decision" in answer && answer.decision !== "deny") || ("outcome" in answer && answer.outcome === "approve")))
