/**
 * Keeps the status line of a chat: what the model, the permissions, the context and the money are now. Facts are looked at
 * when something happened that may have changed them, and never just because time passed or words came.
 */
import * as Effect from "effect/Effect"
import * as Todo from "../../core/Todo.js"
import type { AgentEvent, ContextUse } from "../../event/AgentEvent.js"
import type { Service as Screen } from "../console/ConsoleScreen.js"
import type { SessionHandle } from "../../host/SessionHandle.js"
import * as StatusLine from "../view/StatusLine.js"

export interface Options {
  readonly agent: Pick<SessionHandle, "id" | "ledger" | "model" | "permissions" | "todos">
  readonly screen: Pick<Screen, "footer">
  /** Whether there is a status line; what it would say can be asked for anyway. */
  readonly shown: boolean
  /** The branch that is worked on; looked at in the beginning, and at the end of turns and commands. */
  readonly branch: () => string | undefined
  /** How many commands run in the background. Default: none. */
  readonly jobs?: (() => number) | undefined
  /** Why nobody is asked, where the questions of `ask` are answered with yes. Default: they are asked. */
  readonly unasked?: string | undefined
}

export interface ChatStatus {
  /** Takes an event. */
  readonly seen: (event: AgentEvent) => void
  /** A command has run, which may have changed anything. */
  readonly touched: () => void
  /** Draws the line again, if something happened since. */
  readonly show: Effect.Effect<void>
  readonly facts: Effect.Effect<StatusLine.Facts>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = ({ agent, branch, jobs = () => 0, screen, shown, unasked }: Options): ChatStatus => {
  let context: ContextUse | undefined
  let present: string | undefined
  let isBranchOld = true
  let isOld = true

  const facts = Effect.gen(function* () {
    if (isBranchOld) present = branch()
    isBranchOld = false
    const { contextWindow: window, id: model } = yield* agent.model
    const { mode, suspension } = yield* agent.permissions.status
    const whyNot = suspension ?? (mode === "ask" ? unasked : undefined)
    const { cost } = agent.ledger.totals()
    const { completed: done, total: all } = Todo.counts(yield* Effect.orElseSucceed(agent.todos(), () => []))
    return {
      model,
      branch: present,
      mode: whyNot === undefined || mode === "plan" ? mode : `asks nothing (${whyNot})`,
      context: context && { tokens: context.tokens, ...(window === undefined ? {} : { window }) },
      cost: cost === undefined || !agent.ledger.priced ? undefined : { amount: cost, currency: agent.ledger.currency },
      todos: { done, all },
      jobs: jobs()
    }
  })
  const show = Effect.suspend(() => {
    if (!shown || !isOld) return Effect.void
    isOld = false
    return Effect.flatMap(facts, (now) => screen.footer(remembered((columns) => StatusLine.row(now, columns))))
  })

  return {
    seen: (event) => {
      switch (event._tag) {
        case "ModelCallEnded":
          if (event.sessionId === agent.id && event.context !== undefined) context = event.context
          break
        case "CompactionEnded":
          if (event.sessionId === agent.id && event.removed > 0) context = { tokens: event.tokens }
          break
        case "TurnEnded":
          isBranchOld = true
          break
        case "PermissionStatusChanged":
        case "TodosChanged":
        case "JobStarted":
        case "JobEnded":
        case "FilesSetAside":
          break
        default:
          return
      }
      isOld = true
    },
    touched: () => {
      isBranchOld = true
      isOld = true
    },
    show,
    facts: Effect.suspend(() => {
      isBranchOld = true
      return facts
    })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The row is asked for with each key and each turn of the spinner. */
const remembered = (row: (columns: number) => string): ((columns: number) => string) => {
  let last: { readonly columns: number; readonly text: string } | undefined
  return (columns) => {
    if (last?.columns !== columns) last = { columns, text: row(columns) }
    return last.text
  }
}
