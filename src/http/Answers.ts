/**
 * Answers to requests. The broker of a live session takes them, else the store, and then the session resumes.
 *
 * ```
 *   open at a broker here ──────────────────────► broker.answer      the first answer wins
 *   open in a store, nobody runs the session ───► store.answer, SessionVote ─► host.open: it goes on with the answer
 *   settled, also by a former process ──────────► InteractionAlreadyAnswered, with the winner
 * ```
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as RemoteInteractor from "../channel/RemoteInteractor.js"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as Digest from "../core/Digest.js"
import type * as Host from "../host/Host.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Form from "../interaction/Form.js"
import * as Interaction from "../interaction/Interaction.js"
import * as Needs from "../interaction/Needs.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Principal from "../interaction/Principal.js"
import * as Tally from "../interaction/Tally.js"
import type { JournalEntry } from "../journal/JournalEntry.js"
import * as SessionVote from "../journal/SessionVote.js"
import * as Api from "./Api.js"
import * as Refusal from "./Refusal.js"
import type { Stores } from "./Stores.js"

/** An answer as it came. */
export interface Given {
  readonly answer?: unknown
  readonly form?: unknown
  /** Of the answer: the same one again succeeds again. */
  readonly id?: string | undefined
  /** Nobody can read it on its way. Passwords are taken only then. */
  readonly isPrivate: boolean
}

