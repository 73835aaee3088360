/**
 * Assent as an agent of the Agent Client Protocol: an editor begins sessions in a host, goes on with stored ones, and
 * answers what they ask. A session ends with the connection and stays in its store.
 */
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Refusal, ShownSession, ShownSessions } from "../host/SessionHandle.js"
import { version } from "../host/Version.js"
import * as AcpConnection from "../foreign/AcpConnection.js"
import * as AcpFiles from "./AcpFiles.js"
import * as AcpPrompt from "./AcpPrompt.js"
import * as AcpServers from "./AcpServers.js"
import * as AcpSession from "./AcpSession.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Options of an agent for editors. */
export interface Options {
  readonly host: ShownSessions
  /** The person at the editor, as the system names them. */
  readonly principal: string
  /** Said once when a session begins, such as how files of a workspace come to count. Default: nothing. */
  readonly greeting?: ((live: ShownSession) => Effect.Effect<string | undefined>) | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Serves one editor until it leaves, then closes the sessions that it has begun. */
export const serve = (
  pipes: AcpConnection.Pipes,
  { host, principal }: Options
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const sessions = new Map<string, Opened>()
    let capabilities: AcpConnection.ClientCapabilities = {}

    const leave = (id: string) =>
      Effect.suspend(() => {
        const opened = sessions.get(id)
        sessions.delete(id)
        return opened === undefined ? Effect.void : Scope.close(opened.scope, Exit.void)
      })

    /** Shows a live session to the editor; what happens in it follows the answer to the request. */
    const show = (
      client: AcpConnection.Client,
      live: ShownSession,
      past: "all" | "nothing",
      { editor, remarks }: Given
    ) =>
      Effect.gen(function* () {
        yield* leave(live.id)
        const session = yield* AcpSession.open(
          live,
          {
            client,
            principal,
            has: { forms: capabilities.elicitation?.form != null, urls: capabilities.elicitation?.url != null },
            shows: {
              notices: capabilities.session?.notices != null,
              compaction: capabilities.session?.compaction != null
            }
          },
          past
        )
        const own = yield* Scope.fork(scope, ExecutionStrategy.sequential)
        sessions.set(live.id, { session, scope: own })
        const { readTextFile: reads = false, writeTextFile: writes = false } = capabilities.fs ?? {}
        const detach = AcpFiles.of(live.agent, editor).attach({ client, sessionId: live.id, reads, writes })
        yield* Scope.addFinalizer(own, Effect.sync(detach))
        yield* AcpConnection.afterAnswer.pipe(
          Effect.zipRight(session.begin),
          Effect.zipRight(Effect.forEach(remarks, session.say, { discard: true })),
          Effect.zipRight(Effect.forkScoped(Stream.runForEach(live.remarks ?? Stream.empty, session.say))),
          Effect.zipRight(live.closed),
          Effect.zipRight(Effect.sync(() => sessions.get(live.id)?.session === session && sessions.delete(live.id))),
          Scope.extend(own),
          Effect.forkIn(own)
        )
        return { configOptions: yield* session.options }
      })

    const known = (id: string) =>
      Effect.suspend(() => {
        const opened = sessions.get(id)
        return opened === undefined ? Effect.fail(AcpConnection.unknownSession(id)) : Effect.succeed(opened.session)
      })

    const goOn =
      (client: AcpConnection.Client, past: "all" | "nothing") =>
      ({ additionalDirectories, cwd, mcpServers = [], sessionId }: AcpConnection.ResumeSessionRequest) =>
        Effect.gen(function* () {
          const addDirs = yield* directories(additionalDirectories)
          const { remarks, servers } = yield* serversOf(mcpServers, host.isHere)
          const editor = new AcpFiles.AcpFiles()
          const live = yield* refusing(sessionId, host.open(sessionId, { workspace: cwd, addDirs, servers, editor }))
          return yield* show(client, live, past, { editor, remarks })
        })

    yield* AcpConnection.serve(pipes, (client) => ({
      initialize: ({ clientCapabilities }) =>
        Effect.sync(() => {
          capabilities = clientCapabilities ?? {}
          return {
            protocolVersion: 1,
            agentInfo: { name: "assent", title: "Assent", version },
            agentCapabilities: {
              loadSession: true,
              mcpCapabilities: { http: true, sse: false },
              promptCapabilities: { image: true, embeddedContext: true },
              sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {}, additionalDirectories: {} }
            },
            authMethods: []
          }
        }),
      authenticate: () =>
        Effect.fail(
          AcpConnection.refused("Assent takes keys from its environment. Set one there, and start it again.")
        ),
      new: ({ additionalDirectories, cwd, mcpServers }) =>
        Effect.gen(function* () {
          const addDirs = yield* directories(additionalDirectories)
          const { remarks, servers } = yield* serversOf(mcpServers, host.isHere)
          const editor = new AcpFiles.AcpFiles()
          const live = yield* refusing("", host.create({ workspace: cwd, addDirs, servers, editor }))
          return { sessionId: live.id, ...(yield* show(client, live, "nothing", { editor, remarks })) }
        }),
      load: goOn(client, "all"),
      resume: goOn(client, "nothing"),
      list: ({ cursor, cwd }) =>
        Effect.gen(function* () {
          const page = yield* refusing(
            "",
            host.list({ workspace: cwd ?? undefined, after: cursor ?? undefined, limit: pageSize })
          )
          return {
            sessions: page.sessions.map(({ id, lastActivity, title, workspace }) => ({
              sessionId: id,
              cwd: workspace ?? "/",
              title: title === "" ? null : title,
              updatedAt: new Date(lastActivity).toISOString()
            })),
            nextCursor: page.next ?? null
          }
        }),
      close: ({ sessionId }) => Effect.zipRight(leave(sessionId), host.close(sessionId)),
      delete: ({ sessionId }) => refusing(sessionId, host.delete(sessionId)),
      setConfigOption: ({ configId, sessionId, value }) =>
        Effect.gen(function* () {
          const session = yield* known(sessionId)
          return { configOptions: yield* session.setOption(configId, value) }
        }),
      prompt: ({ prompt, sessionId }) =>
        Effect.gen(function* () {
          const session = yield* known(sessionId)
          return yield* session.prompt(yield* AcpPrompt.toInput(prompt))
        }),
      cancel: ({ sessionId }) => Effect.ignore(Effect.flatMap(known(sessionId), ({ cancel }) => cancel))
    }))
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Opened {
  readonly session: AcpSession.AcpSession
  readonly scope: Scope.CloseableScope
}

/** What an editor brings to a session. */
interface Given {
  readonly editor: AcpFiles.AcpFiles
  readonly remarks: ReadonlyArray<string>
}

const serversOf = (given: ReadonlyArray<AcpConnection.McpServer>, isHere: boolean) =>
  isHere
    ? Effect.mapError(AcpServers.of(given), AcpConnection.invalid)
    : Effect.succeed({ servers: {}, remarks: given.length === 0 ? [] : [notHere] })

const notHere = "The editor's tool servers are not used: another process runs this session. Configure them there."

/** Sessions that one page lists. */
const pageSize = 100

const directories = (
  given: ReadonlyArray<string> = []
): Effect.Effect<ReadonlyArray<string>, AcpConnection.ProtocolError> =>
  given.every((directory) => directory.startsWith("/"))
    ? Effect.succeed(given)
    : Effect.fail(AcpConnection.invalid("Further directories need absolute paths."))

/** Why a session is not opened, in the codes of the protocol. */
const refusing = <A>(id: string, effect: Effect.Effect<A, Refusal>): Effect.Effect<A, AcpConnection.ProtocolError> =>
  Effect.mapError(effect, (failure) => {
    switch (failure._tag) {
      case "NotFound":
      case "SessionUnknown":
      case "SessionIdInvalid":
        return AcpConnection.unknownSession(id)
      case "CursorUnknown":
      case "WorkspaceRefused":
      case "SessionElsewhere":
        return AcpConnection.invalid(failure.message)
      case "ModelRefused":
        return AcpConnection.signInNeeded(failure.message)
      default:
        return AcpConnection.refused(failure.message)
    }
  })
