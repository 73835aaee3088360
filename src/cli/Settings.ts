/**
 * Flags, environment and files, read once and made into one value. What a workspace's own files allow counts only after
 * the person trusted that directory.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as AuditChain from "../event/AuditChain.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as ModelRegistry from "../model/ModelRegistry.js"
import * as PermissionFile from "../permission/PermissionFile.js"
import * as Arguments from "./Arguments.js"
import * as AuditPlace from "./AuditPlace.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"

/** `config.json`, in the user's directory and in the workspace's `.assent`. */
const ConfigFile = Schema.Struct({
  model: Schema.optional(Schema.String),
  base_urls: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.String })),
  limits: Schema.optional(
    Schema.Struct({
      max_steps: Schema.optional(Schema.Int.pipe(Schema.positive())),
      parallel_tools: Schema.optional(Schema.Int.pipe(Schema.positive())),
      identical_errors: Schema.optional(Schema.Int.pipe(Schema.positive()))
    })
  )
})
type ConfigFile = typeof ConfigFile.Type

export interface Settings {
  /** Absolute, links resolved. */
  readonly workspace: string
  readonly home: string | undefined
  /** Where the user's own files are. */
  readonly configDirectory: string
  readonly model: string
  readonly keys: { readonly [Name in ModelRegistry.ProviderName]?: Redacted.Redacted }
  readonly baseUrls: { readonly [Name in ModelRegistry.ProviderName]?: string }
  readonly policy: PermissionFile.Policy
  /** True when the workspace's files would allow something and nobody trusted them yet. */
  readonly wantsTrust: boolean
  readonly timeouts: Interactor.Timeouts
  readonly instructions: string
  readonly limits: { readonly maxSteps?: number; readonly parallelTools?: number; readonly identicalErrors?: number }
  /** Makes the audit's hashes unforgeable for whoever lacks it. */
  readonly auditKey: AuditChain.Key | undefined
  readonly auditKeyFile: string | undefined
  readonly logLevel: LogLevel.LogLevel
  /** Milliseconds after which the work is cancelled. */
  readonly timeout: number | undefined
  readonly warnings: ReadonlyArray<string>
}

type Failure = Arguments.UsageError | ConfigurationInvalid

export const load = (flags: Arguments.Flags): Effect.Effect<Settings, Failure, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const workspace = yield* workspaceOf(flags.workspace)
    const configDirectory = yield* configDirectoryOf
    const own = path.join(workspace, ".assent")
    if (flags.trust === true) yield* trust(configDirectory, workspace)
    const trusted = yield* isTrusted(configDirectory, workspace)

    const userConfig = yield* readConfig(path.join(configDirectory, "config.json"))
    const workspaceConfig = yield* readConfig(path.join(own, "config.json"))
    const configs: ReadonlyArray<ConfigFile> = trusted ? [userConfig, workspaceConfig] : [userConfig]

    const { policy, widens } =
      flags.policy === undefined
        ? yield* mergedPolicy(
            path.join(configDirectory, "permissions.json"),
            path.join(own, "permissions.json"),
            trusted
          )
        : { policy: yield* requirePolicy(path.resolve(flags.policy)), widens: false }

    const model = flags.model ?? (yield* variable("ASSENT_MODEL")) ?? configs.findLast((file) => file.model)?.model
    const ref = model ?? "offline"
    const limits = Object.assign({}, ...configs.map((file) => file.limits ?? {})) as NonNullable<ConfigFile["limits"]>
    return {
      workspace,
      home: yield* variable("HOME"),
      configDirectory,
      model: ref,
      keys: yield* keys,
      baseUrls: yield* baseUrls(configs, ref, flags["base-url"]),
      policy,
      wantsTrust: !trusted && (widens || Object.keys(workspaceConfig).length > 0),
      timeouts: {
        permission: (yield* seconds("PERMISSION_TIMEOUT")) ?? fileTimeout(policy),
        clarification: yield* seconds("CLARIFICATION_TIMEOUT")
      },
      instructions: yield* instructionsOf(workspace),
      limits: {
        ...(limits.max_steps === undefined ? {} : { maxSteps: limits.max_steps }),
        ...(limits.parallel_tools === undefined ? {} : { parallelTools: limits.parallel_tools }),
        ...(limits.identical_errors === undefined ? {} : { identicalErrors: limits.identical_errors })
      },
      auditKey: yield* AuditPlace.readKey(flags.key),
      auditKeyFile: flags.key,
      logLevel: yield* logLevelOf(flags["log-level"]),
      timeout: flags.timeout === undefined ? undefined : yield* Arguments.parseLimit(flags.timeout),
      warnings: policy.warnings
    }
  })