export interface Answers {
  readonly answer: (
    requestId: string,
    given: Given,
    by: Api.Person
  ) => Effect.Effect<
    | { readonly status: "answered"; readonly again?: true | undefined }
    | { readonly status: "voted"; readonly missing: string },
    Refusal.Refusal | Api.InteractionAlreadyAnswered
  >
  readonly cancel: (
    requestId: string,
    by: Api.Person
  ) => Effect.Effect<void, Refusal.Refusal | Api.InteractionAlreadyAnswered>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** `owned`: no other process runs these sessions, so a session that asks goes on before it gets its answer. */
export const make = (host: Host.Service, stores: Stores, owned = false): Answers => {
  /** Answers that counted, by request: whose, under which id, and a digest. The oldest are forgotten. */
  const counted = new Map<string, { readonly key: string; readonly digest: string }>()
  const keyOf = (by: string, id: string | undefined) => JSON.stringify([by, id ?? null])
  const digestOf = ({ answer, form }: Given) => Digest.digest({ answer, form })
  const count = (requestId: string, by: string, given: Given) => {
    counted.set(requestId, { key: keyOf(by, given.id), digest: digestOf(given) })
    const [oldest] = counted.keys()
    if (counted.size > remembered && oldest !== undefined) counted.delete(oldest)
  }

  /** Open requests with their sessions, as of the last look at all of them: a look at each takes long. */
  const seen = new Map<string, Host.LiveSession>()
  const openAt = (session: Host.LiveSession, requestId: string) =>
    Effect.map(session.agent.broker.open, (open) => {
      for (const one of open) seen.set(one.requestId, session)
      const request = open.find((one) => one.requestId === requestId)
      return request === undefined ? undefined : { session, request }
    })

  /** The live session that asks, with its request. */
  const liveOf = (requestId: string) =>
    Effect.gen(function* () {
      const known = seen.get(requestId)
      const there = known === undefined ? undefined : yield* openAt(known, requestId)
      if (there !== undefined) return there
      seen.clear()
      const all = yield* Effect.forEach(yield* host.live, (session) => openAt(session, requestId))
      return all.find((one) => one !== undefined)
    })

  /** Why it cannot be answered any more. */
  const late = (requestId: string, given: Given | undefined, by: string) =>
    Effect.gen(function* () {
      const found = yield* Refusal.of(stores.request(requestId))
      if (found === undefined)
        return yield* new Api.NotFound({ message: `There is no request ${JSON.stringify(requestId)}.` })
      const { settled } = found
      if (settled === undefined) return found
      const winner = settled.by ?? settled.status
      // A former process kept no ids: there the answer itself tells. Other words under the id are another answer.
      const known = counted.get(requestId)
      const isSame =
        given?.id !== undefined &&
        (known === undefined ? settled.by === by : known.key === keyOf(by, given.id)) &&
        (known?.digest === digestOf(given) || isAnswer(found.request, given, settled))
      if (isSame) return "again" as const
      return yield* new Api.InteractionAlreadyAnswered({
        requestId,
        winner,
        message:
          settled.by === undefined
            ? `Request ${requestId} ${endings[settled.status]}. No call waits for an answer to it.`
            : `Request ${requestId} is settled already, by ${winner}.`
      })
    })

  const understand = (request: InteractionRequest, given: Given, by: Api.Person) =>
    Effect.tap(
      Effect.suspend(() => encodedOf(request, given)),
      (encoded) => permit(request.interaction, encoded, by)
    )

  const encodedOf = (
    request: InteractionRequest,
    given: Given
  ): Effect.Effect<unknown, Api.BadRequest | Api.Unprocessable> => {
    if (Interaction.isSecret(request.interaction._tag) && !given.isPrivate) {
      return new Api.Unprocessable({
        message:
          "A secret is taken over a connection of this machine only. Put a proxy with TLS in front, on this machine."
      })
    }
    if ((given.answer === undefined) === (given.form === undefined)) {
      return new Api.BadRequest({ message: 'Give one of "answer" and "form".' })
    }
    if (given.form !== undefined) {
      return Either.mapBoth(Form.decode(request.interaction, given.form), {
        onLeft: (problems) => new Api.Unprocessable({ message: Form.told(request.interaction, problems), problems }),
        onRight: (answer) => Interaction.encodeAnswer(request.interaction, answer)
      })
    }
    const understood = RemoteInteractor.understand(request.interaction, {
      requestId: request.requestId,
      answer: given.answer
    })
    switch (understood._tag) {
      case "Answered":
        return Either.right(Interaction.encodeAnswer(request.interaction, understood.answer))
      case "Withdrawn":
        return Either.right(undefined)
      case "Misfit":
        return new Api.Unprocessable({ message: `The answer does not fit: ${understood.reason}` })
    }
  }

  /** Has the session ask again. A process that may lose it at any time must not write beside it. */
  const resumed = (requestId: string, found: { readonly rootSessionId: string }) =>
    Effect.gen(function* () {
      const session = yield* Refusal.of(host.open(found.rootSessionId))
      yield* askedAgain(session, requestId)
      return yield* liveOf(requestId)
    })

  /**
   * Settles what the session asks, and waits until the journal has it. False: it is not open. A session that leaves this
   * process at that moment may take an answer and write nothing more.
   */
  const kept = <E>(
    { agent: { feed }, closed }: Host.LiveSession,
    settle: Effect.Effect<boolean, E>,
    isWritten: (entry: JournalEntry) => boolean,
    isThere: Effect.Effect<boolean, Refusal.Refusal>
  ) =>
    Effect.gen(function* () {
      if (!owned || feed === undefined) return yield* Effect.either(settle)
      // Before: it may be written at once.
      const written = yield* feed.awaitEntry(isWritten)
      const outcome = yield* Effect.either(settle)
      if (Either.isLeft(outcome) || !outcome.right) return outcome
      // A loaded database takes its time.
      const seen = yield* Effect.timeoutOption(Effect.raceFirst(Effect.as(written, true), closed), "10 seconds")
      // A session that leaves writes what it has, or nothing.
      if (Option.getOrUndefined(seen) !== true && !(yield* isThere)) return yield* notNow
      return outcome
    }).pipe(Effect.scoped)

  const isSettled = (requestId: string) =>
    Effect.map(Refusal.of(stores.request(requestId)), (found) => found?.settled !== undefined)

  /** Whether the vote is written, or what it led to. */
  const isCast = (requestId: string, by: string) =>
    Effect.gen(function* () {
      const found = yield* Refusal.of(stores.request(requestId))
      if (found === undefined || found.settled !== undefined) return found !== undefined
      const entries = yield* Refusal.of(found.store.read(found.rootSessionId))
      return entries.some(
        ({ entry }) => entry._tag === "VoteGiven" && entry.requestId === requestId && Principal.isSame(entry.by, by)
      )
    })

  const answer: Answers["answer"] = (requestId, given, person) =>
    Effect.gen(function* () {
      const { name, roles } = person
      let live = yield* liveOf(requestId)
      if (live === undefined && owned) {
        const found = yield* late(requestId, given, name)
        if (found === "again") return { status: "answered", again: true } as const
        live = yield* resumed(requestId, found)
      }
      if (live !== undefined) {
        const { request, session } = live
        const encoded = yield* understand(request, given, person)
        const isVote = Ballot.isReserved(request.interaction)
        const settle =
          encoded === undefined
            ? session.agent.broker.cancel(requestId, name, roles)
            : Effect.as(session.agent.broker.answer(requestId, name, encoded, roles), true)
        const voter = isVote && encoded !== undefined ? name : undefined
        const isThere = voter === undefined ? isSettled(requestId) : isCast(requestId, voter)
        const outcome = yield* kept(session, settle, endOf(requestId, voter), isThere)
        if (Either.isRight(outcome) && outcome.right) {
          count(requestId, name, given)
          return isVote ? yield* standing(requestId) : ({ status: "answered" } as const)
        }
        if (Either.isLeft(outcome)) {
          const { left } = outcome
          if (left._tag === "MalformedAnswer" || left._tag === "VoteRefused") return yield* Refusal.make(left)
        }
      }
      const found = yield* late(requestId, given, name)
      if (found === "again") return { status: "answered", again: true } as const
      if (owned) return yield* notNow
      const { request, rootSessionId, store } = found
      const encoded = yield* understand(request, given, person)
      const resuming = (yield* host.live).find(({ id }) => id === rootSessionId)
      if (resuming !== undefined) {
        // It goes on here and has not asked this again yet: its store takes no answers.
        yield* askedAgain(resuming, requestId)
        return yield* answer(requestId, given, person)
      }
      const { interaction } = request
      // Its lock may be ours: it is about to go on here, and its broker takes the answer. Another process has it else.
      const goingOn = Effect.suspend(() =>
        Effect.zipRight(Refusal.of(host.open(rootSessionId)), answer(requestId, given, person))
      )
      let isStored = false
      if (encoded !== undefined && Ballot.isReserved(interaction)) {
        const vote = { rootSessionId, requestId: request.requestId, answer: encoded, by: name, roles }
        const voted = yield* Effect.either(SessionVote.give(store, vote))
        if (Either.isLeft(voted) && voted.left._tag === "SessionLocked") return yield* goingOn
        const { missing } = yield* Refusal.of(voted)
        if (missing !== undefined) return { status: "voted", missing } as const
        isStored = true
      } else if (encoded !== undefined && !Interaction.isSecret(interaction._tag)) {
        const kept = yield* Effect.either(store.answer(request.requestId, encoded, name))
        if (Either.isLeft(kept)) {
          const { left } = kept
          if (left._tag === "SessionLocked") return yield* goingOn
          if (left._tag !== "AnswerRefused" || left.problem !== "once") {
            yield* keptBefore(requestId, { ...given, encoded }, name, left)
            yield* Refusal.of(host.open(rootSessionId))
            return { status: "answered", again: true } as const
          }
        } else isStored = true
      }
      if (isStored) count(requestId, name, given)
      // The session goes on with it.
      const session = yield* Refusal.of(host.open(rootSessionId))
      if (isStored) return { status: "answered" } as const
      yield* askedAgain(session, requestId)
      if (encoded === undefined) yield* Refusal.of(session.agent.broker.cancel(requestId, name, roles))
      else yield* Refusal.of(session.agent.broker.answer(requestId, name, encoded, roles))
      count(requestId, name, given)
      return { status: "answered" } as const
    })

  /** False when it is not open. */
  const withdrawn = (session: Host.LiveSession, requestId: string, { name, roles }: Api.Person) =>
    Effect.flatten(
      kept(
        session,
        Refusal.of(session.agent.broker.cancel(requestId, name, roles)),
        endOf(requestId),
        isSettled(requestId)
      )
    )

  /**
   * An answer waits for the session to go on, which may have begun meanwhile. Succeeds if it is this one: a former process
   * may have stored it, and died before its client heard of that.
   */
  const keptBefore = (
    requestId: string,
    { encoded, ...given }: Given & { readonly encoded: unknown },
    name: string,
    error: Refusal.Known
  ) =>
    Effect.gen(function* () {
      if (error._tag !== "AnswerRefused" || error.problem !== "answered") return yield* Refusal.of(Effect.fail(error))
      const { waiting } = yield* stores.openRequests()
      const kept = waiting.find(({ request }) => request.requestId === requestId)?.answer
      if (kept === undefined && (yield* late(requestId, given, name)) === "again") return
      const isSame = kept?.by === name && canonicalJson(kept.answer) === canonicalJson(encoded)
      if (given.id !== undefined && isSame) return
      const winner = kept?.by ?? "somebody else"
      return yield* new Api.InteractionAlreadyAnswered({ requestId, winner, message: error.message })
    })

  /** After a vote: who is missing, or that it is decided. */
  const standing = (requestId: string) =>
    Effect.map(votes(stores)(requestId), (open) =>
      open === undefined ? ({ status: "answered" } as const) : ({ status: "voted", missing: open.missing } as const)
    )

  return {
    answer,
    cancel: (requestId, person) =>
      Effect.gen(function* () {
        const live = yield* liveOf(requestId)
        if (live !== undefined && (yield* withdrawn(live.session, requestId, person))) return
        const found = yield* late(requestId, undefined, person.name)
        if (found === "again") return
        const session = yield* Refusal.of(host.open(found.rootSessionId))
        yield* askedAgain(session, requestId)
        yield* withdrawn(session, requestId, person)
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

/** The votes on a reserved call, and the missing people. Nothing for other requests. */
export const votes =
  (stores: Stores) =>
  (
    requestId: string
  ): Effect.Effect<
    { readonly votes: ReadonlyArray<Needs.Voted>; readonly missing: string } | undefined,
    Refusal.Refusal
  > =>
    Effect.gen(function* () {
      const found = yield* Refusal.of(stores.request(requestId))
      const interaction = found?.request.interaction
      if (found === undefined || found.settled !== undefined || interaction === undefined) return undefined
      if (!Ballot.isReserved(interaction)) return undefined
      const cast = (yield* Refusal.of(found.store.read(found.rootSessionId))).flatMap(({ entry }) =>
        entry._tag === "VoteGiven" && entry.requestId === requestId && entry.digest === interaction.needs.digest
          ? [entry]
          : []
      )
      const now = Tally.standing(interaction, cast)
      return now._tag === "Open" ? { votes: Needs.votedOf(cast), missing: now.missing } : undefined
    })

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/**
 * Fails if the answer decides about more than it was asked, and the caller may not change what is permitted: a scope that
 * outlives the work of the session, or other arguments.
 */
export const permit = (
  { _tag }: Interaction.Interaction,
  encoded: unknown,
  { may }: Api.Person
): Effect.Effect<void, Api.Forbidden> => {
  if (may === undefined || may.includes("permissions") || _tag !== "Approve" || !isApproval(encoded)) return Effect.void
  if (encoded.decision !== "edit" && isNarrow[encoded.scope]) return Effect.void
  const what = encoded.decision === "edit" ? "other arguments" : `the scope "${encoded.scope}"`
  return new Api.Forbidden({
    message: `An answer with ${what} needs a key that permits "permissions". Answer this call alone, or ask for such a key.`
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isApproval = Schema.is(Interaction.ApproveAnswer)

/** Whether an answer with this scope ends with the work that asked. */
const isNarrow: { readonly [Scope in Interaction.AllowScope]: boolean } = {
  once: true,
  turn: true,
  idle: true,
  session: false,
  all: false
}

const remembered = 10_000

const notNow = new Api.Unavailable({ message: "The session does not ask this at the moment. Try again in a moment." })

/** Whether an entry ends this request, or is this person's vote on it. */
const endOf =
  (requestId: string, voter?: string) =>
  (entry: JournalEntry): boolean =>
    (entry._tag === "InteractionSettled" && entry.requestId === requestId) ||
    (entry._tag === "VoteGiven" &&
      entry.requestId === requestId &&
      voter !== undefined &&
      Principal.isSame(entry.by, voter))

/** Waits until a session that was resumed has its question open again. */
const askedAgain = ({ agent, id }: Host.LiveSession, requestId: string) =>
  Effect.gen(function* () {
    // Before the look: what is asked in between is heard.
    const { stream } = yield* agent.subscribe()
    if ((yield* agent.broker.open).some((request) => request.requestId === requestId)) return
    yield* stream.pipe(
      Stream.filter((event) => event._tag === "InteractionRequested" && event.requestId === requestId),
      Stream.runHead
    )
  }).pipe(
    Effect.scoped,
    Effect.timeoutFail({
      duration: "10 seconds",
      onTimeout: () =>
        new Api.Unavailable({ message: `Session ${id} has not asked this again yet. Try again in a moment.` })
    })
  )

/** How a request ended that no person settled. */
const endings = {
  answered: "is answered already",
  cancelled: "was withdrawn",
  timed_out: "has timed out",
  unavailable: "ended, because nobody could answer it"
}

/** Whether this is the answer with which the request was settled. */
const isAnswer = (
  { interaction, requestId }: InteractionRequest,
  { answer, form }: Given,
  settled: { readonly answer?: unknown }
): boolean => {
  if (settled.answer === undefined) return false
  const understood = RemoteInteractor.understand(interaction, { requestId, answer, form })
  return (
    understood._tag === "Answered" &&
    canonicalJson(Interaction.encodeAnswer(interaction, understood.answer)) === canonicalJson(settled.answer)
  )
}
