/**
 * How a person at a console answers each kind. `ConsoleChannel` loads it with all its dialogs when there is a console.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as FormProgress from "../../interaction/FormProgress.js"
import type * as Field from "../../interaction/Field.js"
import type { Answer, Clarify, Elicit, Interaction } from "../../interaction/Interaction.js"
import type { InteractionError } from "../../interaction/InteractionError.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as Interactor from "../../interaction/Interactor.js"
import * as Question from "../../interaction/Question.js"
import * as ConsoleApproval from "./ConsoleApproval.js"
import { hasMenus, id, insist, open, Withdrawn, type Ended } from "./ConsoleDialog.js"
import * as ConsoleForm from "./ConsoleForm.js"
import type { Options } from "./ConsoleOptions.js"
import * as ConsolePrompt from "./ConsolePrompt.js"
import type * as ConsoleScreen from "./ConsoleScreen.js"

export const make = (screen: ConsoleScreen.Service, options: Options): Interactor.Service => {
  const ask = handler(screen, options)
  const untimed = Interactor.make({
    id,
    principal: options.principal,
    dialogs: "unbounded",
    handlers: {
      Approve: ConsoleApproval.make(screen, options),
      grantStageTool: ask({}),
      approveSubagentEnvelope: ask({}),
      Clarify: clarify(screen, options),
      Ask: ask({ paste: "insert", commands: true }),
      Select: ask({}),
      Confirm: ask({}),
      Elicit: elicit(screen, options),
      "Auth.DeviceCode": ask({}),
      "Auth.Password": ask({ hidden: true, paste: "insert" })
    }
  })
  return Interactor.serialized(onceShown(untimed, options.timeouts ?? {}, screen.stopped ?? (() => 0)))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Like `Interactor.withTimeout`, but for when the time begins: a dialog of the program itself may stand before a
 * question, and nobody has seen it yet. Nor can anybody answer while the program is stopped.
 */
const onceShown = (
  service: Interactor.Service,
  timeouts: Interactor.Timeouts,
  stopped: () => number
): Interactor.Service => ({
  ...service,
  request: (request, asked) =>
    Option.match(Interactor.timeoutOf(request.interaction, timeouts), {
      onNone: () => service.request(request, asked),
      onSome: (duration) =>
        Effect.flatMap(Deferred.make<() => number>(), (until) => {
          const shown = Effect.flatMap(Clock.currentTimeMillis, (now) => {
            const end = now + Duration.toMillis(duration) - stopped()
            return Effect.zipRight(
              Deferred.succeed(until, () => end + stopped()),
              Deferred.await(until)
            )
          })
          const isOver = (end: () => number): Effect.Effect<void> =>
            Effect.flatMap(Clock.currentTimeMillis, (now) =>
              now >= end() ? Effect.void : Effect.zipRight(Effect.sleep(end() - now), isOver(end))
            )
          return Effect.raceFirst(
            service.request(request, { ...asked, shown }),
            Effect.flatMap(Deferred.await(until), isOver).pipe(
              Effect.zipRight(Interactor.late(id, request, timeouts, Duration.toMillis(duration)))
            )
          )
        })
    })
})

type Look = Pick<ConsoleScreen.Question, "commands" | "hidden" | "paste">

/** The handler of a kind that one line answers. */
const handler =
  (screen: ConsoleScreen.Service, options: Options) =>
  (look: Look) =>
  <I extends Interaction>(
    request: InteractionRequest<I>,
    asked?: Interactor.Options<I>
  ): Effect.Effect<Answer<I>, InteractionError> =>
    open(
      screen,
      request,
      options,
      (ask, { help, keys, label, lines, menu }) =>
        insist(screen, ask, { ...look, lines, label, keys, menu }, help, (line) => {
          const parsed: ConsolePrompt.Parsed<Answer<I>> = ConsolePrompt.parse(request.interaction, line)
          switch (parsed._tag) {
            case "Answered":
              return Effect.succeed(Either.right(parsed.answer))
            case "Again":
              return Effect.succeed(Either.left(parsed.reason))
            case "Cancelled":
            case "NeedsComment":
            case "NeedsEdit":
            case "NeedsView":
            case "NeedsHelp":
            case "NeedsProject":
              return Effect.fail(new Withdrawn())
          }
        }),
      asked
    )

const elicit =
  (screen: ConsoleScreen.Service, options: Options) =>
  (
    request: InteractionRequest<Elicit>,
    asked?: Interactor.Options<Elicit>
  ): Effect.Effect<Field.Values, InteractionError> =>
    open(
      screen,
      request,
      options,
      (ask, prompt) =>
        ConsoleForm.ask<Ended>(
          {
            insist: (question, understand) => insist(screen, ask, { ...question, commands: true }, [], understand),
            withdrawn: new Withdrawn(),
            color: screen.color,
            reviews: screen.source === "person",
            menus: hasMenus(screen),
            lines: prompt.lines
          },
          request.interaction
        ),
      asked
    )

const clarify =
  (screen: ConsoleScreen.Service, options: Options) =>
  (
    request: InteractionRequest<Clarify>,
    asked?: Interactor.Options<Clarify>
  ): Effect.Effect<Question.ClarifyAnswers, InteractionError> =>
    open(
      screen,
      request,
      options,
      (ask, prompt) =>
        Effect.gen(function* () {
          const { questions } = request.interaction
          const answers: Record<string, Question.QuestionAnswer> = {}
          let isAgain = false
          const total = questions.length
          let number = 1
          for (;;) {
            const question = questions[number - 1]
            if (question === undefined) return answers
            const hasBack = total > 1 && !question.choices.some((choice) => isBack(choice))
            const given = answers[String(number)]
            const earlier = given !== undefined && "skipped" in given ? undefined : given
            const menu = hasMenus(screen) ? ConsolePrompt.questionMenu(question, earlier) : undefined
            const look = { color: screen.color, menus: menu !== undefined }
            // Where no keys are read, an earlier answer cannot stand there to be changed.
            const kept = hasMenus(screen) ? undefined : earlier
            const lines = ConsolePrompt.renderQuestion(question, number, total, look, kept)
            const at = number
            yield* FormProgress.tell({ number, total })
            const answer = yield* insist<Question.QuestionAnswer | "back">(
              screen,
              ask,
              {
                lines: number === 1 && !isAgain ? [...prompt.lines, ...lines] : lines,
                label: prompt.label,
                begun:
                  kept === undefined && earlier !== undefined && "value" in earlier ? quoted(earlier.value) : undefined,
                paste: question.question_type === "free_text" ? "insert" : "draft",
                commands: true,
                keys: ConsolePrompt.questionKeys(question),
                menu,
                followUp: number > 1 || isAgain
              },
              [],
              (line) => {
                if (Question.isCancel(line)) return Effect.fail(new Withdrawn())
                if (kept !== undefined && line.trim() === "") return Effect.succeed(Either.right(kept))
                if (!hasBack || !isBack(line))
                  return Effect.succeed(Question.parse(question, hasBack ? unquoted(line) : line))
                return Effect.succeed(at === 1 ? Either.left("This is the first question.") : Either.right("back"))
              }
            )
            if (answer === "back") {
              number--
              isAgain = true
              continue
            }
            answers[String(number)] = answer
            yield* FormProgress.tell({ number, total, answer })
            number++
          }
        }),
      asked
    )

const isBack = (text: string): boolean => text.trim().toLowerCase() === "back"

const quoted = (text: string): string => (isBack(text) ? `"${text}"` : text)

/** In quotes the word is a text. */
const unquoted = (line: string): string => /^\s*"(back)"\s*$/i.exec(line)?.[1] ?? line
