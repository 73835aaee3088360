/**
 * The HTTP API as a declaration, without Node: a browser can import it. `ApiHandlers` implements it over a host.
 *
 * @example
 * ```ts
 * import { FetchHttpClient, HttpApiClient } from "@effect/platform"
 * import { Api } from "assent/http"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const client = yield* HttpApiClient.make(Api.Api, { baseUrl: "http://127.0.0.1:4096" })
 *   return yield* client.requests.list({ urlParams: {} })
 * }).pipe(Effect.provide(FetchHttpClient.layer))
 * ```
 *
 * @since 0.1.0
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Words } from "../inbox/Message.js"
import * as Interaction from "../interaction/Interaction.js"

// -----------------------------------------------------------------------------------------------------------------
// who calls
// -----------------------------------------------------------------------------------------------------------------

/**
 * The person who calls, as the server knows them: by a token, or by its own sign-in. Their answers count as theirs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Person {
  readonly name: string
  /** Roles beside those of the policy, for calls that several people have to allow. */
  readonly roles?: ReadonlyArray<string> | undefined
  /**
   * Whose sessions they have: the others do not exist for them. Ids of these sessions begin with it and a dot. Letters in
   * lower case, digits, `-` and `_`. Default: they have all sessions of the server.
   */
  readonly tenant?: string | undefined
  /** What they may do. Default: everything. */
  readonly may?: ReadonlyArray<Permit> | undefined
  /** Of their tenant. Default: none. */
  readonly limits?: Limits | undefined
}

/**
 * What a caller may do: send words and begin sessions, answer requests, cancel requests and turns, read, change what is
 * permitted, which model answers and whether the session is kept, and read the metrics of the server.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Verb = Schema.Literal("send", "answer", "cancel", "read", "permissions", "operate")
export type Verb = typeof Verb.Type

/**
 * A verb, or the part of `answer` that is about one kind of request: `answer:Approve`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Permit = Schema.Union(
  Verb,
  Schema.Literal(...Struct.keys(Interaction.kinds).map((kind) => `answer:${kind}` as const))
)
export type Permit = typeof Permit.Type

/**
 * What a tenant may have at most. What is missing has no limit.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Limits = Schema.Struct({
  /** Kept sessions. */
  sessions: Schema.optional(Schema.NonNegativeInt),
  /** Sessions that work at once, those that wait for a person not counted. */
  turns: Schema.optional(Schema.NonNegativeInt),
  /** Tokens of model calls on a day, input and output together. Days are of UTC. */
  tokens: Schema.optional(Schema.NonNegativeInt),
  /** Requests a second, at each node. */
  requests: Schema.optional(Schema.NonNegativeInt)
})
export type Limits = typeof Limits.Type

/**
 * The person who calls.
 *
 * @since 0.1.0
 * @category services
 */
export class Caller extends Context.Tag("assent/http/Caller")<Caller, Person>() {}

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/** Its name in the OpenAPI document, where a name has no slash. */
const named = <A>(identifier: string, status: number): Schema.Annotations.Schema<A> =>
  HttpApiSchema.annotations<A>({ status, identifier })

/** `reason`: a sentence that says what to do. */
const sentence = { message: Schema.String }

/**
 * No token, or one that does not count.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unauthorized extends Schema.TaggedError<Unauthorized>("assent/http/Unauthorized")(
  "Unauthorized",
  sentence,
  named("Unauthorized", 401)
) {}

/**
 * The request is wrong.
 *
 * @since 0.1.0
 * @category errors
 */
export class BadRequest extends Schema.TaggedError<BadRequest>("assent/http/BadRequest")(
  "BadRequest",
  sentence,
  named("BadRequest", 400)
) {}

/**
 * This server does not permit it.
 *
 * @since 0.1.0
 * @category errors
 */
export class Forbidden extends Schema.TaggedError<Forbidden>("assent/http/Forbidden")(
  "Forbidden",
  sentence,
  named("Forbidden", 403)
) {}

