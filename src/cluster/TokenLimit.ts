/**
 * Ends the turns of tenants that have used their tokens of the day. Each node looks after the sessions that it runs.
 *
 * ```
 *   each 5 seconds: sessions at work ─┬─► their tenants ─► limits ─► tokens of today ─► ledgers halt, or go on
 *   a session comes into memory ──────┘
 * ```
 *
 * A turn ends before its next model call. New words are refused at the API, and do not wait for this.
 */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Host from "../host/Host.js"
import * as Tenancy from "../http/Tenancy.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import type { Keys } from "./Keys.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The same host, which looks until the scope closes, and at each session that comes into memory. */
export const over = (
  host: Host.Service,
  store: Pick<SessionStore.Service, "list" | "tally">,
  { limitsOf }: Pick<Keys, "limitsOf">
): Effect.Effect<Host.Service, never, Scope.Scope> =>
  Effect.gen(function* () {
    const judge = (sessions: ReadonlyArray<Host.LiveSession>) =>
      Effect.gen(function* () {
        const tenants = Arr.dedupe(sessions.flatMap(({ id }) => Host.tenantOf(id) ?? []))
        if (tenants.length === 0) return
        const limits = yield* limitsOf(tenants)
        for (const tenant of tenants) {
          const limit = limits.get(tenant)?.tokens
          const used = limit === undefined ? 0 : (yield* SessionStore.tally(store, `${tenant}.`)).tokens
          const reason = limit === undefined || used < limit ? undefined : Tenancy.fullText(tenant, "tokens", limit)
          for (const { agent, id } of sessions) if (Host.tenantOf(id) === tenant) agent.ledger.halt(reason)
        }
      })
    const concerned = Effect.flatMap(
      host.live,
      Effect.filter(({ agent }) =>
        agent.ledger.halted === undefined
          ? Effect.map(agent.agents, (all) => all.some(({ session }) => !session.isIdle()))
          : Effect.succeed(true)
      )
    )
    // At the beginning of a day too, so that nobody waits then.
    const pause = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.sleep(Math.min(every, SessionSummary.beginOf(SessionSummary.dayOf(now) + 1) - now))
    )
    // A database that does not answer now is asked again.
    const look = Effect.ignore(Effect.flatMap(concerned, judge))
    yield* Effect.forkScoped(Effect.forever(Effect.zipRight(look, pause)))
    const judged = new WeakSet<Host.LiveSession>()
    return {
      ...host,
      // Before an answer lets its turn go on.
      open: (id, options) =>
        Effect.tap(host.open(id, options), (session) =>
          judged.has(session)
            ? Effect.void
            : Effect.zipRight(
                Effect.ignore(judge([session])),
                Effect.sync(() => judged.add(session))
              )
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Milliseconds. */
const every = 5_000
