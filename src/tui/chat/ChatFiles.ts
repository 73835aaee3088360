/**
 * Files that go with a line: those that it names with `@`, and those that were attached before.
 *
 * `@src/a.ts` names a file or a directory of the workspace, `@"two words.md"` one with blanks in its name, where `\"` is a
 * quote of it. What names nothing is words, as in `@types/node is missing`; only what can be nothing but a path is refused.
 * A text goes to the model as a file of the message, never as its words, so nothing in it can be taken for something that
 * a person said.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as os from "node:os"
import * as WorkspaceRoot from "../../builtin/WorkspaceRoot.js"
import * as WorkspaceSearch from "../../builtin/WorkspaceSearch.js"
import * as Attachment from "../../core/Attachment.js"
import * as MediaType from "../../core/MediaType.js"
import * as PathRank from "../../core/PathRank.js"
import * as Input from "../../inbox/Input.js"
import * as Display from "../terminal/Display.js"
import type * as Picker from "../terminal/Picker.js"
import * as NodeFiles from "../../host/NodeFiles.js"

/** A file that goes with words. */
export interface Given {
  /** As people and models are told it: `src/a.ts (1.2 kB, 40 lines)`. */
  readonly said: string
  /** Absent where there is nothing in it. */
  readonly file: Input.File | Input.Image | undefined
}

/** A line with its files. */
export interface Gathered {
  readonly input: Input.Input
  readonly files: ReadonlyArray<Given>
  /** What stands behind an `@` and may have been meant for a file, and is none. */
  readonly words: ReadonlyArray<string>
}

export interface ChatFiles {
  /** Lets a file go with the next line, wherever it is. Fails with a sentence. */
  readonly attach: (path: string) => Effect.Effect<Given, string>
  /** The same with a file that was read. */
  readonly add: (given: Given) => void
  /** What goes with the next line. */
  readonly waiting: () => ReadonlyArray<Given>
  readonly drop: () => void
  /** Words with the files that they name, and with those that wait. Fails with a sentence. */
  readonly gather: (words: string) => Effect.Effect<Gathered, string>
  /** Whether this names a file of the workspace. Fails with a sentence where the workspace is gone. */
  readonly isFile: (name: string) => Effect.Effect<boolean, string>
  /** A line was sent as this message: nothing waits any more. */
  readonly sent: (id: string, line: string) => void
  /** The line of a message that nobody has read; its files wait again. Nothing for a message that came otherwise. */
  readonly takeBack: (id: string) => string | undefined
  /** What `@!` is from now on: the output of a command of the person's own. */
  readonly setOutput: (output: Given) => void
  readonly output: () => Given | undefined
  /** What there is to complete, as of now. */
  readonly paths: Effect.Effect<Index>
}

/** The files of a workspace, for completion. */
export interface Index {
  /** Finds them by a few letters. */
  readonly find: PathRank.Find
  /** A sentence, if some are missing. */
  readonly remark: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nothing is attached yet. `anywhere` is what takes a file from anywhere. */
export const make = (
  files: WorkspaceRoot.Options,
  anywhere = "/attach"
): Effect.Effect<ChatFiles, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const workspace = yield* Effect.provide(WorkspaceRoot.make(files), NodeFiles.layer)
    const { fileSystem, path } = workspace
    let waiting: ReadonlyArray<Given> = []
    let output: Given | undefined
    /** The lines that were sent last, which may come back. */
    const sent = new Map<string, { readonly line: string; readonly files: ReadonlyArray<Given> }>()

