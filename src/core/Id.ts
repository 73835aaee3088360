/**
 * Branded identifiers and the generator that makes them.
 *
 * Every id is an opaque string: compared by equality, never parsed.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"
import { nodeCrypto } from "./NodeCrypto.js"

/**
 * Names one interaction; the only key that correlates a request with its answer.
 *
 * @since 0.1.0
 * @category schemas
 */
export const RequestId = Schema.String.pipe(Schema.brand("assent/RequestId"))
export type RequestId = typeof RequestId.Type

/**
 * Names one turn; threads the events, interactions and audit records of that turn.
 *
 * @since 0.1.0
 * @category schemas
 */
export const CorrelationId = Schema.String.pipe(Schema.brand("assent/CorrelationId"))
export type CorrelationId = typeof CorrelationId.Type

/**
 * Names one session (one agent's history, inbox and scope).
 *
 * @since 0.1.0
 * @category schemas
 */
export const SessionId = Schema.String.pipe(Schema.brand("assent/SessionId"))
export type SessionId = typeof SessionId.Type

/**
 * Names one proposed tool call; chosen by the model or, when it chose none, by us.
 *
 * @since 0.1.0
 * @category schemas
 */
export const ToolCallId = Schema.String.pipe(Schema.brand("assent/ToolCallId"))
export type ToolCallId = typeof ToolCallId.Type

/**
 * Names one message sent to an inbox.
 *
 * @since 0.1.0
 * @category schemas
 */
export const MessageId = Schema.String.pipe(Schema.brand("assent/MessageId"))
export type MessageId = typeof MessageId.Type

/**
 * The kind of thing that an id names; the readable prefix of the id.
 *
 * @since 0.1.0
 * @category models
 */
export type IdPrefix = "req" | "turn" | "ses" | "call" | "msg" | "stage"

/**
 * Makes ids.
 *
 * @since 0.1.0
 * @category models
 */
export interface Generator {
  /** A fresh id, unique over processes, such as `req_k3f9a0x2m1p7-4`. Never fails, never blocks. */
  readonly unsafeNext: (prefix: IdPrefix) => string
}

/**
 * Makes ids. An ambient value with a default, so programs need not provide it; tests that want predictable ids provide
 * {@link sequence}.
 *
 * @since 0.1.0
 * @category services
 */
export class IdGenerator extends Context.Reference<IdGenerator>()("assent/core/IdGenerator", {
  defaultValue: (): Generator => random()
}) {}

/**
 * A fresh id of a request.
 *
 * @internal
 */
export const request = (ids: Generator): RequestId => ids.unsafeNext("req") as RequestId

/**
 * A fresh id of a turn.
 *
 * @internal
 */
export const turn = (ids: Generator): CorrelationId => ids.unsafeNext("turn") as CorrelationId

/**
 * A fresh id of a session.
 *
 * @internal
 */
export const session = (ids: Generator): SessionId => ids.unsafeNext("ses") as SessionId

/**
 * A fresh id of a session that belongs to the same tenant as another one: what comes before its dot.
 *
 * @internal
 */
export const sessionBeside = (ids: Generator, other: SessionId): SessionId =>
  (other.slice(0, other.indexOf(".") + 1) + session(ids)) as SessionId

/**
 * A fresh id of a message.
 *
 * @internal
 */
export const message = (ids: Generator): MessageId => ids.unsafeNext("msg") as MessageId

/**
 * Ids with a random part per generator and a counter: unique without a random draw per id.
 *
 * @since 0.1.0
 * @category constructors
 */
export const random = (): Generator => {
  const seed = new Uint32Array(2)
  // The global one loads all of Web Crypto in Node: 0.6 ms of the first agent of a process.
  const node = nodeCrypto()
  if (node === undefined) globalThis.crypto.getRandomValues(seed)
  else node.randomFillSync(seed)
  const base = Array.from(seed, (n) => n.toString(36).padStart(7, "0")).join("")
  // The prefix and the generator's part are joined once, so an id holds two strings and not every part.
  const heads = new Map<IdPrefix, string>()
  const headOf = (prefix: IdPrefix): string => {
    const head = `${prefix}_${base}-`
    heads.set(prefix, head)
    return head
  }
  let count = 0
  return { unsafeNext: (prefix) => `${heads.get(prefix) ?? headOf(prefix)}${++count}` }
}

/**
 * Ids `req_1`, `turn_2`, …: one counter for all prefixes. For tests.
 *
 * @since 0.1.0
 * @category constructors
 */
export const sequence = (): Generator => {
  let count = 0
  return { unsafeNext: (prefix) => `${prefix}_${++count}` }
}
