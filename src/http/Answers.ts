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
import * as Stream from "effect/Stream"
import * as RemoteInteractor from "../channel/RemoteInteractor.js"
import { canonicalJson } from "../core/CanonicalJson.js"
import type * as Host from "../host/Host.js"
import * as Ballot from "../interaction/Ballot.js"
import * as Form from "../interaction/Form.js"
import * as Interaction from "../interaction/Interaction.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Tally from "../interaction/Tally.js"
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
    { readonly status: "answered"; readonly again?: true } | { readonly status: "voted"; readonly missing: string },
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

export const make = (host: Host.Service, stores: Stores): Answers => {
  /** Answers that counted, by request: whose, and under which id. The oldest are forgotten. */
  const counted = new Map<string, string>()
  const keyOf = (by: string, id: string | undefined) => JSON.stringify([by, id ?? null])
  const count = (requestId: string, by: string, { id }: Given) => {
    counted.set(requestId, keyOf(by, id))
    const [oldest] = counted.keys()
    if (counted.size > remembered && oldest !== undefined) counted.delete(oldest)
  }

  /** The live session that asks, with its request. */
  const liveOf = (requestId: string) =>
    Effect.gen(function* () {
      for (const session of yield* host.live) {
        const request = (yield* session.agent.broker.open).find((one) => one.requestId === requestId)
        if (request !== undefined) return { session, request }
      }
      return undefined
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
      // A former process kept no ids: there the answer itself tells.
      const known = counted.get(requestId)
      const isSame =
        given?.id !== undefined &&
        (known === undefined
          ? settled.by === by && isAnswer(found.request, given, settled)
          : known === keyOf(by, given.id))
      if (isSame) return "again" as const
      return yield* new Api.InteractionAlreadyAnswered({
        requestId,
        winner,
        message: `Request ${requestId} is settled already, by ${winner}.`
      })
    })

  const understand = (request: InteractionRequest, given: Given) => {
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

  const answer: Answers["answer"] = (requestId, given, { name, roles }) =>
    Effect.gen(function* () {
      const live = yield* liveOf(requestId)
      if (live !== undefined) {
        const { request, session } = live
        const encoded = yield* understand(request, given)
        const isVote = Ballot.isReserved(request.interaction)
        const settle =
          encoded === undefined
            ? session.agent.broker.cancel(requestId, name)
            : session.agent.broker.answer(requestId, name, encoded, roles)
        const outcome = yield* Effect.either(settle)
        if (Either.isRight(outcome)) {
          count(requestId, name, given)
          return isVote ? yield* standing(requestId) : ({ status: "answered" } as const)
        }
        if (outcome.left._tag === "MalformedAnswer" || outcome.left._tag === "VoteRefused")
          return yield* new Api.Unprocessable({ message: outcome.left.message })
      }
      const found = yield* late(requestId, given, name)
      if (found === "again") return { status: "answered", again: true } as const
      const { request, rootSessionId, store } = found
      const encoded = yield* understand(request, given)
      const { interaction } = request
      let isKept = false
      if (encoded !== undefined && Ballot.isReserved(interaction)) {
        const vote = { rootSessionId, requestId: request.requestId, answer: encoded, by: name, roles }
        const { missing } = yield* Refusal.of(SessionVote.give(store, vote))
        if (missing !== undefined) return { status: "voted", missing } as const
        isKept = true
      } else if (encoded !== undefined && !Interaction.isSecret(interaction._tag)) {
        const kept = yield* Effect.either(store.answer(request.requestId, encoded, name))
        if (Either.isLeft(kept)) {
          const { left } = kept
          if (left._tag !== "AnswerRefused" || left.problem !== "once") return yield* keptBefore(requestId, left)
        } else isKept = true
      }
      if (isKept) count(requestId, name, given)
      // The session goes on with it.
      const session = yield* Refusal.of(host.open(rootSessionId))
      if (isKept) return { status: "answered" } as const
      yield* askedAgain(session, requestId)
      if (encoded === undefined) yield* Refusal.of(session.agent.broker.cancel(requestId, name))
      else yield* Refusal.of(session.agent.broker.answer(requestId, name, encoded, roles))
      count(requestId, name, given)
      return { status: "answered" } as const
    })

  /** Somebody's answer waits for the session to go on, which may have begun meanwhile. */
  const keptBefore = (requestId: string, error: Refusal.Known) =>
    Effect.gen(function* () {
      if (error._tag === "AnswerRefused" && error.problem === "answered") {
        const { waiting } = yield* stores.openRequests
        const winner = waiting.find(({ request }) => request.requestId === requestId)?.answer?.by ?? "somebody else"
        return yield* new Api.InteractionAlreadyAnswered({ requestId, winner, message: error.message })
      }
      return yield* Refusal.of(Effect.fail(error))
    })

  /** After a vote: who is missing, or that it is decided. */
  const standing = (requestId: string) =>
    Effect.gen(function* () {
      const decided = { status: "answered" } as const
      const found = yield* Refusal.of(stores.request(requestId))
      const interaction = found?.request.interaction
      if (found === undefined || found.settled !== undefined || interaction === undefined) return decided
      if (!Ballot.isReserved(interaction)) return decided
      const cast = (yield* Refusal.of(found.store.read(found.rootSessionId))).flatMap(({ entry }) =>
        entry._tag === "VoteGiven" && entry.requestId === requestId && entry.digest === interaction.needs.digest
          ? [entry]
          : []
      )
      const now = Tally.standing(interaction, cast)
      return now._tag === "Open" ? ({ status: "voted", missing: now.missing } as const) : decided
    })

  return {
    answer,
    cancel: (requestId, { name }) =>
      Effect.gen(function* () {
        const live = yield* liveOf(requestId)
        if (live !== undefined && (yield* Refusal.of(live.session.agent.broker.cancel(requestId, name)))) return
        const found = yield* late(requestId, undefined, name)
        if (found === "again") return
        const session = yield* Refusal.of(host.open(found.rootSessionId))
        yield* askedAgain(session, requestId)
        yield* Refusal.of(session.agent.broker.cancel(requestId, name))
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const remembered = 10_000

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
