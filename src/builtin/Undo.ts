/**
 * Puts back the files that file tools changed in the last turn of a session.
 *
 * ```
 *  looked at ─► prepared beside ─► looked at again ─► recorded ─► exchanged, all or none ─► forgotten
 * ```
 *
 * A file is put back when it still is what the agent left. Whatever else it is, it is somebody's work: it is shown as a
 * conflict and left alone. A death in between leaves each file as it was or put back; the same undo again finishes it.
 */
import type { PlatformError } from "@effect/platform/Error"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Digest from "../core/Digest.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import { IdGenerator, type CorrelationId } from "../core/Id.js"
import type { JournalEntry, Written } from "../journal/JournalEntry.js"
import * as SessionFork from "../journal/SessionFork.js"
import type * as SessionStore from "../journal/SessionStore.js"
import type { ToolKind } from "../tool/ToolCall.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Checkpoints from "./Checkpoints.js"
import * as OpenedFile from "./OpenedFile.js"
import * as ReplacedFile from "./ReplacedFile.js"
import { sentence, type Service as Workspace } from "./WorkspaceRoot.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

export interface Options {
  /** The session, whose last turn has ended. */
  readonly loaded: SessionStore.Loaded
  readonly tools: ToolRegistry.Service
  readonly workspace: Workspace
  readonly checkpoints: Checkpoints.Service
  /** Records what is about to be done. Nothing is done when this fails. */
  readonly record: (outcome: Outcome) => Effect.Effect<void, { readonly message: string }>
}

/** Something that is told with its reason, which is the end of a sentence. */
export interface Remark {
  readonly what: string
  readonly why: string
}

