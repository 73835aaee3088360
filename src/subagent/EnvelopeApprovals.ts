/**
 * The envelopes of a session's delegations: a person allows a child's tools before the child exists, and the delegating
 * call later takes that approval.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import type { ToolCallId } from "../core/Id.js"
import * as Redaction from "../core/Redaction.js"
import { EventBus } from "../event/EventBus.js"
import type { ApproveSubagentEnvelope } from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { Interactor } from "../interaction/Interactor.js"
import * as Grant from "../permission/Grant.js"
import type { Resolution } from "../permission/PermissionGate.js"
import type * as SessionSnapshot from "../journal/SessionSnapshot.js"
import type * as Session from "../session/Session.js"
import type { AgentTree } from "./AgentTree.js"
import * as DelegationRequest from "./DelegationRequest.js"

/** The approval for a child that is about to be made. */
export interface Granted {
  /** Id of the child. */
  readonly id: string
  readonly tools: ReadonlyArray<string>
  /** The approved request: a model may reuse the id of a call for another one. */
  readonly order: string
}

export interface Options {
  readonly tree: AgentTree
  /** The parent. */
  readonly session: Session.Session
}

export class EnvelopeApprovals {
  /** By the call that asked. */
  private readonly granted = new Map<ToolCallId, Granted>()
  /** Questions from before a restart, by the call that asked. */
  private readonly asked = new Map<ToolCallId, ApproveSubagentEnvelope>()

  constructor(private readonly options: Options) {}

  /** Asks for the request's envelope; none when it names no tools. */
  ask(
    callId: ToolCallId,
    order: DelegationRequest.DelegationRequest,
    { envelope: tools, model }: DelegationRequest.Recipe
  ): Effect.Effect<Option.Option<Resolution>, never, Interactor> {
    if (tools === undefined) return Effect.succeedNone
    const { session, tree } = this.options
    const { bus, redactor } = tree.shared
    return Effect.flatMap(session.model, (own) => {
      const id = this.idOf(callId)
      const [providerId = "", ...rest] = (model ?? own.id).split("/")
      return Grant.requestEnvelope({
        subagentId: id,
        parentSessionId: session.origin.sessionId,
        depth: session.origin.depth + 1,
        tools,
        active: session.tools.entries.map(({ name }) => name),
        promptSummary: Redaction.summarize(order.task, redactor),
        model: { providerId, modelId: rest.join("/") },
        redactor
      }).pipe(
        Effect.provideService(EventBus, bus),
        Effect.match({
          onFailure: (error): Resolution => ({
            granted: false,
            method: error._tag === "EnvelopeInvalid" ? "pre_validation" : methods[error.how],
            reason: error.message
          }),
          onSuccess: (): Resolution => {
            for (const name of tools) {
              const definition = session.tools.get(name)?.definition
              const { permissions, policy } = tree.shared
              if (definition !== undefined) permissions.noteDefinition(policy, definition, false)
            }
            this.granted.set(callId, { id, tools, order: Digest.digest(order) })
            return { granted: true, method: "envelope", reason: `the envelope of ${id} was approved` }
          }
        }),
        Effect.map(Option.some)
      )
    })
  }

  /** A question from before a restart names the child of this call, and the tools of the child. */
  remember(request: InteractionRequest.InteractionRequest): void {
    const callId = InteractionRequest.callOf(request)
    const { interaction } = request
    if (callId !== undefined && interaction._tag === "approveSubagentEnvelope") this.asked.set(callId, interaction)
  }

  /** Grants what was allowed for this request before a restart: only tools that were in the question. */
  private grant(
    callId: ToolCallId,
    order: DelegationRequest.DelegationRequest,
    { envelope }: DelegationRequest.Recipe
  ): void {
    const shown = this.asked.get(callId)?.requestedEnvelope
    if (envelope === undefined || shown === undefined) return
    const tools = envelope.filter((name) => shown.includes(name))
    this.granted.set(callId, { id: this.idOf(callId), tools, order: Digest.digest(order) })
  }

  /**
   * Grants what was allowed for these calls and not yet used. A call that the session's own envelope or stage covered
   * has the method `envelope` too, but asked for no envelope of its own.
   */
  regrant(
    calls: ReadonlyArray<SessionSnapshot.CallSnapshot>,
    recipeOf: (order: DelegationRequest.DelegationRequest) => Effect.Effect<DelegationRequest.Recipe, string>
  ): Effect.Effect<void> {
    return Effect.forEach(
      calls,
      ({ call, decided }) => {
        const order =
          decided?.method === "envelope" && decided.granted && this.asked.has(call.id)
            ? DelegationRequest.written(call)
            : Option.none()
        if (Option.isNone(order)) return Effect.void
        // A request that has become invalid is refused when the call runs.
        return Effect.ignore(Effect.map(recipeOf(order.value), (recipe) => this.grant(call.id, order.value, recipe)))
      },
      { discard: true }
    )
  }

  /** Takes the approval of exactly this request of this call. It is given once. */
  take(order: unknown, callId: ToolCallId | undefined): Granted | undefined {
    const granted = callId === undefined ? undefined : this.granted.get(callId)
    if (callId === undefined || granted === undefined) return undefined
    this.granted.delete(callId)
    return granted.order === Digest.digest(order) ? granted : undefined
  }

  private idOf(callId: ToolCallId): string {
    return this.asked.get(callId)?.subagentId ?? this.options.tree.nextSubagentId()
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const methods: { readonly [How in Grant.EnvelopeDenied["how"]]: Resolution["method"] } = {
  denied: "user_denied",
  cancelled: "cancelled",
  timed_out: "timeout",
  unavailable: "unavailable"
}