/**
 * There is no such session, agent or request.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotFound extends Schema.TaggedError<NotFound>("assent/http/NotFound")(
  "NotFound",
  sentence,
  named("NotFound", 404)
) {}

/**
 * Something stands in the way: another process runs the session, or other words have this id.
 *
 * @since 0.1.0
 * @category errors
 */
export class Conflict extends Schema.TaggedError<Conflict>("assent/http/Conflict")(
  "Conflict",
  {
    ...sentence,
    /** The process that runs the session. */
    holder: Schema.optional(Schema.Struct({ pid: Schema.Number, host: Schema.String }))
  },
  named("Conflict", 409)
) {}

/**
 * Somebody was first, also when a former process settled the request.
 *
 * @since 0.1.0
 * @category errors
 */
export class InteractionAlreadyAnswered extends Schema.TaggedError<InteractionAlreadyAnswered>(
  "assent/http/InteractionAlreadyAnswered"
)(
  "InteractionAlreadyAnswered",
  {
    ...sentence,
    requestId: Schema.String,
    /** Who settled it. */
    winner: Schema.String
  },
  named("InteractionAlreadyAnswered", 409)
) {}

/**
 * The files of a workspace, and what they would allow. Text in it that cannot be seen is spelled out.
 *
 * @since 0.1.0
 * @category schemas
 */
export const WorkspaceTrust = Schema.Struct({
  workspace: Schema.String,
  isTrusted: Schema.Boolean,
  /** The files would allow something, and nobody trusts them as they are. Until then only their denials count. */
  wantsTrust: Schema.Boolean,
  /** Of all files. A person trusts exactly these. */
  digest: Schema.String,
  files: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      /** Absent if the file cannot be read. */
      sha256: Schema.optional(Schema.String)
    })
  ),
  /** Rules, settings, command lines of tool servers, and profiles: one thing a line. */
  allowances: Schema.Array(Schema.String),
  /** The difference to the files that were trusted before. */
  changes: Schema.optional(Schema.Array(Schema.String))
})
export type WorkspaceTrust = typeof WorkspaceTrust.Type

/**
 * The files of the workspace are not those of the digest.
 *
 * @since 0.1.0
 * @category errors
 */
export class WorkspaceChanged extends Schema.TaggedError<WorkspaceChanged>("assent/http/WorkspaceChanged")(
  "WorkspaceChanged",
  {
    ...sentence,
    /** As they are now. */
    trust: WorkspaceTrust
  },
  named("WorkspaceChanged", 409)
) {}

/**
 * What was given does not fit: an answer, a vote, a model, a command.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unprocessable extends Schema.TaggedError<Unprocessable>("assent/http/Unprocessable")(
  "Unprocessable",
  {
    ...sentence,
    /** What is wrong field by field, if a form was filled in. */
    problems: Schema.optional(
      Schema.Array(Schema.Struct({ field: Schema.optional(Schema.String), message: Schema.String }))
    )
  },
  named("Unprocessable", 422)
) {}

/**
 * The body is longer than this path takes.
 *
 * @since 0.1.0
 * @category errors
 */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>("assent/http/BodyTooLarge")(
  "BodyTooLarge",
  sentence,
  named("BodyTooLarge", 413)
) {}

/**
 * The body did not arrive in time.
 *
 * @since 0.1.0
 * @category errors
 */
export class BodyLate extends Schema.TaggedError<BodyLate>("assent/http/BodyLate")(
  "BodyLate",
  sentence,
  named("BodyLate", 408)
) {}

/**
 * The body is not JSON.
 *
 * @since 0.1.0
 * @category errors
 */
export class TypeRefused extends Schema.TaggedError<TypeRefused>("assent/http/TypeRefused")(
  "TypeRefused",
  sentence,
  named("TypeRefused", 415)
) {}

/**
 * A caller has or does as much as it may. The sentence names the limit.
 *
 * @since 0.1.0
 * @category errors
 */
