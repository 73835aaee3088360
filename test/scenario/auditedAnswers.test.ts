/** What the audit and the journal say of answers that change arguments, of votes, and of what a process left open. */
import { assert, describe, it } from "@effect/vitest"
import { setImmediate } from "node:timers/promises"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as AuditTrail from "../../src/audit/AuditTrail.js"
import * as Digest from "../../src/core/Digest.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Policy from "../../src/permission/Policy.js"
import type * as Agent from "../../src/runtime/Agent.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as Kit from "../kit/session.js"
import { settle } from "../kit/Recorder.js"

const work = { tools: [{ name: "work", params: { name: "a" }, id: "call_a" }] }
const digestOf = (name: string) => Digest.digest({ name })
const allow = { decision: "allow", scope: "once" }
const edit = (name: unknown) => ({ decision: "edit", editedArguments: { name } })

/** Processes of one session; each is driven, and ends gently but for the last. */
const story = (source: Policy.PolicySource, ...processes: ReadonlyArray<(agent: Agent.Agent) => Effect.Effect<void>>) =>
  Effect.gen(function* () {
    const { memory, trail } = yield* AuditTrail.makeMemory()
    const open = yield* SessionStore.makeMemory
    const store = (pid: number) => open({ pid, host: "here", isAlive: () => false })
    let id: Persistence.Persistence["rootSessionId"] | undefined
    for (const [at, drive] of processes.entries()) {
      const scope = yield* Scope.make()
      yield* Effect.gen(function* () {
        const persistence = yield* id === undefined ? Persistence.begin(store(at)) : Persistence.resume(store(at), id)
        id = persistence.rootSessionId
        const { agent } = yield* Kit.start({
          model: [work, { text: "done" }],
          interactors: [],
          runtime: { policy: Policy.make(source) },
          agent: { persistence, whenNobody: "wait" }
        })
        if (at === 0) yield* Effect.forkScoped(agent.run("go"))
        yield* settle
        yield* drive(agent)
        yield* settle
      }).pipe(Effect.provideService(AuditTrail.AuditTrail, trail), Scope.extend(scope), Effect.orDie)
      yield* Scope.close(scope, Exit.void)
      yield* settle
    }
    const { entries } = yield* Effect.orDie(store(9).load(id ?? assert.fail("it has no session")))
    return {
      records: (yield* memory.decisions).map(
        ({ argsDigest, by, countedAt, leadsTo, newArgsDigest, outcome, reason, requestId, votes }) => ({
          ...{ outcome, requestId, by, reason, leadsTo, votes, isLater: countedAt !== undefined },
          about: argsDigest,
          then: newArgsDigest
        })
      ),
      settled: entries.flatMap(({ entry }) => (entry._tag === "InteractionSettled" ? [entry.requestId] : []))
    }
  })

/** What is open first; some modules come from the disk, in real time. */
const asked = (agent: Agent.Agent) =>
  Effect.repeat(
    Effect.zipRight(
      Effect.promise(() => setImmediate()),
      agent.broker.open
    ),
    { until: (open) => open.length > 0 }
  ).pipe(Effect.map(([request]) => request?.requestId ?? ""))

const answer = (by: string, given: unknown) => (agent: Agent.Agent) =>
  Effect.gen(function* () {
    yield* Effect.orDie(agent.broker.answer(yield* asked(agent), by, given))
    yield* settle
  })

const all =
  (...steps: ReadonlyArray<(agent: Agent.Agent) => Effect.Effect<void>>) =>
  (agent: Agent.Agent) =>
    Effect.forEach(steps, (step) => step(agent), { discard: true })

const nothing = (agent: Agent.Agent) => Effect.asVoid(asked(agent))

