/** Tool servers of the settings. The module is loaded only when there is one. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import type * as Redaction from "../core/Redaction.js"
import type { ServerSettings } from "../tool/ServerSettings.js"
import * as AllowedDefinitions from "./local/AllowedDefinitions.js"
import * as ServerTokens from "./local/ServerTokens.js"
import * as StartedFiles from "./local/StartedFiles.js"
import * as McpServer from "../mcp/McpServer.js"
import * as ServerPrompts from "../mcp/ServerPrompts.js"
import { isMissing, serverWords } from "../mcp/ServerWords.js"
import type * as CompiledPolicy from "../permission/CompiledPolicy.js"
import type * as HostSandbox from "../sandbox/HostSandbox.js"
import * as HttpProxy from "./HttpProxy.js"
import { make as invalid, type ConfigurationInvalid } from "./local/ConfigurationInvalid.js"
import * as Settings from "./Settings.js"

type Files = WorkspaceRoot.Options & { readonly sandbox: Omit<HostSandbox.Options, "root"> }

/** What a server gets of these settings. `notify` hears of files by which it starts and that commands can change. */
export const optionsOf = (
  settings: Settings.Settings,
  [name, server]: readonly [name: string, ServerSettings],
  files: Files,
  redactor: Pick<Redaction.Redactor, "declare"> | undefined,
  notify: (sentence: string) => void
) => ({
  credentials: ServerTokens.of(settings.configDirectory, server.url ?? ""),
  workspace: settings.workspace,
  added: files.added,
  // Their private home is not that of commands, which would choose what a server loads from it.
  sandbox: { ...files.sandbox, root: settings.workspace, directory: `${files.sandbox.directory}-servers` },
  admit: Effect.forEach(
    StartedFiles.ofServer(name, server, { workspace: settings.workspace, writable: files.added ?? [] }),
    (program) => StartedFiles.admit(settings, program, notify),
    { discard: true }
  ),
  passedVariables: settings.commandVariables,
  withheldVariables: Settings.secretNames(),
  fetch: HttpProxy.fetchOf(settings.proxy),
  wait: settings.serverStart.wait,
  declareSecret: redactor?.declare
})

/**
 * The servers of the settings, started in the background, their prompts, and the policy that knows what was allowed of their
 * tools. If the settings require the servers, they are waited for, and a missing one is a failure.
 */
export const serve = (
  settings: Settings.Settings,
  files: Files,
  redactor: Redaction.Redactor,
  policy: CompiledPolicy.Policy,
  notify: (sentence: string) => void
): Effect.Effect<
  {
    readonly servers: ReadonlyArray<McpServer.McpServer>
    readonly policy: CompiledPolicy.Policy
    readonly prompts: ServerPrompts.ServerPrompts
  },
  ConfigurationInvalid,
  FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor | Scope.Scope
> =>
  Effect.map(
    Effect.tap(
      Effect.forEach(Object.entries(settings.servers), ([name, server]) =>
        McpServer.make({ name, ...server }, optionsOf(settings, [name, server], files, redactor, notify))
      ),
      (servers) => (settings.serverStart.required ? allReady(servers) : Effect.void)
    ),
    (servers) => ({
      servers,
      prompts: ServerPrompts.make(servers),
      policy: { ...policy, definitions: AllowedDefinitions.open(settings, notify) }
    })
  )

/** Passes sentences about servers whose tools are missing to the person of this process, until the scope closes. */
export const follow = (
  servers: ReadonlyArray<McpServer.McpServer>,
  notify: (sentence: string) => void
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.forEach(
    servers,
    (server) => {
      const tell = (state: ReturnType<typeof server.state>) => {
        const words = isMissing(state) ? serverWords(state) : undefined
        if (words !== undefined) notify(words)
      }
      tell(server.state())
      const leave = server.watch(tell)
      return Effect.addFinalizer(() => Effect.sync(leave))
    },
    { discard: true }
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const allReady = (servers: ReadonlyArray<McpServer.McpServer>): Effect.Effect<void, ConfigurationInvalid> =>
  Effect.gen(function* () {
    yield* Effect.forEach(servers, (server) => server.arrival?.() ?? Effect.void, {
      concurrency: "unbounded",
      discard: true
    })
    const missing = servers.map((server) => server.state()).filter(({ state }) => state !== "ready")
    if (missing.length === 0) return
    const words = missing.map(({ reason = "is not ready", server }) => `The tool server ${server} ${reason}.`)
    return yield* invalid(
      [...words, 'The setting "mcp.required" wants each tool server. Run: assent mcp check NAME'].join(" ")
    )
  })
