/**
 * Random people vote on random calls, through several doors, with crashes between any two votes; and what must be true
 * whatever they do. The count here knows nothing of the one in `src`: it reads the journal.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import * as QueueChannel from "../../src/channel/QueueChannel.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as Recorder from "../kit/Recorder.js"
import * as Runs from "../kit/Runs.js"

// -----------------------------------------------------------------------------------------------------------------
// what may happen
// -----------------------------------------------------------------------------------------------------------------

const names = ["ada", "grace", "linus", "mary", "alan", "edsger", "barbara"]

type Word = "allow" | "deny" | "other" | "another" | "same" | "cancel" | "nonsense"

type Step =
  | {
      readonly _tag: "Vote"
      readonly person: number
      readonly door: number
      readonly word: Word
      readonly roles: boolean
    }
  /** The process dies, and another goes on with what was written. */
  | { readonly _tag: "Crash" }
  /** A door closes for good. */
  | { readonly _tag: "Leave"; readonly door: number }
  /** The next vote cannot be written. */
  | { readonly _tag: "Full" }
  /** Two at once. */
  | { readonly _tag: "Both"; readonly votes: readonly [Vote, Vote] }

type Vote = Extract<Step, { readonly _tag: "Vote" }>

interface Plan {
  readonly quorums: ReadonlyArray<{ readonly quorum: number; readonly role: boolean; readonly deny: "one" | "quorum" }>
  /** How many of the people are in the role. */
  readonly members: number
  readonly steps: ReadonlyArray<Step>
}

const doors = 3

const vote: FastCheck.Arbitrary<Vote> = FastCheck.record({
  _tag: FastCheck.constant("Vote" as const),
  person: FastCheck.nat(names.length - 1),
  door: FastCheck.nat(doors - 1),
  word: FastCheck.oneof(
    { arbitrary: FastCheck.constant<Word>("allow"), weight: 6 },
    { arbitrary: FastCheck.constantFrom<Word>("deny", "other", "another", "same", "cancel", "nonsense"), weight: 5 }
  ),
  roles: FastCheck.oneof({ arbitrary: FastCheck.constant(false), weight: 9 }, FastCheck.constant(true))
})

const plan: FastCheck.Arbitrary<Plan> = FastCheck.record({
  quorums: FastCheck.array(
    FastCheck.record({
      quorum: FastCheck.integer({ min: 1, max: 4 }),
      role: FastCheck.boolean(),
      deny: FastCheck.constantFrom("one" as const, "quorum" as const)
    }),
    { minLength: 1, maxLength: 2 }
  ),
  members: FastCheck.nat(names.length),
  steps: FastCheck.array(
    FastCheck.oneof(
      { arbitrary: vote, weight: 12 },
      {
        arbitrary: FastCheck.record({ _tag: FastCheck.constant("Both" as const), votes: FastCheck.tuple(vote, vote) }),
        weight: 2
      },
      { arbitrary: FastCheck.constant<Step>({ _tag: "Crash" }), weight: 2 },
      { arbitrary: FastCheck.constant<Step>({ _tag: "Full" }), weight: 1 },
      {
        arbitrary: FastCheck.record({ _tag: FastCheck.constant("Leave" as const), door: FastCheck.nat(1) }),
        weight: 1
      }
    ),
    { maxLength: 14 }
  )
})

// -----------------------------------------------------------------------------------------------------------------
// the world
// -----------------------------------------------------------------------------------------------------------------

const current = { path: "a.txt" }

const answers: { readonly [W in Exclude<Word, "cancel">]: unknown } = {
  allow: { decision: "allow", scope: "once" },
  deny: { decision: "deny", scope: "once" },
  other: { decision: "edit", editedArguments: { path: "b.txt" } },
  another: { decision: "edit", editedArguments: { path: "c.txt" } },
  same: { decision: "edit", editedArguments: { path: "a.txt" } },
  nonsense: { decision: "allow" }
}

