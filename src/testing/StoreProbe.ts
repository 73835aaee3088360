/** What the checks of a session store are made of: entries to write, and what must hold then. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Digest from "../core/Digest.js"
import { CorrelationId, MessageId, RequestId, SessionId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import * as JournalEntry from "../journal/JournalEntry.js"
import type * as SessionLease from "../journal/SessionLease.js"
import type * as SessionStore from "../journal/SessionStore.js"

/** Opens the store as a process does. */
export type Open = (process: SessionLease.Process) => Effect.Effect<SessionStore.Service, unknown, Scope.Scope>

export type Body = (open: Open, store: SessionStore.Service) => Effect.Effect<void, unknown, Scope.Scope>

/**
 * The store breaks its contract.
 *
 * @since 0.1.0
 * @category errors
 */
export class StoreBroken extends Schema.TaggedError<StoreBroken>("assent/testing/StoreBroken")("StoreBroken", {
  /** What is wrong. */
  sentence: Schema.String
}) {
  override get message(): string {
    return this.sentence
  }
}

export const here: SessionLease.Process = { pid: 1, host: "here", isAlive: () => true }
export const there: SessionLease.Process = { pid: 2, host: "there", isAlive: () => true }

export const root = SessionId.make("ses_checked")
export const other = SessionId.make("ses_other")
export const requestId = RequestId.make("req_checked")

export const opened = (sessionId: SessionId = root, workspace?: string): JournalEntry.Draft => ({
  sessionId,
  entry: {
    _tag: "SessionOpened",
    version: JournalEntry.version,
    sessionId,
    rootSessionId: sessionId,
    agent: "main",
    depth: 0,
    model: "offline",
    instructions: "digest",
    ...(workspace === undefined ? {} : { workspace })
  }
})

export const said = (id: string, sessionId: SessionId = root): JournalEntry.Draft => ({
  sessionId,
  entry: {
    _tag: "MessageReceived",
    message: { id: MessageId.make(id), source: "user", delivery: "steer", text: `words "${id}"\n`, at: 1 }
  }
})

export const raised = (
  interaction: Interaction.Interaction = new Interaction.Select({ prompt: "Which?", options: ["a", "b"] }),
  sessionId: SessionId = root
) => ({
  sessionId,
  entry: {
    _tag: "InteractionRaised" as const,
    request: {
      requestId,
      correlationId: CorrelationId.make("turn_1"),
      sessionId,
      agentPath: "main",
      issuedAt: 5,
      interaction
    }
  }
})

export const closed = (sessionId: SessionId): JournalEntry.Draft => ({ sessionId, entry: { _tag: "SessionClosed" } })

export const expect = (holds: boolean, sentence: string): Effect.Effect<void, StoreBroken> =>
  holds ? Effect.void : new StoreBroken({ sentence })

/** The effect fails with this tag; otherwise the sentence is what is wrong. */
export const expectFailure = <A, R>(
  effect: Effect.Effect<A, { readonly _tag: string }, R>,
  tag: string,
  sentence: string
): Effect.Effect<void, StoreBroken, R> =>
  Effect.flatMap(Effect.either(effect), (outcome) => {
    const what = Either.isRight(outcome) ? "it succeeded" : `it failed with ${outcome.left._tag}`
    const isRight = Either.isLeft(outcome) && outcome.left._tag === tag
    return expect(isRight, `${sentence}: it must fail with ${tag}, and ${what}.`)
  })

export const write = (store: SessionStore.Service, ...drafts: ReadonlyArray<JournalEntry.Draft>) =>
  Effect.scoped(Effect.flatMap(store.lock(drafts[0]?.sessionId ?? root), (lease) => lease.append(drafts)))

const textOf = (entries: ReadonlyArray<JournalEntry.Draft>): string =>
  Digest.canonicalJson(
    entries.map(({ entry, sessionId }) => [sessionId, Either.getOrThrow(JournalEntry.encode(entry))])
  )

export const expectEntries = (store: SessionStore.Service, expected: ReadonlyArray<JournalEntry.Draft>, when: string) =>
  Effect.flatMap(store.load(root), ({ entries }) =>
    Effect.zipRight(
      expect(
        textOf(entries) === textOf(expected),
        `The journal has other entries than were written ${when}: ${entries.map(({ entry }) => entry._tag).join(", ")}.`
      ),
      expect(
        entries.every(({ seq }, index) => seq === index + 1),
        `Entries are numbered from 1 without gaps; here they have ${entries.map(({ seq }) => seq).join(", ")}.`
      )
    )
  )

/** Takes the lease as a process that then stands still: no timer of it fires. */
export const lockAndStall = (store: SessionStore.Service, id: SessionId = root) =>
  Effect.gen(function* () {
    const clock = yield* Effect.clock
    const stalled: Clock.Clock = {
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis(),
      unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
      currentTimeMillis: clock.currentTimeMillis,
      currentTimeNanos: clock.currentTimeNanos,
      sleep: () => Effect.never
    }
    const scope = yield* Scope.make()
    const lease = yield* Scope.extend(Effect.withClock(store.lock(id), stalled), scope)
    return { lease, end: Scope.close(scope, Exit.void) }
  })
