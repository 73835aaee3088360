/** The sessions of a server, for a surface that shows them. The server keeps those that the surface leaves. */
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RequestId, SessionId } from "../core/Id.js"
import type { ShownSession, ShownSessions } from "../host/SessionHandle.js"
import type * as SessionName from "../host/SessionName.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as Summary from "../journal/SessionSummary.js"
import type { Listed } from "../journal/SessionSummary.js"
import * as StoreError from "../journal/StoreError.js"
import type { SessionSummary } from "./Api.js"
import * as ApiClient from "./ApiClient.js"
import * as RemoteSession from "./RemoteSession.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Leaves all sessions when the scope closes. */
export const make = (client: ApiClient.ApiClient): Effect.Effect<ShownSessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const shown = new Map<string, Scope.CloseableScope>()
    const call = <A, E>(effect: Effect.Effect<A, E>) => ApiClient.failing(client, effect)

    const close = (id: string) =>
      Effect.suspend(() => {
        const own = shown.get(id)
        shown.delete(id)
        return own === undefined ? Effect.void : Scope.close(own, Exit.void)
      })

    const show = (id: string, workspace: string): Effect.Effect<ShownSession, ApiClient.CallFailed> =>
      Effect.gen(function* () {
        yield* close(id)
        const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
        shown.set(id, own)
        const heard = () => Effect.void
        // Written by the connection, read by the surface. When it is full, the oldest is left out. It ends with the session.
        const remarks = yield* Scope.extend(Effect.acquireRelease(Queue.sliding<string>(64), Queue.shutdown), own)
        const say = (sentence: string) => Effect.asVoid(Queue.offer(remarks, sentence))
        const session = yield* Effect.onError(
          Scope.extend(RemoteSession.attach({ client, id, say, heard, apart: true }), own),
          () => close(id)
        )
        return {
          id: session.id,
          workspace: session.snapshot.workspace ?? workspace,
          agent: session,
          run: (input) => session.send(input),
          read: Effect.map(session.past, (past) => ({ past, next: session.events.stream })),
          toolOf: () => undefined,
          models: yield* Effect.orElseSucceed(
            Effect.map(call(client.control.models({ path: { sessionId: id } })), ({ models }) => models),
            () => []
          ),
          remarks: Stream.fromQueue(remarks),
          setModel: session.setModel,
          attach: session.attach,
          closed: Effect.asVoid(session.done)
        }
      })

    return {
      isHere: false,
      create: ({ addDirs, workspace }) =>
        addDirs.length > 0
          ? Effect.fail(notHere)
          : Effect.flatMap(call(client.sessions.create({ payload: { workspace } })), ({ sessionId }) =>
              show(sessionId, workspace)
            ),
      open: (id, { addDirs, workspace }) =>
        addDirs.length > 0
          ? Effect.fail(notHere)
          : Effect.filterOrFail(
              show(id, workspace),
              (found) => found.workspace === workspace,
              (found) =>
                new ApiClient.CallFailed({
                  _tag: "SessionElsewhere",
                  message: `Session ${id} works in ${found.workspace}.`
                })
            ),
      list: ({ after, limit, workspace }) =>
        Effect.map(call(client.sessions.list({ urlParams: { after, limit, workspace } })), ({ next, sessions }) => ({
          sessions: sessions.map(({ lastActivity, sessionId, title, workspace }) => ({
            id: sessionId,
            title,
            workspace,
            lastActivity
          })),
          next
        })),
      close,
      delete: (id) =>
        Effect.zipRight(close(id), Effect.asVoid(call(client.sessions.remove({ path: { sessionId: id } }))))
    }
  })

/** All sessions of a server, for a person who names one of them. The server runs them, so no process has to end first. */
export const list = (client: ApiClient.ApiClient): SessionName.Sessions => ({
  page: (query) =>
    ApiClient.failing(client, client.sessions.list({ urlParams: { limit: 1_000 } })).pipe(
      Effect.mapBoth({
        onSuccess: ({ sessions }) => SessionStore.paged(sessions.map(listed), query),
        onFailure: ({ message }) =>
          new StoreError.StoreUnusable({
            store: client.url,
            problem: "unavailable",
            reason: message.replace(/\.$/, "")
          })
      })
    )
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const listed = ({ created, lastActivity, model, open, sessionId, status, title, turns }: SessionSummary): Listed => ({
  ...Summary.empty(SessionId.make(sessionId), created),
  lastActivity,
  title,
  turns,
  model,
  state: status,
  open: open.map((requestId) => ({ requestId: RequestId.make(requestId), kind: "" }))
})

const notHere = new ApiClient.CallFailed({
  _tag: "WorkspaceRefused",
  message: "A server works in the directories that it was started with. Leave out further directories."
})
