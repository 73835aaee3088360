/**
 * The contract of a session store as checks, for any test framework:
 *
 * ```ts
 * import { type SessionLease, SessionStore } from "assent"
 * import { SessionStoreSuite } from "assent/testing"
 * import * as Effect from "effect/Effect"
 * import { it } from "vitest"
 *
 * const fresh = Effect.map(SessionStore.makeMemory, (open) => (process: SessionLease.Process) => Effect.succeed(open(process)))
 *
 * for (const { check, name } of SessionStoreSuite.make({ fresh })) it(name, () => Effect.runPromise(check), 30_000)
 * ```
 *
 * A store that breaks it fails with a sentence that says what is wrong. Time is a `TestClock`: a store that asks Effect's
 * clock is checked in milliseconds for what takes 15 seconds.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import * as TestServices from "effect/TestServices"
import { SessionId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import * as SessionLease from "../journal/SessionLease.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as ContentContract from "./ContentContract.js"
import {
  closed,
  expect,
  expectEntries,
  expectFailure,
  here,
  lockAndStall,
  opened,
  other,
  raised,
  requestId,
  root,
  said,
  StoreBroken,
  there,
  write,
  type Body
} from "./StoreProbe.js"

export { StoreBroken } from "./StoreProbe.js"

/**
 * The store that is checked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** An empty store, each time another. What it yields opens that store as this process does. */
  readonly fresh: Effect.Effect<
    (process: SessionLease.Process) => Effect.Effect<SessionStore.Service, unknown, Scope.Scope>,
    unknown,
    Scope.Scope
  >
}

/**
 * One part of the contract.
 *
 * @since 0.1.0
 * @category models
 */
