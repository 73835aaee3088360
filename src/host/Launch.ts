/** Makes a running agent from settings: model, tools, interactors. All commands that run an agent share it. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as ParentBridgedChannel from "../bridge/ParentBridgedChannel.js"
import * as Redaction from "../core/Redaction.js"
import * as Digest from "../core/Digest.js"
import * as TerminalText from "../core/TerminalText.js"
import * as AuditFile from "../audit/AuditFile.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import type * as Checkpoints from "../builtin/Checkpoints.js"
import * as Jobs from "../builtin/Jobs.js"
import type * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import type * as ForeignAgents from "../foreign/ForeignAgents.js"
import * as ForeignTools from "../foreign/ForeignTools.js"
import * as Interactor from "../interaction/Interactor.js"
import * as KnownModel from "../model/KnownModel.js"
import * as ThinkingSetting from "../model/ThinkingSetting.js"
import type * as ServerPrompts from "../mcp/ServerPrompts.js"
import * as Model from "../model/Model.js"
import { Unreachable } from "../model/ModelError.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as CompiledPolicy from "../permission/CompiledPolicy.js"
import * as PolicyFile from "../permission/PolicyFile.js"
import * as SanitizerOptions from "../permission/SanitizerOptions.js"
import * as Agent from "../runtime/Agent.js"
import * as AgentRuntime from "../runtime/AgentRuntime.js"
import type * as ProfileLoader from "../subagent/ProfileLoader.js"
import * as SubagentProfile from "../subagent/SubagentProfile.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as TokenBudget from "../turn/TokenBudget.js"
import * as AuditLocation from "./local/AuditLocation.js"
import * as WorkspaceSettings from "./local/WorkspaceSettings.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"
import * as DaySpend from "./local/DaySpend.js"
import * as DecidingFile from "./local/DecidingFile.js"
import * as InstalledProgram from "./local/InstalledProgram.js"
import * as OwnFile from "./local/OwnFile.js"
import * as StartedFiles from "./local/StartedFiles.js"
import * as Trust from "./local/Trust.js"
import type * as SandboxSettings from "./SandboxSettings.js"
import * as ProfileLocation from "./ProfileLocation.js"
import * as HostError from "./HostError.js"
import * as HttpProxy from "./HttpProxy.js"
import * as Settings from "./Settings.js"
import * as Tools from "./Tools.js"
import * as Traces from "./Traces.js"
import * as UserLocation from "./local/UserLocation.js"

export type Platform = FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor

/** The model a reference names: `offline`, `script:FILE`, or `PROVIDER/MODEL`. */
export const resolveModel = (
  settings: Settings.Settings,
  ref: string,
  /** Where agents of others run. Default: they are named only. */
  foreign?: ForeignAgents.ForeignAgents
): Effect.Effect<Model.Service, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    // The flag has the short name, the journal the long one.
    if (ref === "offline" || ref === "offline/offline") {
      const offline = yield* Effect.promise(() => import("../model/OfflineModel.js"))
      return offline.make()
    }
    if (ref.startsWith("script:")) return yield* readScript(ref)
    if (isForeign(ref)) return foreignModel(ref, foreign)
    const ModelRegistry = yield* Effect.promise(() => import("../model/ModelRegistry.js"))
    const registry = yield* ModelRegistry.make({
      keys: settings.keys,
      baseUrls: settings.baseUrls,
      remedies: {
        key: (variable) =>
          settings.ownKeys === undefined
            ? `Set ${variable}, or use --model offline.`
            : `Write the key into ${settings.ownKeys}/${variable}.`,
        baseUrl: "Set one with --base-url."
      },
      maxOutputTokensOf: given(settings.models, ({ max_output_tokens }) => max_output_tokens),
      thinking: given(settings.models, ({ thinking }) => (thinking === undefined ? undefined : thinkingOf(thinking)))
    }).pipe(Effect.provide(HttpProxy.client(settings.proxy)))
    return yield* Effect.mapError(registry.resolve(ref), (error) => ConfigurationInvalid.make(error.message))
  }).pipe(Effect.map((model) => withWindow(model, settings.models)))

