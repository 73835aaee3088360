/**
 * Open requests of a session that is not running, and answers that count when it is resumed.
 *
 * The questions of a running session are answered where it runs. Those of a session that halted or was killed are in
 * the store; an answer is stored there too, until the session is resumed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import type { RequestId } from "../../core/Id.js"
import * as Redaction from "../../core/Redaction.js"
import { visible } from "../../audit/AuditReport.js"
import * as Form from "../../interaction/Form.js"
import * as Ballot from "../../interaction/Ballot.js"
import * as Interaction from "../../interaction/Interaction.js"
import * as InteractionRequest from "../../interaction/InteractionRequest.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"
import * as SessionSnapshot from "../../journal/SessionSnapshot.js"
import * as SessionVote from "../../journal/SessionVote.js"
import type * as SessionStore from "../../journal/SessionStore.js"
import type { Listed } from "../../journal/SessionSummary.js"
import type * as StoreError from "../../journal/StoreError.js"
import * as Arguments from "../config/Arguments.js"
import * as Output from "../../tui/process/Output.js"
import * as PlainDialog from "../../tui/process/PlainDialog.js"

export interface Options {
  readonly store: SessionStore.Service
  readonly session: Listed
  /** Absent: all that are open are shown. */
  readonly requestId: string | undefined
  /** As typed. Absent: the request is shown. */
  readonly answer: string | undefined
  /** The person who answers, as audits and events name them. */
  readonly by: string
  /** Show JSON, one request a line. */
  readonly json: boolean
  /** The command that resumes the session. */
  readonly resumeCommand: string
  /** The command that answers. */
  readonly howTo: string
}

/** Shows open requests, or stores an answer. */
export const run = (
  options: Options
): Effect.Effect<
  void,
  | Arguments.UsageError
  | StoreError.JournalUnreadable
  | StoreError.SessionLocked
  | StoreError.SessionTakenOver
  | StoreError.SessionUnknown
  | StoreError.StoreUnusable
  | StoreError.StoreUnwritable
> =>
  Effect.gen(function* () {
    const { answer, by, requestId, session, store } = options
    const loaded = yield* store.load(session.rootSessionId)
    const open = SessionSnapshot.openRequests(SessionSnapshot.fold(loaded.entries), loaded.answers)
    if (requestId === undefined) return yield* show(options, open)
    const wanted = open.find(({ request }) => request.requestId === requestId)
    if (wanted === undefined) return yield* misuse(notOpen(loaded, requestId, open))
    if (answer === undefined) return yield* show(options, [wanted])
    const encoded = masked(yield* Either.mapLeft(encode(wanted.request, answer, options.resumeCommand), misuse))
    const { interaction, requestId: id } = wanted.request
    if (Ballot.isReserved(interaction)) {
      const vote = { rootSessionId: session.rootSessionId, requestId: id, answer: encoded, by }
      const { missing } = yield* Effect.catchTags(SessionVote.give(store, vote), {
        AnswerRefused: ({ message }) => misuse(message),
        AuditUnwritable: ({ message }) => misuse(message)
      })
      const then = missing === undefined ? "it counts when the session resumes" : `${missing} needed`
      return yield* Output.notice(`the vote of ${by} is stored; ${then}: ${options.resumeCommand}`)
    }
    yield* Effect.catchTag(store.answer(id, encoded, by), "AnswerRefused", ({ message }) => misuse(message))
    const left = open.filter((one) => one !== wanted && one.answer === undefined).length
    yield* Output.notice(
      `the answer is stored, and counts when the session resumes${left === 0 ? "" : `; ${left} more wait for one`}: ${options.resumeCommand}`
    )
    if (isLost(loaded, wanted.request))
      yield* Output.notice(
        "its call holds a secret, which is not stored. The call will not run, and the model proposes it again."
      )
    else if (Redaction.shapesOnly.value(encoded) !== encoded)
      yield* Output.notice("it may hold a secret. The store has it until the session has used the answer.")
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const misuse = (message: string) => new Arguments.UsageError({ message })

const show = (options: Options, open: ReadonlyArray<SessionSnapshot.OpenRequest>): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (options.json) {
      return yield* Effect.forEach(
        open,
        ({ answer, request }) =>
          Output.writeJson("stdout", {
            _tag: "InteractionRequest",
            request: InteractionRequest.encode(request),
            form: Form.of(request.interaction),
            answeredBy: answer?.by
          }),
        { discard: true }
      )
    }
    const now = yield* Clock.currentTimeMillis
    const blocks = open.map(({ answer, request }) => {
      const state = answer === undefined ? "" : `  (answered by ${answer.by}; counts when the session resumes)`
      return [visible(`${request.requestId}${state}`), ...PlainDialog.render(request, now).lines].join("\n")
    })
    if (blocks.length > 0) yield* Output.write("stdout", `${blocks.join("\n\n")}\n`)
    yield* Output.notice(advice(options, open))
  })

