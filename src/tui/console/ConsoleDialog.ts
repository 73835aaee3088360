/**
 * How a request becomes a dialog at a console: it is opened with who asks, and its question is put until it is answered.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Answer, Interaction } from "../../interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable } from "../../interaction/InteractionError.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import * as Interactor from "../../interaction/Interactor.js"
import * as Display from "../terminal/Display.js"
import * as ScreenLayout from "../terminal/ScreenLayout.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as ConsolePrompt from "./ConsolePrompt.js"
import * as Handover from "../../interaction/Handover.js"
import { patience, type Options } from "./ConsoleOptions.js"
import * as ConsoleScreen from "./ConsoleScreen.js"

/** The id of the interactor. */
export const id = "console"

/** Too many lines were not understood. */
export class PatienceLost {
  readonly _tag = "PatienceLost"
}
/** The person withdrew the request with a word. */
export class Withdrawn {
  readonly _tag = "Withdrawn"
}
/** The person left it to whoever is asked next. */
export class Passed {
  readonly _tag = "Passed"
}
export type Ended = ConsoleScreen.DialogClosed | PatienceLost | Withdrawn | Passed

/** As the screen asks, of a person who may pass the question on. */
export interface Asker {
  (question: ConsoleScreen.Question): Effect.Effect<string, ConsoleScreen.DialogClosed | Passed>
  /** What a line that is no answer may have been meant for. */
  readonly meant: NonNullable<Options["meant"]>
}

/** The question is asked once more, with these lines, because the person wanted that. */
export class Once extends Data.TaggedClass("Once")<{ readonly lines: ReadonlyArray<string> }> {}
/** What became of a line: an answer, or what is wrong with it, or another look at the question. */
export type Understood<A> = Either.Either<A, string | Once>

/** Opens the dialog of a request. A dialog that ends without an answer decides nothing. */
export const open = <I extends Interaction, A = Answer<I>>(
  screen: ConsoleScreen.Service,
  request: InteractionRequest<I>,
  options: Options,
  use: (ask: Asker, prompt: ConsolePrompt.Prompt) => Effect.Effect<A, Ended>,
  {
    halt,
    next,
    shown,
    title
  }: Pick<Interactor.Options<I>, "halt" | "next" | "shown"> & { readonly title?: string } = {}
): Effect.Effect<A, InteractionCancelled | InteractorUnavailable> =>
  Effect.flatMap(looks(screen, request), ([now, diff, draw, columns, rows]) => {
    const style = Display.style(screen.color)
    const follows = next === undefined ? [] : [style.dim(Handover.describe(request.interaction, next))]
    const rendered = ConsolePrompt.render(request, {
      color: screen.color,
      now,
      diff,
      draw,
      grouped: screen.source === "person",
      project: options.keepForProject !== undefined,
      menus: hasMenus(screen),
      fits: (title, lines) =>
        ScreenLayout.content(style, { title, question: { lines: [...follows, ...lines] } }, columns).length <= rows
    })
    const prompt = { ...rendered, lines: [...follows, ...rendered.lines] }
    const { requestId } = request
    const cancelled = new InteractionCancelled({ requestId, by: options.principal ?? id })
    const { atEnd, left } = options
    let isShown = false
    const tellLeft = Effect.suspend(() =>
      isShown && left !== undefined && screen.isEnding?.() === true ? left(screen) : Effect.void
    )
    /** The dialog stays until the halt takes it away: nobody hears of the end of input before, and ends more than the turn. */
    const staysOpen = halt !== undefined && atEnd !== undefined
    const orHalt = <A, E>(asked: Effect.Effect<A, E | ConsoleScreen.DialogClosed>) =>
      !staysOpen
        ? asked
        : Effect.catchIf(asked, isAtEnd, () => Effect.zipRight(Effect.flatMap(atEnd, halt), Effect.never))
    return screen
      .dialog(title ?? prompt.title, (ask) =>
        // The dialog of something else may have stood before it: the time begins here.
        Effect.flatMap(shown ?? Effect.succeed(undefined), (until) => {
          isShown = true
          const asker = (question: ConsoleScreen.Question) => {
            const asked = orHalt(ask({ ...question, until, staysOpen }))
            // A text that belongs to an answer may be any word.
            if (next === undefined || question.back === true) return asked
            return Effect.filterOrFail(
              asked,
              (line) => !Handover.is(request.interaction, line),
              () => new Passed()
            )
          }
          return use(Object.assign(asker, { meant: options.meant ?? (() => undefined) }), prompt)
        })
      )
      .pipe(
        Effect.onInterrupt(() => tellLeft),
        Effect.catchAll((ended): Effect.Effect<never, InteractionCancelled | InteractorUnavailable> => {
          // The end of input is no decision: others may still answer.
          if (isAtEnd(ended)) return new InteractionCancelled({ requestId })
          if (ended._tag === "Passed")
            return new InteractorUnavailable({ requestId, by: options.principal ?? id, reason: Handover.reason })
          if (ended._tag !== "PatienceLost") return cancelled
          const reason = "Assent understood no answer"
          return Effect.zipRight(
            screen.printLine(style.yellow("No answer was understood.")),
            new InteractorUnavailable({ requestId, by: id, reason })
          )
        })
      )
  })

