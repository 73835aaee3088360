/**
 * The files and directories of a workspace that `blacklist.paths` denies, as they are now: a sandbox hides them from a
 * command. Directories in which nothing can be denied are not read. Links count for the place that they lead to.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DeniedPaths from "../core/DeniedPaths.js"
import * as EventLoop from "../internal/EventLoop.js"
import type * as SyncFiles from "./SyncFiles.js"
import type { Service } from "./WorkspaceRoot.js"

type Looked = Pick<Service, "direct" | "fileSystem" | "path" | "root" | "roots">

/** Absolute paths without links. Fails with a sentence if they are too many: then no command runs. */
export const find = (
  { direct, fileSystem, path, root, roots }: Looked,
  denied: DeniedPaths.DeniedPaths
): Effect.Effect<ReadonlyArray<string>, string> =>
  Effect.gen(function* () {
    if (denied.entries.length === 0) return []
    const found = new Set<string>()
    const clock = yield* Effect.clock
    const breath = { ...EventLoop.fresh }
    let looked = 0
    const realOf = (file: string) => Effect.map(Effect.option(fileSystem.realPath(file)), Option.getOrUndefined)
    const isInside = (file: string) => roots.some((one) => file.startsWith(one.endsWith("/") ? one : `${one}/`))

    const hide = (file: string) =>
      Effect.map(realOf(file), (real) => {
        // A place outside, and one that holds a workspace, stays visible.
        if (real !== undefined && isInside(real) && !roots.some((one) => `${one}/`.startsWith(`${real}/`)))
          found.add(real)
      })

    /** `directory`: without links. `below`: its path as it is written, from the root. */
    const walk = (directory: string, below: string): Effect.Effect<void, string> =>
      Effect.gen(function* () {
        for (const [name, kind] of yield* entriesIn({ direct, fileSystem, path }, directory)) {
          if (EventLoop.isDue(breath, clock)) yield* EventLoop.yieldToEventLoop
          if (++looked > mostLooked) return yield* Effect.fail(tooMany("files"))
          const at = below === "" ? name : `${below}/${name}`
          const file = path.join(directory, name)
          if (DeniedPaths.find(denied, at) !== undefined) yield* hide(file)
          else if (kind === "directory" && DeniedPaths.mayHold(denied, at)) yield* walk(file, at)
          else if (kind === "link" && DeniedPaths.leadsOn(denied, at)) {
            const real = yield* realOf(file)
            if (real !== undefined && isInside(real)) yield* walk(real, at)
          }
          if (found.size > mostFound) return yield* Effect.fail(tooMany("places"))
        }
      })
    yield* walk(root, "")
    return [...found]
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Names that are looked at: a second of work. */
const mostLooked = 500_000

/** Each is a mount, and a sandbox takes nine thousand arguments. */
const mostFound = 500

const tooMany = (what: string): string =>
  `blacklist.paths concerns too many ${what} of the workspace for the sandbox to hide, so no command runs. ` +
  `Deny whole directories, such as "secrets/**", or begin each path with a directory.`

/** What cannot be listed has nothing that a command could read. */
const entriesIn = (
  { direct, fileSystem, path }: Pick<Looked, "direct" | "fileSystem" | "path">,
  directory: string
): Effect.Effect<ReadonlyArray<readonly [name: string, kind: SyncFiles.Kind]>> =>
  Effect.suspend(() => {
    const known = direct?.entries(directory, undefined)
    if (known !== undefined) return Effect.succeed(known)
    const kindOf = (name: string) =>
      Effect.matchEffect(fileSystem.readLink(path.join(directory, name)), {
        onSuccess: () => Effect.succeed("link" as const),
        onFailure: () =>
          Effect.match(fileSystem.stat(path.join(directory, name)), {
            onSuccess: ({ type }) => (type === "Directory" ? ("directory" as const) : ("file" as const)),
            onFailure: () => "other" as const
          })
      })
    return Effect.flatMap(
      Effect.orElseSucceed(fileSystem.readDirectory(directory), () => []),
      (names) =>
        Effect.forEach(names, (name) => Effect.map(kindOf(name), (kind) => [name, kind] as const), { concurrency: 8 })
    )
  })
