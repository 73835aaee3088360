/**
 * The contract of persistence with a store in trouble, run over every store: at any append it is slow, loses its line or is full,
 * for a second or a minute. What people answered takes effect once. Nothing is settled against it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as FastCheck from "fast-check"
import type { SessionId } from "../../src/core/Id.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type * as SessionStore from "../../src/journal/SessionStore.js"
import { StoreUnwritable } from "../../src/journal/StoreError.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as AcceptedAnswers from "../kit/AcceptedAnswers.js"
import * as Family from "../kit/Family.js"
import type * as Mortal from "../kit/Mortal.js"
import * as VirtualClock from "../kit/VirtualClock.js"

/** What a store does at one append, and for how long. */
interface Trouble {
  /** Number of the append, from 1. */
  readonly at: number
  readonly seconds: number
  readonly kind: (typeof kinds)[number]
  /** What becomes of the process two seconds after that. */
  readonly process: (typeof fates)[number]
}

/**
 * `late`: it writes later. `late to answer`: it writes, and says so later. `cut`: each attempt fails, and may succeed soon. `cut
 * when written`: the first attempt is written all the same. `full`: each attempt fails, and nothing is written.
 */
const kinds = ["late", "late to answer", "cut", "cut when written", "full"] as const

const fates = ["lives", "drains", "dies"] as const

const use = (name: string) => ({ id: name, name: "work", params: { name } })
const script = {
  main: [
    Family.calls(use("yes"), use("no")),
    Family.calls(Family.delegate("helper"), use("beside")),
    Family.calls({ id: "asked", name: "ask_user", params: { prompt: "Which?" } }),
    Family.calls(use("edited")),
    ...Array.from({ length: 12 }, () => ({ text: "done" }))
  ],
  helper: [Family.calls(use("child")), ...Array.from({ length: 12 }, () => ({ text: "helped" }))]
}
const counted = ["yes", "no", "beside", "child", "edited"]

const answerTo = ({ interaction }: InteractionRequest): TestInteractor.Step => {
  if (interaction._tag === "Ask") return "that one"
  return interaction._tag === "Approve" && interaction.toolCallId === "no" ? "n" : "y"
}

/** Yields the number of appends until now, beside the store. */
const troubled = (whole: SessionStore.Service, trouble: Trouble | undefined, hit: () => void) => {
  let count = 0
  let until: number | undefined
  let written = 0
  const lock: SessionStore.Service["lock"] = (id) =>
    Effect.map(whole.lock(id), (lease) => ({
      ...lease,
      append: (drafts) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          if (until === undefined && ++count === trouble?.at) {
            until = now + trouble.seconds * 1_000
            hit()
            if (trouble.kind === "late") yield* Effect.sleep(`${trouble.seconds} seconds`)
            if (trouble.kind === "late to answer" || trouble.kind === "cut when written") {
              yield* lease.append(drafts)
              written = trouble.kind === "late to answer" ? 0 : drafts.length
            }
            if (trouble.kind === "late to answer") return yield* Effect.sleep(`${trouble.seconds} seconds`)
          }
          const isFailing = trouble?.kind.startsWith("cut") === true || trouble?.kind === "full"
          if (isFailing && until !== undefined && now < until)
            return yield* new StoreUnwritable({
              store: "here",
              reason: "it is in trouble",
              ...(trouble.kind === "full" ? {} : { passing: true })
            })
          const rest = drafts.slice(written)
          written = 0
          yield* lease.append(rest)
        })
    }))
  return { store: { ...whole, lock }, appends: () => count }
}