export interface Check {
  readonly name: string
  readonly check: Effect.Effect<void, StoreBroken>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The whole contract. Each check uses a store of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = ({ fresh }: Options): ReadonlyArray<Check> =>
  Object.entries(contract).map(([name, body]) => ({
    name: `a session store ${name}`,
    check: Effect.gen(function* () {
      const open = yield* fresh
      yield* body(open, yield* open(here))
    }).pipe(
      Effect.scoped,
      Effect.provide(TestContext.TestContext),
      Effect.catchAllCause((cause) => Effect.fail(brokenBy(cause))),
      Effect.timeoutFail({
        duration: "20 seconds",
        onTimeout: () => new StoreBroken({ sentence: `It hangs: the check "${name}" did not end in 20 seconds.` })
      })
    )
  }))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const brokenBy = (cause: Cause.Cause<unknown>): StoreBroken => {
  const found = Option.getOrElse(Cause.failureOption(cause), () => Cause.squash(cause))
  if (found instanceof StoreBroken) return found
  const what = found instanceof Error ? found.message : String(found)
  return new StoreBroken({ sentence: `It failed where it must not: ${what}` })
}

const contract: { readonly [name: string]: Body } = {
  "returns the written entries, in their order and with their times": (_, store) =>
    Effect.gen(function* () {
      const lease = yield* store.lock(root)
      yield* lease.append([opened(), { ...said("a"), at: 7 }])
      yield* TestClock.adjust("1 second")
      yield* lease.append([said("b"), raised()])
      yield* expectEntries(store, [opened(), said("a"), said("b"), raised()], "in two appends")
      const times = (yield* store.load(root)).entries.map(({ at }) => at)
      yield* expect(
        times.join() === "0,7,1000,1000",
        `An entry has the time that its draft names, else that of the append: 0, 7, 1000, 1000, and here ${times.join(", ")}.`
      )
    }),
  "keeps no trace of a session that nothing was written to": (_, store) =>
    Effect.gen(function* () {
      yield* Effect.scoped(Effect.flatMap(store.lock(root), (lease) => lease.append([])))
      yield* expectFailure(store.load(root), "SessionUnknown", "A session that was only locked was loaded")
      yield* expectFailure(store.delete(root), "SessionUnknown", "A session that was only locked was deleted")
      yield* expect((yield* store.list).length === 0, "A session that was only locked is listed.")
    }),
  "has all of it when it is opened again": (open, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), said("a"))
      const again = yield* open(there)
      yield* write(again, said("b"))
      yield* expectEntries(store, [opened(), said("a"), said("b")], "by two processes")
    }),
  "writes each append as a whole": (_, store) =>
    Effect.gen(function* () {
      const lease = yield* store.lock(root)
      yield* Effect.forEach(
        Array.from({ length: 8 }, (_, writer) => writer),
        (writer) => lease.append([0, 1, 2].map((at) => said(`${writer}/${at}`))),
        { concurrency: "unbounded", discard: true }
      )
      const ids = (yield* store.load(root)).entries.map(({ entry }) =>
        entry._tag === "MessageReceived" ? entry.message.id : "?"
      )
      const isWhole = ids.every((id, index) => id === `${ids[index - (index % 3)]?.split("/")[0]}/${index % 3}`)
      yield* expect(ids.length === 24, `Of 24 entries that 8 fibers appended, ${ids.length} are there.`)
      yield* expect(isWhole, `Appends of several fibers are mixed up: ${ids.join(", ")}.`)
    }),
  "gives a session to one process at a time, and says to which": (open, store) =>
    Effect.gen(function* () {
      const second = yield* open(there)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const lease = yield* store.lock(root)
          yield* lease.append([opened()])
          const error = yield* Effect.either(Effect.scoped(second.lock(root)))
          yield* expect(
            Either.isLeft(error) && error.left._tag === "SessionLocked" && error.left.holder.pid === here.pid,
            "Two processes had the lease of one session, or the second was not told who has it."
          )
          yield* expectFailure(second.delete(root), "SessionLocked", "A session that a process runs was deleted")
        })
      )
      yield* Effect.catchAll(
        Effect.scoped(second.lock(root)),
        () => new StoreBroken({ sentence: "The lease did not end with its scope: nobody else gets it." })
      )
    }),
  "gives the session of a silent process to another, and takes nothing more from the first": (open, store) =>
    Effect.gen(function* () {
      const { end, lease } = yield* lockAndStall(store)
      yield* lease.append([opened()])
      const second = yield* open(there)
      yield* TestClock.adjust(SessionLease.silentAfter - 1)
      const early = "A session was taken over from a process that was silent for less than 15 seconds"
      yield* expectFailure(Effect.scoped(second.lock(root)), "SessionLocked", early)
      yield* TestClock.adjust(1)
      const next = yield* Effect.catchTag(
        second.lock(root),
        "SessionLocked",
        () => new StoreBroken({ sentence: "A process that was silent for 15 seconds keeps its session for ever." })
      )
      const late = "A process wrote to a session that another had taken over"
      yield* expectFailure(lease.append([said("late")]), "SessionTakenOver", late)
      yield* next.append([said("a")])
      yield* end
      const stolen = "The end of a process that had lost its lease took the lease of the next one away"
      yield* expectFailure(Effect.scoped(store.lock(root)), "SessionLocked", stolen)
      yield* expectEntries(store, [opened(), said("a")], "after a take-over")
    }),
  "keeps the first answer that fits, and no secret": (_, store) =>
    Effect.gen(function* () {
      const nobody = "An answer was taken for a request that nobody made"
      yield* expectFailure(store.answer(requestId, 1, "ann"), "AnswerRefused", nobody)
      yield* write(store, opened(), raised())
      const misfit = "An answer was taken that does not fit its request"
      yield* expectFailure(store.answer(requestId, 7, "ann"), "AnswerRefused", misfit)
      yield* store.answer(requestId, 1, "ann")
      yield* expectFailure(store.answer(requestId, 0, "bob"), "AnswerRefused", "A second answer was taken")
      const kept = (yield* store.load(root)).answers.map(({ answer, by }) => `${String(answer)} by ${by}`)
      yield* expect(
        kept.join() === "1 by ann",
        `The first answer counts, 1 by ann, and here: ${kept.join(", ") || "none"}.`
      )
    }),
  "forgets an answer when its request is settled": (_, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), raised())
      yield* store.answer(requestId, 1, "ann")
      yield* write(store, said("a"))
      const { answers } = yield* store.load(root)
      yield* expect(answers.length === 1, "An answer was forgotten before its request was settled.")
      const settled = {
        _tag: "InteractionSettled" as const,
        requestId,
        status: "answered" as const,
        answer: 1,
        by: "ann"
      }
      yield* write(store, { sessionId: root, entry: settled })
      const left = (yield* store.load(root)).answers.length
      yield* expect(left === 0, "An answer stays in the store although its request is settled: it may hold a secret.")
    }),
  "refuses a secret as an answer": (_, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), raised(new Interaction.AuthPassword({ prompt: "Password?" })))
      yield* expectFailure(store.answer(requestId, "hunter22", "ann"), "AnswerRefused", "A password was kept")
    }),
  "loses no answer between a process that answers and one that resumes": (open, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), raised())
      const second = yield* open(there)
      const answering = yield* Effect.fork(Effect.isSuccess(store.answer(requestId, 1, "ann")))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* second.lock(root)
          const seen = (yield* second.load(root)).answers.length === 1
          // The lease is held until the answer has ended: once it were given back, an unseen answer might rightly be taken.
          const answered = yield* Fiber.join(answering)
          yield* expect(!answered || seen, "An answer was acknowledged, and the process that resumed did not see it.")
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* second.lock(root)
          yield* expectFailure(
            store.answer(requestId, 0, "bob"),
            "SessionLocked",
            "An answer was stored beside a process that runs the session"
          )
        })
      )
    }),
  "ends the lease of a process that stood still when an answer is stored": (open, store) =>
    Effect.gen(function* () {
      const { lease } = yield* lockAndStall(store)
      yield* lease.append([opened(), raised()])
      const second = yield* open(there)
      yield* TestClock.adjust(SessionLease.silentAfter)
      yield* second.answer(requestId, 1, "ann")
      const late = "A process that stood still went on without the answer that was stored meanwhile"
      yield* expectFailure(lease.append([said("late")]), "SessionTakenOver", late)
    }),
  "keeps sessions apart, whatever their names are": (_, store) =>
    Effect.gen(function* () {
      const names = ["sessions", "a", "a/0", "a/entries/0", "0", ":", "A"].map((name) => SessionId.make(name))
      for (const name of names) yield* write(store, opened(name), said(`first of ${name}`, name))
      for (const name of names) yield* write(store, said(`second of ${name}`, name))
      for (const name of names) {
        const { entries } = yield* store.load(name)
        const ids = entries.map(({ entry }) => (entry._tag === "MessageReceived" ? entry.message.id : ""))
        yield* expect(
          ids.join() === ["", `first of ${name}`, `second of ${name}`].join(),
          `The session ${name} has entries of another: ${ids.join(", ")}.`
        )
      }
    }),
  "deletes a session whole, and no other": (_, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), raised())
      yield* store.answer(requestId, 1, "ann")
      yield* write(store, opened(other), said("a", other))
      yield* store.delete(root)
      yield* expectFailure(store.load(root), "SessionUnknown", "A deleted session was loaded")
      const left = (yield* store.list).map(({ rootSessionId }) => rootSessionId)
      yield* expect(
        left.join() === other,
        `One session of two was deleted, and these are left: ${left.join(", ") || "none"}.`
      )
      yield* write(store, opened(), raised())
      const answers = (yield* store.load(root)).answers.length
      yield* expect(answers === 0, "The answers of a deleted session came back with a new one of its name.")
    }),
  "lists sessions and their open requests": (_, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(other), said("a", other))
      yield* TestClock.adjust("1 second")
      yield* write(store, opened(), said("b"), raised())
      const listed = (yield* store.list).map(({ entries, rootSessionId, state, title }) =>
        [rootSessionId, state, title, entries].join(" ")
      )
      const expected = [`${root} waiting words "b" 3`, `${other} idle words "a" 2`]
      yield* expect(
        listed.join("; ") === expected.join("; "),
        `The list must be, last used first: ${expected.join("; ")}. Here it is: ${listed.join("; ")}.`
      )
      const open = (yield* store.openRequests()).map(({ request, rootSessionId }) => [rootSessionId, request.requestId])
      yield* expect(
        open.join() === [root, requestId].join(),
        `What is open must be ${requestId} of ${root}, and here it is: ${open.map((one) => one.join(" ")).join("; ") || "nothing"}.`
      )
    }),
  "gives its list page by page": (_, store) =>
    Effect.gen(function* () {
      const names = Array.from({ length: 7 }, (_, at) => SessionId.make(`ses_${at}`))
      // Two and two in the same millisecond: their ids decide.
      for (const [at, name] of names.entries()) {
        yield* write(store, opened(name), said("a", name))
        if (at % 2 === 1) yield* TestClock.adjust("1 second")
      }
      const whole = "ses_6, ses_4, ses_5, ses_2, ses_3, ses_0, ses_1"
      const listed = idsIn(yield* store.list)
      yield* expect(listed === whole, `The list must be ${whole}: last used first, then by id. Here it is ${listed}.`)
      yield* expect(
        (yield* store.page({ limit: 7 })).next === undefined,
        "A page with the last session must have no `next`: nothing follows."
      )
      for (const limit of [1, 2, 3, 6, 7, 8, Infinity]) {
        const pages = yield* pagesOf(store, { limit })
        const [sizes, ids] = [
          pages.map(({ sessions }) => sessions.length),
          pages.map(({ sessions }) => idsIn(sessions))
        ]
        yield* expect(
          ids.join(", ") === whole && sizes.slice(0, -1).every((size) => size === limit),
          `Pages of ${limit} must make up the list, each full but for the last. Here they are: ${ids.join(" | ")}.`
        )
      }
      const { next } = yield* store.page({ limit: 3 })
      yield* store.delete(SessionId.make("ses_5"))
      yield* write(store, said("b", SessionId.make("ses_0")))
      const rest = idsIn((yield* store.page({ after: next })).sessions)
      yield* expect(
        rest === "ses_2, ses_3, ses_1",
        `Behind ses_5, which is deleted, come ses_2, ses_3 and ses_1, as ses_0 was used since. Here it is ${rest}.`
      )
    }),
  "filters its list": (_, store) =>
    Effect.gen(function* () {
      const [own, free, odd] = [SessionId.make("ses_own"), SessionId.make("ses_free"), SessionId.make("%_")]
      const place = '/home/ann/a "quoted" \\ place/ä'
      yield* write(store, opened(root, "/elsewhere"), said("a"), raised())
      yield* TestClock.adjust("1 second")
      yield* write(store, opened(own, place), said("a", own), raised(undefined, own), closed(own))
      yield* TestClock.adjust("1 second")
      yield* write(store, opened(free), said('"workspace":"/elsewhere","open":[],"lastActivity":1', free))
      yield* TestClock.adjust("1 second")
      yield* write(store, opened(odd, place), said("a", odd))
      const all = "%_, ses_free, ses_own, ses_checked"
      const asked: ReadonlyArray<readonly [SessionStore.Query, string]> = [
        [{}, all],
        [{ limit: 0 }, "%_"],
        [{ workspace: place }, "%_, ses_free, ses_own"],
        [{ workspace: place, limit: 2 }, "%_, ses_free"],
        [{ workspace: "/elsewhere" }, "ses_free, ses_checked"],
        [{ workspace: "" }, "ses_free"],
        [{ prefix: "ses_" }, "ses_free, ses_own, ses_checked"],
        [{ prefix: "ses_o" }, "ses_own"],
        [{ prefix: "%" }, "%_"],
        [{ prefix: "SES" }, ""],
        [{ prefix: "", id: own }, "ses_own"],
        [{ id: SessionId.make("ses_ow") }, ""],
        [{ id: own, workspace: "/elsewhere" }, ""],
        [{ waiting: true }, "ses_checked"],
        [{ waiting: false }, all],
        [{ waiting: true, workspace: place }, ""],
        [{ after: { lastActivity: 2_000, rootSessionId: free } }, "ses_own, ses_checked"],
        [{ after: { lastActivity: 2_000, rootSessionId: SessionId.make("a") } }, "ses_free, ses_own, ses_checked"],
        [{ after: { lastActivity: 2_000, rootSessionId: free }, workspace: place }, "ses_own"],
        [{ after: { lastActivity: 2_000, rootSessionId: free }, prefix: "ses_c" }, "ses_checked"],
        [{ after: { lastActivity: 0, rootSessionId: SessionId.make("z") } }, ""]
      ]
      for (const [query, expected] of asked) {
        const found = idsIn((yield* store.page(query)).sessions)
        yield* expect(
          found === expected,
          `A page of ${JSON.stringify(query)} must have ${expected || "nothing"}. Here it has ${found || "nothing"}.`
        )
      }
    }),
  "returns the entries behind an entry of a session": (_, store) =>
    Effect.gen(function* () {
      yield* expectFailure(store.read(root), "SessionUnknown", "Entries of a session were read that there is not")
      yield* write(store, opened(), said("a"))
      yield* write(store, said("b"), said("c"))
      const asked: ReadonlyArray<readonly [SessionStore.Behind | undefined, string]> = [
        [undefined, "1, 2, 3, 4"],
        [{ after: 1 }, "2, 3, 4"],
        [{ after: 2, limit: 1 }, "3"],
        [{ after: 3, limit: 10 }, "4"],
        [{ after: 4 }, ""],
        [{ after: 9 }, ""],
        [{ limit: 3 }, "1, 2, 3"]
      ]
      for (const [behind, expected] of asked) {
        const found = (yield* store.read(root, behind)).map(({ seq }) => seq).join(", ")
        yield* expect(
          found === expected,
          `Entries of ${JSON.stringify(behind ?? {})} must be ${expected || "none"}. Here they are ${found || "none"}.`
        )
      }
    }),
  "gives the entries of all sessions from any place, also to the next process": (open, store) =>
    Effect.gen(function* () {
      const before = yield* store.end
      yield* write(store, opened(), said("a"))
      yield* write(store, opened(other))
      const middle = yield* store.end
      yield* write(store, said("b"))
      yield* write(store, said("c", other))
      const all = yield* placesOf(store, undefined)
      const expected = `${root} 1, ${root} 2, ${other} 1, ${root} 3, ${other} 2`
      yield* expect(all === expected, `All entries must be ${expected}. Here they are ${all || "none"}.`)
      const atFirst = yield* placesOf(store, before)
      yield* expect(atFirst === expected, `Behind the end of an empty store is all of it. Here it is ${atFirst}.`)
      const again = yield* open(there)
      const rest = yield* placesOf(again, middle)
      yield* expect(
        rest === `${root} 3, ${other} 2`,
        `Behind the middle are the last two entries. Here they are ${rest}.`
      )
      const [, second, third] = yield* store.readAll()
      for (const [one, what] of [
        [second, `${other} 1, ${root} 3, ${other} 2`],
        [third, `${root} 3, ${other} 2`]
      ] as const) {
        const found = yield* placesOf(again, one?.cursor)
        yield* expect(found === what, `Behind ${one?.cursor} must be ${what}, also after a restart. Here is ${found}.`)
      }
      const last = yield* again.end
      yield* expect((yield* again.readAll({ after: last })).length === 0, "The store returned entries behind the end.")
      for (const unknown of ["", "7", "a.b.c", last.replace(/\.\d+/, ".99999999999999")])
        yield* expectFailure(
          store.readAll({ after: SessionStore.Cursor.make(unknown) }),
          "CursorUnknown",
          `The store read on from an invalid place, ${JSON.stringify(unknown)}`
        )
    }),
  "gives no place of a deleted entry to another": (_, store) =>
    Effect.gen(function* () {
      yield* write(store, opened(), said("a"))
      yield* write(store, opened(other), said("b", other))
      const last = yield* store.end
      yield* store.delete(other)
      yield* write(store, said("c"))
      const found = yield* placesOf(store, last)
      yield* expect(
        found === `${root} 3`,
        `Behind the end is what comes after a deletion. Here it is ${found || "nothing"}.`
      )
      const left = yield* placesOf(store, undefined)
      yield* expect(
        left === `${root} 1, ${root} 2, ${root} 3`,
        `A deleted session leaves no entries. Here are ${left}.`
      )
    }),
  "tells who waits that something was appended, also by another process": (open, store) =>
    Effect.gen(function* () {
      const second = yield* open(there)
      yield* write(store, opened())
      const seen = yield* Effect.fork(Stream.runCollect(Stream.take(SessionStore.follow(second, yield* second.end), 2)))
      yield* write(store, said("a"))
      yield* write(second, opened(other))
      // Real time passes too: a store may have to go to a server and back.
      const pass = Effect.zipRight(TestClock.adjust("1 second"), TestServices.provideLive(Effect.sleep("5 millis")))
      yield* Effect.repeat(pass, { until: () => Effect.map(Fiber.poll(seen), Option.isSome), times: 1_000 })
      yield* expect(Option.isSome(yield* Fiber.poll(seen)), "A reader that waits does not hear of two appends.")
      const found = [...(yield* Fiber.join(seen))].map(({ rootSessionId }) => rootSessionId).join(", ")
      yield* expect(found === `${root}, ${other}`, `Both appends must be heard of. Here they are: ${found}.`)
    }),
  "finds a request, and how it ended": (_, store) =>
    Effect.gen(function* () {
      yield* expect((yield* store.findRequest(requestId)) === undefined, "A request was found that nobody made.")
      yield* write(store, opened(), raised())
      const open = yield* store.findRequest(requestId)
      yield* expect(
        open?.rootSessionId === root && open.request.requestId === requestId && open.settled === undefined,
        "An open request must be found, with its session and without an end."
      )
      yield* write(store, {
        sessionId: root,
        entry: { _tag: "InteractionSettled", requestId, status: "answered", answer: 1, by: "ann" }
      })
      const by = (yield* store.findRequest(requestId))?.settled?.by
      yield* expect(by === "ann", `ann answered the request, and here it was ${by}.`)
    }),
  ...ContentContract.checks
}