/** What is said in the settings about a model and cannot come true, as a sentence. */
export const unmetOf = (settings: Settings.Settings, model: string): string | undefined => {
  const { models } = settings
  const thinking = Object.hasOwn(models, model) ? models[model]?.thinking : undefined
  const problem = thinking === undefined ? undefined : ThinkingSetting.problem(model, thinkingOf(thinking))
  const isOwn = model.startsWith("offline") || model.startsWith("script:")
  const isUncounted = settings.limits.maxCost !== undefined && !isOwn && priceOf(settings, model) === undefined
  const told = [...(problem === undefined ? [] : [problem]), ...(isUncounted ? [TokenBudget.unlimitedText(model)] : [])]
  return told.length === 0 ? undefined : told.join(" ")
}

/** The same of all models that are chosen: the agent's, those of profiles, and the reviewer's. */
export const unmet = (settings: Settings.Settings, profiles: Profiles): ReadonlyArray<string> => {
  return chosenModels(settings, profiles).flatMap((ref) => unmetOf(settings, ref) ?? [])
}

type Prices = Pick<Settings.Settings, "currency" | "prices">

/** The person's own prices go before those of vendors, which do not count where the person's are in other money. */
const priceOf = ({ currency = KnownModel.currency, prices }: Prices, model: string): TokenLedger.Price | undefined =>
  Object.hasOwn(prices, model)
    ? prices[model]
    : currency === KnownModel.currency
      ? KnownModel.priceOf(model)
      : undefined

export const tokenPrices = (settings: Prices): Pick<TokenLedger.Options, "currency" | "prices"> => ({
  currency: settings.currency ?? KnownModel.currency,
  prices: (model) => priceOf(settings, model)
})

/** Puts the model that reviews calls before an interactor; the interactor itself where there is none. */
export type Review = (interactor: Interactor.Service) => Interactor.Service

/** One model before all who are asked. */
export const review = (
  settings: Settings.Settings
): Effect.Effect<Review, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const { reviewer } = settings
    if (reviewer === undefined) return (interactor: Interactor.Service) => interactor
    const model = yield* resolveModel(settings, reviewer.model)
    const { before } = yield* Effect.promise(() => import("../people/ModelReviewer.js"))
    const { budget, instructions, timeout } = reviewer
    return before({ model, budget, instructions, timeout })
  })

/** All profiles, and the requested one. */
export interface Profiles {
  readonly all: ReadonlyMap<string, SubagentProfile.SubagentProfile>
  readonly chosen: SubagentProfile.SubagentProfile | undefined
  /** Sentences for the person: what is wrong with files, and what has no effect yet. */
  readonly remarks: ReadonlyArray<string>
  /** True when some profile is ignored only because the directory is not trusted. */
  readonly wantTrust: boolean
}

/** Sentences about unknown tools that permission files allow. Denying an unknown tool is an error. */
export const unknownTools = (
  settings: Settings.Settings
): Effect.Effect<ReadonlyArray<string>, ConfigurationInvalid.ConfigurationInvalid> =>
  Either.match(PolicyFile.checkTools(settings.policy, Object.values(withForeign.tools)), {
    onLeft: ({ message }) => Effect.fail(ConfigurationInvalid.make(message)),
    onRight: (found) => Effect.succeed(remarks(found))
  })

/** Reads the profiles. The requested one must exist; another that is invalid is left out. */
export const profiles = (
  settings: Settings.Settings
): Effect.Effect<Profiles, ConfigurationInvalid.ConfigurationInvalid, Platform> =>
  Effect.gen(function* () {
    const unknown = yield* unknownTools(settings)
    const tools = Tools.registry(settings)
    const { problems, profiles: all, warnings } = yield* ProfileLocation.load(settings, tools)
    const chosen = settings.profile === undefined ? undefined : all.get(settings.profile)
    if (settings.profile !== undefined && chosen === undefined) {
      return yield* ConfigurationInvalid.make(
        `There is no profile ${JSON.stringify(settings.profile)}. Profiles: ${[...all.keys()].join(", ")}.`
      )
    }
    const programs = programsOf(settings, { all, chosen })
    const changed = yield* StartedFiles.changed(settings, programs)
    if (settings.isTrustGiven && changed.length > 0)
      yield* Trust.decide(settings, settings.brought, Trust.byFlag, changed)
    return {
      all,
      chosen,
      remarks: [...unknown, ...remarks([...problems, ...warnings])],
      wantTrust: warnings.length > 0 || (changed.length > 0 && !settings.isTrustGiven)
    }
  })

