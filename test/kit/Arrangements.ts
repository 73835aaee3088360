/**
 * Random people in random arrangements, before one question each time: they answer, fail, leave and crash, early, late or never,
 * some through two doors; and the asker may go away. What must be true whatever they do is checked by what the people did, which
 * knows nothing of how `src` counts.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { RequestId } from "../../src/core/Id.js"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import { InteractorUnavailable } from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Interactors from "../../src/people/Interactors.js"
import * as InteractionSample from "./InteractionSample.js"
import { settle } from "./Recorder.js"
import * as VirtualClock from "./VirtualClock.js"

export type Random = () => number
type Word = "y" | "n" | "fail" | "crash" | "silent"

export interface Person {
  readonly name: string
  readonly word: Word
  /** Milliseconds. */
  readonly delay: number
  readonly role: boolean
}

/** What the people did and how many of their dialogs are open. */
interface Log {
  open: number
  /** How often a person was asked, through all their doors. */
  readonly asked: Map<string, number>
  readonly said: Map<string, boolean>
}

interface Arranged {
  readonly service: Interactor.Service
  readonly people: ReadonlyArray<Person>
  /** What is wrong with this answer, if it can be told from who gave it. */
  readonly wrong: (answered: Interactor.Answered<Interaction.Confirm>) => string | undefined
}

/** An interactor at which one person answers. */
export type Door = (person: Person) => Interactor.Service

export const minute = 60_000
export const below = (random: Random, limit: number): number => Math.floor(random() * limit)
const words: ReadonlyArray<Word> = ["y", "y", "y", "y", "n", "fail", "crash", "silent"]

const personOf = (random: Random): Person => ({
  // Seven people at most: the same one may come through two doors.
  name: `p${below(random, 7)}`,
  word: words[below(random, words.length)] ?? "y",
  delay: below(random, 3) === 0 ? 0 : below(random, 10) * minute,
  role: random() < 0.6
})

const interactorOf = ({ delay, name, word }: Person, log: Log): Interactor.Service => {
  const answer = (requestId: RequestId): Effect.Effect<boolean, InteractorUnavailable> =>
    Effect.suspend(() => {
      if (word === "silent") return Effect.never
      if (word === "crash") return Effect.dieMessage("boom")
      if (word === "fail") return new InteractorUnavailable({ requestId, by: name, reason: "it is ill" })
      log.said.set(name, word === "y")
      return Effect.succeed(word === "y")
    })
  return {
    id: name,
    relay: false,
    principal: name,
    request: <I extends Interaction.Interaction>({ requestId }: InteractionRequest<I>) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          log.open++
          log.asked.set(name, (log.asked.get(name) ?? 0) + 1)
        }),
        () =>
          Effect.map(Effect.delay(answer(requestId), delay), (answer) => ({
            // Only `Confirm` is asked; the type of all interactions cannot say so.
            answer: answer as Interaction.Answer<I>,
            by: name
          })),
        () => Effect.sync(() => void log.open--)
      )
  }
}

const named = ({ by }: Interactor.Answered<Interaction.Confirm>): ReadonlyArray<string> => by.split(", ")

