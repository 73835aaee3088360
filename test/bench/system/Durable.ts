/** Sessions on the disk: what it costs to write one down as it goes, and to go on with a long one. In time of the clock. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { CorrelationId, MessageId, SessionId } from "../../../src/core/Id.js"
import type * as Interactor from "../../../src/interaction/Interactor.js"
import * as Agent from "../../../src/runtime/Agent.js"
import type * as AgentRuntime from "../../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../../src/runtime/Persistence.js"
import * as JournalEntry from "../../../src/journal/JournalEntry.js"
import type * as SessionStore from "../../../src/journal/SessionStore.js"
import * as LibsqlStore from "../../../src/store/LibsqlStore.js"
import * as Prompt from "@effect/ai/Prompt"
import * as Workload from "../Workload.js"

/** What the agents run in, and what they have to come out at. */
export interface Bench {
  readonly context: Context.Context<AgentRuntime.AgentRuntime>
  readonly interactor: Interactor.Service
  /** Makes the counts new. */
  readonly reset: Effect.Effect<unknown>
  readonly completes: (agent: Agent.Agent) => Effect.Effect<void>
}

/** Turns of a kept agent, each as long as `completes` says. */
export const turns = (count: number, bench: Bench) =>
  Effect.map(opened, (store) =>
    clocked(
      count,
      Effect.gen(function* () {
        yield* bench.reset
        const scope = yield* Scope.make()
        const agent = yield* Scope.extend(started(bench, Persistence.begin(store)), scope)
        return { run: bench.completes(agent), over: Scope.close(scope, Exit.void) }
      })
    )
  )

/** Going on with a session of so many messages, until it could be spoken to. */
export const resume = (messages: number, bench: Bench) =>
  Effect.flatMap(opened, (store) =>
    Effect.map(Effect.orDie(seeded(store, messages)), (id) =>
      clocked(
        1_000,
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const run = Effect.flatMap(started(bench, Persistence.resume(store, id)), ({ history }) =>
            Workload.expect("messages", history.messages.filter(({ role }) => role !== "system").length, messages)
          )
          return { run: Scope.extend(run, scope), over: Scope.close(scope, Exit.void) }
        })
      )
    )
  )

/** One message more, and its answer, in a session of so many. */
export const append = (messages: number, bench: Bench) =>
  Effect.flatMap(opened, (store) =>
    Effect.map(Effect.orDie(seeded(store, messages)), (id) =>
      clocked(
        1,
        Effect.gen(function* () {
          yield* bench.reset
          const scope = yield* Scope.make()
          const agent = yield* Scope.extend(started(bench, Persistence.resume(store, id)), scope)
          return { run: bench.completes(agent), over: Scope.close(scope, Exit.void) }
        })
      )
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A store in a directory of its own. */
const opened: Effect.Effect<SessionStore.Service, never, Scope.Scope> = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "assent-bench-"))),
    (directory) => Effect.sync(() => fs.rmSync(directory, { recursive: true, force: true }))
  )
  const self = { pid: process.pid, host: "bench", isAlive: () => false }
  return yield* LibsqlStore.make({ file: path.join(directory, "sessions.db"), process: self })
}).pipe(Effect.provide(NodeContext.layer), Effect.orDie)

const started = <E>(
  { context, interactor }: Bench,
  persistence: Effect.Effect<Persistence.Persistence, E, Scope.Scope>
) =>
  Effect.flatMap(Effect.orDie(persistence), (persistence) =>
    Effect.orDie(Agent.startWith([interactor], { persistence }))
  ).pipe(Effect.provide(context))

/** Messages of a person, each answered. */
const seeded = (store: SessionStore.Service, messages: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const sessionId = `ses_${messages}` as SessionId
      const lease = yield* store.lock(sessionId)
      const entries: Array<JournalEntry.JournalEntry> = [
        {
          _tag: "SessionOpened",
          version: JournalEntry.version,
          sessionId,
          rootSessionId: sessionId,
          agent: "main",
          depth: 0,
          model: "bench/mock",
          instructions: ""
        }
      ]
      const text = "These are the words of one message, about as many as people say and models answer."
      for (let i = 0; i < messages / 2; i++) {
        const id = `msg_${i}` as MessageId
        const correlationId = `turn_${i}` as CorrelationId
        entries.push(
          { _tag: "MessageReceived", message: { id, source: "user", delivery: "steer", text, at: i } },
          { _tag: "MessageTaken", messageIds: [id], correlationId, step: 1 },
          { _tag: "AssistantAppended", content: [Prompt.textPart({ text })] },
          { _tag: "TurnEnded", correlationId, end: { _tag: "Completed", text, steps: 1 } }
        )
      }
      yield* lease.append(entries.map((entry) => ({ sessionId, entry })))
      return sessionId
    })
  )

/** The time that passes, disk and all; the figure is microseconds, or what that is in units. */
const clocked = (
  units: number,
  prepare: Effect.Effect<{ readonly run: Effect.Effect<void>; readonly over: Effect.Effect<void> }>
): Workload.Workload => ({
  sample: (budget) =>
    Effect.gen(function* () {
      let runs = 0
      let spent = 0
      while (runs === 0 || spent < budget) {
        const { over, run } = yield* prepare
        const start = performance.now()
        yield* run
        spent += performance.now() - start
        runs++
        yield* over
      }
      return { us: (spent * 1_000) / runs / units }
    })
})