const run = (worlds: Options["world"], trouble?: Trouble) =>
  Effect.gen(function* () {
    const world = yield* worlds
    const worked: Array<string> = []
    const given: Array<AcceptedAnswers.Given> = []
    let appends = 0
    let ids = 0
    let id: SessionId | undefined
    /** Yields whether the session has come to rest. */
    const life = (now: Trouble | undefined) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const hit = yield* Effect.makeLatch()
        const { appends: soFar, store } = troubled(yield* world.open(++world.processes), now, () => hit.unsafeOpen())
        // What was never written leaves nothing to go on with.
        const isNew = id === undefined || Either.isLeft(yield* Effect.either(store.load(id)))
        const begun = id === undefined || isNew ? Persistence.begin(store) : Persistence.resume(store, id)
        const persistence = yield* Effect.orDie(Scope.extend(begun, scope))
        id = persistence.rootSessionId
        const family = yield* Family.start({
          script,
          person: answerTo,
          worker: (name) => Effect.sync(() => (worked.push(name), "worked")),
          agent: { persistence },
          ids: { unsafeNext: (prefix) => `${prefix}_${world.processes}.${++ids}` }
        }).pipe(Scope.extend(scope))
        const talking = Effect.gen(function* () {
          let isRefused = isNew ? Either.isLeft(yield* Effect.either(family.agent.run("go"))) : false
          yield* family.agent.awaitIdle
          // What a person does whose words or turn met a full store.
          while (isRefused || family.agent.history.messages.at(-1)?.role !== "assistant") {
            yield* Effect.sleep("5 seconds")
            isRefused = Either.isLeft(yield* Effect.either(family.agent.run("go on")))
          }
          return true
          // A run that goes on in the next process has no end here.
        }).pipe(Effect.catchAllCause(() => Effect.never))
        const ended = Effect.gen(function* () {
          yield* hit.await
          yield* Effect.sleep("2 seconds")
          if (now?.process === "drains")
            yield* Effect.zipRight(family.agent.drain("1 second"), Scope.close(scope, Exit.void))
          return false
        })
        const rests = yield* Effect.raceFirst(
          talking,
          now === undefined || now.process === "lives" ? Effect.never : ended
        )
        for (const { by, requestId } of Family.ofTag(yield* family.events, "InteractionAnswered"))
          given.push({ requestId, by, heard: "accepted" })
        if (rests) yield* Scope.close(scope, Exit.void)
        appends += soFar()
        return rests
      })
    let rests = yield* life(trouble)
    // A lease of a process that is gone, and a store that is well again.
    for (let again = 0; !rests && again < 3; again++)
      rests = yield* Effect.zipRight(Effect.sleep("90 seconds"), life(undefined))
    const store = yield* world.open(0)
    const { entries } = id === undefined ? { entries: [] } : yield* Effect.orDie(store.load(id))
    return { appends, entries, given, rests, worked }
  }).pipe(Effect.scoped)

/** Time passes as often as the store needs it: a database answers in real time. */
const inTime = <A, E>(effect: Effect.Effect<A, E>, isSlow: boolean) =>
  Effect.gen(function* () {
    const { advance, clock } = VirtualClock.make()
    const fiber = yield* Effect.fork(Effect.withClock(effect, clock))
    while (fiber.unsafePoll() === null) {
      yield* advance(1_000)
      if (isSlow) yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 4)))
    }
    return yield* Fiber.join(fiber)
  })

const wrongIn = ({
  entries,
  given,
  rests,
  worked
}: Effect.Effect.Success<ReturnType<typeof run>>): ReadonlyArray<string> => [
  ...AcceptedAnswers.wrongIn({
    entries,
    given,
    effects: (call) => (counted.includes(call) ? worked.filter((name) => name === call).length : undefined)
  }),
  ...(rests ? [] : ["it does not come to rest"])
]

export interface Options {
  /** A fresh world for each run. */
  readonly world: Effect.Effect<Mortal.CallerContext, never, Scope.Scope>
  /** Of the appends at which a store can be in trouble, every so many is tried. */
  readonly every: number
  /** Random troubles. */
  readonly runs: number
}

/** One story over a fresh world. */
export const story = (world: Options["world"], trouble?: Trouble) =>
  Effect.flatMap(Effect.scoped(world), ({ isSlow }) => inTime(run(world, trouble), isSlow === true))

export const slowSuite = (name: string, { every, runs, world }: Options): void => {
  describe(`answers in ${name} that is in trouble`, () => {
    const isWhole = ({ worked }: Effect.Effect.Success<ReturnType<typeof run>>) => [...worked].sort()
    const all = ["beside", "child", "edited", "yes"]

    for (const kind of kinds) {
      it.effect(
        `take effect once, whenever it is ${kind}`,
        () =>
          Effect.gen(function* () {
            const reference = yield* story(world)
            assert.deepStrictEqual([wrongIn(reference), isWhole(reference)], [[], all])
            const wrong: Array<string> = []
            for (let at = 1; at <= reference.appends; at += every) {
              const seconds = [1, 14, 16, 20, 60][at % 5] ?? 20
              const troubled = yield* story(world, { at, seconds, kind, process: "lives" })
              wrong.push(...wrongIn(troubled).map((problem) => `${at} for ${seconds} s: ${problem}`))
              // A store that refuses an answer may end a turn: its calls are not all made.
              if (kind !== "full" && isWhole(troubled).join() !== all.join())
                wrong.push(`${at}: it did ${isWhole(troubled).join()}`)
            }
            assert.deepStrictEqual(wrong, [])
          }),
        240_000
      )
    }

    it.effect(
      "take effect once, also when the process ends meanwhile",
      () =>
        Effect.gen(function* () {
          const { appends } = yield* story(world)
          const troubles = FastCheck.record({
            at: FastCheck.integer({ min: 1, max: appends }),
            seconds: FastCheck.integer({ min: 1, max: 60 }),
            kind: FastCheck.constantFrom(...kinds),
            process: FastCheck.constantFrom(...fates)
          })
          for (const trouble of FastCheck.sample(troubles, { numRuns: runs, seed: 55 }))
            assert.deepStrictEqual(wrongIn(yield* story(world, trouble)), [], JSON.stringify(trouble))
        }),
      240_000
    )
  })
}
