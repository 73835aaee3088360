/**
 * Flags, environment and files, read once and merged into one value. What a workspace's own files allow counts only
 * after the person trusted that directory.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Arr from "effect/Array"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Struct from "effect/Struct"
import { tmpdir } from "node:os"
import { resolve } from "node:path"
import type * as AuditChain from "../audit/AuditChain.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as CompactionConfig from "../conversation/CompactionConfig.js"
import * as ProviderName from "../model/ProviderName.js"
import * as CompiledPolicy from "../permission/CompiledPolicy.js"
import { modes, type Mode } from "../permission/PermissionState.js"
import * as PolicyFile from "../permission/PolicyFile.js"
import * as PolicySource from "../permission/PolicySource.js"
import * as RealPath from "../permission/RealPath.js"
import * as WebAddress from "../core/WebAddress.js"
import type { Overrides } from "./Overrides.js"
import * as Arrangement from "./Arrangement.js"
import * as AuditLocation from "./local/AuditLocation.js"
import * as WorkspaceSettings from "./local/WorkspaceSettings.js"
import * as ConfigFile from "./local/ConfigFile.js"
import * as DecidingFile from "./local/DecidingFile.js"
import { make as invalid, type ConfigurationInvalid } from "./local/ConfigurationInvalid.js"
import * as Instructions from "./local/Instructions.js"
import * as OwnFile from "./local/OwnFile.js"
import * as ProjectFile from "./local/ProjectFile.js"
import * as HttpProxy from "./HttpProxy.js"
import * as SandboxSettings from "./SandboxSettings.js"
import * as TimeText from "./TimeText.js"
import * as GivenFlags from "./local/GivenFlags.js"
import * as StoreAddress from "./local/StoreAddress.js"
import * as Trust from "./local/Trust.js"
import * as UserLocation from "./local/UserLocation.js"

/** Limits. One that is not set has the runtime's default, or is no limit. */
export interface Limits {
  readonly maxSteps?: number
  readonly parallelTools?: number
  readonly callsPerStep?: number
  readonly identicalErrors?: number
  /** Milliseconds; zero is for ever. */
  readonly modelSilence?: number
  /** Milliseconds. */
  readonly retryWithin?: number
  /** How deep subagents may nest; the root is at depth 0. */
  readonly maxDepth?: number
  /** Subagents alive in one tree. */
  readonly maxChildren?: number
  /** For one session. */
  readonly maxTokens?: number
  /** For a session and all sessions below it. */
  readonly maxTreeTokens?: number
  /** Money: of a run, of a session and all sessions below it, of the workspace on a day. */
  readonly maxCost?: NonNullable<NonNullable<ConfigFile.ConfigFile["limits"]>["max_cost"]>
}

