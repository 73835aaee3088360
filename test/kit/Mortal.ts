/**
 * A process that dies while it writes: from a chosen write on its store never returns, and unfinished work stays
 * undone. The next process finds what was written.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Id from "../../src/core/Id.js"
import type { SessionId } from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import type { InteractionRequest } from "../../src/interaction/InteractionRequest.js"
import type { PolicyInvalid } from "../../src/permission/Policy.js"
import type * as Agent from "../../src/runtime/Agent.js"
import type * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as Persistence from "../../src/runtime/Persistence.js"
import type { AgentUnknown } from "../../src/session/Interjection.js"
import type { Process } from "../../src/journal/SessionLease.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"

/** When a process dies: at this write, counted from 1, which is still made, or not. */
export interface Death {
  readonly at: number
  readonly written: boolean
}

/** The state that outlives the processes. */
export interface CallerContext {
  /** The store as a process of this number sees it; those before it are dead. */
  readonly open: (pid: number) => Effect.Effect<SessionStore.Service>
  processes: number
  /** It answers in real time. */
  readonly isSlow?: true
  id: SessionId | undefined
}

export const world: Effect.Effect<CallerContext> = Effect.map(SessionStore.makeMemory, (open) => ({
  open: (pid) => Effect.succeed(open({ pid, host: "here", isAlive: () => false })),
  processes: 0,
  id: undefined
}))

/** A world with this store, which each process opens for itself; the scope closes what the dead left open. */
export const worldOf = (
  make: (process: Process) => Effect.Effect<SessionStore.Service, unknown, Scope.Scope>
): Effect.Effect<CallerContext, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const opened = new Map<number, SessionStore.Service>()
    return {
      open: (pid) => {
        const known = opened.get(pid)
        if (known !== undefined) return Effect.succeed(known)
        return Effect.orDie(Scope.extend(make({ pid, host: "here", isAlive: () => false }), scope)).pipe(
          Effect.tap((store) => opened.set(pid, store))
        )
      },
      processes: 0,
      isSlow: true,
      id: undefined
    }
  })

export interface Options {
  /** What its agent runs in, with ids of its own. */
  readonly runtime: (ids: Layer.Layer<Id.IdGenerator>) => Layer.Layer<AgentRuntime.AgentRuntime, PolicyInvalid>
  readonly person: (request: InteractionRequest) => TestInteractor.Step
  /** What that person is, where rules name roles. */
  readonly roles?: ReadonlyArray<string> | undefined
}

/** The result of an ended process. */
export interface Life {
  readonly died: boolean
  /** Writes that it made or died in. */
  readonly writes: number
  readonly events: ReadonlyArray<AgentEvent>
  readonly shown: ReadonlyArray<InteractionRequest>
  readonly agent: Agent.Agent
}

/** A store whose process dies in one of its writes: then no write returns any more. */
export const mortal = (
  whole: SessionStore.Service,
  death: Death | undefined,
  died: () => void
): { readonly store: SessionStore.Service; readonly writes: () => number } => {
  let writes = 0
  const lock: SessionStore.Service["lock"] = (id) =>
    Effect.map(whole.lock(id), (lease) => ({
      ...lease,
      append: (drafts) =>
        Effect.suspend(() => {
          if (death !== undefined && writes >= death.at) return Effect.never
          writes++
          if (writes !== death?.at) return lease.append(drafts)
          died()
          return Effect.zipRight(death.written ? lease.append(drafts) : Effect.void, Effect.never)
        })
    }))
  return { store: { ...whole, lock }, writes: () => writes }
}

/** Lives until `drive` is done with the agent, or the process dies. After that none of its fibers runs. */
export const live = (
  world: CallerContext,
  { person, roles, runtime }: Options,
  drive: (
    agent: Agent.Agent,
    restored: Persistence.Persistence["restored"]
  ) => Effect.Effect<unknown, Agent.NotTaken | AgentUnknown>,
  death?: Death
): Effect.Effect<Life> =>
  Effect.gen(function* () {
    const pid = ++world.processes
    // A dead process closes nothing.
    const scope = yield* Scope.make()
    const over = Deferred.unsafeMake<boolean>(FiberId.none)
    const { store, writes } = mortal(yield* world.open(pid), death, () =>
      Deferred.unsafeDone(over, Effect.succeed(true))
    )
    let count = 0
    const ids = Layer.succeed(Id.IdGenerator, { unsafeNext: (prefix) => `${prefix}_${pid}.${++count}` })
    const built = Layer.merge(Layer.orDie(runtime(ids)), TestInteractor.layer({ script: person, roles }))
    const started = Effect.gen(function* () {
      const persistence = yield* world.id === undefined ? Persistence.begin(store) : Persistence.resume(store, world.id)
      world.id = persistence.rootSessionId
      const context = yield* Layer.build(built)
      const alive = yield* Effect.provide(TestAgent.start({ persistence }), context)
      return { ...alive, persistence }
    })
    const { agent, events, persistence, person: asked } = yield* Effect.orDie(Scope.extend(started, scope))
    const driving = Effect.zipRight(drive(agent, persistence.restored), persistence.journal.flush)
    yield* Effect.forkDaemon(Effect.intoDeferred(Effect.as(Effect.orDie(driving), false), over))
    const died = yield* Deferred.await(over)
    return { died, writes: writes(), events: yield* events, shown: yield* asked.shown, agent }
  })
