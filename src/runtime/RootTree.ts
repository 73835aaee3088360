/**
 * The tree that a new root session begins: what it shares with all sessions below it, and who receives what they record
 * beside their events: the audit trail, the spans, the metrics.
 */
import * as Context from "effect/Context"
import type * as DefaultServices from "effect/DefaultServices"
import * as AuditTrail from "../audit/AuditTrail.js"
import * as Spans from "../core/Spans.js"
import type * as EventBus from "../event/EventBus.js"
import * as TokenLedger from "../model/TokenLedger.js"
import type * as Guard from "../permission/Guard.js"
import type { Policy } from "../permission/CompiledPolicy.js"
import { PermissionState, type Mode } from "../permission/PermissionState.js"
import * as JournalPort from "../journal/JournalPort.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type * as Limits from "../turn/Limits.js"
import type * as Session from "../session/Session.js"
import { AgentTree } from "../subagent/AgentTree.js"
import { AgentRuntime, type Service as Runtime } from "./AgentRuntime.js"
import { Metrics } from "./MetricsTaking.js"
import * as OwnRules from "./OwnRules.js"
import type * as Persistence from "./Persistence.js"

export interface Options {
  readonly policy?: Policy | undefined
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
  readonly limits?: Partial<Limits.Limits> | undefined
  readonly persistence?: Persistence.Persistence | undefined
  readonly mode?: Mode | undefined
}

export interface Receivers {
  readonly trail: AuditTrail.Service
  readonly spans: Spans.Service
  /** The bus, with metrics taken of what is published on it. */
  readonly bus: EventBus.Service
}

/** The receivers around a start. What is provided there counts, else what was there when the runtime was made. */
export const receiversAround = (
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

export const make = (runtime: Runtime, options: Options, { bus, spans, trail }: Receivers): AgentTree => {
  const { limits, persistence } = options
  const permissions = new PermissionState()
  const ledger = TokenLedger.make(runtime.tokens)
  persistence?.ways.restore(persistence, permissions, ledger)
  if (options.mode !== undefined) permissions.begin(options.mode)
  const shared: Session.Shared = {
    policy: OwnRules.policyOf(runtime, options),
    permissions,
    guards: OwnRules.guardsOf(runtime, options),
    // Without an audit trail no records are made.
    audit:
      persistence?.ways.audit(persistence.journal, runtime.redactor) ?? (trail === AuditTrail.noop ? undefined : trail),
    bus,
    redactor: runtime.redactor,
    limits: limits === undefined ? runtime.limits : { ...runtime.limits, ...limits },
    compaction: runtime.compaction,
    ledger,
    spans
  }
  const { subagents } = runtime
  if (persistence === undefined) return new AgentTree(subagents, shared, JournalPort.noop, notKept, 0)
  const { journal, restored, ways } = persistence
  return new AgentTree(subagents, shared, journal, ways.recorder, ways.lastSubagent(restored))
}

/** The mode that the session had in another process, where that does not go on: `allow` is said anew by who goes on. */
export const lostMode = ({ mode, persistence }: Options): Mode | undefined => {
  const before = persistence?.restored?.permissions?.default
  return before === "allow" && mode === undefined ? before : undefined
}

/** The root notes what people decide for the whole tree. Apart, as closures elsewhere would retain what is made beside. */
export const keep = (permissions: PermissionState, root: SessionRecorder, { mode }: Pick<Options, "mode">): void => {
  const note = () => root.permissions(permissions.snapshot())
  permissions.changed = note
  // It began with this one, here or in another process.
  if (mode !== undefined) note()
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const notKept = () => undefined

/** A reference has a value in every context; only one that was provided counts before the runtime's. */
const nearest = <Id, A>(context: Context.Context<AgentRuntime>, tag: Context.Reference<Id, A>, ofRuntime: A): A =>
  context.unsafeMap.has(tag.key) ? Context.get(context, tag) : ofRuntime

const followed = (given: Spans.Service, services: Context.Context<DefaultServices.DefaultServices>): Spans.Service => {
  if (given !== Spans.ofApp) return given
  const following = new Spans.Following()
  following.notice(services)
  return following
}