export interface Settings extends UserLocation.Folder {
  /** The person's state of all workspaces; it contains this workspace's folder. */
  readonly stateDirectory: string
  /** The workspace's own files, as they were read. */
  readonly brought: WorkspaceSettings.WorkspaceSettings
  /** The files that decide, as they were when these settings were read. */
  readonly deciding: ReadonlyArray<DecidingFile.DecidingFile>
  readonly home: string | undefined
  /** The system's temp directory; nothing where that holds the home. */
  readonly temporary: ReadonlyArray<string>
  /** Where the user's own files are. */
  readonly configDirectory: string
  readonly model: string
  readonly keys: { readonly [Name in ProviderName.ProviderName]?: Redacted.Redacted }
  /** The directory with the keys of tenants. No tool may reach it. */
  readonly modelKeys: string | undefined
  /** The tenant's part of it, if the session has no other keys. */
  readonly ownKeys: string | undefined
  /** From variables and files. The one of a flag is for one model, and added by {@link addressed}. */
  readonly baseUrls: GivenFlags.BaseUrls
  readonly policy: CompiledPolicy.Policy
  /** What the person allowed in this workspace at prompts; nothing where a policy was named instead. */
  readonly project: ProjectFile.ProjectFile | undefined
  /** The person said that this workspace's own files may allow things. */
  readonly trusted: boolean
  /** True when the workspace's files would allow something and nobody trusted them yet. */
  readonly wantsTrust: boolean
  readonly timeouts: Interactor.Timeouts
  readonly instructions: string
  readonly limits: Limits
  /** The profile the agent itself has; nothing when none was asked for. */
  readonly profile: string | undefined
  /** How calls are decided; nothing when nobody says it. */
  readonly mode: Mode | undefined
  /** Trust was given on the command line, and is to be remembered. */
  readonly isTrustGiven: boolean
  /** It was said on the command line: it counts for a session that has one, too. */
  readonly isModeGiven: boolean
  readonly mediator: ConfigFile.Mediator
  /** A model that decides what the policy delegates. */
  readonly reviewer: Arrangement.Reviewer | undefined
  /** Channels are asked one after the other, and not at once. */
  readonly escalation: Arrangement.Escalation | undefined
  /** What a million tokens of a model cost, by reference. */
  readonly prices: { readonly [model: string]: ConfigFile.Price }
  /** What prices are in, when a file says so. */
  readonly currency: string | undefined
  /** What the person says of models, by reference. */
  readonly models: { readonly [model: string]: ConfigFile.ModelSettings }
  /** When conversations are made shorter; nothing where they never are by themselves. */
  readonly compaction: CompactionConfig.CompactionConfig | undefined
  /** Whether a chat has a line with the model, the context and the money. */
  readonly statusLine: boolean
  /** A model may make up subagents of its own, with no more than these tools and groups. */
  readonly inline: { readonly allowed: boolean; readonly plugins: ReadonlyArray<string> }
  /** Tool servers by name. */
  readonly servers: NonNullable<ConfigFile.ConfigFile["mcp_servers"]>
  /** Seconds that a model call waits for servers that start, and whether a session needs each of them. */
  readonly serverStart: { readonly wait: number | undefined; readonly required: boolean }
  /** How servers are reached. */
  readonly proxy: HttpProxy.HttpProxy
  /** How commands are confined, and what they may reach beside the workspace. */
  readonly sandbox: SandboxSettings.SandboxSettings
  /** Names of variables that commands get beside the usual ones. */
  readonly commandVariables: ReadonlyArray<string>
  /** Key of the audit's hashes: without it they cannot be forged. */
  readonly auditKey: AuditChain.Key | undefined
  readonly auditKeyFile: string | undefined
  /** Where sessions are kept, when the person says so: it may hold a password. */
  readonly store: Redacted.Redacted | undefined
  readonly warnings: ReadonlyArray<string>
}

