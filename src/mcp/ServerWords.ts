/** What happened to a tool server, in words for a person. */
import type { ServerState } from "../tool/ToolRegistry.js"

/** Nothing for a server that was closed: its session has ended. */
export const serverWords = ({ reason, server, state, tools = [] }: ServerState): string | undefined => {
  switch (state) {
    case "starting":
      return reason === undefined
        ? `The tool server ${server} is starting.`
        : `The tool server ${server} ${reason}. The agent goes on without its tools.`
    case "closed":
      return undefined
    case "ready": {
      const offered = `The tool server ${server} has ${tools.length} ${tools.length === 1 ? "tool" : "tools"}.`
      return reason === undefined ? offered : `${offered} ${reason}`
    }
    case "reconnecting":
      return `The tool server ${server} ${reason ?? "is gone"}. It is being connected again.`
    case "failed":
      return `The tool server ${server} ${reason ?? "is gone"}. Its tools are missing.`
  }
}

/** Whether the tools of the server are missing longer than a model call waits for them. */
export const isMissing = ({ reason, state }: ServerState): boolean =>
  state === "failed" || (state === "starting" && reason !== undefined)
