/**
 * A connection that speaks the Agent Client Protocol, stable version 1, over two byte streams. This file alone knows the
 * protocol's SDK: handlers are Effects, requests to the other side end with the fiber that waits for them, and failures
 * are typed.
 */
import * as acp from "@agentclientprotocol/sdk"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Function from "effect/Function"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type * as Scope from "effect/Scope"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as EventLoop from "../internal/EventLoop.js"

export type {
  AgentCapabilities,
  AvailableCommand,
  ClientCapabilities,
  ContentBlock,
  Cost,
  CreateElicitationRequest,
  CreateElicitationResponse,
  InitializeRequest,
  InitializeResponse,
  ListSessionsResponse,
  LoadSessionRequest,
  McpServer,
  NewSessionRequest,
  NewSessionResponse,
  PermissionOption,
  PromptRequest,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ResumeSessionRequest,
  SessionConfigOption,
  SessionNotification,
  SessionUpdate,
  StopReason,
  ToolCallContent,
  ToolCallUpdate
} from "@agentclientprotocol/sdk"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** The bytes from the other side, and to it. */
export interface Pipes {
  readonly input: ReadableStream<Uint8Array>
  readonly output: WritableStream<Uint8Array>
}

/** What this agent asks of an editor. */
export interface Client {
  /**
   * Asks, and waits for the answer. An interrupt withdraws the request there. When the editor leaves, it waits on: its
   * scope ends, and to leave is no answer.
   */
  readonly request: <M extends acp.ClientRequestMethod>(
    method: M,
    params: acp.ClientRequestParamsByMethod[M]
  ) => Effect.Effect<acp.ClientRequestResponsesByMethod[M], ProtocolError>
  /** Returns when the line is written, so that a slow editor slows its sender. Does nothing once the editor has left. */
  readonly notify: <M extends acp.ClientNotificationMethod>(
    method: M,
    params: acp.ClientNotificationParamsByMethod[M]
  ) => Effect.Effect<void>
}

/** The requests of an editor that are answered. */
type Served =
  | "initialize"
  | "authenticate"
  | `session/${"new" | "load" | "resume" | "list" | "close" | "delete" | "set_config_option" | "prompt"}`

type Handler<P, A> = (params: P) => Effect.Effect<A, ProtocolError>

/** What an agent does for an editor, by method. */
export interface Handlers {
  readonly initialize: Handler<acp.InitializeRequest, acp.InitializeResponse>
  readonly authenticate: Handler<acp.AuthenticateRequest, void>
  readonly new: Handler<acp.NewSessionRequest, acp.NewSessionResponse>
  readonly load: Handler<acp.LoadSessionRequest, acp.LoadSessionResponse>
  readonly resume: Handler<acp.ResumeSessionRequest, acp.ResumeSessionResponse>
  readonly list: Handler<acp.ListSessionsRequest, acp.ListSessionsResponse>
  readonly close: Handler<acp.CloseSessionRequest, void>
  readonly delete: Handler<acp.DeleteSessionRequest, void>
  readonly setConfigOption: Handler<acp.SetSessionConfigOptionRequest, acp.SetSessionConfigOptionResponse>
  readonly prompt: Handler<acp.PromptRequest, acp.PromptResponse>
  readonly cancel: (params: acp.CancelNotification) => Effect.Effect<void>
}

/** What this program, as the client of an agent of others, asks of it. */
export interface Agent {
  readonly request: <M extends acp.AgentRequestMethod>(
    method: M,
    params: acp.AgentRequestParamsByMethod[M]
  ) => Effect.Effect<acp.AgentRequestResponsesByMethod[M], ProtocolError>
  readonly cancel: (sessionId: string) => Effect.Effect<void>
  /** Waits until the agent has left. */
  readonly closed: Effect.Effect<void>
}