/** With `looks` nothing is written down: `--trust` counts this once. */
export const load = (
  flags: Overrides,
  { looks = false }: { readonly looks?: boolean } = {}
): Effect.Effect<Settings, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const workspace = yield* workspaceOf(flags.workspace)
    const configDirectory = yield* UserLocation.configDirectory
    const stateDirectory = yield* stateDirectoryFor(workspace)
    const folder = UserLocation.folderOf(stateDirectory, workspace)
    const place: Trust.Place = { workspace, folder, configDirectory, auditKey: yield* AuditLocation.readKey(flags.key) }
    const brought = yield* WorkspaceSettings.load(workspace)
    const isGiven = flags.trust === true
    if (isGiven && !looks) yield* Trust.decide(place, brought, Trust.byFlag)
    const trusted = (isGiven && looks && Trust.isTrustable(brought)) || (yield* Trust.isTrusted(place, brought))

    const home = yield* variable("HOME")
    const instructions = yield* Instructions.load({ home, configDirectory, brought })
    const userConfig = yield* readConfig(ofUser(configDirectory, "config.json"))
    const workspaceConfig = yield* readConfig(ofWorkspace(brought, WorkspaceSettings.config))
    const configs = trusted ? [userConfig, workspaceConfig] : [userConfig]
    const directories = [configDirectory, path.join(workspace, ".assent")]
    const config = ConfigFile.merge(configs.map((file, at) => Arrangement.placed(file, directories[at] ?? workspace)))

    const { policy, widens } =
      flags.policy === undefined
        ? yield* mergedPolicy(
            ofUser(configDirectory, "permissions.json"),
            ofWorkspace(brought, WorkspaceSettings.permissions),
            trusted
          )
        : { policy: yield* requirePolicy(path.resolve(flags.policy)), widens: false }

    // A policy that was named holds alone.
    const project = flags.policy === undefined ? yield* ProjectFile.open(place) : undefined
    const model = flags.model ?? (yield* variable("ASSENT_MODEL")) ?? configs.findLast((file) => file.model)?.model
    const ref = model ?? "offline"
    return {
      ...place,
      stateDirectory,
      brought,
      deciding: DecidingFile.atStart(
        { configDirectory, key: flags.key, named: [flags.policy, yield* variable("NODE_EXTRA_CA_CERTS")] },
        brought
      ),
      home,
      temporary: temporaryBeside(home, yield* variable("TMPDIR")),
      model: ref,
      keys: yield* keysFor(flags),
      modelKeys: flags["model-keys"],
      ownKeys: flags["own-model-keys"] === true ? tenantKeysOf(flags) : undefined,
      baseUrls: yield* baseUrls(config),
      policy: project === undefined ? policy : { ...policy, project },
      project,
      trusted,
      wantsTrust: !trusted && Trust.isTrustable(brought) && (widens || Object.keys(workspaceConfig).length > 0),
      timeouts: {
        permission: (yield* seconds("PERMISSION_TIMEOUT")) ?? fileTimeout(policy),
        clarification: yield* seconds("CLARIFICATION_TIMEOUT")
      },
      instructions: instructions.text,
      limits: limitsOf(config),
      profile: flags.profile === "none" ? undefined : flags.profile,
      mode: yield* modeOf(flags.mode, config.mode),
      isModeGiven: flags.mode !== undefined,
      isTrustGiven: isGiven && !looks,
      mediator: yield* mediatorOf(flags.mediator, config.mediator),
      reviewer: yield* Arrangement.reviewer(flags, config),
      escalation: yield* Arrangement.escalation(flags, config),
      prices: config.price_table ?? {},
      currency: config.currency,
      models: config.models ?? {},
      compaction: compactionOf(config),
      statusLine: (yield* switched("ASSENT_STATUS_LINE")) ?? config.status_line ?? true,
      inline: { allowed: config.allow_inline ?? false, plugins: config.inline_allowed_plugins ?? [] },
      servers: { ...config.mcp_servers, ...flags.servers },
      serverStart: { wait: config.mcp?.wait, required: config.mcp?.required ?? false },
      proxy: yield* HttpProxy.load,
      commandVariables: config.command_environment ?? [],
      sandbox: yield* SandboxSettings.of(flags, ConfigFile.sandboxOf(config), home, folder, [
        configDirectory,
        stateDirectory
      ]),
      auditKeyFile: flags.key,
      store: yield* storeOf(flags, userConfig, configDirectory),
      warnings: [
        ...brought.remarks,
        ...instructions.remarks,
        ...policy.warnings,
        ...(flags.policy === undefined && !trusted ? yield* lostDenials(place, brought) : []),
        ...(["store", "notify"] as const).flatMap((name) =>
          workspaceConfig[name] === undefined
            ? []
            : [`"${name}" in the config.json of a workspace does not count; name it in your own: ${configDirectory}.`]
        )
      ]
    }
  })

/** Where sessions are kept: what the person says, else the state of each workspace. */
export const storage = (
  flags: Pick<Overrides, "store">
): Effect.Effect<Pick<Settings, "stateDirectory" | "store">, ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const configDirectory = yield* UserLocation.configDirectory
    const config = yield* readConfig(ofUser(configDirectory, "config.json"))
    return { stateDirectory: yield* realStateDirectory, store: yield* storeOf(flags, config, configDirectory) }
  })

