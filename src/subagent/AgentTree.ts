/**
 * What a root session and everything below it share: permissions, the broker's bus, budget, profiles, and the list of who
 * is there. Two roots of one process share nothing of it but what the program itself shares.
 */
import type * as Effect from "effect/Effect"
import type { SessionId } from "../core/Id.js"
import type * as Mediator from "../bridge/Mediator.js"
import type * as Interactor from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import type * as Interjection from "../session/Interjection.js"
import type * as Journal from "../session/Journal.js"
import type * as Session from "../session/Session.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import type { SubagentProfile } from "./SubagentProfile.js"

/** How children's questions are answered. */
export type Mediation = "forward" | "agent" | Mediator.Strategy

/** What every session of the tree is made with. */
export type Shared = Omit<
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
>

/** One agent of the tree. */
export interface Node extends Interjection.Agent {
  /** Names its profile, when it has one. */
  readonly profile: string | undefined
}

export interface AgentTree {
  readonly shared: Shared
  /** All that the runtime exposes, for profiles to choose from. */
  readonly tools: ToolRegistry.Service
  readonly profiles: ReadonlyMap<string, SubagentProfile>
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
  /** Where all sessions of the tree are kept. */
  readonly journal: Journal.Service
  readonly nodes: Map<SessionId, Node>
  /** Children that are being made and are not among the nodes yet. */
  making: number
  /** Unique in the tree. */
  readonly nextSubagentId: () => string
}
