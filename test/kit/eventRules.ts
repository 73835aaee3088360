/** Rules for the events of one agent: everything that begins ends once, in order, inside its turn. */
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import { settling } from "./Recorder.js"

/** The same for a tree: the rules hold for each agent, and children live within their parents' lives. */
export const familyViolations = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  const agents = new Map<string, Array<AgentEvent>>()
  const alive = new Set<string>()
  const paths = new Set<string>()
  for (const event of events) {
    if (event._tag === "AgentCreated") {
      if (alive.has(event.sessionId) || paths.has(event.agent)) wrong.push(`${event.agent} was made twice`)
      if (event.parentSessionId !== undefined && !alive.has(event.parentSessionId))
        wrong.push(`${event.agent} is an orphan`)
      alive.add(event.sessionId)
      paths.add(event.agent)
    } else if (!alive.has(event.sessionId) && event._tag !== "LateAnswer") {
      wrong.push(`${event._tag} of ${event.agent}, which is not alive`)
    }
    if (event._tag === "AgentStatusChanged" && event.status === "done") alive.delete(event.sessionId)
    const own = agents.get(event.sessionId) ?? []
    agents.set(event.sessionId, own)
    own.push(event)
  }
  for (const own of agents.values()) wrong.push(...violations(own).map((problem) => `${own[0]?.agent}: ${problem}`))
  return wrong
}

const refusals: ReadonlySet<string> = new Set(["denied", "invalid", "cancelled"])

/** Sentences about what is wrong; none for a complete recording. */
export const violations = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const wrong: Array<string> = []
  let turn: string | undefined
  let step: number | undefined
  let block: string | undefined
  /** Calls that the model of the open step writes, by the names it gave them. */
  const writes = new Map<string, string>()
  const calls = new Map<string, { started: boolean; ended: boolean; resolved: "granted" | "refused" | undefined }>()
  const requests = new Map<string, boolean>()
  const turns = new Set<string>()
  /** Told inside the running turn and not read yet. */
  const unread = new Set<string>()

  for (const [index, event] of events.entries()) {
    const complain = (problem: string) => wrong.push(`${index} ${event._tag}: ${problem}`)
    // What a person commands, and an answer that comes too late, belong to no turn.
    const isOutside = event._tag === "PermissionStatusChanged" || event._tag === "LateAnswer"
    const belongs = event.correlationId === turn || (isOutside && event.correlationId === undefined)
    if (turn !== undefined && !belongs) complain(`is of ${event.correlationId}, inside ${turn}`)
    if (turn === undefined && event.correlationId !== undefined && event._tag !== "TurnStarted") {
      complain("is of a turn that is not running")
    }
    const call = "toolCallId" in event && event.toolCallId !== undefined ? calls.get(event.toolCallId) : undefined
    switch (event._tag) {
      case "TurnStarted":
        if (turn !== undefined) complain("another turn runs")
        if (event.correlationId === undefined || turns.has(event.correlationId)) complain("has no id of its own")
        turn = event.correlationId
        turns.add(turn ?? "")
        break
      case "TurnEnded":
        if (turn === undefined) complain("no turn runs")
        if (step !== undefined || block !== undefined) complain("a model call is open")
        for (const [id, { ended }] of calls) if (!ended) complain(`call ${id} is open`)
        for (const [id, settled] of requests) if (!settled) complain(`request ${id} is open`)
        // A turn that ends on its own has read everything that was said in it.
        if (event.reason === "completed" && unread.size > 0) complain(`${unread.size} interjections were not read`)
        unread.clear()
        turn = undefined
        break
      case "UserInterjected":
        if (turn !== undefined) unread.add(event.messageId)
        break
      case "InterjectionAcknowledged":
        unread.delete(event.messageId)
        break
      case "ModelCallStarted":
        if (turn === undefined || step !== undefined) complain("out of place")
        step = event.step
        writes.clear()
        break
      case "ModelRetried":
        writes.clear()
        break
      case "ToolArgumentsStarted":
        if (step === undefined || block !== undefined || calls.has(event.toolCallId) || writes.has(event.toolCallId))
          complain("out of place")
        writes.set(event.toolCallId, event.tool)
        break
      case "ToolArgumentsDelta":
        if (step === undefined || !writes.has(event.toolCallId)) complain("belongs to no call that has a name")
        break
      case "ModelCallEnded":
        if (step !== event.step) complain(`ends step ${event.step}, but ${step} is open`)
        if (block !== undefined) complain(`a block of ${block} is open`)
        step = undefined
        break
      case "BlockStarted":
        if (step === undefined || block !== undefined) complain("out of place")
        block = event.block
        break
      case "BlockEnded":
        if (block !== event.block) complain(`ends ${event.block}, but ${block} is open`)
        block = undefined
        break
      case "TextDelta":
        if (block !== "text") complain("outside a block of text")
        break
      case "ThinkingDelta":
        if (block !== "thinking") complain("outside a block of thinking")
        break
      case "ToolCallProposed":
        if (calls.has(event.toolCallId)) complain("proposed before")
        if ((writes.get(event.toolCallId) ?? event.tool) !== event.tool)
          complain("had another name while it was written")
        calls.set(event.toolCallId, { started: false, ended: false, resolved: undefined })
        break
      case "PermissionResolved":
        if (call === undefined || call.ended) complain("no such call is open")
        else {
          if (call.resolved !== undefined) complain("resolved before")
          call.resolved = event.granted ? "granted" : "refused"
        }
        // The request must have been published before.
        if (event.requestId !== undefined && !requests.has(event.requestId))
          complain(`nobody raised ${event.requestId}`)
        break
      case "ToolCallStarted":
        if (call === undefined || call.started || call.ended) complain("no such call waits")
        else {
          if (call.resolved !== "granted") complain("was not allowed")
          call.started = true
        }
        break
      case "ToolOutput":
        if (call === undefined || !call.started || call.ended) complain("no such call runs")
        break
      case "ToolCallEnded":
        if (call === undefined || call.ended) complain("no such call is open")
        else {
          if (event.outcome === "succeeded" && !call.started) complain("succeeded without a start")
          if (call.resolved === "granted" && event.outcome === "denied") complain("was allowed, and told as denied")
          if (call.resolved === "refused" && !refusals.has(event.outcome))
            complain(`was refused, and told as ${event.outcome}`)
          if (call.resolved === undefined && event.outcome === "denied") complain("denied by nobody")
          if ((event.duration !== undefined) !== call.started && event.outcome !== "cancelled")
            complain("has the wrong duration")
          call.ended = true
        }
        break
      case "InteractionRequested":
        if (requests.has(event.requestId)) complain("raised before")
        if (event.toolCallId !== undefined && (call === undefined || call.ended)) complain("no such call is open")
        requests.set(event.requestId, false)
        break
      default:
        if (settling.has(event._tag) && "requestId" in event) {
          if (requests.get(event.requestId) !== false) complain("no such request is open")
          requests.set(event.requestId, true)
        }
    }
  }
  if (turn !== undefined) wrong.push(`turn ${turn} has no end`)
  return wrong
}
