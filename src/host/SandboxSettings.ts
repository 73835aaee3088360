/** Sandbox settings for commands, from flags, environment and files. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as path from "node:path"
import * as HostSandbox from "../sandbox/HostSandbox.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import type { Overrides } from "./Overrides.js"
import type * as ConfigFile from "./local/ConfigFile.js"
import * as OwnFile from "./local/OwnFile.js"
import { make as invalid, type ConfigurationInvalid } from "./local/ConfigurationInvalid.js"

/** All options of a sandbox, except the workspace and the paths to hide. */
export interface SandboxSettings {
  readonly mode: Sandbox.Mode
  readonly network: boolean
  readonly readable: ReadonlyArray<string>
  readonly writable: ReadonlyArray<string>
  readonly directory: string
  /** The directories of the person's settings and state. */
  readonly own: ReadonlyArray<string>
  readonly allowHome: boolean
}

export interface Sign {
  readonly words: string
  /** Default: the words. */
  readonly sentence?: string
  readonly remark: string | undefined
}

/** Whether a sandbox works on this machine. The check leaves nothing behind. */
const stateOf = (root: string, settings: SandboxSettings) =>
  Effect.scoped(Effect.flatMap(HostSandbox.make({ ...settings, directory: undefined, root }), ({ state }) => state))

/**
 * How commands run here: in few words for a status line, in a sentence for somebody who begins, and in one more when nobody
 * chose that mode.
 */
export const sign = (root: string, settings: SandboxSettings) =>
  Effect.map(stateOf(root, settings), (found): Sign => {
    if (found._tag === "Confined") {
      const network = found.network ? "with the network" : "without network"
      return {
        words: `commands confined, network ${found.network ? "on" : "off"}`,
        sentence: `Commands of the agent run in a sandbox: they write in this workspace only, ${network}.`,
        remark: undefined
      }
    }
    if (settings.mode === "require") return { words: "no commands", remark: `No command runs: ${found.reason}` }
    const remark = settings.mode === "off" ? undefined : `Commands run without a sandbox: ${found.reason}`
    return { words: "commands open", remark }
  })

/** The same in one line. */
export const describe = (root: string, settings: SandboxSettings) =>
  Effect.map(stateOf(root, settings), (found) => {
    if (found._tag === "Unconfined") {
      const consequence = settings.mode === "require" ? "no command runs" : "commands run without one"
      return `sandbox: ${settings.mode}, ${consequence}: ${found.reason}`
    }
    const network = found.network ? "with the network" : "without the network"
    const reads = found.repository === undefined ? "" : `, read the repository ${found.repository}`
    return `sandbox: ${settings.mode}, by ${found.by}: commands write in ${found.writable.join(", ")} only${reads}, ${network}`
  })

/** `folder` is the folder of this workspace in the person's state. */
export const of = (
  flags: Pick<Overrides, "sandbox" | "add-dir" | "allow-home">,
  file: ReturnType<typeof ConfigFile.sandboxOf>,
  home: string | undefined,
  folder: string,
  own: ReadonlyArray<string>
): Effect.Effect<SandboxSettings, ConfigurationInvalid> =>
  Effect.gen(function* () {
    const named = yield* Effect.option(Config.nonEmptyString("ASSENT_SANDBOX"))
    const text = flags.sandbox ?? Option.getOrUndefined(named)
    const mode = text === undefined ? (file.mode ?? "auto") : Sandbox.modes.find((known) => known === text)
    if (mode === undefined) {
      const message = `takes ${Sandbox.modes.join(", ")}, not ${JSON.stringify(text)}.`
      return yield* invalid(`${flags.sandbox === undefined ? "ASSENT_SANDBOX" : "--sandbox"} ${message}`)
    }
    const added = (flags["add-dir"] ?? []).map((directory) => path.resolve(directory))
    for (const directory of added) {
      const real = OwnFile.realDirectory(directory)
      if (real === undefined) {
        return yield* invalid(`--add-dir ${directory} is not a directory.`)
      }
      if (HostSandbox.tooBroad.includes(real)) {
        return yield* invalid(`--add-dir ${directory} ${broad}`)
      }
    }
    const absolute = (files: ReadonlyArray<string> = []) =>
      files.flatMap((file) => {
        const place = file.startsWith("~/") && home !== undefined ? path.join(home, file.slice(2)) : file
        return path.isAbsolute(place) ? [place] : []
      })
    const writable = absolute(file.writable)
    for (const directory of writable) {
      // Tools get it too, whether or not there is a sandbox.
      if (HostSandbox.tooBroad.includes(OwnFile.realDirectory(directory) ?? directory)) {
        return yield* invalid(`sandbox.writable: ${directory} ${broad}`)
      }
    }
    return {
      mode,
      network: file.network ?? false,
      readable: absolute(file.readable),
      writable: [...writable, ...added],
      directory: path.join(folder, "sandbox"),
      own,
      allowHome: flags["allow-home"] ?? false
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const broad = "is too wide. Name the directory in it that you mean."
