/**
 * Reading, writing and editing one file of the workspace.
 *
 * A change is first planned from the current file. The plan is checked and shown before a person is asked, and is made
 * anew when the call runs; a file that holds something else by then is not replaced. A change keeps how a file is
 * encoded, its line ends and its byte order mark. See `ReplacedFile` for how the bytes are written.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Digest from "../core/Digest.js"
import * as Origin from "../core/Origin.js"
import * as ResolvedPath from "../core/ResolvedPath.js"
import * as Truncated from "../core/Truncated.js"
import * as Checkpoints from "./Checkpoints.js"
import * as EditorFiles from "./EditorFiles.js"
import * as FileText from "./FileText.js"
import * as KnownFiles from "./KnownFiles.js"
import * as LineReader from "./LineReader.js"
import * as MaskedText from "./MaskedText.js"
import * as OpenedFile from "./OpenedFile.js"
import * as ReplacedFile from "./ReplacedFile.js"
import * as ShownFiles from "./ShownFiles.js"
import { lineEnds, make as patchOf, sizeOf } from "./TextPatch.js"
import { sentence, WorkspaceRoot, type Service, type Target } from "./WorkspaceRoot.js"

/** What a call would do to a file. */
export interface Change extends ShownFiles.Planned {
  /** The number of replaced places; 1 for a whole file. */
  readonly places: number
  readonly encoding: FileText.Encoding
  /** Whether it replaces a whole file of which the agent has read nothing. */
  readonly isUnread: boolean
  /** What a whole write keeps of the file, in words. */
  readonly keeps: ReadonlyArray<string>
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
    const options: LineReader.LineOptions = {
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
    }
    // A file of ordinary size is read at once: the text that is known is the text that was shown.
    const whole = yield* wholeOf(workspace, target)
    const outcome =
      whole === undefined
        ? yield* Effect.mapError(LineReader.forEachLine(workspace.fileSystem, target.absolute, options), (error) =>
            sentence(error, target.shown)
          )
        : LineReader.ofText(whole, options)
    if (outcome === "binary") return yield* Effect.fail(`${target.shown} is a binary file; only text can be read.`)
    if (last === 0) {
      yield* KnownFiles.note(workspace, target, KnownFiles.ofText(whole ?? ""))
      return `[${target.shown} is empty]`
    }
    if (shown.length === 0) {
      return yield* Effect.fail(`${target.shown} has ${last} lines; there is no line ${first}.`)
    }
    yield* KnownFiles.note(
      workspace,
      target,
      whole === undefined ? KnownFiles.ofInfo(target) : KnownFiles.ofText(whole)
    )
    const goesOn = crowded || outcome === "stopped"
    if (!goesOn && first === 1) return shown.join("\n")
    const end = first + shown.length - 1
    const which = shown.length === 1 ? `Line ${grouped(first)}` : `Lines ${grouped(first)}–${grouped(end)}`
    const total = goesOn ? (whole === undefined ? undefined : linesIn(whole)) : last
    const of = total === undefined ? "; more follow" : ` of ${grouped(total)}`
    return `${shown.join("\n")}\n[${which}${of}.${goesOn ? ` Continue with offset ${end + 1}.` : ""}]`
  })

/**
 * The change that writing `content` would make, in the style of the file that it replaces. Fails if the file changed
 * since the agent read it.
 */
