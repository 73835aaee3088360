/**
 * Standard output and standard error of the process: the one module that writes foreign text to them. It escapes every character
 * that a terminal would obey or hide, from any source: a workspace, a model, a flag, a server, a journal.
 *
 * Text is written in order, with back-pressure from slow readers.
 */
import * as Effect from "effect/Effect"
import * as TerminalText from "../../terminal/TerminalText.js"
import * as Fitted from "./Fitted.js"
import * as StandardStream from "./StandardStream.js"

export type Name = StandardStream.Name

// -----------------------------------------------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------------------------------------------

/**
 * Completes when all of it is written. When the reader has gone away the text is dropped without an error. Any other
 * failed write, such as on a full disk, ends the program: a lost answer must not look like success.
 */
export const write = (to: Name, text: string): Effect.Effect<void> =>
  send(to, () => TerminalText.printed(text, isTerminal(to)))

/** Whole lines of our own, which a terminal would break anywhere. */
export const say = (to: Name, text: string): Effect.Effect<void> => write(to, Fitted.lines(text, columns(to)))

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

/** How somebody is called to a terminal: by its bell, and with it by a note of the desktop in one of two forms. */
export type Call = keyof typeof calls

/** Our own words only: nothing foreign is in such a sequence. */
const calls = {
  bell: "\x07",
  note9: "\x1b]9;Assent waits for an answer\x07",
  note777: "\x1b]777;notify;Assent;A question waits for an answer\x07"
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