/** What is called when a question waits. */
export interface Notify {
  readonly webhook: URL
  /** Milliseconds. */
  readonly after: number
}

/** From the person's own file alone: a workspace must not choose where its questions go. */
export const notify: Effect.Effect<Notify | undefined, ConfigurationInvalid> = Effect.gen(function* () {
  const config = yield* readConfig(ofUser(yield* UserLocation.configDirectory, "config.json"))
  if (config.notify === undefined) return undefined
  const { after = "30s", webhook } = config.notify
  const limit = TimeText.parse(after)
  if (limit === undefined || limit < 1_000)
    return yield* invalid(`notify.after: ${JSON.stringify(after)} is no time. Give one such as 30s, 5m or 1.5h.`)
  const address = WebAddress.parse(webhook)
  if (Either.isLeft(address)) return yield* invalid(`The address of notify.webhook ${address.left.message}`)
  return { webhook: address.right, after: limit }
})

/** Where a cluster keeps its sessions: the flag, else `ASSENT_DATABASE_URL`, else the store of the person's settings. */
export const databaseOf = (flags: Pick<Overrides, "store">) =>
  Effect.flatMap(secret("ASSENT_DATABASE_URL"), (named) =>
    flags.store === undefined && named !== undefined
      ? Effect.succeed(named)
      : Effect.map(storage(flags), ({ store }) => store)
  )

/** Where a node of a cluster is: the address of its API, and the one for the other nodes. */
export const nodeAddresses = Effect.suspend(() =>
  Effect.all({ listen: variable("ASSENT_LISTEN"), advertise: variable("ASSENT_NODE_ADDRESS") })
)

/** With the address of `--base-url`. `own`: the model of the flag's caller, if somebody else chose the session's. */
export const addressed = (settings: Settings, flags: Pick<Overrides, "base-url">, own = settings.model): Settings => ({
  ...settings,
  baseUrls: { ...settings.baseUrls, ...GivenFlags.addressed(flags["base-url"], own, settings.model) }
})

/** What is said of models, with this thinking of one of them. */
export const withThinking = (
  models: Settings["models"],
  model: string,
  thinking: NonNullable<ConfigFile.ModelSettings["thinking"]>
): Settings["models"] => ({
  ...models,
  [model]: { ...(Object.hasOwn(models, model) ? models[model] : undefined), thinking }
})

/** The variables that hold our own keys. */
export const secretNames = (): ReadonlyArray<string> => [
  ...Object.values(keyNames).flat(),
  "ASSENT_WEBHOOK_TOKEN",
  "ASSENT_STORE",
  "ASSENT_DATABASE_URL"
]

/** What is masked in all that is told; no word in the place of a key, as local servers want one: it stands in any text. */
export const secretsOf = ({ keys, proxy, store }: Settings): ReadonlyArray<Redacted.Redacted | string> => [
  ...proxy.secrets,
  ...Object.values(keys).filter((key) => !noKey.test(Redacted.value(key))),
  ...Arr.fromNullable(store && StoreAddress.passwordIn(Redacted.value(store)))
]

const noKey = /^(?:none|empty|no-?key|not-?needed|(?:my-|api-?)?key|dummy|fake|test|local|unused|lm-studio|ollama|x+)$/i

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A variable may name any directory. */
const temporaryBeside = (home: string | undefined, set: string | undefined): ReadonlyArray<string> => {
  const place = resolve(set ?? tmpdir())
  return place === "/" || (home !== undefined && OwnFile.isWithin(place, resolve(home))) ? [] : [place]
}

/** A variable that is set and not empty. */
const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(Config.nonEmptyString(name)), Option.getOrUndefined)

const secret = (name: string): Effect.Effect<Redacted.Redacted | undefined> =>
  Effect.map(Effect.option(Config.redacted(Config.nonEmptyString(name))), Option.getOrUndefined)

