/**
 * Answers a file channel from another process: a person at a terminal, or lines from a pipe.
 *
 * A request is shown while it has a file and no response, so a request whose response was rejected is shown again. An
 * unanswered request stays open when this program ends.
 */
import type * as PlatformError from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import * as ConsoleChannel from "../../tui/console/ConsoleChannel.js"
import * as ConsoleScreen from "../../tui/console/ConsoleScreen.js"
import * as FileExchange from "../../channel/FileExchange.js"
import * as Tally from "../../interaction/Tally.js"
import * as Interaction from "../../interaction/Interaction.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as TypedAnswer from "../../interaction/TypedAnswer.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as PlainDialog from "../../tui/process/PlainDialog.js"

type Platform = FileSystem.FileSystem | Path.Path
type Answering<A> = Effect.Effect<A, PlatformError.PlatformError, Platform>

// -----------------------------------------------------------------------------------------------------------------
// a person
// -----------------------------------------------------------------------------------------------------------------

/** Shows requests as they come, until the person presses Ctrl-C or Ctrl-D; yields the exit code. */
export const attend = (options: {
  readonly directory: string
  /** Names the person in events and in the audit. */
  readonly by: string
  readonly screen: ConsoleScreen.Service
}): Answering<number> =>
  Effect.gen(function* () {
    const { by, directory, screen } = options
    // Closing a dialog ends this program and leaves the request to others; a typed `cancel` withdraws the request.
    let leaving = false
    const watched: ConsoleScreen.Service = {
      ...screen,
      dialog: (title, use) =>
        screen.dialog(title, (ask) =>
          use((question) =>
            Effect.tapError(ask(question), ({ by }) =>
              Effect.sync(() => {
                // Escape goes back to the question.
                if (by !== "escape") leaving = true
              })
            )
          )
        )
    }
    const person = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, watched)
    const passed = new Set<string>()

    const answer = (request: InteractionRequest): Answering<void> =>
      Effect.gen(function* () {
        const { interaction, requestId } = request
        const asked = yield* Effect.either(
          Effect.raceFirst(Effect.asSome(person.request(request)), Effect.as(gone(directory, requestId), Option.none()))
        )
        if (leaving) return
        if (Either.isRight(asked)) {
          if (Option.isNone(asked.right)) return
          const encoded = Interaction.encodeAnswer(interaction, asked.right.value.answer)
          if (!(yield* respond(directory, requestId, encoded, by))) yield* screen.printLine(tooLate)
        } else if (asked.left._tag === "SystemError" || asked.left._tag === "BadArgument") {
          return yield* asked.left
        } else if (TypedAnswer.isCancel(interaction, cancelWord)) {
          yield* respond(directory, requestId, cancelWord, by)
        } else {
          passed.add(requestId)
        }
      })
    const serve = Effect.gen(function* () {
      while (!leaving) {
        const request = yield* nextRequest(directory, passed, screen.printLine)
        if (Tally.hasVoted(request.interaction, by)) {
          passed.add(request.requestId)
          yield* screen.printLine("Your vote counts. Other people must still vote.")
          continue
        }
        const reason = yield* rejection(directory, request.requestId)
        if (Option.isSome(reason)) yield* screen.printLine(reason.value)
        yield* answer(request)
      }
    })
    const left = Effect.gen(function* () {
      for (;;) {
        const submitted = yield* screen.next
        if (submitted._tag === "Shortcut") continue
        if (submitted._tag !== "Line") return
        yield* screen.printLine("No question is open. Your line was ignored.")
      }
    })
    yield* screen.printLine(`Waiting for requests in ${directory}. Ctrl-C ends.`)
    yield* Effect.raceFirst(serve, left)
    return ExitCode.completed
  })

// -----------------------------------------------------------------------------------------------------------------
// a pipe
// -----------------------------------------------------------------------------------------------------------------

/**
 * Spends lines on each request, oldest first, waiting for either, until there are no more lines. A line that is not
 * understood is asked for again, a few times: then the request is left to others, and the next has the next line. One that
 * comes too late is spent. Yields 1 when a request got lines and no answer.
 */
