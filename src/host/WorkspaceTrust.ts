/**
 * What trust in a workspace would enable: each rule, setting, command line and profile of its files. The module is loaded only
 * to show that.
 */
import { diffLines } from "diff"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as Digest from "../core/Digest.js"
import * as Redaction from "../core/Redaction.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Visible from "../core/Visible.js"
import * as PolicyFile from "../permission/PolicyFile.js"
import * as PolicySource from "../permission/PolicySource.js"
import * as ServerSettings from "../tool/ServerSettings.js"
import * as Launch from "./Launch.js"
import * as StartedFiles from "./local/StartedFiles.js"
import * as WorkspaceSettings from "./local/WorkspaceSettings.js"
import * as ConfigFile from "./local/ConfigFile.js"
import type { ConfigurationInvalid } from "./local/ConfigurationInvalid.js"
import * as Trust from "./local/Trust.js"
import * as ProfileLocation from "./ProfileLocation.js"
import type * as Settings from "./Settings.js"
import * as Tools from "./Tools.js"

/** What trust in a workspace would enable. Lines are never cut. */
export interface Wanted {
  /** What would be allowed, one thing a line. */
  readonly allowances: ReadonlyArray<string>
  /** A diff against the files that were trusted before; undefined when none were. */
  readonly changes: ReadonlyArray<string> | undefined
  /** Programs that do not start, because files of them are not as they were trusted. */
  readonly programs: ReadonlyArray<StartedFiles.Changed>
}

/**
 * A workspace, and its files as a person elsewhere decides about them. What cannot be seen in a line is spelled out, and what
 * servers get as secrets is masked.
 */
export interface WorkspaceTrust extends Wanted {
  readonly workspace: string
  readonly isTrusted: boolean
  /** Its files would allow something, and nobody trusts them as they are. */
  readonly wantsTrust: boolean
  /** Changes with every byte of any of the files. */
  readonly digest: string
  /** By path below the workspace; SHA-256 of the text. A file that cannot be read has none. */
  readonly files: ReadonlyArray<{ readonly path: string; readonly sha256: string | undefined }>
}

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

export const wanted = (
  settings: Settings.Settings,
  describe: (server: ServerSettings.ServerSettings) => string = ServerSettings.describe
): Effect.Effect<Wanted, ConfigurationInvalid, Launch.Platform> =>
  Effect.gen(function* () {
    const before = yield* Trust.remembered(settings)
    const { profiles } = yield* ProfileLocation.load(settings, Tools.registry(settings))
    const chosen = settings.profile === undefined ? undefined : profiles.get(settings.profile)
    const programs = yield* StartedFiles.changed(settings, Launch.programsOf(settings, { all: profiles, chosen }))
    const ofFiles = settings.trusted
      ? []
      : [...ofPolicy(settings), ...ofConfig(settings, describe), ...(yield* ofProfiles(settings))]
    const isKnown = before !== undefined && !settings.trusted
    const textsNow = new Map(
      [...settings.brought.files.keys()].map((name) => [name, WorkspaceSettings.textOf(settings.brought, name)])
    )
    return {
      allowances: [
        ...ofFiles,
        ...programs.map(({ program: { name, words } }) => `the start of ${name}: ${words.join(" ")}`)
      ],
      changes:
        isKnown || programs.length > 0
          ? [...(isKnown ? changesSince(before.files, textsNow) : []), ...programs.flatMap(changesOf)]
          : undefined,
      programs
    }
  })

/** Changes with everything that a person sees before they trust. */
export const digestOf = ({ brought }: Settings.Settings, programs: ReadonlyArray<StartedFiles.Changed>): string =>
  programs.length === 0 ? brought.digest : Digest.digest([brought.digest, ...programs.map(({ now }) => now.digest)])

