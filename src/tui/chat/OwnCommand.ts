/**
 * Commands that a person runs at the prompt, with `!` before them: in the sandbox of the agent's commands, without a
 * question, in the audit as the person's act. What one printed is on the screen, and goes to a model only with a line that
 * says so, by `@!`.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Origin from "../../core/Origin.js"
import type * as AuditTrail from "../../audit/AuditTrail.js"
import * as Workspace from "../../builtin/Workspace.js"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import * as Input from "../../inbox/Input.js"
import type * as Agent from "../../runtime/Agent.js"
import * as Sandbox from "../../sandbox/Sandbox.js"
import { Aside } from "../../session/HandlerSession.js"
import * as Display from "../terminal/Display.js"
import * as Glyphs from "../terminal/Glyphs.js"
import * as PrintedStyles from "../terminal/PrintedStyles.js"
import { PrintedRows } from "../../tool/PrintedRows.js"
import * as ToolOutput from "../../tool/ToolOutput.js"
import type { Printed } from "../view/Printed.js"
import * as ChatFiles from "./ChatFiles.js"

/** How one ended. */
export type Ended = typeof Workspace.Ended.Type

/** Runs a command line to its end, and hands on what it prints. Fails with a sentence. */
export type Run = (
  command: string,
  sink: (chunk: ToolOutput.Chunk) => Effect.Effect<void>
) => Effect.Effect<Ended, string>

