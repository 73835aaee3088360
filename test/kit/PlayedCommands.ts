/**
 * Background commands whose processes the test plays: it says what they print, when they end, and sees what is stopped.
 */
import * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Inspectable from "effect/Inspectable"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import * as Jobs from "../../src/builtin/Jobs.js"
import * as ShellProcess from "../../src/builtin/ShellProcess.js"
import * as ShellRun from "../../src/builtin/ShellRun.js"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as Sandbox from "../../src/sandbox/Sandbox.js"
import { settle } from "./Recorder.js"

/** One process. */
export interface Played {
  readonly command: string
  readonly network: boolean
  /** It prints this, which is read when the effect is over. */
  readonly print: (text: string) => Effect.Effect<void>
  /** It ends by itself. */
  readonly end: (exitCode: number) => Effect.Effect<void>
  /** Whether somebody has stopped it. */
  readonly wasStopped: () => boolean
  /** Whether nothing of it is left. */
  readonly isGone: () => boolean
}

export const toolkit = Toolkit.make(Workspace.RunCommand, Workspace.JobOutput, Workspace.JobStop)

export interface Stage {
  /** In the order in which they were started. */
  readonly processes: ReadonlyArray<Played>
  readonly sandbox: Sandbox.Service
  /** Makes the next commands fail to begin with this sentence. */
  refusal: string | undefined
  /** Makes processes ignore that they are stopped. */
  stubborn: boolean
}

export const make = (): Stage => {
  const processes: Array<Played> = []
  const stage: Stage = {
    processes,
    refusal: undefined,
    stubborn: false,
    sandbox: {
      mode: "auto",
      state: Effect.succeed(confined),
      known: () => confined,
      start: ({ command, network = false }) =>
        Effect.acquireRelease(
          Effect.suspend(() =>
            stage.refusal === undefined
              ? Effect.map(play(stage, command.at(-1) ?? "", network), (made) => {
                  processes.push(made.played)
                  return made
                })
              : Effect.fail(stage.refusal)
          ),
          ({ gone }) => gone
        ).pipe(Effect.map(({ running }) => running))
    }
  }
  return stage
}

/** The handlers of `Workspace.layer`, those that run commands over this stage. */
export const layer = (stage: Stage, maxOutput?: number) =>
  Layer.provideMerge(
    Layer.merge(
      toolkit.toLayer(
        Effect.map(Jobs.Jobs, (jobs) => {
          const start = ShellProcess.starter(noProcesses, {}, stage.sandbox)
          const run = ShellRun.run(start, {})
          return toolkit.of({
            run_command: (params) => (params.background === true ? jobs.begin(start, params) : run(params)),
            job_output: ({ job_id }) => Effect.mapError(jobs.look(job_id), ({ message }) => message),
            job_stop: ({ job_id }) => Effect.mapError(jobs.end(job_id), ({ message }) => message)
          })
        })
      ),
      Layer.succeed(Sandbox.Sandbox, stage.sandbox)
    ),
    Layer.provide(
      Workspace.layer({ root: "/ws", maxOutput }),
      Layer.mergeAll(directories, Path.layer, Layer.succeed(CommandExecutor.CommandExecutor, noProcesses))
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const confined: Sandbox.State & { readonly _tag: "Confined" } = {
  _tag: "Confined",
  by: "a play",
  writable: ["/ws"],
  network: false
}

const noProcesses = CommandExecutor.makeExecutor(() => Effect.dieMessage("nothing runs unconfined here"))

/** A file system in which everything is a directory. */
const directories = FileSystem.layerNoop({
  realPath: Effect.succeed,
  exists: () => Effect.succeed(true),
  stat: () => Effect.succeed(directory)
})

const directory: FileSystem.File.Info = {
  type: "Directory",
  mtime: Option.none(),
  atime: Option.none(),
  birthtime: Option.none(),
  dev: 0,
  ino: Option.none(),
  mode: 0o755,
  nlink: Option.none(),
  uid: Option.none(),
  gid: Option.none(),
  rdev: Option.none(),
  size: FileSystem.Size(0),
  blksize: Option.none(),
  blocks: Option.none()
}

const play = (stage: Stage, command: string, network: boolean) =>
  Effect.gen(function* () {
    const printed = yield* Queue.unbounded<Uint8Array>()
    const ended = yield* Deferred.make<Sandbox.Ended>()
    let stopped = false
    let isGone = false
    const over = (how: Sandbox.Ended) =>
      Effect.zipRight(Deferred.succeed(ended, how), Effect.asVoid(Queue.shutdown(printed)))
    const exitCode = Effect.map(Deferred.await(ended), (how) => CommandExecutor.ExitCode(how.exitCode ?? 1))
    const process: CommandExecutor.Process = {
      ...Inspectable.BaseProto,
      [CommandExecutor.ProcessTypeId]: CommandExecutor.ProcessTypeId,
      pid: CommandExecutor.ProcessId(1),
      exitCode,
      isRunning: Effect.map(Deferred.isDone(ended), (done) => !done),
      kill: () => Effect.void,
      stderr: Stream.empty,
      stdin: Sink.drain,
      stdout: Stream.fromQueue(printed),
      toJSON: () => ({})
    }
    const stop = Effect.suspend(() => {
      stopped = true
      return stage.stubborn ? Deferred.await(ended) : over({ exitCode: null, signal: "SIGTERM" })
    })
    const running: Sandbox.Running = {
      process,
      ended: Effect.map(Effect.either(Deferred.await(ended)), Either.merge),
      stop,
      settle: Effect.succeed([])
    }
    const played: Played = {
      command,
      network,
      print: (text) => Effect.zipRight(Queue.offer(printed, new TextEncoder().encode(text)), settle),
      end: (code) => Effect.zipRight(over({ exitCode: code }), settle),
      wasStopped: () => stopped,
      isGone: () => isGone
    }
    const gone = Effect.sync(() => {
      isGone = true
    })
    return { played, running, gone }
  })
