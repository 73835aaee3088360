/**
 * One background job: a command that lives on beside the turns of its session, in a sandbox of its own.
 *
 * ```
 *  begun ─► first words, or a moment without an end ─► left behind ─► ended: by itself, stopped, timed out, with its session
 *      └──► ended before that: the call gives its result, and there was no job
 * ```
 *
 * Its fiber belongs to nobody and lives until the command has ended and nothing of it is left. Whoever wants its end earlier
 * asks for it, and waits for `over`.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { ToolCallId } from "../core/Id.js"
import type * as Redaction from "../core/Redaction.js"
import type { JobEndReason } from "../event/AgentEvent.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import { OneShot } from "../internal/OneShot.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import type { Service as HandlerSession } from "../session/HandlerSession.js"
import * as PrintedOutput from "./PrintedOutput.js"
import { PrintedTail } from "./PrintedTail.js"
import * as ShellProcess from "./ShellProcess.js"

/** How a job ended. */
export interface Ended {
  readonly reason: JobEndReason
  /** Null when a signal ended it, or when it could not be run. */
  readonly exitCode: number | null
  readonly signal?: string
  /** Who stopped it. */
  readonly by?: string
  /** In words: `ended with exit code 1`. */
  readonly outcome: string
  /** What was moved away after it, and why it may have failed. */
  readonly notices: ReadonlyArray<string>
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Why somebody ends it. `silent`: the model is not told. */
export interface Stopping {
  readonly reason: JobEndReason
  readonly by?: string | undefined
  readonly silent: boolean
}

export interface Options {
  readonly id: string
  readonly hold: HandlerSession
  readonly toolCallId: ToolCallId | undefined
  readonly command: string
  /** Absolute. */
  readonly directory: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** Characters that a look shows at most. */
  readonly maxShown: number
  /** Default: none. */
  readonly limit: Duration.DurationInput | undefined
}

export class Job {
  /** Secrets masked. */
  readonly command: string
  /** What it printed, secrets masked. */
  readonly printed = new PrintedTail(capacity)
  ended: Ended | undefined
  /** The sentence of a command that never began. */
  failure: string | undefined
  /** Completed when it has ended and nothing of it is left. */
  readonly over = new OneShot<void>()
  /** The call has given its result, and the job goes on. */
  private isLeft = false
  private stopping: Stopping | undefined
  private readonly asked = new OneShot<void>()
  private readonly spoke = new OneShot<void>()
  private readonly flow: Redaction.Flow
  private readonly bytes = PrintedOutput.reader()
  private takeBack: (() => void) | undefined

  constructor(readonly options: Options) {
    const { redactor } = options.hold
    this.command = redactor.text(options.command)
    this.flow = redactor.flow()
  }

  get id(): string {
    return this.options.id
  }

