/** What only the process knows that runs a session: how it is now, and what its broker asks. */
import * as Effect from "effect/Effect"
import type * as Host from "../host/Host.js"
import * as Form from "../interaction/Form.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as Api from "./Api.js"

/** What a session is like beside what its journal says, while a process runs it. */
export type Present = Pick<Api.SessionSnapshot, "agents" | "cost" | "jobs" | "mode" | "todos" | "wantsTrust"> & {
  readonly position?: number | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** What only the process knows that runs the session. */
export const of = ({
  agent,
  jobs
}: Pick<Host.LiveSession, "agent" | "jobs">): Effect.Effect<Omit<Present, "position" | "wantsTrust">> =>
  Effect.gen(function* () {
    const { cost, inputTokens, outputTokens } = agent.ledger.totals()
    const { currency } = agent.ledger
    return {
      mode: (yield* agent.permissions.status).mode,
      todos: (yield* Effect.orElseSucceed(agent.todos(), () => [])).map((todo) => ({ ...todo })),
      jobs: jobs.list(agent.id).map((job) => ({ ...job })),
      agents: (yield* agent.agents).map(({ origin, profile, session }) => ({
        agent: origin.agent,
        sessionId: origin.sessionId,
        profile,
        isIdle: session.isIdle()
      })),
      cost: { inputTokens, outputTokens, amount: cost, currency }
    }
  })

/** What its broker asks, masked. */
export const open = ({
  agent,
  id,
  redactor,
  workspace
}: Pick<Host.LiveSession, "agent" | "id" | "redactor" | "workspace">): Effect.Effect<ReadonlyArray<Api.OpenRequest>> =>
  Effect.map(agent.broker.open, (requests) =>
    requests.map((request) => ({
      ...encode(request, (value) => redactor.value(value)),
      sessionId: id,
      title: "",
      workspace,
      answeredBy: undefined,
      holder: undefined
    }))
  )

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** As `--jsonl` writes it. */
export const encode = (
  request: InteractionRequest.InteractionRequest,
  mask: (value: unknown) => unknown = (value) => value
): Pick<Api.OpenRequest, "_tag" | "form" | "request"> => {
  const form = Form.of(request.interaction)
  return {
    _tag: "InteractionRequest",
    request: asRecord(mask(InteractionRequest.encode(request))),
    form: form === undefined ? undefined : asRecord(mask(form))
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const asRecord = (value: unknown): { readonly [key: string]: unknown } => ({ ...Object(value) })
