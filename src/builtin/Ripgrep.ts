/**
 * The program `rg` of the optional package `@vscode/ripgrep`, which finds lines in files.
 *
 * ```
 *  files  places ──► names of files that hold a match   all threads, stops at the first match of a file
 *  lines  files  ──► line and column of each match      one thread, in the order of the files
 * ```
 *
 * ripgrep runs in the sandbox if there is one, and sees the workspace read-only. It prints no text of a file, so long lines
 * cost nothing here. A shell around ripgrep limits its memory, because ripgrep keeps the whole of a line, and prints its
 * errors behind its output.
 */
import * as Command from "@effect/platform/Command"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Sandbox from "../sandbox/Sandbox.js"
import type * as SyncFiles from "./SyncFiles.js"

export interface Query {
  /** In the syntax of ripgrep. */
  readonly pattern: string
  readonly ignoreCase: boolean
}

/** A line that matches. */
export interface Hit {
  readonly file: string
  /** 1-based. */
  readonly line: number
  /** Bytes of the line before its first match, in UTF-8. */
  readonly before: number
  /** The line matches if the file is Latin-1. */
  readonly isLatin: boolean
}

/** Failures are parts of a sentence: why ripgrep does not work here. */
export interface Service {
  /** The version is looked at once. */
  readonly ready: Effect.Effect<void, string>
  /** What is wrong with a pattern. */
  readonly fault: (query: Query) => Effect.Effect<string | undefined, string>
  /**
   * Gives each file that holds a match to `onFile`, in no order, and yields how many files could not be read. `places` are
   * absolute paths of files, and of directories of which every file is searched.
   */
  readonly files: (
    query: Query,
    places: ReadonlyArray<string>,
    onFile: (file: string) => void
  ) => Effect.Effect<number, string>
  /** At most `most` lines of each file, which is searched even if it is binary. */
  readonly lines: (
    query: Query,
    files: ReadonlyArray<string>,
    most: number
  ) => Effect.Effect<ReadonlyArray<Hit>, string>
}

export interface Options {
  /** The program, absolute. False: ripgrep is not used. Default: the program of `@vscode/ripgrep`. */
  readonly program: string | false | undefined
  readonly direct: SyncFiles.Service | undefined
  readonly executor: CommandExecutor.CommandExecutor
  readonly sandbox: Sandbox.Service
}

