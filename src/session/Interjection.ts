/**
 * The agents that a user's words may go to while agents work. `Agent.send` delivers the words, and `Agent.receiver` says
 * which agent gets words without a target.
 *
 * @since 0.1.0
 */
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as UntrustedJson from "../core/UntrustedJson.js"
import type * as Origin from "../core/Origin.js"
import type { Draft, Message } from "../inbox/Message.js"
import type { Session } from "./Session.js"

/**
 * An agent that may receive words.
 *
 * @since 0.1.0
 * @category models
 */
export interface Agent {
  readonly origin: Origin.Origin
  /** @internal */
  readonly session: Session
  /**
   * For a child: gives it a turn of its own, whose end the parent gets; none when it has ended. Absent for the root.
   *
   * @internal
   */
  readonly begin?: ((draft: Draft) => Option.Option<Message>) | undefined
}

/**
 * The agent that receives words, and why it does.
 *
 * @since 0.1.0
 * @category models
 */
export interface Receiver {
  readonly agent: Agent
  /** The tool call under which it works, or `root`. */
  readonly parentId: string
  /** True: the user chose it, so it receives words also while it is idle. */
  readonly chosen: boolean
}

/**
 * There is no agent of this name.
 *
 * @since 0.1.0
 * @category errors
 */
export class AgentUnknown extends Schema.TaggedError<AgentUnknown>("assent/session/AgentUnknown")("AgentUnknown", {
  target: Schema.String,
  /** Paths of the living agents. */
  agents: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `There is no agent ${JSON.stringify(UntrustedJson.echo(this.target))}. There are: ${this.agents.join(", ")}.`
  }
}
