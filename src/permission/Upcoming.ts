/**
 * The questions that the gate will ask about the other calls of a tool that were proposed together with the one that is being
 * asked about, as they would be now. An interactor may show them beside it.
 *
 * Nothing is decided by this: each of these calls takes its own way through the gate when its turn comes, with its own checks,
 * request and record. A call is left out when it would not come to a plain question: when it would be refused, is reserved, or
 * a rule decides it.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Origin from "../core/Origin.js"
import type { Approve } from "../interaction/Interaction.js"
import type { Upcoming } from "../interaction/InteractorPort.js"
import type { Proposal } from "./Authority.js"

/** More than these nobody looks at together. */
export const most = 20

/** How long the dialog of a call waits for what will come after it: its question must not depend on a slow guard. */
const gracePeriod = "1 second"

/** The questions behind this one, unless a stage or an envelope decides first: those may ask for themselves. */
export const after = <Call extends Proposal & { readonly origin: Origin.Origin }>(
  call: Call,
  questionOf: (call: Call) => Effect.Effect<Option.Option<Approve>>
): Effect.Effect<ReadonlyArray<Upcoming>> =>
  Effect.suspend(() => {
    const found: Array<Upcoming> = []
    const look = Effect.forEach(
      (call.company?.behind(call.call) ?? []).slice(0, most - 1),
      ({ index, proposal }) => {
        // A plan is looked at for itself.
        if (proposal.entry.kind === "switch_mode") return Effect.void
        const { context } = call
        return questionOf({ ...call, ...proposal, context, edited: false, warnings: [], votes: [] }).pipe(
          Origin.withOrigin(Origin.ofCall(call.origin, proposal.call.id)),
          Effect.catchAllCause(() => Effect.succeedNone),
          Effect.map((form) => {
            if (Option.isSome(form)) found.push({ index, interaction: form.value })
          })
        )
      },
      { discard: true }
    )
    // What is slow is shown alone, when its turn comes.
    return Effect.map(Effect.timeoutOption(Effect.disconnect(look), gracePeriod), () => [...found])
  })
