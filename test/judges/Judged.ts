/** Programs that others wrote, with the Node that they need, from packages of their own. */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type * as Program from "../kit/Program.js"

/** The folders of judges that need their own Node. */
export const folders = ["acp", "mcp", "openapi"] as const
export type Folder = (typeof folders)[number]

export const node = (folder: Folder): string =>
  fileURLToPath(new URL(`${folder}/node_modules/node/bin/node`, import.meta.url))

export const isInstalled = (folder: Folder): boolean => existsSync(node(folder))

/** Runs a program of a judge to its end. */
export const run = (
  { environment, path }: Pick<Program.Place, "environment" | "path">,
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): Effect.Effect<Program.Result> =>
  Effect.async((resume, signal) => {
    const options = { cwd: path("workspace"), env: { ...environment, ...env }, maxBuffer: 100_000_000, signal }
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : null
      resume(Effect.succeed({ code, stdout, stderr }))
    })
    child.stdin?.end()
  })

/** Command lines of processes that have these words. */
export const running = (words: string): Effect.Effect<string> =>
  Effect.promise(
    () =>
      new Promise((resolve) =>
        execFile(
          "/bin/sh",
          ["-c", `ps -eo stat=,args= | grep -F -- "$0" | grep -v -e grep -e '^Z' || true`, words],
          (_, found) => resolve(found)
        )
      )
  )
