/**
 * A run that may be said again: each id is run once, and all who say its words get its end.
 *
 * ```
 *  id unknown ──────────────────► filed, awaited
 *  id of this process ──────────► awaited, or its end
 *  id of another process, or of `enqueue` ─► waits or runs ─► awaited
 *                                         └─ over ─────────► its end, out of the journal
 * ```
 *
 * It is loaded with the first id.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { MessageId } from "../core/Id.js"
import * as Region from "../core/Region.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type { Draft } from "../inbox/Message.js"
import type { EntryOf, Written } from "../journal/JournalEntry.js"
import type { EventFeed } from "../journal/EventFeed.js"
import type * as Session from "../session/Session.js"
import type { RequestedTurn } from "../session/TurnRequests.js"
import type { TypedOutput } from "../turn/TypedOutput.js"
import {
  MessageAlreadyTaken,
  MessageDiffers,
  type MessageRouter,
  type NotRun,
  type NotTaken,
  type Run
} from "./MessageRouter.js"

/** The parts of an agent that it needs. */
interface Parts {
  readonly feed: EventFeed | undefined
  readonly router: MessageRouter
  readonly session: Session.Session
}

/** What the agent does for it: its modules are loaded already, and this one is loaded late. */
interface Wanted {
  readonly id: MessageId
  readonly output: TypedOutput | undefined
  /** Files the words for a turn of their own. */
  readonly file: () => MessageId
  /** The end of words that were withdrawn. */
  readonly neverBegun: TurnEnd
}

/** Runs these words, unless words with this id were run before: then that run counts. */
export const run = (
  { feed, router, session }: Parts,
  draft: Pick<Draft, "parts" | "text">,
  { file, id, neverBegun, output }: Wanted
): Effect.Effect<TurnEnd, NotRun> =>
  Region.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.getFiberRefs, (world): Effect.Effect<TurnEnd, NotRun> => {
      const wanted = { output, world }
      const { kept, runs } = router

      /** The last caller that leaves a run which is not stored gives it up. */
      const waits = (run: Run): Effect.Effect<TurnEnd, NotRun> => {
        const { end, giveUp } = run.turn
        run.waiting++
        const ended: Effect.Effect<TurnEnd, NotTaken> = kept === undefined ? end : Effect.flatMap(kept, () => end)
        return Effect.onExit(restore(ended), (exit) => {
          run.waiting--
          if (Exit.isSuccess(exit) || run.waiting > 0) return Effect.void
          if (kept !== undefined && Cause.isInterruptedOnly(exit.cause)) return Effect.void
          return Effect.map(giveUp, () => {
            let isOver = false
            end.observe(() => {
              isOver = true
            })
            // Withdrawn words were not run, and may be.
            if (!isOver) router.forget(id)
          })
        })
      }
      const begins = (turn: RequestedTurn): Run => {
        const run: Run = { turn, waiting: 0 }
        runs.set(id, run)
        return run
      }

      if (router.isOther(id, draft)) return new MessageDiffers({ messageId: id })
      const known = runs.get(id)
      if (known !== undefined) return waits(known)
      if (!router.isKnown(id)) {
        router.know(id, draft)
        return waits(begins(session.awaitTurn(file(), wanted)))
      }
      if (feed === undefined) return new MessageAlreadyTaken({ messageId: id })
      // Before the journal is read: a turn that ends meanwhile is not missed.
      const turn = session.ongoing(id, wanted)
      return Effect.flatMap(restore(feed.entries), (entries): Effect.Effect<TurnEnd, NotRun> => {
        const before = runIn(entries, id)
        if (before === undefined) return new MessageAlreadyTaken({ messageId: id })
        return turn === undefined ? Effect.succeed(before.end ?? neverBegun) : waits(runs.get(id) ?? begins(turn))
      })
    })
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** The words that were filed under this id for a turn of their own, and how that ended; withdrawn ones never began. */
const runIn = (
  entries: ReadonlyArray<Written>,
  id: MessageId
): { readonly message: EntryOf<"MessageReceived">["message"]; readonly end: TurnEnd | undefined } | undefined => {
  let message: EntryOf<"MessageReceived">["message"] | undefined
  let turn: string | undefined
  for (const { entry } of entries) {
    if (entry._tag === "MessageReceived" && entry.message.id === id) message = entry.message
    else if (entry._tag === "MessageTaken" && entry.messageIds.includes(id)) turn = entry.correlationId
    else if (entry._tag === "TurnEnded" && entry.correlationId === turn && message?.delivery === "queue")
      return { message, end: entry.end }
  }
  return message?.delivery === "queue" ? { message, end: undefined } : undefined
}
