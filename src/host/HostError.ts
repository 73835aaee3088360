/** Errors of a host. Those of a store, such as a session that another process runs, are in `journal/StoreError`. */
import * as Schema from "effect/Schema"
import { SessionId } from "../core/Id.js"

/** No session may work in this directory. */
export class WorkspaceRefused extends Schema.TaggedError<WorkspaceRefused>("assent/host/WorkspaceRefused")(
  "WorkspaceRefused",
  {
    workspace: Schema.String,
    problem: Schema.Literal("relative", "noDirectory", "notPermitted", "holdsState")
  }
) {
  override get message(): string {
    return `No session works in ${JSON.stringify(this.workspace)}: ${problems[this.problem]}`
  }
}

/** No session has this id by a caller's choice. */
export class SessionIdInvalid extends Schema.TaggedError<SessionIdInvalid>("assent/host/SessionIdInvalid")(
  "SessionIdInvalid",
  { id: Schema.String }
) {
  override get message(): string {
    return `${JSON.stringify(this.id.slice(0, 200))} is no id of a session. Use 1 to 128 letters, digits, "-" and "_".`
  }
}

/** The model of a session cannot be used, such as for want of a key. */
export class ModelRefused extends Schema.TaggedError<ModelRefused>("assent/host/ModelRefused")("ModelRefused", {
  model: Schema.String,
  /** A sentence that says what is missing. */
  message: Schema.String
}) {}

/** This process runs the session. */
export class SessionRunning extends Schema.TaggedError<SessionRunning>("assent/host/SessionRunning")("SessionRunning", {
  rootSessionId: SessionId
}) {
  override get message(): string {
    return `Session ${this.rootSessionId} is running. Close it first.`
  }
}

/** The host closes, and begins no more sessions. */
export class HostClosed extends Schema.TaggedError<HostClosed>("assent/host/HostClosed")("HostClosed", {}) {
  override get message(): string {
    return "This process is about to end and begins no more sessions. Connect to another one."
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const problems = {
  relative: "its path is relative. Use an absolute path.",
  noDirectory: "there is no such directory. Make it first.",
  notPermitted: "this host does not permit that directory. Choose one that it permits.",
  holdsState: "Assent keeps settings or state there. Choose another directory."
}
