/** Where the command line's profiles are, and what their variables stand for. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as ModelRegistry from "../model/ModelRegistry.js"
import type * as ProfileLoader from "../subagent/ProfileLoader.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Settings from "./Settings.js"

type Place = Pick<Settings.Settings, "workspace" | "configDirectory" | "trusted">

/** The workspace's before the user's own; the first that has a name wins. */
export const directories = (settings: Place): Effect.Effect<ReadonlyArray<ProfileLoader.Directory>, never, Path.Path> =>
  Effect.map(Path.Path, (path) => [
    ...[".assent", ".jaato"].map((folder) => ({
      path: path.join(settings.workspace, folder, "profiles"),
      trusted: settings.trusted
    })),
    { path: path.join(settings.configDirectory, "profiles"), trusted: true }
  ])

/** The workspace, the current directory, and the environment without our own keys. */
export const variables =
  (settings: Pick<Settings.Settings, "workspace">) =>
  (name: string): string | undefined => {
    if (name === "workspaceRoot" || name === "projectPath") return settings.workspace
    if (name === "cwd") return process.cwd()
    // Own ones only: `${toString}` is no variable.
    return Settings.secretNames().includes(name) || !Object.hasOwn(process.env, name) ? undefined : process.env[name]
  }

/** What a profile may name: `tools`, the known variables and the providers there are. */
export const context = (settings: Place, tools: ToolRegistry.Service): ProfileLoader.Context => ({
  variables: variables(settings),
  tools,
  providers: ModelRegistry.providers
})

/** All profiles, and what is wrong with their files. */
export const load = (
  settings: Place,
  tools: ToolRegistry.Service
): Effect.Effect<ProfileLoader.Loaded, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const loader = yield* Effect.promise(() => import("../subagent/ProfileLoader.js"))
    return yield* loader.load({ ...context(settings, tools), directories: yield* directories(settings) })
  })
