/**
 * What the nodes of a cluster ask each other about a session. The node that has the session answers.
 *
 * Nothing of it is kept by the engine: words and answers are in the journal before they are acknowledged, and a call that
 * is repeated names what it is about. So passwords pass through no table.
 */
import * as Entity from "@effect/cluster/Entity"
import * as Rpc from "@effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import * as Api from "../http/Api.js"
import * as PageRun from "../http/PageRun.js"

const optional = Schema.optional(Schema.String)

/** What every call may fail with. */
const refusal = Schema.Union(
  Api.BadRequest,
  Api.Forbidden,
  Api.NotFound,
  Api.Conflict,
  Api.Unprocessable,
  Api.Unavailable,
  Api.ServerFailed
)

const late = Schema.Union(...refusal.members, Api.InteractionAlreadyAnswered)

/** `may`: some answers need more than the node that was called can see. */
const Person = Schema.Struct({
  name: Schema.String,
  roles: Schema.optional(Schema.Array(Schema.String)),
  may: Schema.optional(Schema.Array(Api.Permit))
})

const { agents, cost, jobs, mode, todos } = Api.SessionSnapshot.fields

/** What a stream begins with: where it comes again, another node has begun. */
export const begun = ""

/** Why a node does not do what is asked of a session. */
export const moving = new Api.Unavailable({ message: "The session is moving to another node. Try again in a moment." })

/** A session of a cluster, by its id. */
export const SessionEntity = Entity.make("Session", [
  Rpc.make("Create", {
    payload: { workspace: Schema.String, model: optional, profile: optional },
    success: Schema.Struct({ sessionId: Schema.String }),
    error: refusal
  }),
  Rpc.make("Present", {
    success: Schema.UndefinedOr(
      Schema.Struct({ agents, cost, jobs, mode, todos, position: Schema.optional(Schema.Number) })
    ),
    error: refusal
  }),
  /** What the session's broker asks. */
  Rpc.make("Open", { success: Schema.Array(Api.OpenRequest), error: refusal }),
  Rpc.make("Models", { success: Schema.Array(Schema.String), error: refusal }),
  Rpc.make("Send", {
    payload: {
      text: optional,
      files: Schema.optional(
        Schema.Array(Schema.Struct({ base64: Schema.Uint8ArrayFromBase64, name: optional, mediaType: optional }))
      ),
      target: optional,
      delivery: Schema.optional(Schema.Literal("steer", "queue")),
      id: optional
    },
    success: Schema.Struct({ messageId: Schema.String, again: Schema.optional(Schema.Literal(true)) }),
    error: refusal
  }),
  Rpc.make("Interrupt", { payload: { target: optional, toolCallId: optional }, error: refusal }),
  Rpc.make("Permissions", {
    payload: { command: Schema.String, by: Schema.String },
    success: Schema.Struct({ lines: Schema.Array(Schema.String) }),
    error: refusal
  }),
  Rpc.make("SetMode", {
    payload: { mode: Schema.Literal("ask", "plan", "allow", "deny"), by: Schema.String },
    error: refusal
  }),
  Rpc.make("SetModel", {
    payload: { model: Schema.String, thinking: Schema.optional(Schema.Literal("low", "medium", "high")) },
    error: refusal
  }),
  Rpc.make("TakeBack", {
    payload: { target: optional },
    success: Schema.Struct({
      messages: Schema.Array(Schema.Struct({ id: Schema.String, text: Schema.String, at: Schema.Number }))
    }),
    error: refusal
  }),
  Rpc.make("Compact", {
    success: Schema.Struct({ removed: Schema.Number, tokens: Schema.Number }),
    error: refusal
  }),
  Rpc.make("Remove", { error: refusal }),
  Rpc.make("Answer", {
    payload: {
      requestId: Schema.String,
      given: Schema.Struct({
        answer: Schema.optional(Schema.Unknown),
        form: Schema.optional(Schema.Unknown),
        id: optional,
        isPrivate: Schema.Boolean
      }),
      by: Person
    },
    success: Schema.Union(
      Schema.Struct({ status: Schema.Literal("answered"), again: Schema.optional(Schema.Literal(true)) }),
      Schema.Struct({ status: Schema.Literal("voted"), missing: Schema.String })
    ),
    error: late
  }),
  Rpc.make("Cancel", { payload: { requestId: Schema.String, by: Person }, error: late }),
  /** Events behind a position, as JSON, with live pieces, while the node has the session in memory; {@link begun} first. */
  Rpc.make("Events", {
    payload: { after: Schema.Number },
    success: Schema.String,
    error: Schema.Struct({ _tag: Schema.String, message: Schema.String }),
    stream: true
  }),
  /** {@link begun}, and the lines of a page's run. Nothing at all when no turn runs that the page could see again. */
  Rpc.make("Run", {
    payload: { page: PageRun.Page, by: Schema.Struct({ person: Person, isPrivate: Schema.Boolean }) },
    success: Schema.String,
    error: refusal,
    stream: true
  }),
  /** Goes on with what the session was in the middle of. Returns when the session has left the node's memory. */
  Rpc.make("Wake")
])
