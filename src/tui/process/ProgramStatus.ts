/**
 * What the agent is doing, for a program that watches the terminal: the program status protocol, OSC 7501. One record, whose
 * state is `working`, `blocked`, `done`, `error` or `idle`. It holds our own words only.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../event/AgentEvent.js"
import type * as EventBus from "../../event/EventBus.js"
import type * as Agent from "../../runtime/Agent.js"
import * as Output from "./Output.js"
import { isDrawable } from "./Tty.js"

/** What is known of a tree of agents. */
export interface Known {
  /** Open questions with their kinds, oldest first. */
  readonly open: ReadonlyMap<string, string>
  /** Sessions in a turn. */
  readonly turns: ReadonlySet<string>
  /** How the root's last turn ended. */
  readonly last: "done" | "error" | "idle"
}

export const nothing: Known = { open: new Map(), turns: new Set(), last: "idle" }

/** What is known after an event. */
export const after = (known: Known, event: AgentEvent): Known => {
  switch (event._tag) {
    case "TurnStarted":
      return { ...known, turns: new Set([...known.turns, event.sessionId]) }
    case "TurnEnded": {
      const turns = new Set([...known.turns].filter((one) => one !== event.sessionId))
      if (event.agent.includes("/")) return { ...known, turns }
      const { reason } = event
      return { ...known, turns, last: reason === "completed" ? "done" : reason === "cancelled" ? "idle" : "error" }
    }
    case "InteractionRequested":
      return { ...known, open: new Map([...known.open, [event.requestId, event.kind]]) }
    case "InteractionAnswered":
    case "InteractionCancelled":
    case "InteractionTimedOut":
    case "InteractionUnavailable":
      return { ...known, open: new Map([...known.open].filter(([id]) => id !== event.requestId)) }
    default:
      return known
  }
}

/** The state as the protocol has it. A question goes before work that goes on beside it. */
export const stateOf = ({ last, open, turns }: Known): string => {
  const [kind] = open.values()
  if (kind !== undefined) return `state=blocked:kind=${blocking(kind)}`
  return `state=${turns.size > 0 ? "working" : last}`
}

/**
 * Reports on this output, if that is a terminal. What it yields follows an agent that is started in the same scope, to its
 * end.
 */
export const follow = (
  to: Output.Name
): Effect.Effect<(agent: Pick<Agent.Agent, "subscribe">) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (!isDrawable(to)) return () => Effect.void
    const scope = yield* Scope.make()
    let following: Fiber.Fiber<void> | undefined
    // Added before the agent's, so that it runs when the agent has ended.
    yield* Effect.addFinalizer(() => {
      const ended = following === undefined ? Effect.void : Fiber.await(following)
      return Effect.zipRight(Effect.timeoutOption(Effect.interruptible(ended), patience), Scope.close(scope, Exit.void))
    })
    return (agent) =>
      Effect.flatMap(Scope.extend(agent.subscribe(), scope), (events) =>
        Effect.map(Effect.forkDaemon(reporting(to, events)), (fiber) => void (following = fiber))
      )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A terminal that takes nothing must not hold up the end. */
const patience = "1 second"

const blocking = (kind: string): "auth" | "permission" | "question" => {
  if (kind.startsWith("Auth.")) return "auth"
  return permissions.has(kind) ? "permission" : "question"
}

const permissions: ReadonlySet<string> = new Set(["Approve", "grantStageTool", "approveSubagentEnvelope"])

const reporting = (to: Output.Name, { stream }: EventBus.Subscription): Effect.Effect<void> => {
  let known = nothing
  let said = ""
  return Stream.runForEach(stream, (event) => {
    known = after(known, event)
    const state = stateOf(known)
    if (state === said || (said === "" && state === "state=idle")) return Effect.void
    said = state
    return Output.report(to, state)
  })
}