export const planWrite = (params: WriteParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.gen(function* () {
    const workspace = yield* WorkspaceRoot
    const target = yield* locateForWriting(workspace, params.path)
    const found = yield* Effect.transposeOption(
      Option.map(target.info, (info) => Effect.orElseSucceed(textOf(workspace, target, info), () => undefined))
    )
    const old = Option.getOrUndefined(found)
    const before = Option.map(found, (file) => file?.text)
    const known = Option.isNone(found) ? undefined : yield* KnownFiles.find(workspace, target)
    if (known !== undefined) yield* refuseStale(target, known, old?.text)
    const after = old === undefined ? params.content : FileText.inStyleOf(old, params.content)
    const encoding = old?.encoding ?? "utf-8"
    yield* encode(target.shown, { text: after, encoding })
    if (old !== undefined) yield* MaskedText.refuse(target.shown, old.text, after)
    const isUnread = Option.isSome(found) && known === undefined && old?.text !== "" && old?.text !== after
    return {
      target,
      before,
      after,
      places: 1,
      encoding,
      isUnread,
      keeps: old === undefined ? [] : FileText.styleOf(old)
    }
  })

/** Like {@link planWrite}, for somebody who is asked about it: what they see is what is replaced, or nothing is. */
export const showWrite = (params: WriteParams): Effect.Effect<Change, string, WorkspaceRoot> =>
  Effect.flatMap(WorkspaceRoot, (workspace) =>
    Effect.tap(planWrite(params), (change) => ShownFiles.show(workspace, change))
  )

/** Like {@link planEdit}, for a person who is asked: the call edits the places that were shown, or nothing. */
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
    const { encoding, text: before } = yield* textOf(workspace, target, Option.getOrThrow(target.info))
    const part = {
      old: FileText.withLineEndsOf(before, params.old_text),
      new: FileText.withLineEndsOf(before, params.new_text)
    }
    const places = occurrences(before, part.old)
    if (places.count === 0) return yield* Effect.fail(notFound(target.shown, before, params.old_text))
    if (places.count > 1 && params.replace_all !== true) {
      const lines = places.first.map((place) => lineEnds(before, place) + 1)
      return yield* Effect.fail(
        `old_text occurs ${places.count} times in ${target.shown} (lines ${lines.join(", ")}${places.count > maxPlaces ? ", …" : ""}). ` +
          "Include more of the text around the place, or set replace_all."
      )
    }
    const length = before.length + places.count * (part.new.length - part.old.length)
    if (length > maxText) return yield* Effect.fail(`${target.shown} would become longer than ${maxText} characters.`)
    // Joining, unlike a replacement pattern, takes `$&` and its like literally.
    const after = before.split(part.old).join(part.new)
    yield* encode(target.shown, { text: after, encoding })
    yield* MaskedText.refuse(target.shown, before, after)
    const parts = { length: part.old.length, starts: places.first }
    const rest = { encoding, isUnread: false, keeps: [] }
    return { target, before: Option.some(before), after, places: places.count, parts, ...rest }
  })

export const write = (params: WriteParams): Effect.Effect<string, string, WorkspaceRoot> =>
  changing(Effect.tap(planWrite(params), unlessChanged), ({ target, before, after, keeps }) => {
    const kept = keeps.length === 0 ? "" : ` Kept as it was: ${keeps.join(", ")}.`
    return `${Option.isNone(before) ? "Created" : "Replaced"} ${target.shown} (${sizeOf(after)}).${kept}`
  })

export const edit = (params: EditParams): Effect.Effect<string, string, WorkspaceRoot> =>
  changing(Effect.tap(planEdit(params), unlessChanged), ({ target, places }) =>
    places === 1 ? `Edited ${target.shown}.` : `Edited ${target.shown} in ${places} places.`
  )

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
  Effect.flatMap(workspace.locateToChange(path), (target) => {
    if (Option.isNone(target.info)) {
      return /[/\\]$/.test(path) ? Effect.fail(`${path} names a directory, not a file.`) : Effect.succeed(target)
    }
    const { nlink, type } = target.info.value
    if (type !== "File") {
      return Effect.fail(type === "Directory" ? `${path} is a directory.` : `${path} is not a regular file.`)
    }
    const readOnly = Effect.catchAll(workspace.fileSystem.access(target.absolute, { writable: true }), (error) =>
      error._tag === "SystemError" && error.reason === "PermissionDenied"
        ? Effect.fail(`${path} is read-only for you. Nothing was written. Ask the person to make it writable.`)
        : Effect.void
    )
    const names = Option.getOrElse(nlink, () => 1) > 1 ? refuseSharedName(workspace, target) : Effect.void
    return Effect.as(Effect.zipRight(readOnly, names), target)
  })

