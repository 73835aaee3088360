/**
 * Reading, writing and editing one file of the workspace.
 *
 * A change is first planned from the current file. The plan is checked and shown before a person is asked, and is made
 * anew when the call runs; a file that holds something else by then is not replaced. A file is replaced atomically, so
 * no reader sees half of it.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Checkpoints from "./Checkpoints.js"
import * as LineReader from "./LineReader.js"
import * as MaskedText from "./MaskedText.js"
import * as OpenedFile from "./OpenedFile.js"
import * as ReplacedFile from "./ReplacedFile.js"
import * as ShownFiles from "./ShownFiles.js"
import { sentence, WorkspaceRoot, type Service, type Target } from "./WorkspaceRoot.js"

/** What a call would do to a file. */
export interface Change extends ShownFiles.Planned {
  /** The number of replaced places; 1 for a whole file. */
  readonly places: number
}

export interface ReadParams {
  readonly path: string
  readonly offset?: number | undefined
  readonly limit?: number | undefined
}
export interface WriteParams {
  readonly path: string
  readonly content: string
}
export interface EditParams {
  readonly path: string
  readonly old_text: string
  readonly new_text: string
  readonly replace_all?: boolean | undefined
}

/**
 * Lines as `number, tab, text`, from `offset` on, at most `limit` (2,000) and as many as fit into the workspace's
 * `maxOutput`; a last line in brackets says how to go on. The file is never loaded as a whole.
 */
export const read = (params: ReadParams): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const target = yield* workspace.locateFile(params.path)
    const first = Math.max(1, params.offset ?? 1)
    const limit = Math.max(1, params.limit ?? defaultLines)
    const shown: Array<string> = []
    let room = workspace.maxOutput
    let last = 0
    let crowded = false
    const outcome = yield* Effect.mapError(
      LineReader.forEachLine(workspace.fileSystem, target.absolute, {
        maxLength: Math.min(maxLine, workspace.maxOutput - numberWidth),
        decided: identityOf(target),
        onLine: (line) => {
          last = line.number
          if (line.number < first) return true
          const cut = line.left > 0 ? ` [… ${line.left} more characters in this line]` : ""
          const text = `${String(line.number).padStart(6)}\t${line.text}${cut}`
          crowded = shown.length > 0 && room < text.length
          if (crowded) return false
          shown.push(text)
          room -= text.length + 1
          return shown.length < limit
        }
      }),
      (error) => sentence(error, target.shown)
    )
    if (outcome === "binary") return yield* Effect.fail(`${target.shown} is a binary file; only text can be read.`)
    if (last === 0) return `[${target.shown} is empty]`
    if (shown.length === 0) {
      return yield* Effect.fail(`${target.shown} has ${last} lines; there is no line ${first}.`)
    }
    return crowded || outcome === "stopped"
      ? `${shown.join("\n")}\n[More lines follow. Continue with offset ${first + shown.length}.]`
      : shown.join("\n")
  })

/** The change that writing `content` would make. */
export const planWrite = (params: WriteParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const target = yield* locateForWriting(workspace, params.path)
    const before = Option.isNone(target.info)
      ? Option.none()
      : Option.some(yield* Effect.orElseSucceed(textOf(workspace, target, target.info.value), () => undefined))
    const text = Option.getOrUndefined(before)
    if (text !== undefined) yield* MaskedText.refuse(target.shown, text, params.content)
    return { target, before, after: params.content, places: 1 }
  })