/** Files by the names that people are shown. */
export interface Outcome {
  readonly turn: number
  readonly correlationId: CorrelationId
  /** Changed or deleted, and as before again. */
  readonly restored: ReadonlyArray<string>
  /** Created, and gone. */
  readonly removed: ReadonlyArray<string>
  readonly conflicts: ReadonlyArray<Remark>
  readonly uncovered: ReadonlyArray<Remark>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Undoes the last turn. A failure is a sentence, and nothing was changed then. */
export const run = (options: Options): Effect.Effect<Outcome, string> => {
  const { loaded, workspace } = options
  const turn = SessionFork.turns(loaded).at(-1)
  if (turn === undefined) return Effect.fail("Nothing was done in this session yet.")
  if (turn.ended === undefined) return Effect.fail("The last turn has not ended.")
  const opened = loaded.entries.find(({ sessionId }) => sessionId === loaded.rootSessionId)?.entry
  const parent = opened?._tag === "SessionOpened" ? opened.forkOf : undefined
  if (parent !== undefined && turn.number <= parent.turn) {
    return Effect.fail(`The last turn was made in session ${parent.rootSessionId}; only there can it be undone.`)
  }
  // No tool changes a file meanwhile, and nobody stops it half-way.
  return Effect.zipRight(
    workspace.locateDirectory("."),
    Effect.scoped(workspace.changing.withPermits(1)(Effect.uninterruptible(undone(options, turn))))
  )
}

/** In a few words, for a record. */
export const summary = ({ conflicts, removed, restored, turn, uncovered }: Outcome): string =>
  [
    `turn ${turn}`,
    ...(restored.length === 0 ? [] : [`put back ${restored.join(", ")}`]),
    ...(removed.length === 0 ? [] : [`removed ${removed.join(", ")}`]),
    ...(conflicts.length === 0
      ? []
      : [`left alone ${conflicts.map(({ what, why }) => `${what} (${why})`).join(", ")}`]),
    ...(uncovered.length === 0 ? [] : [`not covered ${uncovered.map(({ what }) => what).join(", ")}`])
  ].join("; ")

/** What the model has to know of it; nothing where no file changed. */
export const noteOf = ({ conflicts, removed, restored, turn }: Outcome): string | undefined =>
  restored.length + removed.length === 0
    ? undefined
    : [
        `The user took back what file tools changed in turn ${turn}. Do not rely on what you know of these files: read them again.`,
        ...(restored.length === 0 ? [] : [`As they were before that turn: ${listed(restored)}.`]),
        ...(removed.length === 0 ? [] : [`Created in it, and gone: ${listed(removed)}.`]),
        ...(conflicts.length === 0
          ? []
          : [`Changed since, and left alone: ${listed(conflicts.map(({ what }) => what))}.`])
      ].join(" ")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Files in a note. */
const most = 30

const listed = (files: ReadonlyArray<string>): string =>
  files.length <= most ? files.join(", ") : `${files.slice(0, most).join(", ")} and ${files.length - most} more`

const undone = (
  { checkpoints, loaded, record, tools, workspace }: Options,
  turn: SessionFork.Turn
): Effect.Effect<Outcome, string, Scope.Scope> =>
  Effect.gen(function* () {
    const root = loaded.rootSessionId
    const kept = yield* checkpoints.load(root)
    yield* Effect.forEach(kept.beside, (file) => tidied(workspace, file), { discard: true })
    const calls = callsIn(loaded.entries, turn.first)
    const isOfTurn = (one: Checkpoints.Change) => calls.has(Checkpoints.callOf(one))
    const changes = kept.changes.filter(isOfTurn)
    const files = yield* Effect.forEach(byPath(changes), (all) =>
      planned(workspace, (digest) => checkpoints.content(root, digest), all)
    )
    const plans = files.flatMap((file) => (file._tag === "Plan" ? [file] : []))
    const outcome: Outcome = {
      turn: turn.number,
      correlationId: turn.correlationId,
      restored: plans.flatMap(({ content, shown }) => (content === undefined ? [] : [shown])),
      removed: plans.flatMap(({ content, shown }) => (content === undefined ? [shown] : [])),
      conflicts: files.flatMap((file) => (file._tag === "Conflict" ? [file.remark] : [])),
      uncovered: [
        ...files.flatMap((file) => (file._tag === "Uncovered" ? [file.remark] : [])),
        ...uncoveredIn(calls, new Set([...kept.undone, ...changes.map(Checkpoints.callOf)]), tools)
      ]
    }
    const steps = yield* Effect.mapError(
      Effect.forEach(plans, (plan) => staged(workspace, plan)),
      reason
    )
    for (const { name, plan } of steps) {
      const now = yield* look(workspace, plan.path, name)
      if (!isSame(now, plan.current)) {
        return yield* Effect.fail(`${plan.shown} was changed just now, and nothing was restored. Try again.`)
      }
    }
    if (plans.length > 0) {
      yield* Effect.mapError(record(outcome), ({ message }) => message)
      // Directories that were made for the files, the innermost first.
      const made = plans.flatMap(({ made }) => [...made].reverse())
      const beside = [...steps.flatMap(({ beside }) => beside), ...made]
      yield* Effect.mapError(
        checkpoints.save(root, { ...kept, beside }),
        (why) => `Assent cannot store the files for an undo: ${why}.`
      )
      yield* exchanged(steps)
      yield* Effect.forEach(made, (directory) => emptied(workspace, directory), { discard: true })
    }
    // A conflict may be resolved, and undone then.
    const isOpen = new Set(files.flatMap((file) => (file._tag === "Conflict" ? [file.path] : [])))
    const over = changes.filter(({ path }) => !isOpen.has(path))
    yield* Effect.ignore(
      checkpoints.save(root, {
        changes: kept.changes.filter((one) => !over.includes(one)),
        undone: [...new Set([...kept.undone.filter((call) => calls.has(call)), ...over.map(Checkpoints.callOf)])],
        beside: []
      })
    )
    return outcome
  })

/** The calls that began in the turn, of all sessions of the tree. */
const callsIn = (entries: ReadonlyArray<Written>, first: number): ReadonlyMap<string, Called> => {
  const calls = new Map<string, Called>()
  for (const { entry, seq, sessionId } of entries) {
    if (seq < first || (entry._tag !== "ToolStarted" && entry._tag !== "ToolEnded")) continue
    const call = Checkpoints.callOf({ sessionId, toolCallId: entry.toolCallId })
    if (entry._tag === "ToolStarted") calls.set(call, { tool: entry.tool, params: entry.params, outcome: undefined })
    else {
      const known = calls.get(call)
      if (known !== undefined) calls.set(call, { ...known, outcome: entry.outcome })
    }
  }
  return calls
}

interface Called {
  readonly tool: string
  readonly params: unknown
  readonly outcome: Extract<JournalEntry, { readonly _tag: "ToolEnded" }>["outcome"] | undefined
}

/** Commands, and whatever else is not known to change nothing. */
const uncoveredIn = (
  calls: ReadonlyMap<string, Called>,
  covered: ReadonlySet<string>,
  tools: ToolRegistry.Service
): ReadonlyArray<Remark> =>
  Array.from(calls).flatMap(([call, { outcome, params, tool }]): ReadonlyArray<Remark> => {
    const entry = tools.entries.find(({ name }) => name === tool)
    if (covered.has(call)) return []
    const command = entry?.shellCommand?.name
    if (command !== undefined) {
      return [{ what: `${tool} ${shortened(textIn(params, command))}`, why: "what commands changed stays" }]
    }
    if (entry?.readonly === true || (entry !== undefined && changesNothing.has(entry.kind))) return []
    // A call that failed has changed nothing, as far as it says.
    if (outcome !== undefined && outcome !== "succeeded" && outcome !== "interrupted") return []
    const path = entry?.paths.map((name) => textIn(params, name)).find((text) => text !== "") ?? ""
    return [{ what: `${tool} ${shortened(path)}`.trimEnd(), why: "the old content was not stored" }]
  })

/** Kinds of tools that leave every file as it is. */
const changesNothing: ReadonlySet<ToolKind> = new Set(["read", "search", "think", "fetch", "switch_mode"])

const textIn = (params: unknown, name: string): string => {
  const value =
    typeof params === "object" && params !== null
      ? Object.entries(params).find(([key]) => key === name)?.[1]
      : undefined
  return typeof value === "string" ? value : ""
}

const shortened = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length <= 60 ? line : `${line.slice(0, 59)}…`
}