/** The programs that settings and profiles start. */
export const programsOf = (
  settings: Settings.Settings,
  profiles: Pick<Profiles, "all" | "chosen">
): ReadonlyArray<StartedFiles.Program> => {
  const place = { workspace: settings.workspace, writable: settings.sandbox.writable }
  return [
    ...Object.entries(settings.servers).flatMap(([name, server]) => StartedFiles.ofServer(name, server, place)),
    ...chosenModels(settings, profiles)
      .filter(isForeign)
      .map((ref) => agentOf(settings, ref.slice(commandPrefix.length)))
  ]
}

/** How long a subagent's questions wait: a person at a terminal has all the time there is, unless a limit was set. */
export const subagentTimeouts = (given: Interactor.Timeouts, attended: boolean): Interactor.Timeouts =>
  Interactor.timeoutsOf(given, attended ? { permission: 0, clarification: 0 } : ParentBridgedChannel.defaultTimeouts)

/** What the agents of one workspace share, and all that decides whether two of them may. */
export interface Sharing {
  readonly settings: Settings.Settings
  readonly profiles: Profiles
  /** Whether a person answers who has all the time there is. */
  readonly attended: boolean
  /** Whether nobody is there, and a question halts the agent. */
  readonly halts: boolean
  /** Further places that no tool may touch, such as directories from which answers are read. */
  readonly outOfReach: ReadonlyArray<string>
  /** Where it is kept what files were before tools changed them. Default: nowhere. */
  readonly checkpoints: Checkpoints.Service | undefined
  /** People see the words of subagents while they stream. */
  readonly outputStreamed: boolean
  /** Whether there are tools for files and commands. Default: true. */
  readonly hasWorkspace?: boolean | undefined
}

/** Runtime, audit writer and exporter of a workspace and a profile. */
export interface Shared {
  readonly context: Context.Context<AgentRuntime.AgentRuntime | AuditTrail.AuditTrail | Jobs.Jobs>
  /** The files that decide, as they were when the settings were read. */
  readonly deciding: ReadonlyArray<DecidingFile.DecidingFile>
  /** The directories that file tools may touch. */
  readonly files: WorkspaceRoot.Options
  /** Masks what settings keep secret. */
  readonly redactor: Redaction.Redactor
  /** The prompts of its servers; absent without servers. */
  readonly prompts?: ServerPrompts.ServerPrompts | undefined
}

/** Takes sentences for the person who runs the process. */
export type Notify = (sentence: string) => void

/** Two of one key may share. Every file that decides is in it with its content, and every key. */
export const keyOf = ({
  attended,
  checkpoints,
  halts,
  hasWorkspace = true,
  outOfReach,
  outputStreamed,
  settings
}: Sharing): string => {
  const { auditKey, brought, keys, proxy, store, ...rest } = settings
  const plain = Struct.omit(rest, "policy", "project", "warnings", "mode", "isModeGiven", "wantsTrust", "statusLine")
  return Digest.digest({
    ...plain,
    brought: [brought.digest, brought.targets],
    secrets: [...Object.entries(keys), ["store", store] as const].map(([name, secret]) => [
      name,
      secret === undefined ? null : Redacted.value(secret)
    ]),
    proxy: [proxy.described, proxy.secrets],
    auditKey: auditKey === undefined ? null : Redacted.value(auditKey),
    made: { attended, halts, hasWorkspace, outOfReach, outputStreamed, checkpoints: numberOf(checkpoints) }
  })
}