/** The flag, else the variable, else the person's own file. */
const storeOf = (flags: Pick<Overrides, "store">, config: ConfigFile.ConfigFile, directory: string) =>
  flags.store === undefined
    ? Effect.map(secret("ASSENT_STORE"), (named) => named ?? storeIn(config, directory))
    : Effect.succeed(Redacted.make(flags.store))

/** A path is one from the file that names it. */
const storeIn = ({ store }: ConfigFile.ConfigFile, directory: string): Redacted.Redacted | undefined => {
  if (store === undefined) return undefined
  const isFile = store !== ":memory:" && !StoreAddress.isOne(store)
  return Redacted.make(isFile ? resolve(directory, store) : store)
}

const keyNames = {
  anthropic: ["ANTHROPIC_API_KEY"],
  openai: ["OPENAI_API_KEY"],
  google: ["GOOGLE_API_KEY", "GEMINI_API_KEY"],
  openrouter: ["OPENROUTER_API_KEY"],
  "openai-compatible": ["OPENAI_COMPATIBLE_API_KEY"]
} as const

type Keys = { readonly [Name in ProviderName.ProviderName]?: Redacted.Redacted }

/** Where the tenant's own keys are. */
const tenantKeysOf = ({ "model-keys": directory, tenant }: Overrides): string | undefined =>
  directory === undefined || tenant === undefined ? undefined : resolve(directory, tenant)

/** The keys of the server, and before them those of the tenant, as they are now. */
const keysFor = (flags: Overrides) =>
  Effect.gen(function* () {
    const directory = tenantKeysOf(flags)
    if (directory === undefined) return yield* keys
    const shared: Keys = flags["own-model-keys"] === true ? {} : yield* keys
    return { ...shared, ...(yield* keysIn(directory)) }
  })

/** A file that is there and cannot be used is an error: else another key would pay. */
const keysIn = (directory: string): Either.Either<Keys, ConfigurationInvalid> =>
  Either.gen(function* () {
    const found: { [Name in ProviderName.ProviderName]?: Redacted.Redacted } = {}
    for (const provider of Struct.keys(keyNames)) {
      for (const name of keyNames[provider]) {
        const file = `${directory}/${name}`
        const key = (yield* textOf({ file, content: OwnFile.read(file, longestKey) })).pipe(Option.map(trimmed))
        if (Option.isNone(key)) continue
        if (!/^\S+$/.test(key.value))
          return yield* Either.left(
            invalid(`${file} has to hold one model key, and nothing else. Write the key there.`)
          )
        found[provider] ??= Redacted.make(key.value)
      }
    }
    return found
  })

const trimmed = (text: string): string => text.trim()

/** Bytes. */
const longestKey = 10_000

const keys = Effect.gen(function* () {
  const found: { [Name in ProviderName.ProviderName]?: Redacted.Redacted } = {}
  for (const [provider, names] of Object.entries(keyNames)) {
    for (const name of names) {
      const key = yield* secret(name)
      if (key !== undefined) found[provider as keyof typeof keyNames] ??= key
    }
  }
  return found
})

const baseUrlNames: { readonly [Name in ProviderName.ProviderName]: string } = {
  anthropic: "ANTHROPIC_BASE_URL",
  openai: "OPENAI_BASE_URL",
  google: "GOOGLE_BASE_URL",
  openrouter: "OPENROUTER_BASE_URL",
  ollama: "OLLAMA_BASE_URL",
  "openai-compatible": "OPENAI_COMPATIBLE_BASE_URL"
}

/** The variable, else the files. */
const baseUrls = (config: ConfigFile.ConfigFile) =>
  Effect.gen(function* () {
    const found: { [Name in ProviderName.ProviderName]?: string } = {}
    for (const provider of ProviderName.providers) {
      const url = (yield* variable(baseUrlNames[provider])) ?? (config.base_urls?.[provider] || undefined)
      if (url !== undefined) found[provider] = url
    }
    return found
  })

const workspaceOf = (flag: string | undefined) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const wanted = path.resolve(flag ?? ".")
    const real = OwnFile.realDirectory(wanted)
    return real ?? (yield* invalid(`The workspace ${wanted} is not a directory.`))
  })