export class TooManyRequests extends Schema.TaggedError<TooManyRequests>("assent/http/TooManyRequests")(
  "TooManyRequests",
  sentence,
  named("TooManyRequests", 429)
) {}

/**
 * The server cannot do it now: it ends, or it serves as many streams as it may.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unavailable extends Schema.TaggedError<Unavailable>("assent/http/Unavailable")(
  "Unavailable",
  sentence,
  named("Unavailable", 503)
) {}

/**
 * A store, a file of settings or the audit fails. The sentence says which.
 *
 * @since 0.1.0
 * @category errors
 */
export class ServerFailed extends Schema.TaggedError<ServerFailed>("assent/http/ServerFailed")(
  "ServerFailed",
  sentence,
  named("ServerFailed", 500)
) {}

// -----------------------------------------------------------------------------------------------------------------
// authentication
// -----------------------------------------------------------------------------------------------------------------

/**
 * Knows the caller by a bearer token. `Token.layer` has the one of `assent serve`; a server with its own sign-in provides its
 * own layer.
 *
 * @since 0.1.0
 * @category services
 */
export class Authentication extends HttpApiMiddleware.Tag<Authentication>()("assent/http/Authentication", {
  failure: Schema.Union(Unauthorized, TooManyRequests, Unavailable),
  provides: Caller,
  security: { token: HttpApiSecurity.bearer }
}) {}

/**
 * Lets a request of a known caller through to its handler, or refuses it: by the rule of its path, before its body is read.
 * The layers of this package have it.
 *
 * @since 0.1.0
 * @category services
 */
export class Admission extends HttpApiMiddleware.Tag<Admission>()("assent/http/Admission", {
  failure: Schema.Union(BadRequest, Forbidden, BodyTooLarge, BodyLate, TypeRefused, TooManyRequests, Unavailable)
}) {}

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** A body in which every field is known: a misspelt one is an error. */
const body = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations({ parseOptions: { onExcessProperty: "error" } })

/** `{}`. A struct without fields would take any value. */
const Nothing = Schema.Record({ key: Schema.String, value: Schema.Never })

/**
 * What no id has: a database cannot keep it, and a line cannot show it.
 *
 * @internal
 */
// oxlint-disable-next-line no-control-regex
export const control = /[\u0000-\u001f\u007f]/

const Plain = Schema.String.pipe(Schema.pattern(/^[^\u0000-\u001f\u007f]*$/))

const Name = Plain.pipe(Schema.minLength(1), Schema.maxLength(200))

/** JSON that others define, such as an encoded request. */
const Json = Schema.Record({ key: Schema.String, value: Schema.Unknown })

/**
 * A stored session. `running`: a process works on a turn of its main agent. `isLive`: this process has the session.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionSummary = Schema.Struct({
  sessionId: Schema.String,
  status: Schema.Literal("running", "waiting", "interrupted", "idle", "closed"),
  isLive: Schema.Boolean,
  title: Schema.String,
  workspace: Schema.optional(Schema.String),
  model: Schema.String,
  turns: Schema.Number,
  /** Milliseconds since the epoch. */
  created: Schema.Number,
  lastActivity: Schema.Number,
  /** Ids of open requests, oldest first. */
  open: Schema.Array(Schema.String),
  holder: Schema.optional(Schema.Struct({ pid: Schema.Number, host: Schema.String }))
})
export type SessionSummary = typeof SessionSummary.Type

/**
 * An agent of a live session.
 *
 * @since 0.1.0
 * @category schemas
 */
export const AgentNode = Schema.Struct({
  agent: Schema.String,
  sessionId: Schema.String,
  profile: Schema.optional(Schema.String),
  isIdle: Schema.Boolean
})

