/** Whether metrics are taken, and what takes them: it comes with them, and programs without metrics do not load it. */
import * as Context from "effect/Context"
import type * as EventBus from "../event/EventBus.js"

/**
 * What takes metrics of an agent.
 *
 * @since 0.1.0
 * @category models
 */
export interface Taking {
  /** The bus of one tree, with metrics taken of every event that is published. */
  readonly of: (bus: EventBus.Service) => EventBus.Service
}

/**
 * What takes metrics; nothing takes any by default.
 *
 * @since 0.1.0
 * @category services
 */
export class Metrics extends Context.Reference<Metrics>()("assent/runtime/Metrics", {
  defaultValue: (): Taking | undefined => undefined
}) {}
