/**
 * The only owner of a terminal's input and output: a prompt that stays at the bottom while output scrolls by above it,
 * and dialogs that take the prompt's place without losing the draft there.
 *
 * Who gets a key while a dialog is open:
 *
 * ```
 *            dialog drawn     200 ms later
 * ──────────────┼──────────────────┼──────────────────────►
 *  draft        │  draft           │  dialog    (a run of keys that began before the dialog was drawn stays with the
 *               │                  │             draft until its first pause of 200 ms)
 *  pasted text: draft, always, unless the dialog asks for text; a paste never submits anything
 *  one key: an answer where the question says so, once it has stayed alone for 300 ms
 *  the rest of that key's word: typed where it comes, but answers and sends nothing; its Enter takes it away
 *  a line for the program, such as `/help`: goes to it, and the dialog stays
 *  ctrl-c: clears what is typed; else closes the dialog, and sends an Interrupt to the reader of the lines
 *  ctrl-d: where nothing is typed, as escape out of a text; else leaves the program, at a question that may stay open
 *  escape: out of a text, or back to the question before it; else as ctrl-c, but never more
 * ```
 *
 * Without a dialog ctrl-c clears the draft, and interrupts only where there is none; escape interrupts, and twice clears
 * the draft. Ctrl-Z, ctrl-g and ctrl-x ctrl-e leave the terminal to the shell or to an editor for a while; what is
 * printed meanwhile waits.
 *
 * Output, keys and dialogs change one state under one lock, so the drawing always matches the state.
 *
 * @since 0.1.0
 */
import * as Terminal from "@effect/platform/Terminal"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as LazyModule from "../../core/LazyModule.js"
import * as FairLock from "../../internal/FairLock.js"
import * as Display from "../terminal/Display.js"
import type * as ScreenLayout from "../terminal/ScreenLayout.js"
import type { Footer, Live, Question, Status } from "../terminal/ScreenLayout.js"
import type { Text } from "../terminal/Pager.js"
import type { Offers } from "../terminal/Picker.js"

export type { Footer, Live, Question, Status } from "../terminal/ScreenLayout.js"
export type { Menu } from "../terminal/Menu.js"
export type { Text } from "../terminal/Pager.js"
export type { Choice, Offer, Offers } from "../terminal/Picker.js"

/**
 * What a person sends from the prompt.
 *
 * @since 0.1.0
 * @category models
 */
export type Submitted = Data.TaggedEnum<{
  /** Never blank; may hold several lines. */
  readonly Line: { readonly text: string }
  /** Ctrl-C, where nothing was typed. */
  readonly Interrupt: {}
  /** Escape: to stop what is going on, and never more than that. */
  readonly Escape: {}
  /** Ctrl with `o` or `t`: to open, or to fold, what was shown in brief. */
  readonly Shortcut: { readonly key: string }
  /** Ctrl-D where nothing is typed, also at a question, which it closes, or which stays open; or the end of input. */
  readonly EndOfInput: {}
}>
/**
 * Constructors and guards of {@link Submitted}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const { Line, Interrupt, Escape, Shortcut, EndOfInput, $is: is, $match: match } = Data.taggedEnum<Submitted>()

/**
 * Asks one question and waits for a line.
 *
 * @since 0.1.0
 * @category models
 */
export type Asker = (question: Question) => Effect.Effect<string, DialogClosed>

