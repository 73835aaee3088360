/**
 * Waits for the running tools of a tree of agents.
 *
 * A call that asks somebody or waits for a subagent is not waited for: the answer may never come. Neither are calls
 * that begin later, so the wait is bounded by the longest tool.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as InteractionBroker from "../broker/InteractionBroker.js"
import type { AgentTree } from "../subagent/AgentTree.js"

export const awaitEnd = (tree: AgentTree, broker: InteractionBroker.Service): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      // Subscribed before the check, so that a call that begins to ask after it is noticed.
      const { takeAll } = yield* tree.shared.bus.subscribe()
      const calls = tree.nodes.flatMap(({ session }) => session.calls.atWork)
      // Each call writes once, when it ends; one unread signal says as much as many.
      const ended = yield* Queue.sliding<void>(1)
      for (const call of calls) call.whenOver(() => ended.unsafeOffer(undefined))
      for (;;) {
        const waiting = waitingIn(tree, yield* broker.open)
        const open = calls.filter(({ call, over }) => !over && !waiting.has(call.id))
        if (open.length === 0) return
        const more = yield* Effect.raceFirst(takeAll, Effect.as(Queue.take(ended), Option.some([])))
        if (Option.isNone(more)) return
      }
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Calls that ask somebody, or wait for a subagent. */
const waitingIn = (
  tree: AgentTree,
  open: ReadonlyArray<InteractionRequest.InteractionRequest>
): ReadonlySet<string | undefined> =>
  new Set([
    ...open.map((request) => InteractionRequest.callOf(request)),
    ...tree.nodes.flatMap(({ session }) => session.delegations.running.map(({ toolCallId }) => toolCallId))
  ])
