/**
 * Two processes want different things of one session at the same moment: its lease, an answer, a fork, its deletion. Each
 * gets what it wanted whole, or a refusal; what was acknowledged is there, and nothing half-done is.
 *
 * Rounds are few among the other tests; `ASSENT_RACES=1000` makes them many.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type { RequestId, SessionId } from "../../src/core/Id.js"
import * as SessionFork from "../../src/journal/SessionFork.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as JournalSample from "../kit/JournalSample.js"

const { draft, opened, raised, received, said, taken, turnEnded } = JournalSample

export const rounds = Number(process.env["ASSENT_RACES"] ?? 25)

export interface Two {
  /** The same store as two processes of two hosts see it. */
  readonly one: SessionStore.Service
  readonly other: SessionStore.Service
}

const tag = <A, E extends { readonly _tag: string }>(outcome: Either.Either<A, E>) =>
  Either.isRight(outcome) ? "done" : outcome.left._tag

const textOf = (loaded: SessionStore.Loaded) => JSON.stringify(Either.getOrThrow(SessionStore.toJson(loaded)))

/** Which of the four begins first, and on which side, differs from round to round. */
const shuffled = <A>(all: ReadonlyArray<A>, round: number): ReadonlyArray<A> =>
  all.map((_, index) => all[(index + round) % all.length]).flatMap((one) => (one === undefined ? [] : [one]))

export const raceSuite = (name: string, two: Effect.Effect<Two, unknown, Scope.Scope>): void => {
  describe(`${name}: when a lease, an answer, a fork and a deletion race`, () => {
    it.scopedLive(
      "each is done whole or refused, and nothing that was acknowledged is lost",
      () =>
        Effect.flatMap(two, (given) =>
          Effect.forEach(
            Array.from({ length: rounds }, (_, round) => round),
            (round) => raced(given, round),
            { discard: true }
          )
        ),
      Math.max(120_000, rounds * 500)
    )
  })
}

const raced = ({ one, other }: Two, round: number) =>
  Effect.gen(function* () {
    const root = `ses_${round}` as SessionId
    const requestId = `req_${round}` as RequestId
    const [msg, turn] = [`msg_${round}`, `turn_${round}`]
    const story = [
      opened(root, { rootSessionId: root }),
      received(msg, "one"),
      taken(turn, 1, msg),
      said("first"),
      turnEnded(turn),
      received(`${msg}b`, "two"),
      taken(`${turn}b`, 1, `${msg}b`),
      raised(requestId)
    ].map((entry) => draft(entry, root))
    yield* Effect.scoped(Effect.flatMap(one.lock(root), (lease) => lease.append(story)))
    const before = textOf(yield* one.load(root))
    const [a, b] = round % 2 === 0 ? [one, other] : [other, one]

    /** Locks first and then loads, as whoever resumes does; then goes on. */
    const resume = Effect.scoped(
      Effect.gen(function* () {
        const lease = yield* a.lock(root)
        const loaded = yield* Effect.either(a.load(root))
        if (Either.isRight(loaded)) yield* lease.append([draft({ _tag: "SessionResumed" }, root)])
        return loaded
      })
    )
    const outcome = { answered: "", deleted: "", forked: "", resumed: "" }
    let fork: SessionFork.Forked | undefined
    let seen: SessionStore.Loaded | undefined
    yield* Effect.all(
      shuffled(
        [
          Effect.map(Effect.either(b.answer(requestId, 1, "web")), (it) => void (outcome.answered = tag(it))),
          Effect.map(Effect.either(b.delete(root)), (it) => void (outcome.deleted = tag(it))),
          Effect.map(Effect.either(SessionFork.fork(b, root, { at: 1 })), (it) => {
            outcome.forked = tag(it)
            if (Either.isRight(it)) fork = it.right
          }),
          Effect.map(Effect.either(resume), (it) => {
            outcome.resumed = Either.isRight(it) ? tag(it.right) : tag(it)
            if (Either.isRight(it) && Either.isRight(it.right)) seen = it.right.right
          })
        ],
        round
      ),
      { concurrency: "unbounded" }
    )

    assert.include(["done", "AnswerRefused", "SessionLocked"], outcome.answered)
    assert.include(["done", "SessionLocked"], outcome.deleted)
    assert.include(["done", "SessionUnknown"], outcome.forked)
    assert.include(["done", "SessionUnknown"], outcome.resumed)
    const left = yield* Effect.either(one.load(root))
    const listed = (yield* other.list).map(({ rootSessionId }) => rootSessionId)
    if (outcome.deleted === "done") {
      // Nobody goes on with it; what was seen of it before went with it.
      assert.strictEqual(tag(left), "SessionUnknown")
      assert.notInclude(listed, root)
    } else {
      assert(Either.isRight(left))
      assert.strictEqual(outcome.resumed, "done")
      assert.lengthOf(left.right.entries, story.length + 1)
      assert.lengthOf(left.right.answers, outcome.answered === "done" ? 1 : 0)
    }
    // A process that took the session after the answer was acknowledged has it.
    if (seen !== undefined && outcome.answered === "SessionLocked") assert.lengthOf(seen.answers, 0)
    if (fork !== undefined) {
      const { rootSessionId } = fork
      const whole = yield* one.load(rootSessionId)
      assert.deepStrictEqual(
        whole.entries.map(({ entry }) => entry._tag),
        ["SessionOpened", "MessageReceived", "MessageTaken", "AssistantAppended", "TurnEnded", "SessionResumed"]
      )
      assert.lengthOf(whole.answers, 0)
      assert.include(listed, rootSessionId)
      yield* one.delete(rootSessionId)
    }
    if (outcome.deleted !== "done") {
      if (Either.isRight(left)) {
        const { entries, ...rest } = left.right
        assert.strictEqual(textOf({ ...rest, answers: [], entries: entries.slice(0, -1) }), before)
      }
      yield* one.delete(root)
    }
    assert.deepStrictEqual(yield* one.list, [])
  })
