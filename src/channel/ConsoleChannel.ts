/**
 * Asks a person at a console: all kinds, one dialog at a time. It always shows who asks.
 *
 * When an answer is not understood the question is asked again, without limit: nonsense is never an answer. Behind a
 * pipe there may be no person to correct it, so after the third such line the request is left to others. Ctrl-C, Ctrl-D
 * and the end of input cancel; escape leads out of a comment and an edit, back to the question. Interrupting a request
 * takes its dialog off the screen.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as FormProgress from "../interaction/FormProgress.js"
import type * as Field from "../interaction/Field.js"
import type { Answer, Approve, ApproveAnswer, Elicit, Interaction } from "../interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable, type InteractionError } from "../interaction/InteractionError.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import * as Interactor from "../interaction/Interactor.js"
import type { Clarify } from "../interaction/Interaction.js"
import * as Question from "../interaction/Question.js"
import * as ConsoleForm from "./ConsoleForm.js"
import * as ConsolePrompt from "./ConsolePrompt.js"
import * as ConsoleScreen from "./ConsoleScreen.js"
import * as Display from "../terminal/Display.js"

/**
 * How long the channel waits for a person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The person at the console, as the program knows them: the operating system's user. Default: `console` stands for them. */
  readonly principal?: string | undefined
  /** Default: a person may take as long as they like. */
  readonly timeouts?: Interactor.Timeouts | undefined
  /**
   * Keeps a rule that allows a call in this workspace, in every session from now on; fails with a sentence. It is called
   * for the person at this console alone: no other channel has such an answer. Default: that is not offered.
   */
  readonly keepForProject?: ((rule: string) => Effect.Effect<void, string>) | undefined
}

/**
 * How many lines of a pipe may be nonsense before the request is left to others.
 *
 * @since 0.1.0
 * @category constants
 */