/**
 * Prints and asks without disturbing the draft.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly color: boolean
  /** How many columns there are to draw in. */
  readonly columns: Effect.Effect<number>
  /** How many rows of a dialog can be seen at once; `Infinity` where nothing is drawn over. */
  readonly rows: Effect.Effect<number>
  /** Prints above the prompt. Text may end in mid-line; the next text goes on there. Only colours pass, no escapes. */
  readonly print: (text: string) => Effect.Effect<void>
  /** Prints whole lines, beginning on a row of their own. */
  readonly printLine: (text: string) => Effect.Effect<void>
  /** Where the lines come from: a person, who can be asked again, or a pipe, whose lines may never be understood. */
  readonly source: "person" | "pipe"
  /**
   * How answers are typed: key by key, or in whole lines, where no key means anything by itself and an empty line leads
   * back to the question before. Default: `keys`.
   */
  readonly reads?: "keys" | "lines" | undefined
  /** How rows are marked: by drawn signs, or in words for a screen reader. Default: `drawn`. */
  readonly signs?: "drawn" | "said" | undefined
  /** Tells a person that it is their turn, where no prompt stands on the screen all the time. Default: one does. */
  readonly invite?: Effect.Effect<void> | undefined
  /**
   * How often something was printed, by whomever: who prints rows that belong together sees whether others came between them.
   * Default: nobody else prints.
   */
  readonly printings?: (() => number) | undefined
  /** Shows what is going on; `undefined` ends that. */
  readonly status: (status: Status | undefined) => Effect.Effect<void>
  /** Shows, above the status, what changes all the time; `undefined` ends that. It is drawn 60 times a second at most. */
  readonly live: (live: Live | undefined) => Effect.Effect<void>
  /**
   * Shows a row below the prompt, drawn with the prompt and no more often; given again, it is drawn again. `undefined`
   * ends that. Where nothing is drawn there is none, and none below a dialog.
   */
  readonly footer: (footer: Footer | undefined) => Effect.Effect<void>
  /** For how many milliseconds, in all, the person had stopped the program. Default: never. */
  readonly stopped?: (() => number) | undefined
  /** Whether the program is being ended. No question is shown then, and the open one stays without an answer. Default: never. */
  readonly isEnding?: (() => boolean) | undefined
  /** Opens a long text over the whole terminal, until a key closes it. Where there is no such terminal it is printed. */
  readonly page: (text: Text) => Effect.Effect<void>
  /** The next line or event. Nothing is lost when it is interrupted. After the end, always `EndOfInput`. */
  readonly next: Effect.Effect<Submitted>
  /** The text that is typed and not yet submitted. */
  readonly draft: Effect.Effect<string>
  readonly setDraft: (text: string) => Effect.Effect<void>
  /** Sets the text before the draft, such as `explore › `; `undefined` restores the usual prompt. */
  readonly setPrompt: (prompt: string | undefined) => Effect.Effect<void>
  /**
   * Sets how tab completes: each candidate replaces everything before the cursor; and for which words there is a list below
   * the prompt to pick from. Set anew, it draws an open list anew.
   */
  readonly setCompletion: (complete: (line: string) => ReadonlyArray<string>, offers?: Offers) => Effect.Effect<void>
  /**
   * Sets what becomes of lines for the program itself, such as `/help`, that are typed where a question is open: their
   * effect runs, and the question stays. Nothing for any other line.
   */
  readonly setCommands: (commands: (line: string) => Effect.Effect<void> | undefined) => Effect.Effect<void>
  /**
   * Asks the questions of `use` one after the other; other dialogs wait in line, first come first served. Interrupting
   * it erases the open question, leaves a note, and restores the draft. A question fails with {@link DialogClosed} when
   * the person closed it, or at the end of input.
   */
  readonly dialog: <A, E, R>(title: string, use: (ask: Asker) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * Colours, the prompt, and earlier lines to recall.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly color: boolean
  /** Default: `> `. */
  readonly prompt?: string | undefined
  /** Lines submitted before, oldest first. */
  readonly history?: ReadonlyArray<string> | undefined
  /** How the terminal is left to others. Default: it is not left. */
  readonly outside?: Outside | undefined
  /** Calls somebody, as with a bell: a question waits, and for ten seconds nobody has typed. Default: nothing. */
  readonly call?: Effect.Effect<void> | undefined
  /** Whether the program is being ended, as by a signal: what is interrupted then was left by nobody. Default: never. */
  readonly isEnding?: (() => boolean) | undefined
}

/**
 * Gives the terminal to others, and has it back at the end of each effect.
 *
 * @since 0.1.0
 * @category models
 */
export interface Outside {
  /** Stops the program until the shell continues it. */
  readonly suspend: Effect.Effect<void>
  /** Opens the person's editor with a text; yields what it has become, or why not. */
  readonly edit: (text: string) => Effect.Effect<string, string>
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The dialog was closed: by Ctrl-C or Ctrl-D, by going back with escape or Ctrl-D, or by the end of the input.
 *
 * @since 0.1.0
 * @category errors
 */
export class DialogClosed extends Schema.TaggedError<DialogClosed>("assent/tui/DialogClosed")("DialogClosed", {
  by: Schema.Literal("interrupt", "end of input", "escape"),
  /** The typed text when the person went back, unless it is a secret. */
  left: Schema.optional(Schema.String)
}) {
  override get message(): string {
    return `The dialog was closed by ${this.by}; the question has no answer.`
  }
}

/**
 * The screen of a person's terminal.
 *
 * @since 0.1.0
 * @category services
 */
export class ConsoleScreen extends Context.Tag("assent/tui/ConsoleScreen")<ConsoleScreen, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Takes the terminal over until the scope closes; then the prompt is erased, the cursor shown, paste mode off, and an
 * open dialog closed. A terminal that is gone, or can no longer be written to, counts as the end of input after a second.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Service, never, Terminal.Terminal | Scope.Scope> =>
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const { ScreenLayout, ScreenState } = yield* drawing
    const columns = Effect.map(terminal.columns, (count) => (count > 0 ? count : 80))
    const rows = Effect.map(terminal.rows, (count) => (count > 0 ? count : 24))
    // The keys write it and `next` reads it. It is unbounded, because a person types into it, and ends with the input.
    const submitted = yield* Mailbox.make<Submitted>()
    // Lines for the program from open dialogs. The keys write it, one fiber runs their effects in order.
    const lines = yield* Mailbox.make<string>()
    let commands: (line: string) => Effect.Effect<void> | undefined = () => undefined
    const state = ScreenState.make({
      ...options,
      columns: yield* columns,
      rows: yield* rows,
      onLine: (text) => submitted.unsafeOffer(Line({ text })),
      onCommand: (text) => lines.unsafeOffer(text),
      onInterrupt: () => submitted.unsafeOffer(Interrupt()),
      onEscape: () => submitted.unsafeOffer(Escape()),
      onShortcut: (key) => submitted.unsafeOffer(Shortcut({ key })),
      onEndOfInput: () => submitted.unsafeOffer(EndOfInput()),
      leaves: options.outside !== undefined
    })
    const queue = FairLock.make()
    const lock = Effect.unsafeMakeSemaphore(1)

