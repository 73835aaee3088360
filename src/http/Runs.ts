/**
 * Runs of a session for pages: words or answers in, pieces out until the turn ends or somebody has to answer.
 *
 * ```
 *   check all answers ─► answers, words ─► what is stored behind the client's last words ─► what happens now ─► end
 *        └─► Failed: none was given                                                             ├─ the turn's end
 *                                                                                               ├─ open requests, 100 ms later
 *                                                                                               └─ the session's end
 * ```
 *
 * A run is a projection. Its end, and a page that is gone, change nothing in the session. An answer goes the way of
 * `/v1/requests/:id/answer`: one gate, one broker, and the principal of the token.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type { SessionId, ToolCallId } from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type * as Host from "../host/Host.js"
import type * as Input from "../inbox/Input.js"
import * as Interaction from "../interaction/Interaction.js"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type { EventFeed } from "../journal/EventFeed.js"
import type { Written } from "../journal/JournalEntry.js"
import * as Replay from "../journal/Replay.js"
import * as Agent from "../runtime/Agent.js"
import * as Answers from "./Answers.js"
import type * as Api from "./Api.js"
import * as Present from "./Present.js"
import * as Refusal from "./Refusal.js"
import * as ResumePayload from "./ResumePayload.js"
import * as RunProjection from "./RunProjection.js"
import type { Stores } from "./Stores.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** What of a live session a run reads. */
export type Session = Pick<Host.LiveSession, "id" | "agent" | "jobs" | "redactor">

/** Words of a user. */
export interface Said {
  readonly id: string
  readonly text: string
}

/** An answer, or that the question is withdrawn. */
export interface Resume {
  readonly requestId: string
  readonly status: "resolved" | "cancelled"
  readonly payload?: unknown
}

/** What a client sends to begin a run. */
export interface Start {
  /** The client's name for its conversation. */
  readonly thread: string
  /** The id is the client's: the same words again are not taken twice, and the run is shown again. */
  readonly words: ReadonlyArray<{ readonly id: string; readonly input: Input.Input }>
  readonly resume: ReadonlyArray<Resume>
  /** All words of its user that the client knows. */
  readonly said: ReadonlyArray<Said>
  /** What the client has; absent when it cannot say so, and has all until it was asked the last time. */
  readonly known?: RunProjection.Known | undefined
  /** Requests that the client has shown, beside those that it answers. */
  readonly shown: ReadonlyArray<string>
  /** Whether the client can answer this kind. It has to answer all such requests at once. */
  readonly answers: (kind: Interaction.Kind) => boolean
  /** Whether an answer to a request of an earlier turn is an error. Else the client hears who was first. */
  readonly refusesStale: boolean
}

/** Who answers. */
export interface By {
  readonly person: Api.Person
  /** Nobody can read the answers on their way. */
  readonly isPrivate: boolean
}

