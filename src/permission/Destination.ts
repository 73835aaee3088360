/**
 * Where the paths of a call lead when links are followed, so that rules over arguments see that place too. And where the paths
 * lead that rules write out, so that a rule which denies means the place by whatever text.
 *
 * A path of a call is read twice, as in `PathScope`: as a text, and as the system walks it. Files need not exist.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Glob from "../core/Glob.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as DenyPattern from "./DenyPattern.js"
import * as Location from "../shell/Location.js"
import type * as CompiledPolicy from "./CompiledPolicy.js"
import { FileSurvey, run, type Place, type Places, type Steps } from "./FileSurvey.js"
import type * as PermissionRule from "./PermissionRule.js"
import * as Signature from "./Signature.js"
import * as Subject from "./Subject.js"

export interface Surroundings {
  /** Absolute. Relative paths start here. */
  readonly workspace: string
  readonly platform: Context.Context<FileSystem.FileSystem | Path.Path>
}

/**
 * Finds where the paths of a call lead. Rules, guards and the effect of the call get the same places. If a rule looks at
 * the arguments and a place cannot be found, a person is asked.
 */
export const make =
  ({ platform, workspace }: Surroundings): CompiledPolicy.Destinations =>
  (subject, policy, state) => {
    const { params, pathFields = [] } = subject.call
    if (!Signature.isRecord(params)) return Effect.succeed(leading(subject, new Map(), [], nothingElse))
    const fields = pathFields.filter((field) => Object.hasOwn(params, field))
    return Effect.gen(function* () {
      const path = Context.get(platform, Path.Path)
      const fileSystem = Context.get(platform, FileSystem.FileSystem)
      const survey = new FileSurvey(fileSystem, path, { workspace, clock: yield* Effect.clock })
      const places = new Map<string, Place>()
      for (const text of fields.flatMap((field) => textsIn(params[field]))) {
        if (places.has(text)) continue
        const readings = yield* run(survey.targets(workspace, text))
        const resolved = yield* ResolvedPath.look(fileSystem, path.dirname, readings[0] ?? text)
        places.set(text, { ...resolved, readings })
      }
      if (!concerns(subject.tool, policy, state)) return leading(subject, places, [], nothingElse)
      const there = yield* run(placed(survey, places, workspace, params, fields))
      const real = (text: string) => survey.real(path.resolve(workspace, text))
      const also = yield* run(meant(real, workspace, denying(policy, state), fields))
      return survey.isSpent || there === undefined || also === undefined
        ? Subject.make({ ...subject.call, doubt: lost, places })
        : leading(subject, places, there, also)
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

/** The texts of a path parameter that can be looked up. */
const textsIn = (value: unknown): ReadonlyArray<string> =>
  (Array.isArray(value) ? value : [value]).filter(
    (text): text is string => typeof text === "string" && !text.includes("\0")
  )

const leading = (
  { call }: PermissionRule.Subject,
  places: Places,
  readings: ReadonlyArray<Arguments>,
  also: Also
): PermissionRule.Subject => {
  const known = { ...call, linked: false, places }
  const there = readings.map((params) => Subject.make({ ...known, params }).evidence)
  return there.length === 0 && also.patterns.size === 0 && also.words.size === 0
    ? Subject.make(known)
    : Subject.make(known, (self) => new Both(self, known, there, also))
}

const lost = "Assent cannot resolve the links of its paths, and a rule may name them."

/** The call as it is written, and where its paths lead. */
class Both extends Subject.Evidence {
  constructor(
    self: PermissionRule.Subject,
    call: Subject.Call,
    private readonly there: ReadonlyArray<Subject.Evidence>,
    private readonly also: Also
  ) {
    super(self, call)
  }

  override matches(pattern: DenyPattern.DenyPattern): boolean {
    const all = [pattern, ...(this.also.patterns.get(pattern.text) ?? [])]
    return all.some((one) => super.matches(one) || this.there.some((evidence) => evidence.matches(one)))
  }

  override mentions(rule: ReadonlyArray<string>): boolean {
    const all = [rule, ...(this.also.words.get(rule.join(" ")) ?? [])]
    return all.some((one) => super.mentions(one) || this.there.some((evidence) => evidence.mentions(one)))
  }

  override isWithin(pattern: ReadonlyArray<Glob.Glob>): boolean {
    return super.isWithin(pattern) && this.there.every((evidence) => evidence.isWithin(pattern))
  }

  override get allowStrings(): ReadonlyArray<string> {
    return [...super.allowStrings, ...this.there.flatMap(({ allowStrings }) => allowStrings)]
  }
}

/** What rules that deny mean beside what is written, by that. */
interface Also {
  readonly patterns: ReadonlyMap<string, ReadonlyArray<DenyPattern.DenyPattern>>
  readonly words: ReadonlyMap<string, ReadonlyArray<ReadonlyArray<string>>>
}

const nothingElse: Also = { patterns: new Map(), words: new Map() }

/** The rules that deny or reserve. */
const denying = (
  { approvals = [], blacklist, deny }: CompiledPolicy.Policy,
  { entries }: CompiledPolicy.Entries
): { readonly patterns: Iterable<string>; readonly words: Iterable<ReadonlyArray<string>> } => {
  const lists = [deny, blacklist, ...approvals.map(({ rules }) => rules)]
  return {
    patterns: new Set([...lists.flatMap(({ rules }) => rules.patterns), ...entries]),
    words: lists.flatMap((list) => list.arguments)
  }
}

/** Other texts for the paths that rules write out. Undefined when one rule has too many. */
function* meant(
  real: (text: string) => Steps<string>,
  workspace: string,
  rules: ReturnType<typeof denying>,
  fields: ReadonlyArray<string>
): Steps<Also | undefined> {
  const root = yield* real(workspace)
  const known = new Map<string, ReadonlyArray<string>>()
  function* look(path: string): Steps<ReadonlyArray<string>> {
    const before = known.get(path)
    if (before !== undefined) return before
    const place = yield* real(path)
    // A loop of links leads nowhere.
    const texts = [Location.normal(path, workspace), ...(place.includes("\0") ? [] : [Location.normal(place, root)])]
    const others = [...new Set(texts)].filter((text) => text !== path)
    known.set(path, others)
    return others
  }
  const textsOf = (path: string) => known.get(path) ?? []
  const patterns = new Map<string, ReadonlyArray<DenyPattern.DenyPattern>>()
  for (const pattern of rules.patterns) {
    for (const path of pathsIn(pattern, fields)) yield* look(path)
    const others = spellingsOf(pattern, fields, textsOf)
    if (others === undefined) return undefined
    if (others.length > 0) patterns.set(pattern, others.map(DenyPattern.make))
  }
  const words = new Map<string, ReadonlyArray<ReadonlyArray<string>>>()
  for (const rule of rules.words) {
    const others: Array<ReadonlyArray<string>> = []
    // A path with a space is several words.
    for (const other of yield* look(rule.join(" "))) others.push((other || ".").split(" "))
    if (rule.length > 1)
      for (const [at, word] of rule.entries())
        for (const other of yield* look(word)) others.push(rule.with(at, other || "."))
    if (others.length > 0) words.set(rule.join(" "), others)
  }
  return { patterns, words }
}

type Arguments = { readonly [key: string]: unknown }

/** Both readings of the arguments, as far as they differ from what is written. */
function* placed(
  survey: FileSurvey,
  known: Places,
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
      const [textual = text, walked = textual] = known.get(text)?.readings ?? [text]
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

// Places that a pattern writes out, as in `write_file(*path=link/*)`: what stands there before the first star. One place has
// many such texts: with `..`, absolute, through a link. To deny, all of them mean it.

/** A path in a pattern. `behind`: what stands between it and what follows in the pattern. */
interface Written {
  readonly start: number
  readonly end: number
  readonly path: string
  readonly behind: "" | "/"
}

/** The paths that a pattern writes out for these parameters. */
const pathsIn = (pattern: string, fields: ReadonlyArray<string>): ReadonlyArray<string> =>
  writtenIn(pattern, fields).flatMap((one) => one.map(({ path }) => path))

/**
 * The pattern with other texts for its paths, in every combination. An empty text is the workspace. Undefined when they are more
 * than {@link mostSpellings}.
 */
const spellingsOf = (
  pattern: string,
  fields: ReadonlyArray<string>,
  textsOf: (path: string) => ReadonlyArray<string>
): ReadonlyArray<string> | undefined => {
  let found: ReadonlyArray<{ readonly text: string; readonly at: number }> = [{ text: "", at: 0 }]
  for (const one of writtenIn(pattern, fields)) {
    const next = found.map(({ at, text }) => {
      const end = one[0]?.end ?? at
      return { at: end, text: text + pattern.slice(at, end) }
    })
    for (const { at, text } of found) {
      for (const { behind, end, path, start } of one) {
        for (const other of textsOf(path)) {
          const place = other === "" && behind === "/" ? "" : `${Glob.escape(other) || "."}${behind}`
          next.push({ at: end, text: text + pattern.slice(at, start) + place })
        }
      }
    }
    if (next.length > mostSpellings) return undefined
    found = next
  }
  const all = new Set(found.map(({ at, text }) => text + pattern.slice(at)))
  all.delete(pattern)
  return [...all]
}

/** Texts of one rule. Five paths in one, each with a name and a link of it, come to 243. */
const mostSpellings = 256

/** For each value of such a parameter, the ways to read a path there. */
const writtenIn = (pattern: string, fields: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<Written>> => {
  const out: Array<ReadonlyArray<Written>> = []
  for (const { 0: name, index } of pattern.matchAll(/(?<!\w)\w+=(?:(?:\[\[\])?")?/g)) {
    if (!fields.includes(name.slice(0, name.indexOf("=")))) continue
    const start = index + name.length
    const rest = pattern.slice(start)
    const run = rest.search(name.endsWith('"') ? /[*?["]/ : /[*?[]|,\s*\w+=|\)$|$/)
    const text = run < 0 ? rest : rest.slice(0, run)
    const goesOn = /^[*?[]/.test(rest.slice(text.length))
    if (!goesOn) out.push(text === "" ? [] : [{ start, end: start + text.length, path: text, behind: "" }])
    else out.push(partsOf(text, start, rest[text.length] === "*"))
  }
  return out.filter((one) => one.length > 0)
}

/** `a/li*`: what is in `a`, and what is in `a/li`. */
const partsOf = (text: string, start: number, anything: boolean): ReadonlyArray<Written> => {
  const slash = text.lastIndexOf("/")
  const parts: Array<Written> = []
  if (slash >= 0) parts.push({ start, end: start + slash + 1, path: text.slice(0, slash) || "/", behind: "/" })
  if (anything && slash < text.length - 1) parts.push({ start, end: start + text.length, path: text, behind: "/" })
  return parts
}