const requestOf = ({ members, quorums }: Plan): Effect.Effect<InteractionRequest<Interaction.Approve>> => {
  const all = quorums.map(({ deny, quorum, role }) => ({
    quorum,
    roles: role ? ["ops"] : [],
    members: role ? names.slice(0, members) : [],
    deny,
    rule: "deploy"
  }))
  const [first, ...others] = all
  assert.isDefined(first)
  const interaction = Interaction.approve({
    ...InteractionSample.samples.Approve.interaction,
    editable: { parameters: ["path"], format: "text", current },
    onceOnly: true,
    needs: { digest: "d", all: [first, ...others], votes: [] }
  })
  return InteractionSample.request(interaction)
}

/** What was written: votes, and ends. */
interface Written {
  readonly votes: Array<Interactor.Vote<Interaction.Approve>>
  readonly ends: Array<unknown>
}

/** Plays the plan; yields the outcome, if the call was decided. */
const play = (given: Plan) =>
  Effect.gen(function* () {
    const written: Written = { votes: [], ends: [] }
    const request = yield* requestOf(given)
    const { requestId } = request
    let isFull = false
    const journal: InteractionBroker.InteractionJournal = {
      isParked: () => false,
      settledBy: () => undefined,
      raised: () => Effect.void,
      settled: (_, end) => Effect.sync(() => void written.ends.push(end)),
      kept: () => undefined,
      voted: (_, cast) =>
        Effect.zipRight(
          Effect.yieldNow(),
          Effect.suspend(() => {
            if (isFull) {
              isFull = false
              return Effect.fail("the disk is full")
            }
            return Effect.sync(() => void written.votes.push(cast))
          })
        ),
      votes: () => [...written.votes]
    }
    const closed = new Set<number>()
    const begin = Effect.gen(function* () {
      const scope = yield* Scope.make()
      const recorder = yield* Recorder.make()
      const broker = yield* Scope.extend(InteractionBroker.make({ bus: recorder.bus, journal }), scope)
      const channels: Array<{ readonly channel: QueueChannel.Service; readonly scope: Scope.CloseableScope }> = []
      for (let door = 0; door < doors; door++) {
        const own = yield* Scope.make()
        const channel = yield* Scope.extend(QueueChannel.make({ id: `door ${door}`, timeouts: { permission: 0 } }), own)
        if (!closed.has(door)) yield* Scope.extend(broker.attach(channel.interactor), own)
        channels.push({ channel, scope: own })
      }
      const asking = yield* Effect.fork(InteractorCall.ask(broker.interactor, request))
      for (const { channel } of channels) yield* Effect.fork(Effect.forever(channel.take))
      yield* settle
      return { asking, broker, channels, recorder, scope }
    })
    let world = yield* begin
    /** Said to the author: the vote counts. */
    const acknowledged: Array<{ readonly by: string; readonly word: Word }> = []
    const refused: Array<{ readonly by: string; readonly message: string }> = []
    const cast = ({ door, person, word }: Vote) =>
      Effect.suspend(() => {
        const by = names[person] ?? "nobody"
        const { channel } = world.channels[door] ?? { channel: undefined }
        if (channel === undefined || closed.has(door)) return Effect.void
        // The last door is the broker's own.
        const given =
          word === "cancel"
            ? channel.cancel(requestId, by)
            : door === doors - 1
              ? world.broker.answer(requestId, by, answers[word])
              : channel.answer(requestId, answers[word], by)
        return Effect.map(Effect.either(given), (told) => {
          if (Either.isRight(told)) acknowledged.push({ by, word })
          else refused.push({ by, message: told.left.message })
        })
      })
    for (const step of given.steps) {
      if (step._tag === "Vote") yield* cast(step)
      else if (step._tag === "Both") yield* Effect.all(step.votes.map(cast), { concurrency: 2 })
      else if (step._tag === "Full") isFull = true
      else if (step._tag === "Leave" && !closed.has(step.door)) {
        closed.add(step.door)
        yield* Scope.close(world.channels[step.door]?.scope ?? (yield* Scope.make()), Exit.void)
      } else if (step._tag === "Crash" && world.asking.unsafePoll() === null) {
        yield* Fiber.interruptFork(world.asking)
        written.ends.length = 0
        yield* Scope.close(world.scope, Exit.void)
        written.ends.length = 0
        world = yield* begin
      }
      yield* settle
    }
    const outcome = world.asking.unsafePoll()
    const open = yield* world.broker.open
    const shown = yield* Effect.forEach(world.channels, ({ channel }) => channel.open)
    const { events } = world.recorder
    yield* Fiber.interrupt(world.asking)
    yield* Scope.close(world.scope, Exit.void)
    for (const { scope } of world.channels) yield* Scope.close(scope, Exit.void)
    return { acknowledged, events, open, outcome, refused, shown, written }
  }).pipe(Effect.scoped)

