import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type * as JournalEntry from "../../src/journal/JournalEntry.js"
import * as SessionSnapshot from "../../src/journal/SessionSnapshot.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import type * as TestInteractor from "../../src/testing/TestInteractor.js"
import { allowAll } from "../kit/agents.js"
import * as ServerKit from "../kit/ServerKit.js"

const script = [{ tools: [{ name: "mcp__modern__deploy", params: { to: "prod" } }] }, { text: "done" }]

/** An agent with a server process of its own. */
const started = (log: string, persistence: Persistence.Persistence, person?: TestInteractor.Script) =>
  Effect.gen(function* () {
    const server = yield* ServerKit.started(ServerKit.modernSettings(log))
    return yield* Effect.provide(
      TestAgent.start({ persistence }),
      TestAgent.layer({ toolkit: Toolkit.empty, servers: [server], script, person, policy: allowAll })
    )
  })

const withLog = <A, E, R>(test: (log: string) => Effect.Effect<A, E, R>) =>
  Effect.suspend(() => test(join(mkdtempSync(join(tmpdir(), "assent-mcp-")), "log"))).pipe(
    Effect.scoped,
    Effect.provide(NodeContext.layer)
  )

const store = Effect.map(SessionStore.makeMemory, (open) => ({
  first: open({ pid: 1, host: "here", isAlive: () => false }),
  second: open({ pid: 2, host: "here", isAlive: () => false })
}))

const deployed = 'prod state of prod {"action":"accept","content":{"region":"eu"}}'

describe("a question within the result of a call", () => {
  it.live(
    "survives its process: it is open again under its id, and its answer goes to a fresh connection once",
    () =>
      withLog((log) =>
        Effect.gen(function* () {
          const { first, second } = yield* store
          const dying = yield* Scope.make()
          const persistence = yield* Scope.extend(Persistence.begin(first), dying)
          const before = yield* Scope.extend(started(log, persistence), dying)
          const running = yield* Effect.forkDaemon(before.agent.run("go"))
          const asked = yield* before.person.next
          assert.strictEqual(
            ServerKit.worded(asked),
            "Elicit The server modern asks: Which region for prod? of the server modern"
          )
          assert.notInclude(JSON.stringify(asked), "state of prod")
          yield* persistence.journal.freeze

          const again = yield* Persistence.resume(second, persistence.rootSessionId)
          const after = yield* started(log, again, ["eu"])
          yield* after.agent.awaitIdle
          assert.deepStrictEqual(
            (yield* after.person.shown).map(({ requestId }) => requestId),
            [asked.requestId]
          )
          assert.deepStrictEqual(ServerKit.resultsOf(yield* after.events), [
            `succeeded <foreign-text source="mcp:modern">\n${deployed}\n</foreign-text>`
          ])
          assert.strictEqual(readFileSync(log, "utf8"), `${deployed}\n`)
          yield* Fiber.interrupt(running)
          yield* Scope.close(dying, Exit.void)
        })
      ),
    { timeout: 60_000 }
  )

  it.live(
    "is over with its answer: a process that dies behind it leaves an unknown effect",
    () =>
      withLog((log) =>
        Effect.gen(function* () {
          const { first } = yield* store
          const persistence = yield* Persistence.begin(first)
          const { agent } = yield* started(log, persistence, ["eu"])
          yield* agent.run("go")
          yield* persistence.journal.flush
          const loaded = yield* first.load(persistence.rootSessionId)
          /** What a call can go on with, if its process died behind the first entry of this kind. */
          const left = (tag: JournalEntry.JournalEntry["_tag"]) => {
            const end = loaded.entries.findIndex(({ entry }) => entry._tag === tag) + 1
            const [session] = SessionSnapshot.fold(loaded.entries.slice(0, end)).sessions
            return session?.batch?.calls.map(({ continuation }) =>
              continuation?.continuation?.includes("state of prod")
            )
          }
          assert.deepStrictEqual(left("InteractionRaised"), [true])
          assert.deepStrictEqual(left("InteractionSettled"), [undefined])
        })
      ),
    { timeout: 60_000 }
  )
})
