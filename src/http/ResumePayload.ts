/**
 * Answers as pages of web frameworks give them: `{ approved, editedArgs? }` to a call, a filled form to a question. Each kind
 * has its JSON Schema, so that a page can show it without a word about kinds.
 */
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type * as Redaction from "../core/Redaction.js"
import * as Form from "../interaction/Form.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionEvent from "../interaction/InteractionEvent.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** JSON Schema of the payload; nothing for a request that any payload answers, or that is answered elsewhere. */
export const schemaOf = (interaction: Interaction.Interaction): object | undefined => {
  switch (interaction._tag) {
    case "Approve": {
      const { editable, onceOnly } = interaction
      return {
        ...decision,
        properties: {
          ...decision.properties,
          ...(onceOnly === true ? {} : { scope }),
          ...(editable === undefined ? {} : { editedArgs: Form.of(interaction)?.requestedSchema })
        }
      }
    }
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return decision
    case "Auth.DeviceCode":
    case "Auth.Password":
      return undefined
    default:
      return Form.of(interaction)?.requestedSchema
  }
}

/** What a page shows that knows no kinds. */
export const messageOf = (request: InteractionRequest, redactor: Redaction.Redactor): string => {
  const { interaction } = request
  if (interaction._tag === "Auth.DeviceCode")
    return `Open ${interaction.url} and enter the code ${interaction.code}. Then answer here.`
  const body = InteractionEvent.requested(request, redactor)
  return body._tag === "InteractionRequested" ? body.summary : ""
}

/** The encoded answer. A left says why the payload is none. */
export const decode = (interaction: Interaction.Interaction, payload: unknown): Either.Either<unknown, string> => {
  const refusal = UntrustedJson.refusal(payload ?? null, { size: maxSize })
  if (refusal !== undefined) return Either.left(`It ${refusal.message}.`)
  switch (interaction._tag) {
    case "Approve":
      return Either.flatMap(decisionOf(payload, approveKeys), (said) => approval(interaction, said))
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return Either.map(decisionOf(payload, ["approved", "comment"]), ({ approved, comment }) => ({
        outcome: approved ? "approve" : "deny",
        ...(comment === undefined ? {} : { note: comment })
      }))
    case "Auth.DeviceCode":
      return Either.right("completed")
    case "Auth.Password":
      return Either.left("A password is not taken here. Answer it in a terminal, or through /v1/requests.")
    default:
      return Either.mapBoth(Form.decode(interaction, payload), {
        onLeft: (problems) => Form.told(interaction, problems),
        onRight: (answer) => Interaction.encodeAnswer(interaction, answer)
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The limit of an answer, in characters. */
const maxSize = 1_048_576

const decision = {
  type: "object",
  properties: {
    approved: { type: "boolean", title: "Allow?" },
    comment: { type: "string", title: "Words for the agent, with a no" }
  },
  required: ["approved"]
} as const

const scopes = ["once", "turn", "idle", "session", "all"] as const

const scope = { type: "string", title: "How long it holds", enum: scopes, default: "once" }

const approveKeys = ["approved", "comment", "scope", "editedArgs"]

interface Decision {
  readonly approved: boolean
  readonly comment?: string | undefined
  readonly scope?: (typeof scopes)[number] | undefined
  readonly editedArgs?: { readonly [name: string]: unknown } | undefined
}

const decisionOf = (payload: unknown, keys: ReadonlyArray<string>): Either.Either<Decision, string> => {
  if (!Predicate.isReadonlyRecord(payload)) return Either.left('It has to be an object such as { "approved": true }.')
  const { approved, comment, editedArgs, scope } = payload
  const foreign = Object.keys(payload).filter((key) => !keys.includes(key))
  if (foreign.length > 0) {
    return Either.left(
      `It has unknown fields: ${UntrustedJson.few(foreign, 5)
        .map((key) => UntrustedJson.echo(key))
        .join(", ")}. Use ${keys.join(", ")}.`
    )
  }
  if (typeof approved !== "boolean") return Either.left('"approved" has to be true or false.')
  if (comment !== undefined && typeof comment !== "string") return Either.left('"comment" has to be a text.')
  const known = scopes.find((one) => one === scope)
  if (scope !== undefined && known === undefined) return Either.left(`"scope" has to be one of ${scopes.join(", ")}.`)
  if (editedArgs !== undefined && !Predicate.isReadonlyRecord(editedArgs))
    return Either.left('"editedArgs" has to be an object with the arguments by name.')
  return Either.right({ approved, comment, scope: known, editedArgs })
}

const approval = (
  interaction: Interaction.Approve,
  { approved, comment, editedArgs, scope = "once" }: Decision
): Either.Either<unknown, string> => {
  const { editable, onceOnly } = interaction
  if (!approved) {
    if (editedArgs !== undefined) return Either.left("A call that is denied takes no edited arguments. Leave them out.")
    if (scope !== "once" && scope !== "session") return Either.left('A no holds for "once" or for the "session".')
    return Either.right({ decision: "deny", scope, ...(comment === undefined || comment === "" ? {} : { comment }) })
  }
  if (comment !== undefined && comment !== "")
    return Either.left("Words go to the agent with a no only. Leave them out.")
  if (scope !== "once" && onceOnly === true) return Either.left('This call is allowed once only. Use the scope "once".')
  const changed = Object.entries(editedArgs ?? {}).filter(
    ([name, value]) => canonicalJson(editable?.current[name]) !== canonicalJson(value)
  )
  if (changed.length === 0) return Either.right({ decision: "allow", scope })
  if (scope !== "once") return Either.left('An edited call is allowed once only. Use the scope "once".')
  const answer = { decision: "edit", editedArguments: Object.fromEntries(changed) }
  return Either.mapBoth(Interaction.decodeAnswer(interaction, answer), {
    onLeft: (reason) => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`,
    onRight: () => answer
  })
}