export const of = (settings: Settings.Settings): Effect.Effect<WorkspaceTrust, ConfigurationInvalid, Launch.Platform> =>
  Effect.gen(function* () {
    const { brought, trusted, workspace } = settings
    const { allowances, changes, programs } = yield* wanted(settings, describeMasked)
    const before = yield* Trust.remembered(settings)
    const now = WorkspaceSettings.textOf(brought, WorkspaceSettings.config)
    const masking = Redaction.make([now, before?.files[WorkspaceSettings.config]].flatMap(secretsIn))
    const shown = (line: string) => Visible.visible(masking.text(line))
    const { warnings } = yield* ProfileLocation.load(settings, Tools.registry(settings))
    const isChanged = programs.length > 0
    return {
      workspace,
      isTrusted: trusted && !isChanged,
      wantsTrust:
        isChanged || (!trusted && (settings.wantsTrust || (warnings.length > 0 && Trust.isTrustable(brought)))),
      digest: digestOf(settings, programs),
      files: [...brought.files].map(([path, content]) => ({
        path,
        sha256: content._tag === "Text" ? Digest.sha256(content.text) : undefined
      })),
      allowances: allowances.map(shown),
      changes: changes?.map(shown),
      programs
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const ofPolicy = ({ brought }: Settings.Settings): ReadonlyArray<string> => {
  const text = WorkspaceSettings.textOf(brought, WorkspaceSettings.permissions)
  const policy = text === undefined ? undefined : Either.getOrUndefined(PolicyFile.decode(text, ""))
  return policy === undefined ? [] : PolicySource.allowances(policy.source)
}

const ofConfig = (
  { brought }: Settings.Settings,
  describe: (server: ServerSettings.ServerSettings) => string
): ReadonlyArray<string> => {
  const text = WorkspaceSettings.textOf(brought, WorkspaceSettings.config)
  const config = text === undefined ? undefined : Either.getOrUndefined(ConfigFile.decode(text, ""))
  const { mcp_servers: servers = {}, ...others } = config ?? {}
  return [
    ...Object.entries(others).map(([name, value]) => `the setting ${name} = ${JSON.stringify(value)}`),
    ...Object.entries(servers).map(([name, server]) => `the tool server ${name}: ${describe(server)}`)
  ]
}

/** What a configuration gives to tool servers: each value of their environment, headers and addresses, and keys on command lines. */
const secretsIn = (config: string | undefined): ReadonlyArray<string> => {
  const parsed = Either.getOrUndefined(UntrustedJson.parse(config ?? ""))
  const servers = Predicate.hasProperty(parsed, "mcp_servers") ? parsed.mcp_servers : undefined
  return Object.values(recordOf(servers)).flatMap((server) => {
    const { args, command, env, headers, url } = recordOf(server)
    const line = [command, ...(Array.isArray(args) ? args : [])].filter(Predicate.isString)
    return [
      ...[env, headers].flatMap((values) => Object.values(recordOf(values)).filter(Predicate.isString)),
      ...(Predicate.isString(url) ? secretsOf(url) : []),
      ...line.flatMap((word, at) => (isSecretFlag.test(word) ? line.slice(at + 1, at + 2) : [])),
      ...line.flatMap((word) => [...word.matchAll(secretFlag)].map(([, value = ""]) => value))
    ]
  })
}

/** Also values that are too short to be masked wherever they are. */
const describeMasked = ({ env = {}, headers = {}, ...server }: ServerSettings.ServerSettings): string => {
  const masked = (values: object) => Object.fromEntries(Object.keys(values).map((name) => [name, Redaction.mask]))
  return ServerSettings.describe({ ...server, env: masked(env), headers: masked(headers) })
}

const recordOf = (value: unknown): { readonly [name: string]: unknown } =>
  Predicate.isReadonlyRecord(value) ? value : {}

const secretsOf = (url: string): ReadonlyArray<string> => {
  if (!URL.canParse(url)) return [url]
  const { hash, password, searchParams, username } = new URL(url)
  return [username, password, hash.slice(1), ...searchParams.values()]
}

const flag = String.raw`-[\w-]*(?:token|secret|key|passw?d?|password|auth|credentials?|bearer)[\w-]*`

const isSecretFlag = new RegExp(`^${flag}$`, "i")

const secretFlag = new RegExp(String.raw`${flag}[= ]\s*["']?([^\s"']+)`, "gi")

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

/** What differs in the files of a program. One without a text is only named. */
const changesOf = ({ after, before, names }: StartedFiles.Changed): ReadonlyArray<string> =>
  names.flatMap((name) => {
    const [was, is] = [before, after].map((texts) => (Object.hasOwn(texts, name) ? texts[name] : undefined))
    if (was === is) return [`${name} is another file.`]
    return changesSince(was === undefined ? {} : { [name]: was }, new Map([[name, is]]))
  })

const changesSince = (
  files: { readonly [name: string]: string },
  texts: ReadonlyMap<string, string | undefined>
): ReadonlyArray<string> =>
  [...new Set([...Object.keys(files), ...texts.keys()])].sort().flatMap((name) => {
    const before = Object.hasOwn(files, name) ? files[name] : undefined
    const after = texts.get(name)
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