/** As {@link planWrite}, for somebody who is asked about it: what they see is what is replaced, or nothing is. */
export const showWrite = (params: WriteParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.flatMap(WorkspaceRoot, (workspace) =>
    Effect.tap(planWrite(params), (change) => ShownFiles.show(workspace, change))
  )

/** As {@link planEdit}, for a person who is asked: the call edits the places that were shown, or nothing. */
export const showEdit = (params: EditParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.flatMap(WorkspaceRoot, (workspace) =>
    Effect.tap(planEdit(params), (change) => ShownFiles.show(workspace, change))
  )

/**
 * The change that replacing `old_text` would make. The text must occur, and only once unless all places are to be
 * replaced.
 */
export const planEdit = (params: EditParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    if (params.old_text === "") return yield* Effect.fail("old_text is empty; write_file creates or replaces a file.")
    if (params.old_text === params.new_text) return yield* Effect.fail("old_text and new_text are the same.")
    const target = yield* workspace.locateFile(params.path)
    // Saved output may be read, wherever it is, but not changed.
    yield* locateForWriting(workspace, params.path)
    const before = yield* textOf(workspace, target, Option.getOrThrow(target.info))
    const part = inStyleOf(before, params)
    const places = occurrences(before, part.old)
    if (places.count === 0) return yield* Effect.fail(notFound(target.shown, before, params.old_text))
    if (places.count > 1 && params.replace_all !== true) {
      const lines = places.first.map((place) => lineAt(before, place))
      return yield* Effect.fail(
        `old_text occurs ${places.count} times in ${target.shown} (lines ${lines.join(", ")}${places.count > maxPlaces ? ", …" : ""}). ` +
          "Include more of the text around the place, or set replace_all."
      )
    }
    const length = before.length + places.count * (part.new.length - part.old.length)
    if (length > maxText) return yield* Effect.fail(`${target.shown} would become longer than ${maxText} characters.`)
    // Joining, unlike a replacement pattern, takes `$&` and its like literally.
    const after = before.split(part.old).join(part.new)
    yield* MaskedText.refuse(target.shown, before, after)
    const parts = { length: part.old.length, starts: places.first }
    return { target, before: Option.some(before), after, places: places.count, parts }
  })

export const write = (params: WriteParams): Effect.Effect<string, string, WorkspaceRoot> =>
  changing(
    Effect.tap(planWrite(params), unlessChanged),
    ({ target, before, after }) =>
      `${Option.isNone(before) ? "Created" : "Replaced"} ${target.shown} (${sizeOf(after)}).`
  )

export const edit = (params: EditParams): Effect.Effect<string, string, WorkspaceRoot> =>
  changing(Effect.tap(planEdit(params), unlessChanged), ({ target, places }) =>
    places === 1 ? `Edited ${target.shown}.` : `Edited ${target.shown} in ${places} places.`
  )

/** As `3 lines`. */
export const sizeOf = (text: string): string => {
  const lines = countLines(text)
  return `${lines} ${lines === 1 ? "line" : "lines"}`
}

/** Lines of a text; a last line needs no line ending. */
export const countLines = (text: string): number =>
  text === "" ? 0 : lineEnds(text, text.length) + (text.endsWith("\n") ? 0 : 1)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const defaultLines = 2_000
const maxLine = 2_000
const numberWidth = 10
const maxText = 10_000_000
/** Longer texts are not searched for a near match. */
const maxSqueezed = 500_000

const identityOf = ({ info }: Pick<Target, "info">): ResolvedPath.FileIdentity | undefined =>
  Option.getOrUndefined(Option.map(info, ResolvedPath.identityOf))

const locateForWriting = (workspace: Service, path: string): Effect.Effect<Target, string> =>
  Effect.flatMap(workspace.locate(path), (target) => {
    if (Option.isNone(target.info)) {
      return /[/\\]$/.test(path) ? Effect.fail(`${path} names a directory, not a file.`) : Effect.succeed(target)
    }
    const type = target.info.value.type
    if (type === "File") return Effect.succeed(target)
    return Effect.fail(type === "Directory" ? `${path} is a directory.` : `${path} is not a regular file.`)
  })

/** The whole text, with its byte order mark. Fails when decoding and encoding would change the bytes. */
const textOf = (workspace: Service, target: Target, info: FileSystem.File.Info): Effect.Effect<string, string> =>
  Effect.gen(function* () {
    if (Number(info.size) > maxText) {
      return yield* Effect.fail(`${target.shown} is too large to be edited as text (${info.size} bytes).`)
    }
    const { fileSystem } = workspace
    const bytes = yield* Effect.mapError(OpenedFile.bytes(fileSystem, target.absolute, identityOf(target)), (error) =>
      sentence(error, target.shown)
    )
    if (bytes.subarray(0, 65_536).includes(0)) return yield* Effect.fail(`${target.shown} is a binary file.`)
    return yield* Effect.try({
      try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
      catch: () => `${target.shown} is not encoded as UTF-8; editing it would damage it.`
    })
  })

/** Models write `\n`; in a file whose lines all end with `\r\n` both texts are converted to that. */
const inStyleOf = (text: string, params: EditParams): { readonly old: string; readonly new: string } => {
  const windows = text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text)
  const adapt = (part: string) => (windows ? part.replace(/\r?\n/g, "\r\n") : part)
  return { old: adapt(params.old_text), new: adapt(params.new_text) }
}

