/**
 * Random people in random arrangements before reserved calls, one or up to fifty at once: they allow it, deny it, want other arguments, fail, leave
 * and crash; and the process dies at a random entry of its journal, up to three times, with that entry written or not. The
 * next one raises the call again, and people may say something else then.
 *
 * What must be true is checked by what the journal has, counted by rules of its own.
 */
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as InteractionBroker from "../../src/broker/InteractionBroker.js"
import { canonicalJson } from "../../src/core/Digest.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled, InteractorUnavailable } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as Arrangements from "./Arrangements.js"
import * as InteractionSample from "./InteractionSample.js"
import * as Recorder from "./Recorder.js"
import * as VirtualClock from "./VirtualClock.js"

const { below, minute } = Arrangements

type Word = "allow" | "deny" | "b" | "c" | "same" | "fail" | "crash" | "cancel" | "silent"

const words: ReadonlyArray<Word> = ["allow", "allow", "allow", "allow", "b", "b", "c", "same", "deny", "fail", "crash"]
const rare: ReadonlyArray<Word> = ["cancel", "silent"]

const edit = (path: string): Interaction.ApproveAnswer => ({ decision: "edit", editedArguments: { path } })
const answers: { readonly [W in Word]?: Interaction.ApproveAnswer } = {
  allow: { decision: "allow", scope: "once" },
  deny: { decision: "deny", scope: "once" },
  b: edit("b"),
  c: edit("c"),
  same: edit("a")
}

/** What one rule demands. */
interface Demand {
  readonly quorum: number
  readonly members: ReadonlyArray<string> | undefined
  readonly deny: "one" | "quorum"
}

/** What outlives a process. */
interface Disk {
  readonly votes: Array<Interactor.Vote<Interaction.Approve>>
  readonly ends: Array<Exit.Exit<Interactor.Answered<Interaction.Interaction>, unknown>>
}

type Request = InteractionRequest<Interaction.Approve>
type Outcome = Exit.Exit<Interactor.Answered<Interaction.Approve>, unknown> | undefined

/** One process: how its calls ended, and what was still open in it. */
interface Life {
  readonly outcomes: ReadonlyArray<Outcome>
  readonly died: boolean
  readonly open: number
  readonly hasSilent: boolean
  /** How many calls were decided twice. */
  readonly decisions: number
  /** Who was asked although their vote was kept before, or the decision was. */
  readonly askedAgain: ReadonlyArray<string>
}