/**
 * All of a session that a page shows at first. What happens later comes from its events behind `cursor`.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionSnapshot = Schema.Struct({
  ...SessionSummary.fields,
  /** For `Last-Event-ID` of the session's events. */
  cursor: Schema.String,
  /** How calls are decided. */
  mode: Schema.optional(Schema.String),
  /** What its workspace's files allow does not count in this session: nobody trusted them when it was opened. */
  wantsTrust: Schema.optional(Schema.Literal(true)),
  todos: Schema.Array(Json),
  jobs: Schema.Array(Json),
  agents: Schema.Array(AgentNode),
  cost: Schema.optional(
    Schema.Struct({
      inputTokens: Schema.Number,
      outputTokens: Schema.Number,
      amount: Schema.optional(Schema.Number),
      currency: Schema.optional(Schema.String)
    })
  )
})
export type SessionSnapshot = typeof SessionSnapshot.Type

/**
 * An open request with its form, as `assent run --jsonl` writes it.
 *
 * @since 0.1.0
 * @category schemas
 */
export const OpenRequest = Schema.Struct({
  _tag: Schema.Literal("InteractionRequest"),
  /** The session of the tree's root. */
  sessionId: Schema.String,
  title: Schema.optional(Schema.String),
  workspace: Schema.optional(Schema.String),
  request: Json,
  form: Schema.optional(Json),
  /** The votes so far, and the missing people, if several people have to agree. */
  votes: Schema.optional(Schema.Array(Schema.Struct({ by: Schema.String, vote: Schema.String }))),
  missing: Schema.optional(Schema.String),
  /** It was answered while no process ran the session. The answer counts when the session goes on. */
  answeredBy: Schema.optional(Schema.String),
  /** The process that runs the session. */
  holder: Schema.optional(Schema.Struct({ pid: Schema.Number, host: Schema.String }))
})
export type OpenRequest = typeof OpenRequest.Type

/**
 * What a client of AG-UI sends to begin or resume a run. `tools`, `context`, `state` and `forwardedProps` are not read: a
 * page gives an agent no authority.
 *
 * @since 0.1.0
 * @category schemas
 */
export const RunAgentInput = Schema.Struct({
  /** The client's name for its conversation. */
  threadId: Name,
  runId: Name,
  /** Absent in clients of 0.x. */
  protocolVersion: Schema.optional(Schema.String),
  /** The words of the user at the end are sent; their ids make them idempotent. */
  messages: Schema.Array(
    Schema.Struct({
      id: Name,
      role: Schema.String,
      content: Schema.optional(Schema.Unknown),
      toolCallId: Schema.optional(Schema.String),
      toolCalls: Schema.optional(Schema.Unknown)
    })
  ),
  /** An answer to each request of the last run. */
  resume: Schema.optional(
    Schema.Array(
      Schema.Struct({
        interruptId: Name,
        status: Schema.Literal("resolved", "cancelled"),
        /** Fits the `responseSchema` of the interrupt. */
        payload: Schema.optional(Schema.Unknown)
      })
    )
  )
})
export type RunAgentInput = typeof RunAgentInput.Type

/**
 * What `useChat` of the AI SDK sends.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ChatInput = Schema.Struct({
  /** The client's name for its conversation. */
  id: Name,
  /** Of the last one are read: the user's words, or the answers to approvals. */
  messages: Schema.NonEmptyArray(Schema.Struct({ id: Name, role: Schema.String, parts: Schema.Array(Json) }))
})
export type ChatInput = typeof ChatInput.Type

const sessionId = HttpApiSchema.param("sessionId", Schema.String)
const requestId = HttpApiSchema.param("requestId", Schema.String)
const events = HttpApiSchema.Text({ contentType: "text/event-stream" })

/** Events behind this id; the header of the same name is what browsers send. */
const behind = Schema.Struct({ "last-event-id": Schema.optional(Schema.String) })

const Done = Schema.Struct({ ok: Schema.Literal(true) })

/** The group below `/v1`, for callers that are known, with what each of its paths may fail with. */
const versioned = <Id extends string, Endpoints extends HttpApiEndpoint.HttpApiEndpoint.Any, Error, R>(
  group: HttpApiGroup.HttpApiGroup<Id, Endpoints, Error, R>
) =>
  group
    .addError(BadRequest)
    .addError(Forbidden)
    .addError(NotFound)
    .addError(Conflict)
    .addError(Unprocessable)
    .addError(Unavailable)
    .addError(ServerFailed)
    .addError(TooManyRequests)
    // The one that is named last is asked first.
    .middleware(Admission)
    .middleware(Authentication)
    .prefix("/v1")