/** Takes the keys out of the process's environment, so that no command an agent runs inherits them. */
export const hideKeys: Effect.Effect<void> = Effect.sync(() => {
  for (const name of [...Object.values(keyNames).flat(), "ASSENT_WEBHOOK_TOKEN"]) delete process.env[name]
})

/** Remembers, outside the workspace, that its files may allow things. */
export const trust = (
  configDirectory: string,
  workspace: string
): Effect.Effect<void, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    if (yield* isTrusted(configDirectory, workspace)) return
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const known = yield* readTrust(configDirectory)
    const file = path.join(configDirectory, "trust.json")
    yield* fileSystem.makeDirectory(configDirectory, { recursive: true })
    yield* fileSystem.writeFileString(`${file}.new`, JSON.stringify([...known, workspace], null, 2), { mode: 0o600 })
    yield* fileSystem.rename(`${file}.new`, file)
  }).pipe(
    Effect.catchTags({
      BadArgument: (error) => invalid(`Trust cannot be remembered: ${error.message}`),
      SystemError: (error) => invalid(`Trust cannot be remembered: ${error.message}`)
    })
  )

/** Why something in the workspace has no effect yet, and what to do. */
export const untrustedNotice = (settings: Settings): string =>
  `what ${settings.workspace}/.assent allows is ignored until you trust the directory: start with --trust.`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A variable that is set and not empty. */
const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(Config.nonEmptyString(name)), Option.getOrUndefined)

const secret = (name: string): Effect.Effect<Redacted.Redacted | undefined> =>
  Effect.map(Effect.option(Config.redacted(Config.nonEmptyString(name))), Option.getOrUndefined)

const keyNames = {
  anthropic: ["ANTHROPIC_API_KEY"],
  openai: ["OPENAI_API_KEY"],
  google: ["GOOGLE_API_KEY", "GEMINI_API_KEY"],
  openrouter: ["OPENROUTER_API_KEY"],
  "openai-compatible": ["OPENAI_COMPATIBLE_API_KEY"]
} as const

const keys = Effect.gen(function* () {
  const found: { [Name in ModelRegistry.ProviderName]?: Redacted.Redacted } = {}
  for (const [provider, names] of Object.entries(keyNames)) {
    for (const name of names) {
      const key = yield* secret(name)
      if (key !== undefined) found[provider as keyof typeof keyNames] ??= key
    }
  }
  return found
})

const baseUrlNames: { readonly [Name in ModelRegistry.ProviderName]: string } = {
  anthropic: "ANTHROPIC_BASE_URL",
  openai: "OPENAI_BASE_URL",
  google: "GOOGLE_BASE_URL",
  openrouter: "OPENROUTER_BASE_URL",
  ollama: "OLLAMA_BASE_URL",
  "openai-compatible": "OPENAI_COMPATIBLE_BASE_URL"
}

/** The flag for the chosen model's provider, else the variable, else the files. */
const baseUrls = (configs: ReadonlyArray<ConfigFile>, model: string, flag: string | undefined) =>
  Effect.gen(function* () {
    const found: { [Name in ModelRegistry.ProviderName]?: string } = {}
    for (const provider of ModelRegistry.providers) {
      const fromFile = configs.findLast((file) => file.base_urls?.[provider])?.base_urls?.[provider]
      const url = (yield* variable(baseUrlNames[provider])) ?? fromFile
      const chosen = flag !== undefined && model.startsWith(`${provider}/`) ? flag : url
      if (chosen !== undefined) found[provider] = chosen
    }
    return found
  })

const workspaceOf = (flag: string | undefined) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const fileSystem = yield* FileSystem.FileSystem
    const wanted = path.resolve(flag ?? ".")
    const isDirectory = yield* Effect.orElseSucceed(
      Effect.map(fileSystem.stat(wanted), (info) => info.type === "Directory"),
      () => false
    )
    if (!isDirectory) {
      return yield* new Arguments.UsageError({ message: `The workspace ${wanted} is not a directory.` })
    }
    return yield* Effect.orElseSucceed(fileSystem.realPath(wanted), () => wanted)
  })

const configDirectoryOf = Effect.gen(function* () {
  const path = yield* Path.Path
  const own = yield* variable("ASSENT_CONFIG_DIR")
  if (own !== undefined) return path.resolve(own)
  const xdg = yield* variable("XDG_CONFIG_HOME")
  const home = (yield* variable("HOME")) ?? (yield* variable("USERPROFILE")) ?? "."
  return path.join(xdg ?? path.join(home, ".config"), "assent")
})