    /** Where the whole workspace is gone, that is what is to be said of a file. */
    const isThere = workspace.locateDirectory(".")
    const notDenied = (absolute: string, typed: string) =>
      Effect.flatMap(workspace.denial(absolute), (why) =>
        why === undefined ? Effect.void : Effect.fail(why.replace(absolute, () => Display.oneLine(typed)))
      )
    const read = (absolute: string, shown: string, typed = shown): Effect.Effect<Given, string> =>
      Input.read(absolute, { name: shown }).pipe(
        Effect.provide(platform),
        // It names the file without its directories: `/etc` would be `etc`.
        Effect.mapError(({ message, file = "" }) =>
          file !== "" && message.startsWith(file) ? Display.oneLine(typed) + message.slice(file.length) : message
        ),
        Effect.flatMap((file) =>
          Either.match(described(file, shown), {
            onLeft: (why) => Effect.fail(`${why} The agent's tools may do more with it.`),
            onRight: Effect.succeed
          })
        )
      )
    const attach = (given: string): Effect.Effect<Given, string> =>
      Effect.gen(function* () {
        const inHome = (name: string) => path.resolve(workspace.root, name.replace(/^~(?=\/|$)/, os.homedir()))
        // As a shell or a dropped file would have it: in quotes, or with a backslash before a blank.
        const plain = /^(["'])(.*)\1$/.exec(given)?.[2] ?? given.replace(/\\(.)/g, "$1")
        const isFound = yield* Effect.orElseSucceed(fileSystem.exists(inHome(given)), () => false)
        const wanted = inHome(isFound ? given : plain)
        yield* notDenied(wanted, isFound ? given : plain)
        const found = yield* Effect.tapError(read(wanted, workspace.shown(wanted), isFound ? given : plain), () =>
          wanted.startsWith(`${workspace.root}${path.sep}`) ? isThere : Effect.void
        )
        waiting = [...waiting, found]
        return found
      })
    const listing = ({ shown }: WorkspaceRoot.Target): Effect.Effect<Given, string> =>
      Effect.map(
        Effect.provideService(WorkspaceSearch.list({ path: shown }), WorkspaceRoot.WorkspaceRoot, workspace),
        (text) => ({
          said: `what is in ${Display.oneLine(shown)}`,
          file: Input.fromBytes(new TextEncoder().encode(text), { name: `${shown}.txt`, mediaType: "text/plain" })
        })
      )
    /** The file that is meant, where there is one. What follows a name in a sentence may not be of it. */
    const named = (mention: Mention): Effect.Effect<Option.Option<WorkspaceRoot.Target>, string> =>
      Effect.gen(function* () {
        for (const name of namesIn(mention)) {
          const located = yield* Effect.either(workspace.locate(name))
          if (Either.isRight(located)) {
            if (Option.isSome(located.right.info)) return Option.some(located.right)
            continue
          }
          yield* notDenied(path.resolve(workspace.root, name), name)
          // What is out of reach may be there or not; a sentence about something that is not would puzzle.
          const isFound = yield* Effect.orElseSucceed(
            fileSystem.exists(path.resolve(workspace.root, name)),
            () => false
          )
          if (isFound) return yield* Effect.fail(`${located.left} ${anywhere} takes a file from anywhere.`)
        }
        if (!isCertain(mention)) return Option.none()
        yield* isThere
        return yield* Effect.fail(
          `There is no file ${Display.oneLine(mention.text)}. If you mean a word, put a backslash before the @.`
        )
      })
    const given = (target: WorkspaceRoot.Target): Effect.Effect<Given, string> => {
      const type = Option.getOrUndefined(target.info)?.type
      if (type === "Directory") return listing(target)
      return type === "File"
        ? read(target.absolute, target.shown)
        : Effect.fail(`${Display.oneLine(target.shown)} is not a regular file.`)
    }

    return {
      attach,
      add: (given) => {
        waiting = [...waiting, given]
      },
      waiting: () => waiting,
      drop: () => {
        waiting = []
      },
      gather: (words) =>
        Effect.gen(function* () {
          const found = new Map<string, Given>()
          const nothing: Array<string> = []
          for (const mention of mentionsIn(words)) {
            if (isOutput(mention)) {
              if (output === undefined) return yield* Effect.fail("No command of yours has printed anything yet.")
              found.set("!", output)
              continue
            }
            const target = Option.getOrUndefined(yield* named(mention))
            if (target === undefined) nothing.push(mention.text.replace(/[.:!?\]}>]+$/, ""))
            if (target === undefined || found.has(target.absolute)) continue
            if (found.size === most) return yield* Effect.fail(`At most ${most} files go with a line.`)
            found.set(target.absolute, yield* given(target))
          }
          const all = [...found.values(), ...waiting]
          return { input: all.length === 0 ? words : withFiles(words, all), files: all, words: nothing }
        }),
      isFile: (name) =>
        Effect.matchEffect(workspace.locate(name), {
          onFailure: () => Effect.as(isThere, false),
          onSuccess: ({ info }) => Effect.succeed(Option.isSome(info))
        }),
      sent: (id, line) => {
        sent.set(id, { line, files: waiting })
        waiting = []
        for (const old of sent.keys()) if (sent.size > kept) sent.delete(old)
      },
      takeBack: (id) => {
        const message = sent.get(id)
        if (message === undefined) return undefined
        sent.delete(id)
        waiting = [...message.files, ...waiting]
        return message.line
      },
      setOutput: (next) => {
        output = next
      },
      output: () => output,
      paths: Effect.provideService(WorkspaceSearch.paths(mostPaths), WorkspaceRoot.WorkspaceRoot, workspace).pipe(
        Effect.orElseSucceed((): WorkspaceSearch.Paths => ({ paths: [], cut: undefined })),
        Effect.map(({ cut, paths }) => ({ find: PathRank.make(paths), remark: cut && remarks[cut] }))
      )
    }
  })

