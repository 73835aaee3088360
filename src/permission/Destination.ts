/**
 * Where the paths of a call lead when links are followed, so that rules over arguments see that place too.
 *
 * A path is read twice, as in `PathScope`: as a text, and as the system walks it. Files need not exist.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Glob from "../core/Glob.js"
import type * as Haystack from "../shell/Haystack.js"
import * as Location from "../shell/Location.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import { FileSurvey, run, type Steps } from "./FileSurvey.js"
import type * as PermissionRule from "./PermissionRule.js"
import * as Signature from "./Signature.js"
import * as Subject from "./Subject.js"

export interface Surroundings {
  /** Absolute. Relative paths start here. */
  readonly workspace: string
  readonly platform: Context.Context<FileSystem.FileSystem | Path.Path>
}

/**
 * Finds where the paths of a call lead, where a rule looks at its arguments. What cannot be told is a doubt, so that a person is
 * asked.
 */
export const make =
  ({ platform, workspace }: Surroundings): CompiledPolicy.Destinations =>
  (subject, policy, state) => {
    const { params, pathFields = [] } = subject.call
    if (!concerns(subject.tool, policy, state)) return undefined
    if (!Signature.isRecord(params)) return Effect.succeed(leading(subject, []))
    const fields = pathFields.filter((field) => Object.hasOwn(params, field))
    return Effect.flatMap(Effect.clock, (clock) => {
      const survey = new FileSurvey(Context.get(platform, FileSystem.FileSystem), Context.get(platform, Path.Path), {
        workspace,
        clock
      })
      return Effect.map(run(placed(survey, workspace, params, fields)), (places) => leading(subject, places))
    })
  }

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Some rule that holds now looks at the arguments of calls of this tool. */
const concerns = (
  tool: string,
  { approvals = [], blacklist, delegated, deny, project, whitelist }: CompiledPolicy.Policy,
  { entries }: CompiledPolicy.Entries
): boolean => {
  const lists = [deny, blacklist, whitelist, delegated, ...approvals.map(({ rules }) => rules)]
  if (lists.some(({ rules }) => rules.arguments.length > 0)) return true
  const start = `${tool}(`
  const mayMean = (written: string) => {
    const pattern = written.trim()
    const at = pattern.search(/[*?[]/)
    return at < 0 ? pattern.startsWith(start) : start.startsWith(pattern.slice(0, at)) || pattern.startsWith(start)
  }
  return (
    lists.some(({ rules }) => rules.patterns.some(mayMean)) ||
    entries.some(mayMean) ||
    (project !== undefined && [...project.entries()].some(mayMean))
  )
}

const leading = (
  { call }: PermissionRule.Subject,
  places: ReadonlyArray<Arguments> | undefined
): PermissionRule.Subject => {
  if (places === undefined) return Subject.make({ ...call, doubt: lost })
  const known = { ...call, linked: false }
  const there = places.map((params) => Subject.make({ ...known, params }).evidence)
  return there.length === 0 ? Subject.make(known) : Subject.make(known, (self) => new Both(self, known, there))
}

const lost = "Where its paths lead when links are followed cannot be told, and a rule may be about that."

/** The call as it is written, and where its paths lead. */
class Both extends Subject.Evidence {
  constructor(
    self: PermissionRule.Subject,
    call: Subject.Call,
    private readonly there: ReadonlyArray<Subject.Evidence>
  ) {
    super(self, call)
  }

  override matches(pattern: Haystack.Needle): boolean {
    return super.matches(pattern) || this.there.some((evidence) => evidence.matches(pattern))
  }

  override mentions(rule: ReadonlyArray<string>): boolean {
    return super.mentions(rule) || this.there.some((evidence) => evidence.mentions(rule))
  }

  override isWithin(pattern: ReadonlyArray<Glob.Glob>): boolean {
    return super.isWithin(pattern) && this.there.every((evidence) => evidence.isWithin(pattern))
  }

  override get allowStrings(): ReadonlyArray<string> {
    return [...super.allowStrings, ...this.there.flatMap(({ allowStrings }) => allowStrings)]
  }
}

type Arguments = { readonly [key: string]: unknown }

/** Both readings of the arguments, as far as they differ from what is written. */
function* placed(
  survey: FileSurvey,
  workspace: string,
  params: Arguments,
  fields: ReadonlyArray<string>
): Steps<ReadonlyArray<Arguments> | undefined> {
  const root = yield* survey.own(workspace)
  const readings: ReadonlyArray<Map<string, unknown>> = [new Map(), new Map()]
  let differs = false
  let walks = false
  for (const field of fields) {
    const value = params[field]
    const texts: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
    const both: readonly [Array<unknown>, Array<unknown>] = [[], []]
    for (const text of texts) {
      // Nobody knows what a tool makes of it.
      if (typeof text === "object" && text !== null) return undefined
      if (typeof text !== "string") {
        for (const places of both) places.push(text)
        continue
      }
      if (text.includes("\0")) return undefined
      const [textual = text, walked = textual] = yield* survey.targets(workspace, text)
      // A loop of links leads nowhere.
      if (textual.includes("\0") || walked.includes("\0")) return undefined
      both[0].push(Location.normal(textual, root) || ".")
      both[1].push(Location.normal(walked, root) || ".")
      if ((Location.normal(text, workspace) || ".") !== both[0].at(-1)) differs = true
      if (walked !== textual) walks = true
    }
    for (const [at, places] of both.entries()) readings[at]?.set(field, Array.isArray(value) ? places : places[0])
  }
  if (survey.isSpent) return undefined
  return readings
    .filter((_, at) => (at === 0 ? differs : walks))
    .map((places) => ({ ...params, ...Object.fromEntries(places) }))
}
