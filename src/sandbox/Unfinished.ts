/**
 * Notes on disk what was in a workspace before commands began, while they run. If Assent is killed, its next start finds
 * the note, and can say what the commands left behind.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as Directory from "../core/Directory.js"
import type { Platform } from "./Search.js"
import type * as Watch from "./Watch.js"

/** What was there before. */
export interface Since {
  /** The acting names, each with its version. */
  readonly before: ReadonlyMap<string, string>
  /** The links among them, each with its target. */
  readonly links: Map<string, string>
  /** Paths that a command cannot replace. */
  readonly held: ReadonlySet<string>
  readonly guarded: Watch.Guarded
  readonly gitDirectories: ReadonlyArray<string>
  /** What acted in the git directories: the keys of a `GitState`. */
  readonly acts: ReadonlySet<string>
  /** The lines of git that ran; empty if none did. */
  readonly lines: string
}

export interface Unfinished {
  /** Of processes that are no more. */
  readonly earlier: ReadonlyArray<Since>
  /** Those were looked at. */
  readonly settled: Effect.Effect<void>
  /** The first command begins. */
  readonly begin: (since: Since) => Effect.Effect<void, string>
  /** The last one has ended, and was looked at. */
  readonly end: Effect.Effect<void>
}

export const make = ({ fileSystem, path }: Platform, directory: string): Effect.Effect<Unfinished> =>
  Effect.gen(function* () {
    /** A process and the time of its start: its number alone may come to mean another one. */
    const identify = (name: string) =>
      Effect.map(Effect.option(fileSystem.readFileString(`/proc/${name}/stat`)), (found) => {
        const stat = Option.getOrElse(found, () => "")
        const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[startedAt]
        return started === undefined ? undefined : `${Number.parseInt(stat, 10)}-${started}`
      })
    const own = (yield* identify("self")) ?? "unknown"
    const names = yield* Effect.orElseSucceed(fileSystem.readDirectory(directory), () => [])
    const dead = yield* Effect.filter(
      names.filter((name) => pattern.test(name)),
      (name) => {
        const [, identity, pid = ""] = pattern.exec(name) ?? []
        return Effect.map(identify(pid), (now) => now !== identity)
      }
    )
    const files = dead.map((name) => path.join(directory, name))
    const earlier = yield* Effect.forEach(files, (file) =>
      Effect.option(Effect.flatMap(fileSystem.readFileString(file), Schema.decode(Note)))
    )
    // One process may have several sandboxes for one workspace.
    const ours = path.join(directory, `unfinished-${own}-${yield* Random.nextIntBetween(0, 2 ** 40)}`)
    return {
      // A note that is not whole was being written, and its command had not begun.
      earlier: earlier
        .flatMap(Option.toArray)
        .map(({ absent, acts, before, gitDirectories, held, lines, links, nests }) => ({
          gitDirectories,
          acts,
          lines,
          before,
          links: new Map(links),
          held,
          guarded: { absent: new Map([...absent].map(([name, link]) => [name, link ?? undefined])), nests }
        })),
      settled: Effect.forEach(files, (noted) => Effect.ignore(fileSystem.remove(noted)), { discard: true }),
      begin: ({ acts, before, gitDirectories, guarded, held, lines, links }) =>
        Effect.gen(function* () {
          const absent = new Map([...guarded.absent].map(([name, link]) => [name, link ?? null]))
          const text = yield* Schema.encode(Note)({
            before,
            links,
            held,
            absent,
            nests: guarded.nests,
            gitDirectories,
            acts,
            lines
          })
          yield* Directory.ensure(fileSystem, path, directory, 0o700)
          yield* fileSystem.writeFileString(ours, text, { mode: 0o600 })
        }).pipe(Effect.mapError(({ message }) => `The sandbox's directory ${directory} cannot be written: ${message}`)),
      end: Effect.ignore(fileSystem.remove(ours))
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const pattern = /^unfinished-((\d+)-\d+)-/
/** The field of a process's `stat`, counted from its state. */
const startedAt = 19

const Targets = Schema.ReadonlyMap({ key: Schema.String, value: Schema.String })
const Note = Schema.parseJson(
  Schema.Struct({
    before: Targets,
    links: Targets,
    held: Schema.ReadonlySet(Schema.String),
    gitDirectories: Schema.Array(Schema.String),
    acts: Schema.ReadonlySet(Schema.String),
    lines: Schema.String,
    absent: Schema.ReadonlyMap({ key: Schema.String, value: Schema.NullOr(Schema.String) }),
    nests: Schema.ReadonlyMap({ key: Schema.String, value: Schema.ReadonlySet(Schema.String) })
  })
)
