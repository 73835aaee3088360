/**
 * What a root session and all sessions below it share: permissions, the broker's bus, budget, profiles, and the list of
 * agents. Two roots of one process share none of it, except what the program itself passes to both.
 */
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import * as EventPublisher from "../event/EventPublisher.js"
import type * as Mediator from "../bridge/Mediator.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as Interjection from "../session/Interjection.js"
import type { Redactor } from "../core/Redaction.js"
import type { SessionOpened } from "../journal/JournalEntry.js"
import type * as JournalWriter from "../journal/JournalPort.js"
import type { SessionRecorder } from "../journal/SessionRecorder.js"
import type * as Session from "../session/Session.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { SubagentProfile } from "./SubagentProfile.js"

/**
 * How children's questions are answered.
 *
 * @since 0.1.0
 * @category models
 */
export type Mediation = "forward" | "agent" | Mediator.Strategy

/**
 * One agent of the tree.
 *
 * @since 0.1.0
 * @category models
 */
export interface Node extends Interjection.Agent {
  /** The name of its profile, if it has one. */
  readonly profile: string | undefined
}

/**
 * Settings for children; the same for all trees of a runtime.
 *
 * @since 0.1.0
 * @category models
 */
export interface Settings {
  /** All tools that the runtime exposes. */
  readonly tools: ToolRegistry.Service
  readonly profiles: ReadonlyMap<string, SubagentProfile>
  /** The tools of a profile, out of its parent's tools. The same arguments give the same registry. */
  readonly toolsOf: (profile: SubagentProfile, among: ToolRegistry.Service) => ToolRegistry.Service
  /** Fails with a sentence. */
  readonly resolveModel: (ref: string) => Effect.Effect<Model.Service, string>
  /** Instructions for every agent. */
  readonly instructions: string
  readonly mediation: Mediation
  /** Timeouts of the bridge. Default: 300 seconds. */
  readonly timeouts: Interactor.Timeouts | undefined
  readonly inline: {
    readonly allowed: boolean
    /** Names of tools or groups. */
    readonly plugins: ReadonlyArray<string>
  }
  /** A child of the root has depth 1. Absent: no limit. */
  readonly maxDepth: number | undefined
  /** Working and kept children in the whole tree. Absent: no limit. */
  readonly maxChildren: number | undefined
  /** People see what subagents say while they say it, so their parents need not repeat it. */
  readonly outputStreamed: boolean
}

/** `opened` is how the journal of a new root begins. */
export type Recording = (
  journal: JournalWriter.Service,
  redactor: Redactor,
  opened?: SessionOpened
) => SessionRecorder | undefined

export class AgentTree {
  private root: Node | undefined
  /** Made with the first child: most trees are only a root. */
  private children: Map<SessionId, Node> | undefined
  /** Children that are being made and are not nodes yet. */
  making = 0

  /** `lastSubagent` is the highest number of a subagent of the tree before a restart. */
  constructor(
    readonly settings: Settings,
    readonly shared: Session.Shared,
    /** The journal of all sessions of the tree. */
    readonly journal: JournalWriter.Service,
    /** Makes the notes of one session of a tree that is kept. */
    readonly record: Recording,
    private lastSubagent: number
  ) {}

  /** The living agents, parents before their children. */
  get nodes(): ReadonlyArray<Node> {
    const { children, root } = this
    return root === undefined ? [] : [root, ...(children?.values() ?? [])]
  }

  /** The number of children that live or are being made. */
  get size(): number {
    return (this.children?.size ?? 0) + this.making
  }

  node(id: SessionId): Node | undefined {
    return this.root?.origin.sessionId === id ? this.root : this.children?.get(id)
  }

  /** The first is the root. */
  add(node: Node): void {
    if (this.root === undefined) this.root = node
    else this.children = (this.children ?? new Map()).set(node.origin.sessionId, node)
  }

  /** Removes a child; never the root. */
  delete(child: SessionId): void {
    this.children?.delete(child)
  }

  /** Publishes an event of an agent of the tree. */
  publish(agent: EventPublisher.Actor, body: AgentEvent.Body): Effect.Effect<void> {
    return Effect.clockWith((clock) => {
      EventPublisher.publish(this.shared.bus, clock, agent, body)
      return Effect.void
    })
  }

  /** Unique in the tree. */
  nextSubagentId(): string {
    return `subagent_${++this.lastSubagent}`
  }
}
