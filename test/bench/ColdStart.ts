/** How long a person waits for the command line: a whole process, from its start to its end, on the clock of the wall. */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { performance } from "node:perf_hooks"
import { median } from "./Cpu.js"

export interface ColdStart {
  /** Seconds: the whole program, and a Node that does nothing. */
  readonly program: number
  readonly node: number
}

/** Medians of so many starts of each, in turns. */
export const measure = (times: number): Effect.Effect<ColdStart> =>
  Effect.scoped(
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const path = mkdtempSync(join(tmpdir(), "assent-bench-"))
          writeFileSync(join(path, "README.md"), "# A project\n\nIt has a readme.\n")
          return path
        }),
        (path) => Effect.sync(() => rmSync(path, { recursive: true }))
      )
      const assent = [resolve("dist/bin/assent.js"), "run", "--model", "offline", "read README.md"]
      const program: Array<number> = []
      const node: Array<number> = []
      yield* start(assent, directory, "It has a readme.")
      for (let i = 0; i < times; i++) {
        program.push(yield* start(assent, directory, "It has a readme."))
        node.push(yield* start(["-e", "0"], directory, ""))
      }
      return { program: median(program), node: median(node) }
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const start = (args: ReadonlyArray<string>, cwd: string, says: string): Effect.Effect<number> =>
  Effect.async((resume) => {
    const began = performance.now()
    // State of its own, so that the person's is left alone.
    const env = { ...process.env, ASSENT_STATE_DIR: join(cwd, ".state"), ASSENT_CONFIG_DIR: join(cwd, ".config") }
    const child = execFile(process.execPath, args, { cwd, env }, (error, stdout, stderr) => {
      const seconds = (performance.now() - began) / 1_000
      const wrong = error !== null || !stdout.includes(says)
      resume(wrong ? Effect.dieMessage(`${args.join(" ")} went wrong: ${stdout}${stderr}`) : Effect.succeed(seconds))
    })
    // Who starts it has nothing more to say, as at a terminal; where that stays open, a run waits for words for a moment.
    child.stdin?.end()
  })
