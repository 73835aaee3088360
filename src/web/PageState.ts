/**
 * What the page knows, as signals: the token, the place, the connection, the sessions, and the open requests.
 *
 * ```
 *   /v1/events ─► asked ─────► read /v1/requests again, soon       requests
 *              ├► settled ───► the card says by whom for 2 s ────► and leaves
 *              └► anything else of a session ─► read /v1/sessions again, later
 * ```
 */
import { batch, computed, signal } from "@preact/signals"
import type * as Api from "../http/Api.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as ServerCalls from "./ServerCalls.js"
import * as LiveEvents from "./LiveEvents.js"

/** An open request as the API lists it. */
export interface Asked extends Omit<Api.OpenRequest, "request" | "form"> {
  readonly request: typeof InteractionRequest.Encoded
  readonly form?: Form
}

/** The form of a request: a message, and a schema of an object of texts, numbers, yes or no, and choices. */
export interface Form {
  readonly message: string
  readonly requestedSchema: {
    readonly properties: { readonly [name: string]: Property }
    readonly required: ReadonlyArray<string>
  }
}

/** One field of a form. */
export interface Property {
  readonly type: "string" | "number" | "integer" | "boolean" | "array"
  readonly title?: string
  readonly description?: string
  readonly default?: string | number | boolean | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<string>
  readonly oneOf?: ReadonlyArray<Choice>
  readonly items?: { readonly enum?: ReadonlyArray<string>; readonly anyOf?: ReadonlyArray<Choice> }
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly format?: string
}

/** A value with its words. */
export interface Choice {
  readonly const: string
  readonly title: string
}

/** How a request ended: shown on its card before the card leaves. */
export interface Settled {
  readonly text: string
  readonly isLate: boolean
}

// -----------------------------------------------------------------------------------------------------------------
// state
// -----------------------------------------------------------------------------------------------------------------

/** The client of the tab's token; undefined without one. */
export const client = signal<ServerCalls.ServerCalls | undefined>(undefined)
/** Why the sign-in is shown. */
export const refusal = signal("")
export const connection = signal<"connecting" | "open" | "lost">("connecting")
/** The caller, as the audit has them. */
export const person = signal("")
export const workspaces = signal<ReadonlyArray<string>>([])
export const sessions = signal<ReadonlyArray<Api.SessionSummary>>([])
export const requests = signal<ReadonlyArray<Asked>>([])
/** Whether the requests were read once. */
export const isRead = signal(false)
/** Requests that ended a moment ago, by id. */
export const settled = signal<ReadonlyMap<string, Settled>>(new Map())
/** Who is missing of several people, by request. */
export const missing = signal<ReadonlyMap<string, string>>(new Map())
/** What the last action came to, for eyes and for readers of the screen. */
export const said = signal({ text: "", isUrgent: false, count: 0 })
/** The time, every few seconds, for ages. */
export const now = signal(Date.now())
/** The place in the page, as its fragment without `#/`. */
export const place = signal("")

/** Requests that wait for somebody. */
export const open = computed(() => {
  const gone = settled.value
  return requests.value.filter(({ answeredBy, request }) => !gone.has(request.requestId) && answeredBy === undefined)
})

// -----------------------------------------------------------------------------------------------------------------
// the tab
// -----------------------------------------------------------------------------------------------------------------

