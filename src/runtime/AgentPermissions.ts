/** What a running agent may do unasked: for the program that drives it, and for the person at its prompt. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as LazyModule from "../core/LazyModule.js"
import type { AuditEntry } from "../audit/AuditRecord.js"
import type * as AuditTrail from "../audit/AuditTrail.js"
import type * as AgentEvent from "../event/AgentEvent.js"
import type { JournalFailure } from "../journal/JournalWriter.js"
import type * as PermissionCommand from "../permission/PermissionCommand.js"
import type { Mode, Snapshot, Status, Suspension } from "../permission/PermissionState.js"
import type * as SessionRule from "../permission/SessionRule.js"
import type * as Session from "../session/Session.js"
import type { AgentTree } from "../subagent/AgentTree.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import type { AgentStopped } from "./MessageRouter.js"

/**
 * Who changes something, for the audit. Default: `program`.
 *
 * @since 0.1.0
 * @category models
 */
export interface By {
  readonly by?: string | undefined
}

/**
 * What an agent and its subagents were told beside their policy, for as long as they live. Guards and hard rules hold in
 * any case. A change is told as `PermissionStatusChanged`, and durable once its effect returns; where it could not be
 * kept, it fails, and counts until this process ends. An agent that was shut down changes nothing.
 *
 * Called with a line, it runs a `permissions` command such as `allow git *`, for a prompt.
 *
 * @since 0.1.0
 * @category models
 */
export interface Permissions {
  (line: string, by?: By): Effect.Effect<Either.Either<PermissionCommand.Outcome, string>>
  /**
   * Allows a tool, a pattern or a command. The later word wins over an earlier {@link deny} of the same text. Refused is what
   * would allow everything, and what is about a tool that there is not: it would cover nothing.
   */
  readonly allow: (pattern: string) => Effect.Effect<void, SessionRule.PatternRefused | AgentStopped | JournalFailure>
  readonly deny: (pattern: string) => Effect.Effect<void, SessionRule.PatternRefused | AgentStopped | JournalFailure>
  /** Takes one of those back, as `status` lists it. Yields whether there was one. */
  readonly remove: (entry: string) => Effect.Effect<boolean, AgentStopped | JournalFailure>
  /**
   * How it decides about calls from now on. Recorded before it counts, and kept when the agent is resumed; `allow` is not:
   * who resumes it says so again. `plan` holds for calls that are being asked about, too.
   */
  readonly setMode: (
    mode: Mode,
    by?: By
  ) => Effect.Effect<void, AgentStopped | JournalFailure | AuditTrail.AuditUnwritable>
  /** Asks nothing for that long. Default: until the agent is idle. */
  readonly suspend: (scope?: Suspension) => Effect.Effect<void, AgentStopped | JournalFailure>
  /** Ends every suspension. */
  readonly resume: Effect.Effect<void, AgentStopped | JournalFailure>
  /** Forgets what was allowed and denied here; the mode is the one that it began with, except plan, which stays. */
  readonly clear: Effect.Effect<void, AgentStopped | JournalFailure>
  readonly status: Effect.Effect<Status>
  /**
   * The whole state, for a fork.
   *
   * @internal
   */
  readonly snapshot: Effect.Effect<Snapshot>
  /** What would become of a call with these arguments, as a model writes them. Asks nobody. */
  readonly check: (
    tool: string,
    params?: unknown
  ) => Effect.Effect<PermissionCommand.Foreseen, ToolRegistry.ToolsUnknown>
}

