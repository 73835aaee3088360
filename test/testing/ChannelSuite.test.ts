/** The kit for channels: a stranger's channel passes it, and a broken one is told what is wrong. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Queue from "effect/Queue"
import type { RequestId } from "../../src/core/Id.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import {
  InteractionCancelled,
  InteractorUnavailable,
  type InteractionError
} from "../../src/interaction/InteractionError.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as ChannelSuite from "../../src/testing/ChannelSuite.js"

const claims = ["Approve", "Confirm", "Select", "Ask"] as const

type Ends = Deferred.Deferred<Interactor.Reply<Interaction.Interaction>, InteractionError>

/** What a stranger may have written: a wall on which questions hang until somebody writes an answer below. */
interface Faults {
  readonly claims?: ReadonlyArray<Interaction.Kind>
  /** What becomes of an answer that does not fit. */
  readonly misfit?: (interaction: Interaction.Interaction) => Interaction.Answer<Interaction.Interaction>
  readonly keepsWhenInterrupted?: boolean
  readonly keepsWhenClosed?: boolean
  readonly anybody?: boolean
  readonly silent?: boolean
  readonly crashes?: boolean
}

const wall = (faults: Faults = {}): ChannelSuite.Options["fresh"] =>
  Effect.gen(function* () {
    const open = new Map<string, { readonly request: InteractionRequest; readonly end: Ends }>()
    const hung = yield* Queue.unbounded<RequestId>()
    const known: ReadonlyArray<string> = faults.claims ?? claims
    const ask = (request: InteractionRequest) =>
      Effect.gen(function* () {
        const { interaction, requestId } = request
        if (faults.crashes === true) return yield* Effect.dieMessage("the wall fell down")
        if (!known.includes(interaction._tag)) {
          return yield* new InteractorUnavailable({ requestId, by: "wall", reason: "the wall does not show that" })
        }
        const end: Ends = yield* Deferred.make<Interactor.Reply<Interaction.Interaction>, InteractionError>()
        open.set(requestId, { request, end })
        if (faults.silent !== true) yield* Queue.offer(hung, requestId)
        return yield* Effect.ensuring(
          Deferred.await(end),
          Effect.sync(() => faults.keepsWhenInterrupted === true || open.delete(requestId))
        )
      })
    // An answer was decoded for the request's own kind, which the type does not follow.
    const interactor: Interactor.Service = {
      id: "wall",
      relay: false,
      principal: undefined,
      request: ask as Interactor.Service["request"]
    }
    yield* Effect.addFinalizer(() =>
      faults.keepsWhenClosed === true
        ? Effect.void
        : Effect.forEach(
            open.values(),
            ({ end, request: { requestId } }) =>
              Deferred.fail(end, new InteractorUnavailable({ requestId, by: "wall", reason: "the wall is gone" })),
            { discard: true }
          )
    )
    const write = (requestId: string, text: unknown) => {
      const found = faults.anybody === true ? [...open.values()].at(0) : open.get(requestId)
      if (found === undefined) return Effect.void
      const decoded = Interaction.decodeAnswer(found.request.interaction, text)
      if (Either.isRight(decoded)) return Deferred.succeed(found.end, { answer: decoded.right })
      return faults.misfit === undefined
        ? Effect.void
        : Deferred.succeed(found.end, { answer: faults.misfit(found.request.interaction) })
    }
    return {
      interactor,
      outside: {
        shown: Queue.take(hung),
        answer: ({ requestId }, { encoded }) => Effect.asVoid(write(requestId, encoded)),
        nonsense: ({ requestId }) => Effect.asVoid(write(requestId, { decision: "why not" })),
        cancel: ({ requestId }) =>
          Effect.suspend(() => {
            const end = open.get(requestId)?.end
            return end === undefined
              ? Effect.void
              : Deferred.fail(end, new InteractionCancelled({ requestId, by: "wall" }))
          }),
        visible: Effect.sync(() => [...open.keys()])
      }
    }
  })

describe("a stranger's channel", () => {
  for (const { check, name } of ChannelSuite.make({ fresh: wall(), claims, dialogs: "unbounded" }))
    it(name, () => Effect.runPromise(check))
})

const yes = ({ _tag }: Interaction.Interaction): Interaction.Answer<Interaction.Interaction> =>
  _tag === "Approve" ? { decision: "allow", scope: "once" } : _tag === "Confirm" ? true : 0

describe("a broken channel", () => {
  const channels: { readonly [says: string]: Faults } = {
    "Nonsense ended Approve: the request must stay open": { misfit: yes },
    "After the asker was interrupted these dialogs must be visible: none": { keepsWhenInterrupted: true },
    "Its scope was closed, and the asker waits for ever": { keepsWhenClosed: true },
    'It hangs: the check "gives each of two requests its own answer" did not end in time': { anybody: true },
    'It hangs: the check "answers Approve" did not end in time': { silent: true },
    "It ended Confirm before anybody outside did anything: it failed": { crashes: true },
    "Clarify is not among its claims, and it must fail with InteractorUnavailable": { claims: [...claims, "Clarify"] }
  }
  for (const [says, faults] of Object.entries(channels)) {
    it.live(`is told: ${says}`, () =>
      Effect.gen(function* () {
        const within = says.startsWith("It hangs") ? "1 second" : "8 seconds"
        const kit = ChannelSuite.make({ fresh: wall(faults), claims, dialogs: "unbounded", within })
        const outcomes = yield* Effect.forEach(kit, ({ check }) => Effect.either(check), { concurrency: "unbounded" })
        const told = outcomes.flatMap((outcome) => (Either.isLeft(outcome) ? [outcome.left.message] : []))
        assert.isTrue(
          told.some((sentence) => sentence.startsWith(says)),
          told.join("\n")
        )
      })
    )
  }
})
