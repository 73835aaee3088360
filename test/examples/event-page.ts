/** A page that is made of events, as a browser shows it: see `event-server.ts`. */
import type { AgentEvent } from "assent"

/** What the page shows. */
export interface Page {
  /** What was said, line by line. */
  readonly lines: ReadonlyArray<string>
  /** What the running answer has said so far. */
  readonly answer: string
  /** Tool calls by id. */
  readonly calls: Readonly<Record<string, string>>
  /** Open questions by id. */
  readonly questions: Readonly<Record<string, string>>
}

export const empty: Page = { lines: [], answer: "", calls: {}, questions: {} }

/** The page after an event. */
export const next = (page: Page, event: AgentEvent.AgentEvent): Page => {
  switch (event._tag) {
    case "TurnStarted":
      return { ...page, lines: [...page.lines, `> ${event.input}`] }
    // What the open call had said before is void.
    case "ModelCallStarted":
    case "ModelRetried":
      return { ...page, answer: "" }
    case "TextDelta":
      return { ...page, answer: page.answer + event.text }
    case "ModelCallEnded":
      return page.answer === "" ? page : { ...page, lines: [...page.lines, page.answer], answer: "" }
    case "ToolCallProposed":
      return { ...page, calls: { ...page.calls, [event.toolCallId]: `${event.tool} ${event.summary}` } }
    case "ToolCallEnded":
      return { ...page, calls: { ...page.calls, [event.toolCallId]: `${event.tool}: ${event.summary}` } }
    case "InteractionRequested":
      return { ...page, questions: { ...page.questions, [event.requestId]: event.summary } }
    case "InteractionAnswered":
    case "InteractionCancelled":
    case "InteractionTimedOut":
    case "InteractionUnavailable": {
      const { [event.requestId]: _, ...questions } = page.questions
      return { ...page, questions }
    }
    default:
      return page
  }
}

/**
 * Shows the page after each event:
 *
 * ```
 * const source = new EventSource("/events")
 * Object.assign(source, follow(render))
 * ```
 */
export const follow = (show: (page: Page) => void) => {
  let page = empty
  /** The page at the last position, which the server is sent when the connection is there again. */
  let stored = empty
  return {
    onopen: () => {
      // What came behind that position is sent again.
      page = stored
    },
    onmessage: ({ data }: { readonly data: string }) => {
      const event = JSON.parse(data) as AgentEvent.AgentEvent
      page = next(page, event)
      if (event.position !== undefined) stored = page
      show(page)
    }
  }
}