const realStateDirectory = Effect.gen(function* () {
  const directory = yield* UserLocation.stateDirectory
  // Most often it is there, and the system follows all links at once.
  return (
    OwnFile.realDirectory(directory) ??
    (yield* RealPath.make(yield* FileSystem.FileSystem, yield* Path.Path).real(directory))
  )
})

/**
 * The real path of the state directory. A workspace inside of it is refused: its agent could write its own decisions.
 */
const stateDirectoryFor = (workspace: string) =>
  Effect.gen(function* () {
    const real = yield* realStateDirectory
    if (OwnFile.isWithin(real, workspace)) {
      return yield* invalid(
        `The workspace ${workspace} is in ${real}, which holds Assent's state; no agent may work there.`
      )
    }
    return real
  })

/** A file and its content. */
interface Found {
  readonly file: string
  readonly content: OwnFile.Content
}

const ofUser = (directory: string, name: string): Found => {
  const file = `${directory}/${name}`
  return { file, content: OwnFile.read(file, OwnFile.maxSettings) }
}

const ofWorkspace = ({ files, workspace }: WorkspaceSettings.WorkspaceSettings, name: string): Found => ({
  file: `${workspace}/${name}`,
  content: files.get(name) ?? OwnFile.absent
})

/** Undefined when there is no such file. A file that cannot be read is an error, never treated as absent. */
const textOf = ({ content, file }: Found) =>
  content._tag === "Refused"
    ? Either.left(invalid(`${file} ${content.reason}.`))
    : Either.right(content._tag === "Text" ? Option.some(content.text) : Option.none<string>())

const readConfig = (from: Found) =>
  Effect.gen(function* () {
    const text = yield* textOf(from)
    return Option.isNone(text) ? {} : yield* ConfigFile.decode(text.value, from.file)
  })

const limitNames = {
  max_steps: "maxSteps",
  parallel_tools: "parallelTools",
  calls_per_step: "callsPerStep",
  identical_errors: "identicalErrors",
  model_silence: "modelSilence",
  retry_within: "retryWithin",
  max_depth: "maxDepth",
  max_children: "maxChildren",
  max_tokens: "maxTokens",
  max_tree_tokens: "maxTreeTokens"
} as const satisfies {
  readonly [Name in keyof Omit<NonNullable<ConfigFile.ConfigFile["limits"]>, "max_cost">]: keyof Limits
}

const inSeconds: ReadonlySet<string> = new Set(["model_silence", "retry_within"])

const limitsOf = ({ limits = {} }: ConfigFile.ConfigFile): Limits => ({
  ...Object.fromEntries(
    Struct.entries(limitNames).flatMap(([name, ours]) => {
      const value = limits[name]
      return value === undefined ? [] : [[ours, inSeconds.has(name) ? value * 1_000 : value]]
    })
  ),
  ...(limits.max_cost === undefined ? {} : { maxCost: limits.max_cost })
})

/** Old turns become a summary before the window is full. */
const compactionOf = ({ compaction, gc }: ConfigFile.ConfigFile): CompactionConfig.CompactionConfig | undefined =>
  compaction === false ? undefined : CompactionConfig.fromFile({ type: "summarize", preserve_recent_turns: 3, ...gc })

/** A variable that is `on` or `off`, or one of the usual words for that. */
const switched = (name: string) =>
  Effect.gen(function* () {
    const text = (yield* variable(name))?.toLowerCase()
    if (text === undefined) return undefined
    if (["on", "true", "yes", "1"].includes(text)) return true
    if (["off", "false", "no", "0"].includes(text)) return false
    return yield* invalid(`${name} takes on or off, not ${JSON.stringify(text)}.`)
  })