/** Who writes to a name of a file writes to all its names: a protected file may be one of them. */
const refuseSharedName = (workspace: Service, target: Target): Effect.Effect<void, string> => {
  const { fileSystem, path, protectedNames, roots } = workspace
  const acting = ["config", "hooks", "info"].flatMap((name) => roots.map((root) => path.join(root, ".git", name)))
  const inside = (name: string) =>
    Effect.map(
      Effect.orElseSucceed(fileSystem.readDirectory(name, { recursive: true }), () => []),
      (below) => [name, ...below.map((one) => path.join(name, one))]
    )
  const isShared = (name: string) =>
    Effect.match(fileSystem.stat(name), {
      onFailure: () => false,
      onSuccess: (info) => ResolvedPath.isSameFile(ResolvedPath.identityOf(info), identityOf(target))
    })
  return Effect.flatMap(Effect.forEach([...protectedNames, ...acting], inside), (names) =>
    Effect.flatMap(Effect.findFirst(names.flat(), isShared), (found) =>
      Option.isNone(found)
        ? Effect.void
        : Effect.fail(
            `${target.shown} is another name, by a hard link, of ${workspace.shown(found.value)}, which tools do not change. ` +
              "Nothing was written. Write to another file."
          )
    )
  )
}

/** The whole text, with its byte order mark. Fails when decoding and encoding would change the bytes. */
const textOf = (
  workspace: Service,
  target: Target,
  info: FileSystem.File.Info
): Effect.Effect<FileText.FileText, string> =>
  Effect.gen(function* () {
    if (Number(info.size) > maxText) {
      return yield* Effect.fail(`${target.shown} is too large to be edited as text (${info.size} bytes).`)
    }
    const found = FileText.decode(yield* bytesOf(workspace, target))
    if (found === "binary") return yield* Effect.fail(`${target.shown} is a binary file.`)
    if (found === "damaged") {
      return yield* Effect.fail(`${target.shown} is not encoded as UTF-8; editing it would damage it.`)
    }
    return found
  })

/** The file on the disk. */
const savedOf = ({ fileSystem }: Service, target: Target): Effect.Effect<Uint8Array, string> =>
  Effect.mapError(OpenedFile.bytes(fileSystem, target.absolute, identityOf(target)), (error) =>
    sentence(error, target.shown)
  )

/** The file as the person's editor has it, or else as it is on the disk. */
const bytesOf = (workspace: Service, target: Target): Effect.Effect<Uint8Array, string> =>
  Effect.flatMap(savedOf(workspace, target), (saved) =>
    Effect.map(EditorFiles.unsaved(workspace, target, saved), Option.match({ onNone: () => saved, onSome: inUtf8 }))
  )

const inUtf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

/** As the lines of a file are counted: what stands behind the last line end is one too, unless it is empty. */
const linesIn = (text: string): number => {
  let count = text === "" || text.endsWith("\n") ? 0 : 1
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++
  return count
}

const grouped = (amount: number): string => String(amount).replace(/\B(?=(\d{3})+$)/g, ",")

/** The text of a file that is short enough to be kept; undefined for any other file, and for one that is no text. */
const wholeOf = (workspace: Service, target: Target): Effect.Effect<string | undefined, string> =>
  Option.exists(target.info, ({ size }) => Number(size) > KnownFiles.mostText)
    ? Effect.succeed(undefined)
    : Effect.map(bytesOf(workspace, target), (bytes) => {
        const found = FileText.decode(bytes)
        return typeof found === "string" ? undefined : found.text
      })

/** Fails with the first character that the file's encoding does not have. */
const encode = (shown: string, text: FileText.FileText): Effect.Effect<Uint8Array, string> =>
  Effect.mapError(
    FileText.encode(text),
    (character) =>
      `${shown} is encoded in ${FileText.names[text.encoding]}, which has no “${character}”. Nothing was written. ` +
      `Leave the character out, or convert the file first: iconv -f ${text.encoding} -t utf-8.`
  )

/** Fails if the file is another version than the one that the agent knows, with the difference. */
const refuseStale = (
  target: Target,
  known: KnownFiles.Version,
  text: string | undefined
): Effect.Effect<void, string> => {
  if (known.key === keyOf(text) || known.key === KnownFiles.ofInfo(target).key) return Effect.void
  const { shown } = target
  const patch =
    known.text === undefined || text === undefined ? undefined : patchOf(`a/${shown}`, `b/${shown}`, known.text, text)
  const shortened = patch === undefined ? undefined : Truncated.make(patch, shownChange)
  return Effect.fail(
    `${shown} has changed since you read it. Nothing was written. Read it, and propose the change again.` +
      (patch === undefined ? "" : `\n${shortened === undefined ? patch : Truncated.text(shortened)}`)
  )
}

