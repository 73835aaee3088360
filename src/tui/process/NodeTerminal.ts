/**
 * A terminal made of Node's streams: keys in from one, text out to the other.
 *
 * It differs from the platform's own terminal where a screen needs it: the output may be stderr, `isTTY` asks both
 * ends, the end of input ends the mailbox, Ctrl-C is a key like any other, pastes are marked by keys named
 * `paste-start` and `paste-end`, also where the terminal does not mark them, and a change of size arrives as a key named
 * `resize`. When the program was stopped and goes on, the terminal is taken over anew; where a shell has had it meanwhile, a
 * key named `continue` says so.
 *
 * @since 0.1.0
 */
import * as PlatformError from "@effect/platform/Error"
import * as Terminal from "@effect/platform/Terminal"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import process from "node:process"
import * as readline from "node:readline"
import type { Readable, Writable } from "node:stream"
import * as TerminalText from "../../core/TerminalText.js"
import * as Interrupts from "./Interrupts.js"
import * as OwnOutput from "./Output.js"
import * as Reports from "./Reports.js"
import { isBehindShell, isJob } from "./Tty.js"
import * as UnmarkedPaste from "./UnmarkedPaste.js"

/**
 * A stream that may be the reading end of a terminal, as `process.stdin`.
 *
 * @since 0.1.0
 * @category models
 */
export type Input = Readable & {
  readonly isTTY?: boolean | undefined
  readonly setRawMode?: ((mode: boolean) => unknown) | undefined
}

/**
 * A stream that may be the writing end of a terminal, as `process.stdout` and `process.stderr`.
 *
 * @since 0.1.0
 * @category models
 */
export type Output = Writable & {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
}

/**
 * The streams that are read and written.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Default: the process's standard input. */
  readonly input?: Input | undefined
  /** Default: the process's standard output. */
  readonly output?: Output | undefined
  /** False leaves it to the terminal to show what is typed, and to make a signal of Ctrl-C. Default: true. */
  readonly raw?: boolean | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * `readInput` listens until its scope closes; on a terminal it holds raw mode that long, and gives it back also when the
 * process ends without closing scopes. `readLine` reads one line without echo and fails with `QuitException` at the end
 * of input or on Ctrl-C. Columns and rows are 0 when the output is no terminal.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Terminal.Terminal => {
  const input: Input = options.input ?? process.stdin
  const output: Output = options.output ?? OwnOutput.screen("stdout")
  /** Whether the second buffer of the terminal is shown, which outlives the process too. */
  let isAside = false
  const interactive = (): boolean => options.raw !== false && input.isTTY === true && output.isTTY === true

  const readInput = Effect.gen(function* () {
    // Written by the stream's events, read by the caller of `readInput`. Unbounded: keys are small, and a pipe must not
    // lose any.
    const keys = yield* Mailbox.make<Terminal.UserInput>()
    yield* Effect.acquireRelease(
      Effect.sync(() => listen(input, output, interactive(), keys, () => isAside)),
      (stop) => Effect.sync(stop)
    )
    return keys
  })

  return Terminal.Terminal.of({
    columns: Effect.sync(() => output.columns ?? 0),
    rows: Effect.sync(() => output.rows ?? 0),
    isTTY: Effect.sync(interactive),
    readInput,
    readLine: Effect.scoped(Effect.flatMap(readInput, lineOf)),
    display: (text) =>
      Effect.uninterruptible(
        Effect.async<void, PlatformError.PlatformError>((resume) => {
          const last = text.lastIndexOf(secondBuffer)
          if (last >= 0) isAside = text[last + secondBuffer.length] === "h"
          output.write(TerminalText.drawn(text), (error) =>
            resume(
              error === null || error === undefined
                ? Effect.void
                : new PlatformError.SystemError({
                    reason: "Unknown",
                    module: "Terminal",
                    method: "display",
                    description: "The terminal is gone.",
                    cause: error
                  })
            )
          )
        })
      )
  })
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * Runs an effect while nobody here reads this input, which is a usual terminal meanwhile.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withoutInput = <A, E, R>(input: Input, use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      givenAway.add(input)
      input.setRawMode?.(false)
      input.pause()
    }),
    () => use,
    () =>
      Effect.zipRight(
        comeBack(input),
        Effect.sync(() => {
          givenAway.delete(input)
          input.resume()
        })
      )
  )