/** The changes of each file, in their order. */
const byPath = (changes: ReadonlyArray<Checkpoints.Change>): ReadonlyArray<ReadonlyArray<Checkpoints.Change>> => {
  const files = new Map<string, Array<Checkpoints.Change>>()
  for (const change of changes) files.set(change.path, [...(files.get(change.path) ?? []), change])
  return [...files.values()]
}

/** What is at a path now. */
type Found =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "File"; readonly digest: string; readonly size: number; readonly mode: number }
  /** Nothing that is read or touched. */
  | { readonly _tag: "Else"; readonly why: string }

interface Plan {
  readonly _tag: "Plan"
  readonly path: string
  readonly shown: string
  readonly current: Found
  /** Undefined: the file goes. */
  readonly content: Uint8Array | undefined
  readonly mode: number
  readonly made: ReadonlyArray<string>
}

type File =
  | Plan
  | { readonly _tag: "Same" }
  | { readonly _tag: "Conflict"; readonly path: string; readonly remark: Remark }
  | { readonly _tag: "Uncovered"; readonly remark: Remark }

/** `name`: the path by a handle of its directory. */
const look = (workspace: Workspace, path: string, name = path): Effect.Effect<Found> =>
  Effect.gen(function* () {
    const { fileSystem } = workspace
    const { absolute } = yield* workspace.locate(path)
    if (absolute !== path) return yield* Effect.fail("a symbolic link now leads elsewhere")
    const info = yield* Effect.option(fileSystem.stat(name))
    if (Option.isNone(info)) return { _tag: "Nothing" } as const
    const { mode, size, type } = info.value
    if (type !== "File") return yield* Effect.fail("it is no longer a regular file")
    if (Number(size) > Checkpoints.defaults.file * 2)
      return { _tag: "File", digest: "", size: Number(size), mode: mode & 0o7777 } as const
    const bytes = yield* OpenedFile.bytes(fileSystem, path, ResolvedPath.identityOf(info.value))
    return { _tag: "File", digest: Digest.sha256(bytes), size: bytes.length, mode: mode & 0o7777 } as const
  }).pipe(
    Effect.catchAll((error) =>
      Effect.succeed({
        _tag: "Else",
        why: typeof error === "string" ? error.replace(/\.$/, "") : "it cannot be read"
      } as const)
    )
  )

const isSame = (one: Found, other: Found): boolean =>
  one._tag === "Nothing"
    ? other._tag === "Nothing"
    : one._tag === "File" && other._tag === "File" && one.digest === other.digest && one.size === other.size

/** Whether the file is this version; undefined: no file. */
const isVersion = (found: Found, version: { readonly digest: string } | undefined): boolean =>
  version === undefined
    ? found._tag === "Nothing"
    : found._tag === "File" && found.digest !== "" && found.digest === version.digest

const planned = (
  workspace: Workspace,
  contentOf: (digest: string) => Effect.Effect<Uint8Array | undefined>,
  changes: ReadonlyArray<Checkpoints.Change>
): Effect.Effect<File> =>
  Effect.gen(function* () {
    const [first] = changes
    const last = changes.at(-1)
    if (first === undefined || last === undefined) return { _tag: "Same" }
    const { before, left, path, shown } = first
    if ((yield* workspace.denial(path)) !== undefined)
      return { _tag: "Uncovered", remark: { what: shown, why: "blacklist.paths denies it" } }
    const current = yield* look(workspace, path)
    const conflict = (why: string): File => ({ _tag: "Conflict", path, remark: { what: shown, why } })
    if (isVersion(current, before)) return { _tag: "Same" }
    if (current._tag === "Else") return conflict(current.why)
    if (current._tag === "Nothing" && last.after !== undefined) return conflict("it was removed since")
    if (current._tag === "File" && last.after === undefined) return conflict("it is there again")
    if (!isVersion(current, last.after)) return conflict("it was changed since")
    // What somebody else did between two calls would go with them.
    const isBroken = changes.some(
      ({ before }, index) => index > 0 && before?.digest !== changes[index - 1]?.after?.digest
    )
    if (isBroken) return conflict("another program changed it between two calls")
    if (left !== undefined) return { _tag: "Uncovered", remark: { what: shown, why: left } }
    const content = before && (yield* contentOf(before.digest))
    if (before !== undefined && content === undefined) {
      return { _tag: "Uncovered", remark: { what: shown, why: "its stored content is gone or damaged" } }
    }
    const mode = current._tag === "File" ? current.mode : (before?.mode ?? 0o644)
    return { _tag: "Plan", path, shown, current, content, mode, made: before === undefined ? first.made : [] }
  })