/** Builds what agents share, until the scope closes: after the last of them has ended. */
export const share = (
  { attended, checkpoints, halts, hasWorkspace = true, outOfReach, outputStreamed, profiles, settings }: Sharing,
  notify: Notify
): Effect.Effect<Shared, ConfigurationInvalid.ConfigurationInvalid | HostError.ModelRefused, Platform | Scope.Scope> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const fileSystem = yield* FileSystem.FileSystem
    const { all, chosen } = profiles
    const ref = modelOf(settings, { chosen })
    const models = chosenModels(settings, profiles)
    const scripts = DecidingFile.scripts(models)
    const deciding = [...settings.deciding, ...scripts]
    const files = filesOf(settings, deciding, outOfReach, path)
    const foreign = models.some(isForeign) ? yield* foreignAgents(settings, all, files, notify) : undefined
    const model = yield* Effect.mapError(
      resolveModel(settings, ref, foreign),
      ({ message }) => new HostError.ModelRefused({ model: ref, message })
    )
    const services = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    // The directory is outside the workspace, so that it leaves no trace there.
    const spillDirectory = yield* Effect.mapError(
      fileSystem.makeTempDirectoryScoped({ prefix: "assent-output-" }),
      (error) => ConfigurationInvalid.make(`No temporary directory can be made: ${error.message}`)
    )
    const redactor = Redaction.make(Settings.secretsOf(settings))
    // Opened before the runtime, so that it closes later and gets the last spans.
    const spans = yield* Traces.open(redactor, settings.proxy)
    const { prompts, ...served } = yield* serversOf(settings, files, redactor, notify)
    const runtime = AgentRuntime.layer({
      ...judging(settings, files, [spillDirectory]),
      ...served,
      // Their handlers are beside those of the other tools.
      toolkit:
        foreign === undefined ? Tools.toolkitFor(hasWorkspace) : (withForeign as unknown as typeof Tools.toolkit),
      guards: foreign === undefined ? [] : ForeignTools.guards,
      instructions: [hasWorkspace ? role : roleWithoutWorkspace, chosen?.systemInstructions ?? ""]
        .filter((part) => part !== "")
        .join("\n\n"),
      baseInstructions: hasWorkspace ? baseInstructions(settings) : settings.instructions,
      redactor,
      spans,
      limits: ownLimits(settings),
      compaction: settings.compaction,
      tokens: {
        ...tokenPrices(settings),
        limits: spending(settings),
        day: DaySpend.make({
          folder: settings.folder,
          clock: yield* Effect.clock,
          currency: settings.currency ?? KnownModel.currency,
          failed: notify
        })
      },
      subagents: {
        ...delegating(settings, all, (named) =>
          Effect.zipRight(
            DecidingFile.unchanged(scripts, named),
            Effect.provide(resolveModel(settings, named, foreign), services)
          )
        ),
        mediation: settings.mediator,
        timeouts: subagentTimeouts(settings.timeouts, attended),
        outputStreamed
      }
    }).pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          foreign === undefined ? Layer.empty : ForeignTools.layer(foreign),
          Tools.layer(
            {
              ...files,
              spillDirectory,
              passedVariables: settings.commandVariables,
              withheldVariables: Settings.secretNames()
            },
            settings.proxy,
            checkpoints,
            halts ? nobodyForPasswords : undefined
          ),
          Model.layer(model)
        )
      )
    )
    yield* UserLocation.prepare(settings)
    const audit = AuditFile.layer({ ...AuditLocation.archive(settings), key: settings.auditKey, redactor })
    const context = yield* Effect.mapError(Layer.build(Layer.merge(runtime, audit)), (error) =>
      ConfigurationInvalid.make(error.message)
    )
    return { context, deciding, files, prompts, redactor }
  })

/** An agent with what is needed to undo what it did. */
export interface Started {
  readonly agent: Agent.Agent
  /** For interactors that are attached later. */
  readonly review: Review
  /** Its audit. */
  readonly trail: AuditTrail.Service
  /** What runs in the background. */
  readonly jobs: Jobs.Service
  /** The directories that its file tools may touch. */
  readonly files: WorkspaceRoot.Options
  /** Masks what settings keep secret. */
  readonly redactor: Redaction.Redactor
  /** The prompts of its servers; absent without servers. */
  readonly prompts?: ServerPrompts.ServerPrompts | undefined
}