const settle = Effect.repeatN(Effect.yieldNow(), 8)

// -----------------------------------------------------------------------------------------------------------------
// what must be true
// -----------------------------------------------------------------------------------------------------------------

/** The argument that an answer allows; nothing for a denial. */
const pathOf = (answer: Interaction.ApproveAnswer): unknown =>
  answer.decision === "deny" ? undefined : answer.decision === "allow" ? current.path : answer.editedArguments["path"]

const judge = (given: Plan, played: Effect.Effect.Success<ReturnType<typeof play>>): void => {
  const { acknowledged, events, open, outcome, refused, shown, written } = played
  const members = new Set(names.slice(0, given.members))
  const last = new Map(written.votes.map((vote) => [vote.by, vote.answer]))
  const isOf = (role: boolean) => (by: string) => !role || members.has(by)
  const decisions = events.filter((event) => event._tag === "InteractionAnswered")
  assert.isAtMost(decisions.length, 1)
  // Whoever was told that a vote counts finds it in the journal.
  for (const { by, word } of acknowledged) if (word !== "cancel") assert.isTrue(last.has(by), `${by}'s ${word} is lost`)
  // Nobody without a say has a vote.
  for (const { by } of written.votes)
    assert.isTrue(
      given.quorums.some(({ role }) => isOf(role)(by)),
      by
    )
  for (const { message } of refused) assert.isAbove(message.length, 10)
  const denials = [...last].filter(([, answer]) => answer.decision === "deny").map(([by]) => by)
  const isDenied = given.quorums.some(
    ({ deny, quorum, role }) => denials.filter(isOf(role)).length >= (deny === "one" ? 1 : quorum)
  )
  const agreed = (path: unknown) =>
    given.quorums.every(
      ({ quorum, role }) =>
        [...last].filter(([by, answer]) => isOf(role)(by) && pathOf(answer) === path).length >= quorum
    )
  const isAllowed = ["a.txt", "b.txt", "c.txt"].some(agreed)
  if (outcome === null) {
    assert.isFalse(isDenied, "a denial that nobody heard")
    assert.isFalse(isAllowed, "an agreement that nobody heard")
    assert.strictEqual(decisions.length, 0)
    return
  }
  // Nothing is left open.
  assert.deepStrictEqual(open, [])
  assert.deepStrictEqual(shown.flat(), [])
  if (Exit.isFailure(outcome)) return
  const { answer, by, how, votes = [] } = outcome.value
  assert.strictEqual(how, "answered")
  // Each of those who took part is named, once.
  assert.deepStrictEqual(by.split(", ").sort(), [...last.keys()].sort())
  assert.strictEqual(new Set(votes.map((vote) => vote.by)).size, votes.length)
  if (answer.decision === "deny") assert.isTrue(isDenied)
  else {
    assert.isFalse(isDenied)
    assert.isTrue(agreed(pathOf(answer)), `allowed ${String(pathOf(answer))} by ${by}`)
  }
}

describe("votes on a reserved call", () => {
  it.effect(
    "never come to more than one decision, nor to one that too few have given, whatever happens between them",
    () =>
      Effect.promise(() =>
        FastCheck.assert(
          FastCheck.asyncProperty(plan, async (given) => {
            judge(given, await Effect.runPromise(play(given)))
          }),
          { numRuns: Runs.of(3_000) }
        )
      ),
    600_000
  )
})
