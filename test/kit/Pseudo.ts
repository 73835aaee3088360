/**
 * The built command line at a pseudo-terminal, and what a person sees there: real keys go in, and the screen of a real
 * terminal emulator comes out.
 */
import * as pty from "@lydell/node-pty"
import xterm from "@xterm/headless"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import { fileURLToPath } from "node:url"
import type { Place } from "./Program.js"
import { patience } from "./Wait.js"

const binary = fileURLToPath(new URL("../../dist/bin/assent.js", import.meta.url))

export interface Options {
  /** Default: 80 columns and 24 rows. */
  readonly columns?: number
  readonly rows?: number
  readonly env?: Readonly<Record<string, string>>
  /** The program. Default: as it was built here. */
  readonly program?: string
}

export interface Pseudo {
  readonly pid: number
  /** Types keys as a terminal sends them. */
  readonly type: (keys: string) => Effect.Effect<void>
  readonly resize: (columns: number, rows: number) => Effect.Effect<void>
  /** What is on the screen, once it passes; without blanks at the end of rows and without empty rows below. */
  readonly sees: (passes: (screen: string) => boolean) => Effect.Effect<string>
  /** The screen with all that scrolled off it, as it is now. */
  readonly everything: () => string
  /** The styles of the cell where this text begins, if it is on the screen: `bold`, `dim`, `italic`, `underline`, colours by number. */
  readonly styleOf: (text: string) => ReadonlyArray<string>
  /** The bytes as they came. */
  readonly raw: () => string
  /** Whether the second buffer of the terminal is shown, as by a pager. */
  readonly isPaging: () => boolean
  /** The exit code, once it has ended. */
  readonly exit: Effect.Effect<number>
  /** Takes the terminal away, as when its window is closed: what was started there ends by force, and what that started is told. */
  readonly hangUp: Effect.Effect<void>
}

/** Starts the program there. It ends with the scope. */
export const start = (
  place: Place,
  args: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<Pseudo, never, Scope.Scope> =>
  spawn(place, process.execPath, [options.program ?? binary, ...args], options)

/**
 * Starts a shell with jobs there, whose prompt is `$`. It finds the program as `assent`: a line with the path of the
 * program would take as many rows as that path is long.
 */
export const startShell = (place: Place, options: Options = {}): Effect.Effect<Pseudo, never, Scope.Scope> =>
  Effect.gen(function* () {
    const program = yield* place.write(
      "bin/assent",
      `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(binary)} "$@"\n`
    )
    fs.chmodSync(program, 0o755)
    return yield* spawn(place, "bash", ["--norc", "--noprofile", "-i"], {
      ...options,
      env: { PATH: `${place.path("bin")}:${place.environment["PATH"]}`, ...options.env, PS1: "$ " }
    })
  })

/** Starts zsh there, with its completion and nothing of anybody's own; its prompt is `$`. */
export const startZsh = (place: Place, options: Options = {}): Effect.Effect<Pseudo, never, Scope.Scope> =>
  spawn(place, "zsh", ["-f", "-i"], { ...options, env: { ...options.env, PS1: "$ " } })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A word of a shell that stands for this text. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const spawn = (
  place: Place,
  file: string,
  args: ReadonlyArray<string>,
  { columns = 80, env = {}, rows = 24 }: Options
): Effect.Effect<Pseudo, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true })
        const child = pty.spawn(file, [...args], {
          name: env["TERM"] ?? "xterm-256color",
          cols: columns,
          rows,
          cwd: place.path("workspace"),
          env: { ...place.environment, ...env }
        })
        let raw = ""
        let code: number | undefined
        const watching = new Set<() => void>()
        const look = () => watching.forEach((watch) => watch())
        child.onData((data) => {
          raw += data
          terminal.write(data, look)
        })
        child.onExit(({ exitCode }) => {
          code = exitCode
          // What it wrote last is still on its way.
          terminal.write("", look)
        })
        return { child, terminal, watching, raw: () => raw, code: () => code }
      }),
      ({ child, code, terminal }) =>
        Effect.sync(() => {
          if (code() === undefined) child.kill("SIGKILL")
          terminal.dispose()
        })
    ),
    ({ child, code, raw, terminal, watching }): Pseudo => {
      const rowsFrom = (first: number): string => {
        const buffer = terminal.buffer.active
        const rows = Array.from({ length: buffer.baseY + terminal.rows - first }, (_, row) =>
          (buffer.getLine(first + row)?.translateToString(true) ?? "").trimEnd()
        )
        return rows.join("\n").trimEnd()
      }
      const screen = () => rowsFrom(terminal.buffer.active.baseY)
      const until = <A>(look: () => A | undefined, problem: string): Effect.Effect<A> =>
        Effect.async<A>((resume) => {
          const watch = () => {
            const found = look()
            if (found === undefined) return
            watching.delete(watch)
            resume(Effect.succeed(found))
          }
          watching.add(watch)
          watch()
          return Effect.sync(() => watching.delete(watch))
        }).pipe(
          Effect.timeoutTo({
            duration: patience,
            onSuccess: Effect.succeed<A>,
            onTimeout: () => Effect.dieMessage(`${problem}\n${rowsFrom(0)}\n--- exit: ${code() ?? "none"}`)
          }),
          Effect.flatten
        )
      return {
        pid: child.pid,
        type: (keys) => Effect.sync(() => child.write(keys)),
        resize: (columns, rows) =>
          Effect.sync(() => {
            terminal.resize(columns, rows)
            child.resize(columns, rows)
          }),
        sees: (passes) => {
          const look = () => {
            const shown = screen()
            return passes(shown) ? shown : undefined
          }
          return until(look, "This was never on the screen:")
        },
        everything: () => rowsFrom(0),
        styleOf: (text) => {
          const buffer = terminal.buffer.active
          for (let row = 0; row < buffer.length; row++) {
            const line = buffer.getLine(row)
            const at = line?.translateToString(true).indexOf(text) ?? -1
            const cell = at < 0 ? undefined : line?.getCell(at)
            if (cell === undefined) continue
            return [
              ...(cell.isBold() ? ["bold"] : []),
              ...(cell.isDim() ? ["dim"] : []),
              ...(cell.isItalic() ? ["italic"] : []),
              ...(cell.isUnderline() ? ["underline"] : []),
              ...(cell.isFgDefault() ? [] : [String(cell.getFgColor())])
            ]
          }
          return []
        },
        raw,
        isPaging: () => terminal.buffer.active.type === "alternate",
        exit: until(code, "It did not end:"),
        hangUp: Effect.sync(() => child.kill("SIGKILL"))
      }
    }
  )
