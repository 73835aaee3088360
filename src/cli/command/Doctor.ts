/** `assent doctor`: what works here, and what to do about what does not. It only looks: it makes nothing, and shows no key. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { accessSync, constants, existsSync, statfsSync } from "node:fs"
import { dirname } from "node:path"
import * as Display from "../../tui/terminal/Display.js"
import type * as Model from "../../model/Model.js"
import { providers } from "../../model/ProviderName.js"
import * as Compaction from "../../turn/Compaction.js"
import type * as Arguments from "../config/Arguments.js"
import * as Trust from "../../host/local/Trust.js"
import * as ModelList from "../../host/ModelList.js"
import * as Settings from "../../host/Settings.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Launch from "../../host/Launch.js"
import * as Output from "../../tui/process/Output.js"
import * as Screen from "../../tui/process/Screen.js"
import * as CallEnd from "../../tui/view/CallEnd.js"
import * as Version from "../../host/Version.js"

/** One thing that was looked at. */
interface Finding {
  /** `off`: it is not there, and need not be. */
  readonly state: "works" | "off" | "broken"
  readonly what: string
  readonly detail: string
}

/** Exit code 1 when something is broken. */
export const run = ({ flags }: Arguments.Invocation) =>
  Effect.gen(function* () {
    const loaded = yield* Effect.either(
      Effect.map(Settings.load(flags, { looks: true }), (settings) => Settings.addressed(settings, flags))
    )
    const findings = [
      works("program", `assent ${Version.version}, Node ${process.version}, ${process.platform} ${process.arch}`),
      yield* terminal,
      ...(Either.isLeft(loaded)
        ? [broken("settings", loaded.left.message)]
        : [works("settings", placesOf(loaded.right)), ...(yield* ofSettings(flags, loaded.right))])
    ]
    const color = yield* Screen.wantsColor("stdout")
    const style = Display.style(color)
    const marks = { works: style.green("✓"), off: style.dim("–"), broken: style.red("✗") }
    const width = Math.max(...findings.map(({ what }) => what.length))
    const lines = findings.map(
      ({ detail, state, what }) =>
        `${marks[state]} ${what.padEnd(width)}  ${Display.reveal(detail).replaceAll("\n", " ")}`
    )
    yield* Output.say("stdout", `${lines.join("\n")}\n`, color)
    return findings.some(({ state }) => state === "broken") ? ExitCode.failed : ExitCode.completed
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const works = (what: string, detail: string): Finding => ({ state: "works", what, detail })
const off = (what: string, detail: string): Finding => ({ state: "off", what, detail })
const broken = (what: string, detail: string): Finding => ({ state: "broken", what, detail })

const terminal = Effect.map(Screen.wantsColor("stdout"), (color): Finding => {
  const kind = process.env["TERM"] ?? "unknown"
  if (!Screen.isInteractive("stdout"))
    return off("terminal", "input or output is not a terminal; Assent prints plain lines")
  if (!Screen.canDraw("stdout")) return works("terminal", `${kind}: lines, without a screen`)
  return works("terminal", `${kind}, ${Output.columns("stdout") ?? "?"} columns, ${color ? "with" : "without"} colours`)
})

const placesOf = ({ configDirectory, stateDirectory, workspace }: Settings.Settings): string =>
  `workspace ${workspace}, configuration ${configDirectory}, state ${stateDirectory}`

const ofSettings = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const model = yield* Effect.either(Launch.resolveModel(settings, settings.model))
    const policy = yield* Effect.either(Launch.unknownTools(settings))
    const profiles = yield* Effect.either(Launch.profiles(settings))
    const { describe } = yield* Effect.promise(() => import("../../host/SandboxSettings.js"))
    const sandbox = yield* describe(settings.workspace, settings.sandbox)
    return [
      yield* Either.match(model, {
        onLeft: ({ message }) => Effect.succeed(broken("model", message)),
        onRight: ({ id }) => modelOf(settings, id)
      }),
      ...Either.match(model, { onLeft: () => [], onRight: contextOf }),
      ...Either.match(profiles, {
        onLeft: () => Arr.fromNullable(Launch.unmetOf(settings, settings.model)),
        onRight: (known) => Launch.unmet(settings, known)
      }).map((sentence) => off("thinking", sentence)),
      keysOf(settings),
      serversOf(settings),
      proxyOf(settings),
      ...(yield* trustOf(settings)),
      sandbox.includes(", by ")
        ? works("sandbox", sandbox.replace(/^sandbox: /, ""))
        : settings.sandbox.mode === "require"
          ? broken("sandbox", sandbox.replace(/^sandbox: /, ""))
          : off("sandbox", sandbox.replace(/^sandbox: /, "")),
      yield* storeOf(flags, settings),
      Either.match(policy, {
        onLeft: ({ message }) => broken("permissions", message),
        onRight: (remarks) => works("permissions", [`default ${settings.policy.defaultPolicy}`, ...remarks].join("; "))
      }),
      Either.match(profiles, {
        onLeft: ({ message }) => broken("profiles", message),
        onRight: ({ all, remarks }) => works("profiles", [[...all.keys()].join(", "), ...remarks].join("; "))
      })
    ]
  })

