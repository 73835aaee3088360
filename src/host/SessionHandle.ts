/**
 * A session as a surface drives it. An agent of this process is one, and so is a session that another process serves.
 *
 * It has what a chat and an editor need of a session, in values that can travel: events, words, permissions, mode, model.
 */
import type * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type * as EditorFiles from "../builtin/EditorFiles.js"
import type { SessionId } from "../core/Id.js"
import type { CancelReason } from "../core/Interruption.js"
import type { Origin } from "../core/Origin.js"
import type { Todo } from "../core/Todo.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type * as EventBus from "../event/EventBus.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import type { Input } from "../inbox/Input.js"
import type { Service as Interactor } from "../interaction/InteractorPort.js"
import type { ServerPrompts } from "../mcp/ServerPrompts.js"
import type * as TokenLedger from "../model/TokenLedger.js"
import type { Mode, Status } from "../permission/PermissionState.js"
import type { By } from "../runtime/AgentPermissions.js"
import type * as ServerSettings from "../tool/ServerSettings.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** Why something was not done: a sentence for a person. */
export interface Refusal {
  readonly _tag: string
  readonly message: string
}

/** An agent of the session that lives. */
export interface Node {
  readonly origin: Origin
  readonly session: {
    /** Turns that it has begun. */
    readonly turns: () => number
    /** Stops its turn and waits for its end. */
    readonly stop: (reason: { readonly cancel: CancelReason }) => Effect.Effect<unknown>
  }
}

/** Words that the session took. */
export interface Taken {
  readonly id: string
  readonly text: string
  readonly at: number
}

/** What it may do unasked. Called with a line, it runs a `permissions` command. */
export interface Permissions {
  (line: string, by?: By): Effect.Effect<Either.Either<{ readonly lines: ReadonlyArray<string> }, string>>
  readonly status: Effect.Effect<Omit<Status, "suspension"> & { readonly suspension: string | undefined }>
  readonly setMode: (mode: Mode, by?: By) => Effect.Effect<void, Refusal>
}

export interface SessionHandle {
  readonly id: SessionId
  readonly origin: Origin
  /** Returns once the words are filed and durable. */
  readonly send: (
    input: Input,
    options?: { readonly target?: string | undefined; readonly id?: string | undefined }
  ) => Effect.Effect<Pick<Taken, "id">, Refusal>
  /** The receiver of words without a target. */
  readonly receiver: Effect.Effect<{ readonly agent: Pick<Node, "origin"> }>
  /** Selects the agent for words without a target; `undefined`: no selection. */
  readonly select: (target: string | undefined) => Effect.Effect<void, Refusal>
  readonly selected: Effect.Effect<Option.Option<unknown>>
  /** Cancels an agent's turn, or one running call alone. None when there was nothing to cancel. */
  readonly interrupt: (options?: {
    readonly target?: string | undefined
    readonly toolCallId?: string | undefined
  }) => Effect.Effect<Option.Option<unknown>, Refusal>
  /** Withdraws the user's unread words, oldest first. */
  readonly takeBack: (target?: string) => Effect.Effect<ReadonlyArray<Taken>, Refusal>
  /** Cancels the running turn and waits for its end; none when idle. */
  readonly cancel: (reason?: CancelReason) => Effect.Effect<Option.Option<unknown>>
  /** Waits until the tools that run now have ended. */
  readonly awaitTools: Effect.Effect<void>
  readonly isIdle: Effect.Effect<boolean>
  /** Waits until no turn runs and no words wait; yields the last turn's end. */
  readonly awaitIdle: Effect.Effect<Option.Option<TurnEnd>>
  readonly events: EventBus.Subscription
  readonly permissions: Permissions
  readonly compact: Effect.Effect<{ readonly removed: number; readonly tokens: number }, Refusal>
  readonly ledger: TokenLedger.Service
  /** The root and its living subagents, parents before their children. */
  readonly agents: Effect.Effect<ReadonlyArray<Node>>
  readonly todos: (target?: string) => Effect.Effect<ReadonlyArray<Todo>, Refusal>
  readonly model: Effect.Effect<{ readonly id: string; readonly contextWindow?: number | undefined }>
  /** Ends the agent, or leaves the session to the process that serves it. */
  readonly shutdown: Effect.Effect<void>
  /** Waits until it is over for this surface; yields the last turn's end. */
  readonly done: Effect.Effect<Option.Option<TurnEnd>>
}

/** A session with its past, for a surface that shows all of it and lets a person choose a model. */
export interface ShownSession {
  readonly id: SessionId
  readonly workspace: string
  readonly agent: Pick<SessionHandle, "agents" | "cancel" | "compact" | "ledger" | "model" | "permissions" | "send">
  /** Begins a turn with words. */
  readonly run: (input: Input) => Effect.Effect<unknown, Refusal>
  /** What happened before, and with it what happens from then on. */
  readonly read: Effect.Effect<
    { readonly past: ReadonlyArray<AgentEvent>; readonly next: Stream.Stream<AgentEvent, Refusal> },
    Refusal
  >
  /** The tool of this name, where its registry is here. */
  readonly toolOf: ToolRegistry.Service["get"]
  /** The prompts of its tool servers, where they are here. Default: there are none. */
  readonly prompts?: ServerPrompts | undefined
  readonly models: ReadonlyArray<string>
  /** What the person should know beside the events, such as who answered first. Default: nothing. */
  readonly remarks?: Stream.Stream<string> | undefined
  readonly setModel: (model: string, thinking?: "low" | "medium" | "high") => Effect.Effect<void, Refusal>
  /** Asks at this interactor, too, until the scope closes. */
  readonly attach: (interactor: Interactor) => Effect.Effect<void, never, Scope.Scope>
  /** Waits until it is closed, by whatever. */
  readonly closed: Effect.Effect<void>
}

/** A session in a list. */
export interface ListedSession {
  readonly id: string
  readonly title: string
  readonly workspace: string | undefined
  readonly lastActivity: number
}

/** What a surface brings to a session. The last two count only for sessions of this process. */
export interface WorkspaceSettings {
  readonly workspace: string
  readonly addDirs: ReadonlyArray<string>
  readonly servers?: ServerSettings.Servers | undefined
  readonly editor?: EditorFiles.Service | undefined
}

/** The sessions that a surface can show. */
export interface ShownSessions {
  /** Whether this process runs them. */
  readonly isHere: boolean
  readonly create: (brought: WorkspaceSettings) => Effect.Effect<ShownSession, Refusal>
  readonly open: (id: string, brought: WorkspaceSettings) => Effect.Effect<ShownSession, Refusal>
  /** `after` is `next` of the page before. */
  readonly list: (query: {
    readonly workspace: string | undefined
    readonly after: string | undefined
    readonly limit: number
  }) => Effect.Effect<{ readonly sessions: ReadonlyArray<ListedSession>; readonly next: string | undefined }, Refusal>
  /** Ends this surface's use of the session. */
  readonly close: (id: string) => Effect.Effect<void>
  readonly delete: (id: string) => Effect.Effect<void, Refusal>
}
