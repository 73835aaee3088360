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
 *   return yield* client.requests.list()
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
import { Words } from "../inbox/Message.js"

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
}

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
  HttpApiSchema.annotations({ status: 401 })
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
  HttpApiSchema.annotations({ status: 400 })
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
  HttpApiSchema.annotations({ status: 403 })
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
  HttpApiSchema.annotations({ status: 404 })
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
  HttpApiSchema.annotations({ status: 409 })
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
  HttpApiSchema.annotations({ status: 409 })
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
  HttpApiSchema.annotations({ status: 422 })
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
  HttpApiSchema.annotations({ status: 503 })
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
  HttpApiSchema.annotations({ status: 500 })
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
  failure: Unauthorized,
  provides: Caller,
  security: { token: HttpApiSecurity.bearer }
}) {}

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** A body in which every field is known: a misspelt one is an error. */
const body = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotations({ parseOptions: { onExcessProperty: "error" } })

const Name = Schema.NonEmptyString.pipe(Schema.maxLength(200))

/** JSON that others define, such as an encoded request. */
const Json = Schema.Record({ key: Schema.String, value: Schema.Unknown })

/**
 * A stored session. `running`: a process runs it, this one if `isLive`.
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
  /** It was answered while no process ran the session. The answer counts when the session goes on. */
  answeredBy: Schema.optional(Schema.String),
  /** The process that runs the session. */
  holder: Schema.optional(Schema.Struct({ pid: Schema.Number, host: Schema.String }))
})
export type OpenRequest = typeof OpenRequest.Type

const sessionId = HttpApiSchema.param("sessionId", Schema.String)
const requestId = HttpApiSchema.param("requestId", Schema.String)
const events = HttpApiSchema.Text({ contentType: "text/event-stream" })

/** Events behind this id; the header of the same name is what browsers send. */
const behind = Schema.Struct({ "last-event-id": Schema.optional(Schema.String) })

const Done = Schema.Struct({ ok: Schema.Literal(true) })

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
          id: Schema.optional(Schema.String)
        })
      )
      .addSuccess(Schema.Struct({ sessionId: Schema.String }))
  )
  .add(
    HttpApiEndpoint.get("list", "/sessions")
      .setUrlParams(
        Schema.Struct({
          workspace: Schema.optional(Schema.String),
          limit: Schema.optional(Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, 1_000))),
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
  .add(HttpApiEndpoint.post("model")`/sessions/${sessionId}/model`.setPayload(body({ model: Name })).addSuccess(Done))
  .add(HttpApiEndpoint.del("remove")`/sessions/${sessionId}`.addSuccess(Done))
  .add(HttpApiEndpoint.get("events")`/sessions/${sessionId}/events`.setHeaders(behind).addSuccess(events))
  .add(HttpApiEndpoint.get("allEvents", "/events").setHeaders(behind).addSuccess(events))
  .addError(BadRequest)
  .addError(Forbidden)
  .addError(NotFound)
  .addError(Conflict)
  .addError(Unprocessable)
  .addError(Unavailable)
  .addError(ServerFailed)
  .middleware(Authentication)
  .prefix("/v1")

/**
 * Open requests of all sessions, also of those that no process runs.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Requests = HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/requests").addSuccess(
      Schema.Struct({ requests: Schema.Array(OpenRequest), remarks: Schema.Array(Schema.String) })
    )
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
      .setPayload(body({}))
      .addSuccess(Done)
      .addError(InteractionAlreadyAnswered)
  )
  .addError(BadRequest)
  .addError(Forbidden)
  .addError(NotFound)
  .addError(Conflict)
  .addError(Unprocessable)
  .addError(Unavailable)
  .addError(ServerFailed)
  .middleware(Authentication)
  .prefix("/v1")

/**
 * How the server is.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Health = HttpApiGroup.make("health", { topLevel: true }).add(
  HttpApiEndpoint.get("healthz", "/healthz").addSuccess(Schema.Struct({ ok: Schema.Boolean }))
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
  .middleware(Authentication)

/**
 * The whole API.
 *
 * @since 0.1.0
 * @category schemas
 */
export class Api extends HttpApi.make("assent")
  .add(Sessions)
  .add(Requests)
  .add(Health)
  .add(Metrics)
  .annotate(OpenApi.Title, "Assent")
  .annotate(OpenApi.Version, "1") {}