/** A vendor is not asked: that would cost, and say who looks. */
const modelOf = (settings: Settings.Settings, id: string): Effect.Effect<Finding> =>
  id.startsWith("offline")
    ? Effect.succeed(off("model", `${id}, which is not a language model; choose one with --model PROVIDER/MODEL`))
    : Effect.map(ModelList.atServerOf(settings, id), (server) => {
        if (server === undefined) return works("model", id)
        const { models, url } = server
        if (models === undefined)
          return broken("model", `${id}: no server answers at ${url}. Start the server, or check the base URL.`)
        // Ollama leaves its usual tag out.
        if (models.length === 0 || models.includes(id) || models.includes(`${id}:latest`))
          return works("model", `${id}, by ${url}`)
        return broken("model", `${id}: ${url} has no such model, but ${models.slice(0, shownModels).join(", ")}.`)
      })

const shownModels = 5

/** How much a language model takes in. */
const contextOf = ({ contextWindow, id }: Model.Service): ReadonlyArray<Finding> => {
  if (contextWindow !== undefined) return [works("context", CallEnd.count(contextWindow, "token"))]
  if (id.startsWith("ollama/"))
    return [off("context", "Ollama reports it with the first reply; OLLAMA_CONTEXT_LENGTH sets it")]
  const isUnknown = id.includes("/") && !id.startsWith("offline") && !id.startsWith("script:")
  const assumed = CallEnd.count(Compaction.defaultWindow, "token")
  return isUnknown ? [off("context", `not known, ${assumed} are assumed; "models" in config.json names it`)] : []
}

/** Which providers have a key; never what it is. */
const keysOf = ({ keys }: Settings.Settings): Finding => {
  const found = providers.filter((name) => {
    const key = keys[name]
    return key !== undefined && Redacted.value(key) !== ""
  })
  return found.length > 0
    ? works("keys", `there is one for ${found.join(", ")}`)
    : off("keys", `none; ${Settings.secretNames().slice(0, 5).join(", ")} hold them. Ollama needs none`)
}

/** No server is started: that is what `assent mcp check` does. */
const serversOf = ({ servers }: Settings.Settings): Finding => {
  const names = Object.keys(servers)
  return names.length === 0
    ? off("tool servers", "none; mcp_servers in config.json names them")
    : works("tool servers", `${names.join(", ")}; assent mcp check NAME starts one`)
}

const proxyOf = ({ proxy: { described, isUsable } }: Settings.Settings): Finding =>
  described.length === 0
    ? off("proxy", "none; HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name one")
    : (isUsable ? works : broken)("proxy", described.join("; "))

/** Whether what the workspace's own files allow counts; nothing where it has none. */
const trustOf = (settings: Settings.Settings) =>
  Effect.map(Trust.isTrusted(settings, settings.brought), (isTrusted): ReadonlyArray<Finding> => {
    if (settings.brought.files.size === 0) return []
    if (isTrusted) return [works("trust", "this workspace is trusted: its files may allow things")]
    if (settings.trusted)
      return [
        off("trust", "shown as if this workspace were trusted, and it is not: assent chat --trust, or run, trusts it")
      ]
    return [off("trust", "this workspace is not trusted: its files may only deny")]
  }).pipe(Effect.catchAll((error) => Effect.succeed([broken("trust", error.message)])))

const storeOf = (flags: Arguments.Flags, settings: Settings.Settings) =>
  Effect.gen(function* () {
    const place = yield* StoreLocation.of(flags, settings)
    if (place === StoreLocation.memory) return off("store", "in memory: nothing is stored")
    const size = yield* StoreLocation.look(place)
    if (size !== undefined) return works("store", `${place}, ${size}`)
    return isWritable(dirname(String(place)))
      ? works("store", `${place}, which the first session makes`)
      : broken(
          "store",
          `${place} cannot be created: you may not write there. Set ASSENT_STATE_DIR to another directory.`
        )
  }).pipe(Effect.catchAll((error) => Effect.succeed(broken("store", error.message))))

/** Of a directory that is not there yet, the one above counts. */
const isWritable = (directory: string): boolean => {
  if (!existsSync(directory)) return directory !== dirname(directory) && isWritable(dirname(directory))
  try {
    accessSync(directory, constants.W_OK | constants.X_OK)
    return !ofKernel.has(statfsSync(directory).type)
  } catch {
    return false
  }
}

/** `/proc` and `/sys`: whoever is root has the right to write there, and still makes nothing. */
const ofKernel: ReadonlySet<number> = new Set([0x9fa0, 0x62656572])
