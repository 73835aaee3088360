/**
 * Runs one shell command of a model to its end: bounded in memory and in time, and with nothing left behind.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { IdGenerator } from "../core/Id.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import * as LiveOutput from "./LiveOutput.js"
import * as PrintedOutput from "./PrintedOutput.js"
import * as ShellProcess from "./ShellProcess.js"
import { WorkspaceRoot, type Target } from "./WorkspaceRoot.js"

export interface Params {
  readonly command: string
  readonly cwd?: string | undefined
  /** Seconds. */
  readonly timeout?: number | undefined
  /**
   * `off` runs it outside of the sandbox, `network` in it and with the network; a person is asked about either. `write` runs it
   * in the sandbox, where it may change files also if it looks like a command that only reads.
   */
  readonly sandbox?: "off" | "network" | "write" | undefined
  /** Why it needs that. */
  readonly reason?: string | undefined
  /** It goes on beside the turns: see `Jobs`. */
  readonly background?: boolean | undefined
}

export interface Result {
  /** Null when a signal ended the command. */
  readonly exitCode: number | null
  /** The signal that ended it. */
  readonly signal?: string
  readonly output: string
  /** The file with the whole output, when `output` is only a part. */
  readonly outputFile?: string
  /** Says what was moved away after the command, and why a confined command may have failed. */
  readonly notice?: string
  readonly durationMs: number
}

/** Checks a call without running anything. Yields the directory that it would run in. */
export const check = (params: Params): Effect.Effect<Target, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    if (params.command.trim() === "") return yield* Effect.fail("The command is empty.")
    if (params.command.includes("\0")) return yield* Effect.fail("A command cannot contain a zero character.")
    if (params.timeout !== undefined && !(params.timeout > 0 && params.timeout <= maxTimeout)) {
      return yield* Effect.fail(`timeout must be more than 0 and at most ${maxTimeout} seconds.`)
    }
    if (params.sandbox !== undefined && (params.reason ?? "").trim() === "") {
      return yield* Effect.fail(`Say in reason why the command ${needs[params.sandbox]}, or leave sandbox out.`)
    }
    return yield* workspace.locateDirectory(params.cwd ?? ".")
  })

/**
 * Runs a command to its end. What it prints goes to the call's `ToolOutput` as it arrives: see `LiveOutput`. Fails with a
 * sentence when it cannot be started, and, with what was printed so far, when its time is up.
 */
export const run =
  (
    start: ShellProcess.Start,
    options: ShellProcess.Options
  ): ((params: Params) => Effect.Effect<Result, string, WorkspaceRoot>) =>
  (params) =>
    Effect.scoped(
      Effect.gen(function* () {
        const workspace = yield* WorkspaceRoot
        const directory = yield* check(params)
        const ids = yield* IdGenerator
        const startedAt = yield* Clock.currentTimeMillis
        const printed = PrintedOutput.make({
          fileSystem: workspace.fileSystem,
          path: workspace.path,
          maxLength: workspace.maxOutput,
          file: Option.getOrUndefined(
            Option.map(Option.fromNullable(options.spillDirectory), (spill) => ({
              directory: spill,
              path: workspace.path.join(spill, `${ids.unsafeNext("call")}.txt`)
            }))
          )
        })
        const { command, sandbox } = params
        const child = yield* start({ command, directory: directory.absolute, sandbox })
        const wanted =
          params.timeout === undefined
            ? Duration.decode(options.commandTimeout ?? defaultTimeout)
            : Duration.seconds(params.timeout)
        const limit = child.reading ? Duration.min(wanted, readingTimeout) : wanted
        const collecting = yield* Effect.forkScoped(collect(child, printed))
        const inTime = yield* Effect.raceFirst(
          Effect.asSome(Fiber.join(collecting)),
          Effect.as(ShellProcess.timeUp(child, limit), Option.none<Sandbox.Ended>())
        )
        if (Option.isNone(inTime)) {
          yield* child.stop
          // The last output is already in the pipe. The wait is bounded, as a consumer of live output may never return.
          yield* Effect.timeoutOption(Fiber.await(collecting), lastWords)
          yield* Fiber.interrupt(collecting)
        }
        const notices = [...(yield* child.settle)]
        const { text, file } = yield* printed.finish
        if (file !== undefined) workspace.allowReading(file)
        if (Option.isNone(inTime)) {
          const words = text === "" ? "It printed nothing." : `It printed:\n${text}`
          const details = [words, ...notices].join("\n")
          const longer = child.reading && Duration.greaterThan(wanted, limit) ? `${moreTime} ` : ""
          return yield* Effect.fail(
            `The command was stopped: it ran for more than ${Duration.format(limit)}. ${longer}${details}`
          )
        }
        if (child.askpass !== undefined && inTime.value.exitCode !== 0 && wantsAskpass.test(text))
          notices.push(wayToAsk)
        if (child.confined !== undefined && inTime.value.exitCode !== 0) {
          const why = child.reading ? Sandbox.explainReading(text) : Sandbox.explain(child.confined, text)
          if (why !== undefined) notices.push(why)
        }
        const durationMs = (yield* Clock.currentTimeMillis) - startedAt
        const output = file === undefined ? { output: text } : { output: text, outputFile: file }
        const notice = notices.length === 0 ? {} : { notice: notices.join("\n") }
        return { ...inTime.value, ...output, ...notice, durationMs }
      })
    )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const defaultTimeout = "120 seconds"
const maxTimeout = 86_400
/** A command that only reads runs unasked, so it ends soon. */
const readingTimeout = "60 seconds"
const moreTime = 'Commands that only read have a minute. For more time, call again with sandbox "write" and a reason.'

const needs = {
  off: "has to run outside of the sandbox",
  network: "needs the network",
  write: "has to change files"
}
const lastWords = "500 millis"

/** What sudo says where it cannot ask. It takes the program that asks with `-A` only. */
const wantsAskpass = /^sudo: .*\baskpass\b/m
const wayToAsk = "[Call sudo with -A: then the person is asked for the password.]"

const collect = (child: ShellProcess.ShellProcess, printed: PrintedOutput.PrintedOutput) =>
  // Reading has a scope of its own, which ends before the last row is written.
  Effect.flatMap(Effect.scope, (scope) => {
    const live = LiveOutput.make()
    const take = (bytes: Uint8Array) => Scope.extend(Effect.flatMap(printed.push(bytes), live.push), scope)
    return Effect.either(ShellProcess.read(child, take)).pipe(
      Effect.tap(live.end),
      Effect.onInterrupt(() => Effect.timeoutOption(Effect.interruptible(live.end), lastWords)),
      Effect.flatten
    )
  })