/** Plays one schedule, on a clock that stands still; yields what was wrong with it, and how it ended. */
export const play = (
  random: Arrangements.Random
): Effect.Effect<{ readonly problems: ReadonlyArray<string>; readonly end: string }> =>
  Effect.suspend(() => {
    const time = VirtualClock.make()
    return Effect.withClock(played(random, time), time.clock)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const played = (random: Arrangements.Random, time: VirtualClock.VirtualClock) =>
  Effect.gen(function* () {
    const demands = demandsOf(random)
    const count = random() < 0.1 ? 1 + below(random, 50) : 1
    const requests = yield* Effect.forEach(Array.from({ length: count }), () =>
      InteractionSample.request(reservedFor(demands))
    )
    const disks = new Map(requests.map(({ requestId }): [string, Disk] => [requestId, { votes: [], ends: [] }]))
    const diskOf = (requestId: string): Disk => disks.get(requestId) ?? { votes: [], ends: [] }
    const problems: Array<string> = []
    let last: Life | undefined
    const deaths = below(random, 4)
    for (let at = 0; at <= deaths; at++) {
      const death = at < deaths ? { at: 1 + below(random, 6 * count), written: random() < 0.5 } : undefined
      last = yield* live(random, time, requests, diskOf, death)
      if (last.decisions > 0) problems.push(`${last.decisions} decisions too many in one process`)
      if (last.askedAgain.length > 0) problems.push(`asked again: ${last.askedAgain.join(", ")}`)
      if (!last.died) {
        if (last.open > 0) problems.push(`${last.open} dialogs were left open`)
        break
      }
    }
    const { hasSilent = false, outcomes = [] } = last ?? {}
    for (const [at, { requestId }] of requests.entries()) {
      const outcome = outcomes[at]
      if (outcome === undefined && !hasSilent) problems.push("everybody has answered, and it is still open")
      problems.push(
        ...judge(demands, diskOf(requestId), outcome && Exit.isSuccess(outcome) ? outcome.value : undefined)
      )
    }
    const [first] = outcomes
    const end = first === undefined ? "open" : Exit.isSuccess(first) ? first.value.answer.decision : "nobody"
    return { problems, end }
  })

const demandsOf = (random: Arrangements.Random): ReadonlyArray<Demand> =>
  Array.from({ length: 1 + below(random, 2) }, () => ({
    quorum: 1 + below(random, 3),
    members: random() < 0.5 ? undefined : ["p0", "p1", "p2", "p3", "p4"].slice(0, 1 + below(random, 5)),
    deny: random() < 0.6 ? "one" : "quorum"
  }))

const reservedFor = (demands: ReadonlyArray<Demand>): Interaction.Approve => {
  const [first, ...others] = demands.map(({ deny, members, quorum }) => ({
    quorum,
    // Not the role that arrangements give people.
    roles: members === undefined ? [] : ["desk"],
    members: members ?? [],
    deny,
    rule: "deploy"
  }))
  if (first === undefined) throw new Error("There is always one.")
  return Interaction.approve({
    ...InteractionSample.samples.Approve.interaction,
    editable: { parameters: ["path"], format: "text", current: { path: "a" } },
    onceOnly: true,
    needs: { digest: "d", all: [first, ...others], votes: [] }
  })
}

const live = (
  random: Arrangements.Random,
  time: VirtualClock.VirtualClock,
  requests: ReadonlyArray<Request>,
  diskOf: (requestId: string) => Disk,
  death: { readonly at: number; readonly written: boolean } | undefined
) =>
  Effect.gen(function* () {
    let died = false
    let writes = 0
    let open = 0
    let hasSilent = false
    const askedAgain: Array<string> = []
    /** Who must not be asked about which call: they have voted, or it is decided. */
    const known = new Map(
      requests.map(({ requestId }) => {
        const { ends, votes } = diskOf(requestId)
        return [requestId, { isDecided: ends.some(Exit.isSuccess), voted: new Set(votes.map(({ by }) => by)) }]
      })
    )
    const write = (commit: () => void): Effect.Effect<void, string> =>
      Effect.suspend(() => {
        if (died) return Effect.never
        if (++writes !== death?.at)
          return Effect.zipRight(
            Effect.yieldNow(),
            Effect.suspend(() => (died ? Effect.never : Effect.sync(commit)))
          )
        died = true
        if (death.written) commit()
        return Effect.never
      })
    const journal: InteractionBroker.InteractionJournal = {
      isParked: () => false,
      settledBy: () => undefined,
      raised: () => write(() => undefined),
      settled: ({ requestId }, end) => write(() => void diskOf(requestId).ends.push(end)),
      voted: ({ requestId }, vote) => write(() => void diskOf(requestId).votes.push(vote)),
      kept: (requestId) => {
        const end = diskOf(requestId).ends.find(Exit.isSuccess)
        return (
          end && {
            answer: Interaction.encodeAnswer(InteractionSample.samples.Approve.interaction, end.value.answer as never),
            by: end.value.by,
            at: 0
          }
        )
      },
      votes: (requestId) => [...diskOf(requestId).votes]
    }
    const door: Arrangements.Door = (person) => ({
      id: person.name,
      relay: false,
      principal: person.name,
      request: <I extends Interaction.Interaction>({ requestId }: InteractionRequest<I>) => {
        const word = wordOf(random)
        return Effect.acquireUseRelease(
          Effect.sync(() => {
            open++
            if (word === "silent") hasSilent = true
            const before = known.get(requestId)
            if (before?.isDecided === true || before?.voted.has(person.name) === true) askedAgain.push(person.name)
          }),
          () =>
            Effect.delay(
              Effect.suspend((): Effect.Effect<Interactor.Reply<I>, InteractionCancelled | InteractorUnavailable> => {
                const by = person.name
                if (word === "silent") return Effect.never
                if (word === "crash") return Effect.dieMessage("boom")
                if (word === "fail") return new InteractorUnavailable({ requestId, by, reason: "it is ill" })
                if (word === "cancel") return new InteractionCancelled({ requestId, by })
                // Only this call is asked about; the type of all interactions cannot say so.
                return Effect.succeed({ answer: answers[word] as Interaction.Answer<I>, by })
              }),
              person.delay
            ),
          () => Effect.sync(() => void open--)
        )
      }
    })
    const recorder = yield* Recorder.make()
    const scope = yield* Scope.make()
    yield* InteractionBroker.load
    const broker = yield* Scope.extend(InteractionBroker.make({ bus: recorder.bus, journal }), scope)
    for (let count = 1 + below(random, 3); count > 0; count--) {
      const { service } = Arrangements.arrange(random, below(random, 3), door)
      const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      yield* Scope.extend(broker.attach(service), own)
      // Some leave in the middle.
      if (random() < 0.15) {
        // A question that a closing channel had stays open for another process.
        hasSilent = true
        const leaving = Effect.delay(Scope.close(own, Exit.void), below(random, 12) * minute)
        yield* Effect.forkDaemon(leaving)
      }
    }
    const asking = yield* Effect.forEach(requests, (request) =>
      Effect.forkDaemon(InteractorCall.ask(broker.interactor, request))
    )
    // One is shown at a time; what answers at once takes steps and no time.
    yield* Effect.repeatN(time.advance(60 * minute), 2 * requests.length)
    const outcomes = asking.map((one) => one.unsafePoll() ?? undefined)
    const answered = recorder.events.flatMap((event) => (event._tag === "InteractionAnswered" ? [event.requestId] : []))
    // Nothing of a dead process runs on; what is written of its end is no entry of anybody's.
    const counts = requests.map(({ requestId }) => diskOf(requestId).ends.length)
    yield* Effect.forEach(asking, Fiber.interruptFork, { discard: true })
    yield* Recorder.settle
    for (const [at, { requestId }] of requests.entries()) {
      if (outcomes[at] === undefined) diskOf(requestId).ends.length = counts[at] ?? 0
    }
    if (died) yield* Effect.forkDaemon(Scope.close(scope, Exit.void))
    else yield* Scope.close(scope, Exit.void)
    yield* Recorder.settle
    const decisions = answered.length - new Set(answered).size
    const life: Life = { outcomes, died, open, decisions, hasSilent, askedAgain }
    return life
  })

const wordOf = (random: Arrangements.Random): Word => {
  const of = random() < 0.06 ? rare : words
  return of[below(random, of.length)] ?? "allow"
}

/** The path that an answer allows; nothing for a denial. */
const pathOf = (answer: Interaction.ApproveAnswer): unknown =>
  answer.decision === "deny" ? undefined : answer.decision === "allow" ? "a" : answer.editedArguments["path"]

const judge = (
  demands: ReadonlyArray<Demand>,
  { ends, votes }: Disk,
  decided: Interactor.Answered<Interaction.Approve> | undefined
): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const last = new Map(votes.map(({ answer, by }) => [by, answer]))
  const counted = (of: ReadonlyArray<string> | undefined, fits: (answer: Interaction.ApproveAnswer) => boolean) =>
    [...last].filter(([by, answer]) => (of === undefined || of.includes(by)) && fits(answer)).length
  const isDenied = demands.some(
    ({ deny, members, quorum }) =>
      counted(members, ({ decision }) => decision === "deny") >= (deny === "one" ? 1 : quorum)
  )
  const agreed = (path: unknown) =>
    demands.every(({ members, quorum }) => counted(members, (answer) => pathOf(answer) === path) >= quorum)
  // A process that dies behind its decision comes to the same one again.
  const written = new Set(
    ends.flatMap((end) => (Exit.isSuccess(end) ? [canonicalJson([end.value.answer, end.value.by])] : []))
  )
  if (written.size > 1) problems.push(`two decisions were written: ${[...written].join(" ")}`)
  if (written.size === 1 && decided !== undefined && !written.has(canonicalJson([decided.answer, decided.by])))
    problems.push("another decision counts than the one that was written")
  for (const { by } of votes) {
    if (!demands.some(({ members }) => members === undefined || members.includes(by)))
      problems.push(`${by} has no say and a vote`)
  }
  if (decided === undefined) return problems
  const { answer, by } = decided
  if (answer.decision === "deny" ? !isDenied : isDenied)
    problems.push(`${answer.decision}, and the votes say otherwise`)
  if (answer.decision !== "deny" && !agreed(pathOf(answer)))
    problems.push(`too few agreed on ${String(pathOf(answer))}`)
  const named = by.split(", ")
  if (new Set(named).size !== named.length) problems.push(`somebody counts twice: ${by}`)
  for (const name of named) if (!last.has(name)) problems.push(`${name} is named and has no vote`)
  return problems
}
