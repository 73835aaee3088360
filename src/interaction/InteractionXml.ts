/**
 * Requests and answers as text, for agents that answer other agents.
 *
 * | what | element |
 * |---|---|
 * | `Approve` | `<permission_request request_id="…">`, `<permission_response request_id="…">` |
 * | `Clarify` | `<clarification_request request_id="…">`, `<clarification_response request_id="…">` |
 * | any other kind | `<interaction_request kind="…" request_id="…">`, `<interaction_response kind="…" request_id="…">` |
 * | withdrawn, of any kind | `<interaction_cancelled request_id="…"/>` |
 *
 * Every function is total. A text authorises nothing by itself: whoever reads replies knows from which port they came.
 */
import * as Data from "effect/Data"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redaction from "../core/Redaction.js"
import * as AnswerXml from "./AnswerXml.js"
import * as Interaction from "./Interaction.js"
import type { InteractionRequest } from "./InteractionRequest.js"
import * as PermissionOption from "./PermissionOption.js"
import * as RequestXml from "./RequestXml.js"
import * as TypedAnswer from "./TypedAnswer.js"
import * as XmlElement from "./XmlElement.js"

/** What a text on a reply port is. */
export type Reply = Data.TaggedEnum<{
  /** A response element; whether it answers a request of `kind` is for {@link decodeAnswer} to say. */
  readonly Response: {
    readonly requestId: string
    readonly kind: Interaction.Kind
    readonly body: XmlElement.XmlElement
  }
  /** The request was withdrawn; nobody waits for it, or nobody will answer it, any longer. */
  readonly Cancelled: { readonly requestId: string; readonly by?: string }
  /** An option word, or `c: …`. Means something only while exactly one `Approve` waits for a reply. */
  readonly Bare: { readonly text: string }
  /** With an id: a spoilt reply to that request. Without: no reply to anything, which is to say conversation. */
  readonly Malformed: { readonly requestId?: string; readonly reason: string }
}>
export const { Response, Cancelled, Bare, Malformed, $is: is, $match: match } = Data.taggedEnum<Reply>()

/** Why a reply is not an answer. */
export type Unreadable = AnswerXml.Unreadable

// -----------------------------------------------------------------------------------------------------------------
// encoding
// -----------------------------------------------------------------------------------------------------------------

/**
 * The request as it is shown to whoever answers in text. Secrets are masked, everything is escaped, characters that XML
 * cannot hold are removed. `agent` names who asks when that is a child.
 */
export const encodeRequest = (
  request: InteractionRequest,
  redactor: Redaction.Redactor = Redaction.shapesOnly
): string => {
  const { interaction, requestId } = request
  // Masked on both sides of cleaning: a character that is removed must neither hide a secret nor be what makes it one.
  const show: RequestXml.Show = (text) => redactor.text(XmlElement.clean(redactor.text(text)))
  const asker = request.parentSessionId !== undefined || request.subagentId !== undefined
  const agent = asker ? show(request.agentPath) : undefined
  const name = requestNames[interaction._tag]
  return XmlElement.render(
    XmlElement.make(
      name,
      { kind: name === otherRequest ? interaction._tag : undefined, request_id: requestId, agent },
      RequestXml.make(interaction, show)
    )
  )
}

/** Says that a request is withdrawn, in either direction; `by` names who withdrew it. */
export const encodeCancelled = (requestId: string, by?: string): string =>
  XmlElement.renderLine(XmlElement.make(cancelledName, { request_id: requestId, by }))

/**
 * An answer as text, on one line. Nothing for what must not or cannot travel as text: a password, edited arguments that
 * are not JSON, and more than {@link XmlElement.maxLength} characters. Characters that XML cannot hold are removed; JSON
 * keeps them as escapes.
 *
 * Optional questions that were skipped, or answered with nothing but blanks, are read as skipped.
 */
export const encodeAnswer = <I extends Interaction.Interaction>(
  { interaction, requestId }: InteractionRequest<I>,
  answer: Interaction.Answer<I>
): Option.Option<string> => {
  const name = responseNames[interaction._tag]
  const attributes = { kind: name === otherResponse ? interaction._tag : undefined, request_id: requestId }
  return AnswerXml.make(interaction, answer).pipe(
    Option.map((fields) => XmlElement.renderLine(XmlElement.make(name, attributes, fields))),
    Option.filter((text) => text.length <= XmlElement.maxLength)
  )
}

// -----------------------------------------------------------------------------------------------------------------
// decoding
// -----------------------------------------------------------------------------------------------------------------

/**
 * What a text on a reply port is. Only the whole text counts, white space around it aside: an element with words before
 * or behind it, a request, or a reply inside of another element is conversation.
 */