/** The entries behind a place, read two at a time. */
const placesOf = (store: SessionStore.Service, after: SessionStore.Cursor | undefined) =>
  Effect.gen(function* () {
    const found: Array<string> = []
    let place = after
    for (;;) {
      const some: ReadonlyArray<SessionStore.Appended> = yield* store.readAll({ after: place, limit: 2 })
      const last = some.at(-1)
      if (last === undefined) return found.join(", ")
      place = last.cursor
      for (const { rootSessionId, written } of some)
        found.push(`${rootSessionId} ${Either.match(written, { onLeft: () => "damaged", onRight: ({ seq }) => seq })}`)
    }
  })

const idsIn = (sessions: ReadonlyArray<{ readonly rootSessionId: SessionId }>): string =>
  sessions.map(({ rootSessionId }) => rootSessionId).join(", ")

/** All pages of a query, one after the other. A store whose pages do not end is stopped. */
const pagesOf = (store: SessionStore.Service, query: SessionStore.Query) =>
  Effect.gen(function* () {
    const pages: Array<SessionStore.Page> = []
    let after: SessionStore.Place | undefined
    do {
      const page: SessionStore.Page = yield* store.page({ ...query, after })
      pages.push(page)
      after = page.next
    } while (after !== undefined && pages.length < 20)
    return pages
  })
