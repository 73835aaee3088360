/**
 * What a root session and everything below it share: permissions, the broker's bus, budget, profiles, and the list of who
 * is there. Two roots of one process share nothing of it but what the program itself shares.
 */
import * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import type * as Origin from "../core/Origin.js"
import * as AgentEvent from "../event/AgentEvent.js"
import type * as Mediator from "../bridge/Mediator.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type * as Interjection from "../session/Interjection.js"
import type * as JournalWriter from "../journal/JournalWriter.js"
import type * as Session from "../session/Session.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { SubagentProfile } from "./SubagentProfile.js"

/** How children's questions are answered. */
export type Mediation = "forward" | "agent" | Mediator.Strategy

/** What every session of the tree is made with. */
export interface Shared extends Omit<
  Session.Options,
  | "origin"
  | "model"
  | "tools"
  | "instructions"
  | "interactor"
  | "authority"
  | "insteadOfAsking"
  | "inbox"
  | "unread"
  | "ambient"
  | "journal"
  | "restored"
> {
  readonly ledger: TokenLedger.Service
}

/** One agent of the tree. */
export interface Node extends Interjection.Agent {
  /** Names its profile, when it has one. */
  readonly profile: string | undefined
}

/** How agents may have children; the same for all trees of a runtime. */
export interface Settings {
  /** All that the runtime exposes. */
  readonly tools: ToolRegistry.Service
  readonly profiles: ReadonlyMap<string, SubagentProfile>
  /** The tools of a profile among these, which are its parent's; the same each time. */
  readonly toolsOf: (profile: SubagentProfile, among: ToolRegistry.Service) => ToolRegistry.Service
  /** Fails with a sentence. */
  readonly resolveModel: (ref: string) => Effect.Effect<Model.Service, string>
  /** Told to every agent. */
  readonly instructions: string
  readonly mediation: Mediation
  /** Of the bridge. Default: 300 seconds. */
  readonly timeouts: Interactor.Timeouts | undefined
  readonly inline: {
    readonly allowed: boolean
    /** Names of tools or groups. */
    readonly plugins: ReadonlyArray<string>
  }
  /** Of a child of the root: 1. Absent: no limit. */
  readonly maxDepth: number | undefined
  /** Alive at the same time, in the whole tree. Absent: no limit. */
  readonly maxChildren: number | undefined
  /** People see what subagents say while they say it, so their parents need not repeat it. */
  readonly outputStreamed: boolean
}

export class AgentTree {
  private root: Node | undefined
  /** Made with the first child: most trees are a root alone. */
  private children: Map<SessionId, Node> | undefined
  /** Children that are being made and are not among the nodes yet. */
  making = 0

  /** `lastSubagent` is the highest number that a subagent of the tree was given before a restart. */
  constructor(
    readonly settings: Settings,
    readonly shared: Shared,
    /** Where all sessions of the tree are kept. */
    readonly journal: JournalWriter.Service,
    private lastSubagent: number
  ) {}

  /** Those that are alive, parents before their children. */
  get nodes(): ReadonlyArray<Node> {
    const { children, root } = this
    return root === undefined ? [] : [root, ...(children?.values() ?? [])]
  }

  /** How many children are alive, or about to be. */
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

  /** Not of the root. */
  delete(child: SessionId): void {
    this.children?.delete(child)
  }

  /** Tells what happened to an agent of the tree. */
  publish({ agent, sessionId }: Origin.Origin, body: AgentEvent.Body): Effect.Effect<void> {
    return Effect.clockWith((clock) => {
      const stamp = { at: clock.unsafeCurrentTimeMillis(), sessionId, agent }
      this.shared.bus.unsafePublish(AgentEvent.make(stamp, body))
      return Effect.void
    })
  }

  /** Unique in the tree. */
  nextSubagentId(): string {
    return `subagent_${++this.lastSubagent}`
  }
}
