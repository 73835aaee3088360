/** The client of the HTTP API: paths and bodies by the types of its declaration, sent with the token of this tab. */
import type * as Api from "../http/Api.js"

/** Why a request was refused. `status` 0: the server could not be reached. */
export interface Failure {
  readonly status: number
  /** A sentence that says what to do. */
  readonly message: string
  /** The author of the answer that came first. */
  readonly winner?: string
  /** What is wrong field by field, if a form was filled in. */
  readonly problems?: ReadonlyArray<{ readonly field?: string; readonly message: string }>
  /** The files of a workspace as they are now, if they changed since the page showed them. */
  readonly trust?: Api.WorkspaceTrust
}

export type Result<A> = { readonly isOk: true; readonly value: A } | { readonly isOk: false; readonly failure: Failure }

/** What an answer came to. */
export interface Outcome {
  readonly status: "answered" | "voted"
  readonly missing?: string
}

/** A filled form, or an answer as the API takes it. */
export interface Given {
  readonly answer?: unknown
  readonly form?: unknown
}

type Mode = "ask" | "plan" | "allow" | "deny"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `unauthorized` hears of every answer that says that the token does not count. */
export const make = (token: string, unauthorized: (message: string) => void) => {
  const send = async <A>(method: string, path: string, body?: unknown): Promise<Result<A>> => {
    try {
      const response = await fetch(`/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" })
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const value = await response.json()
      if (response.ok) return { isOk: true, value }
      const failure: Failure = { ...value, status: response.status, message: String(value.message) }
      if (response.status === 401) unauthorized(failure.message)
      return { isOk: false, failure }
    } catch {
      return { isOk: false, failure: { status: 0, message: "The server cannot be reached. Nothing was sent." } }
    }
  }
  const get = <A>(path: string) => send<A>("GET", path)
  const post = <A>(path: string, body: unknown) => send<A>("POST", path, body)
  const session = (id: string, rest: string) => `/sessions/${encodeURIComponent(id)}${rest}`

  return {
    token,
    about: () => get<{ readonly person: string; readonly workspaces: ReadonlyArray<string> }>("/about"),
    workspaces: () => get<{ readonly workspaces: ReadonlyArray<Api.WorkspaceTrust> }>("/workspaces"),
    trust: (body: { readonly workspace: string; readonly digest: string }) =>
      post<Api.WorkspaceTrust>("/workspaces/trust", body),
    sessions: (after?: string) =>
      get<{ readonly sessions: ReadonlyArray<Api.SessionSummary>; readonly next?: string }>(
        `/sessions?limit=200${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`
      ),
    session: (id: string) => get<Api.SessionSnapshot>(session(id, "")),
    create: (body: { readonly workspace?: string; readonly model?: string }) =>
      post<{ readonly sessionId: string }>("/sessions", body),
    remove: (id: string) => send<unknown>("DELETE", session(id, "")),
    say: (
      id: string,
      body: {
        readonly text: string
        readonly target?: string
        readonly delivery?: "steer" | "queue"
        readonly id: string
      }
    ) => post<unknown>(session(id, "/messages"), body),
    interrupt: (id: string, body: { readonly toolCallId?: string; readonly target?: string }) =>
      post<unknown>(session(id, "/interrupt"), body),
    permissions: (id: string, command: string) =>
      post<{ readonly lines: ReadonlyArray<string> }>(session(id, "/permissions"), { command }),
    setMode: (id: string, mode: Mode) => post<unknown>(session(id, "/mode"), { mode }),
    setModel: (id: string, model: string) => post<unknown>(session(id, "/model"), { model }),
    models: (id: string) => get<{ readonly models: ReadonlyArray<string> }>(session(id, "/models")),
    turns: (id: string) => get<{ readonly turns: ReadonlyArray<Api.SessionTurn> }>(session(id, "/turns")),
    fork: (id: string, turn: number) =>
      post<{ readonly sessionId: string; readonly words: string }>(session(id, "/fork"), { turn }),
    compact: (id: string) => post<{ readonly removed: number }>(session(id, "/compact"), {}),
    audit: (id: string) => get<Api.SessionAudit>(session(id, "/audit")),
    requests: () =>
      get<{ readonly requests: ReadonlyArray<Api.OpenRequest>; readonly remarks: ReadonlyArray<string> }>("/requests"),
    answer: (requestId: string, given: Given & { readonly id: string }) =>
      post<Outcome>(`/requests/${encodeURIComponent(requestId)}/answer`, given),
    cancel: (requestId: string) => post<unknown>(`/requests/${encodeURIComponent(requestId)}/cancel`, {})
  }
}

export type ServerCalls = ReturnType<typeof make>