/** What such an agent may ask and tell. */
export interface AgentHandlers {
  /** The parameters as they came. The SDK leaves out keys that it does not know, and members that it cannot read. */
  readonly permission: Handler<unknown, acp.RequestPermissionResponse>
  readonly elicitation: Handler<acp.CreateElicitationRequest, acp.CreateElicitationResponse>
  /** Updates come in their order, and as they came. */
  readonly update: (params: unknown) => void
}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/** The other side refused a request, or this side does. */
export class ProtocolError extends Schema.TaggedError<ProtocolError>("assent/foreign/ProtocolError")("ProtocolError", {
  /** Of JSON-RPC and of the protocol, such as -32602. */
  code: Schema.Int,
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/** The parameters are wrong. */
export const invalid = (reason: string): ProtocolError =>
  new ProtocolError({ code: -32602, reason: UntrustedJson.echo(reason, longest) })

/** It cannot be done here and now. */
export const refused = (reason: string): ProtocolError =>
  new ProtocolError({ code: -32603, reason: UntrustedJson.echo(reason, longest) })

/** There is no such session. */
export const unknownSession = (id: string): ProtocolError =>
  new ProtocolError({ code: -32002, reason: `No session has the id ${JSON.stringify(id.slice(0, 200))}.` })

/** A key or a sign-in is missing. */
export const signInNeeded = (reason: string): ProtocolError => new ProtocolError({ code: -32000, reason })

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Serves an editor until it leaves or the scope closes. Handlers of requests that wait by then are interrupted.
 *
 * Messages are handled in the order in which they arrive. No more are read than are handled, so a flood waits in the pipe.
 */
export const serve = (pipes: Pipes, make: (client: Client) => Handlers): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<never>()
    const app = acp.agent({ name: "assent" })
    const ends = yield* Effect.acquireRelease(
      Effect.sync(() => {
        // The handlers are made before the first message is read.
        let handlers: Handlers | undefined
        const answer =
          <P, A>(pick: (handlers: Handlers) => Handler<P, A>) =>
          ({ params, signal }: { readonly params: P; readonly signal: AbortSignal }): Promise<A> =>
            handlers === undefined
              ? Promise.reject(new acp.RequestError(-32603, "Not ready."))
              : settled(runtime, admit(pick(handlers)(params)), signal)
        const admit = limited()
        const served: Pick<acp.AgentRequestHandlersByMethod, Served> = {
          initialize: answer((of) => of.initialize),
          authenticate: answer((of) => of.authenticate),
          "session/new": answer((of) => of.new),
          "session/load": answer((of) => of.load),
          "session/resume": answer((of) => of.resume),
          "session/list": answer((of) => of.list),
          "session/close": answer((of) => of.close),
          "session/delete": answer((of) => of.delete),
          "session/set_config_option": answer((of) => of.setConfigOption),
          "session/prompt": answer((of) => of.prompt)
        }
        for (const method of Struct.keys(served)) app.onRequest(method, served[method])
        app
          .onNotification(acp.methods.agent.session.cancel, ({ params }) =>
            handlers === undefined ? undefined : Runtime.runPromise(runtime)(handlers.cancel(params))
          )
          .onConnect(({ client }) => {
            handlers = make(clientOf(client))
          })
        return app.connect(paced(pipes))
      }),
      (connection) => Effect.sync(() => connection.close())
    )
    yield* Effect.promise(() => ends.closed)
  })

/** Why a request failed that the agent did not answer before its end. */
export const ended = "The agent has ended."