/** The flag, else the variable, else the files. */
const modeOf = (flag: string | undefined, file: Mode | undefined) =>
  Effect.gen(function* () {
    const text = flag ?? (yield* variable("ASSENT_MODE"))
    if (text === undefined) return file
    const mode = modes.find((known) => known === text)
    if (mode !== undefined) return mode
    const message = `takes ${modes.join(", ")}, not ${JSON.stringify(text)}.`
    return yield* invalid(`${flag === undefined ? "ASSENT_MODE" : "--mode"} ${message}`)
  })

/** The flag, else the variable, else the files. */
const mediatorOf = (flag: string | undefined, file: ConfigFile.Mediator | undefined) =>
  Effect.gen(function* () {
    const text = flag ?? (yield* variable("ASSENT_MEDIATOR"))
    if (text === undefined) return file ?? "forward"
    const mediator = ConfigFile.mediators.find((known) => known === text)
    if (mediator !== undefined) return mediator
    const message = `takes ${ConfigFile.mediators.join(" or ")}, not ${JSON.stringify(text)}.`
    return yield* invalid(`${flag === undefined ? "ASSENT_MEDIATOR" : "--mediator"} ${message}`)
  })

/**
 * The policies of user and workspace merged, and whether the workspace's part holds rules that count only with trust.
 */
const mergedPolicy = (userFile: Found, workspaceFile: Found, trusted: boolean) =>
  Effect.gen(function* () {
    const user = yield* readPolicy(userFile)
    const workspace = yield* readPolicy(workspaceFile)
    const policy = CompiledPolicy.merge(
      Option.getOrElse(user, () => CompiledPolicy.defaults),
      Option.getOrElse(workspace, () => CompiledPolicy.defaults),
      { trusted }
    )
    return { policy, widens: Option.exists(workspace, CompiledPolicy.widens) }
  })

/**
 * Denials count without trust, so nobody is asked about files that allow nothing: where fewer denials are left than in
 * the files that were trusted, this says so.
 */
const lostDenials = (place: Trust.Place, brought: WorkspaceSettings.WorkspaceSettings) =>
  Effect.map(Trust.remembered(place), (before): ReadonlyArray<string> => {
    const denied = denialsIn(before?.files[WorkspaceSettings.permissions])
    const kept = new Set(denialsIn(WorkspaceSettings.textOf(brought, WorkspaceSettings.permissions)))
    const lost = denied.filter((line) => !kept.has(line))
    if (lost.length === 0) return []
    const shown = [...lost.slice(0, maxLost), ...(lost.length > maxLost ? [`${lost.length - maxLost} more`] : [])]
    return [
      `${place.workspace}/${WorkspaceSettings.permissions} no longer denies what it denied when you trusted the directory: ${shown.join(", ")}. If you meant that, start with --trust.`
    ]
  })

const maxLost = 5

const denialsIn = (text: string | undefined): ReadonlyArray<string> => {
  const policy = text === undefined ? undefined : Either.getOrUndefined(PolicyFile.decode(text, ""))
  return policy === undefined ? [] : PolicySource.denials(policy.source)
}

const readPolicy = (from: Found) =>
  Effect.gen(function* () {
    const text = yield* textOf(from)
    if (Option.isNone(text)) return Option.none<CompiledPolicy.Policy>()
    return Option.some(yield* decodePolicy(text.value, from.file))
  })

/** The policy in a file that was named. */
const requirePolicy = (file: string) =>
  Effect.gen(function* () {
    const content = OwnFile.readGiven(file, OwnFile.maxSettings)
    switch (content._tag) {
      case "Absent":
        return yield* invalid(`There is no policy file ${file}.`)
      case "Refused":
        return yield* invalid(`${file} ${content.reason}.`)
      case "Text":
        return yield* decodePolicy(content.text, file)
    }
  })

const decodePolicy = (text: string, file: string) =>
  Either.mapLeft(PolicyFile.decode(text, file), (error) => invalid(error.message))

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
const fileTimeout = ({ channel }: CompiledPolicy.Policy): number | undefined =>
  channel?.timeout === undefined ? undefined : Math.max(0, channel.timeout) * 1_000