/**
 * Runs an effect while the terminal does not show what is typed; each key comes at once, as a key.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withoutEcho = <A, E, R>(input: Input, use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => input.setRawMode?.(true)),
    () => use,
    () => Effect.sync(() => input.setRawMode?.(false))
  )

/**
 * Waits until all that could be read of any input was read.
 *
 * @since 0.1.0
 * @category combinators
 */
export const caughtUp: Effect.Effect<void> = Effect.suspend(() =>
  // The event loop reads between two of these.
  Effect.zipRight(afterReading, afterReading)
)

/**
 * Has a terminal that keeps a line back until its end hand out what there is of it, as keys. Done once it was read.
 *
 * @since 0.1.0
 * @category combinators
 */
export const handOut = (input: Input): Effect.Effect<void> =>
  // A change of the mode makes it readable.
  withoutEcho(input, caughtUp)

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A terminal on Node's streams; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: Options): Layer.Layer<Terminal.Terminal> =>
  Layer.sync(Terminal.Terminal, () => make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * How long a lone escape byte waits for the rest of a sequence, in milliseconds. Escape stops what is going on: an arrow
 * key that a slow line tears apart must not be taken for it.
 */
const escapeCodeTimeout = 100

/** Behind it stands an `h` for the second buffer, or an `l` for the first. */
const secondBuffer = "\x1b[?1049"

const afterReading = Effect.async<void>((resume) => {
  const waiting = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(waiting))
})
/** The event loop reads, and hears signals, between two of these. */

/** Inputs that somebody else reads for a while. */
const givenAway = new WeakSet<Input>()

/**
 * A shell may have changed the mode, which the stream does not know: it would take the second call for one too many. Nor
 * does it know of a change of size that the shell was told in our place.
 */
const takeOver = (input: Input): void => {
  // A job in the background is stopped by that, and could not end.
  if (Interrupts.isEnding() && isBehindShell()) return
  input.setRawMode?.(false)
  input.setRawMode?.(true)
  process.emit("SIGWINCH", "SIGWINCH")
}

/**
 * Takes a terminal over when the program goes on. The shell may have ended it, and says so first; and behind the shell's
 * back the system stops it here once more: the signal that ends that tells nothing new.
 */
const comeBack = (input: Input): Effect.Effect<void> =>
  Effect.zipRight(
    caughtUp,
    Effect.zipRight(
      Effect.sync(() => takeOver(input)),
      caughtUp
    )
  )

/** Enter with shift, alt or ctrl, as terminals write it that can tell them apart. */
const enterWith: ReadonlyMap<string, Partial<readline.Key>> = new Map([
  ["\x1b[13;2u", { shift: true }],
  ["\x1b[13;3u", { meta: true }],
  ["\x1b[13;5u", { shift: true }]
])

