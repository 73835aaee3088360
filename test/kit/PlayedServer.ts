/** A tool server without a process: a test says which tools it has now. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as McpServer from "../../src/mcp/McpServer.js"
import * as ServerTools from "../../src/mcp/ServerTools.js"
import type { Known, Written } from "../../src/tool/ToolDefinition.js"
import type * as ToolRegistry from "../../src/tool/ToolRegistry.js"

export interface PlayedServer extends McpServer.McpServer {
  /** Its tools from now on, by name, with their descriptions. */
  readonly change: (tools: Readonly<Record<string, string>>) => void
  /** What ran: `tool: description`. */
  readonly ran: ReadonlyArray<string>
}

/** A prompt that a test offers. */
export interface Prompt {
  readonly parameters?: McpServer.Prompt["parameters"]
  readonly text: (args: Readonly<Record<string, string>>) => string
}

/** The same server with prompts; `offer` says which it has from now on. */
export const offering = (
  server: PlayedServer,
  prompts: Readonly<Record<string, Prompt>>
): PlayedServer & { readonly offer: (prompts: Readonly<Record<string, Prompt>>) => void } => {
  let now = prompts
  return {
    ...server,
    prompts: Effect.sync(() =>
      Object.entries(now).map(([name, { parameters = [] }]) => ({ name, description: "", parameters }))
    ),
    prompt: (name, args) =>
      Effect.sync(() => ServerTools.textOf(server.name, [{ type: "text", text: now[name]?.text(args) }], undefined)),
    offer: (next) => {
      now = next
      server.change({})
    }
  }
}

export const make = (name: string, tools: Readonly<Record<string, string>>): PlayedServer => {
  const ran: Array<string> = []
  const listeners = new Set<(state: ToolRegistry.ServerState) => void>()
  const entriesOf = (all: Readonly<Record<string, string>>) =>
    Either.getOrThrow(
      ServerTools.entries(
        name,
        Object.entries(all).map(([tool, description]) => ({
          name: tool,
          description,
          schema: { type: "object" },
          destructive: false,
          isTask: false
        })),
        undefined,
        (tool) =>
          Effect.sync(() => {
            ran.push(`${tool.name}: ${tool.description}`)
            return "ok"
          })
      )
    ).entries
  let entries = entriesOf(tools)
  const state = (): ToolRegistry.ServerState => ({
    server: name,
    state: "ready",
    tools: entries.map(({ name }) => name)
  })
  return {
    name,
    group: ServerTools.group(name),
    entries: () => entries,
    gone: (tool) => (tool.startsWith(ServerTools.prefix(name)) ? `There is no tool ${tool}.` : undefined),
    state,
    watch: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    settled: Effect.sync(state),
    about: () => undefined,
    join: () => () => undefined,
    prompts: Effect.succeed([]),
    prompt: () => Effect.fail("There is no prompt."),
    ran,
    change: (next) => {
      entries = entriesOf(next)
      for (const listener of listeners) listener(state())
    }
  }
}

/** What a person allowed in earlier sessions: these descriptions of the tools of a server. */
export const allowedBefore = (
  server: string,
  tools: Readonly<Record<string, string>>
): Known & { readonly noted: ReadonlyArray<Written> } => {
  const noted: Array<Written> = []
  const known = new Map<string, Written>(
    make(server, tools)
      .entries()
      .flatMap(({ definition, name }) => (definition === undefined ? [] : [[name, definition]]))
  )
  return {
    noted,
    get: (name) => known.get(name),
    note: (definition) => {
      noted.push(definition)
      known.set(definition.name, definition)
    }
  }
}