export const parseReply = (text: string): Reply => {
  if (!/^[ \t\r\n]*</.test(text)) {
    return Option.exists(PermissionOption.parse(text, { editable: false }), PermissionOption.is("Answer"))
      ? Bare({ text })
      : Malformed({ reason: "That is neither a reply nor an option of a permission request." })
  }
  return Either.match(XmlElement.parse(text), {
    onLeft: ({ reason, root }) => {
      const requestId = root !== undefined && isReply(root.name) ? root.attributes.get("request_id") : undefined
      const sentence = `That is not well-formed XML: ${reason}.`
      return requestId === undefined ? Malformed({ reason: sentence }) : Malformed({ requestId, reason: sentence })
    },
    onRight: readReply
  })
}

/**
 * Reads a reply as the answer to `request`. A left says why it is none, and whether it withdraws the request.
 *
 * A decision is one option, short or full; `comment` belongs to a denial, `edited_arguments` (a JSON object) to an edit.
 * Questions are answered by number from 1, each at most once; choices by number or by their own text, several with commas
 * between them; free text is taken as it stands. A required question that is not answered is reported, an optional one is
 * skipped. `<cancelled/>` in place of an answer cancels; so does the word `cancel` alone in a clarification response, and
 * in place of a choice that is not called that.
 */
export const decodeAnswer = <I extends Interaction.Interaction>(
  request: InteractionRequest<I>,
  reply: Reply
): Either.Either<Interaction.Answer<I>, Unreadable> =>
  // The answer was read by the reader of the interaction's own kind, which the type system cannot follow back to I.
  readAnswer(request, reply) as Either.Either<Interaction.Answer<I>, Unreadable>

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const otherRequest = "interaction_request"
const otherResponse = "interaction_response"
const cancelledName = "interaction_cancelled"

const namesOf = (approve: string, clarify: string, other: string): { readonly [K in Interaction.Kind]: string } => ({
  Approve: approve,
  grantStageTool: other,
  approveSubagentEnvelope: other,
  Clarify: clarify,
  Ask: other,
  Select: other,
  Confirm: other,
  "Auth.DeviceCode": other,
  "Auth.Password": other
})
const requestNames = namesOf("permission_request", "clarification_request", otherRequest)
const responseNames = namesOf("permission_response", "clarification_response", otherResponse)

const isReply = (name: string): boolean => name === cancelledName || Object.values(responseNames).includes(name)

const readReply = (root: XmlElement.XmlElement): Reply => {
  const { name } = root
  if (!isReply(name)) return Malformed({ reason: `<${name.slice(0, 50)}> is not a reply.` })
  const requestId = root.attributes.get("request_id")
  if (requestId === undefined) return Malformed({ reason: `<${name}> names no request_id.` })
  if (name === cancelledName) {
    const by = root.attributes.get("by")
    if (root.children.length > 0 || !XmlElement.isBlank(root)) {
      return Malformed({ requestId, reason: `<${name}> must be empty.` })
    }
    return Cancelled(by === undefined ? { requestId } : { requestId, by })
  }
  const kind = kindOf(root)
  return kind === undefined
    ? Malformed({ requestId, reason: `<${name}> does not name a kind that is answered with it.` })
    : Response({ requestId, kind, body: root })
}

const kindOf = (root: XmlElement.XmlElement): Interaction.Kind | undefined => {
  if (root.name === responseNames.Approve) return "Approve"
  if (root.name === responseNames.Clarify) return "Clarify"
  const kind = root.attributes.get("kind") ?? ""
  return Interaction.isKind(kind) && responseNames[kind] === root.name ? kind : undefined
}

const readAnswer = (
  { interaction, requestId }: InteractionRequest,
  reply: Reply
): Either.Either<Interaction.Answer<Interaction.Interaction>, Unreadable> => {
  const kind = interaction._tag
  switch (reply._tag) {
    case "Malformed":
      return AnswerXml.unreadable(reply.reason)
    case "Bare":
      return kind === "Approve"
        ? Either.mapLeft(TypedAnswer.parse(interaction, reply.text), AnswerXml.because)
        : AnswerXml.unreadable(`A bare word does not answer ${kind}.`)
    case "Cancelled":
      return reply.requestId === requestId
        ? Either.left(AnswerXml.withdrawn(reply.by))
        : AnswerXml.unreadable("That withdraws another request.")
    case "Response":
      if (reply.requestId !== requestId) return AnswerXml.unreadable("That answers another request.")
      return reply.kind === kind
        ? AnswerXml.read(interaction, reply.body)
        : AnswerXml.unreadable(`That answers ${reply.kind}, but ${kind} was asked.`)
  }
}