/**
 * What can be picked for a word with `@`: agents at the beginning of a line, the output of the last command, files. `ask` is
 * called at the beginning of a word: the files may be others than before.
 */
export const offers =
  ({
    agents,
    ask,
    files,
    paths
  }: {
    readonly agents: () => ReadonlyArray<string>
    readonly files: ChatFiles
    readonly paths: PathRank.Find
    readonly ask: () => void
  }): Picker.Offers =>
  (before) => {
    const match = /(?<![^\s("'`[{<,;])@(?:"((?:[^"\\\n]|\\["\\]|\\(?!["\\]))*)|([^\s"'`(),;]*))$/u.exec(before)
    if (match === null) return undefined
    const [, quoted, plain = ""] = match
    const query = quoted === undefined ? plain : unquoted(quoted)
    if (query === "") ask()
    const named = match.index > 0 || quoted !== undefined ? [] : agents().filter((name) => name.startsWith(query))
    const output = query === "" || query === "!" ? files.output() : undefined
    return {
      from: match.index,
      query,
      choices: [
        ...named.map((name) => ({ text: `@${name} `, label: `${name} (agent)` })),
        ...(output === undefined ? [] : [{ text: "@! ", label: `! (${output.said})` }]),
        ...paths(query, mostOffered)
          .filter(isTyped)
          .map((path) => ({
            // A directory may be the beginning of a path.
            text: !isPlain(path)
              ? `@"${path.replace(/["\\]/g, "\\$&")}" `
              : path.endsWith("/")
                ? `@${path}`
                : `@${path} `,
            label: path
          }))
      ]
    }
  }

/** No line has files. */
export const none: ChatFiles = {
  attach: () => Effect.fail("No files go with words here."),
  add: () => {},
  waiting: () => [],
  drop: () => {},
  gather: (words) => Effect.succeed({ input: words, files: [], words: [] }),
  isFile: () => Effect.succeed(false),
  sent: () => {},
  takeBack: () => undefined,
  setOutput: () => {},
  output: () => undefined,
  paths: Effect.succeed({ find: () => [], remark: undefined })
}

/** Words and files as one input. */
const withFiles = (words: string, files: ReadonlyArray<Given>): Input.Input => [
  ...(words === "" ? [] : [words]),
  ...parts(files)
]

/** The words of a message as somebody typed them: without what is said of its files. */
export const typedOf = (text: string): string => text.replace(/(?:(?:^|\n)\[File [^\n]*\])+$/, "")

/** Each file behind a line that says what it is. */
export const parts = (files: ReadonlyArray<Given>): ReadonlyArray<Input.Part> =>
  files.flatMap(({ file, said }) => [`[File ${said}]`, ...(file === undefined ? [] : [file])])

/** A file with what is said of it. The left is a sentence: a model cannot take it with words. */
export const described = (file: Input.File, shown: string): Either.Either<Given, string> => {
  const { bytes } = file
  const name = Display.oneLine(shown)
  const size = Attachment.sized(bytes.length)
  if (bytes.length === 0) return Either.right({ said: `${name} (empty)`, file: undefined })
  const kind = MediaType.of(bytes)
  if (kind !== undefined) return Either.right({ said: `${name} (${kind.mediaType}, ${size})`, file })
  const text = MediaType.textOf(bytes)
  if (text === undefined) return Either.left(`${name} is a binary file. You can send texts, images and PDFs.`)
  if (bytes.length > mostText)
    return Either.left(`${name} has ${size}; a text of at most ${Attachment.sized(mostText)} goes with words.`)
  const lines = text.replace(/\n$/, "").split("\n").length
  return Either.right({ said: `${name} (${size}, ${lines} ${lines === 1 ? "line" : "lines"})`, file })
}

/** A file that was read and found fit already; words are none. */
export const ofPart = (part: Input.Part): ReadonlyArray<Given> => {
  if (typeof part === "string" || part.type === "text") return []
  const name = part.name ?? part.type
  const otherwise = { said: `${Display.oneLine(name)} (${Attachment.sized(part.bytes.length)})`, file: part }
  return [Either.getOrElse(described({ ...part, type: "file" }, name), () => otherwise)]
}

/** The parts of a sentence that {@link Gathered.files} make, for the person who sent them. */
export const told = (files: ReadonlyArray<Given>): string => files.map(({ said }) => said).join(", ")

/** The same of what names no file, which goes as words. */
export const toldWords = (words: ReadonlyArray<string>): string =>
  words.length === 1
    ? `there is no file ${Display.oneLine(words[0] ?? "", 60)}; it is sent as a word`
    : `there are no files ${words.map((word) => Display.oneLine(word, 60)).join(", ")}; they are sent as words`

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const most = 20
const mostOffered = 100

/** Whether a path can be named in a line at all: no control characters, no bytes that are none of a letter. */
const isTyped = (path: string): boolean => !/[\p{Cc}\ufffd]/u.test(path)

/** What stands in quotes, where a quote or a backslash of the name itself has a backslash before it. */
const unquoted = (text: string): string => text.replace(/\\(["\\])/g, "$1")

/** Whether a path can be named without quotes. */
const isPlain = (path: string): boolean => /^[^\s"'`(),;]*[^\s"'`(),;.:?!\]}>]$/u.test(path)

const mostText = 200_000
/** Bounds the memory: some 40 MB, for a repository of 200,000 files and their directories. */
const mostPaths = 300_000
const remarks = {
  many: `The list behind an @ has the first ${mostPaths.toLocaleString("en")} files and directories. Type the whole path of any other.`,
  late: "The list behind an @ is incomplete: to read the whole workspace took too long. Type the whole path of any other file."
} as const
const kept = 50

interface Mention {
  readonly text: string
  readonly isQuoted: boolean
}

/** What begins with `@` and with a word. An address, such as `me@example.com`, has no blank before it. */
const mentionsIn = (words: string): ReadonlyArray<Mention> =>
  Array.from(
    words.matchAll(/(?<![^\s("'`[{<,;])@(?:"((?:[^"\\\n]|\\["\\]|\\(?!["\\]))+)"|([^\s"'`(),;]+))/gu),
    ([, quoted, plain]) => ({
      text: quoted === undefined ? (plain ?? "") : unquoted(quoted),
      isQuoted: quoted !== undefined
    })
  )

/** The name as it stands, without what ends a sentence behind it, and without a number of a line. */
const namesIn = ({ isQuoted, text }: Mention): ReadonlyArray<string> => {
  if (isQuoted) return [text]
  const bare = text.replace(/[.:!?\]}>]+$/, "")
  return [...new Set([text, bare, bare.replace(/(?::\d+)+(?:-\d+)?$/, "")])].filter((name) => name !== "")
}

const isOutput = ({ isQuoted, text }: Mention): boolean => !isQuoted && /^![.:?!]*$/.test(text)

/** A path with a directory and an ending, or a name in quotes, is no word. */
const isCertain = ({ isQuoted, text }: Mention): boolean =>
  isQuoted || /\/[^/]*[^/.]\.[A-Za-z]\w{0,7}[.:!?]*$/.test(text)
