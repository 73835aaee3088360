/**
 * What one caller sees and may do: the verbs of their key, and the sessions of their tenant.
 *
 * ```
 *   caller ─► verbs of the path permitted? ─► view ─► id of their tenant ─► there? ─► Sessions
 * ```
 *
 * Ids of a tenant's sessions begin with its name: `acme.ses_1`. The name comes from the caller and never from a path, so no
 * path leads to a session of another tenant.
 */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import type * as Host from "../host/Host.js"
import * as Interaction from "../interaction/Interaction.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as SessionSummary from "../journal/SessionSummary.js"
import * as Api from "./Api.js"
import type { Given } from "./Answers.js"
import * as PageRun from "./PageRun.js"
import * as Refusal from "./Refusal.js"
import type * as RouteTable from "./RouteTable.js"
import type * as Runs from "./Runs.js"
import type * as Sessions from "./Sessions.js"
import type { Found, Stores } from "./Stores.js"

type Refused = Refusal.Refusal | Api.TooManyRequests

/** A server behind its callers. */
export interface Behind {
  readonly sessions: Sessions.Sessions
  readonly stores: Stores
  readonly list: (query: Host.Query) => Effect.Effect<Host.Page, Refusal.Refusal>
}

/** What a caller has of it. A foreign session is none. */
export interface View extends Pick<Behind, "list"> {
  readonly sessions: {
    readonly [Act in keyof Sessions.Sessions]: Sessions.Sessions[Act] extends (
      ...args: infer Args
    ) => Effect.Effect<infer A, infer E, infer R>
      ? (...args: Args) => Effect.Effect<A, E | Refused, R>
      : Sessions.Sessions[Act]
  }
  /** To read it. */
  readonly found: (id: string) => Effect.Effect<Found, Refusal.Refusal>
  readonly openRequests: (session: string | undefined) => Effect.Effect<
    {
      readonly waiting: ReadonlyArray<SessionStore.WaitingRequest>
      readonly remarks: ReadonlyArray<string>
    },
    Refusal.Refusal
  >
  /** Whether the session of a root is theirs. */
  readonly sees: (rootSessionId: string) => boolean
  /** Fails if the tenant has as many sessions as it may. */
  readonly room: Effect.Effect<void, Refused>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The part of a server that this caller has. */
export const view = ({ list, sessions, stores }: Behind, person: Api.Person): View => {
  const { limits = {}, may, tenant } = person
  const prefix = tenant === undefined ? "" : `${tenant}.`
  const fullOf = (id: string) => (id.startsWith(prefix) ? id : `${prefix}${id}`)
  const sees = (rootSessionId: string) => rootSessionId.startsWith(prefix)

  const look = (id: string): Effect.Effect<Found, Refusal.Refusal> =>
    Effect.flatMap(Refusal.of(stores.session(fullOf(id))), (found) =>
      found === undefined ? notThere("session", id) : Effect.succeed(found)
    )

  /** With the session of this id, if it is there. */
  const on = <A, E, R>(id: string, act: (id: string, listed: SessionSummary.Listed) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(look(id), ({ listed }) => act(listed.rootSessionId, listed))

  /** Fails as if it were none for the request of another tenant, and of a session that no store has. */
  const requireTheirs = (requestId: string) =>
    Effect.flatMap(
      prefix === ""
        ? Effect.succeed(true)
        : Effect.map(
            Refusal.of(stores.request(requestId)),
            (found) => found !== undefined && sees(found.rootSessionId)
          ),
      (isTheirs) => (isTheirs ? Effect.void : notThere("request", requestId))
    )

  /** Fails if the caller may not answer requests of this kind. */
  const needKind = (requestId: string) =>
    Effect.gen(function* () {
      if (may === undefined || may.includes("answer")) return
      const found = yield* Refusal.of(stores.request(requestId))
      // Some requests are at their brokers only.
      const open = found === undefined ? yield* sessions.open(undefined) : []
      const interaction =
        found?.request.interaction ??
        open.find(({ request }) => request["requestId"] === requestId)?.request["interaction"]
      const kind = Predicate.hasProperty(interaction, "_tag") ? String(interaction._tag) : undefined
      if (kind === undefined) return yield* notThere("request", requestId)
      if (!kindsOf(may).includes(kind))
        return yield* new Api.Forbidden({
          message: `Your key does not permit "answer" for a request of the kind ${kind}, but for ${kindsOf(may).join(", ")}. Ask for a key that does.`
        })
    })

  const tally = Effect.map(
    Effect.forEach(stores.all, (store) => Refusal.of(SessionStore.tally(store, prefix))),
    (tallies) => (count: Counted) => tallies.reduce((sum, tally) => sum + tally[count], 0)
  )
  const within = (...counts: ReadonlyArray<Counted>): Effect.Effect<void, Refused> =>
    Effect.gen(function* () {
      if (counts.every((count) => limits[count] === undefined)) return
      const found = yield* tally
      for (const count of counts) {
        const limit = limits[count]
        if (limit === undefined || found(count) < limit) continue
        const after = count === "tokens" ? untilTomorrow(yield* Clock.currentTimeMillis) : 10
        return yield* tooMany(fullText(tenant, count, limit), after)
      }
    })
  const room = within("sessions")

  return {
    sees,
    room,
    found: look,
    list: (query) => list(prefix === "" ? query : { ...query, prefix }),
    openRequests: (session) =>
      Effect.gen(function* () {
        if (prefix === "") return yield* stores.openRequests(session)
        const waiting =
          session === undefined
            ? (yield* Effect.forEach(stores.all, (store) =>
                Refusal.of(store.page({ prefix, waiting: true, limit: Infinity }))
              )).flatMap(({ sessions }) => sessions.map(({ rootSessionId }) => rootSessionId))
            : [SessionId.make(fullOf(session))]
        const found = yield* Effect.forEach(waiting, (id) => stores.openRequests(id))
        return {
          waiting: found.flatMap(({ waiting }) => waiting).sort(SessionStore.byAge),
          remarks: [...new Set(found.flatMap(({ remarks }) => remarks))]
        }
      }),
    sessions: {
      create: ({ id, ...wishes }) =>
        Effect.gen(function* () {
          const own = id ?? (prefix === "" ? undefined : Id.session(yield* Id.IdGenerator))
          const full = own === undefined ? undefined : fullOf(own)
          // The same one again is the same session.
          const known = full === undefined ? undefined : yield* Refusal.of(stores.session(full))
          if (known === undefined) yield* room
          return yield* sessions.create({ ...wishes, id: full })
        }),
      present: (id) => on(id, sessions.present),
      open: (id) =>
        Effect.gen(function* () {
          const open = yield* sessions.open(id === undefined ? undefined : fullOf(id))
          return open.filter(({ sessionId }) => sees(sessionId))
        }),
      models: (id) => on(id, sessions.models),
      // Words into a turn that runs begin no other one.
      send: (id, words) =>
        on(id, (id, { inTurn }) =>
          Effect.zipRight(inTurn ? within("tokens") : within("turns", "tokens"), sessions.send(id, words))
        ),
      interrupt: (id, what) => on(id, (id) => sessions.interrupt(id, what)),
      permissions: (id, command, by) => on(id, (id) => sessions.permissions(id, command, by)),
      setMode: (id, mode, by) => on(id, (id) => sessions.setMode(id, mode, by)),
      setModel: (id, model, thinking) => on(id, (id) => sessions.setModel(id, model, thinking)),
      takeBack: (id, target) => on(id, (id) => sessions.takeBack(id, target)),
      compact: (id) => on(id, (id) => Effect.zipRight(within("tokens"), sessions.compact(id))),
      remove: (id) => on(id, sessions.remove),
      answer: (requestId: string, given: Given, by) =>
        Effect.zipRight(
          Effect.all([requireTheirs(requestId), needKind(requestId)], { discard: true }),
          sessions.answer(requestId, given, by)
        ),
      cancel: (requestId, by) => Effect.zipRight(requireTheirs(requestId), sessions.cancel(requestId, by)),
      // A page gives words and answers in one.
      run: (id: string, page: PageRun.Page, by: Runs.By) => {
        if (page._tag === "AiSdkAgain") return on(id, (id) => sessions.run(id, page, by))
        const { answers, hasWords } = PageRun.contentOf(page)
        return on(id, (id) =>
          Effect.gen(function* () {
            yield* Effect.forEach(answers, needKind, { discard: true })
            yield* hasWords ? within("turns", "tokens") : within("turns")
            return yield* sessions.run(id, page, by)
          })
        )
      },
      events: (id, after) =>
        Stream.unwrap(Effect.map(look(id), ({ listed }) => sessions.events(listed.rootSessionId, after)))
    }
  }
}

/** Fails for a caller who sends more requests a second than the tenant may. */
export const rate = (): ((caller: Api.Person) => Effect.Effect<void, Api.TooManyRequests>) => {
  const buckets = new Map<string, Bucket>()
  return ({ limits, tenant = "" }) => {
    const requests = limits?.requests
    return requests === undefined
      ? Effect.void
      : Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const known = buckets.get(tenant) ?? { left: requests, at: now }
          const left = Math.min(requests, known.left + ((now - known.at) * requests) / 1_000)
          buckets.set(tenant, { left: left < 1 ? left : left - 1, at: now })
          return left < 1
            ? tooMany(`${who(tenant)} may send ${requests} requests a second. Send fewer.`, 1)
            : Effect.void
        })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/** Fails unless the caller may use a path with this rule. */
export const permit = (
  { may, tenant }: Api.Person,
  rule: Pick<RouteTable.Rule, "tenant" | "verbs">
): Effect.Effect<void, Api.Forbidden> => {
  const verbs = rule.verbs === "open" ? [] : rule.verbs
  const missing = verbs.find(
    (verb) => may !== undefined && !may.includes(verb) && (verb !== "answer" || kindsOf(may).length === 0)
  )
  if (missing !== undefined)
    return new Api.Forbidden({ message: `Your key does not permit "${missing}". Ask for one that does.` })
  return rule.tenant === "whole" && tenant !== undefined
    ? new Api.Forbidden({ message: "The key of a tenant does not permit this. Use the token of the server." })
    : Effect.void
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** Says that a tenant has as much as it may. */
export const fullText = (tenant: string | undefined, count: Counted, limit: number): string =>
  `${who(tenant)} ${full[count](limit)}`

/** What a key may do, as a person writes it: `read,answer:Approve`. Everything if nothing is written. A left is a sentence. */
export const permitsIn = (text: string | undefined): Either.Either<ReadonlyArray<Api.Permit>, string> => {
  if (text === undefined) return Either.right(Api.Verb.literals)
  return Either.map(Either.all(text.split(",").map(permitIn)), (all) => {
    const each = [...new Set(all)]
    return each.includes("answer") ? each.filter((permit) => !isOfKind(permit)) : each
  })
}

/** Whether it can be the name of a tenant, which is part of ids, paths and names of files. */
export const isTenant = (name: string): boolean => /^[a-z0-9][a-z0-9_-]{0,31}$/.test(name)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isPermit = Schema.is(Api.Permit)

const ofKind = "answer:"

const isOfKind = (permit: Api.Permit): boolean => permit.startsWith(ofKind)

/** The kinds of requests that may be answered one by one. */
const kindsOf = (may: ReadonlyArray<Api.Permit>): ReadonlyArray<string> =>
  may.filter(isOfKind).map((permit) => permit.slice(ofKind.length))

const permitIn = (text: string): Either.Either<Api.Permit, string> => {
  const word = text.trim()
  if (isPermit(word)) return Either.right(word)
  if (word.startsWith(ofKind))
    return Either.left(
      `There is no kind of request ${JSON.stringify(word.slice(ofKind.length))}. A key may answer ${Object.keys(Interaction.kinds).join(", ")}. Give one such as answer:Approve.`
    )
  return Either.left(
    `A key may ${Api.Verb.literals.join(", ")}, and not ${JSON.stringify(word)}. Give some of them, with commas.`
  )
}

/** Requests that may come at once, as of this time. */
interface Bucket {
  readonly left: number
  readonly at: number
}

/** What a tenant may have so much of. */
export type Counted = "sessions" | "turns" | "tokens"

const counted = (limit: number, noun: string): string => (limit === 1 ? `1 ${noun}` : `${limit} ${noun}s`)

const full: { readonly [Count in Counted]: (limit: number) => string } = {
  sessions: (limit) => `may have ${counted(limit, "session")}. Delete one first.`,
  turns: (limit) => `may have ${counted(limit, "turn")} at work. Try again when one has ended.`,
  tokens: (limit) => `may use ${limit} tokens a day. Try again after midnight in UTC.`
}

/** Seconds. */
const untilTomorrow = (now: number): number =>
  Math.ceil((SessionSummary.beginOf(SessionSummary.dayOf(now) + 1) - now) / 1_000)

const notThere = (what: string, id: string) =>
  new Api.NotFound({ message: `There is no ${what} ${JSON.stringify(id.slice(0, 200))}.` })

const who = (tenant: string | undefined): string =>
  tenant === undefined || tenant === "" ? "The callers of this server" : `The tenant ${tenant}`

/** `after`: seconds. */
export const tooMany = (message: string, after: number) =>
  Effect.zipRight(
    HttpApp.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", String(after)))
    ),
    new Api.TooManyRequests({ message })
  )
