/**
 * Requests as text for a model that answers in its user's place, and the model's answers in text.
 *
 * | what | element |
 * |---|---|
 * | `Approve` | `<permission_request request_id="…">`, `<permission_response request_id="…">` |
 * | `Clarify` | `<clarification_request request_id="…">`, `<clarification_response request_id="…">` |
 * | any other kind | `<interaction_request kind="…" request_id="…">`, `<interaction_response kind="…" request_id="…">` |
 *
 * In a response: `<decision>` and `<comment>` for `Approve`, `<answer index="…">` for each question of `Clarify`,
 * `<answer name="…">` for each field of `Elicit`, else one `<answer>`. Every function is total. A text authorises nothing by itself: its reader must know who said it.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as Redaction from "../core/Redaction.js"
import type * as Interaction from "../interaction/Interaction.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as ModelAnswer from "./ModelAnswer.js"
import * as RequestXml from "./RequestXml.js"
import * as XmlElement from "./XmlElement.js"

export type { Answerable } from "./ModelAnswer.js"

// -----------------------------------------------------------------------------------------------------------------
// encoding
// -----------------------------------------------------------------------------------------------------------------

/**
 * The request in the form that a text-answering model is shown. Secrets are masked, everything is escaped, characters
 * that XML cannot hold are removed. `agent` names the asking agent when it is a child.
 *
 * @since 0.1.0
 * @category conversions
 */
export const encodeRequest = (
  request: InteractionRequest,
  redactor: Redaction.Redactor = Redaction.shapesOnly
): string => {
  const { interaction, requestId } = request
  const show = showing(redactor)
  const asker = request.parentSessionId !== undefined || request.subagentId !== undefined
  const agent = asker ? show(request.agentPath) : undefined
  const name = requestName(interaction._tag)
  return XmlElement.render(
    XmlElement.make(
      name,
      { kind: name === otherRequest ? interaction._tag : undefined, request_id: requestId, agent },
      RequestXml.make(interaction, show)
    )
  )
}

/**
 * Whether {@link encodeRequest} shows the request as it is: nothing cut, masked or removed. A reader of a partial
 * request has not seen what the decision is about.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isShownWhole = ({ interaction }: InteractionRequest, redactor: Redaction.Redactor): boolean => {
  let whole = true
  const show = showing(redactor)
  const cut = () => {
    whole = false
  }
  RequestXml.make(
    interaction,
    (text) => {
      const shown = show(text)
      // A part that was masked earlier is not visible here either.
      if (shown !== text || text.includes(Redaction.mask)) cut()
      return shown
    },
    cut
  )
  return whole
}

// -----------------------------------------------------------------------------------------------------------------
// decoding
// -----------------------------------------------------------------------------------------------------------------

/**
 * Whether the text is a response to any request, or was meant as one.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isReply = (text: string): boolean => {
  const root = Either.match(XmlElement.parse(text), { onLeft: ({ root }) => root, onRight: (root) => root })
  return root !== undefined && isResponse(root.name)
}

/**
 * Reads a text as the answer to `request`. Only the whole text counts, apart from white space around it: one response
 * element of the request's kind and with its id. A left says why it is no answer: words before or behind it, a second
 * element, or an answer that a model may not give to this kind.
 *
 * @since 0.1.0
 * @category conversions
 */
export const readReply = <I extends ModelAnswer.Answerable>(
  { interaction, requestId }: InteractionRequest<I>,
  text: string
): Either.Either<Interaction.Answer<I>, string> =>
  XmlElement.parse(text).pipe(
    Either.mapLeft(({ reason }) => `That is not one element: ${reason}.`),
    Either.filterOrLeft(
      (root) => kindOf(root) === interaction._tag,
      (root) => `<${brief(root.name)}> does not answer ${interaction._tag}.`
    ),
    Either.filterOrLeft(
      (root) => root.attributes.get("request_id") === requestId,
      () => "That answers another request."
    ),
    Either.flatMap((root) => saidIn(root, interaction)),
    Either.flatMap((said) => ModelAnswer.read(interaction, said))
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// Masked before and after cleaning: a removed character must neither hide a secret nor complete one.
const showing =
  (redactor: Redaction.Redactor): RequestXml.Show =>
  (text) =>
    redactor.text(XmlElement.clean(redactor.text(text)))

const otherRequest = "interaction_request"
const requestName = (kind: Interaction.Kind): string =>
  kind === "Approve" ? "permission_request" : kind === "Clarify" ? "clarification_request" : otherRequest

const permissionResponse = "permission_response"
const clarificationResponse = "clarification_response"
const otherResponse = "interaction_response"
const isResponse = (name: string): boolean =>
  name === permissionResponse || name === clarificationResponse || name === otherResponse

const kindOf = ({ attributes, name }: XmlElement.XmlElement): string | undefined => {
  if (name === permissionResponse) return "Approve"
  if (name === clarificationResponse) return "Clarify"
  const kind = attributes.get("kind")
  return name === otherResponse && kind !== "Approve" && kind !== "Clarify" ? kind : undefined
}

type Read<A> = Either.Either<A, string>

const saidIn = (root: XmlElement.XmlElement, { _tag }: ModelAnswer.Answerable): Read<ModelAnswer.Said> => {
  if (!XmlElement.isBlank(root)) return Either.left(`There is text beside the elements in <${root.name}>.`)
  if (_tag === "Clarify") return Either.map(answersIn(root, "index"), (answers) => ({ answers }))
  if (_tag === "Elicit") return Either.map(answersIn(root, "name"), (answers) => ({ answers }))
  const names = _tag === "Approve" ? approveFields : answerField
  return Either.map(fieldsIn(root, names), (fields) => {
    if (_tag === "Approve") return { decision: fields.get("decision"), comment: fields.get("comment") }
    const answer = fields.get("answer")
    return answer === undefined ? {} : { answers: new Map([["1", answer]]) }
  })
}

const approveFields: ReadonlySet<string> = new Set(["decision", "comment"])
const answerField: ReadonlySet<string> = new Set(["answer"])

/** The texts of the inner elements; each name at most once, and only the given names. */
const fieldsIn = (root: XmlElement.XmlElement, names: ReadonlySet<string>): Read<ReadonlyMap<string, string>> => {
  const texts = new Map<string, string>()
  for (const { attributes, children, name, text } of root.children) {
    if (!names.has(name)) return Either.left(`<${brief(name)}> does not belong into <${root.name}>.`)
    if (texts.has(name)) return Either.left(`<${name}> is there twice.`)
    if (children.length > 0 || attributes.size > 0) return Either.left(`<${name}> must hold text only.`)
    texts.set(name, text)
  }
  return Either.right(texts)
}

const answersIn = (root: XmlElement.XmlElement, key: "index" | "name"): Read<ReadonlyMap<string, string>> => {
  const texts = new Map<string, string>()
  for (const { attributes, children, name, text } of root.children) {
    if (name !== "answer") return Either.left(`<${brief(name)}> does not belong into <${root.name}>.`)
    if (children.length > 0) return Either.left("<answer> must hold text only.")
    const of = attributes.get(key)
    if (of === undefined) return Either.left(`An <answer> has no ${key}.`)
    if (texts.has(of)) return Either.left(`${key === "index" ? "Question" : "Field"} ${brief(of)} is answered twice.`)
    texts.set(of, text)
  }
  return Either.right(texts)
}

const brief = (text: string): string => (text.length <= 60 ? text : `${text.slice(0, 59)}…`)