describe("an answer that changes the arguments", () => {
  it.effect("is a record of its own, which names the request that it leads to", () =>
    Effect.gen(function* () {
      const { records, settled } = yield* story({}, all(answer("ada", edit("b")), answer("grace", allow)))
      const [edited, granted] = records
      assert.lengthOf(records, 2)
      assert.deepInclude(edited, { outcome: "edited", by: "ada", about: digestOf("a"), then: digestOf("b") })
      assert.deepInclude(granted, { outcome: "granted", by: "grace", about: digestOf("b"), requestId: edited?.leadsTo })
      assert.deepStrictEqual(settled, [edited?.requestId, granted?.requestId])
    })
  )

  it.effect("leads to no request when a rule decides about the new ones", () =>
    Effect.gen(function* () {
      for (const list of ["whitelist", "blacklist"] as const) {
        const { records } = yield* story({ [list]: { patterns: ["work(name=b)"] } }, answer("ada", edit("b")))
        assert.deepInclude(records[0], { outcome: "edited", by: "ada", leadsTo: undefined, then: digestOf("b") })
        const outcome = list === "whitelist" ? "granted" : "denied"
        assert.deepInclude(records[1], { outcome, requestId: undefined, about: digestOf("b") })
        assert.lengthOf(records, 2)
      }
    })
  )

  it.effect("says why, when they do not fit", () =>
    Effect.gen(function* () {
      const { records } = yield* story({}, all(answer("ada", edit(5)), answer("ada", allow)))
      assert.deepInclude(records[0], { outcome: "edited", about: digestOf("a"), then: undefined })
      assert.include(records[0]?.reason, "do not fit")
      assert.deepInclude(records[1], { outcome: "granted", about: digestOf("a"), requestId: records[0]?.leadsTo })
    })
  )

  it.effect("is told for a process that ends before the next question is answered", () =>
    Effect.gen(function* () {
      const { records, settled } = yield* story({}, answer("ada", edit("b")), nothing, answer("grace", allow))
      assert.deepStrictEqual(
        records.map(({ about, isLater, outcome }) => [outcome, about, isLater]),
        [
          ["edited", digestOf("a"), false],
          ["left_open", digestOf("b"), false],
          ["edited", digestOf("a"), true],
          ["left_open", digestOf("b"), false],
          ["edited", digestOf("a"), true],
          ["granted", digestOf("b"), false]
        ]
      )
      const next = records[0]?.leadsTo
      assert.deepStrictEqual(
        [records[1], records[3], records[5]].map((one) => one?.requestId),
        [next, next, next]
      )
      assert.deepStrictEqual(settled, [records[0]?.requestId, next])
    })
  )
})

describe("what several people decide", () => {
  const two = { approvals: [{ tools: ["work"], quorum: 2 }] }

  it.effect("is a record for each vote, and one for arguments that they changed together", () =>
    Effect.gen(function* () {
      const { records } = yield* story(two, all(answer("ada", edit("b")), answer("grace", edit("b"))))
      assert.deepStrictEqual(
        records.map(({ by, outcome }) => [outcome, by]),
        [
          ["voted", "ada"],
          ["voted", "grace"],
          ["edited", "ada, grace"],
          ["granted", "ada, grace"]
        ]
      )
      assert.deepInclude(records[2], { about: digestOf("a"), then: digestOf("b") })
      assert.deepInclude(records[3], { about: digestOf("b"), requestId: undefined })
    })
  )

  it.effect("stays open with a vote, and is never told to be cancelled", () =>
    Effect.gen(function* () {
      const { records, settled } = yield* story(two, answer("ada", allow), answer("grace", allow))
      const [first] = records
      assert.deepStrictEqual(
        records.map(({ by, outcome, requestId }) => [outcome, by, requestId]),
        [
          ["voted", "ada", first?.requestId],
          ["left_open", undefined, first?.requestId],
          ["voted", "grace", first?.requestId],
          ["granted", "ada, grace", first?.requestId]
        ]
      )
      assert.deepStrictEqual(settled, [first?.requestId])
    })
  )
})

describe("a process that ends", () => {
  it.effect("takes no answer any more that its journal would not have", () =>
    Effect.gen(function* () {
      const { records } = yield* story(
        {},
        (agent) =>
          Effect.gen(function* () {
            const requestId = yield* asked(agent)
            yield* agent.drain("1 second")
            const late = yield* Effect.orDie(Effect.flip(agent.broker.answer(requestId, "ada", allow)))
            assert.include(["InteractionAlreadyAnswered", "VoteRefused", "UnknownRequest"], late._tag)
          }),
        answer("ada", allow)
      )
      assert.deepStrictEqual(
        records.map(({ outcome }) => outcome),
        ["left_open", "granted"]
      )
    })
  )

  it.effect("names who withdrew a question", () =>
    Effect.gen(function* () {
      const { records } = yield* story({}, (agent) =>
        Effect.flatMap(asked(agent), (requestId) => Effect.orDie(Effect.asVoid(agent.broker.cancel(requestId, "ada"))))
      )
      assert.deepInclude(records[0], { outcome: "cancelled", by: "ada", about: digestOf("a") })
    })
  )
})
