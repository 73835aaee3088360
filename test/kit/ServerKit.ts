/** Tool servers as programs, and agents that use them. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as McpServer from "../../src/mcp/McpServer.js"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import type { Policy } from "../../src/permission/CompiledPolicy.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import type * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as Wait from "./Wait.js"

const program = (name: string) => fileURLToPath(new URL(`servers/${name}`, import.meta.url))

/** The server of 2025; what happens to it is written to the file `log`. */
export const legacySettings = (log?: string): McpServer.Settings => ({
  name: "legacy",
  command: process.execPath,
  args: [program("legacy.mjs"), ...(log === undefined ? [] : [log])]
})

/** The server of 2026. It writes each deployment to the file `log`. */
export const modernSettings = (log: string): McpServer.Settings => ({
  name: "modern",
  command: process.execPath,
  args: [program("modern.mjs"), log]
})

/** Started, and not waited for. */
export const begun = (settings: McpServer.Settings, options?: McpServer.Options) => McpServer.make(settings, options)

/** Started, and ready or failed. */
export const started = (settings: McpServer.Settings, options?: McpServer.Options) =>
  Effect.tap(McpServer.make(settings, options), ({ settled }) => settled)

export const legacy = (log?: string, more: Partial<McpServer.Settings> = {}, options?: McpServer.Options) =>
  started({ ...legacySettings(log), ...more }, options)

/** What a person was asked, in a few words. */
export const worded = ({ interaction, origin }: InteractionRequest): string => {
  const by = origin === undefined ? "" : ` of ${origin}`
  switch (interaction._tag) {
    case "Approve":
      return `Approve ${interaction.tool}${by}`
    case "Elicit":
      return `Elicit ${interaction.title}${by}`
    case "Confirm":
      return `Confirm ${interaction.prompt}${by}`
    default:
      return `${interaction._tag}${by}`
  }
}

export interface Play {
  readonly script: ReadonlyArray<ScriptedModel.Step> | ScriptedModel.Script
  readonly person?: TestInteractor.Script
  readonly policy?: Policy
}

/** Ends of calls as `outcome result`, and dialogs in words, of one run of an agent with this server. */
export const played = (
  server: McpServer.McpServer,
  { person = () => "y", policy, script }: Play,
  /** Cancels the run as soon as its events are so. */
  cancelAt?: (events: ReadonlyArray<AgentEvent>) => boolean
) =>
  Effect.gen(function* () {
    const { agent, events, person } = yield* TestAgent.start()
    if (cancelAt !== undefined)
      yield* Effect.forkScoped(Effect.zipRight(Wait.until(events, cancelAt), agent.cancel("user")))
    const end = yield* agent.run("go")
    const all = yield* events
    return {
      end,
      events: all,
      results: resultsOf(all),
      requests: yield* person.shown,
      shown: (yield* person.shown).map(worded)
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(TestAgent.layer({ toolkit: Toolkit.empty, servers: [server], script, person, policy }))
  )

export const resultsOf = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> =>
  events.flatMap((event) =>
    event._tag === "ToolCallEnded"
      ? [`${event.outcome} ${typeof event.result === "string" ? event.result : JSON.stringify(event.result)}`]
      : []
  )