/** Starts the agent that settings describe, with these interactors attached. */
export const start = (
  { context, deciding, files, prompts, redactor }: Shared,
  { profiles: { chosen }, settings }: Pick<Sharing, "profiles" | "settings">,
  interactors: ReadonlyArray<Interactor.Service>,
  { notify, ...options }: Agent.Options & { readonly notify: Notify }
): Effect.Effect<Started, ConfigurationInvalid.ConfigurationInvalid, FileSystem.FileSystem | Path.Path | Scope.Scope> =>
  Effect.gen(function* () {
    const reviewed = yield* review(settings)
    // Begun before the agent, so that it looks once more when the agent has ended.
    const followed = yield* DecidingFile.follow(deciding, notify)
    const { tools } = Context.get(context, AgentRuntime.AgentRuntime)
    const started = Agent.startWith(interactors.map(reviewed), {
      ...ofProfile(chosen, tools),
      mode: modeOf(settings, options.persistence),
      ...options
    })
    const agent = yield* Effect.mapError(Effect.provide(started, context), ({ message }) =>
      ConfigurationInvalid.make(message)
    )
    yield* Effect.forkScoped(Effect.flatMap(agent.subscribe(), followed))
    const jobs = Context.get(context, Jobs.Jobs)
    const trail = Context.get(context, AuditTrail.AuditTrail)
    return { agent, review: reviewed, trail, jobs, files, prompts, redactor }
  })

/** The directories that an agent's file tools may touch, before the agent starts. */
export const filesFor = (settings: Settings.Settings): Effect.Effect<ReturnType<typeof filesOf>, never, Path.Path> =>
  Effect.map(Path.Path, (path) => filesOf(settings, settings.deciding, [], path))

/** Such an agent, for what it may do unasked. It gets no words, calls no model and is not kept: nothing is left behind. */
export const judgement = (
  settings: Settings.Settings,
  { all }: Pick<Profiles, "all">
): Effect.Effect<
  Pick<Agent.Agent, "permissions" | "tools">,
  ConfigurationInvalid.ConfigurationInvalid,
  Platform | Scope.Scope
> =>
  Effect.gen(function* () {
    const files = filesOf(settings, settings.deciding, [], yield* Path.Path)
    const services = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const { make } = yield* Effect.promise(() => import("../model/OfflineModel.js"))
    const runtime = AgentRuntime.layer({
      ...judging(settings, files),
      redactor: Redaction.make(Settings.secretsOf(settings)),
      subagents: delegating(settings, all, (named) => Effect.provide(resolveModel(settings, named), services))
    })
    const sandbox = { ...files.sandbox, directory: undefined }
    const given = Layer.merge(Tools.layer({ ...files, sandbox }), Model.layer(make()))
    return yield* Effect.provide(
      Agent.startWith([], { mode: settings.mode }),
      yield* Layer.build(Layer.provide(runtime, given))
    )
  }).pipe(Effect.mapError(({ message }) => ConfigurationInvalid.make(message)))

