/**
 * What a person is shown before they trust a directory: each rule that would count, and what changed since they last
 * trusted it. The module is loaded only for such a question.
 */
import { diffLines } from "diff"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Display from "../../terminal/Display.js"
import * as PolicyFile from "../../permission/PolicyFile.js"
import * as PolicySource from "../../permission/PolicySource.js"
import * as Brought from "../../host/local/Brought.js"
import * as ConfigFile from "../../host/local/ConfigFile.js"
import type { ConfigurationInvalid } from "../../host/local/ConfigurationInvalid.js"
import * as ServerSettings from "../../tool/ServerSettings.js"
import type { Platform } from "../../host/Launch.js"
import * as Output from "../terminal/Output.js"
import * as ProfileLocation from "../../host/ProfileLocation.js"
import type * as Settings from "../../host/Settings.js"
import * as Tools from "../../host/Tools.js"
import * as Trust from "../../host/local/Trust.js"

/** What trust in a workspace would enable. Lines are never cut. */
export interface Wanted {
  /** What would be allowed, one thing a line. */
  readonly allowances: ReadonlyArray<string>
  /** A diff against the files that were trusted before; undefined when none were. */
  readonly changes: ReadonlyArray<string> | undefined
}

export const wanted = (settings: Settings.Settings): Effect.Effect<Wanted, ConfigurationInvalid, Platform> =>
  Effect.gen(function* () {
    const before = yield* Trust.remembered(settings)
    return {
      allowances: [...ofPolicy(settings), ...ofConfig(settings), ...(yield* ofProfiles(settings))],
      changes: before === undefined ? undefined : changesSince(before, settings.brought)
    }
  })

/**
 * What to print before the question. A left says that it is too long to show, and what to do instead: a person must
 * have seen everything that a yes enables.
 */
export const preface = (
  { workspace }: Settings.Settings,
  { allowances, changes }: Wanted
): Either.Either<ReadonlyArray<string>, string> => {
  const lines = [
    changes === undefined
      ? `${workspace} brings settings that allow this without asking:`
      : `The settings of ${workspace} are not what you trusted. They allow this without asking:`,
    ...(allowances.length === 0 ? ["  nothing"] : allowances.map((line) => `  ${line}`)),
    ...(changes === undefined ? [] : ["What changed:", ...changes.map((line) => `  ${line}`)])
  ]
  return lines.length > maxLines || lines.some((line) => line.length > maxLength)
    ? Either.left(
        `What ${workspace} allows is too much to show here. Read its .assent, and start with --trust if you agree with all of it.`
      )
    : Either.right(lines.map((line) => Display.oneLine(line)))
}

/** Why something in the workspace has no effect, and what to do. Shown where nobody can be asked. */
export const notice = (
  settings: Settings.Settings
): Effect.Effect<ReadonlyArray<string>, ConfigurationInvalid, Platform> =>
  Effect.map(wanted(settings), (known) => noticeOf(settings, known))

/** The same on standard error. */
export const tell = (settings: Settings.Settings): Effect.Effect<void, ConfigurationInvalid, Platform> =>
  Effect.flatMap(
    notice(settings),
    Effect.forEach((line) => Output.notice(line), { discard: true })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const noticeOf = ({ workspace }: Settings.Settings, { allowances, changes }: Wanted): ReadonlyArray<string> => [
  changes === undefined
    ? `what ${workspace}/.assent allows is ignored until you trust the directory: start with --trust.`
    : `${workspace}/.assent has changed since you trusted it. What it allows is ignored until you trust it again: start with --trust.`,
  ...some("It would allow:", allowances),
  ...(changes === undefined ? [] : some("What changed:", changes))
]

const maxLines = 200
const maxLength = 2_000
/** Lines of a notice: it is printed beside other output. */
const maxNoticed = 12

const some = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (lines.length === 0) return []
  const rest = lines.length - maxNoticed
  return [
    title,
    ...lines.slice(0, maxNoticed).map((line) => `  ${Display.oneLine(line, 200)}`),
    ...(rest > 0 ? [`  … and ${rest} more`] : [])
  ]
}

const ofPolicy = ({ brought }: Settings.Settings): ReadonlyArray<string> => {
  const text = Brought.textOf(brought, Brought.permissions)
  const policy = text === undefined ? undefined : Either.getOrUndefined(PolicyFile.decode(text, ""))
  return policy === undefined ? [] : PolicySource.allowances(policy.source)
}

const ofConfig = ({ brought }: Settings.Settings): ReadonlyArray<string> => {
  const text = Brought.textOf(brought, Brought.config)
  const config = text === undefined ? undefined : Either.getOrUndefined(ConfigFile.decode(text, ""))
  const { mcp_servers: servers = {}, ...others } = config ?? {}
  return [
    ...Object.entries(others).map(([name, value]) => `the setting ${name} = ${JSON.stringify(value)}`),
    ...Object.entries(servers).map(([name, server]) => `the tool server ${name}: ${ServerSettings.describe(server)}`)
  ]
}

/** The profiles as they would be with trust. */
const ofProfiles = (settings: Settings.Settings) =>
  Effect.map(
    ProfileLocation.load({ ...settings, trusted: true }, Tools.registry(settings)),
    ({ profiles }): ReadonlyArray<string> =>
      [...profiles.values()]
        .filter(({ source }) => source.startsWith(`${settings.workspace}/.`))
        .map(({ autoApproved, model, name, plugins, provider }) =>
          [
            `the profile ${name}`,
            ...(model === undefined ? [] : [`with the model ${[provider, model].filter(Boolean).join("/")}`]),
            ...(autoApproved ? [`which asks nobody for ${plugins === null ? "any tool" : plugins.join(", ")}`] : [])
          ].join(", ")
        )
  )

/** Characters that are compared line by line; longer texts are only said to differ. */
const maxCompared = 100_000
/** Milliseconds. */
const patience = 200

const changesSince = ({ files }: Trust.Remembered, brought: Brought.Brought): ReadonlyArray<string> =>
  [...new Set([...Object.keys(files), ...brought.files.keys()])].sort().flatMap((name) => {
    const before = Object.hasOwn(files, name) ? files[name] : undefined
    const after = Brought.textOf(brought, name)
    if (before === after) return []
    if (after === undefined) return [`${name} is gone, or cannot be read.`]
    if (before !== undefined && before.length + after.length > maxCompared) {
      return [`${name} is another text of ${after.length} characters.`]
    }
    const parts = diffLines(before ?? "", after, { timeout: patience })
    if (parts === undefined) return [`${name} is another text of ${after.length} characters.`]
    return [
      before === undefined ? `${name} is new:` : `${name}:`,
      ...parts.flatMap(({ added, removed, value }) =>
        added || removed
          ? value
              .replace(/\n$/, "")
              .split("\n")
              .map((line) => `  ${added ? "+" : "-"} ${line}`)
          : []
      )
    ]
  })
