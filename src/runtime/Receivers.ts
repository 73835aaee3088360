/**
 * Who receives what an agent records beside its events: the audit trail, the spans, the metrics. What is provided around
 * the start counts, else what was there when the runtime was made.
 */
import * as Context from "effect/Context"
import type * as DefaultServices from "effect/DefaultServices"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as Spans from "../core/Spans.js"
import type * as EventBus from "../event/EventBus.js"
import { AgentRuntime } from "./AgentRuntime.js"
import { Metrics } from "./MetricsTaking.js"

export interface Receivers {
  readonly trail: AuditTrail.Service
  readonly spans: Spans.Service
  /** The bus, with metrics taken of what is published on it. */
  readonly bus: EventBus.Service
}

export const around = (
  context: Context.Context<AgentRuntime>,
  services: Context.Context<DefaultServices.DefaultServices>,
  bus: EventBus.Service
): Receivers => {
  const { audit, metrics, spans } = Context.get(context, AgentRuntime)
  return {
    trail: nearest(context, AuditTrail.AuditTrail, audit),
    spans: followed(nearest(context, Spans.Spans, spans), services),
    bus: nearest(context, Metrics, metrics)?.of(bus) ?? bus
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A reference has a value in every context; only one that was provided counts before the runtime's. */
const nearest = <Id, A>(context: Context.Context<AgentRuntime>, tag: Context.Reference<Id, A>, ofRuntime: A): A =>
  context.unsafeMap.has(tag.key) ? Context.get(context, tag) : ofRuntime

const followed = (given: Spans.Service, services: Context.Context<DefaultServices.DefaultServices>): Spans.Service => {
  if (given !== Spans.ofApp) return given
  const following = new Spans.Following()
  following.notice(services)
  return following
}
