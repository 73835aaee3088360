/**
 * The agent that acts. Every event, interaction and audit record carries its origin.
 *
 * The current origin is a fiber-local value. It flows down every fork. It does not cross a queue, so a message in a
 * queue carries its origin in its envelope.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import { globalValue } from "effect/GlobalValue"
import * as CallerContext from "./CallerContext.js"
import { SessionId, type CorrelationId, type ToolCallId } from "./Id.js"
import type { ResolvedPaths } from "./ResolvedPath.js"

/**
 * What a decision lets a command do. A call without privileges may do none of these.
 *
 * @since 0.1.0
 * @category models
 */
export interface Privileges {
  /** The command was allowed only because it reads: it changes nothing and reaches nothing. */
  readonly readOnly: boolean
  /** All its programs are git's, so that it may write the git directory. */
  readonly git: boolean
  /** A person, or a rule that a person wrote, allowed it by name: its programs may ask that person for a password. */
  readonly askpass: boolean
}

/**
 * The agent that acts, its session, and the call that runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Origin {
  readonly sessionId: SessionId
  /** The root of the tree this session belongs to; itself for a root. */
  readonly rootSessionId: SessionId
  /** Agent path such as `main` or `main/code_reviewer`. */
  readonly agent: string
  /** 0 for a root session. */
  readonly depth: number
  /** Present for child sessions only. */
  readonly parentSessionId?: SessionId
  /** Present for child sessions only. */
  readonly subagentId?: string
  /** Present inside a turn. */
  readonly correlationId?: CorrelationId
  /** Present inside a tool call. */
  readonly toolCallId?: ToolCallId
  /**
   * Where the paths of the call led when it was decided. Present inside a call that names paths.
   *
   * @internal
   */
  readonly paths?: ResolvedPaths
  /**
   * What the policy of the call denies to everybody. Present inside a call, if it denies any path.
   *
   * @internal
   */
  readonly denied?: ReadonlyArray<string>
  /**
   * Present inside a call that runs a command.
   *
   * @internal
   */
  readonly privileges?: Privileges
  /** The other party that asks through the call, such as `the server github`. */
  readonly via?: string
  /**
   * What the call needs to go on behind its open question, in another process too. Only the call itself reads it.
   *
   * @internal
   */
  readonly continuation?: string
  /**
   * The call runs once: no other process runs it again, so none asks its questions again.
   *
   * @internal
   */
  readonly once?: true
}

/**
 * The origin of work that no session started.
 *
 * @since 0.1.0
 * @category constants
 */
export const outside: Origin = globalValue("assent/core/Origin/outside", () => ({
  sessionId: SessionId.make("none"),
  rootSessionId: SessionId.make("none"),
  agent: "outside",
  depth: 0
}))

/**
 * The origin of the running fiber.
 *
 * @since 0.1.0
 * @category getters
 */
export const current: Effect.Effect<Origin> = Effect.withFiberRuntime((fiber) => Effect.succeed(of(fiber)))

/**
 * The origin of a given fiber.
 *
 * @since 0.1.0
 * @category getters
 */
export const of = (fiber: Pick<Fiber.RuntimeFiber<unknown, unknown>, "getFiberRef">): Origin =>
  fiber.getFiberRef(currentRef)

/**
 * Runs an effect, and everything it forks, as `origin`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withOrigin =
  (origin: Origin) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locally(self, currentRef, origin)

/**
 * The same session, in this turn.
 *
 * @since 0.1.0
 * @category constructors
 */
export const inTurn = (origin: Origin, correlationId: CorrelationId): Origin => {
  const { agent, depth, parentSessionId, rootSessionId, sessionId, subagentId } = origin
  // Members are named one by one: a copy by spread gets a hidden class of its own, half a kilobyte for each agent.
  return parentSessionId === undefined || subagentId === undefined
    ? { sessionId, rootSessionId, agent, depth, correlationId }
    : { sessionId, rootSessionId, agent, depth, parentSessionId, subagentId, correlationId }
}