export const make = ({ direct, executor, program, sandbox }: Options): Effect.Effect<Service> =>
  Effect.gen(function* () {
    /** Runs `rg`, gives what it prints to `onText`, and yields its errors. */
    const run = (
      rg: string,
      args: ReadonlyArray<string>,
      reads: ReadonlyArray<string>,
      onText: (text: string) => void
    ) =>
      Effect.gen(function* () {
        const command = ["/bin/sh", "-c", script, "sh", rg, "--no-config", ...args] as const
        const state = yield* sandbox.state
        if (state._tag === "Unconfined" && sandbox.mode === "require") return yield* Effect.fail(state.reason)
        const decoder = new TextDecoder()
        let errors: string | undefined
        /** What may be the beginning of the mark. */
        let held = ""
        const take = (bytes: Uint8Array): void => {
          const text = held + decoder.decode(bytes, { stream: true })
          if (errors !== undefined) {
            errors = (errors + text).slice(0, maxErrors)
            return
          }
          const end = text.indexOf(endOfOutput)
          const to = end < 0 ? Math.max(0, text.length - endOfOutput.length + 1) : end
          onText(text.slice(0, to))
          held = end < 0 ? text.slice(to) : ""
          if (end >= 0) errors = text.slice(end + endOfOutput.length)
        }
        const code = yield* state._tag === "Confined" ? confined(command, reads, take) : plain(command, take)
        return { code, errors: errors ?? "" }
      }).pipe(Effect.scoped)

    const confined = (
      command: Sandbox.Job["command"],
      reads: ReadonlyArray<string>,
      take: (bytes: Uint8Array) => void
    ): Effect.Effect<number | null, string, Scope.Scope> =>
      Effect.gen(function* () {
        const { ended, process: child } = yield* sandbox.start({ command, directory: "/", environment: {}, reads })
        yield* Effect.ignore(Stream.runForEach(child.stdout, (bytes) => Effect.sync(() => take(bytes))))
        return (yield* ended).exitCode
      })

    const plain = ([shell, ...words]: Sandbox.Job["command"], take: (bytes: Uint8Array) => void) =>
      Effect.gen(function* () {
        const child = yield* executor.start(
          Command.make(shell, ...words).pipe(
            Command.workingDirectory("/"),
            Command.env({}, { extendEnv: false }),
            Command.stdin(Stream.empty)
          )
        )
        yield* Stream.runForEach(child.stdout, (bytes) => Effect.sync(() => take(bytes)))
        return yield* child.exitCode
      }).pipe(Effect.mapError(({ message }) => message))

    const known = yield* Effect.cached(
      Effect.gen(function* () {
        if (program === false) return yield* Effect.fail("it is turned off")
        const rg =
          program ??
          (yield* (direct?.ripgrep ?? imported).pipe(
            Effect.flatMap(decodePackage),
            Effect.mapBoth({
              onFailure: () => "the package @vscode/ripgrep is not installed",
              onSuccess: ({ rgPath }) => rgPath
            })
          ))
        let said = ""
        const { errors } = yield* run(rg, ["--version"], [rg], (text) => void (said += text))
        const [name, version] = /^ripgrep (\d+)\.\S*/.exec(said) ?? []
        if (version === undefined) return yield* Effect.fail(`${rg} does not start: ${firstLine(errors || said)}`)
        if (version !== major) return yield* Effect.fail(`${rg} is ${name}, and version ${major} is needed`)
        return rg
      }).pipe(inTime, Effect.uninterruptible)
    )

    const search = (
      query: Query,
      options: ReadonlyArray<string>,
      places: ReadonlyArray<string>,
      reads: ReadonlyArray<string>,
      onText: (text: string) => void
    ) =>
      Effect.gen(function* () {
        const rg = yield* known
        const caseOption = query.ignoreCase ? "--ignore-case" : "--case-sensitive"
        const args = [...always, caseOption, ...options, `--regexp=${query.pattern}`, "--", ...places]
        return yield* run(rg, args, [rg, ...reads], onText)
      })

    /** The last pattern without a fault: a call is checked before it runs. */
    let checked = ""
    const fault: Service["fault"] = (query) =>
      Effect.gen(function* () {
        const key = JSON.stringify(query)
        if (key === checked) return undefined
        const { code, errors } = yield* inTime(search(query, [], ["/dev/null"], [], () => undefined))
        if (code === 2) return reasonOf(errors)
        if (code !== 1) return yield* Effect.fail(ending(code, errors))
        checked = key
        return undefined
      })

    const files: Service["files"] = (query, places, onFile) =>
      Effect.gen(function* () {
        let unreadable = 0
        const wide = widened(query.pattern)
        const options = ["--files-with-matches", threads, ...(wide === undefined ? [] : [`--regexp=${wide}`])]
        for (const batch of batches(places)) {
          const onText = records("\0", onFile)
          const { code, errors } = yield* search(query, options, batch, [], onText)
          unreadable += yield* unreadableIn(code, errors)
        }
        return unreadable
      })

    const lines: Service["lines"] = (query, files, most) =>
      Effect.gen(function* () {
        const hits: Array<Hit> = []
        let isLatin = false
        /** The beginning of a path that has a newline in it. */
        let begun = ""
        const onText = records("\n", (part) => {
          const [, file, line, column] = /^([^\0]+)\0(\d+):(\d+):/.exec(begun + part) ?? []
          begun = file === undefined ? `${begun}${part}\n` : ""
          if (file !== undefined) hits.push({ file, line: Number(line), before: Number(column) - 1, isLatin })
        })
        // A file outside of the workspace is searched alone, and has to be made visible.
        const reads = files.length === 1 ? files : []
        const options = [...positions, `--max-count=${most}`]
        const first = yield* search(query, options, files, reads, onText)
        yield* unreadableIn(first.code, first.errors)
        const found = new Set(hits.map(({ file }) => file))
        const others = files.filter((file) => !found.has(file))
        if (others.length > 0 && widened(query.pattern) !== undefined) {
          isLatin = true
          const second = yield* search(query, [...options, "--encoding=windows-1252"], others, reads, onText)
          yield* unreadableIn(second.code, second.errors)
        }
        return hits
      })

    return { ready: Effect.asVoid(known), fault, files, lines }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const major = "15"

/** A bundler does not look for the package, which is optional and for Node only. */
const packageName: string = "@vscode/ripgrep"
const imported = Effect.tryPromise((): Promise<unknown> => import(/* @vite-ignore */ packageName))
const decodePackage = Schema.decodeUnknown(Schema.Struct({ rgPath: Schema.String }))

const inTime = <A>(work: Effect.Effect<A, string>): Effect.Effect<A, string> =>
  Effect.timeoutFail(work, { duration: "10 seconds", onTimeout: () => "it did not answer within 10 seconds" })

/** The walk that names the places has applied all ignore files. */
const always = ["--no-ignore", "--hidden", "--no-mmap", "--crlf", "--null", "--color=never"]
const threads = "--threads=4"
/** A line of more than one byte is left out, its number and column are not. */
const positions = [
  "--threads=1",
  "--text",
  "--with-filename",
  "--no-heading",
  "--line-number",
  "--column",
  "--max-columns=1"
]

/** A record begins with a path, so no zero follows an end of a line or of a path. */
const endOfOutput = "\n\0\0"
/** The limit is in kilobytes. Not every system has it. */
const script =
  'ulimit -v 500000 2>/dev/null; exec 3>&1; errors=$("$@" 2>&1 1>&3 3>&-); code=$?; printf "\\n\\0\\0%s" "$errors"; exit $code'
const maxErrors = 65_536

/** A system takes two million characters of arguments, and bubblewrap nine thousand arguments. */
const maxPlaces = 6_000
const maxCharacters = 1_000_000

const batches = (places: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const all: Array<Array<string>> = []
  let characters = Infinity
  for (const place of places) {
    const last = all.at(-1)
    characters += place.length
    if (last !== undefined && last.length < maxPlaces && characters <= maxCharacters) last.push(place)
    else {
      all.push([place])
      characters = place.length
    }
  }
  return all
}

/** Calls back for each record of a text that comes in pieces. */
const records = (end: string, onRecord: (record: string) => void) => {
  let rest = ""
  return (text: string): void => {
    const parts = (rest + text).split(end)
    rest = parts.pop() ?? ""
    parts.forEach(onRecord)
  }
}

/**
 * A pattern that matches also if each character beyond ASCII is one byte, as in Latin-1; nothing if that makes no
 * difference. The pattern may match more, so it only says in which files to look.
 */
const widened = (pattern: string): string | undefined => {
  // Classes in classes, and flags that change how a pattern is read, are too rare.
  if (/\[[^\]]*(?:\[|&&|--|~~)|\(\?[a-z]*[xu]/.test(pattern)) return undefined
  const wide = pattern.replace(
    /\\[pP]\{[^}]*\}|\\[pP]?[^]|\(\?P?<\w+>|\[\^?\]?(?:\\[^]|[^\]\\])*\]|\.|[^\0-\x7f]/gu,
    (part) => (/^(?:\\[pPwWSD]|\[|\.|[^\0-\x7f])/u.test(part) ? `(?:${part}|${byteBeyondAscii})` : part)
  )
  return wide === pattern ? undefined : wide
}
const byteBeyondAscii = "(?-u:[\\x80-\\xff])"

const fileError = /^rg: .*\(os error (\d+)\)$/
const noSuchFile = "2"

/** How many files could not be read. Any other error is a failure. A file that is gone meanwhile is no error. */
const unreadableIn = (code: number | null, errors: string): Effect.Effect<number, string> => {
  const every = errors.split("\n").filter((line) => line !== "")
  const ofFiles = every.flatMap((line) => fileError.exec(line)?.slice(1) ?? [])
  const isFine = code === 0 || code === 1 || (code === 2 && ofFiles.length === every.length)
  if (!isFine) return Effect.fail(ending(code, errors))
  return Effect.succeed(ofFiles.filter((number) => number !== noSuchFile).length)
}

const ending = (code: number | null, errors: string): string =>
  errors !== "" ? firstLine(errors) : code === null || code > 128 ? "it was killed" : `it ended with code ${code}`

const firstLine = (text: string): string => {
  const [line = ""] = text.trim().split("\n")
  return (line || "it prints nothing").slice(0, 200)
}

/** The line that says what is wrong, without the picture above it. */
const reasonOf = (errors: string): string =>
  /^error: (.*)$/m.exec(errors)?.[1] ?? firstLine(errors).replace(/^rg: /, "")
