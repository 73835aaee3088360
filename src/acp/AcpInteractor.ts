/**
 * An editor as an interactor. Approvals are permission requests of the protocol, with no more options than the request
 * offers. Questions are forms, for editors that have them, and never permission options: a client that approves by itself
 * chooses the first one that allows, and would answer for the person.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ToolCallId } from "../core/Id.js"
import { visible } from "../core/Visible.js"
import * as Form from "../interaction/Form.js"
import type { Answer, Approve, ApproveAnswer, Interaction } from "../interaction/Interaction.js"
import { InteractionCancelled, type InteractionError, InteractorUnavailable } from "../interaction/InteractionError.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import * as NeedText from "../interaction/NeedText.js"
import type * as AcpConnection from "../foreign/AcpConnection.js"
import * as AcpUpdate from "./AcpUpdate.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** The editor of one session, as its dialogs need it. */
export interface Editor {
  readonly client: Pick<AcpConnection.Client, "request" | "notify">
  /** The root session, also for what subagents ask: the editor knows no other. */
  readonly sessionId: string
  /** The kinds of dialogs that the editor has. */
  readonly has: { readonly forms: boolean; readonly urls: boolean }
  readonly around: Pick<AcpUpdate.Surroundings, "root" | "toolOf" | "workspace">
  /** Sends the editor all that comes before a question about this call. */
  readonly beforeAsking: (toolCallId: ToolCallId | undefined) => Effect.Effect<void>
  /** Says a sentence in the conversation. */
  readonly say: (sentence: string) => Effect.Effect<void>
  /** The person at the editor. */
  readonly principal: string
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Asks the person at an editor. */
export const make = (editor: Editor): Interactor.Service => {
  const form = editor.has.forms ? formOf(editor) : noForms
  return Interactor.make({
    id,
    principal: editor.principal,
    // Each dialog stands beside the call that it is about.
    dialogs: "unbounded",
    handlers: {
      Approve: approve(editor),
      grantStageTool: (request) => {
        const { argsSummary, proposalId, reason, tool } = request.interaction
        const why = reason === undefined ? [] : [AcpUpdate.text(visible(reason))]
        const call = { toolCallId: proposalId, title: `${tool} ${argsSummary}`, content: why }
        return Effect.map(choose(editor, request, call, yesOrNo), (chosen): Answer<Interaction<"grantStageTool">> => ({
          outcome: chosen === "y" ? "approve" : "deny"
        }))
      },
      approveSubagentEnvelope: (request) => {
        const { promptSummary, requestedEnvelope, subagentId } = request.interaction
        const tools = `Without asking, for its whole life: ${requestedEnvelope.join(", ")}.`
        const call = {
          toolCallId: `envelope/${subagentId}`,
          title: `Let a subagent use tools without asking: ${promptSummary}`,
          kind: "other" as const,
          content: [AcpUpdate.text(visible(tools))]
        }
        return Effect.map(
          choose(editor, request, call, yesOrNo),
          (chosen): Answer<Interaction<"approveSubagentEnvelope">> => ({ outcome: chosen === "y" ? "approve" : "deny" })
        )
      },
      Clarify: form,
      Ask: form,
      Select: form,
      Confirm: form,
      Elicit: form,
      "Auth.DeviceCode": deviceCode(editor),
      "Auth.Password": (request) =>
        unavailable(request, "an editor cannot ask for a password. Use a terminal, or a key that needs no password")
    }
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** As events and the audit name it where no person is known. */
const id = "acp"

/** How often an editor may answer with something that was not offered, or does not fit. */
const patience = 5

type Asked<I extends Interaction = Interaction> = InteractionRequest.InteractionRequest<I>

interface Offered {
  readonly id: string
  readonly name: string
  readonly kind: AcpConnection.PermissionOption["kind"]
}

const yesOrNo: ReadonlyArray<Offered> = [
  { id: "y", name: "Allow", kind: "allow_once" },
  { id: "n", name: "Deny", kind: "reject_once" }
]

/**
 * What an editor may offer for a call. A comment and an edit take a second dialog, and allow nothing by themselves: they
 * are of the kind that refuses, for clients that choose by kind.
 */
const optionsOf = ({ approvalKey, editable, needs, onceOnly, options }: Approve, forms: boolean): Array<Offered> => {
  const offered = new Set(options.map(({ full }) => full))
  const lasts = onceOnly !== true && needs === undefined
  const all: ReadonlyArray<Offered & { readonly if: boolean }> = [
    { id: "y", name: "Allow", kind: "allow_once", if: offered.has("yes") },
    { id: "n", name: "Deny", kind: "reject_once", if: offered.has("no") },
    {
      id: "a",
      name: visible(`Allow always in this session: ${approvalKey}`),
      kind: "allow_always",
      if: lasts && offered.has("always")
    },
    {
      id: "never",
      name: visible(`Deny always in this session: ${approvalKey}`),
      kind: "reject_always",
      if: needs === undefined && offered.has("never")
    },
    { id: "c", name: "Deny with a comment…", kind: "reject_once", if: forms && offered.has("comment") },
    {
      id: "e",
      name: "Edit the arguments…",
      kind: "reject_once",
      if: forms && offered.has("edit") && editable !== undefined
    }
  ]
  return all.flatMap(({ if: isOffered, ...option }) => (isOffered ? [option] : []))
}

const approve =
  (editor: Editor) =>
  (request: Asked<Approve>): Effect.Effect<ApproveAnswer, InteractionError> => {
    const { interaction } = request
    const options = optionsOf(interaction, editor.has.forms)
    const once = (): Effect.Effect<ApproveAnswer, InteractionError> =>
      Effect.flatMap(choose(editor, request, callOf(editor, request), options), (chosen) => {
        switch (chosen) {
          case "y":
            return Effect.succeed<ApproveAnswer>({ decision: "allow", scope: "once" })
          case "a":
            return Effect.succeed<ApproveAnswer>({ decision: "allow", scope: "session" })
          case "never":
            return Effect.succeed<ApproveAnswer>({ decision: "deny", scope: "session" })
          case "c":
            return Effect.flatMap(comment(editor, request), (said) =>
              said === undefined ? once() : Effect.succeed(said)
            )
          case "e":
            return Effect.flatMap(fill(editor, request), (filled) =>
              Option.isSome(filled) ? Effect.succeed(filled.value) : once()
            )
          default:
            return Effect.succeed<ApproveAnswer>({ decision: "deny", scope: "once" })
        }
      })
    return once()
  }

/** The id of the option that was chosen; one of these, whatever the editor answers. */
const choose = (
  editor: Editor,
  request: Asked,
  call: Omit<AcpConnection.ToolCallUpdate, "title"> & { readonly title: string },
  options: ReadonlyArray<Offered>
): Effect.Effect<string, InteractionError> => {
  const title = visible(`${childOf(editor, request)}${call.title}`.replace(/\s+/g, " "))
  const params: AcpConnection.RequestPermissionRequest = {
    sessionId: editor.sessionId,
    toolCall: { status: "pending", ...call, title },
    options: options.map(({ id, kind, name }) => ({ optionId: id, kind, name: name.slice(0, 300) })),
    _meta: metaOf(request)
  }
  const ask = (times: number): Effect.Effect<string, InteractionError> =>
    Effect.flatMap(asking(request, editor.client.request("session/request_permission", params)), (answer) => {
      const outcome = Option.getOrUndefined(decodeOutcome(answer))?.outcome
      if (outcome?.outcome === "cancelled") return Effect.fail(cancelled(editor, request))
      const chosen = outcome?.outcome === "selected" ? outcome.optionId : undefined
      if (chosen !== undefined && options.some(({ id }) => id === chosen)) return Effect.succeed(chosen)
      return times < patience
        ? ask(times + 1)
        : unavailable(request, "it chose an option that was not offered, several times")
    })
  return Effect.zipRight(editor.beforeAsking(InteractionRequest.callOf(request)), ask(1))
}

/** The call that is asked about, with what a person needs to decide. */
const callOf = (editor: Editor, { interaction }: Asked<Approve>) => {
  const { argumentsCut, argumentsSummary, display, needs, tool, toolCallId } = interaction
  const kind = editor.around.toolOf(tool)?.kind
  const locations = AcpUpdate.locationsOf(tool, interaction.arguments, editor.around)
  return {
    toolCallId,
    title: AcpUpdate.titleOf(
      tool,
      display?.summary ?? argumentsSummary,
      display?.summary === undefined ? kind : "execute"
    ),
    ...(kind === undefined ? {} : { kind }),
    ...(interaction.arguments === undefined ? {} : { rawInput: interaction.arguments }),
    ...(locations.length === 0 ? {} : { locations: [...locations] }),
    content: [
      ...shown(display),
      ...[
        ...(display?.warnings ?? []).map((warning) => `Warning: ${warning}`),
        ...(argumentsCut === undefined ? [] : [`Too long to be shown whole: ${argumentsCut.join(", ")}.`]),
        ...(needs === undefined ? [] : [`This call ${NeedText.describeAll(needs.all)}.`]),
        ...(needs === undefined ? [] : [NeedText.describeVotes(needs.votes) ?? "Nobody has voted yet."])
      ].map((sentence) => AcpUpdate.text(visible(sentence)))
    ]
  }
}

const shown = (display: Approve["display"]): ReadonlyArray<AcpConnection.ToolCallContent> => {
  if (display?.change !== undefined) {
    const { after, before, path } = display.change
    return [{ type: "diff", path, oldText: before ?? null, newText: after }]
  }
  if (display?.details === undefined) return []
  const words = visible(display.details)
  if (display.format === undefined || display.format === "text" || display.format === "markdown") {
    return [AcpUpdate.text(words)]
  }
  const longest = Math.max(2, ...(words.match(/`{3,}/g) ?? []).map(({ length }) => length))
  const fence = "`".repeat(longest + 1)
  return [AcpUpdate.text(`${fence}${display.language ?? display.format}\n${words}\n${fence}`)]
}

/** Words for the model; nothing when the person went back. */
const comment = (editor: Editor, request: Asked): Effect.Effect<ApproveAnswer | undefined, InteractionError> => {
  const message = "Why not? The agent reads your words."
  const requestedSchema = { type: "object" as const, properties: { comment: { type: "string", title: "Comment" } } }
  return Effect.map(put(editor, request, { message, requestedSchema }), (values): ApproveAnswer | undefined => {
    if (values === undefined) return undefined
    const words = typeof values === "object" && values !== null && "comment" in values ? values.comment : undefined
    return typeof words === "string" && words.trim() !== ""
      ? { decision: "deny", scope: "once", comment: words.trim() }
      : { decision: "deny", scope: "once" }
  })
}

const formOf =
  (editor: Editor) =>
  <I extends Interaction>(request: Asked<I>): Effect.Effect<Answer<I>, InteractionError> =>
    Effect.zipRight(
      editor.beforeAsking(InteractionRequest.callOf(request)),
      Effect.flatMap(fill(editor, request), (filled) =>
        Option.isSome(filled) ? Effect.succeed(filled.value) : Effect.fail(cancelled(editor, request))
      )
    )

const noForms = (request: Asked): Effect.Effect<never, InteractionError> =>
  unavailable(request, "the editor takes no forms. Ask in your answer, and end your turn")

/** The answer that a filled form amounts to; nothing when the person closed it. */
const fill = <I extends Interaction>(
  editor: Editor,
  request: Asked<I>
): Effect.Effect<Option.Option<Answer<I>>, InteractionError> => {
  const form = Form.of(request.interaction)
  if (form === undefined) return unavailable(request, "the question has no form")
  // The schema of a form is that of an elicitation; here it is read-only.
  const requestedSchema = form.requestedSchema as unknown as FormParams["requestedSchema"]
  const ask = (problems: string, times: number): Effect.Effect<Option.Option<Answer<I>>, InteractionError> =>
    Effect.flatMap(put(editor, request, { message: `${problems}${form.message}`, requestedSchema }), (values) => {
      if (values === undefined) return Effect.succeedNone
      const decoded = Form.decode(request.interaction, values)
      if (Either.isRight(decoded)) return Effect.succeed(Option.some(decoded.right))
      return times < patience
        ? ask(`${Form.told(request.interaction, decoded.left)}\n\n`, times + 1)
        : unavailable(request, "what was filled in did not fit, several times")
    })
  return ask("", 1)
}

type FormParams = Extract<AcpConnection.CreateElicitationRequest, { readonly mode: "form" }>

/** What was filled in, unchecked; nothing when the person closed the form. */
const put = (
  editor: Editor,
  request: Asked,
  { message, requestedSchema }: Pick<FormParams, "message" | "requestedSchema">
): Effect.Effect<unknown, InteractionError> => {
  const toolCallId = InteractionRequest.callOf(request)
  return Effect.map(
    asking(
      request,
      editor.client.request("elicitation/create", {
        mode: "form",
        sessionId: editor.sessionId,
        ...(toolCallId === undefined ? {} : { toolCallId }),
        message: visible(`${childOf(editor, request)}${message}`),
        requestedSchema,
        _meta: metaOf(request)
      })
    ),
    (answer): unknown => {
      const action = Option.getOrUndefined(decodeAction(answer))
      return action?.action === "accept" ? (action.content ?? {}) : undefined
    }
  )
}

/**
 * The asker polls until the person has signed in, and withdraws the question then. To accept the address is no sign-in, so
 * the question stays open.
 */
const deviceCode =
  (editor: Editor) =>
  (request: Asked<Interaction<"Auth.DeviceCode">>): Effect.Effect<"completed", InteractionError> => {
    const { code, url } = request.interaction
    const message = visible(`${childOf(editor, request)}Sign in at ${url} with the code ${code}.`)
    if (!editor.has.urls) return Effect.zipRight(editor.say(message), Effect.never)
    const elicitationId = request.requestId
    const shown = editor.client.request("elicitation/create", {
      mode: "url",
      sessionId: editor.sessionId,
      elicitationId,
      url,
      message,
      _meta: metaOf(request)
    })
    return Effect.flatMap(asking(request, shown), (answer) =>
      Option.getOrUndefined(decodeAction(answer))?.action === "accept"
        ? Effect.never
        : Effect.fail(cancelled(editor, request))
    ).pipe(Effect.ensuring(editor.client.notify("elicitation/complete", { elicitationId })))
  }

/** Whose question it is, for what a subagent asks. */
const childOf = ({ around }: Editor, { agentPath, sessionId }: Asked): string =>
  sessionId === around.root ? "" : `[${agentPath}] `

const metaOf = ({ agentPath, batch, requestId }: Asked): Record<string, unknown> => ({
  "assent/requestId": requestId,
  "assent/agent": agentPath,
  ...(batch === undefined ? {} : { "assent/batch": batch })
})

const asking = <A>(
  request: Asked,
  asked: Effect.Effect<A, AcpConnection.ProtocolError>
): Effect.Effect<A, InteractorUnavailable> =>
  Effect.catchAll(asked, ({ reason }) => unavailable(request, `the editor refused the question: ${reason}`))

const unavailable = ({ requestId }: Asked, reason: string): Effect.Effect<never, InteractorUnavailable> =>
  Effect.fail(new InteractorUnavailable({ requestId, by: id, reason }))

const cancelled = ({ principal }: Editor, { requestId }: Asked): InteractionCancelled =>
  new InteractionCancelled({ requestId, by: principal })

/** What an editor answers is foreign: it counts as far as it fits. */
const decodeOutcome = Schema.decodeUnknownOption(
  Schema.Struct({
    outcome: Schema.Union(
      Schema.Struct({ outcome: Schema.Literal("cancelled") }),
      Schema.Struct({ outcome: Schema.Literal("selected"), optionId: Schema.String })
    )
  })
)

const decodeAction = Schema.decodeUnknownOption(
  Schema.Struct({ action: Schema.String, content: Schema.optional(Schema.NullOr(Schema.Unknown)) })
)