export const read = (options: {
  readonly directory: string
  /** Names the person in events and in the audit. */
  readonly by: string
  readonly lines: Stream.Stream<string>
  readonly print: (text: string) => Effect.Effect<void>
}): Answering<number> =>
  Effect.gen(function* () {
    const { by, directory, print } = options
    const say = (line: string) => print(`${line}\n`)
    // Written by the stream, read here, ended with the stream; the stream waits while 16 lines are unread.
    const lines = yield* Mailbox.fromStream(options.lines)
    const passed = new Set<string>()
    const answered = new Set<string>()
    let failed = false

    /** Whether one of the next few lines became an answer; none when there was no line. */
    const answer = ({ interaction, requestId }: InteractionRequest, label: string) =>
      Effect.gen(function* () {
        for (let garbled = 0; ; garbled++) {
          const line = yield* Effect.option(lines.take)
          if (Option.isNone(line)) {
            yield* say("")
            return garbled === 0 ? undefined : false
          }
          yield* say(line.value)
          const understood = meant(interaction, line.value)
          if (Either.isRight(understood)) {
            const there = yield* respond(directory, requestId, understood.right, by)
            if (!there) yield* say(tooLate)
            return there
          }
          yield* say(`Not understood: ${understood.left}`)
          if (garbled + 1 === ConsoleChannel.patience) {
            yield* say("Assent understood no answer. The request stays open.")
            return false
          }
          yield* print(label)
        }
      })
    for (;;) {
      const next = yield* Effect.raceFirst(
        Effect.asSome(nextRequest(directory, passed, say)),
        Effect.as(lines.await, Option.none())
      )
      if (Option.isNone(next)) break
      const request = next.value
      passed.add(request.requestId)
      const { label, lines: dialog } = PlainDialog.render(request, yield* Clock.currentTimeMillis)
      yield* print([...dialog, label].join("\n"))
      const done = yield* answer(request, label)
      if (done === undefined) break
      if (done) answered.add(request.requestId)
      else failed = true
    }
    // The asker removes an answered request later; until then it is skipped here.
    const open = (yield* unanswered(directory)).filter(({ requestId }) => !answered.has(requestId)).length
    if (open > 0) yield* say(open === 1 ? "1 request is still open." : `${open} requests are still open.`)
    return failed ? ExitCode.failed : ExitCode.completed
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const cancelWord = "cancel"
const tooLate = "Too late: the request was settled elsewhere or withdrawn."

/** How often the directory is looked at. */
const pause = "250 millis"

const exists = (directory: string, requestId: string, file: "request" | "response"): Answering<boolean> =>
  Effect.flatMap(Effect.zip(FileSystem.FileSystem, FileExchange.make(directory)), ([fs, exchange]) =>
    fs.exists(exchange.files(requestId)[file])
  )

/** The requests that nobody has responded to, oldest first. */
const unanswered = (directory: string): Answering<ReadonlyArray<InteractionRequest>> =>
  Effect.flatMap(FileExchange.pending(directory), (requests) =>
    Effect.filter(requests, ({ requestId }) => exists(directory, requestId, "response"), { negate: true })
  )

/**
 * Waits for a request that was not skipped before. Requests for secrets are never shown: the answer would be written to
 * a file.
 */
const nextRequest = (
  directory: string,
  passed: Set<string>,
  say: (line: string) => Effect.Effect<void>
): Answering<InteractionRequest> =>
  Effect.flatMap(unanswered(directory), (requests) => {
    const request = requests.find(({ requestId }) => !passed.has(requestId))
    const again = Effect.suspend(() => nextRequest(directory, passed, say))
    if (request === undefined) return Effect.zipRight(Effect.sleep(pause), again)
    if (!Interaction.isSecret(request.interaction._tag)) return Effect.succeed(request)
    passed.add(request.requestId)
    return Effect.zipRight(say(`${request.interaction._tag} cannot be answered through a file; left open.`), again)
  })

/** Waits until a request is settled, or somebody else has responded to it. */
const gone = (directory: string, requestId: string): Answering<void> =>
  Effect.flatMap(
    Effect.zip(exists(directory, requestId, "request"), exists(directory, requestId, "response")),
    ([open, answered]) =>
      open && !answered
        ? Effect.zipRight(
            Effect.sleep(pause),
            Effect.suspend(() => gone(directory, requestId))
          )
        : Effect.void
  )

/** False when the request is not there any more. */
const respond = (directory: string, requestId: string, answer: unknown, by: string): Answering<boolean> =>
  Effect.as(FileExchange.respond(directory, requestId, answer, by), true).pipe(
    Effect.catchTag("UnknownRequest", () => Effect.succeed(false))
  )

/** Bytes: it is a sentence. */
const maxReason = 10_000

/** Why the last response was rejected, if one was. */
const rejection = (directory: string, requestId: string): Answering<Option.Option<string>> =>
  Effect.flatMap(FileExchange.make(directory), (exchange) =>
    Effect.option(
      Effect.map(
        exchange.read(exchange.files(requestId).reason, { maxBytes: maxReason, owner: Option.none() }),
        (text) => text.trim()
      )
    )
  )

/** The answer that a line stands for. */
const meant = (interaction: Interaction.Interaction, line: string): Either.Either<unknown, string> =>
  TypedAnswer.isCancel(interaction, line)
    ? Either.right(cancelWord)
    : Either.map(PlainDialog.parse(interaction, line), ({ input }) => input)
