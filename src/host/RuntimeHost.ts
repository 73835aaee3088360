/**
 * A host for a program with a runtime of its own: its sessions have the program's model, tools and policy, and lie in one
 * store. It reads no settings and knows no workspaces; `Host` does both.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as AuditChain from "../audit/AuditChain.js"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as Jobs from "../builtin/Jobs.js"
import * as Id from "../core/Id.js"
import { SessionId } from "../core/Id.js"
import * as SessionFork from "../journal/SessionFork.js"
import * as SessionStore from "../journal/SessionStore.js"
import type { Listed } from "../journal/SessionSummary.js"
import * as Agent from "../runtime/Agent.js"
import * as AgentRuntime from "../runtime/AgentRuntime.js"
import * as Persistence from "../runtime/Persistence.js"
import * as Host from "./Host.js"
import * as HostError from "./HostError.js"
import * as SessionAudit from "./SessionAudit.js"
import * as ConfigurationInvalid from "./local/ConfigurationInvalid.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Closing the scope closes all sessions. They stay in the store. */
export const make = (
  store: SessionStore.Service,
  auditKey?: AuditChain.Key
): Effect.Effect<Host.Service, never, AgentRuntime.AgentRuntime | Scope.Scope> =>
  Effect.gen(function* () {
    const { audit, model, redactor } = yield* AgentRuntime.AgentRuntime
    const ids = yield* Id.IdGenerator
    const home = yield* Effect.runtime<AgentRuntime.AgentRuntime>()
    const jobs = Context.get(yield* Layer.build(Jobs.layer), Jobs.Jobs)
    const directory = new Host.Directory<AgentRuntime.AgentRuntime>(yield* Effect.scope)
    yield* Effect.addFinalizer(() => directory.closeAll)

    const setModel: Host.LiveSession["setModel"] = (named) =>
      new HostError.ModelRefused({
        model: named,
        message: `Sessions of this program have the model ${model.id}. Leave the model out.`
      })

    // It runs in the world of the host. Its scope is its own, so that its end leaves nothing.
    const begin = (
      id: SessionId,
      as: "begun" | "stored"
    ): Effect.Effect<Host.Begun, Host.OpenFailure, AgentRuntime.AgentRuntime | Scope.Scope> =>
      Effect.gen(function* () {
        const persistence =
          as === "stored"
            ? yield* Persistence.resume(store, id)
            : yield* Persistence.open(store, id, { model: model.id })
        const agent = yield* Agent.startWith([], { persistence, whenNobody: "wait" }).pipe(
          Effect.mapError(({ message }) => ConfigurationInvalid.make(message))
        )
        return {
          agent,
          jobs,
          redactor,
          setModel,
          trail: audit,
          review: (interactor) => interactor,
          files: { root: "/" },
          workspace: "",
          wantsTrust: false,
          models: [model.id]
        }
      })

    const opened = (id: string, as: "begun" | "stored") =>
      Host.isSessionId(id)
        ? directory.open(SessionId.make(id), home, begin(SessionId.make(id), as))
        : Effect.fail(new HostError.SessionIdInvalid({ id }))

    const refused = (workspace: string) => new HostError.WorkspaceRefused({ workspace, problem: "notPermitted" })

    const storedOf = (listed: Listed): Host.Stored => ({ ...listed, isLive: directory.has(listed.rootSessionId) })

    const find = (id: string) =>
      Effect.map(store.page({ id: SessionId.make(id), limit: 1 }), ({ sessions: [found] }) => found && storedOf(found))

    return {
      create: ({ id = Id.session(ids) }) => opened(id, "begun"),
      open: (id) => opened(id, "stored"),
      live: Effect.sync(() => directory.live),
      list: ({ after, limit = 100, prefix } = {}) =>
        Effect.map(store.page({ after, limit, prefix }), ({ sessions, ...rest }) => ({
          ...rest,
          sessions: sessions.map(storedOf),
          remarks: []
        })),
      stores: Effect.succeed([store]),
      find,
      fork: (id, { at, by }) =>
        Effect.gen(function* () {
          const rootSessionId = SessionId.make(id)
          const turns = SessionFork.turns(yield* store.load(rootSessionId))
          const fork = SessionFork.fork(store, rootSessionId, { at, by })
          const forked = yield* audit === undefined ? fork : Effect.provideService(fork, AuditTrail.AuditTrail, audit)
          return { forked, words: turns.find(({ number }) => number === forked.turn + 1)?.words ?? "" }
        }).pipe(Effect.scoped),
      audit: (id) =>
        store.audit === undefined
          ? Effect.succeed({
              verified: "unknown" as const,
              verdict: ["This program keeps its audit itself. Read it there."],
              records: [],
              before: 0
            })
          : // No file is read: the store has it.
            Effect.provide(
              SessionAudit.read(store.audit, SessionId.make(id), auditKey),
              Layer.merge(FileSystem.layerNoop({}), Path.layer)
            ),
      trust: refused,
      giveTrust: refused,
      close: (id) => directory.close(id),
      delete: (id) =>
        Effect.gen(function* () {
          const rootSessionId = SessionId.make(id)
          if (directory.has(id)) return yield* new HostError.SessionRunning({ rootSessionId })
          yield* store.delete(rootSessionId)
        }),
      start: () => ConfigurationInvalid.make("This program starts its agents by the id of their session.")
    }
  })