export interface OwnCommand {
  /** Runs one, and shows what it prints. It ends with the scope. */
  readonly start: (command: string) => Effect.Effect<Fiber.Fiber<void> | undefined, never, Scope.Scope>
  /** Stops the one that runs. False where none does. */
  readonly stop: Effect.Effect<boolean>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** As the agent's own commands run, by this person. It is recorded before it runs, and does not run where it cannot be. */
export const runOf =
  ({
    agent,
    by,
    trail
  }: {
    readonly agent: Agent.Agent
    readonly trail: AuditTrail.Service
    readonly by: string
  }): Run =>
  (command, sink) =>
    Effect.gen(function* () {
      const entry = agent.tools.get(Workspace.RunCommand.name)
      if (entry?.handler === undefined) return yield* Effect.fail("This session cannot run commands.")
      const params = { command, timeout: longest }
      const answeredAt = yield* Clock.currentTimeMillis
      const own = {
        class: "session",
        rootSessionId: agent.id,
        sessionId: agent.id,
        agent: agent.origin.agent,
        by
      } as const
      const recorded = trail.record({
        ...own,
        kind: "command",
        outcome: "granted",
        tool: entry.name,
        args: { command },
        sandbox: entry.runs?.(params),
        reason: "the person's own command",
        answeredAt
      })
      let moved = ""
      const aside: typeof Aside.Service = (notices) =>
        Effect.gen(function* () {
          moved = notices.join("\n")
          const answeredAt = yield* Clock.currentTimeMillis
          yield* trail.record({ ...own, kind: "files_set_aside", outcome: "done", reason: moved, answeredAt })
        }).pipe(Effect.catchAll(({ message }) => Effect.logWarning(message)))
      // The result says it too. A command that was stopped has none.
      const sayMoved = Effect.suspend(() =>
        moved === "" ? Effect.void : sink({ stream: "stdout", text: `\n${moved}\n` })
      )
      yield* Effect.mapError(recorded, ({ message }) => `${message} The command was not run.`)
      const context = entry.context.pipe(Context.add(ToolOutput.ToolOutput, sink), Context.add(Aside, aside))
      // The person typed it.
      const git = entry.shellCommand?.reader.isGitText(command) === true
      const privileges = { readOnly: false, git, askpass: true }
      const ended = yield* Effect.provide(entry.handler(params), context).pipe(
        Origin.withDecision({ privileges }),
        Effect.onInterrupt(() => sayMoved),
        Effect.mapError(String)
      )
      return isEnded(ended) ? ended : yield* Effect.dieMessage("a command ended in no known way")
    })

export interface Options {
  /** For what a command prints, which is not broken again. */
  readonly screen: Screen
  /** For what is said about one. */
  readonly told: Pick<Screen, "printLine">
  readonly files: ChatFiles.ChatFiles
  readonly run: Run
  /** Where the last lines of one are drawn: what draws them, and what has them drawn again. Default: all lines are printed. */
  readonly drawing?: Effect.Effect<{ readonly printed: Printed; readonly draw: Effect.Effect<void> }> | undefined
  /** Runs when one has ended. */
  readonly afterwards: Effect.Effect<void>
}

export const make = ({ afterwards, drawing, files, run, screen, told }: Options): OwnCommand => {
  const style = Display.style(screen.color)
  const signs = Glyphs.of(screen)
  let running: Fiber.Fiber<void> | undefined

  const indented = (text: string): string => text.replace(/^/gm, "  ")
  const print = (text: string) => screen.printLine(indented(text))

  const inLines = (): Shown => {
    const styles = PrintedStyles.make(screen.color)
    const rows = new PrintedRows()
    const printed = (text: string) => (text === "" ? Effect.void : print(text.replace(/\n$/, "")))
    return {
      begun: Effect.void,
      take: (text) => printed(rows.push(styles.take(text))),
      end: () => printed(rows.end())
    }
  }

  const inRows = ({ draw, printed }: Effect.Effect.Success<NonNullable<typeof drawing>>, command: string): Shown => {
    const id = printed.beginOwn(command)
    return {
      begun: Effect.gen(function* () {
        const begunAt = yield* Clock.currentTimeMillis
        yield* Effect.sleep("300 millis")
        while (true) {
          const ran = (yield* Clock.currentTimeMillis) - begunAt
          printed.ran(id, Math.floor(ran / 1_000))
          yield* draw
          yield* Effect.sleep(1_000 - (ran % 1_000))
        }
      }),
      take: (text, unshown) => {
        printed.take(id, text, unshown)
        return draw
      },
      end: (hasFailed) =>
        Effect.flatMap(screen.columns, (columns) => {
          const rows = printed.end(id, columns, hasFailed)
          return rows.length === 0 ? Effect.void : screen.printLine(rows.join("\n"))
        })
    }
  }

  const runAndShow = (command: string): Effect.Effect<void> =>
    Effect.gen(function* () {
      const begunAt = yield* Clock.currentTimeMillis
      const shown = drawing === undefined ? inLines() : inRows(yield* drawing, command)
      yield* Effect.fork(shown.begun)
      let seen = ""
      const sink = ({ styled, text, unshown }: ToolOutput.Chunk) =>
        Effect.suspend(() => {
          seen = (seen + text).slice(-mostSeen)
          return shown.take(styled ?? text, unshown)
        })
      const keep = (how: string, output: string): boolean => {
        const bytes = new TextEncoder().encode(output)
        const file = Input.fromBytes(bytes, { name: "output.txt", mediaType: "text/plain" })
        const given = ChatFiles.described(file, `what !${Display.oneLine(command, 60)}, ${how}, printed`)
        if (Either.isRight(given)) files.setOutput(given.right)
        return Either.isRight(given)
      }
      const stopped = Effect.suspend(() => {
        keep("stopped", seen)
        return Effect.zipRight(shown.end(true), told.printLine(style.red(`  ${signs.failed} stopped`)))
      })
      const outcome = yield* Effect.either(Effect.onInterrupt(run(command, sink), () => stopped))
      yield* shown.end(Either.isLeft(outcome) || outcome.right.exitCode !== 0)
      if (Either.isLeft(outcome))
        return yield* told.printLine(style.red(`  ${signs.failed} ${Display.sanitize(outcome.left)}`))
      const { exitCode, notice, output, signal } = outcome.right
      const how = exitCode === null ? `ended by ${signal ?? "a signal"}` : `exit code ${exitCode}`
      const time = `${(((yield* Clock.currentTimeMillis) - begunAt) / 1_000).toFixed(1)} s`
      const mark = exitCode === 0 ? style.green(signs.succeeded) : style.red(signs.failed)
      if (notice !== undefined) yield* told.printLine(indented(Display.sanitize(forPerson(notice))))
      const offer = keep(how, output) ? ["@! in a message sends it to the agent"] : []
      yield* told.printLine(`  ${mark} ${style.dim([how, time, ...offer].join(signs.between))}`)
    })

  return {
    start: (command) =>
      Effect.gen(function* () {
        if (command === "") {
          yield* told.printLine("!COMMAND runs a command as you. To begin a message with !, put a blank before it.")
          return undefined
        }
        if (running !== undefined) {
          yield* told.printLine("A command of yours still runs. Ctrl-C stops it.")
          return undefined
        }
        const ended = Effect.suspend(() => {
          running = undefined
          return afterwards
        })
        return (running = yield* Effect.forkScoped(Effect.ensuring(runAndShow(command), ended)))
      }),
    stop: Effect.suspend(() => {
      if (running === undefined) return Effect.succeed(false)
      // Not waited for: a command may take its time to end.
      return Effect.as(Fiber.interruptFork(running), true)
    })
  }
}

/** The command that a line is, without its mark. */
export const commandIn = (line: string): string | undefined => (line.startsWith("!") ? line.slice(1).trim() : undefined)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What shows one. Text is raw. */
interface Shown {
  /** Shows that it runs, and for how long, unless it ends at once. */
  readonly begun: Effect.Effect<void>
  readonly take: (text: string, unshown?: number) => Effect.Effect<void>
  readonly end: (hasFailed: boolean) => Effect.Effect<void>
}

/** Without what only a model can do. */
const forPerson = (notice: string): string =>
  [true, false].reduce((text, network) => text.replace(` ${Sandbox.wayOut(network)}`, ""), notice)

/** Seconds. A person has Ctrl-C. */
const longest = 86_400

/** Characters of a command that was stopped which a message can have. */
const mostSeen = 30_000

const isEnded = Schema.is(Workspace.Ended)
