/**
 * An agent whose process dies at every write of its journal, one run for each, and goes on in another process:
 *
 * ```ts
 * import { CrashTest, TestAgent } from "assent/testing"
 * import { Tool, Toolkit } from "@effect/ai"
 * import { assert, it } from "@effect/vitest"
 * import * as Effect from "effect/Effect"
 *
 * const toolkit = Toolkit.make(Tool.make("deploy"))
 * const handlers = toolkit.toLayer({ deploy: () => Effect.void })
 * const script = [{ tools: [{ name: "deploy" }] }, { text: "Done." }]
 *
 * it.effect("deploys once, whenever its process dies", () =>
 *   Effect.map(CrashTest.everywhere("deploy"), (lives) => lives.forEach(({ end }) => assert.strictEqual(end._tag, "Completed"))).pipe(
 *     Effect.provide(TestAgent.layer({ toolkit, script, person: () => "y" })),
 *     Effect.provide(handlers)
 *   )
 * )
 * ```
 *
 * A dead process writes nothing more and tidies nothing up. Count in a handler what must not happen twice.
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { SessionId } from "../core/Id.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type * as Interactor from "../interaction/Interactor.js"
import * as SessionStore from "../journal/SessionStore.js"
import * as Agent from "../runtime/Agent.js"
import type * as AgentRuntime from "../runtime/AgentRuntime.js"
import * as Persistence from "../runtime/Persistence.js"

/**
 * The result of one run.
 *
 * @since 0.1.0
 * @category models
 */
export interface Life {
  /** The number of the write at which the first process died, from 1. Absent if the process lived to the end. */
  readonly diedAt: number | undefined
  /** True if that write reached the store. */
  readonly written: boolean
  /** The final end of the turn. */
  readonly end: TurnEnd
  /** The whole session in the store. */
  readonly loaded: SessionStore.Loaded
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Sends these words to an agent whose process dies before or after one of its writes, once for each write. Yields the
 * runs in order. The last run dies nowhere. Each run has its own session in memory. It never fails; a broken store or
 * agent is a defect.
 *
 * @since 0.1.0
 * @category operations
 */
export const everywhere = (
  words: string,
  options: Omit<Agent.Plain, "persistence"> = {}
): Effect.Effect<ReadonlyArray<Life>, never, AgentRuntime.AgentRuntime | Interactor.Interactor> =>
  Effect.gen(function* () {
    const lives: Array<Life> = []
    for (let at = 1; ; at++) {
      for (const written of [false, true]) {
        const life = yield* Effect.orDie(run(words, options, { at, written }))
        lives.push(life)
        if (life.diedAt === undefined) return lives
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Death {
  readonly at: number
  readonly written: boolean
}

const run = (words: string, options: Omit<Agent.Plain, "persistence">, death: Death) =>
  Effect.gen(function* () {
    const open = yield* SessionStore.makeMemory
    const storeOf = (pid: number) => open({ pid, host: "here", isAlive: () => false })
    const first = yield* live(mortal(storeOf(1), death), words, options, undefined)
    const last = first.end === undefined ? yield* live(immortal(storeOf(2)), words, options, first.id) : first
    if (last.end === undefined) return yield* Effect.dieMessage("A process that does not die ended without an end.")
    return {
      diedAt: first.end === undefined ? death.at : undefined,
      written: first.end !== undefined || death.written,
      end: last.end,
      loaded: yield* storeOf(3).load(last.id)
    }
  })

/** A store, and what is completed when its process dies. */
interface MortalStore {
  readonly store: SessionStore.Service
  readonly died: Effect.Effect<void>
}

const immortal = (store: SessionStore.Service): MortalStore => ({ store, died: Effect.never })

/** From the fatal write on nothing returns. */
const mortal = (store: SessionStore.Service, { at, written }: Death): MortalStore => {
  const over = Deferred.unsafeMake<void>(FiberId.none)
  let writes = 0
  const dying = (append: Effect.Effect<void, unknown>) =>
    Effect.zipRight(Effect.ignore(append), Effect.zipRight(Deferred.succeed(over, undefined), Effect.never))
  return {
    died: Deferred.await(over),
    store: {
      ...store,
      lock: (id) =>
        Effect.map(store.lock(id), (lease) => ({
          ...lease,
          append: (drafts) =>
            Effect.suspend(() => {
              writes++
              if (writes > at) return Effect.never
              return writes < at ? lease.append(drafts) : dying(written ? lease.append(drafts) : Effect.void)
            })
        }))
    }
  }
}

/** Until the agent is idle, or its process is dead; then its scope stays open, as nobody is left to close it. */
const live = (
  { died, store }: MortalStore,
  words: string,
  options: Omit<Agent.Plain, "persistence">,
  id: SessionId | undefined
) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const isKnown = id !== undefined && (yield* store.list).some(({ rootSessionId }) => rootSessionId === id)
    const persistence = yield* Scope.extend(isKnown ? Persistence.resume(store, id) : Persistence.begin(store), scope)
    const agent = yield* Scope.extend(Agent.start({ ...options, persistence }), scope)
    // Words that were kept before are not read again.
    const said = Effect.catchTag(agent.send(words, { id: "words" }), "MessageAlreadyTaken", () => Effect.void)
    const driving = yield* Effect.forkDaemon(
      Effect.zipRight(
        said,
        Effect.flatMap(agent.awaitIdle, (end) => Effect.as(Scope.close(scope, Exit.void), end))
      )
    )
    const end = yield* Effect.raceFirst(Fiber.join(driving), Effect.as(died, Option.none<TurnEnd>()))
    return { id: persistence.rootSessionId, end: Option.getOrUndefined(end) }
  })