/** Advice about the open requests. */
const advice = (
  { resumeCommand, howTo, session }: Options,
  open: ReadonlyArray<SessionSnapshot.OpenRequest>
): string => {
  const { holder } = session
  if (open.length === 0) return "no request of this session is open."
  if (holder !== undefined) {
    return `this session runs in process ${holder.pid} on ${holder.host}; answer it there, or end that process first.`
  }
  return open.every(({ answer }) => answer !== undefined)
    ? `no question is open; resume with: ${resumeCommand}`
    : `answer with: ${howTo}`
}

const notOpen = (
  { entries }: SessionStore.Loaded,
  requestId: string,
  open: ReadonlyArray<SessionSnapshot.OpenRequest>
): string => {
  const ids = open.map(({ request }) => request.requestId).join(", ")
  const others = open.length === 0 ? "Nothing is open there." : `There are open: ${visible(ids)}.`
  const settled = entries.flatMap(({ entry }) => (entry._tag === "InteractionSettled" ? [entry] : []))
  const end = settled.findLast((entry) => entry.requestId === requestId)
  if (end !== undefined) {
    const who = end.by === undefined ? "" : ` by ${end.by}`
    return `Request ${visible(requestId)} was settled before (${end.status}${visible(who)}). ${others}`
  }
  return `This session has no open request ${visible(requestId)}. ${others}`
}

/** Whether the journal has the call that is asked about with its secrets masked only. */
const isLost = ({ entries }: SessionStore.Loaded, { interaction }: InteractionRequest.InteractionRequest): boolean =>
  interaction._tag === "Approve" &&
  entries.some(
    ({ entry }) =>
      entry._tag === "CallsProposed" &&
      entry.calls.some(({ id, params }) => id === interaction.toolCallId && Redaction.isMasked(params))
  )

/** Words beside a decision are not needed as they are. What was decided is: it runs so. */
const masked = (encoded: unknown): unknown =>
  Predicate.isRecord(encoded) && typeof encoded["comment"] === "string"
    ? { ...encoded, comment: Redaction.shapesOnly.text(encoded["comment"]) }
    : encoded

/** The answer as the store encodes it. */
const encode = (
  { interaction, requestId }: InteractionRequest.InteractionRequest,
  line: string,
  resumeCommand: string
): Either.Either<unknown, string> => {
  if (Interaction.isSecret(interaction._tag)) {
    return Either.left(
      `${named(requestId, interaction)} needs a secret, and secrets are not stored. Answer it there: ${resumeCommand}`
    )
  }
  if (TypedAnswer.isCancel(interaction, line)) {
    return Either.left(
      `${named(requestId, interaction)} cannot be cancelled here, only answered. Cancel it there: ${resumeCommand}`
    )
  }
  return Either.mapBoth(PlainDialog.parse(interaction, line), {
    onLeft: (reason) =>
      `${named(requestId, interaction)} does not take that answer: ${sentence(reason)} It stays open.`,
    onRight: ({ answer }) => Interaction.encodeAnswer(interaction, answer)
  })
}

const named = (requestId: RequestId, { _tag }: Interaction.Interaction): string =>
  `Request ${visible(requestId)} (${_tag})`

/** The reason for a wrong object spans several lines and describes the expected shape. */
const sentence = (reason: string): string =>
  reason.includes("\n")
    ? 'an object is one such as {"decision": "edit", "editedArguments": {"name": "value"}}.'
    : reason