// -----------------------------------------------------------------------------------------------------------------
// groups
// -----------------------------------------------------------------------------------------------------------------

/**
 * Sessions: begin, list, look, talk, stop, delete.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Sessions = HttpApiGroup.make("sessions")
  .add(
    HttpApiEndpoint.post("create", "/sessions")
      .setPayload(
        body({
          /** Absolute. Default: the first one that the server was given. */
          workspace: Schema.optional(Schema.String),
          model: Schema.optional(Name),
          profile: Schema.optional(Name),
          /** Chosen by the client: the same one again is the same session. */
          id: Schema.optional(Plain)
        })
      )
      .addSuccess(Schema.Struct({ sessionId: Schema.String }))
  )
  .add(
    HttpApiEndpoint.get("list", "/sessions")
      .setUrlParams(
        Schema.Struct({
          workspace: Schema.optional(Plain),
          limit: Schema.optional(
            Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, 1_000)).annotations({
              // Clients that are made from the document pass a number.
              jsonSchema: { type: "integer", minimum: 1, maximum: 1_000 }
            })
          ),
          /** `next` of the page before. */
          after: Schema.optional(Schema.String)
        })
      )
      .addSuccess(
        Schema.Struct({
          sessions: Schema.Array(SessionSummary),
          next: Schema.optional(Schema.String),
          /** Stores that cannot be read, as sentences. */
          remarks: Schema.Array(Schema.String)
        })
      )
  )
  .add(HttpApiEndpoint.get("get")`/sessions/${sessionId}`.addSuccess(SessionSnapshot))
  .add(
    HttpApiEndpoint.post("send")`/sessions/${sessionId}/messages`
      .setPayload(
        body({
          text: Schema.optional(Words),
          files: Schema.optional(
            Schema.Array(
              body({
                base64: Schema.Uint8ArrayFromBase64,
                name: Schema.optional(Name),
                mediaType: Schema.optional(Name)
              })
            )
          ),
          /** An agent of the session, by its path or id. Default: the one that hears the user. */
          target: Schema.optional(Name),
          /** `queue`: a turn of its own, after the running one. Default: `steer`, a running turn reads the words. */
          delivery: Schema.optional(Schema.Literal("steer", "queue")),
          /** The same words again under this id are not taken twice. The header `Idempotency-Key` is the same. */
          id: Schema.optional(Name)
        })
      )
      .setHeaders(Schema.Struct({ "idempotency-key": Schema.optional(Name) }))
      .addSuccess(Schema.Struct({ messageId: Schema.String, again: Schema.optional(Schema.Literal(true)) }))
  )
  .add(
    HttpApiEndpoint.post("interrupt")`/sessions/${sessionId}/interrupt`
      .setPayload(body({ target: Schema.optional(Name), toolCallId: Schema.optional(Name) }))
      .addSuccess(Done)
  )
  .add(
    HttpApiEndpoint.post("takeBack")`/sessions/${sessionId}/take-back`
      /** Withdraws the user's words that no agent has read, oldest first. */
      .setPayload(body({ target: Schema.optional(Name) }))
      .addSuccess(
        Schema.Struct({
          messages: Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String, at: Schema.Number }))
        })
      )
  )
  .add(
    HttpApiEndpoint.post("compact")`/sessions/${sessionId}/compact`
      .setPayload(Nothing)
      .addSuccess(Schema.Struct({ removed: Schema.Number, tokens: Schema.Number }))
  )
  .add(
    HttpApiEndpoint.post("permissions")`/sessions/${sessionId}/permissions`
      /** A line as after `/permissions` in a chat. */
      .setPayload(body({ command: Schema.String.pipe(Schema.maxLength(2_000)) }))
      .addSuccess(Schema.Struct({ lines: Schema.Array(Schema.String) }))
  )
  .add(
    HttpApiEndpoint.post("mode")`/sessions/${sessionId}/mode`
      .setPayload(body({ mode: Schema.Literal("ask", "plan", "allow", "deny") }))
      .addSuccess(Done)
  )
  .add(
    HttpApiEndpoint.post("model")`/sessions/${sessionId}/model`
      .setPayload(
        body({
          model: Name,
          /** How hard the model thinks, until the session is closed. Default: what settings say. */
          thinking: Schema.optional(Schema.Literal("low", "medium", "high"))
        })
      )
      .addSuccess(Done)
  )
  .add(HttpApiEndpoint.del("remove")`/sessions/${sessionId}`.addSuccess(Done))
  .add(HttpApiEndpoint.get("events")`/sessions/${sessionId}/events`.setHeaders(behind).addSuccess(events))
  .add(HttpApiEndpoint.get("allEvents", "/events").setHeaders(behind).addSuccess(events))
  .pipe(versioned)