export const patience = 3

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The interactor `console` of the screen.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Effect.Effect<Interactor.Service, never, ConsoleScreen.ConsoleScreen> =>
  Effect.map(ConsoleScreen.ConsoleScreen, (screen) => {
    const ask = handler(screen, options)
    return Interactor.make({
      id,
      principal: options.principal,
      timeouts: options.timeouts,
      handlers: {
        Approve: approve(screen, options),
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
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * An interactor that asks a person at the screen; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Interactor.Interactor, never, ConsoleScreen.ConsoleScreen> = Layer.effect(
  Interactor.Interactor,
  make()
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const id = "console"

type Look = Pick<ConsoleScreen.Question, "commands" | "hidden" | "paste">

/** Too many lines were not understood. */
class PatienceLost {
  readonly _tag = "PatienceLost"
}
/** The person withdrew the request with a word. */
class Withdrawn {
  readonly _tag = "Withdrawn"
}
type Ended = ConsoleScreen.DialogClosed | PatienceLost | Withdrawn

/** The question is asked once more, with these lines, because the person wanted that. */
class Once extends Data.TaggedClass("Once")<{ readonly lines: ReadonlyArray<string> }> {}
/** What became of a line: an answer, or what is wrong with it, or another look at the question. */
type Understood<A> = Either.Either<A, string | Once>

/** Opens the dialog of a request. A dialog that ends without an answer decides nothing. */
const open = <I extends Interaction>(
  screen: ConsoleScreen.Service,
  request: InteractionRequest<I>,
  options: Options,
  use: (ask: ConsoleScreen.Asker, prompt: ConsolePrompt.Prompt) => Effect.Effect<Answer<I>, Ended>
): Effect.Effect<Answer<I>, InteractionCancelled | InteractorUnavailable> =>
  Effect.flatMap(Effect.all([Clock.currentTimeMillis, diffLook(screen, request)]), ([now, diff]) => {
    const isPerson = screen.source === "person"
    const project = options.keepForProject !== undefined
    const prompt = ConsolePrompt.render(request, { color: screen.color, now, diff, grouped: isPerson, project })
    const limit = Interactor.millisOf(request.interaction, options.timeouts ?? {})
    const until = limit === undefined ? undefined : now + limit
    const style = Display.style(screen.color)
    const { requestId } = request
    const cancelled = new InteractionCancelled({ requestId, by: options.principal ?? id })
    return screen
      .dialog(prompt.title, (ask) =>
        use((question) => ask(until === undefined ? question : { ...question, until }), prompt)
      )
      .pipe(
        Effect.catchAll((ended): Effect.Effect<never, InteractionCancelled | InteractorUnavailable> => {
          // The end of input is no decision: others may still answer.
          if (ended._tag === "DialogClosed" && ended.by === "end of input")
            return new InteractionCancelled({ requestId })
          if (ended._tag !== "PatienceLost") return cancelled
          const reason = "nobody gave an answer that could be understood"
          return Effect.zipRight(
            screen.printLine(style.yellow("No answer was understood.")),
            new InteractorUnavailable({ requestId, by: id, reason })
          )
        })
      )
  })

/** How diffs look at this screen. Colours of code are loaded for the first of them. */
const diffLook = (screen: ConsoleScreen.Service, { interaction }: InteractionRequest) =>
  screen.source === "pipe" || interaction._tag !== "Approve" || interaction.display?.format !== "diff"
    ? Effect.succeed(undefined)
    : screen.color
      ? Effect.promise(async () => ({ colors: (await import("../terminal/CodeColors.js")).make() }))
      : Effect.succeed({})

const isTooMuch = (screen: ConsoleScreen.Service, nonsense: number): boolean =>
  screen.source === "pipe" && nonsense >= patience

/** Asks a question until its answer is understood, or too many were not. `again` is shown below each reason. */
const insist = <A>(
  screen: ConsoleScreen.Service,
  ask: ConsoleScreen.Asker,
  question: ConsoleScreen.Question,
  again: ReadonlyArray<string>,
  understand: (line: string) => Effect.Effect<Understood<A>, Ended>
): Effect.Effect<A, Ended> => {
  const style = Display.style(screen.color)
  const go = (current: ConsoleScreen.Question, nonsense: number): Effect.Effect<A, Ended> =>
    Effect.flatMap(Effect.flatMap(ask(current), understand), (understood) => {
      if (Either.isRight(understood)) return Effect.succeed(understood.right)
      if (typeof understood.left !== "string") return go({ ...question, lines: understood.left.lines }, nonsense)
      if (isTooMuch(screen, nonsense + 1)) return Effect.fail(new PatienceLost())
      const lines = [style.yellow(Display.reveal(understood.left)), ...again]
      // Keys typed ahead must not answer a question of authority. A text, and above all a secret, must not lose any.
      return go({ ...question, lines, followUp: question.paste === "insert" }, nonsense + 1)
    })
  return go(question, 0)
}

/** The handler of a kind that one line answers. */
const handler =
  (screen: ConsoleScreen.Service, options: Options) =>
  (look: Look) =>
  <I extends Interaction>(request: InteractionRequest<I>): Effect.Effect<Answer<I>, InteractionError> =>
    open(screen, request, options, (ask, { help, keys, label, lines }) =>
      insist(screen, ask, { ...look, lines, label, keys }, help, (line) => {
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
      })
    )

const approve =
  (screen: ConsoleScreen.Service, options: Options) =>
  (request: InteractionRequest<Approve>): Effect.Effect<ApproveAnswer, InteractionError> =>
    open(screen, request, options, (ask, { help, keys, label, lines, whole = [] }) => {
      const { interaction } = request
      const { keepForProject } = options
      // Whoever goes back sees the options once more; what is asked about stands above.
      const orBack = (asked: Effect.Effect<ApproveAnswer, Ended>): Effect.Effect<Understood<ApproveAnswer>, Ended> =>
        Effect.catchIf(Effect.map(asked, Either.right), isBack, () =>
          Effect.succeed(Either.left(new Once({ lines: help })))
        )
      const understand = (line: string): Effect.Effect<Understood<ApproveAnswer>, Ended> => {
        const parsed = ConsolePrompt.parse(interaction, line, { project: keepForProject !== undefined })
        switch (parsed._tag) {
          case "Answered":
            return Effect.succeed(Either.right(parsed.answer))
          case "Again":
            return Effect.succeed(Either.left(parsed.reason))
          case "Cancelled":
            return Effect.fail(new Withdrawn())
          case "NeedsComment":
            return orBack(comment(screen, ask))
          case "NeedsEdit":
            return orBack(edit(screen, ask, interaction))
          case "NeedsView":
            return Effect.as(screen.printLine(whole.join("\n")), Either.left(new Once({ lines: [] })))
          case "NeedsHelp":
            return Effect.succeed(Either.left(new Once({ lines: help })))
          case "NeedsProject":
            return keepForProject === undefined
              ? Effect.fail(new Withdrawn())
              : orBack(project(screen, ask, interaction, keepForProject))
        }
      }
      return insist(screen, ask, { lines, label, keys }, help, understand)
    })

const isBack = (ended: Ended): ended is ConsoleScreen.DialogClosed =>
  ended._tag === "DialogClosed" && ended.by === "escape"

/** The rule is shown before it is kept. This call is then allowed by the answer, and later ones by the rule. */
const project = (
  screen: ConsoleScreen.Service,
  ask: ConsoleScreen.Asker,
  interaction: Approve,
  keep: (rule: string) => Effect.Effect<void, string>
): Effect.Effect<ApproveAnswer, Ended> =>
  insist<ApproveAnswer>(
    screen,
    ask,
    {
      lines: ConsolePrompt.projectQuestion(interaction),
      label: "y/n> ",
      keys: new Map([
        ["y", ["yes"]],
        ["n", ["no"]]
      ]),
      back: true
    },
    [],
    (line) => {
      const word = line.trim().toLowerCase()
      if (word === "n" || word === "no") return Effect.fail(new ConsoleScreen.DialogClosed({ by: "escape" }))
      if (word !== "y" && word !== "yes") return Effect.succeed(Either.left("Please type yes or no."))
      return Effect.match(keep(interaction.approvalKey), {
        onFailure: (why) => Either.left(`${why} Nothing was kept.`),
        onSuccess: () => Either.right({ decision: "allow", scope: "once" })
      })
    }
  )

const comment = (screen: ConsoleScreen.Service, ask: ConsoleScreen.Asker): Effect.Effect<ApproveAnswer, Ended> =>
  insist(
    screen,
    ask,
    {
      lines: ["The call is denied. What should the agent be told? Escape goes back."],
      label: "comment> ",
      paste: "insert",
      back: true,
      followUp: true
    },
    [],
    (line) => {
      const words = line.trim()
      return Effect.succeed(words === "" ? Either.left("Please type some words.") : Either.right(deny(words)))
    }
  )

const deny = (words: string): ApproveAnswer => ({ decision: "deny", scope: "once", comment: words })

const edit = (
  screen: ConsoleScreen.Service,
  ask: ConsoleScreen.Asker,
  { editable }: Approve
): Effect.Effect<ApproveAnswer, Ended> => {
  if (editable === undefined) return Effect.fail(new PatienceLost())
  const style = Display.style(screen.color)
  // After a mistake the text stays as it was typed, so that nobody has to start again.
  const go = (text: string, lines: ReadonlyArray<string>, nonsense: number): Effect.Effect<ApproveAnswer, Ended> =>
    Effect.flatMap(
      ask({ lines, label: "edit> ", initial: text, paste: "insert", followUp: true, back: true }),
      (typed) =>
        Either.match(ConsolePrompt.parseEdit(editable, typed), {
          onLeft: (reason) =>
            isTooMuch(screen, nonsense + 1)
              ? Effect.fail(new PatienceLost())
              : go(typed, [style.yellow(Display.reveal(reason))], nonsense + 1),
          onRight: (editedArguments) => Effect.succeed<ApproveAnswer>({ decision: "edit", editedArguments })
        })
    )
  return go(
    ConsolePrompt.editText(editable),
    [style.dim("Enter submits, Ctrl-J begins a new line, Ctrl-G opens your editor, Escape goes back.")],
    0
  )
}

const elicit =
  (screen: ConsoleScreen.Service, options: Options) =>
  (request: InteractionRequest<Elicit>): Effect.Effect<Field.Values, InteractionError> =>
    open(screen, request, options, (ask, prompt) =>
      ConsoleForm.ask<Ended>(
        {
          insist: (question, understand) => insist(screen, ask, { ...question, commands: true }, [], understand),
          withdrawn: new Withdrawn(),
          color: screen.color,
          reviews: screen.source === "person",
          lines: prompt.lines
        },
        request.interaction
      )
    )

const clarify =
  (screen: ConsoleScreen.Service, options: Options) =>
  (request: InteractionRequest<Clarify>): Effect.Effect<Question.ClarifyAnswers, InteractionError> =>
    open(screen, request, options, (ask, prompt) =>
      Effect.gen(function* () {
        const { questions } = request.interaction
        const answers: Record<string, Question.QuestionAnswer> = {}
        for (const [index, question] of questions.entries()) {
          const number = index + 1
          const total = questions.length
          const lines = ConsolePrompt.renderQuestion(question, number, total, screen)
          yield* FormProgress.tell({ number, total })
          const answer = yield* insist<Question.QuestionAnswer>(
            screen,
            ask,
            {
              lines: number === 1 ? [...prompt.lines, ...lines] : lines,
              label: prompt.label,
              paste: question.question_type === "free_text" ? "insert" : "draft",
              commands: true,
              keys: ConsolePrompt.questionKeys(question),
              followUp: number > 1
            },
            [],
            (line) =>
              Question.isCancel(line) ? Effect.fail(new Withdrawn()) : Effect.succeed(Question.parse(question, line))
          )
          answers[String(number)] = answer
          yield* FormProgress.tell({ number, total, answer })
        }
        return answers
      })
    )
