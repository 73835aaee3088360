/**
 * The dialogs in which a person decides about calls: with a comment, an edit, a look at all of it, a rule for the workspace;
 * and several of one tool in one: see `ConsoleBatch`.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Approve, ApproveAnswer } from "../../interaction/Interaction.js"
import type { InteractionError } from "../../interaction/InteractionError.js"
import type { InteractionRequest } from "../../interaction/InteractionRequest.js"
import type * as Interactor from "../../interaction/Interactor.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as ConsoleBatch from "./ConsoleBatch.js"
import {
  diffLook,
  insist,
  isTooMuch,
  Once,
  open,
  PatienceLost,
  Withdrawn,
  type Asker,
  type Ended,
  type Understood
} from "./ConsoleDialog.js"
import type { Options } from "./ConsoleOptions.js"
import * as ConsolePrompt from "./ConsolePrompt.js"
import * as ConsoleScreen from "./ConsoleScreen.js"

/** Answers approvals: a call alone, or beside others of its tool that were proposed with it. */
export const make = (screen: ConsoleScreen.Service, options: Options): Interactor.Handler<"Approve"> => {
  const batches = new ConsoleBatch.Batches()
  const alone = approveAlone(screen, options)
  return (request, asked) => {
    const place = request.batch
    // Lines of a pipe were written for one question each.
    if (place === undefined || screen.source === "pipe") return alone(request, asked)
    return Effect.suspend(() => {
      const batch = batches.of(place)
      const given = batch.take(place.index, request.interaction)
      if (given === undefined || given === "changed") {
        const noted =
          given === "changed"
            ? screen.printLine(`${place.index} differs from the call that you saw, so your answer does not count.`)
            : Effect.void
        return Effect.zipRight(noted, together(screen, options, alone, request, asked, batch))
      }
      return Effect.as(
        screen.printLine(Display.style(screen.color).dim(ConsoleBatch.told(request, given, Glyphs.of(screen)))),
        given
      )
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Asked = Interactor.Options<Approve>

const approveAlone =
  (screen: ConsoleScreen.Service, options: Options) =>
  (request: InteractionRequest<Approve>, asked?: Asked): Effect.Effect<ApproveAnswer, InteractionError> =>
    open(
      screen,
      request,
      options,
      (ask, { help, keys, label, lines, options: choice, title, whole }) => {
        const begun: Begun = {}
        // What it is about stands above the options again, in a row.
        const seen = new Once({ lines: [...lines.slice(0, 1), ...choice] })
        const view =
          whole &&
          Effect.as(
            Effect.suspend(() => viewed(screen, title, whole)),
            Either.left(seen)
          )
        return insist(screen, ask, { lines, label, keys }, choice, (line) =>
          understood(screen, ask, request.interaction, line, { ...options, begun, help, view })
        )
      },
      asked
    )

/** Shows a long text: over the whole terminal where one is drawn, with the question behind it; else it is printed. */
const viewed = (
  screen: ConsoleScreen.Service,
  title: string,
  whole: () => ReadonlyArray<string>
): Effect.Effect<void> => {
  const lines = whole()
  return isByLines(screen)
    ? // Behind a gutter, as in a dialog: quoted text must not pass for a question.
      screen.printLine(lines.map((line) => Glyphs.of(screen).bar + line).join("\n"))
    : screen.page({ title, lines: (columns) => lines.map((line) => Display.wrap(line, columns)) })
}

/** What was begun of an answer to one call, by people who went back from it. */
interface Begun {
  comment?: string | undefined
  edit?: string | undefined
}

/** What a line at the dialog of a call means; a second question may follow. */
const understood = (
  screen: ConsoleScreen.Service,
  ask: Asker,
  interaction: Approve,
  line: string,
  {
    begun,
    help,
    keepForProject,
    view
  }: Pick<Options, "keepForProject"> &
    Pick<ConsolePrompt.Prompt, "help"> & {
      readonly begun: Begun
      /** Shows the whole text, where that is offered. */
      readonly view: Effect.Effect<Understood<never>> | undefined
    }
): Effect.Effect<Understood<ApproveAnswer>, Ended> => {
  // Whoever goes back sees the options once more; what is asked about stands above.
  const orBack = (
    asked: Effect.Effect<ApproveAnswer, Ended>,
    keep: (left: string | undefined) => void = () => {}
  ): Effect.Effect<Understood<ApproveAnswer>, Ended> =>
    Effect.catchIf(Effect.map(asked, Either.right), isBack, ({ left }) => {
      keep(left?.trim() === "" ? undefined : left)
      return Effect.succeed(Either.left(new Once({ lines: help })))
    })
  const offered = { project: keepForProject !== undefined, view: view !== undefined }
  const parsed = ConsolePrompt.parse(interaction, line, offered)
  switch (parsed._tag) {
    case "Answered":
      return Effect.succeed(Either.right(parsed.answer))
    case "Again":
      return Effect.succeed(Either.left(parsed.reason))
    case "Cancelled":
      return Effect.fail(new Withdrawn())
    case "NeedsComment":
      return orBack(comment(screen, ask, begun.comment), (left) => (begun.comment = left))
    case "NeedsEdit":
      return orBack(edit(screen, ask, interaction, begun.edit), (left) => (begun.edit = left))
    case "NeedsView":
      return view ?? Effect.succeed(Either.left(new Once({ lines: help })))
    case "NeedsHelp":
      return Effect.succeed(Either.left(new Once({ lines: help })))
    case "NeedsProject":
      return keepForProject === undefined
        ? Effect.fail(new Withdrawn())
        : orBack(project(screen, ask, interaction, keepForProject))
  }
}

/** Shows a call beside others of its tool that will be asked about, where there are some and room for them. */
const together = (
  screen: ConsoleScreen.Service,
  options: Options,
  alone: ReturnType<typeof approveAlone>,
  request: InteractionRequest<Approve>,
  asked: Asked | undefined,
  batch: ConsoleBatch.Batch
): Effect.Effect<ApproveAnswer, InteractionError> =>
  Effect.gen(function* () {
    if (batch.isSplit) return yield* alone(request, asked)
    const { interaction } = request
    const { upcoming = Effect.succeed([]) } = asked ?? {}
    const others = (yield* upcoming).filter((other) => other.interaction.needs === undefined)
    const now = yield* Clock.currentTimeMillis
    const look = {
      color: screen.color,
      now,
      diff: yield* diffLook(screen, request),
      columns: yield* screen.columns,
      signs: Glyphs.of(screen),
      rows: yield* screen.rows
    }
    const first = { index: request.batch?.index ?? 1, interaction }
    const items = ConsoleBatch.fitting([first, ...others].map(ConsoleBatch.itemOf), look)
    const [item] = items
    // One that is left alone is still shown as one of many while what was said about others is kept.
    if (item === undefined || (items.length < 2 && batch.answered.length === 0)) return yield* alone(request, asked)
    const { lines, title, whole } = ConsoleBatch.render(request, items, batch, look)
    const begun = new Map(items.map((one) => [one, {}]))
    const answer = yield* open(
      screen,
      request,
      options,
      (ask, { label }) =>
        insist(screen, ask, { lines, label, keys: ConsoleBatch.keys }, [], (line) => {
          // Only what somebody had before them when they typed was seen.
          for (const one of whole) batch.saw(one)
          return heard(screen, ask, options, line, { items, item, batch, begun, look, title })
        }),
      { halt: asked?.halt, next: asked?.next, shown: asked?.shown, title }
    )
    return answer === "singly" ? yield* alone(request, asked) : answer
  })

/** What a line at the dialog of several means. */
const heard = (
  screen: ConsoleScreen.Service,
  ask: Asker,
  options: Options,
  line: string,
  {
    batch,
    begun,
    item: first,
    items,
    look,
    title
  }: {
    readonly begun: ReadonlyMap<ConsoleBatch.Item, Begun>
    readonly items: ReadonlyArray<ConsoleBatch.Item>
    /** The one that is open. */
    readonly item: ConsoleBatch.Item
    readonly batch: ConsoleBatch.Batch
    readonly look: ConsoleBatch.Look
    readonly title: string
  }
): Effect.Effect<Understood<ApproveAnswer | "singly">, Ended> => {
  const again = () => Either.left(new Once({ lines: ConsoleBatch.renderAgain(items, batch, look) }))
  const view = (seen: ReadonlyArray<ConsoleBatch.Item>) => {
    const whole = () => seen.flatMap((one) => ConsoleBatch.renderWhole(one, items, look))
    return Effect.map(viewed(screen, title, whole), () => {
      for (const one of seen) batch.saw(one)
      return again()
    })
  }
  const one = (item: ConsoleBatch.Item, words: string): Effect.Effect<Understood<ApproveAnswer>, Ended> => {
    // A rule for the workspace would decide others that have their answer.
    const isFree = item === first && batch.answered.length === 0
    const { keepForProject } = options
    const own = isFree && batch.hasSeen(item) ? { keepForProject } : {}
    const asked = {
      ...own,
      begun: begun.get(item) ?? {},
      help: ConsoleBatch.renderAgain(items, batch, look),
      view: view([item])
    }
    if (/^(?:v|view)$/i.test(words)) return view([item])
    return Effect.map(understood(screen, ask, item.interaction, words, asked), (answered) => {
      if (Either.isLeft(answered)) return answered
      const refused = ConsoleBatch.refusal(item, answered.right, items, batch)
      if (refused !== undefined) return Either.left(refused)
      if (item === first) return answered
      batch.give(item, answered.right)
      return again()
    })
  }
  const typed = ConsoleBatch.parse(line, items, batch)
  switch (typed._tag) {
    case "One":
      return one(typed.item, typed.words)
    case "Lasting": {
      const refused = ConsoleBatch.lastingRefusal(first, batch)
      if (refused !== undefined) return Effect.succeed(Either.left(refused))
      return understood(screen, ask, first.interaction, typed.words, {
        begun: begun.get(first) ?? {},
        help: ConsoleBatch.help,
        view: view([first])
      })
    }
    case "All":
      for (const item of items) {
        if (item !== first && batch.answerTo(item) === undefined) batch.give(item, typed.answer)
      }
      return Effect.succeed(Either.right(typed.answer))
    case "View":
      return view(typed.items)
    case "Singly":
      batch.split()
      return Effect.succeed(Either.right("singly"))
    case "Help":
      return Effect.succeed(Either.left(new Once({ lines: ConsoleBatch.help })))
    case "Again":
      return Effect.succeed(Either.left(typed.reason))
  }
}

const isBack = (ended: Ended): ended is ConsoleScreen.DialogClosed =>
  ended._tag === "DialogClosed" && ended.by === "escape"

/** The rule is shown before it is kept. This call is then allowed by the answer, and later ones by the rule. */
const project = (
  screen: ConsoleScreen.Service,
  ask: Asker,
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

const comment = (
  screen: ConsoleScreen.Service,
  ask: Asker,
  begun: string | undefined
): Effect.Effect<ApproveAnswer, Ended> =>
  insist(
    screen,
    ask,
    {
      lines: [
        `The call is denied. What should the agent do instead? ${isByLines(screen) ? "An empty line" : "Escape"} goes back.`
      ],
      label: "comment> ",
      begun,
      paste: "insert",
      commands: true,
      back: true,
      followUp: true
    },
    [],
    (line) => {
      const words = line.trim()
      // A blank before the slash makes words of it, as at the prompt.
      if (ask.meant(line) !== undefined)
        return Effect.succeed(Either.left("Begin with a blank to say it all the same."))
      return Effect.succeed(words === "" ? Either.left("Please type some words.") : Either.right(deny(words)))
    }
  )

const deny = (words: string): ApproveAnswer => ({ decision: "deny", scope: "once", comment: words })

const edit = (
  screen: ConsoleScreen.Service,
  ask: Asker,
  { editable }: Approve,
  begun: string | undefined
): Effect.Effect<ApproveAnswer, Ended> => {
  if (editable === undefined) return Effect.fail(new PatienceLost())
  const style = Display.style(screen.color)
  const byLines = isByLines(screen)
  const hint = style.dim(byLines ? editByLines : editByKeys)
  // After a mistake the text stays as it was typed, so that nobody has to start again.
  const go = (
    begun: string | undefined,
    lines: ReadonlyArray<string>,
    nonsense: number
  ): Effect.Effect<ApproveAnswer, Ended> =>
    Effect.flatMap(
      // By keys the whole text is typed over, and may well begin with a slash.
      ask({
        lines,
        label: "edit> ",
        initial: ConsolePrompt.editText(editable),
        begun,
        paste: "insert",
        commands: byLines,
        followUp: true,
        back: true
      }),
      (typed) =>
        Either.match(ConsolePrompt.parseEdit(editable, typed), {
          onLeft: (reason) =>
            isTooMuch(screen, nonsense + 1)
              ? Effect.fail(new PatienceLost())
              : go(typed, [style.yellow(Display.reveal(reason)), ...(byLines ? [hint] : [])], nonsense + 1),
          onRight: (editedArguments) => Effect.succeed<ApproveAnswer>({ decision: "edit", editedArguments })
        })
    )
  return go(begun, [hint], 0)
}

const editByKeys = "Enter submits, Ctrl-J begins a new line, Ctrl-G opens your editor, Escape goes back."
const editByLines = "Type all of it again, on one line. An empty line goes back. It is now:"

const isByLines = ({ reads }: ConsoleScreen.Service): boolean => reads === "lines"
