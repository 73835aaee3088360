/**
 * Processes of a command that left its process group: found by the mark in their environment, and ended.
 *
 * Only Linux shows environments. Elsewhere, and where `/proc` is hidden, nothing is found and nothing fails. A process that
 * was started with another environment, wrote over it, or belongs to another user does not show the mark.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as CommandEnvironment from "./CommandEnvironment.js"

export interface Search {
  /** The mark of its processes. */
  readonly token: string
  /** The process of the command itself: stray processes have begun later. */
  readonly after: number
  readonly executor: CommandExecutor.CommandExecutor
  readonly fileSystem: FileSystem.FileSystem
}

/**
 * Asks the stray processes of a call to terminate, and kills those that do not. It searches again for new ones, a
 * bounded number of times.
 */
export const sweep = (search: Search): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let round = 0; round < maxRounds; round++) {
      const found = yield* find(search)
      if (found.length === 0) return
      yield* signal(search, round === 0 ? "TERM" : "KILL", found)
      yield* Effect.sleep(round === 0 ? grace : pause)
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const maxRounds = 20
/** The time between asking and killing. */
const grace = "200 millis"
const pause = "20 millis"

const find = ({ after, fileSystem, token }: Search): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const processes = (yield* fileSystem.readDirectory("/proc")).filter((name) => /^\d+$/.test(name))
    // Process ids wrap around at the end of their range. Then all processes are searched.
    const load = yield* Effect.orElseSucceed(fileSystem.readFileString("/proc/loadavg"), () => "")
    const last = Number(load.trim().split(" ").at(-1))
    const candidates = last >= after ? processes.filter((name) => Number(name) > after) : processes
    const marked = yield* Effect.forEach(
      candidates,
      (name) =>
        Effect.orElseSucceed(
          Effect.map(
            Effect.zip(
              fileSystem.readFileString(`/proc/${name}/environ`),
              fileSystem.readFileString(`/proc/${name}/stat`)
            ),
            ([environ, stat]) => (CommandEnvironment.belongsTo(environ, token) && isAlive(stat) ? [name] : [])
          ),
          () => []
        ),
      { concurrency: 16 }
    )
    return marked.flat()
  }).pipe(Effect.orElseSucceed(() => []))

/** `pid (name) state …`; the name may hold anything. */
const isAlive = (stat: string): boolean => !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))

const signal = ({ executor }: Search, name: "TERM" | "KILL", processes: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.ignore(executor.exitCode(Command.make("/bin/sh", "-c", 'kill "$@"', "kill", `-${name}`, ...processes)))
