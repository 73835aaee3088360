/** Events whose words are harmless for a terminal: see `TerminalText`. A sequence may be split between two of them. */
import type { SessionId } from "../../core/Id.js"
import type { AgentEvent } from "../../event/AgentEvent.js"
import * as TerminalText from "../../core/TerminalText.js"

/** Takes the next event; yields it with what can be shown of its words now, behind what was held back until then. */
export type Cleaned = (event: AgentEvent) => ReadonlyArray<AgentEvent>

export const make = (): Cleaned => {
  const open = new Map<SessionId, TerminalText.Sanitizer>()
  return (event) => {
    switch (event._tag) {
      case "TextDelta":
      case "ThinkingDelta": {
        const words = open.get(event.sessionId) ?? TerminalText.sanitizer()
        open.set(event.sessionId, words)
        const text = words.push(event.text)
        return [text === event.text ? event : { ...event, text }]
      }
      case "BlockEnded": {
        const rest = open.get(event.sessionId)?.end() ?? ""
        open.delete(event.sessionId)
        const { block, ...where } = event
        const said = { ...where, _tag: block === "text" ? "TextDelta" : "ThinkingDelta", text: rest } as const
        return rest === "" ? [event] : [said, event]
      }
      default:
        return [event]
    }
  }
}
