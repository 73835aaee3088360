/**
 * A file that was read at the start and decides: a policy, settings, a profile, a key, the script of a model.
 *
 * Tools do not touch such a file, and confined commands do not change it, by whatever path they come to it. Instructions
 * are not among them: they allow nothing, and agents may work on them. When a file changes all the same, by an editor or by
 * a command that runs unconfined, the session continues with the first version, and one line says so.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Digest from "../../core/Digest.js"
import type { AgentEvent } from "../../event/AgentEvent.js"
import type * as EventBus from "../../event/EventBus.js"
import * as WorkspaceSettings from "./WorkspaceSettings.js"
import { make as invalid, type ConfigurationInvalid } from "./ConfigurationInvalid.js"
import * as OwnFile from "./OwnFile.js"

export interface DecidingFile {
  /** As it was named; absolute. */
  readonly file: string
  /** The links by which the name leads to the file, and at last its real path. */
  readonly places: ReadonlyArray<string>
  /** No tool and no command reads it. */
  readonly isSecret: boolean
  /** Of the places and the content; of a directory, of the names in it. */
  readonly digest: string
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nothing for a pipe, which nobody reads twice. A file that is not there yet decides, too; a directory with its profiles. */
export const of = (name: string, isSecret = false): ReadonlyArray<DecidingFile> => {
  const file = path.resolve(name)
  const places = placesOf(file)
  if (isPipe(file)) return []
  const inside = OwnFile.realDirectory(file) === undefined ? [] : namesIn(file)
  return [{ file, places, isSecret, digest: digestOf(file) }, ...inside.flatMap((name) => of(path.join(file, name)))]
}

/**
 * The files that decide at a start, and at the next one: the person's own, the workspace's, and those that were `named`. Of
 * directories that are links, too.
 */
export const atStart = (
  { configDirectory, key, named }: Given,
  { files, workspace }: WorkspaceSettings.WorkspaceSettings
): ReadonlyArray<DecidingFile> => {
  const brought = new Set([...files.keys(), WorkspaceSettings.permissions, WorkspaceSettings.config])
  brought.delete(WorkspaceSettings.instructions)
  return [
    ...["permissions.json", "config.json", "profiles"].flatMap((name) => of(path.join(configDirectory, name))),
    ...[...brought].flatMap((name) => of(path.join(workspace, name))),
    ...named.flatMap((file) => (file === undefined ? [] : of(file))),
    ...(key === undefined ? [] : of(key, true))
  ]
}

/** Where the person's own files are, and what else the person names. */
export interface Given {
  readonly configDirectory: string
  readonly key: string | undefined
  readonly named: ReadonlyArray<string | undefined>
}

/** The scripts among these references to models. */
export const scripts = (models: ReadonlyArray<string>): ReadonlyArray<DecidingFile> =>
  models.flatMap((ref) => (ref.startsWith(script) ? of(ref.slice(script.length)) : []))

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/** Fails when a model is a script that is not as it was at the start. */
export const unchanged = (
  scripts: ReadonlyArray<DecidingFile>,
  model: string
): Effect.Effect<void, ConfigurationInvalid> =>
  Effect.suspend(() => {
    const file = model.startsWith(script) ? path.resolve(model.slice(script.length)) : undefined
    return scripts.some((one) => one.file === file && isChanged(one))
      ? invalid(`The script ${file} changed since the start. Start again to use it.`)
      : Effect.void
  })

/**
 * Tells of each file that changed, once, while these events come and when the scope closes. It looks where a turn begins or
 * ends, and behind each tool call.
 */
export const follow = (
  files: ReadonlyArray<DecidingFile>,
  tell: (sentence: string) => void
): Effect.Effect<(events: EventBus.Subscription) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const stamps = new Map(files.map((one) => [one, stampOf(one)]))
    const look = Effect.sync(() => {
      for (const [one, before] of stamps) {
        const now = stampOf(one)
        if (now === before) continue
        stamps.set(one, now)
        if (!isChanged(one)) continue
        stamps.delete(one)
        tell(
          `${one.file} changed since the start. This session continues with the former text. Check the file before the next start.`
        )
      }
    })
    yield* Effect.addFinalizer(() => look)
    return ({ stream }) =>
      Stream.runForEach(
        Stream.filter(stream, ({ _tag }) => milestones.has(_tag)),
        () => look
      )
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const script = "script:"

const milestones: ReadonlySet<AgentEvent["_tag"]> = new Set(["TurnStarted", "ToolCallEnded", "TurnEnded"])

/** Whether the name leads to something else than at the start. */
const isChanged = ({ digest, file }: DecidingFile): boolean => digestOf(file) !== digest

/** As the system resolves an absolute name: the links by which it leads to a file, and at last its real path. */
export const placesOf = (file: string): ReadonlyArray<string> => {
  const places: Array<string> = []
  const { root } = path.parse(file)
  let at = root
  let rest = partsOf(file.slice(root.length))
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = path.join(at, name)
    const target = places.length < mostLinks ? targetOf(next) : undefined
    if (target === undefined) {
      at = next
      continue
    }
    places.push(next)
    if (path.isAbsolute(target)) at = root
    rest = [...partsOf(target), ...rest]
  }
  return [...places, at]
}

/** No system follows more. */
const mostLinks = 40

const partsOf = (text: string): Array<string> => text.split(path.sep).filter((part) => part !== "")

const targetOf = (file: string): string | undefined => {
  try {
    return fs.lstatSync(file).isSymbolicLink() ? fs.readlinkSync(file) : undefined
  } catch {
    return undefined
  }
}

const isPipe = (file: string): boolean => {
  try {
    const info = fs.statSync(file)
    return !info.isFile() && !info.isDirectory()
  } catch {
    return false
  }
}

const digestOf = (file: string): string => {
  const isDirectory = OwnFile.realDirectory(file) !== undefined
  return Digest.digest([placesOf(file), isDirectory ? namesIn(file) : OwnFile.read(file, largest)])
}

const namesIn = (directory: string): ReadonlyArray<string> =>
  OwnFile.entriesOf(directory, mostNames)
    .map(({ name }) => name)
    .filter(WorkspaceSettings.isProfile)
    .sort()

/** As many profiles as are read. */
const mostNames = 1_000

/** Bytes of the largest file that decides: a script that was made from a recorded session. */
const largest = 50_000_000

/** Differs when a file was written or replaced. */
const stampOf = ({ file }: DecidingFile): string => {
  try {
    const { ctimeMs, dev, ino, mtimeMs, size } = fs.statSync(file)
    return `${fs.realpathSync(file)} ${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`
  } catch {
    return ""
  }
}
