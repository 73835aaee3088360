/**
 * A host that has one session and no other: a program that runs one shows it to others. A request for another session
 * hears that there is none.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SessionId } from "../core/Id.js"
import type * as SessionStore from "../journal/SessionStore.js"
import * as StoreError from "../journal/StoreError.js"
import type * as Host from "./Host.js"
import * as HostError from "./HostError.js"
import type * as Launch from "./Launch.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The session of an agent that `host` started, in the store that keeps it. */
export const make = (
  host: Host.Service,
  { agent, files, jobs, redactor, review, trail }: Launch.Started,
  workspace: string,
  store: SessionStore.Service
): Host.Service => {
  const { id } = agent
  const live: Host.LiveSession = {
    id,
    workspace,
    agent,
    attach: (interactor) => agent.broker.attach(review(interactor)),
    trail,
    wantsTrust: false,
    jobs,
    files,
    redactor,
    models: [],
    setModel: (model) =>
      Effect.fail(
        new HostError.ModelRefused({
          model,
          message: "The command line of this run chose its model. Start another run to change it."
        })
      ),
    lastActivity: Clock.currentTimeMillis,
    close: agent.shutdown,
    closed: Effect.asVoid(agent.done)
  }
  const own = onlyOf(store, id)
  const refused = (workspace: string) => new HostError.WorkspaceRefused({ workspace, problem: "notPermitted" })
  const stored = Effect.map(own.page(), ({ sessions }) =>
    sessions.map((listed) => ({ ...listed, workspace, isLive: true }))
  )
  return {
    ...host,
    create: ({ workspace }) => refused(workspace),
    trust: refused,
    giveTrust: refused,
    open: (wanted) =>
      wanted === id ? Effect.succeed(live) : Effect.fail(new StoreError.SessionUnknown({ rootSessionId: wanted })),
    live: Effect.succeed([live]),
    list: () => Effect.map(stored, (sessions) => ({ sessions, remarks: [] })),
    stores: Effect.succeed([own]),
    find: (wanted) => Effect.map(stored, (sessions) => sessions.find(({ rootSessionId }) => rootSessionId === wanted)),
    close: (wanted) => (wanted === id ? agent.shutdown : Effect.void),
    delete: (wanted) =>
      Effect.fail(
        wanted === id
          ? new HostError.SessionRunning({ rootSessionId: id })
          : new StoreError.SessionUnknown({ rootSessionId: wanted })
      )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The store, as far as it is about this session. */
const onlyOf = (store: SessionStore.Service, id: SessionId): SessionStore.Service => ({
  ...store,
  list: Effect.map(store.list, (all) => all.filter(({ rootSessionId }) => rootSessionId === id)),
  page: (query) =>
    query?.id === undefined || query.id === id ? store.page({ ...query, id }) : Effect.succeed({ sessions: [] }),
  openRequests: (root) => (root === undefined || root === id ? store.openRequests(id) : Effect.succeed([])),
  findRequest: (requestId) =>
    Effect.map(store.findRequest(requestId), (found) => (found?.rootSessionId === id ? found : undefined)),
  // A place of another session stays a place, and nothing is said of it.
  readAll: (query) =>
    Effect.map(store.readAll(query), (all) =>
      all.map((one) =>
        one.rootSessionId === id
          ? one
          : {
              ...one,
              written: Either.left(
                new StoreError.JournalUnreadable({ rootSessionId: id, seq: 0, reason: "it is another session's" })
              )
            }
      )
    )
})