const readTrust = (configDirectory: string) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const text = yield* readIfThere(path.join(configDirectory, "trust.json"))
    if (Option.isNone(text)) return []
    const parsed = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Schema.String)))(text.value)
    return Option.getOrElse(parsed, (): ReadonlyArray<string> => [])
  })

const isTrusted = (configDirectory: string, workspace: string) =>
  Effect.map(readTrust(configDirectory), (known) => known.includes(workspace))

/** Nothing when there is no such file; a file that cannot be read is an error, never the same as none. */
const readIfThere = (file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return yield* Effect.asSome(fileSystem.readFileString(file))
  }).pipe(
    Effect.catchAll((error) =>
      error._tag === "SystemError" && error.reason === "NotFound"
        ? Effect.succeedNone
        : Effect.fail(invalid(`${file} cannot be read: ${error.message}`))
    )
  )

const readConfig = (file: string) =>
  Effect.gen(function* () {
    const text = yield* readIfThere(file)
    if (Option.isNone(text)) return {} satisfies ConfigFile
    const decoded = Schema.decodeUnknownEither(Schema.parseJson(ConfigFile), {
      errors: "all",
      onExcessProperty: "error"
    })(text.value)
    if (Either.isRight(decoded)) return decoded.right
    const problems = ParseResult.ArrayFormatter.formatErrorSync(decoded.left)
      // Each optional field adds that it could have been left out.
      .filter(({ message }) => !message.startsWith("Expected undefined"))
      .map(({ path, message }) => `  ${path.join(".") || "(file)"}: ${message}`)
    return yield* invalid([`${file} cannot be used:`, ...problems].join("\n"))
  })

/** What the user and the workspace say as one, and whether the workspace's part says what counts only with trust. */
const mergedPolicy = (userFile: string, workspaceFile: string, trusted: boolean) =>
  Effect.gen(function* () {
    const user = yield* readPolicy(userFile)
    const workspace = yield* readPolicy(workspaceFile)
    const policy = PermissionFile.merge(
      Option.getOrElse(user, () => PermissionFile.defaults),
      Option.getOrElse(workspace, () => PermissionFile.defaults),
      { trusted }
    )
    return { policy, widens: Option.exists(workspace, PermissionFile.widens) }
  })

const readPolicy = (file: string) =>
  Effect.gen(function* () {
    const text = yield* readIfThere(file)
    if (Option.isNone(text)) return Option.none<PermissionFile.Policy>()
    return Option.some(yield* decodePolicy(text.value, file))
  })

const requirePolicy = (file: string) =>
  Effect.gen(function* () {
    const text = yield* readIfThere(file)
    if (Option.isNone(text)) return yield* new Arguments.UsageError({ message: `There is no policy file ${file}.` })
    return yield* decodePolicy(text.value, file)
  })

const decodePolicy = (text: string, file: string) =>
  Either.mapLeft(PermissionFile.decode(text, file), (error) => invalid(error.message))

/** `ASSENT_…`, else `JAATO_…`; seconds. Zero or less is for ever. */
const seconds = (name: string) =>
  Effect.gen(function* () {
    for (const full of [`ASSENT_${name}`, `JAATO_${name}`]) {
      const text = yield* variable(full)
      if (text === undefined) continue
      const value = Number(text)
      if (Number.isFinite(value)) return value <= 0 ? 0 : value * 1_000
      return yield* invalid(`${full} must be a number of seconds, not ${JSON.stringify(text)}.`)
    }
    return undefined
  })

/** The policy file's own limit, in milliseconds. */
const fileTimeout = ({ channel }: PermissionFile.Policy): number | undefined =>
  channel?.timeout === undefined ? undefined : Math.max(0, channel.timeout) * 1_000

const instructionsOf = (workspace: string) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    for (const name of [path.join(".assent", "instructions.md"), "AGENTS.md"]) {
      const text = yield* readIfThere(path.join(workspace, name))
      if (Option.isSome(text)) return text.value
    }
    return ""
  })

const levels = {
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error,
  none: LogLevel.None
}

/** The level a flag names; warnings and worse when it names none. */
export const logLevelOf = (name: string | undefined) => {
  if (name === undefined) return Either.right(LogLevel.Warning)
  const level = Object.entries(levels).find(([known]) => known === name.toLowerCase())
  return level === undefined
    ? Either.left(
        new Arguments.UsageError({ message: `--log-level takes ${Object.keys(levels).join(", ")}, not ${name}.` })
      )
    : Either.right(level[1])
}