/** Connects to an agent of others until the scope closes. */
export const connect = (pipes: Pipes, handlers: AgentHandlers): Effect.Effect<Agent, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<never>()
    const admit = limited()
    const { client } = acp.methods
    const connection = yield* Effect.acquireRelease(
      Effect.sync(() =>
        acp
          .client({ name: "assent" })
          .onRequest(client.session.requestPermission, Function.identity<unknown>, ({ params, signal }) =>
            settled(runtime, admit(handlers.permission(params)), signal)
          )
          .onRequest(client.elicitation.create, ({ params, signal }) =>
            settled(runtime, admit(handlers.elicitation(params)), signal)
          )
          .onNotification(client.session.update, Function.identity<unknown>, ({ params }) => handlers.update(params))
          .connect(paced(pipes))
      ),
      (connection) => Effect.sync(() => connection.close())
    )
    const gone = refused(ended)
    return {
      request: (method, params) =>
        Effect.tryPromise({
          try: (signal) => connection.agent.request(method, params, { cancellationSignal: signal }),
          catch: (error) => (error instanceof acp.RequestError ? errorOf(error) : gone)
        }),
      cancel: (sessionId) =>
        Effect.ignore(Effect.tryPromise(() => connection.agent.notify("session/cancel", { sessionId }))),
      closed: Effect.promise(() => connection.closed)
    }
  })

/** Waits until the answer to the request that is handled now has been written. */
export const afterAnswer: Effect.Effect<void> = Effect.zipRight(EventLoop.yieldToEventLoop, EventLoop.yieldToEventLoop)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Characters of a reason: it may quote what an editor sent. */
const longest = 2_000

/** Requests that one side may have under way at once. */
const most = 1_000

/** Refuses what comes beyond that. */
const limited = () => {
  let count = 0
  return <A>(effect: Effect.Effect<A, ProtocolError>): Effect.Effect<A, ProtocolError> =>
    Effect.suspend(() => {
      if (count >= most) return refused(`More than ${most} requests are under way. Wait for an answer.`)
      count++
      return Effect.ensuring(
        effect,
        Effect.sync(() => void count--)
      )
    })
}

const settled = async <A>(
  runtime: Runtime.Runtime<never>,
  effect: Effect.Effect<A, ProtocolError>,
  signal: AbortSignal
): Promise<A> => {
  const exit = await Runtime.runPromiseExit(runtime)(effect, { signal })
  if (Exit.isSuccess(exit)) return exit.value
  const failure = Cause.failureOrCause(exit.cause)
  if (Either.isLeft(failure)) throw new acp.RequestError(failure.left.code, failure.left.reason)
  if (Cause.isInterruptedOnly(failure.right)) throw acp.RequestError.requestCancelled()
  throw new acp.RequestError(-32603, `Assent has a defect: ${messageOf(Cause.squash(failure.right))}`)
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const clientOf = (context: acp.AgentContext): Client => ({
  request: (method, params) =>
    Effect.catchAll(
      Effect.tryPromise({
        try: (signal) => context.request(method, params, { cancellationSignal: signal }),
        catch: (error) => error
      }),
      (error) => (error instanceof acp.RequestError ? errorOf(error) : Effect.never)
    ),
  notify: (method, params) => Effect.ignore(Effect.tryPromise(() => context.notify(method, params)))
})

const errorOf = ({ code, message }: acp.RequestError): ProtocolError =>
  new ProtocolError({ code, reason: message.slice(0, 1_000) })

/**
 * Hands over one message a round of the event loop, and reads further bytes only when all before them were handed over.
 * The SDK looks through its handlers step by step, so that of two messages at once the later one could overtake.
 */
const paced = ({ input, output }: Pipes): acp.Stream => {
  const bytes = input.getReader()
  /** Resumes the reading of bytes; present while that waits. */
  let resume: (() => void) | undefined
  let isHungry = false
  const gated = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        if (!isHungry) await new Promise<void>((hungry) => (resume = hungry))
        const { done, value } = await bytes.read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: (reason) => bytes.cancel(reason)
    },
    { highWaterMark: 0 }
  )
  const { readable, writable } = acp.ndJsonStream(output, gated)
  const messages = readable.getReader()
  return {
    writable,
    readable: new ReadableStream<acp.AnyMessage>(
      {
        pull: async (controller) => {
          await new Promise<void>((round) => EventLoop.afterRound(round))
          isHungry = true
          resume?.()
          resume = undefined
          const { done, value } = await messages.read()
          isHungry = false
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: (reason) => messages.cancel(reason)
      },
      { highWaterMark: 0 }
    )
  }
}