/**
 * Open requests of all sessions, also of those that no process runs.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Requests = HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/requests")
      .setUrlParams(
        Schema.Struct({
          /** Only those of this session. */
          session: Schema.optional(Plain)
        })
      )
      .addSuccess(Schema.Struct({ requests: Schema.Array(OpenRequest), remarks: Schema.Array(Schema.String) }))
  )
  .add(
    HttpApiEndpoint.post("answer")`/requests/${requestId}/answer`
      .setPayload(
        body({
          /** The encoded answer, or the words that a person would type. */
          answer: Schema.optional(Schema.Unknown),
          /** The filled form. */
          form: Schema.optional(Schema.Unknown),
          /** The same answer of the same person again under this id succeeds again. */
          id: Schema.optional(Name)
        })
      )
      .addSuccess(Schema.Struct({ status: Schema.Literal("answered"), again: Schema.optional(Schema.Literal(true)) }))
      .addSuccess(
        Schema.Struct({ status: Schema.Literal("voted"), missing: Schema.String }).annotations(
          HttpApiSchema.annotations({ status: 202 })
        )
      )
      .addError(InteractionAlreadyAnswered)
  )
  .add(
    HttpApiEndpoint.post("cancel")`/requests/${requestId}/cancel`
      .setPayload(Nothing)
      .addSuccess(Done)
      .addError(InteractionAlreadyAnswered)
  )
  .pipe(versioned)

/**
 * Runs of a session for pages of web frameworks: words or answers in, events out until the turn ends or waits for somebody.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Runs = HttpApiGroup.make("runs")
  /** Events of AG-UI 1.0 and 0.0.59. */
  .add(HttpApiEndpoint.post("agui")`/agui/${sessionId}`.setPayload(RunAgentInput).addSuccess(events))
  /** The UI message stream of the AI SDK, version 1. */
  .add(HttpApiEndpoint.post("ai")`/ai/${sessionId}`.setPayload(ChatInput).addSuccess(events))
  /** The running turn again, for a page that was loaded again. 204 when no turn runs. */
  .add(
    HttpApiEndpoint.get("aiStream")`/ai/${sessionId}/${HttpApiSchema.param("chatId", Name)}/stream`
      .addSuccess(events)
      .addSuccess(HttpApiSchema.NoContent)
  )
  .pipe(versioned)

/**
 * A turn of a session. A fork begins at the end of one.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionTurn = Schema.Struct({
  /** From 1. */
  number: Schema.Number,
  correlationId: Schema.String,
  /** The words that began it. */
  words: Schema.String,
  /** Milliseconds since the epoch. */
  began: Schema.Number,
  ended: Schema.optional(Schema.Number)
})
export type SessionTurn = typeof SessionTurn.Type

