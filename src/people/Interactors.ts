/**
 * Interactors made of interactors: people in any arrangement, asked like one.
 *
 * A question has one answer, whoever takes part; all who did are named; and whatever was opened is closed, also when the asker
 * is interrupted. If a policy reserves a call (`approvals`), each answer is a vote. These arrangements choose who is
 * asked; the policy chooses who decides.
 *
 * @example
 * ```ts
 * import { Interactors, QueueChannel } from "assent"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const desk = yield* QueueChannel.make({ id: "desk" })
 *   const onCall = yield* QueueChannel.make({ id: "on-call" })
 *   return Interactors.route({
 *     cases: [{ when: { tools: ["deploy"] }, to: Interactors.escalate({ to: [desk.interactor, onCall.interactor], after: "10 minutes" }) }],
 *     otherwise: desk.interactor
 *   })
 * })
 * ```
 *
 * @since 0.1.0
 */
import type * as Interactor from "../interaction/Interactor.js"
import * as Escalation from "./Escalation.js"
import * as ModelReviewer from "./ModelReviewer.js"
import * as Quorum from "./Quorum.js"
import * as Roles from "./Roles.js"
import * as Route from "./Route.js"

export type { EscalateOptions } from "./Escalation.js"
export type { ByModelOptions } from "./ModelReviewer.js"
export type { QuorumOptions } from "./Quorum.js"
export type { RolesOptions } from "./Roles.js"
export type { About, RouteCase, RouteOptions } from "./Route.js"

/**
 * Asks all of them, until as many different people as needed have given the same answer. One who denies ends it, unless `deny`
 * is `"quorum"`. People who want different arguments do not agree. An allowance holds for one call. When all have answered or
 * left without agreeing, it fails as unavailable. Sign-ins are not asked of several.
 *
 * @since 0.1.0
 * @category combinators
 */
export const quorum = (options: Quorum.QuorumOptions): Interactor.Service => Quorum.make(options)

/**
 * Asks the first of them, and the next one too when that one has not answered in time, or at once when they cannot or will not
 * answer. Those before may still answer; the first answer counts.
 *
 * @since 0.1.0
 * @category combinators
 */
export const escalate = (options: Escalation.EscalateOptions): Interactor.Service => Escalation.make(options)

/**
 * Asks the interactor of the first case that fits.
 *
 * @since 0.1.0
 * @category combinators
 */
export const route = (options: Route.RouteOptions): Interactor.Service => Route.make(options)

/**
 * Gives the answers of an interactor the roles of their authors. With `only`, the answers of others do not count: they are told
 * so, and the question stays.
 *
 * @since 0.1.0
 * @category combinators
 */
export const roles = (options: Roles.RolesOptions): Interactor.Service => Roles.make(options)

/**
 * Lets a model decide about calls that the policy delegates (`delegated`): it allows one, denies it with a reason, or passes it
 * on, as everything else is. What is reserved for people never comes before it. Its answers are recorded as `model`.
 *
 * @since 0.1.0
 * @category combinators
 */
export const byModel = (options: ModelReviewer.ByModelOptions): Interactor.Service => ModelReviewer.make(options)