export interface Runs {
  /** Gives the answers and the words; the stream ends with an `End` and never fails. */
  readonly begin: (
    session: Session,
    start: Start,
    by: By
  ) => Effect.Effect<Stream.Stream<RunProjection.Piece>, Refusal.Refusal>
  /** The last words of the user in a session that works or asks; nothing in one that does neither. */
  readonly current: (session: Session) => Effect.Effect<Said | undefined, Refusal.Refusal>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (stores: Stores, answers: Answers.Answers): Runs => {
  /** What conversations were asked at the end of their last run. The oldest are forgotten. */
  const asked = new Map<string, ReadonlySet<string>>()
  const keyOf = (id: SessionId, { thread }: Start) => JSON.stringify([id, thread])
  const remember = (key: string, end: RunProjection.End, start: Start) => {
    asked.delete(key)
    if (end._tag !== "Interrupted") return
    asked.set(
      key,
      new Set(
        end.requests.flatMap(({ request }) =>
          start.answers(request.interaction._tag) ? [String(request.requestId)] : []
        )
      )
    )
    const [oldest] = asked.keys()
    if (asked.size > remembered && oldest !== undefined) asked.delete(oldest)
  }

  /** The answers, ready to be given; or why none of them is. */
  const check = (
    session: Session,
    start: Start,
    { person }: By
  ): Effect.Effect<Ready, RunProjection.End | Refusal.Refusal> =>
    Effect.gen(function* () {
      const open = new Map((yield* session.agent.broker.open).map((request) => [String(request.requestId), request]))
      const ready: Array<Ready[number]> = []
      for (const resume of start.resume) {
        const { payload, requestId, status } = resume
        const found = open.has(requestId) ? undefined : yield* Refusal.of(stores.request(requestId))
        const request = open.get(requestId) ?? (found?.rootSessionId === session.id ? found.request : undefined)
        if (request === undefined) {
          return yield* failure(
            "unknown_interrupt",
            `This session asks nothing under ${UntrustedJson.echo(JSON.stringify(requestId), 200)}. Answer what the last run asked.`
          )
        }
        if (start.refusesStale && found?.settled !== undefined && (yield* isStale(session, requestId, start))) {
          return yield* failure(
            "unknown_interrupt",
            `Request ${requestId} was settled in an earlier turn. Answer what the last run asked.`
          )
        }
        if (status === "cancelled") {
          ready.push({ requestId, answer: undefined })
          continue
        }
        const answer = ResumePayload.decode(request.interaction, payload)
        if (Either.isLeft(answer)) {
          return yield* failure("invalid_payload", `The answer to ${requestId} does not fit. ${answer.left}`)
        }
        yield* Answers.permit(request.interaction, answer.right, person)
        ready.push({ requestId, answer: { encoded: answer.right } })
      }
      const given = new Set(ready.map(({ requestId }) => requestId))
      const missing = [...(asked.get(keyOf(session.id, start)) ?? [])].filter((id) => open.has(id) && !given.has(id))
      if (ready.length > 0 && missing.length > 0) {
        return yield* failure(
          "partial_resume",
          `Nothing was answered: answers to ${missing.join(", ")} are missing. Answer or cancel all requests of the run at once.`
        )
      }
      return ready
    })

  /** Gives them one by one. A piece for each one that somebody else had answered. */
  const give = (ready: Ready, start: Start, { isPrivate, person }: By) =>
    Effect.map(
      Effect.forEach(ready, ({ answer, requestId }) => {
        // The same answer again, by a page that did not see the run, is no late one.
        const id = `${start.thread} ${canonicalJson(answer?.encoded ?? null)}`
        const given: Effect.Effect<unknown, Refusal.Refusal | Api.InteractionAlreadyAnswered> =
          answer === undefined
            ? answers.cancel(requestId, person)
            : answers.answer(requestId, { answer: answer.encoded, id, isPrivate }, person)
        return given.pipe(
          Effect.as(undefined),
          Effect.catchTag("InteractionAlreadyAnswered", ({ winner }) =>
            Effect.succeed({ _tag: "AnsweredBefore" as const, requestId, winner })
          )
        )
      }),
      (late) => late.flatMap((piece) => (piece === undefined ? [] : [piece]))
    )

  const say = ({ agent }: Session, { words }: Start) =>
    Effect.forEach(
      words,
      ({ id, input }) => Effect.catchTag(agent.send(input, { id }), "MessageAlreadyTaken", () => Effect.void),
      {
        discard: true
      }
    )

  /** Before anything is answered: words with the id of other words are refused, and all that came with them. */
  const refuseOthers = ({ agent, redactor }: Session, { words }: Start) =>
    Effect.gen(function* () {
      if (words.length === 0) return
      const entries = yield* Refusal.of(agent.feed?.entries ?? Effect.succeed([]))
      const texts = new Map(
        words.map(({ id, input }) => [id, typeof input === "string" ? redactor.text(input) : undefined])
      )
      for (const { entry } of entries) {
        if (entry._tag !== "MessageReceived") continue
        const { id, text } = entry.message
        const said = texts.get(id)
        if (said !== undefined && said !== redactor.text(text))
          return yield* Refusal.make(new Agent.MessageDiffers({ messageId: id }))
      }
    })

  return {
    begin: (session, start, by) =>
      Effect.gen(function* () {
        yield* refuseOthers(session, start)
        const ready = yield* Effect.either(check(session, start, by))
        if (Either.isLeft(ready)) return yield* refusedOr(ready.left)
        // A page that leaves now has answered all or nothing.
        const late = yield* Effect.either(Effect.uninterruptible(give(ready.right, start, by)))
        if (Either.isLeft(late)) return failed("not_taken", late.left.message)
        const said = yield* Effect.either(say(session, start))
        if (Either.isLeft(said)) {
          const { left } = said
          return left._tag === "MessageDiffers" ? yield* Refusal.make(left) : failed("not_taken", left.message)
        }
        const { feed } = session.agent
        if (feed === undefined)
          return failed("stream_ended", "This session is not stored, so its events cannot be read.")
        const run = new Run(session, feed, start, by.person.name)
        return Stream.concat(Stream.fromIterable(late.right), run.pieces).pipe(
          Stream.tap((piece) =>
            RunProjection.isEnd(piece)
              ? Effect.sync(() => remember(keyOf(session.id, start), piece, start))
              : Effect.void
          )
        )
      }),
    current: ({ agent }) =>
      Effect.gen(function* () {
        if ((yield* agent.isIdle) && (yield* agent.broker.open).length === 0) return undefined
        const entries = yield* Refusal.of(agent.feed?.entries ?? Effect.succeed([]))
        return entries.reduce<Said | undefined>(
          (last, { entry }) =>
            entry._tag === "MessageReceived" && entry.message.source === "user" ? entry.message : last,
          undefined
        )
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Conversations whose last questions are known. */
const remembered = 10_000

/** Questions of one moment are asked together. */
const siblings = "100 millis"

type Ready = ReadonlyArray<{
  readonly requestId: string
  /** Absent: it is withdrawn. */
  readonly answer: { readonly encoded: unknown } | undefined
}>

/** Whether it was asked before the last words that the client knows; if it says none, before the last of any user. */
const isStale = ({ agent }: Session, requestId: string, { said }: Start) =>
  Effect.map(Refusal.of(agent.feed?.entries ?? Effect.succeed([])), (entries) => {
    const ids = new Set(said.map(({ id }) => id))
    const heard = entries.findLastIndex(
      ({ entry }) =>
        entry._tag === "MessageReceived" &&
        (ids.size === 0 ? entry.message.source === "user" : ids.has(entry.message.id))
    )
    return entries
      .slice(0, Math.max(0, heard))
      .some(({ entry }) => entry._tag === "InteractionRaised" && entry.request.requestId === requestId)
  })

const failure = (code: RunProjection.FailureCode, message: string) =>
  Effect.fail<RunProjection.End>({ _tag: "Failed", code, message })

const failed = (code: RunProjection.FailureCode, message: string): Stream.Stream<RunProjection.Piece> =>
  Stream.make<[RunProjection.Piece]>({ _tag: "Failed", code, message })

const refusedOr = (
  problem: RunProjection.End | Refusal.Refusal
): Effect.Effect<Stream.Stream<RunProjection.Piece>, Refusal.Refusal> =>
  problem._tag === "Failed" ||
  problem._tag === "Interrupted" ||
  problem._tag === "Finished" ||
  problem._tag === "Cancelled"
    ? Effect.succeed(Stream.make<[RunProjection.Piece]>(problem))
    : Effect.fail(problem)

/** Where a run begins in the journal: positions of entries, behind which something is shown. */
interface Place {
  readonly words: number
  readonly rest: number
  /** Words whose turn ends the run. Without any, each turn behind `rest` does. */
  readonly own: ReadonlySet<string>
}

class Run {
  private readonly projection: RunProjection.RunProjection
  private readonly authors: Authors
  /** Requests for which the caller has voted: the others are waited for. */
  private readonly voted = new Set<string>()
  private readonly callOf = new Map<string, ToolCallId | undefined>()
  private state = ""

  constructor(
    private readonly session: Session,
    private readonly feed: EventFeed,
    private readonly start: Start,
    private readonly name: string
  ) {
    this.authors = new Authors([...start.said, ...start.words])
    this.projection = new RunProjection.RunProjection(session.id, start.known, this.authors.of)
  }

  get pieces(): Stream.Stream<RunProjection.Piece> {
    return Stream.unwrapScoped(this.read).pipe(
      Stream.catchAll((failure) => {
        const message = failure._tag === "ReaderLagged" ? tooSlow : failure.message
        return Stream.fromIterable(this.projection.end({ _tag: "Failed", code: "stream_ended", message }))
      })
    )
  }

  private get read(): Effect.Effect<Stream.Stream<RunProjection.Piece, Unreadable>, Unreadable, Scope.Scope> {
    return Effect.gen(this, function* () {
      const { agent } = this.session
      // Before the journal is read: what is asked in between is heard.
      const requests = yield* this.requests
      const wasIdle = yield* agent.isIdle
      const entries = yield* this.feed.entries
      const place = placeOf(entries, this.start)
      const first = yield* this.changedState
      const { ended, pieces } = this.replay(entries, place)
      const shown = Stream.fromIterable([...first, ...pieces])
      if (ended !== undefined || wasIdle) {
        const end = ended ?? { _tag: "Finished" as const }
        return Stream.concat(shown, Stream.fromIterable(this.projection.end(yield* this.orAsked(end))))
      }
      const after = entries.at(-1)?.seq ?? 0
      const events = Stream.mapEffect(this.feed.read({ after }), (event) => this.happened(event, place))
      const gone = Stream.sync(() => this.projection.end(closed))
      const questions = Stream.map(requests, (open) => this.projection.end({ _tag: "Interrupted", requests: open }))
      return Stream.concat(
        shown,
        Stream.merge(Stream.concat(events, gone), questions, { haltStrategy: "left" }).pipe(
          Stream.takeUntil((pieces) => pieces.some(RunProjection.isEnd)),
          Stream.mapConcat((pieces) => pieces)
        )
      )
    })
  }

  // ---- questions ----

  /** All that is open, some time after something was asked. */
  private get requests(): Effect.Effect<Stream.Stream<ReadonlyArray<RunProjection.Asked>>, never, Scope.Scope> {
    return Effect.map(this.session.agent.subscribe(), ({ stream }) => {
      const asked = Stream.filter(stream, ({ _tag }) => _tag === "InteractionRequested")
      return Stream.concat(Stream.make(undefined), asked).pipe(
        // The bus is read on while the siblings are waited for.
        Stream.buffer({ capacity: 1, strategy: "sliding" }),
        Stream.mapEffect(() => Effect.delay(this.open, siblings)),
        Stream.filter((open) => open.length > 0),
        Stream.concat(Stream.never)
      )
    })
  }

  private get open(): Effect.Effect<ReadonlyArray<RunProjection.Asked>> {
    return Effect.map(this.session.agent.broker.open, (open) =>
      open.flatMap((request) =>
        request.interaction._tag === "Auth.Password" || this.voted.has(request.requestId)
          ? []
          : [
              {
                request,
                redactor: this.session.redactor,
                callId: this.callOf.get(request.requestId) ?? InteractionRequest.callOf(request),
                ...this.projection.childOf(request)
              }
            ]
      )
    )
  }

  private orAsked(end: RunProjection.End): Effect.Effect<RunProjection.End> {
    return end._tag === "Failed"
      ? Effect.succeed(end)
      : Effect.map(this.open, (requests) => (requests.length > 0 ? { _tag: "Interrupted", requests } : end))
  }

  // ---- events ----

  /** What is stored behind the place. */
  private replay(entries: ReadonlyArray<Written>, place: Place) {
    const project = Replay.teller()
    const pieces: Array<RunProjection.Piece> = []
    const end = Ending.of(entries, place)
    this.authors.read(entries)
    for (const written of entries) {
      const { seq } = written
      const extent = seq > place.rest ? "all" : seq > place.words ? "words" : "nothing"
      for (const event of project(written)) {
        pieces.push(...this.take(event, extent))
        if (event._tag === "TurnEnded" && event.sessionId === this.session.id && end.isAt(seq))
          return { pieces, ended: endOf(event) }
      }
    }
    return { pieces, ended: undefined }
  }

  private happened(event: AgentEvent, place: Place): Effect.Effect<ReadonlyArray<RunProjection.Piece>, Unreadable> {
    return Effect.gen(this, function* () {
      const isRoot = event.sessionId === this.session.id
      if (isRoot && event._tag === "TurnStarted") this.authors.read(yield* this.feed.entries)
      const pieces = this.take(event, "all")
      const changed = stateful.has(event._tag) ? yield* this.changedState : []
      if (!isRoot || event._tag !== "TurnEnded") return [...pieces, ...changed]
      const { position = 0 } = event
      const isOver =
        place.own.size === 0 ||
        Ending.of(yield* this.feed.entries, place).isAt(position) ||
        (yield* this.session.agent.isIdle)
      return isOver
        ? [...pieces, ...changed, ...this.projection.end(yield* this.orAsked(endOf(event)))]
        : [...pieces, ...changed]
    })
  }

  private take(event: AgentEvent, extent: RunProjection.Extent): ReadonlyArray<RunProjection.Piece> {
    if (event._tag === "InteractionRequested") this.callOf.set(event.requestId, event.toolCallId)
    if (event._tag === "InteractionVoted" && event.by === this.name) this.voted.add(event.requestId)
    return this.projection.take(event, extent)
  }

  private get changedState(): Effect.Effect<ReadonlyArray<RunProjection.Piece>> {
    return Effect.map(Present.of(this.session), (state) => {
      const text = JSON.stringify(state)
      if (text === this.state) return []
      this.state = text
      return [{ _tag: "StateChanged", state }]
    })
  }
}

/** Whose the words of messages and turns are. */
class Authors {
  private readonly known = new Map<string, RunProjection.Author>()

  /** `own`: those of the client's user. */
  constructor(own: ReadonlyArray<{ readonly id: string }>) {
    for (const { id } of own) this.known.set(id, "client")
  }

  readonly of = (id: string): RunProjection.Author => this.known.get(id) ?? "person"

  read(entries: ReadonlyArray<Written>): void {
    for (const { entry } of entries) {
      if (entry._tag === "MessageReceived" && entry.message.source !== "user")
        this.known.set(entry.message.id, "nobody")
      // What a running turn reads later does not make it another one's.
      if (entry._tag !== "MessageTaken" || this.known.has(entry.correlationId)) continue
      const authors = entry.messageIds.map(this.of)
      const author = authors.includes("client") ? "client" : authors.includes("person") ? "person" : "nobody"
      this.known.set(entry.correlationId, author)
    }
  }
}

/** When the turn of a run's words has ended. */
class Ending {
  private constructor(
    private readonly place: Place,
    /** Position at which a turn had all words of the run; absent while it has not. */
    private readonly taken: number | undefined
  ) {}

  static of(entries: ReadonlyArray<Written>, place: Place): Ending {
    const left = new Set(place.own)
    for (const { entry, seq } of entries) {
      if (entry._tag !== "MessageTaken") continue
      for (const id of entry.messageIds) left.delete(id)
      if (left.size === 0) return new Ending(place, seq)
    }
    return new Ending(place, undefined)
  }

  isAt(position: number): boolean {
    if (this.place.own.size === 0) return position > this.place.rest
    return this.taken !== undefined && position >= this.taken
  }
}

const placeOf = (entries: ReadonlyArray<Written>, { known, resume, said, shown, words }: Start): Place => {
  const ids = new Set([...said, ...words].map(({ id }) => id))
  const heard = entries.findLast(({ entry }) => entry._tag === "MessageReceived" && ids.has(entry.message.id))
  const answered = new Set([...shown, ...resume.map(({ requestId }) => requestId)])
  const raised = entries.flatMap(({ entry, seq }) =>
    entry._tag === "InteractionRaised" && answered.has(entry.request.requestId) ? [seq] : []
  )
  const last = entries.at(-1)?.seq ?? 0
  const asked = Math.max(...raised)
  const begun = heard === undefined ? undefined : heard.seq - 1
  const isResumed = raised.length > 0 && words.length === 0
  const rest = isResumed ? asked : (begun ?? last)
  const own = words.map(({ id }) => id)
  return {
    words: isResumed && known === undefined ? rest : (begun ?? rest),
    rest,
    own: new Set(
      resume.length > 0 || own.length > 0
        ? own
        : heard?.entry._tag === "MessageReceived"
          ? [String(heard.entry.message.id)]
          : []
    )
  }
}

const endOf = ({ detail, reason }: Extract<AgentEvent, { readonly _tag: "TurnEnded" }>): RunProjection.End => {
  switch (reason) {
    case "cancelled":
      return { _tag: "Cancelled", detail }
    case "failed":
      return { _tag: "Failed", code: "turn_failed", message: detail ?? "The turn failed." }
    default:
      return { _tag: "Finished" }
  }
}

/** Why events cannot be read any further. */
interface Unreadable {
  readonly _tag: string
  readonly message: string
}

const tooSlow = "This page reads too slowly and was dropped. Run it again, and it goes on."

const closed: RunProjection.End = {
  _tag: "Failed",
  code: "stream_ended",
  message: "The session was closed here. Run it again, and it goes on."
}

/** Events behind which the state may be another one. */
const stateful: ReadonlySet<AgentEvent["_tag"]> = new Set<AgentEvent["_tag"]>([
  "AgentCreated",
  "AgentCompleted",
  "AgentStatusChanged",
  "ModelCallEnded",
  "TurnEnded",
  "PermissionStatusChanged",
  "TodosChanged",
  "JobStarted",
  "JobEnded"
])