/**
 * The record of the decisions of a session, and whether somebody changed it.
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionAudit = Schema.Struct({
  /** `unknown`: a key is needed that the server has not, or nothing was recorded yet. */
  verified: Schema.Literal("whole", "broken", "unknown"),
  /** Sentences: the verdict, then remarks. */
  verdict: Schema.Array(Schema.String),
  /** The last ones, oldest first. */
  records: Schema.Array(Json),
  /** Records before these. */
  before: Schema.Number
})
export type SessionAudit = typeof SessionAudit.Type

/**
 * What a person does to a session beside talking: going back, forking, compacting, looking at what was decided.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Control = HttpApiGroup.make("control")
  .add(
    HttpApiEndpoint.get("about", "/about").addSuccess(
      Schema.Struct({
        /** The name of the caller, as the audit has it. */
        person: Schema.String,
        /** Directories in which sessions may begin; the first one is the default. */
        workspaces: Schema.Array(Schema.String)
      })
    )
  )
  .add(
    /** Those of the server, with what their files would allow. */
    HttpApiEndpoint.get("workspaces", "/workspaces").addSuccess(
      Schema.Struct({
        workspaces: Schema.Array(WorkspaceTrust),
        /** Those whose settings cannot be read, as sentences. */
        remarks: Schema.Array(Schema.String)
      })
    )
  )
  .add(
    /** It counts for sessions that are opened later, and is in the audit. */
    HttpApiEndpoint.post("trust", "/workspaces/trust")
      .setPayload(
        body({
          workspace: Schema.String,
          /** Of the files that the caller saw. */
          digest: Schema.String
        })
      )
      .addSuccess(WorkspaceTrust)
      .addError(WorkspaceChanged)
  )
  .add(
    HttpApiEndpoint.get("turns")`/sessions/${sessionId}/turns`.addSuccess(
      Schema.Struct({ turns: Schema.Array(SessionTurn) })
    )
  )
  .add(
    HttpApiEndpoint.post("fork")`/sessions/${sessionId}/fork`
      .setPayload(
        body({
          /** The last turn that the fork has; 0 is the beginning. Default: the last one that has ended. */
          turn: Schema.optional(Schema.NonNegativeInt)
        })
      )
      .addSuccess(
        Schema.Struct({
          sessionId: Schema.String,
          turn: Schema.Number,
          /** The words that came next in the session that was forked. */
          words: Schema.String
        })
      )
  )
  .add(
    HttpApiEndpoint.get("models")`/sessions/${sessionId}/models`.addSuccess(
      Schema.Struct({ models: Schema.Array(Schema.String) })
    )
  )
  .add(HttpApiEndpoint.get("audit")`/sessions/${sessionId}/audit`.addSuccess(SessionAudit))
  .pipe(versioned)

/**
 * How the server is.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Health = HttpApiGroup.make("health", { topLevel: true })
  .add(HttpApiEndpoint.get("healthz", "/healthz").addSuccess(Schema.Struct({ ok: Schema.Boolean })))
  .add(
    /** Whether requests may be sent here: a node of a cluster says when it takes part. */
    HttpApiEndpoint.get("readyz", "/readyz")
      .addSuccess(Schema.Struct({ ok: Schema.Boolean }))
      .addError(Unavailable)
  )

/**
 * Counts for Prometheus.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Metrics = HttpApiGroup.make("metrics", { topLevel: true })
  .add(
    HttpApiEndpoint.get("metrics", "/metrics").addSuccess(
      HttpApiSchema.Text({ contentType: "text/plain; version=0.0.4" })
    )
  )
  .middleware(Admission)
  .middleware(Authentication)

/** The document without the names of schemas that stand in it more than once, such as that of any JSON. */
const unnamed = <A>(document: A): A =>
  JSON.parse(JSON.stringify(document, (name, value: unknown) => (name === "$id" ? undefined : value)))

/**
 * The whole API.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Api extends HttpApi.make("assent")
  .add(Sessions)
  .add(Requests)
  .add(Runs)
  .add(Control)
  .add(Health)
  .add(Metrics)
  .annotate(OpenApi.Transform, unnamed)
  .annotate(OpenApi.Title, "Assent")
  .annotate(OpenApi.Version, "1") {}
