/**
 * What people were shown of files that calls would replace. A person's yes is for what they saw, and not for what somebody
 * else wrote while their dialog was open; what tools of the workspace wrote meanwhile was decided, too.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import type { Service, Target } from "./WorkspaceRoot.js"

/** A change of a file that a call plans. */
export interface Planned {
  readonly target: Target
  /** The current text; none for a new file, `undefined` for a file that is not text or is too long to show. */
  readonly before: Option.Option<string | undefined>
  readonly after: string
  /** Where the text is replaced: how long each part is, and where the first parts begin. Absent for a whole file. */
  readonly parts?: { readonly length: number; readonly starts: ReadonlyArray<number> }
}

/** A person is asked about the current call, and sees this change. */
export const show = (workspace: Service, { before, parts, target }: Planned): Effect.Effect<void> =>
  Effect.map(Origin.current, (origin) => {
    const shown = shownIn(workspace)
    const call = callOf(origin)
    shown.delete(call)
    shown.set(call, { path: target.absolute, shown: { key: keyOf(target, before), parts }, written: undefined })
    for (const oldest of shown.keys()) if (shown.size > most) shown.delete(oldest)
  })

/**
 * Whether the current call makes the change that a person saw: of the same file, in the same places. What tools wrote
 * since was decided, too.
 */
export const take = (
  workspace: Service,
  { before, parts, target }: Planned
): Effect.Effect<"unasked" | "as shown" | "changed"> =>
  Effect.map(Origin.current, (origin) => {
    const shown = shownIn(workspace)
    const call = callOf(origin)
    const asked = shown.get(call)
    shown.delete(call)
    if (asked === undefined) return "unasked"
    const now = keyOf(target, before)
    const decided = [asked.shown, asked.written].find((one) => one?.key === now)
    if (asked.path !== target.absolute || decided === undefined) return "changed"
    const starts = decided.parts?.starts ?? []
    return (parts?.starts ?? []).every((start, at) => start === starts[at]) ? "as shown" : "changed"
  })

/** A tool has made this change. The places that other calls showed move with the text around them. */
export const wrote = (workspace: Service, { after, before, target }: Planned): void => {
  for (const asked of shownIn(workspace).values()) {
    if (asked.path !== target.absolute) continue
    const last = asked.written ?? asked.shown
    if (keyOf(target, before) !== last.key) continue
    const parts = last.parts && moved(last.parts, Option.getOrUndefined(before) ?? "", after)
    asked.written = { key: Digest.sha256(after), parts }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Asked {
  readonly path: string
  readonly shown: Version
  /** What a tool has written there last. */
  written: Version | undefined
}

interface Version {
  readonly key: string
  readonly parts: Planned["parts"]
}

/** Parts behind the text that changed move; one that overlaps with it is nowhere. */
const moved = (
  { length, starts }: Exclude<Planned["parts"], undefined>,
  before: string,
  after: string
): Planned["parts"] => {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++
  let end = 0
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++
  const place = (at: number) =>
    at + length <= start ? at : at >= before.length - end ? at + after.length - before.length : -1
  return { length, starts: starts.map(place) }
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

const keyOf = ({ info }: Target, before: Planned["before"]): string =>
  Option.match(before, {
    onNone: () => "none",
    onSome: (text) =>
      text === undefined
        ? `${Option.match(info, { onNone: () => "", onSome: ({ size }) => size })} bytes`
        : Digest.sha256(text)
  })
