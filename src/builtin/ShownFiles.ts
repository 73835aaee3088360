/**
 * What people were shown of files that calls would replace. A person's yes is for what they saw, and not for what somebody
 * else wrote while their dialog was open; what tools of the workspace wrote meanwhile was decided, too.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import type { Service, Target } from "./WorkspaceRoot.js"

/** What a file held, as of `Change`. */
type Content = Option.Option<string | undefined>

/** Somebody is asked about the current call, which would replace this file; it holds that now. */
export const show = (workspace: Service, target: Target, before: Content): Effect.Effect<void> =>
  Effect.map(Origin.current, (origin) => {
    const shown = shownIn(workspace)
    const call = callOf(origin)
    shown.delete(call)
    shown.set(call, { path: target.absolute, shown: keyOf(target, before), written: undefined })
    for (const oldest of shown.keys()) if (shown.size > most) shown.delete(oldest)
  })

/** Whether the current call is to replace what somebody saw, or what a tool wrote last since. True where nobody was asked. */
export const take = (workspace: Service, target: Target, before: Content): Effect.Effect<boolean> =>
  Effect.map(Origin.current, (origin) => {
    const shown = shownIn(workspace)
    const call = callOf(origin)
    const asked = shown.get(call)
    shown.delete(call)
    if (asked === undefined) return true
    const now = keyOf(target, before)
    return asked.path === target.absolute && (now === asked.shown || now === asked.written)
  })

/** A tool has written a file, which other calls may be to replace. */
export const wrote = (workspace: Service, target: Target, after: string): void => {
  for (const asked of shownIn(workspace).values()) {
    if (asked.path === target.absolute) asked.written = Digest.sha256(after)
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Asked {
  readonly path: string
  readonly shown: string
  /** What a tool has written there last. */
  written: string | undefined
}

/** Calls of one workspace that are remembered. Those that were denied never run, and are pushed out by others. */
const most = 64

const kept = new WeakMap<Service, Map<string, Asked>>()

const shownIn = (workspace: Service): Map<string, Asked> => {
  const shown = kept.get(workspace) ?? new Map<string, Asked>()
  kept.set(workspace, shown)
  return shown
}

/** Models number their calls as they like: the same id may be of two agents. */
const callOf = ({ sessionId, toolCallId }: Origin.Origin): string => `${sessionId} ${toolCallId ?? ""}`

const keyOf = ({ info }: Target, before: Content): string =>
  Option.match(before, {
    onNone: () => "none",
    onSome: (text) =>
      text === undefined
        ? `${Option.match(info, { onNone: () => "", onSome: ({ size }) => size })} bytes`
        : Digest.sha256(text)
  })