/** Takes the token out of the address, and follows the server with it. */
export const begin = (): void => {
  const [, given] = /^#token=([\w-]+)$/.exec(location.hash) ?? []
  if (given !== undefined) {
    sessionStorage.setItem(kept, given)
    history.replaceState(null, "", "/#/")
  }
  addEventListener("hashchange", () => {
    const [, later] = /^#token=([\w-]+)$/.exec(location.hash) ?? []
    if (later === undefined) place.value = location.hash.replace(/^#\/?/, "")
    else {
      history.replaceState(null, "", "/#/")
      signIn(later)
    }
  })
  place.value = location.hash.replace(/^#\/?/, "")
  setInterval(() => {
    now.value = Date.now()
    // A question that no other process asks again is in no journal, and so among no events.
    if (connection.value === "open" && !document.hidden) readRequests()
  }, 5_000)
  // Without a token the server says where it is.
  signIn(sessionStorage.getItem(kept) ?? "")
}

/** Follows the server with this token. */
export const signIn = (token: string): void => {
  end()
  const made = ServerCalls.make(token, signOut)
  connection.value = "connecting"
  void made.about().then((answer) => {
    if (!answer.isOk) {
      const { message, status } = answer.failure
      if (status === 0) setTimeout(() => signIn(token), 2_000)
      else if (status !== 401) signOut(message)
      return
    }
    sessionStorage.setItem(kept, token)
    batch(() => {
      client.value = made
      refusal.value = ""
      person.value = answer.value.person
      workspaces.value = answer.value.workspaces
    })
    end = LiveEvents.follow({
      path: "/events",
      token,
      take,
      state: (state) => {
        const isBack = state === "open" && connection.value === "lost"
        connection.value = state
        if (isBack) {
          say("The server is back.")
          refresh()
        }
      },
      refused: (_, message) => signOut(message)
    })
    refresh()
  })
}

const signOut = (message: string): void => {
  end()
  sessionStorage.removeItem(kept)
  batch(() => {
    client.value = undefined
    refusal.value = message
    requests.value = []
    sessions.value = []
  })
}

export const go = (to: string): void => {
  location.hash = `#/${to}`
}

export const say = (text: string, isUrgent = false): void => {
  // The same words again are said again.
  said.value = { text, isUrgent, count: said.peek().count + 1 }
}

// -----------------------------------------------------------------------------------------------------------------
// requests
// -----------------------------------------------------------------------------------------------------------------

/** Reads both lists again. */
export const refresh = (): void => {
  readRequests()
  readSessions()
}

/** Marks the card, which leaves after two seconds, and longer if the answer came too late. */
const settle = (requestId: string, how: Settled): void => {
  if (settled.value.has(requestId)) return
  settled.value = new Map(settled.value).set(requestId, how)
  setTimeout(
    () => {
      batch(() => {
        requests.value = requests.value.filter(({ request }) => request.requestId !== requestId)
        const rest = new Map(settled.value)
        rest.delete(requestId)
        settled.value = rest
      })
    },
    how.isLate ? 5_000 : 2_000
  )
}

/** Sends an answer, one at a time for a request; yields a failure that the card has to show. */
export const answer = async (
  requestId: string,
  given: ServerCalls.Given,
  words: string
): Promise<ServerCalls.Failure | undefined> => {
  if (sending.has(requestId)) {
    say("An answer to this question is on its way.")
    return undefined
  }
  sending.add(requestId)
  const answered = await client.value?.answer(requestId, { ...given, id: crypto.randomUUID() })
  sending.delete(requestId)
  if (answered === undefined) return undefined
  if (answered.isOk) {
    const { value } = answered
    if (value.status === "voted") {
      missing.value = new Map(missing.value).set(requestId, value.missing ?? "")
      say(`Your vote counts. Missing: ${value.missing ?? ""}.`)
      readRequests()
    } else {
      settle(requestId, { text: `${words} by you`, isLate: false })
      say(`${words}.`)
    }
    return undefined
  }
  const { failure } = answered
  if (failure.winner !== undefined) {
    const text = `Your answer came too late: ${failure.winner} was first.`
    settle(requestId, { text, isLate: true })
    say(text, true)
    return undefined
  }
  // It may have counted, or somebody else's may have.
  readRequests()
  if (failure.status === 404) settle(requestId, { text: "This question is gone.", isLate: true })
  say(failure.message, true)
  return failure
}

/** Withdraws a request. */
export const cancel = async (requestId: string): Promise<ServerCalls.Failure | undefined> => {
  const done = await client.value?.cancel(requestId)
  if (done === undefined) return undefined
  if (done.isOk) {
    settle(requestId, { text: "Cancelled by you", isLate: false })
    say("Cancelled.")
    return undefined
  }
  const { winner } = done.failure
  if (winner === undefined) return done.failure
  settle(requestId, { text: `Too late: ${winner} was first.`, isLate: true })
  return undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The name under which the tab keeps the token. */
const kept = "assent-token"

let end: () => void = () => {}

/** Requests to which an answer is on its way. The reply to it says more than the event that may come first. */
const sending = new Set<string>()

const words: { readonly [status: string]: string } = {
  InteractionAnswered: "Answered by",
  InteractionCancelled: "Cancelled by",
  InteractionTimedOut: "Timed out by"
}

const take = (pieces: ReadonlyArray<LiveEvents.Piece>): void =>
  batch(() => {
    for (const piece of pieces) {
      if (piece.event === "snapshot") refresh()
      if (piece.event === "failed") say(piece.data.message, true)
      if (piece.event !== "message") continue
      const { data } = piece
      switch (data._tag) {
        case "InteractionRequested":
          readRequests()
          break
        case "InteractionAnswered":
        case "InteractionCancelled":
        case "InteractionTimedOut": {
          if (sending.has(data.requestId)) break
          const by = data.by ?? "the agent"
          settle(data.requestId, { text: `${words[data._tag]} ${by}${toldOf(data)}`, isLate: false })
          break
        }
        case "InteractionUnavailable":
          settle(data.requestId, { text: `Nobody can answer any more: ${data.reason}`, isLate: false })
          break
        case "InteractionVoted":
          missing.value = new Map(missing.value).set(data.requestId, data.missing ?? "")
          readRequests()
          break
        default:
          break
      }
    }
    readSessions()
  })

/** What somebody answered to an approval, in a word. */
const toldOf = (event: LiveEvents.LiveEvent): string => {
  if (event._tag !== "InteractionAnswered" || typeof event.value !== "object" || event.value === null) return ""
  return "decision" in event.value ? `: ${String(event.value.decision)}` : ""
}

/** Runs soon after it is called, once for many calls, and not while it runs. */
const throttled = (run: () => Promise<void>, delay: () => number): (() => void) => {
  let state: "idle" | "waiting" | "running" | "again" = "idle"
  const start = () => {
    state = "waiting"
    setTimeout(() => {
      state = "running"
      void run().finally(() => {
        if (state === "again") start()
        else state = "idle"
      })
    }, delay())
  }
  return () => {
    if (state === "idle") start()
    else if (state === "running") state = "again"
  }
}

const readRequests = throttled(
  async () => {
    const answered = await client.value?.requests()
    if (answered?.isOk !== true) return
    const gone = settled.value
    // The server says what an encoded request is.
    const found = answered.value.requests as unknown as ReadonlyArray<Asked>
    const ids = new Set(found.map(({ request }) => request.requestId))
    batch(() => {
      const leaving = requests.value.filter(({ request }) => gone.has(request.requestId) && !ids.has(request.requestId))
      requests.value = [...found, ...leaving].sort((a, b) => a.request.issuedAt - b.request.issuedAt)
      isRead.value = true
    })
  },
  () => 60 + requests.value.length
)

const readSessions = throttled(
  async () => {
    const answered = await client.value?.sessions()
    if (answered?.isOk === true) sessions.value = answered.value.sessions
  },
  () => 500
)
