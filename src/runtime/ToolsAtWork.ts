/**
 * Waits for the tools of a tree of agents that do something right now.
 *
 * A call that asks somebody, or that waits for a subagent, does nothing by itself and is not waited for: the answer may never
 * come. Calls that begin later are not waited for either, so that the wait is as long as the longest tool.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as InteractionRequest from "../interaction/InteractionRequest.js"
import type * as InteractionBroker from "../broker/InteractionBroker.js"
import type { RunningCall } from "../turn/RunningCalls.js"
import type { AgentTree } from "../subagent/AgentTree.js"

export const awaitEnd = (tree: AgentTree, broker: InteractionBroker.Service): Effect.Effect<void> =>
  Effect.scoped(
    Effect.gen(function* () {
      // Before the look: whatever begins to ask after it is heard of.
      const { takeAll } = yield* tree.shared.bus.subscribe()
      const calls = tree.nodes.flatMap(({ session }) => session.calls.atWork)
      for (;;) {
        const waiting = waitingIn(tree, yield* broker.open)
        const open = calls.filter(({ call, over }) => !over && !waiting.has(call.id))
        if (open.length === 0) return
        const more = yield* Effect.raceFirst(takeAll, Effect.as(anyOver(open), Option.some([])))
        if (Option.isNone(more)) return
      }
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The calls that ask somebody, or that wait for a subagent. */
const waitingIn = (
  tree: AgentTree,
  open: ReadonlyArray<InteractionRequest.InteractionRequest>
): ReadonlySet<string | undefined> =>
  new Set([
    ...open.map((request) => InteractionRequest.callOf(request)),
    ...tree.nodes.flatMap(({ session }) => session.delegations.running.map(({ toolCallId }) => toolCallId))
  ])

const anyOver = (calls: ReadonlyArray<RunningCall>): Effect.Effect<void> =>
  Effect.async((resume) => {
    for (const call of calls) call.whenOver(() => resume(Effect.void))
  })
