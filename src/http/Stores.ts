/**
 * The stores behind a server, and what is to be found in them without running a session.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { RequestId, SessionId } from "../core/Id.js"
import type * as Host from "../host/Host.js"
import type * as SessionStore from "../journal/SessionStore.js"
import type { Listed } from "../journal/SessionSummary.js"
import type * as StoreError from "../journal/StoreError.js"

/** A session, and the store that has it. */
export interface Found {
  readonly store: SessionStore.Service
  readonly listed: Listed
}

export interface Stores {
  readonly all: ReadonlyArray<SessionStore.Service>
  readonly session: (id: string) => Effect.Effect<Found | undefined, StoreError.StoreUnusable>
  /** Those that were in a turn when their process ended and wait for nobody, or have their answer. */
  readonly interrupted: Effect.Effect<ReadonlyArray<SessionId>>
  /** How many requests wait, without reading them. */
  readonly openCount: Effect.Effect<number>
  /** Open or settled. */
  readonly request: (
    id: string
  ) => Effect.Effect<
    (SessionStore.KnownRequest & { readonly store: SessionStore.Service }) | undefined,
    StoreError.StoreUnusable | StoreError.JournalUnreadable
  >
  /** Of one session, or of all. Those of a store that cannot be read are left out; a sentence says so. */
  readonly openRequests: (of?: string) => Effect.Effect<{
    readonly waiting: ReadonlyArray<SessionStore.WaitingRequest>
    readonly remarks: ReadonlyArray<string>
  }>
}

export const make = (
  host: Host.Service
): Effect.Effect<Stores, Effect.Effect.Error<Host.Service["stores"]>, Scope.Scope> =>
  Effect.map(host.stores, (all): Stores => ({
    all,
    session: (id) =>
      Effect.gen(function* () {
        for (const store of all) {
          const [listed] = (yield* store.page({ id: SessionId.make(id), limit: 1 })).sessions
          if (listed !== undefined) return { store, listed }
        }
        return undefined
      }),
    interrupted: Effect.gen(function* () {
      const [, pages] = yield* Effect.partition(all, (store) => store.page({ limit: Infinity }))
      const cut = pages.flatMap(({ sessions }) => sessions.filter(({ state }) => state === "interrupted"))
      const [, found] = yield* Effect.partition(all, (store) => store.openRequests())
      const answered = found.flat().filter(({ answer }) => answer !== undefined)
      return [...new Set([...cut, ...answered].map(({ rootSessionId }) => rootSessionId))]
    }),
    openCount: Effect.map(
      Effect.partition(all, (store) => store.page({ waiting: true, limit: Infinity })),
      ([, pages]) => pages.flatMap(({ sessions }) => sessions).reduce((sum, { open }) => sum + open.length, 0)
    ),
    request: (id) =>
      Effect.gen(function* () {
        for (const store of all) {
          const found = yield* store.findRequest(RequestId.make(id))
          if (found !== undefined) return { ...found, store }
        }
        return undefined
      }),
    openRequests: (of) =>
      Effect.map(
        Effect.partition(all, (store) => store.openRequests(of === undefined ? undefined : SessionId.make(of))),
        ([failed, found]) => ({
          waiting: found.flat().sort((a, b) => a.request.issuedAt - b.request.issuedAt),
          remarks: failed.map(({ message }) => message)
        })
      )
  }))