/** How the main agent runs, if it is an agent of others. Such an agent runs its commands itself. */
export const foreignSign = (
  settings: Settings.Settings,
  profiles: Pick<Profiles, "all" | "chosen">
): SandboxSettings.Sign | undefined => {
  const ref = modelOf(settings, profiles)
  if (!isForeign(ref)) return undefined
  const confined = settings.sandbox.mode === "off" ? undefined : sandboxOf(ref, profiles.all)
  const sign =
    confined === undefined
      ? { words: "agent not confined", sentence: "This agent runs outside the sandbox, with all its commands." }
      : { words: "agent confined", sentence: "This agent runs in the sandbox of its profile, with all its commands." }
  return { ...sign, remark: undefined }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A service has no content to be compared by. */
const numbers = new WeakMap<Checkpoints.Service, number>()
let numbered = 0

const numberOf = (checkpoints: Checkpoints.Service | undefined): number => {
  if (checkpoints === undefined) return 0
  const number = numbers.get(checkpoints) ?? ++numbered
  numbers.set(checkpoints, number)
  return number
}

/** Tool servers start in the background, and end with the scope. Nothing is loaded without them. */
const serversOf = (
  settings: Settings.Settings,
  files: ReturnType<typeof filesOf>,
  redactor: Redaction.Redactor,
  notify: Notify
) =>
  Object.keys(settings.servers).length === 0
    ? Effect.succeed({ prompts: undefined })
    : Effect.flatMap(
        Effect.promise(() => import("./Servers.js")),
        ({ serve }) => serve(settings, files, redactor, readable(settings.policy, files.added), notify)
      )

/** The part of a runtime that decides about calls. Tools may reach the `added` directories, too. */
const judging = (
  settings: Settings.Settings,
  { added, protectedPaths }: ReturnType<typeof filesOf>,
  reachable: ReadonlyArray<string> = []
) => ({
  toolkit: Tools.toolkit,
  policy: readable(settings.policy, [...reachable, ...added]),
  workspace: settings.workspace,
  protectedPaths,
  home: settings.home,
  temporary: settings.temporary
})

const withForeign = Toolkit.merge(Tools.toolkit, ForeignTools.toolkit)

const isForeign = (ref: string): boolean => ref.startsWith(commandPrefix)

/** A model that is a command line: an agent of others. */
const commandPrefix = "command:"

/** The sandbox that a profile wants for this command. */
const sandboxOf = (ref: string, profiles: Profiles["all"]): SubagentProfile.SubagentProfile["sandbox"] =>
  [...profiles.values()].find((one) => one.sandbox !== undefined && one.model === ref)?.sandbox

const foreignAgents = (
  settings: Settings.Settings,
  profiles: Profiles["all"],
  { deniedPaths, sandbox }: ReturnType<typeof filesOf>,
  notify: Notify
) =>
  Effect.flatMap(
    Effect.promise(() => import("../foreign/ForeignAgents.js")),
    ({ make }) => {
      const { commandVariables, workspace } = settings
      return make({
        workspace,
        passedVariables: commandVariables,
        withheldVariables: Settings.secretNames(),
        admit: (command) => StartedFiles.admit(settings, agentOf(settings, command), notify),
        confines: (command) => {
          const wanted = sandboxOf(`${commandPrefix}${command}`, profiles)
          return (
            wanted && {
              ...sandbox,
              // Its private home is not that of commands, which would choose what the agent loads from it.
              directory: `${sandbox.directory}-agents`,
              deniedPaths,
              root: workspace,
              writable: [...sandbox.writable, ...wanted.writable],
              network: wanted.network
            }
          )
        }
      })
    }
  )

const agentOf = ({ sandbox, workspace }: Settings.Settings, command: string): StartedFiles.Program =>
  StartedFiles.ofAgent(command, { workspace, writable: sandbox.writable })

const foreignModel = (ref: string, foreign: ForeignAgents.ForeignAgents | undefined): Model.Service =>
  foreign?.model(ref.slice(commandPrefix.length)) ?? {
    id: ref,
    stream: () =>
      Stream.fail(
        new Unreachable({ model: ref, message: "An agent of others is chosen when a session starts. Start a new one." })
      )
  }

/** The part of the settings by which a delegation is possible or not. */
const delegating = <E extends { readonly message: string }>(
  { inline, limits }: Settings.Settings,
  profiles: Profiles["all"],
  resolve: (ref: string) => Effect.Effect<Model.Service, E>
) => ({
  profiles: profiles.values(),
  inline,
  maxDepth: limits.maxDepth,
  maxChildren: limits.maxChildren,
  resolveModel: (ref: string) => Effect.mapError(resolve(ref), ({ message }) => message)
})

/** The agent's model: a profile may name one. */
const modelOf = ({ model }: Settings.Settings, { chosen }: Pick<Profiles, "chosen">): string =>
  (chosen === undefined ? undefined : SubagentProfile.modelRef(chosen, model)) ?? model

/** The models that settings and profiles name, each once. */
const chosenModels = (
  settings: Settings.Settings,
  profiles: Pick<Profiles, "all" | "chosen">
): ReadonlyArray<string> => {
  const { model, reviewer } = settings
  const subagents = [...profiles.all.values()].map((profile) => SubagentProfile.modelRef(profile, model))
  const chosen = [modelOf(settings, profiles), ...subagents, reviewer?.model]
  return [...new Set(chosen.flatMap((ref) => ref ?? []))]
}

/** What the tools of an agent may touch, and what is out of their reach: `directories` too, and what decides. */
const filesOf = (
  settings: Settings.Settings,
  deciding: ReadonlyArray<DecidingFile.DecidingFile>,
  directories: ReadonlyArray<string>,
  path: Path.Path
) => {
  const roots = [settings.workspace, ...settings.sandbox.writable]
  const protectedPaths = [
    ...roots.flatMap((directory) => [".assent", ".jaato"].map((name) => path.join(directory, name))),
    ...settings.brought.targets,
    ...directories,
    ...(settings.modelKeys === undefined ? [] : [settings.modelKeys]),
    ...placesOf(deciding.filter(({ isSecret }) => isSecret)),
    // Always, also where the workspace (such as a home directory) contains it.
    settings.stateDirectory,
    // Not when the workspace lies inside of it: then the whole workspace would be out of reach.
    ...(within(path, settings.configDirectory, settings.workspace) ? [] : [settings.configDirectory])
  ]
  // Elsewhere no tool comes to them, and their names mean nothing. An added directory may be named by a link.
  const reals = roots.flatMap((root) => [root, OwnFile.realDirectory(root) ?? root])
  const readOnly = placesOf(deciding).filter(
    (file) =>
      reals.some((root) => within(path, root, file) && root !== file) &&
      !protectedPaths.some((place) => within(path, place, file) && place !== file)
  )
  const installed = InstalledProgram.within(roots)
  return {
    root: settings.workspace,
    added: settings.sandbox.writable,
    startFiles: installed,
    deniedPaths: settings.policy.source.blacklist?.paths ?? [],
    // Looked up at each call: a person may make links while an agent works.
    protectedPaths: [
      ...protectedPaths,
      ...readOnly,
      ...WorkspaceSettings.linkable.map((name) => path.join(settings.workspace, name))
    ],
    // Those would be mounted, and a mount stays where it was made.
    sandbox: { ...settings.sandbox, hidden: protectedPaths, readOnly: [...readOnly, ...installed] }
  }
}

const placesOf = (deciding: ReadonlyArray<DecidingFile.DecidingFile>): ReadonlyArray<string> => [
  ...new Set(deciding.flatMap(({ file, places }) => [file, ...places]))
]

/** What the person says of models, one thing of it. */
const given = <A>(
  models: Settings.Settings["models"],
  pick: (model: Settings.Settings["models"][string]) => A | undefined
): Readonly<Record<string, A>> =>
  Object.fromEntries(
    Object.entries(models).flatMap(([ref, model]) => {
      const value = pick(model)
      return value === undefined ? [] : [[ref, value]]
    })
  )

const thinkingOf = (thinking: NonNullable<Settings.Settings["models"][string]["thinking"]>): Model.Thinking =>
  typeof thinking === "number" ? { budget: thinking } : { effort: thinking }

/** Of any model, a script too. */
const withWindow = (model: Model.Service, models: Settings.Settings["models"]): Model.Service => {
  const window = Object.hasOwn(models, model.id) ? models[model.id]?.context_window : undefined
  return window === undefined ? model : { ...model, contextWindow: window }
}

const remarks = (found: ReadonlyArray<ProfileLoader.Remark>): ReadonlyArray<string> =>
  found.map(({ file, message, path }) => TerminalText.oneLine(`${file}: ${path}: ${message}`))

const within = (path: Path.Path, directory: string, file: string): boolean =>
  !/^\.\.(?:[/\\]|$)/.test(path.relative(directory, file)) && !path.isAbsolute(path.relative(directory, file))

/** Lets tools reach what the runtime itself saved for them, and the directories that the person added. */
const readable = (policy: CompiledPolicy.Policy, roots: ReadonlyArray<string>): CompiledPolicy.Policy => {
  const scope = SanitizerOptions.scopeOf(policy.sanitize.pathScope)
  if (scope === undefined) return policy
  return {
    ...policy,
    sanitize: { ...policy.sanitize, pathScope: { ...scope, roots: [...(scope.roots ?? []), ...roots] } }
  }
}

const readScript = (ref: string) =>
  Effect.gen(function* () {
    const file = ref.slice("script:".length)
    const content = OwnFile.readGiven(file, maxScript)
    if (content._tag !== "Text") {
      const reason = content._tag === "Absent" ? "cannot be read: there is no such file" : content.reason
      return yield* ConfigurationInvalid.make(`The script ${JSON.stringify(file)} ${reason}.`)
    }
    const { text } = content
    const { ScriptFile, ScriptedModel } = yield* Effect.promise(async () => ({
      ScriptFile: await import("../model/ScriptFile.js"),
      ScriptedModel: await import("../model/ScriptedModel.js")
    }))
    const script = Either.mapLeft(ScriptFile.parse(text, file), (error) => ConfigurationInvalid.make(error.message))
    return ScriptedModel.make(yield* script, { id: ref })
  })

/** Bytes. A script that was made from a recorded session may be long. */
const maxScript = 50_000_000

/** A command goes on without a password; a run does not halt for it. */
const nobodyForPasswords =
  "No person can be asked for a password. Use a key or a token, or let the person run Assent at a terminal."

const role =
  "You are an agent that works in a directory of the person you help. Use the tools to look before you act, make small " +
  "changes, and check what you did. When something is unclear and only the person can know, ask with " +
  "request_clarification. When you are done, say briefly what you did."

const roleWithoutWorkspace =
  "You are an agent that helps a person. Use the tools to look before you act. When something is unclear and only the person " +
  "can know, ask with request_clarification. When you are done, say briefly what you did."

/** A session that goes on keeps its mode, unless the command line says another; `allow` is never kept. */
const modeOf = (
  { isModeGiven, mode }: Settings.Settings,
  persistence: Agent.Options["persistence"]
): Agent.Options["mode"] => {
  const before = persistence?.restored?.permissions
  const isKept = before?.plan === true || (before?.default !== undefined && before.default !== "allow")
  return isKept && !isModeGiven ? undefined : mode
}

/** The limits that are counted in tokens and money. */
const spending = ({ limits: { maxCost, maxTokens, maxTreeTokens } }: Settings.Settings): TokenLedger.Limits => ({
  sessionTokens: maxTokens,
  treeTokens: maxTreeTokens,
  runCost: maxCost?.run,
  treeCost: maxCost?.session,
  dayCost: maxCost?.day
})

/** The limits of one session. The others bound the tree, or are counted in tokens. */
const ownLimits = ({ limits }: Settings.Settings) =>
  Struct.pick(limits, "maxSteps", "parallelTools", "callsPerStep", "identicalErrors", "modelSilence", "retryWithin")

const baseInstructions = (settings: Settings.Settings): string =>
  [
    [
      `The workspace is ${settings.workspace}. Paths are relative to it.`,
      ...settings.sandbox.writable.map((directory) => `${directory} was added to it.`)
    ].join(" "),
    settings.instructions
  ]
    .filter((part) => part !== "")
    .join("\n\n")

/**
 * Options of a root agent that has a profile. The profile's own approvals are for subagents only. Plugins that are not
 * there were told when it was read.
 */
const ofProfile = (profile: SubagentProfile.SubagentProfile | undefined, tools: ToolRegistry.Service): Agent.Options =>
  profile === undefined
    ? {}
    : {
        profile: profile.name,
        tools: profile.plugins?.filter(
          (name) => ToolRegistry.namesIn(tools).has(name) || ToolRegistry.isOfServer(tools, name)
        ),
        limits: { maxSteps: profile.maxTurns },
        compaction: profile.gc,
        settings: profile.pluginConfigs
      }
