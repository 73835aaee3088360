/**
 * The person's own directories, never in a workspace: one for settings, one for state.
 *
 * | | variable | else | macOS | Windows |
 * |---|---|---|---|---|
 * | settings | `ASSENT_CONFIG_DIR` | `$XDG_CONFIG_HOME/assent`, `~/.config/assent` | the same | the same |
 * | state | `ASSENT_STATE_DIR` | `$XDG_STATE_HOME/assent`, `~/.local/state/assent` | `~/Library/Application Support/assent` | `%LOCALAPPDATA%\assent` |
 *
 * ```
 * STATE/workspaces/shop-3f6c0b1d9a2e4c57/workspace.json   whose folder it is
 *                                        sessions.db      sessions
 *                                        audit/           decisions
 *                                        history          what was typed at the prompt
 *                                        project-rules.json  what was allowed there for good
 *                                        trust.json       what of the workspace's own files the person trusts
 * ```
 *
 * A workspace's folder is named after the workspace's real path, so that no file in the workspace can choose it.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Digest from "../../core/Digest.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"

/** The state of one workspace. */
export interface Folder {
  /** Absolute, links resolved. */
  readonly workspace: string
  /** Absolute; need not exist. */
  readonly folder: string
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The directory of the person's settings. */
export const configDirectory: Effect.Effect<string, ConfigurationInvalid> = Effect.gen(function* () {
  const own = yield* variable("ASSENT_CONFIG_DIR")
  if (own !== undefined) return path.resolve(own)
  const xdg = yield* absolute("XDG_CONFIG_HOME")
  return path.join(xdg ?? path.join(yield* home("settings", "ASSENT_CONFIG_DIR"), ".config"), "assent")
})

/** The directory of all state. */
export const stateDirectory: Effect.Effect<string, ConfigurationInvalid> = Effect.gen(function* () {
  const own = yield* variable("ASSENT_STATE_DIR")
  if (own !== undefined) return path.resolve(own)
  const xdg = yield* absolute("XDG_STATE_HOME")
  if (xdg !== undefined) return path.join(xdg, "assent")
  const local = process.platform === "win32" ? yield* absolute("LOCALAPPDATA") : undefined
  if (local !== undefined) return path.join(local, "assent")
  const convention = process.platform === "darwin" ? ["Library", "Application Support"] : [".local", "state"]
  return path.join(yield* home("state", "ASSENT_STATE_DIR"), ...convention, "assent")
})

/** The folder of a workspace's state; it need not exist. `workspace` is its real path. */
export const folderOf = (stateDirectory: string, workspace: string): string => {
  const readable = path
    .basename(workspace)
    .replace(/[^\w.-]+/g, "_")
    .replace(/^\.+/, "")
    .slice(0, 40)
  return path.join(stateDirectory, "workspaces", `${readable || "root"}-${Digest.sha256(workspace).slice(0, 16)}`)
}

/** Makes the folder with access for its owner only, and notes its workspace in it. Fails with one sentence. */
export const prepare = ({ folder, workspace }: Folder): Effect.Effect<void, ConfigurationInvalid> =>
  Effect.try({
    try: () => {
      makePrivate(path.dirname(path.dirname(folder)))
      makePrivate(path.dirname(folder))
      makePrivate(folder)
      const file = path.join(folder, nameOfFolder)
      if (!fs.existsSync(file)) replace(file, `${JSON.stringify({ version: 1, workspace })}\n`)
    },
    catch: (error) =>
      invalid(
        `Assent cannot store its state in ${folder}: ${reasonOf(error)}. Make that directory yours and writable, or set ASSENT_STATE_DIR to another one.`
      )
  })

/** All existing folders with their workspaces. */
export const folders = (stateDirectory: string): Effect.Effect<ReadonlyArray<Folder>> =>
  Effect.sync(() => {
    const root = path.join(stateDirectory, "workspaces")
    return namesIn(root).flatMap((name) => {
      const folder = path.join(root, name)
      const workspace = workspaceIn(OwnFile.read(path.join(folder, nameOfFolder), 100_000))
      return workspace === undefined ? [] : [{ folder, workspace }]
    })
  })

/** Writes a file atomically, with access for its owner only. */
export const replace = (file: string, text: string): void => {
  const half = `${file}.${process.pid}.new`
  try {
    fs.writeFileSync(half, text, { mode: 0o600, flag: "wx" })
    fs.renameSync(half, file)
  } catch (error) {
    fs.rmSync(half, { force: true })
    throw error
  }
}

/**
 * Makes a directory and its parents, with access for their owner only. It makes them one by one: where none can be
 * made, such as in `/proc`, Node's recursive mkdir tries for ever.
 */
export const makeAll = (directory: string): void => {
  if (fs.statSync(directory, { throwIfNoEntry: false }) !== undefined) return
  if (path.dirname(directory) !== directory) makeAll(path.dirname(directory))
  fs.mkdirSync(directory, { mode: 0o700 })
}

/** Node's message begins with a code and ends with the call and its path; only the middle is kept. */
export const reasonOf = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  return message.replace(/^[A-Z]+: /, "").replace(/, \w+ '/, " '")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const nameOfFolder = "workspace.json"

const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(Config.nonEmptyString(name)), Option.getOrUndefined)

/** The XDG specification ignores relative paths: they would depend on the current directory. */
const absolute = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(variable(name), (text) => (text !== undefined && path.isAbsolute(text) ? text : undefined))

/** Never the current directory: that is the workspace. */
const home = (what: string, instead: string): Effect.Effect<string, ConfigurationInvalid> =>
  Effect.gen(function* () {
    const set = (yield* absolute("HOME")) ?? (yield* absolute("USERPROFILE"))
    if (set !== undefined) return set
    const known = yield* Effect.option(Effect.try(() => os.userInfo().homedir))
    if (Option.isSome(known) && path.isAbsolute(known.value)) return known.value
    return yield* invalid(`There is no home directory for ${what} in. Set HOME, or ${instead}.`)
  })

const makePrivate = (directory: string): void => {
  try {
    makeAll(directory)
  } catch (error) {
    // Another process may have made it first.
    if (fs.statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
  const found = fs.statSync(directory)
  // The mode of a device is everybody's.
  if (!found.isDirectory()) throw new Error(`not a directory: ${directory}`)
  const { mode, uid } = found
  if (process.getuid !== undefined && uid !== process.getuid()) throw new Error(`${directory} belongs to another user`)
  // An existing directory may be open to others; nobody else may read or write in it.
  if (process.platform !== "win32" && (mode & 0o077) !== 0) fs.chmodSync(directory, 0o700)
  fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK)
}

const namesIn = (directory: string): ReadonlyArray<string> => {
  try {
    return fs.readdirSync(directory).sort()
  } catch {
    return []
  }
}

const workspaceIn = (read: OwnFile.Content): string | undefined => {
  if (read._tag !== "Text") return undefined
  try {
    const value: unknown = JSON.parse(read.text)
    return typeof value === "object" && value !== null && "workspace" in value && typeof value.workspace === "string"
      ? value.workspace
      : undefined
  } catch {
    return undefined
  }
}