    const end = Effect.zipRight(
      Effect.sync(() => state.end()),
      submitted.end
    )
    // The terminal is gone. A signal says so too and may come a little later: it leaves questions open for another
    // process, where the end of input would withdraw them.
    const losing = yield* FiberHandle.make<void>()
    const lost: Effect.Effect<void> = Effect.suspend(() => {
      const ending = Effect.zipRight(Effect.delay(end, "1 second"), change(state.view))
      return FiberHandle.run(losing, Effect.interruptible(ending), { onlyIfMissing: true })
    })
    // Waiting for the lock can be interrupted; the drawing and the state change together or not at all.
    const change = (f: (now: number) => string): Effect.Effect<void> =>
      lock.withPermits(1)(
        Effect.uninterruptible(
          Effect.flatMap(Effect.all([Clock.currentTimeMillis, columns, rows]), ([now, width, height]) => {
            const out = state.resize(width, height, now) + f(now)
            return out === "" ? Effect.void : Effect.catchAll(terminal.display(out), () => lost)
          })
        )
      )

    const { outside } = options
    const clock = yield* Effect.clock
    const stops: { whole: number; since: number | undefined } = { whole: 0, since: undefined }
    // A timer that was due meanwhile is heard before the program hears that it goes on.
    const stopped = () => stops.whole + (stops.since === undefined ? 0 : clock.unsafeCurrentTimeMillis() - stops.since)
    const counted = <A, E>(suspend: Effect.Effect<A, E>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => (stops.since = clock.unsafeCurrentTimeMillis())),
        () => suspend,
        () =>
          Effect.sync(() => {
            stops.whole = stopped()
            stops.since = undefined
          })
      )
    const leave = Effect.suspend(() => {
      const departure = state.departure()
      if (departure === undefined || outside === undefined) return Effect.void
      const away: Effect.Effect<string | undefined, string> =
        departure._tag === "Suspend" ? Effect.as(counted(outside.suspend), undefined) : outside.edit(departure.text)
      return change(() => pasteModeOff).pipe(
        Effect.zipRight(Effect.either(away)),
        Effect.zip(columns),
        Effect.flatMap(([came, width]) =>
          change((now) => pasteModeOn + state.comeBack(Either.getOrUndefined(came), now) + saidOf(came, width, now))
        )
      )
    })
    const saidOf = (came: Either.Either<unknown, string>, width: number, now: number): string =>
      Either.isLeft(came) ? state.printLine(Display.wrap(came.left, width).join("\n"), now) : ""
    // A key that may be an answer by itself is one when no other comes.
    const alone = yield* FiberHandle.make<void>()
    // A timer may end a millisecond before the clock says so.
    const ripening: Effect.Effect<void> = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const due = state.due()
      if (due === undefined) return Effect.void
      return now < due ? Effect.zipRight(Effect.sleep(due - now), ripening) : change(state.mature)
    })
    const waitForKey = Effect.suspend(() =>
      state.due() === undefined ? FiberHandle.clear(alone) : FiberHandle.run(alone, ripening)
    )

    const keys = yield* terminal.readInput
    yield* Effect.acquireRelease(
      change((now) => pasteModeOn + state.view(now)),
      () =>
        Effect.zipRight(
          end,
          change(() => state.close() + pasteModeOff)
        )
    )
    // At most one fiber turns the spinner, and only while there is a status.
    const frames = yield* FiberHandle.make<void>()
    const turning = Effect.repeat(Effect.zipRight(Effect.sleep("100 millis"), change(state.turn)), {
      while: () => state.busy()
    })

    const turn = Effect.suspend(() =>
      state.busy() ? FiberHandle.run(frames, Effect.interruptible(turning), { onlyIfMissing: true }) : Effect.void
    )
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        while (true) {
          const [typed, done] = yield* keys.takeAll
          const isBack = Chunk.some(typed, ({ key }) => key.name === "continue")
          yield* change((now) => (isBack ? pasteModeOn : "") + state.press(typed, now))
          yield* leave
          yield* waitForKey
          yield* turn
          if (done) break
        }
        yield* lost
      })
    )
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(lines.take, (line) => commands(line) ?? Effect.void)))
    /** Never ends. Calls somebody to a question once, after a while in which nobody types. */
    const calling = (open: ScreenLayout.Open, call: Effect.Effect<void>): Effect.Effect<never> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const wait = state.silence(open, now)
        if (wait === undefined) return Effect.never
        if (wait > 0) return Effect.zipRight(Effect.sleep(wait), calling(open, call))
        return Effect.zipRight(lock.withPermits(1)(call), Effect.never)
      })
    const answered = (open: ScreenLayout.Open): Effect.Effect<ScreenLayout.Reply> => {
      const reply = Deferred.await(open.reply)
      return options.call === undefined ? reply : Effect.raceFirst(reply, calling(open, options.call))
    }

    const { isEnding = () => false } = options
    const ask =
      (title: string | undefined): Asker =>
      (question) =>
        Effect.flatMap(Deferred.make<ScreenLayout.Reply>(), (reply) => {
          if (state.ended()) return new DialogClosed({ by: "end of input" })
          if (isEnding()) return Effect.never
          const open = ScreenLayout.open(title, question, reply)
          return change((now) => state.show(open, now)).pipe(
            // Drawing must not take time from the person: the wait starts when the question can be seen.
            Effect.zipRight(Effect.map(Clock.currentTimeMillis, (now) => state.shown(open, now))),
            Effect.zipRight(turn),
            Effect.zipRight(answered(open)),
            Effect.onInterrupt(() =>
              change((now) => (isEnding() ? state.leave(open, now) : state.withdraw(open, now)))
            ),
            Effect.flatMap((answer) => {
              if (answer._tag === "Typed") return Effect.succeed(answer.text)
              if (answer._tag === "Left") return Effect.never
              const left = answer.by === "escape" ? ScreenLayout.typed(open) : undefined
              return new DialogClosed({ by: answer.by, left })
            })
          )
        })

    return {
      color: options.color,
      source: "person",
      columns,
      rows: Effect.map(rows, (count) => Math.max(1, count - ScreenLayout.reserved)),
      print: (text) => change((now) => state.print(text, now)),
      printLine: (text) => change((now) => state.printLine(text, now)),
      status: (status) =>
        Effect.zipRight(
          change((now) => state.setStatus(status, now)),
          Effect.suspend(() => (state.busy() ? turn : FiberHandle.clear(frames)))
        ),
      live: (live) => change((now) => state.setLive(live, now)),
      footer: (footer) => change((now) => state.setFooter(footer, now)),
      printings: state.printings,
      stopped,
      isEnding,
      page: (text) => change(() => state.page(text, false)),
      next: Effect.catchAll(submitted.take, () => Effect.succeed(EndOfInput())),
      draft: Effect.sync(state.draft),
      setDraft: (text) => change((now) => state.setDraft(text, now)),
      setPrompt: (prompt) => change((now) => state.setPrompt(prompt, now)),
      setCompletion: (complete, offers) =>
        change((now) => {
          state.setCompletion(complete, offers)
          return state.view(now)
        }),
      setCommands: (next) =>
        Effect.sync(() => {
          commands = next
          state.setCommands((line) => next(line) !== undefined)
        }),
      dialog: (title, use) =>
        queue.hold(
          Effect.suspend(() => {
            let shown: string | undefined = title
            return use((question) =>
              Effect.suspend(() => {
                const asking = ask(shown)(question)
                shown = undefined
                return asking
              })
            )
          }).pipe(
            Effect.onExit((exit) =>
              Effect.zipRight(
                change((now) => state.finish(Exit.isInterrupted(exit), now)),
                turn
              )
            )
          )
        )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The screen of a terminal on both ends; see `ConsolePlain` for pipes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<ConsoleScreen, never, Terminal.Terminal> =>
  Layer.scoped(ConsoleScreen, make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const pasteModeOn = "\x1b[?2004h"
const pasteModeOff = "\x1b[?2004l"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What draws: a program without a screen measures no text. */
const drawing = LazyModule.make(async () => {
  const [ScreenLayout, ScreenState] = await Promise.all([
    import("../terminal/ScreenLayout.js"),
    import("../terminal/ScreenState.js")
  ])
  return { ScreenLayout, ScreenState }
})
