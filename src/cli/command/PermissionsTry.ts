/**
 * `assent permissions try FILE`: what a policy would have decided otherwise about the calls of this workspace's sessions.
 *
 * Each stored call is judged again as a new session with `--policy FILE` would judge it. Nothing runs, nobody is asked.
 * A call that depends on what no longer exists is counted as not judged, never guessed.
 */
import * as Effect from "effect/Effect"
import type * as Agent from "../../runtime/Agent.js"
import { visible } from "../../audit/AuditReport.js"
import * as ExitCode from "../../host/ExitCode.js"
import * as Launch from "../../host/Launch.js"
import * as Settings from "../../host/Settings.js"
import * as StoreLocation from "../../host/StoreLocation.js"
import type { EntryOf, Written } from "../../journal/JournalEntry.js"
import * as Output from "../../tui/process/Output.js"
import type * as Arguments from "../config/Arguments.js"

export const run = (flags: Arguments.Flags, file: string) =>
  Effect.gen(function* () {
    const settings = yield* Settings.load({ ...flags, policy: file })
    const { permissions, tools } = yield* Launch.judgement(settings, yield* Launch.profiles(settings))
    const place = yield* StoreLocation.of(flags, settings)
    const store = yield* StoreLocation.openExisting(place)
    const listed = store === undefined ? [] : yield* store.list
    const tally = new Tally(permissions.check, (tool) => tools.get(tool)?.kind === "switch_mode")
    for (const session of listed) {
      if (store === undefined || session.workspace !== settings.workspace) continue
      tally.sessions++
      yield* Effect.matchEffect(store.load(session.rootSessionId), {
        onFailure: ({ message }) => Output.notice(message),
        onSuccess: ({ entries }) => Effect.forEach(decided(entries), (call) => tally.take(call))
      })
    }
    yield* Output.write("stdout", `${tally.lines().map(visible).join("\n")}\n`)
    return ExitCode.completed
  }).pipe(Effect.catchTag("StoreUnusable", StoreLocation.refuse))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Decided = EntryOf<"CallDecided">
type Outcome = "allow" | "deny" | "ask"

interface Call {
  readonly tool: string
  readonly params: unknown
  readonly decision: Decided
}

/** The calls about which somebody decided, with the arguments that were decided about. */
const decided = (entries: ReadonlyArray<Written>): ReadonlyArray<Call> => {
  const proposed = new Map<string, { readonly name: string; readonly params: unknown }>()
  return entries.flatMap(({ entry, sessionId }) => {
    if (entry._tag === "CallsProposed")
      for (const call of entry.calls) proposed.set(JSON.stringify([sessionId, call.id]), call)
    if (entry._tag !== "CallDecided") return []
    const call = proposed.get(JSON.stringify([sessionId, entry.toolCallId]))
    return call === undefined ? [] : [{ tool: call.name, params: entry.params ?? call.params, decision: entry }]
  })
}

/** How a call ended then; a sentence if no policy decided it. */
const outcomeOf = ({ granted, method, requestId }: Decided): Outcome | { readonly why: string } => {
  switch (method) {
    case "pre_validation":
    case "unknown":
    case "check_failed":
      return { why: "the tool itself refused it" }
    case "stage_grant":
    case "envelope":
      return { why: "the authority of a stage or a subagent decided" }
    case "turn_suspension":
    case "idle_suspension":
    case "allow_all":
    case "session_blacklist":
    case "session_whitelist":
      return { why: "a rule of its session decided" }
    case "mode":
      return { why: "the mode of its session decided" }
    default:
      return requestId !== undefined ? "ask" : granted ? "allow" : "deny"
  }
}

/** Calls by what becomes of them, most first. */
class Tally {
  sessions = 0
  private same = 0
  private refused = new Map<string, number>()
  private readonly changed = new Map<string, Map<string, number>>()
  private readonly unjudged = new Map<string, Map<string, number>>()

  constructor(
    private readonly check: Agent.Agent["permissions"]["check"],
    private readonly endsPlanMode: (tool: string) => boolean
  ) {}

  take({ decision, params, tool }: Call): Effect.Effect<void> {
    const was = this.endsPlanMode(tool) ? { why: "its session was in plan mode" } : outcomeOf(decision)
    if (typeof was !== "string") return Effect.sync(() => add(this.unjudged, was.why, tool))
    return Effect.match(this.check(tool, params), {
      onFailure: () => add(this.unjudged, "the tool no longer exists", tool),
      onSuccess: ({ decision: would, method, rule }) => {
        if (method === "invalid" || method === "pre_validation")
          return add(this.unjudged, `the tool refuses it today: ${rule}`, tool)
        if (was === would) return void this.same++
        const line = `${past[was]} -> ${would}  by ${rule}`
        add(this.changed, line, tool)
        if (would === "allow" && !decision.granted) this.refused.set(line, (this.refused.get(line) ?? 0) + 1)
      }
    })
  }

  /** One line for each change, and for each reason why some calls were not judged. */
  lines(): ReadonlyArray<string> {
    const [otherwise, not] = [total(this.changed), total(this.unjudged)]
    const calls = counted(this.same + otherwise + not, "call")
    return [
      `${calls} in ${counted(this.sessions, "session")} of this workspace: ${this.same} decided the same, ${otherwise} otherwise, ${not} not judged.`,
      ...sorted(this.changed).flatMap(([line, tools]) => {
        const refused = this.refused.get(line)
        const warning = refused === undefined ? [] : [`  Careful: refused then: ${counted(refused, "call")}.`]
        return [`${line}  ${shown(tools)}`, ...warning]
      }),
      ...sorted(this.unjudged).map(([why, tools]) => `not judged: ${why}  ${shown(tools)}`)
    ]
  }
}

const past: { readonly [O in Outcome]: string } = { allow: "allowed", deny: "denied", ask: "asked" }

const add = (groups: Map<string, Map<string, number>>, line: string, tool: string): void => {
  const tools = groups.get(line) ?? new Map<string, number>()
  groups.set(line, tools.set(tool, (tools.get(tool) ?? 0) + 1))
}

const sum = (tools: ReadonlyMap<string, number>): number => [...tools.values()].reduce((all, count) => all + count, 0)

const total = (groups: ReadonlyMap<string, ReadonlyMap<string, number>>): number =>
  [...groups.values()].reduce((all, tools) => all + sum(tools), 0)

const sorted = (groups: ReadonlyMap<string, ReadonlyMap<string, number>>) =>
  [...groups].sort(([, a], [, b]) => sum(b) - sum(a))

const shown = (tools: ReadonlyMap<string, number>): string =>
  `(${[...tools].map(([tool, count]) => (count === 1 ? tool : `${tool} ${count} times`)).join(", ")})`

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`
