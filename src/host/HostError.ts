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
    return `${JSON.stringify(this.id.slice(0, 200))} is not the id of a session. Use 1 to 128 letters, digits, "-" and "_".`
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
    return "This process is shutting down and starts no more sessions. Connect to another process."
  }
}

/** The files of a workspace cannot be trusted as they were shown. */
export class TrustRefused extends Schema.TaggedError<TrustRefused>("assent/host/TrustRefused")("TrustRefused", {
  workspace: Schema.String,
  problem: Schema.Literal("changed", "link")
}) {
  override get message(): string {
    return this.problem === "changed"
      ? `The files of ${this.workspace} are not the ones that you saw. Look at them again.`
      : `${this.workspace} cannot be trusted: its .assent is a symbolic link. Put the directory itself there.`
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