const keyOf = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : KnownFiles.ofText(text).key

/** Characters of a change that is shown to a model. */
const shownChange = { head: 6_000, tail: 2_000 }

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
  Effect.gen(function* () {
    const { before, isUnread, target } = change
    const asked = yield* ShownFiles.take(yield* WorkspaceRoot, change)
    if (asked === "changed") {
      return yield* Effect.fail(
        `${target.shown} was changed after a person was shown this change. Nothing was written. ` +
          "Read it, and propose the change again."
      )
    }
    if (asked === "as shown" || !isUnread) return
    return yield* Effect.fail(
      `${target.shown} is there already, and you have not read it. Nothing was written. ` +
        (Option.getOrUndefined(before) === undefined
          ? "It is not a text file: write to another file."
          : "Read it, and propose the change again.")
    )
  })

/** Plans and makes a change under the semaphore, so that the plan is still true when it is made. */
const changing = (
  plan: Effect.Effect<Change, string, WorkspaceRoot>,
  describe: (change: Change) => string
): Effect.Effect<string, string, WorkspaceRoot> =>
  Effect.flatMap(WorkspaceRoot, (workspace) =>
    workspace.changing.withPermits(1)(
      Effect.flatMap(plan, (change) =>
        Effect.gen(function* () {
          const { after, before, encoding, parts, target } = change
          yield* replace(workspace, change, yield* encode(target.shown, { text: after, encoding }))
          ShownFiles.wrote(workspace, change)
          const known = yield* KnownFiles.find(workspace, target)
          // An edit shows nothing of the rest: the agent knows the rest if it knew the file before.
          const isKnown = parts === undefined || known?.key === keyOf(Option.getOrUndefined(before))
          if (isKnown) yield* KnownFiles.note(workspace, target, KnownFiles.ofText(after))
          return describe(change)
        })
      )
    )
  )

const replace = (
  workspace: Service,
  { after, before, target }: Change,
  bytes: Uint8Array
): Effect.Effect<void, string> =>
  Effect.gen(function* () {
    const held = yield* unsavedOf(workspace, target)
    const editor = yield* EditorFiles.current
    const { checkpoints } = workspace
    if (Option.isNone(held) || editor === undefined) {
      if (checkpoints !== undefined) yield* remember(workspace, checkpoints, target, bytes, undefined)
      return yield* ReplacedFile.write(workspace, target, bytes)
    }
    if (held.value !== Option.getOrUndefined(before)) {
      return yield* Effect.fail(
        `${target.shown} was changed in the editor meanwhile. Nothing was written. Read it, and propose the change again.`
      )
    }
    if (checkpoints !== undefined) yield* remember(workspace, checkpoints, target, bytes, inUtf8(held.value))
    yield* editor.write(target.absolute, after)
  })

/** Words of an editor that writing on the disk would bring into conflict. */
const unsavedOf = (workspace: Service, target: Target): Effect.Effect<Option.Option<string>, string> =>
  Option.isNone(target.info) || Number(target.info.value.size) > maxText
    ? Effect.succeedNone
    : Effect.flatMap(EditorFiles.current, (editor) =>
        editor === undefined
          ? Effect.succeedNone
          : Effect.flatMap(savedOf(workspace, target), (saved) => EditorFiles.unsaved(workspace, target, saved))
      )

/** Keeps what the file is, for the call that changes it. */
const remember = (
  { fileSystem, path }: Service,
  checkpoints: Checkpoints.Service,
  { absolute, info, shown }: Target,
  after: Uint8Array,
  /** What an editor has in the place of the file. */
  held: Uint8Array | undefined
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { correlationId, depth, rootSessionId, sessionId, toolCallId } = yield* Origin.current
    const size = held?.length ?? Option.match(info, { onNone: () => 0, onSome: ({ size }) => Number(size) })
    // A file that is not kept is not read: then its digest is of no use.
    const found =
      Option.isNone(info) || size > Checkpoints.defaults.file
        ? undefined
        : (held ?? (yield* OpenedFile.bytes(fileSystem, absolute, identityOf({ info }))))
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
