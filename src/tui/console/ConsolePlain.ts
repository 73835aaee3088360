/**
 * A screen for pipes: lines in, text out, no cursor movement, no spinner. It stands in for `ConsoleScreen` when the
 * input or the output is not a terminal.
 *
 * Lines are handed out on demand: to the open dialog first, else to the reader of lines. A line that nobody waits for
 * stays where it is, so piped input is never lost, and never answers a question before it is asked.
 *
 * @since 0.1.0
 */
import * as Terminal from "@effect/platform/Terminal"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as ConsoleScreen from "./ConsoleScreen.js"
import * as FairLock from "../../internal/FairLock.js"
import * as AnswerTime from "../terminal/AnswerTime.js"
import * as ChoiceList from "../terminal/ChoiceList.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as TerminalText from "../../core/TerminalText.js"
import * as WordWrap from "../terminal/WordWrap.js"

/**
 * Colours, and whether the terminal shows what is typed.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly color: boolean
  /**
   * True when something outside of our control shows what is typed, such as a terminal in its normal mode. A hidden
   * question is closed then, unless `unseen` can prevent it.
   */
  readonly echoes: boolean
  /**
   * Hands out what was typed of a line that has no end yet, where a terminal keeps it back until then. A question would
   * get it as the beginning of its answer. Default: nothing is kept back.
   */
  readonly unfinished?: Effect.Effect<void> | undefined
  /**
   * Has whole lines that were typed up to now read: the terminal has shown them already, and a prompt behind them would not be
   * theirs. Default: they are read when they are typed.
   */
  readonly caughtUp?: Effect.Effect<void> | undefined
  /** How rows are marked: by drawn signs, or in words for a screen reader. Default: `drawn`. */
  readonly signs?: "drawn" | "said" | undefined
  /** As in `ConsoleScreen`. Default: never. */
  readonly isEnding?: (() => boolean) | undefined
  /** Runs an effect while what is typed is not shown, where that can be had. Default: it cannot. */
  readonly unseen?: (<A, E>(use: Effect.Effect<A, E>) => Effect.Effect<A, E>) | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Reads until the scope closes. An unfinished last line counts as a line, but answers no dialog.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<ConsoleScreen.Service, never, Terminal.Terminal | Scope.Scope> =>
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const { isEnding = () => false } = options
    const style = Display.style(options.color)
    const queue = FairLock.make()
    const lock = Effect.unsafeMakeSemaphore(1)
    /** Whether the output ends in the middle of a line. */
    let unfinished = false
    let printings = 0
    /** Whether the prompt is the last thing on it. */
    let isInvited = false
    /** Whether an empty line came where it stood, and nothing since. */
    let isPassed = false
    const inbox = makeLines((isEmpty) => {
      // The terminal has shown the line, and its end.
      if (isInvited) unfinished = false
      isPassed = isInvited && isEmpty
      isInvited = false
    })
    const keys = yield* terminal.readInput
    let commands: (line: string) => Effect.Effect<void> | undefined = () => undefined

    const wrap = WordWrap.make()
    /** The width of a row where a person reads it. */
    const width = Effect.map(terminal.columns, (count) => (options.echoes && count > 0 ? count : undefined))

    const writeNow = (text: string, invites = false): Effect.Effect<void> =>
      Effect.suspend(() => {
        const out = TerminalText.keepStyles(text)
        if (out === "") return Effect.void
        printings++
        unfinished = !out.endsWith("\n")
        isInvited = invites
        isPassed = false
        return Effect.catchAll(terminal.display(out), () => Effect.sync(inbox.end))
      })
    const write = (text: (unfinished: boolean) => string, invites = false): Effect.Effect<void> =>
      lock.withPermits(1)(
        Effect.flatMap(width, (count) => {
          const rest = count === undefined ? "" : wrap.end(count)
          return writeNow(rest + text(unfinished || rest !== ""), invites)
        })
      )
    /** Words that may end in the middle of one. */
    const stream = (text: string): Effect.Effect<void> =>
      lock.withPermits(1)(
        Effect.flatMap(width, (count) =>
          Effect.zipRight(
            isInvited && !text.startsWith("\n") ? writeNow("\n") : Effect.void,
            writeNow(count === undefined ? text : wrap.push(TerminalText.keepStyles(text), count))
          )
        )
      )
    const writeLine = (text: string): Effect.Effect<void> => write((open) => `${open ? "\n" : ""}${text}\n`)
    /** A line of a dialog: broken between words where a person reads it, and whole for a program. */
    const writeWords = (text: string, before = ""): Effect.Effect<void> =>
      Effect.flatMap(width, (count) => {
        const rows = count === undefined ? text.split("\n") : Display.wrapBelow(text, count - Display.width(before))
        return writeLine(rows.map((row) => before + row).join("\n"))
      })
    const columns = Effect.map(terminal.columns, (count) => (count > 0 ? count : 80))
    let prompt = usual
    /** The prompt stands where the next line is typed, unless it or a dialog does, or a line was typed ahead. */
    const invite = Effect.suspend(() => {
      if (inbox.isTaken() || isInvited) return Effect.void
      const before = inbox.lines()
      return Effect.zipRight(
        options.caughtUp ?? Effect.void,
        Effect.suspend(() =>
          inbox.isTaken() || isInvited || inbox.lines() > before
            ? Effect.void
            : write((open) => `${open ? "\n" : ""}${prompt}${TerminalText.reveal(inbox.begun())}`, true)
        )
      )
    })
    /** Keeps from a question what a person had typed when they could not have read it. */
    const setAside = Effect.suspend(() => {
      if (!options.echoes) return Effect.void
      return Effect.flatMap(options.unfinished ?? Effect.void, () => {
        const typed = inbox.setAside()
        if (typed === "") return Effect.void
        unfinished = true
        return writeWords(style.dim(`(Typed before the question and not taken: ${TerminalText.reveal(typed)})`))
      })
    })

    yield* Effect.addFinalizer(() => Effect.sync(inbox.end))
    /** What was typed before anything was printed has no end yet, and stands in the first row. */
    const startBelow = Effect.zipRight(
      options.unfinished ?? Effect.void,
      Effect.sync(() => (unfinished = inbox.begun() !== ""))
    )
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        while (true) {
          const [typed, done] = yield* keys.takeAll
          for (const input of typed) inbox.press(input)
          if (done) return inbox.end()
        }
      })
    )
    if (options.echoes) yield* startBelow

    const ask: ConsoleScreen.Asker = (question) =>
      Effect.gen(function* () {
        const before = question.begun ?? question.initial
        const initial = before === undefined ? [] : [TerminalText.reveal(before)]
        // Quoted text stays behind a gutter here too, so that it cannot pass for a title.
        const choices = ChoiceList.numbered(question.choices ?? []).map(({ label }) => TerminalText.reveal(label))
        const { bar } = Glyphs.of(options)
        for (const text of [...choices, ...question.lines, ...initial]) yield* writeWords(text, style.dim(bar))
        const { unseen } = options
        const isHidden = question.hidden === true && options.echoes
        if (isHidden && unseen === undefined) {
          yield* writeLine("(Assent cannot ask for a secret here: the terminal would show it.)")
          return yield* new ConsoleScreen.DialogClosed({ by: "end of input" })
        }
        const takesCommands = question.commands ?? question.paste !== "insert"
        for (;;) {
          yield* write((open) => `${open ? "\n" : ""}${question.label}`)
          const event = yield* isHidden && unseen !== undefined
            ? unseen(
                Effect.ensuring(
                  Effect.zipRight(
                    Effect.sync(() => inbox.typeUnseen(true)),
                    inbox.take("dialog")
                  ),
                  Effect.sync(() => inbox.typeUnseen(false))
                )
              )
            : inbox.take("dialog")
          const line = event._tag === "Line" ? event.text : undefined
          if (line !== undefined && options.echoes && !isHidden) unfinished = false
          else
            yield* write(() => `${line === undefined || question.hidden === true ? "" : TerminalText.reveal(line)}\n`)
          if (line === undefined) {
            return yield* new ConsoleScreen.DialogClosed({
              by: event._tag === "Interrupt" ? "interrupt" : "end of input"
            })
          }
          if (question.back === true && line.trim() === "")
            return yield* new ConsoleScreen.DialogClosed({ by: "escape" })
          const command = takesCommands ? commands(line) : undefined
          if (command === undefined) return line
          yield* command
        }
      })

    /** Says once to a person how long they have. */
    const tellTime = (dialog: Dialog, { until }: ConsoleScreen.Question): Effect.Effect<void> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const isTold = dialog.until !== undefined
        dialog.until = until?.()
        if (until === undefined || isTold || !options.echoes) return Effect.void
        return writeWords(style.yellow(AnswerTime.whole(until() - now)))
      })

    return {
      color: options.color,
      isEnding,
      source: options.echoes ? "person" : "pipe",
      reads: "lines",
      signs: options.signs,
      columns,
      rows: Effect.succeed(Infinity),
      printings: () => printings,
      print: stream,
      printLine: writeLine,
      status: () => Effect.void,
      live: () => Effect.void,
      footer: () => Effect.void,
      page: ({ lines, title }) => Effect.forEach([title, ...lines(Infinity).flat()], writeLine, { discard: true }),
      // Nothing was said by an empty line, and it is still their turn.
      next: inbox.take(
        "next",
        Effect.suspend(() => (isPassed ? invite : Effect.void))
      ),
      draft: Effect.succeed(""),
      // Nobody else edits the line, so it can only be told.
      setDraft: (text) =>
        !options.echoes
          ? Effect.void
          : text === ""
            ? Effect.sync(inbox.drop)
            : writeWords(style.dim(`(Not sent: ${TerminalText.reveal(text)})`)),
      setPrompt: (next) =>
        Effect.sync(() => {
          prompt = next ?? usual
        }),
      ...(options.echoes && options.signs === "said" ? { invite } : {}),
      setCompletion: () => Effect.void,
      setCommands: (next) =>
        Effect.sync(() => {
          commands = next
        }),
      dialog: (title, use) =>
        queue.hold(
          Effect.acquireUseRelease(
            Effect.sync((): Dialog => {
              inbox.hold()
              return { until: undefined }
            }),
            (dialog) =>
              setAside.pipe(
                Effect.zipRight(writeWords(style.bold(title))),
                Effect.zipRight(use((question) => Effect.zipRight(tellTime(dialog, question), ask(question)))),
                Effect.onInterrupt(() =>
                  Effect.flatMap(Clock.currentTimeMillis, (now) =>
                    // It is said elsewhere what becomes of a question at which the input or the program has ended.
                    inbox.hasEnded() || isEnding()
                      ? Effect.void
                      : writeWords(style.dim(`${title} (closed: ${AnswerTime.whyClosed(dialog.until, now)})`))
                  )
                )
              ),
            () => Effect.sync(inbox.release)
          )
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A screen for output that cannot be redrawn; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<ConsoleScreen.ConsoleScreen, never, Terminal.Terminal> =>
  Layer.scoped(ConsoleScreen.ConsoleScreen, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Before a person's next words. */
const usual = "you> "

/** One that is open. */
interface Dialog {
  /** When its time ends, once a question with a limit was asked in it. */
  until: number | undefined
}

interface Entry {
  readonly text: string
  /** False for a last line without its line end. */
  readonly finished: boolean
  /** True for a line that a person typed before the question: it is no answer. */
  isEarly?: boolean
}

type Event = Extract<ConsoleScreen.Submitted, { readonly _tag: "Line" | "EndOfInput" | "Interrupt" }>

/** The lines that were read and not yet taken. Every change is one synchronous step. */
const makeLines = (onNext: (isEmpty: boolean) => void) => {
  const entries: Array<Entry> = []
  const waiters = new Set<() => void>()
  let current = ""
  let count = 0
  let afterReturn = false
  let ended = false
  let held = false
  /** Keys come as they are: nobody else edits the line. */
  let unseen = false
  /** The question was given up by a key. */
  let given = false

  // Waiters are woken, not handed a line: a waiter that is interrupted in this moment must not lose it.
  const wake = () => {
    for (const waiter of waiters) waiter()
    waiters.clear()
  }
  const woken = Effect.async<void>((resume) => {
    const waiter = () => resume(Effect.void)
    waiters.add(waiter)
    return Effect.sync(() => waiters.delete(waiter))
  })
  const takeNow = (who: "dialog" | "next"): Event | undefined => {
    if (who === "next" && held) return undefined
    if (given && who === "dialog") {
      given = false
      return ConsoleScreen.Interrupt()
    }
    while (who === "next" && entries[0]?.text.trim() === "") {
      entries.shift()
      onNext(true)
    }
    const at = who === "next" ? 0 : entries.findIndex(({ isEarly }) => isEarly !== true)
    const entry = entries[at]
    // A line that was cut off may have been meant to go on: it decides nothing, and is no message either.
    const isCutOff = who === "dialog" && entry?.finished === false
    if (entry !== undefined) entries.splice(at, 1)
    if (entry === undefined || isCutOff) return ended ? ConsoleScreen.EndOfInput() : undefined
    if (who === "next") onNext(false)
    return ConsoleScreen.Line({ text: entry.text })
  }
  const take = (who: "dialog" | "next", before = Effect.void): Effect.Effect<Event> =>
    Effect.suspend(() => {
      const event = takeNow(who)
      return event === undefined
        ? Effect.zipRight(before, Effect.zipRight(woken, take(who, before)))
        : Effect.succeed(event)
    })

  const end = (): void => {
    if (current !== "") entries.push({ text: current, finished: false })
    current = ""
    ended = true
    wake()
  }

  return {
    take,
    hasEnded: () => ended,
    /** How many came so far. */
    lines: () => count,
    /** The beginning of a line that has no end yet. */
    begun: (): string => current,
    drop: (): void => {
      current = ""
    },
    isTaken: () => held || ended || entries.length > 0,
    press: ({ input, key }: Terminal.UserInput): void => {
      const second = key.name === "enter" && afterReturn
      afterReturn = key.name === "return"
      if (second) return
      if (unseen && (key.name === "backspace" || (key.ctrl && key.name === "u"))) {
        current = key.ctrl ? "" : current.slice(0, -1)
      } else if (unseen && key.ctrl && key.name === "d" && current === "") {
        // The terminal does not make an end of it now.
        end()
      } else if (unseen && key.ctrl && (key.name === "c" || key.name === "d")) {
        current = ""
        given = true
        wake()
      } else if (key.name === "return" || key.name === "enter") {
        entries.push({ text: current, finished: true })
        count++
        current = ""
        wake()
      } else if (!key.ctrl && !key.meta) current += Option.getOrElse(input, () => "").replace(/[^\P{Cc}\t]/gu, "")
    },
    /** Whole lines stay for the reader of lines; the beginning of one is yielded, and gone. */
    setAside: (): string => {
      for (const entry of entries) entry.isEarly = true
      const typed = current
      current = ""
      return typed
    },
    end,
    typeUnseen: (next: boolean): void => {
      unseen = next
      given = false
      current = ""
    },
    hold: (): void => {
      held = true
    },
    release: (): void => {
      held = false
      wake()
    }
  }
}
