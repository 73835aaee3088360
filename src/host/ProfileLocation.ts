/** Where the command line's profiles are, and what their variables stand for. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ProviderName from "../model/ProviderName.js"
import type * as ProfileLoader from "../subagent/ProfileLoader.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as WorkspaceSettings from "./local/WorkspaceSettings.js"
import type * as OwnFile from "./local/OwnFile.js"
import * as Settings from "./Settings.js"

type Place = Pick<Settings.Settings, "workspace" | "configDirectory" | "trusted" | "brought">

/** The workspace's directory (when trusted) before the user's own; the first that has a profile of a name wins. */
export const directories = (settings: Place): Effect.Effect<ReadonlyArray<ProfileLoader.Directory>, never, Path.Path> =>
  Effect.map(Path.Path, (path) => [
    ...WorkspaceSettings.profileDirectories.map((name) => ({
      path: path.join(settings.workspace, name),
      trusted: settings.trusted,
      files: filesOf(settings.brought, name)
    })),
    { path: path.join(settings.configDirectory, "profiles"), trusted: true }
  ])

/** The workspace, the current directory, and the environment without our own keys. */
const variables =
  (settings: Pick<Settings.Settings, "workspace">) =>
  (name: string): string | undefined => {
    if (name === "workspaceRoot" || name === "projectPath") return settings.workspace
    if (name === "cwd") return process.cwd()
    // Own properties only: `${toString}` is no variable.
    return Settings.secretNames().includes(name) || !Object.hasOwn(process.env, name) ? undefined : process.env[name]
  }

/** The names that a profile may use: `tools`, known variables, available providers. */
export const context = (settings: Place, tools: ToolRegistry.Service): ProfileLoader.Context => ({
  variables: variables(settings),
  tools,
  providers: ProviderName.providers
})

/** All profiles, and remarks about their files. The tools are requested only when there may be files. */
export const load = <R>(
  settings: Place,
  tools: Effect.Effect<ToolRegistry.Service, never, R>
): Effect.Effect<ProfileLoader.Loaded, never, FileSystem.FileSystem | Path.Path | R> =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const loader = yield* Effect.promise(() => import("../subagent/ProfileLoader.js"))
    // A directory that cannot be read counts as existing: the loader reports the reason.
    const there = yield* Effect.filter(yield* directories(settings), ({ files, path }) =>
      files === undefined
        ? Effect.orElseSucceed(fileSystem.exists(path), () => true)
        : Effect.succeed(Either.isLeft(files) || files.right.size > 0)
    )
    const known = there.length === 0 ? ToolRegistry.empty : yield* tools
    return yield* loader.load({ ...context(settings, known), directories: there })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The files that were read in such a directory, by name. */
const filesOf = ({ files }: WorkspaceSettings.WorkspaceSettings, directory: string) => {
  const whole = files.get(directory)
  if (whole?._tag === "Refused") return Either.left(`it ${whole.reason}`)
  const prefix = `${directory}/`
  return Either.right(
    new Map(
      [...files].flatMap(([name, content]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), textOf(content)] as const] : []
      )
    )
  )
}

const textOf = (content: OwnFile.Content): ProfileLoader.Text =>
  content._tag === "Text"
    ? Either.right(content.text)
    : Either.left(content._tag === "Refused" ? `it ${content.reason}` : "there is no such file")