const isAtEnd = (ended: unknown): ended is ConsoleScreen.DialogClosed =>
  ended instanceof ConsoleScreen.DialogClosed && ended.by === "end of input"

/** Whether choices can be walked through: not where lines are read. */
export const hasMenus = ({ reads }: ConsoleScreen.Service): boolean => reads !== "lines"

/** How diffs look at this screen. Colours of code are loaded for the first of them. */
export const diffLook = (screen: ConsoleScreen.Service, { interaction }: InteractionRequest) =>
  screen.source === "pipe" || interaction._tag !== "Approve" || interaction.display?.format !== "diff"
    ? Effect.succeed(undefined)
    : screen.color
      ? Effect.promise(async () => ({
          colors: (await import("../terminal/CodeColors.js")).ofCode,
          signs: Glyphs.of(screen)
        }))
      : Effect.succeed({ signs: Glyphs.of(screen) })

const looks = (screen: ConsoleScreen.Service, request: InteractionRequest) =>
  Effect.all([
    Clock.currentTimeMillis,
    diffLook(screen, request),
    markdownLook(screen, request),
    screen.columns,
    screen.rows
  ])

/** How Markdown is drawn at this screen; nothing where it is shown as it is written. */
const markdownLook = (screen: ConsoleScreen.Service, { interaction }: InteractionRequest) =>
  screen.source === "pipe" ||
  screen.signs === "said" ||
  interaction._tag !== "Approve" ||
  interaction.display?.format !== "markdown"
    ? Effect.succeed(undefined)
    : Effect.zipWith(
        Effect.promise(() =>
          Promise.all([import("../terminal/MarkdownStream.js"), import("../terminal/CodeColors.js")])
        ),
        screen.columns,
        ([MarkdownStream, CodeColors], columns) =>
          (text: string) =>
            text.length > longestDrawn
              ? Display.reveal(text).split("\n")
              : MarkdownStream.rows(Display.reveal(text), columns, {
                  color: screen.color,
                  colors: screen.color ? CodeColors.ofCode : undefined
                })
      )

/** Characters of Markdown beyond which it is shown as it was written: no key is read while it is drawn. */
const longestDrawn = 8_000

export const isTooMuch = (screen: ConsoleScreen.Service, nonsense: number): boolean =>
  screen.source === "pipe" && nonsense >= patience

/**
 * Asks a question until its answer is understood, or too many were not. `again` is shown below each reason. Words that were
 * not understood stay in the answer, to be changed or typed over.
 */
export const insist = <A>(
  screen: ConsoleScreen.Service,
  ask: Asker,
  question: ConsoleScreen.Question,
  again: ReadonlyArray<string>,
  understand: (line: string) => Effect.Effect<Understood<A>, Ended>
): Effect.Effect<A, Ended> => {
  const style = Display.style(screen.color)
  const go = (current: ConsoleScreen.Question, nonsense: number): Effect.Effect<A, Ended> =>
    Effect.flatMap(ask(current), (line) =>
      Effect.flatMap(understand(line), (understood) => {
        if (Either.isRight(understood)) return Effect.succeed(understood.right)
        if (typeof understood.left !== "string") return go({ ...question, lines: understood.left.lines }, nonsense)
        if (isTooMuch(screen, nonsense + 1)) return Effect.fail(new PatienceLost())
        const meant = question.hidden === true ? undefined : ask.meant(line)
        const reasons = meant === undefined ? [understood.left] : [meant, understood.left]
        const lines = [...reasons.map((reason) => style.yellow(Display.reveal(reason))), ...again]
        // Keys typed ahead must not answer a question of authority. A text, and above all a secret, must not lose any.
        const menu = question.menu && { ...question.menu, isKept: true }
        const isKept = question.hidden !== true && hasMenus(screen) && /\S\s+\S/.test(line)
        const kept = isKept ? { begun: line, replaces: true } : {}
        return go({ ...question, lines, menu, ...kept, followUp: question.paste === "insert" }, nonsense + 1)
      })
    )
  return go(question, 0)
}