/** People behind such doors, in an arrangement that is so deep at most. */
export const arrange = (random: Random, depth: number, door: Door): Arranged => {
  const kind = depth === 0 ? 4 : below(random, 5)
  const some = (): ReadonlyArray<Arranged> =>
    Array.from({ length: 1 + below(random, 4) }, () => arrange(random, depth - 1, door))
  switch (kind) {
    case 0: {
      const of = some()
      const need = 1 + below(random, 3)
      const deny = random() < 0.5 ? ("one" as const) : ("quorum" as const)
      return {
        service: Interactors.quorum({ of: of.map(({ service }) => service), need, deny }),
        people: of.flatMap(({ people }) => people),
        wrong: ({ answer, votes = [] }) => {
          const agreeing = new Set(votes.filter((vote) => vote.answer === answer).map(({ by }) => by)).size
          const enough = answer || deny === "quorum" ? need : 1
          return agreeing < enough ? `${agreeing} of ${enough} agreed` : undefined
        }
      }
    }
    case 1: {
      const to = some()
      const after = Duration.millis((1 + below(random, 5)) * minute)
      return {
        service: Interactors.escalate({
          to: to.map(({ service }) => service),
          ...(random() < 0.7 ? { after } : {})
        }),
        people: to.flatMap(({ people }) => people),
        wrong: () => undefined
      }
    }
    case 2: {
      const to = arrange(random, depth - 1, door)
      const otherwise = arrange(random, depth - 1, door)
      const isFirst = random() < 0.5
      const chosen = isFirst ? to : otherwise
      return {
        service: Interactors.route({
          cases: [{ when: () => isFirst, to: to.service }],
          otherwise: otherwise.service
        }),
        people: chosen.people,
        wrong: chosen.wrong
      }
    }
    case 3: {
      const of = arrange(random, depth - 1, door)
      const ops = [...new Set(of.people.filter(({ role }) => role).map(({ name }) => name))]
      return {
        service: Interactors.roles({ of: of.service, members: { ops }, only: ["ops"] }),
        people: of.people,
        wrong: (answered) => {
          const other = named(answered).find((name) => !ops.includes(name))
          return other === undefined ? of.wrong(answered) : `${other} is not in the role`
        }
      }
    }
    default: {
      const person = personOf(random)
      return { service: door(person), people: [person], wrong: () => undefined }
    }
  }
}

/** Plays one schedule, on a clock that stands still; yields what was wrong with it, and how it ended. */
export const play = (
  random: Random
): Effect.Effect<{ readonly problems: ReadonlyArray<string>; readonly end: string }> =>
  Effect.suspend(() => {
    const time = VirtualClock.make()
    return Effect.withClock(played(random, time), time.clock)
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const played = (random: Random, time: VirtualClock.VirtualClock) =>
  Effect.gen(function* () {
    const log: Log = { open: 0, asked: new Map(), said: new Map() }
    const { people, service, wrong } = arrange(random, 1 + below(random, 2), (person) => interactorOf(person, log))
    const request = yield* InteractionSample.request(new Interaction.Confirm({ prompt: "Deploy?", default: false }))
    let ends = 0
    const asking = yield* Effect.fork(
      Effect.onExit(InteractorCall.ask(service, request), () => Effect.sync(() => void ends++))
    )
    yield* settle
    const leaves = random() < 0.1 ? below(random, 12) : 13
    yield* time.advance((leaves < 13 ? leaves : 120) * minute)
    const problems: Array<string> = []
    const done = asking.unsafePoll()
    if (done === null && leaves === 13 && people.every(({ word }) => word !== "silent")) {
      problems.push("everybody has answered, and the question is still open")
    }
    if (done === null) yield* Fiber.interrupt(asking)
    yield* settle
    if (log.open !== 0) problems.push(`${log.open} dialogs were left open`)
    if (ends !== 1) problems.push(`it ended ${ends} times`)
    if (done !== null && Exit.isSuccess(done)) {
      const answered = done.value
      const problem = wrong(answered)
      if (problem !== undefined) problems.push(problem)
      for (const name of named(answered)) {
        const said = log.said.get(name)
        const isOnly = people.filter((one) => one.name === name && one.word !== "silent").length === 1
        if (said === undefined) problems.push(`${name} is named and said nothing`)
        if (isOnly && named(answered).length === 1 && said !== answered.answer)
          problems.push(`${name} said the opposite`)
      }
      if (new Set(named(answered)).size !== named(answered).length)
        problems.push(`somebody counts twice: ${answered.by}`)
    }
    const end = done === null ? "open" : Exit.isSuccess(done) ? (done.value.answer ? "yes" : "no") : "nobody"
    return { problems, end }
  })