  /** Its command on one line, not too long. */
  line(limit = 80): string {
    const line = this.command.trim().replace(/\s+/g, " ")
    return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`
  }

  /** Takes over a process that runs, and the scope that it runs in. */
  begin(shell: ShellProcess.ShellProcess, scope: Scope.CloseableScope): Effect.Effect<void> {
    return Effect.map(DetachedFiber.here, (here) => {
      DetachedFiber.unsafeFork(this.options.hold.place ?? here, this.life(shell, scope))
    })
  }

  /** It could not be started: no call waits for its end any longer. */
  neverBegun(): void {
    this.over.complete()
  }

  /** Waits until it has said its first words, or a moment has gone by: much that fails does so at once. */
  get firstMoment(): Effect.Effect<void> {
    const { printed } = this
    const quiet = Effect.gen(this, function* () {
      yield* this.spoke
      for (let heard = -1; heard !== printed.heard;) {
        heard = printed.heard
        yield* Effect.sleep(pause)
      }
    })
    return Effect.raceFirst(this.over, Effect.asVoid(Effect.timeoutOption(quiet, firstLook)))
  }

  /** From now on it goes on without its call. */
  leave(): void {
    const { hold, toolCallId } = this.options
    this.isLeft = true
    if (toolCallId !== undefined) {
      hold.tell({ _tag: "JobStarted", jobId: this.id, toolCallId, command: this.line() })
    }
  }

  /** What its agent has not seen yet, which it has seen then. */
  look(): string {
    const { leftOut, text } = this.printed.unseen(this.options.maxShown)
    if (this.ended !== undefined) this.takeBack?.()
    return leftOut === 0 ? text : `[… ${leftOut} characters left out]\n${text}`
  }

  /** Ends it, and waits until nothing of it is left. The first reason counts. */
  stop(stopping: Stopping): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.stopping ??= stopping
      this.asked.complete()
      return this.over
    })
  }

  private life(shell: ShellProcess.ShellProcess, scope: Scope.CloseableScope): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { limit } = this.options
      let unpaused = 0
      const take = (bytes: Uint8Array) =>
        Effect.suspend(() => {
          this.push(this.flow.push(PrintedOutput.bare(this.bytes.push(bytes))))
          unpaused += bytes.length
          if (unpaused < mostAtOnce) return Effect.void
          // One that prints without end must not keep us busy for as long as it lives: it waits at its pipe.
          unpaused = 0
          return Effect.sleep(breath)
        })
      const reading = yield* Effect.fork(Effect.interruptible(Effect.either(ShellProcess.read(shell, take))))
      const read = Effect.as(Fiber.await(reading), undefined)
      const stopped = limit === undefined ? this.asked : Effect.raceFirst(this.asked, this.timeUp(shell, limit))
      yield* Effect.interruptible(Effect.raceFirst(read, stopped))
      // One that has ended by itself was not stopped, although somebody may ask for that now.
      const why = reading.unsafePoll() === null ? this.stopping : undefined
      if (why !== undefined) {
        yield* shell.stop
        // The last output is already in the pipe.
        yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(reading)), lastWords)
      }
      const end = yield* Fiber.interrupt(reading)
      const notices = yield* shell.settle
      yield* Scope.close(scope, Exit.void)
      this.finish(end, why, { notices, shell, at: yield* Clock.currentTimeMillis })
    }).pipe(Effect.ensuring(Effect.sync(() => this.over.complete())))
  }

  private timeUp(shell: ShellProcess.ShellProcess, limit: Duration.DurationInput): Effect.Effect<void> {
    return Effect.map(ShellProcess.timeUp(shell, limit), () => {
      this.stopping ??= { reason: "timed_out", silent: false }
    })
  }

  private push(text: string): void {
    if (text === "") return
    this.printed.push(text)
    this.spoke.complete()
  }

  private finish(
    exit: Exit.Exit<Either.Either<Sandbox.Ended, string>>,
    why: Stopping | undefined,
    { at, notices: settled, shell: { confined } }: Over
  ): void {
    this.push(this.flow.push(PrintedOutput.bare(this.bytes.end())) + this.flow.end())
    const how = Exit.isSuccess(exit) ? exit.value : Either.right<Sandbox.Ended>({ exitCode: null, signal: "SIGKILL" })
    const { exitCode, signal } = Either.getOrElse(how, (): Sandbox.Ended => ({ exitCode: null }))
    if (Either.isLeft(how)) this.failure = how.left
    const failed = why === undefined && Either.isRight(how) && exitCode !== 0
    const explained = failed && confined !== undefined ? [Sandbox.explain(confined)] : []
    const notices = [...(Either.isLeft(how) ? [how.left] : []), ...settled, ...explained]
    const by = why?.by
    const ended = {
      reason: why?.reason ?? "exited",
      exitCode,
      ...(signal === undefined ? {} : { signal }),
      ...(by === undefined ? {} : { by }),
      notices,
      at
    }
    this.ended = { ...ended, outcome: outcome(ended) }
    if (this.isLeft) this.report(this.ended, why?.silent === true)
  }

  private report(ended: Ended, silent: boolean): void {
    const { hold } = this.options
    const { at, by, exitCode, reason, signal } = ended
    hold.tell({
      _tag: "JobEnded",
      jobId: this.id,
      command: this.line(),
      reason,
      ...(exitCode === null ? {} : { exitCode }),
      ...(signal === undefined ? {} : { signal }),
      ...(by === undefined ? {} : { by }),
      duration: at - this.options.startedAt
    })
    if (silent) return
    this.takeBack = hold.note(
      `[Background job ${this.id} (${this.line()}) ${ended.outcome}. job_output shows what it printed last.]`
    )
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Over {
  readonly notices: ReadonlyArray<string>
  readonly shell: ShellProcess.ShellProcess
  readonly at: number
}

const outcome = ({ by, exitCode, reason, signal }: Omit<Ended, "outcome">): string => {
  const who = by === undefined ? "" : ` by ${by}`
  switch (reason) {
    case "exited":
      return exitCode === null ? `was ended by ${signal ?? "a signal"}` : `ended with exit code ${exitCode}`
    case "stopped":
      return `was stopped${who}`
    case "timed_out":
      return "was stopped, as its time was up"
    case "session_ended":
      return "was stopped with its session"
  }
}

/** Characters that are kept of what it prints. */
const capacity = 200_000
/** How long a call waits for its first words, and for a pause after these. */
const firstLook = "1500 millis"
const pause = "200 millis"
const lastWords = "500 millis"
/** Bytes after which the reader pauses, and for how long. */
const mostAtOnce = 1_000_000
const breath = "100 millis"
