/**
 * Standard output and standard error of the process: the one module that writes to them. Nothing leaves it that a terminal
 * would obey or hide, whoever wrote it: a workspace, a model, a flag, a server, a journal.
 *
 * Written in order, waiting for slow readers.
 */
import * as Effect from "effect/Effect"
import * as TerminalText from "../../terminal/TerminalText.js"

export type Name = "stdout" | "stderr"

// -----------------------------------------------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------------------------------------------

/**
 * Writes all of it, then goes on. A reader that has gone away is no error of ours: the text is dropped. What cannot be
 * written for another reason, such as a full disk, ends the program: an answer that nobody got must not look like one.
 */
export const write = (to: Name, text: string): Effect.Effect<void> =>
  send(to, () => TerminalText.printed(text, isTerminal(to)))

/** One JSON value a line, the same value whatever had to be escaped. */
export const writeJson = (to: Name, value: unknown): Effect.Effect<void> => writeJsonLines(to, [value])

export const writeJsonLines = (to: Name, values: Iterable<unknown>): Effect.Effect<void> =>
  send(to, () => {
    let text = ""
    for (const value of values) text += `${TerminalText.json(value)}\n`
    return text
  })

/** A line on standard error, at once, for whoever cannot wait. */
export const writeNow = (line: string): void => {
  if (!isGone(process.stderr)) process.stderr.write(`${TerminalText.printed(line, false)}\n`)
}

/** Waits until whoever reads it has gone away: what is written after that goes nowhere. */
export const gone = (to: Name): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    const stream = process[to]
    if (isGone(stream)) return resume(Effect.void)
    const over = () => resume(Effect.void)
    stream.once("close", over)
    stream.once("error", over)
    return Effect.sync(() => {
      stream.off("close", over)
      stream.off("error", over)
    })
  })

// -----------------------------------------------------------------------------------------------------------------
// what is there
// -----------------------------------------------------------------------------------------------------------------

export const isTerminal = (name: Name): boolean => process[name].isTTY === true

/** Some terminals tell no width, or none at all. */
export const columns = (name: Name): number | undefined =>
  process[name].columns > 0 ? process[name].columns : undefined

/** What a `NodeTerminal` draws on, which looks at what it draws as we do here. */
export const screen = (name: Name): NodeJS.WriteStream => process[name]

/** A reader may go away, as in `assent run … | head -1`; whoever writes is told by the write's own callback. */
export const outliveReaders = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const isGone = (stream: NodeJS.WriteStream): boolean => stream.destroyed || stream.writableEnded

const send = (to: Name, text: () => string): Effect.Effect<void> =>
  Effect.async<void>((resume) => {
    const stream = process[to]
    if (isGone(stream)) return resume(Effect.void)
    stream.write(text(), (error) => {
      const lost = error != null && to === "stdout" && !("code" in error && error.code === "EPIPE")
      resume(lost ? Effect.die(new Error(`standard output cannot be written: ${error.message}`)) : Effect.void)
    })
  })
