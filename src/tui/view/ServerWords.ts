/** What happened to a tool server, in words for a person. */
import type { EventOf } from "../../event/AgentEvent.js"
import * as CallEnd from "./CallEnd.js"

/** Nothing while a server starts: what comes of that is shown. */
export const serverWords = ({
  reason,
  server,
  state,
  tools = []
}: Pick<EventOf<"McpServerChanged">, "reason" | "server" | "state" | "tools">): string | undefined => {
  switch (state) {
    case "starting":
    case "closed":
      return undefined
    case "ready": {
      const offered = `The tool server ${server} has ${CallEnd.count(tools.length, "tool")}.`
      return reason === undefined ? offered : `${offered} ${reason}`
    }
    case "reconnecting":
      return `The tool server ${server} ${reason ?? "is gone"}. It is being connected again.`
    case "failed":
      return `The tool server ${server} ${reason ?? "is gone"}. Its tools are missing.`
  }
}