/** The number of occurrences of `part`, without overlaps, and the first of their places. */
const occurrences = (text: string, part: string): { readonly count: number; readonly first: ReadonlyArray<number> } => {
  const first: Array<number> = []
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) {
    if (count++ < maxPlaces) first.push(at)
  }
  return { count, first }
}

const maxPlaces = 10

const lineEnds = (text: string, to: number): number => {
  let count = 0
  for (let at = 0; at < to; at++) if (text.charCodeAt(at) === 10) count++
  return count
}

const lineAt = (text: string, place: number): number => lineEnds(text, place) + 1

const notFound = (shown: string, text: string, part: string): string => {
  const lines = part.split("\n")
  const masked = MaskedText.hint(part)
  if (masked !== undefined) return `old_text does not occur in ${shown}. ${masked}`
  const numbered = lines.every((line) => line === "" || /^ *\d+\t/.test(line))
  if (numbered) return `old_text does not occur in ${shown}: leave out the line numbers that read_file puts in front.`
  const squeeze = (value: string) => value.replace(/\s+/g, " ").trim()
  const squeezed = squeeze(part)
  return squeezed !== "" && text.length <= maxSqueezed && squeeze(text).includes(squeezed)
    ? `old_text does not occur in ${shown}: its spaces, tabs or line breaks are different there. Read the file again.`
    : `old_text does not occur in ${shown}. Read the file again; it must match exactly.`
}

const unlessChanged = (change: Change): Effect.Effect<void, string, WorkspaceRoot> =>
  Effect.filterOrFail(
    Effect.flatMap(WorkspaceRoot, (workspace) => ShownFiles.take(workspace, change)),
    (isAsShown) => isAsShown,
    () =>
      `${change.target.shown} was changed after a person was shown this change. Nothing was written. ` +
      "Read it, and propose the change again."
  ).pipe(Effect.asVoid)

/** Plans and makes a change under the semaphore, so that the plan is still true when it is made. */
const changing = (
  plan: Effect.Effect<Change, string, WorkspaceRoot>,
  describe: (change: Change) => string
): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.flatMap(WorkspaceRoot, (workspace) =>
    workspace.changing.withPermits(1)(
      Effect.flatMap(plan, (change) =>
        Effect.map(replace(workspace, change.target, change.after), () => {
          ShownFiles.wrote(workspace, change)
          return describe(change)
        })
      )
    )
  )

const replace = (workspace: Service, target: Target, content: string): Effect.Effect<void, string> => {
  const bytes = new TextEncoder().encode(content)
  const written = ReplacedFile.write(workspace, target, bytes)
  return workspace.checkpoints === undefined
    ? written
    : Effect.zipRight(remember(workspace, workspace.checkpoints, target, bytes), written)
}

/** Keeps what the file is, for the call that changes it. */
const remember = (
  { fileSystem, path }: Service,
  checkpoints: Checkpoints.Service,
  { absolute, info, shown }: Target,
  after: Uint8Array
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { correlationId, depth, rootSessionId, sessionId, toolCallId } = yield* Origin.current
    const size = Option.match(info, { onNone: () => 0, onSome: ({ size }) => Number(size) })
    // A file that is not kept is not read: then its digest is of no use.
    const found =
      Option.isNone(info) || size > Checkpoints.defaults.file
        ? undefined
        : yield* OpenedFile.bytes(fileSystem, absolute, identityOf({ info }))
    const made: Array<string> = []
    for (let at = path.dirname(absolute); !(yield* fileSystem.exists(at)); at = path.dirname(at)) made.unshift(at)
    const before = Option.map(info, ({ mode }) => ({
      digest: found === undefined ? "" : Digest.sha256(found),
      mode: mode & 0o7777,
      size
    }))
    yield* checkpoints.keep(
      rootSessionId,
      {
        path: absolute,
        shown,
        sessionId,
        depth,
        made,
        after: { digest: Digest.sha256(after), size: after.length },
        ...(toolCallId === undefined ? {} : { toolCallId }),
        ...(correlationId === undefined ? {} : { correlationId }),
        ...(Option.isNone(before) ? {} : { before: before.value })
      },
      Effect.succeed(found ?? new Uint8Array())
    )
    // What cannot be kept is told when it is wanted back; the call goes on.
  }).pipe(Effect.ignore)
