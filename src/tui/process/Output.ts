/**
 * Standard output and standard error of the process: the one module that writes foreign text to them. It escapes every character
 * that a terminal would obey or hide, from any source: a workspace, a model, a flag, a server, a journal.
 *
 * Text is written in order, with back-pressure from slow readers.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as TerminalText from "../../core/TerminalText.js"
import * as Fitted from "./Fitted.js"
import * as StandardStream from "./StandardStream.js"

export type Name = StandardStream.Name

// -----------------------------------------------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------------------------------------------

/**
 * Completes when all of it is written. When the reader has gone away the text is dropped without an error. Any other
 * failed write, such as on a full disk, ends the program: a lost answer must not look like success. Colours pass to a terminal,
 * and elsewhere where the text is `colored` because somebody wants that.
 */
export const write = (to: Name, text: string, colored = false): Effect.Effect<void> =>
  send(to, () => TerminalText.printed(text, colored || isTerminal(to)))

/** Whole lines of our own, which a terminal would break anywhere. */
export const say = (to: Name, text: string, colored = false): Effect.Effect<void> =>
  write(to, Fitted.lines(text, columns(to)), colored)

/** A sentence of the program's, beside what it was run for. */
export const notice = (sentence: string): Effect.Effect<void> => say("stderr", `assent: ${sentence}\n`)

/** One JSON value a line. Escapes do not change the value. */
export const writeJson = (to: Name, value: unknown): Effect.Effect<void> => writeJsonLines(to, [value])

export const writeJsonLines = (to: Name, values: Iterable<unknown>): Effect.Effect<void> =>
  send(to, () => {
    let text = ""
    for (const value of values) text += `${TerminalText.json(value)}\n`
    return text
  })

/** Writes a line on standard error synchronously. */
export const writeNow = (line: string): void => {
  if (!StandardStream.isGone(process.stderr)) process.stderr.write(`${TerminalText.printed(line, false)}\n`)
}

// -----------------------------------------------------------------------------------------------------------------
// the log
// -----------------------------------------------------------------------------------------------------------------

/** Where lines of the log go while somebody draws on this terminal: among what is drawn, never through it. */
let lead: ((line: string) => void) | undefined
const said = new Set<string>()

/** A line of the log, which is on standard error unless a screen takes it. */
export const log = (line: string): void => (lead === undefined ? writeNow(line) : lead(line))

/** The same of a sentence for people, once: what a screen has shown in other ways is not said again. */
export const logOnce = (sentence: string): void => {
  if (said.has(sentence)) return
  said.add(sentence)
  log(`assent: ${sentence}`)
}

/** A person has read this sentence. */
export const wasSaid = (sentence: string): void => void said.add(sentence)

/** Lines of the log are shown by this screen until the scope closes; what it has not shown by then is written. */
export const showLog = (show: (line: string) => Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    /** Every line is offered by the logger, which cannot wait, and taken by the fiber below; the scope ends both. */
    const lines = yield* Queue.unbounded<string>()
    const mine = (line: string) => void lines.unsafeOffer(line)
    const before = lead
    lead = mine
    yield* Effect.addFinalizer(() =>
      Effect.map(Queue.takeAll(lines), (rest) => {
        if (lead === mine) lead = before
        for (const line of rest) log(line)
      })
    )
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(lines), show)))
  })

// -----------------------------------------------------------------------------------------------------------------
// calling
// -----------------------------------------------------------------------------------------------------------------

/** How somebody is called to a terminal: by its bell, and with it by a note of the desktop in one of two forms. */
export type Call = keyof typeof calls

/** Our own words only: nothing foreign is in such a sequence. A bell ends each: notes may be switched off. */
export const calls = {
  bell: "\x07",
  note9: "\x1b]9;Assent waits for an answer\x1b\\\x07",
  note777: "\x1b]777;notify;Assent;A question waits for an answer\x1b\\\x07"
} as const

/**
 * What calls a person to this terminal. A note of the desktop only where it is known to be one: others would show it as
 * text. A multiplexer in between hides what the terminal is.
 */
export const callOf = (env: { readonly [name: string]: string | undefined }): Call => {
  const { TERM: term = "", TERM_PROGRAM: program = "" } = env
  if (env["TMUX"] !== undefined || /^(?:tmux|screen)/.test(term)) return "bell"
  if (["iTerm.app", "WezTerm", "ghostty"].includes(program) || term === "xterm-kitty") return "note9"
  return /^(?:foot|rxvt-unicode)/.test(term) ? "note777" : "bell"
}

export const ring = (to: Name, call: Call): Effect.Effect<void> => send(to, () => calls[call])

/** Says what goes on here to a program that watches this terminal; `state` is our own words only. */
export const report = (to: Name, state: string): Effect.Effect<void> =>
  send(to, () => `\x1b]7501;${state}:app=assent\x1b\\`)

/** Waits until the reader has gone away; later writes are dropped. */
export const gone = (to: Name): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    const stream = process[to]
    if (StandardStream.isGone(stream)) return resume(Effect.void)
    const finished = () => resume(Effect.void)
    stream.once("close", finished)
    stream.once("error", finished)
    return Effect.sync(() => {
      stream.off("close", finished)
      stream.off("error", finished)
    })
  })

// -----------------------------------------------------------------------------------------------------------------
// what is there
// -----------------------------------------------------------------------------------------------------------------

export const isTerminal = (name: Name): boolean => process[name].isTTY === true

export const columns = StandardStream.columns

/** The stream for a `NodeTerminal`, which escapes its output itself. */
export const screen = (name: Name): NodeJS.WriteStream => process[name]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const send = (to: Name, text: () => string): Effect.Effect<void> =>
  Effect.async<void>((resume) =>
    StandardStream.write(to, text, (lost) => resume(lost === undefined ? Effect.void : Effect.die(lost)))
  )
