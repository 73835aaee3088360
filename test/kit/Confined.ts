/** Runs command lines confined, for tests of the sandbox. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as HostSandbox from "../../src/sandbox/HostSandbox.js"
import type * as Sandbox from "../../src/sandbox/Sandbox.js"
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs"
import * as Bubblewrap from "./Bubblewrap.js"

/** With `ASSENT_REQUIRE` naming the sandbox, tests fail instead of being skipped. */
export const isWanted = Bubblewrap.isPossible || (process.env["ASSENT_REQUIRE"] ?? "").split(",").includes("sandbox")

export interface StaticHelp {
  readonly exitCode: number | null
  readonly signal: string | undefined
  readonly output: string
  readonly notices: ReadonlyArray<string>
  /** Also those that are only listed in a file. */
  readonly all: ReadonlyArray<string>
}

/** One command line to its end. It has the rights of git, which are the widest, unless the job says otherwise. */
export const run = (
  sandbox: Sandbox.Service,
  directory: string,
  line: string,
  job: Partial<Sandbox.Job> = { git: true }
): Effect.Effect<StaticHelp, string> =>
  Effect.scoped(
    Effect.gen(function* () {
      const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LANG: "C.UTF-8" }
      const running = yield* sandbox.start({ command: ["/bin/sh", "-c", line], directory, environment, ...job })
      const output = yield* Effect.orDie(
        Stream.runFold(Stream.decodeText(running.process.stdout), "", (all, text) => all + text)
      )
      const { exitCode, signal } = yield* running.ended
      const notices = yield* running.settle
      const [, list] = /: (\S+) lists all of them\.\]$/.exec(notices.at(-1) ?? "") ?? []
      const all = list === undefined ? notices : readFileSync(list, "utf8").trim().split("\n")
      return { exitCode, signal, output, notices, all }
    })
  )

/** A command line that prints `up`, and is stopped then: how it ended. */
export const stopped = (sandbox: Sandbox.Service, directory: string, line: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const running = yield* sandbox.start({
        command: ["/bin/sh", "-c", line],
        directory,
        environment: { PATH: "/usr/bin:/bin" }
      })
      const up = yield* Deferred.make<void>()
      const reading = yield* Effect.fork(
        Stream.runForEach(Stream.decodeText(running.process.stdout), (text) =>
          text.includes("up") ? Deferred.succeed(up, undefined) : Effect.void
        )
      )
      yield* Deferred.await(up)
      yield* running.stop ?? Effect.void
      const ended = yield* running.ended
      yield* Fiber.join(reading)
      return ended
    })
  )

export const make = (options: HostSandbox.Options) =>
  Effect.flatMap(Effect.serviceOption(FileSystem.FileSystem), (given) => {
    const made = Option.isSome(given)
      ? Effect.provideService(HostSandbox.make(options), FileSystem.FileSystem, given.value)
      : HostSandbox.make(options)
    return Effect.provide(made, NodeContext.layer)
  })

/** Places for the state: beside the workspaces, which lie in `place`, and on another file system where there is one. */
export const states = (place: string): ReadonlyArray<{ readonly name: string; readonly state: string }> => {
  const device = statSync(place).dev
  const other = ["/dev/shm", "/run/user", "/tmp"].find(
    (directory) => existsSync(directory) && statSync(directory).dev !== device && isWritable(directory)
  )
  if (other === undefined) process.stderr.write("No other file system here: the state is tried on one only.\n")
  return [
    { name: "on the same file system", state: place },
    ...(other === undefined ? [] : [{ name: "on another file system", state: other }])
  ]
}

const isWritable = (directory: string): boolean => {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}