/** One file that is ready to be exchanged. */
interface Step {
  /** The file, by a handle of its directory. */
  readonly name: string
  readonly exchange: Effect.Effect<void, PlatformError>
  readonly takeBack: Effect.Effect<void, PlatformError>
  /** The files beside it, by names that a later process knows them by. */
  readonly beside: ReadonlyArray<string>
  readonly plan: Plan
}

const staged = (workspace: Workspace, plan: Plan): Effect.Effect<Step, PlatformError | string, Scope.Scope> =>
  Effect.gen(function* () {
    const { fileSystem, path } = workspace
    const above = path.dirname(plan.path)
    const directory = yield* ReplacedFile.held(workspace, above, plan.shown)
    const name = `${directory}/${path.basename(plan.path)}`
    const former = `${directory}/.${(yield* IdGenerator).unsafeNext("call")}.tmp`
    yield* Effect.addFinalizer((exit) =>
      // After a failure the former file may be the only one.
      Exit.isSuccess(exit) || plan.current._tag === "Nothing"
        ? Effect.ignore(fileSystem.remove(former, { force: true }))
        : Effect.void
    )
    const next =
      plan.content === undefined
        ? undefined
        : yield* ReplacedFile.prepared(workspace, directory, plan.content, Option.some(plan.mode))
    const beside = [former, ...(next === undefined ? [] : [next])].map((file) => path.join(above, path.basename(file)))
    if (next === undefined) {
      return {
        plan,
        name,
        beside,
        exchange: fileSystem.rename(name, former),
        takeBack: fileSystem.rename(former, name)
      }
    }
    if (plan.current._tag === "Nothing") {
      return { plan, name, beside, exchange: fileSystem.rename(next, name), takeBack: fileSystem.remove(name) }
    }
    return {
      plan,
      name,
      beside,
      // The path always leads to one of the two.
      exchange: Effect.zipRight(
        fileSystem.link(name, former),
        Effect.tapError(fileSystem.rename(next, name), () => Effect.ignore(fileSystem.remove(former)))
      ),
      takeBack: fileSystem.rename(former, name)
    }
  })

/** All files, or none of them. */
const exchanged = (steps: ReadonlyArray<Step>): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    const done: Array<Step> = []
    for (const step of steps) {
      const outcome = yield* Effect.either(step.exchange)
      if (outcome._tag === "Left") {
        yield* Effect.forEach(done.reverse(), ({ takeBack }) => Effect.ignore(takeBack), { discard: true })
        return yield* Effect.fail(`${sentence(outcome.left, step.plan.shown)} Nothing was restored.`)
      }
      done.push(step)
    }
  })

/**
 * Removes a directory that was made for a file, if nothing else is in it. It acts by handles, and the directory goes only
 * while it is empty: a job that puts a link in its place loses nothing but that link's name.
 */
const emptied = ({ direct, fileSystem, path }: Workspace, directory: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { handle, names } = yield* OpenedFile.entries(fileSystem, directory)
    if (!names.every(isBeside)) return
    for (const name of names) yield* fileSystem.remove(`${handle}/${name}`, { force: true })
    const above = yield* OpenedFile.open(fileSystem, path.dirname(directory))
    direct?.removeDirectory(`${above.handle}/${path.basename(directory)}`)
  }).pipe(Effect.scoped, Effect.ignore)

const isBeside = (name: string): boolean => /^\.call_[\w-]+\.tmp$/.test(name)

/** Removes what an undo left that was cut off: a file beside another, or a directory that is empty. */
const tidied = (workspace: Workspace, file: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { fileSystem, locate, path } = workspace
    const { absolute, info } = yield* locate(file)
    if (absolute !== file || Option.isNone(info)) return
    if (info.value.type === "Directory") return yield* emptied(workspace, file)
    if (info.value.type !== "File" || !isBeside(path.basename(file))) return
    const { handle } = yield* OpenedFile.open(fileSystem, path.dirname(file))
    yield* fileSystem.remove(`${handle}/${path.basename(file)}`)
  }).pipe(Effect.scoped, Effect.ignore)

const reason = (error: PlatformError | string): string =>
  typeof error === "string" ? error : sentence(error, "A file")