/** Feeds the mailbox; returns a function that stops it. */
const listen = (
  input: Input,
  output: Output,
  interactive: boolean,
  keys: Mailbox.Mailbox<Terminal.UserInput>,
  isAside: () => boolean
): (() => void) => {
  const fromTerminal = (name: string) => {
    keys.unsafeOffer({ input: Option.none(), key: { name, ctrl: false, meta: false, shift: false } })
  }
  const reports = Reports.make()
  let isPaste = false
  const isReported = ({ name, sequence }: readline.Key): boolean => {
    if (name === "paste-start" || name === "paste-end") isPaste = name === "paste-start"
    // A paste is what somebody has, and nothing of it may be lost.
    if (isPaste || sequence === undefined) return false
    const isPart = reports.has(sequence)
    // What comes at once is read in one step.
    if (reports.isBegun()) setImmediate(reports.over)
    return isPart
  }
  const onKey = (text: string | undefined, typed: readline.Key) => {
    if (isReported(typed)) return
    // Escape may come as a key with meta, and twice as one key.
    if (typed.name === "escape") {
      for (const _ of typed.sequence ?? "-") fromTerminal("escape")
      return
    }
    const enter = enterWith.get(typed.sequence ?? "")
    const key = enter === undefined ? typed : { ...typed, ...enter, name: "return" }
    keys.unsafeOffer({
      input: Option.fromNullable(text),
      key: {
        name: key.name ?? "",
        ctrl: key.ctrl === true,
        meta: key.meta === true,
        shift: key.shift === true
      }
    })
  }
  const unmarked = UnmarkedPaste.make(fromTerminal)
  const onData = (data: Uint8Array | string) => {
    if (!isPaste) unmarked.read(String(data))
  }
  const onResize = () => fromTerminal("resize")
  let isComingBack = false
  const onContinue = () => {
    if (!interactive || isComingBack || givenAway.has(input)) return
    isComingBack = true
    const over = Effect.sync(() => {
      isComingBack = false
      if (isJob()) fromTerminal("continue")
    })
    Effect.runFork(Effect.zipRight(comeBack(input), over))
  }
  const onEnd = () => {
    keys.unsafeDone(Exit.void)
  }
  // An `error` event without a listener would end the process. Writers learn of the error from the write's own
  // callback.
  const onOutputError = () => {}
  // Raw mode outlives the process, so it is reset also when scopes are never closed.
  const restore = () => {
    if (interactive) input.setRawMode?.(false)
  }
  const onExit = () => {
    restore()
    if (isAside()) output.write("\x1b[?1049l")
    if (interactive) output.write("\x1b[?2004l\x1b[?25h")
  }

  // The key parser reads one field of this interface, the escape timeout; its type requires all.
  readline.emitKeypressEvents(input, { escapeCodeTimeout } as unknown as readline.Interface)
  if (interactive) input.setRawMode?.(true)
  // Before the parser of keys, so that a paste begins before its first key.
  if (interactive) input.prependListener("data", onData)
  input.on("keypress", onKey)
  input.on("end", onEnd)
  input.on("close", onEnd)
  input.on("error", onEnd)
  output.on("resize", onResize)
  output.on("error", onOutputError)
  process.on("exit", onExit)
  process.on("SIGCONT", onContinue)
  // A stream that ended before we listened emits no further `end`.
  if (input.readableEnded || input.destroyed) onEnd()
  else input.resume()

  return () => {
    input.off("data", onData)
    unmarked.end()
    input.off("keypress", onKey)
    input.off("end", onEnd)
    input.off("close", onEnd)
    input.off("error", onEnd)
    output.off("resize", onResize)
    output.off("error", onOutputError)
    process.off("exit", onExit)
    process.off("SIGCONT", onContinue)
    restore()
    // A listening stream keeps the process alive.
    input.pause()
    onEnd()
  }
}

const lineOf = (keys: Mailbox.ReadonlyMailbox<Terminal.UserInput>): Effect.Effect<string, Terminal.QuitException> => {
  const go = (line: string): Effect.Effect<string, Terminal.QuitException> =>
    Effect.flatMap(keys.takeN(1), ([taken, done]) => {
      const typed = Chunk.head(taken)
      if (Option.isNone(typed)) return done && line !== "" ? Effect.succeed(line) : new Terminal.QuitException()
      const { key, input } = typed.value
      if (key.ctrl && (key.name === "c" || key.name === "d")) return new Terminal.QuitException()
      if (key.name === "return" || key.name === "enter") return Effect.succeed(line)
      if (key.name === "backspace") return go(line.slice(0, -1))
      return go(line + Option.getOrElse(input, () => ""))
    })
  return go("")
}