/** `publish` publishes as the agent; `ended` says why nothing is changed any more. */
export const make = (
  tree: AgentTree,
  session: Pick<Session.Session, "contextOf" | "origin" | "tools">,
  publish: (body: AgentEvent.Body) => Effect.Effect<void>,
  ended: () => AgentStopped | undefined
): Permissions => {
  const { audit, guards, permissions: state, policy, redactor } = tree.shared
  const { tools } = session
  const { agent: path, sessionId } = session.origin
  const target = { guards, state, policy, redactor, tools, sessionId, session }
  const toldFrom = (before: Mode) =>
    Effect.suspend(() =>
      Effect.zipRight(
        publish(state.told(policy, sessionId, before)),
        Effect.suspend(() => tree.journal.flush)
      )
    )
  const changed = (change: () => void) =>
    Effect.suspend((): Effect.Effect<void, AgentStopped | JournalFailure> => {
      const stopped = ended()
      if (stopped !== undefined) return stopped
      const before = state.mode(policy)
      change()
      return toldFrom(before)
    })
  const setMode = (mode: Mode, { by = "program" }: By = {}) =>
    Effect.suspend(() => {
      const stopped = ended()
      if (stopped !== undefined) return stopped
      return Effect.flatMap(Clock.currentTimeMillis, (answeredAt) => {
        const entry: AuditEntry = {
          class: "session",
          kind: "mode",
          outcome: "done",
          rootSessionId: sessionId,
          sessionId,
          agent: path,
          reason: `${mode}, ${state.mode(policy)} before`,
          by,
          answeredAt
        }
        const change = changed(() => {
          // With the journal's entry about the change. Without arguments there is always a record.
          audit?.note?.([entry])
          state.setMode(mode)
        })
        return audit === undefined || audit.note ? change : Effect.zipRight(audit.record(entry), change)
      })
    })
  const remembered = (verb: "allow" | "deny") => (pattern: string) =>
    Effect.suspend(
      (): Effect.Effect<void, SessionRule.PatternRefused | AgentStopped | JournalFailure> =>
        ended() ??
        Effect.flatMap(rules, (SessionRule) =>
          Effect.flatMap(SessionRule.of(verb, pattern, tools), (entry) => changed(() => state[verb](entry)))
        )
    )
  const line = (line: string, by: By): Effect.Effect<Either.Either<PermissionCommand.Outcome, string>> => {
    return Effect.flatMap(commands, (PermissionCommand) => {
      const stopped = PermissionCommand.isQuestion(line) ? undefined : ended()
      if (stopped !== undefined) return Effect.succeed(Either.left(stopped.message))
      const mode = PermissionCommand.modeIn(line)
      return mode === undefined
        ? run(PermissionCommand.answer(line, target))
        : Effect.match(setMode(mode, by), {
            onFailure: ({ message }) => Either.left(message),
            onSuccess: () => Either.right({ lines: [PermissionCommand.modeSaid(mode)], changed: true })
          })
    })
  }
  const run = (answer: Effect.Effect<Either.Either<PermissionCommand.Outcome, string>>) => {
    const before = state.mode(policy)
    return Effect.flatMap(answer, (said): typeof answer => {
      const outcome = Either.mapBoth(said, {
        onLeft: redactor.text,
        onRight: ({ changed, lines }) => ({ changed, lines: lines.map(redactor.text) })
      })
      if (Either.isLeft(outcome) || !outcome.right.changed) return Effect.succeed(outcome)
      return Effect.match(toldFrom(before), {
        onFailure: ({ message }) =>
          Either.left(`It counts until this process ends. Assent could not store it: ${message}`),
        onSuccess: () => outcome
      })
    })
  }
  return Object.assign((text: string, by: By = {}) => Effect.suspend(() => line(text, by)), {
    allow: remembered("allow"),
    deny: remembered("deny"),
    remove: (entry: string) =>
      Effect.suspend((): Effect.Effect<boolean, AgentStopped | JournalFailure> => {
        const stopped = ended()
        if (stopped !== undefined) return stopped
        const before = state.mode(policy)
        return state.remove(entry.trim()) ? Effect.as(toldFrom(before), true) : Effect.succeed(false)
      }),
    setMode,
    suspend: (scope: Suspension = "idle") => changed(() => state.suspend(scope, sessionId)),
    resume: changed(() => state.resume()),
    clear: changed(() => state.clear()),
    status: Effect.sync(() => {
      const { allow, deny, ...status } = state.status(policy, sessionId)
      return { ...status, allow: allow.map(redactor.text), deny: deny.map(redactor.text) }
    }),
    snapshot: Effect.sync(() => state.snapshot()),
    check: (tool: string, params: unknown = {}) => {
      const entry = tools.get(tool)
      return entry === undefined
        ? new ToolRegistry.ToolsUnknown({
            by: `a check of agent ${path}`,
            unknown: [tool],
            known: tools.entries.map(({ name }) => name)
          })
        : Effect.flatMap(foresight, ({ foresee }) =>
            Effect.map(foresee(target, entry, params), (foreseen) => ({
              ...foreseen,
              rule: redactor.text(foreseen.rule)
            }))
          )
    }
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const rules = LazyModule.make(() => import("../permission/SessionRule.js"))
const commands = LazyModule.make(() => import("../permission/PermissionCommand.js"))
const foresight = LazyModule.make(() => import("../permission/Foresight.js"))