/**
 * Runs an effect, and everything it forks, as part of the given tool call.
 *
 * @since 0.1.0
 * @category combinators
 */
export const inToolCall =
  (toolCallId: ToolCallId) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locallyWith(self, currentRef, (origin) => ofCall(origin, toolCallId))

/**
 * The same turn, in this tool call.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofCall = (origin: Origin, toolCallId: ToolCallId): Origin => {
  const { agent, correlationId, depth, parentSessionId, rootSessionId, sessionId, subagentId } = origin
  if (origin.toolCallId === toolCallId) return origin
  if (correlationId === undefined) return { ...origin, toolCallId }
  return parentSessionId === undefined || subagentId === undefined
    ? { sessionId, rootSessionId, agent, depth, correlationId, toolCallId }
    : { sessionId, rootSessionId, agent, depth, parentSessionId, subagentId, correlationId, toolCallId }
}

/**
 * Like {@link withOrigin}, for a fiber of its own: one step, and the former value is not restored.
 *
 * @since 0.1.0
 * @category combinators
 */
export const inFiber =
  (origin: Origin) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.zipRight(
      Effect.updateFiberRefs((id, refs) =>
        FiberRefs.updateAs(refs, { fiberId: id, fiberRef: currentRef, value: origin })
      ),
      self
    )

/**
 * The origin as a local value of the fiber with this id, to set it together with other local values.
 *
 * @since 0.1.0
 * @category constructors
 */
export const local = (origin: Origin, id: FiberId.Single) => [currentRef, [[id, origin]]] as const

/**
 * The same for a fiber that continues as part of the given tool call.
 *
 * @since 0.1.0
 * @category constructors
 */
export const inCall = (toolCallId: ToolCallId, id: FiberId.Single, refs: FiberRefs.FiberRefs) =>
  local(ofCall(FiberRefs.getOrDefault(refs, currentRef), toolCallId), id)

/**
 * Runs an effect, and everything it forks, with what was decided about its call.
 *
 * @internal
 */
export const withDecision =
  (decided: Pick<Origin, "denied" | "paths" | "privileges">) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locallyWith(self, currentRef, (origin) => ({ ...origin, ...decided }))

/**
 * Runs an effect, and everything it forks, as a call that no other process runs again. The fiber ends with the call, or its
 * FiberRefs are restored after it.
 *
 * @internal
 */
export const once = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.zipRight(
    Effect.updateFiberRefs((id, refs) =>
      FiberRefs.updateAs(refs, {
        fiberId: id,
        fiberRef: currentRef,
        value: { ...FiberRefs.getOrDefault(refs, currentRef), once: true }
      })
    ),
    self
  )

/**
 * Runs an effect, and everything it forks, on behalf of another party. Each question shows that party.
 *
 * @since 0.1.0
 * @category combinators
 */
export const asking =
  (via: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locallyWith(self, currentRef, (origin) => ({ ...origin, via }))

/**
 * Runs a question of a call that another process can go on with: `continuation` is stored with the question.
 *
 * @internal
 */
export const continuing =
  (continuation: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locallyWith(self, currentRef, (origin) => ({ ...origin, continuation }))

/**
 * How an origin is shown to a person: `[subagent:code_reviewer]` for a child, `[the server github]` for a server that asks,
 * nothing for a root.
 *
 * @since 0.1.0
 * @category conversions
 */
export const chip = ({
  agentPath,
  origin,
  subagentId
}: {
  readonly agentPath: string
  readonly subagentId?: string | undefined
  readonly origin?: string | undefined
}): string => {
  const child = subagentId === undefined ? "" : `[subagent:${agentPath.split("/").slice(1).join("/")}]`
  return origin === undefined ? child : `${child}[${origin}]`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const currentRef: FiberRef.FiberRef<Origin> = globalValue("assent/core/Origin", () =>
  CallerContext.belongsToFiber(FiberRef.unsafeMake<Origin>(outside, { join: (parent) => parent }))
)
