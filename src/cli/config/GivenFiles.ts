/** Files that a person gives with words: `--image FILE`, `--file FILE`, `@FILE`. They are looked at before anything begins. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as WorkspaceRoot from "../../builtin/WorkspaceRoot.js"
import * as Redaction from "../../core/Redaction.js"
import type * as Input from "../../inbox/Input.js"
import type * as Model from "../../model/Model.js"
import * as Display from "../../tui/terminal/Display.js"
import * as Arguments from "./Arguments.js"

/**
 * The files of the command line, images first, behind those that are there already; what the model would not take is
 * refused, and so is what the policy of the workspace denies.
 */
export const read = (
  { file = [], image = [] }: Arguments.Flags,
  model: Model.Service,
  workspace: WorkspaceRoot.Options,
  before: ReadonlyArray<Input.Part> = []
): Effect.Effect<ReadonlyArray<Input.Part>, Arguments.UsageError, FileSystem.FileSystem | Path.Path> =>
  image.length + file.length + before.length === 0
    ? none
    : Effect.gen(function* () {
        const [Input, InputTaking, WorkspaceRoot, Path] = yield* load
        const { resolve } = yield* Path.Path
        const { denial } = yield* WorkspaceRoot.make(workspace)
        const readAll = (paths: ReadonlyArray<string>) =>
          Effect.forEach(paths, (path) =>
            Effect.flatMap(denial(resolve(path)), (why) =>
              why === undefined
                ? asTyped(path, Input.read(path))
                : Effect.fail({ message: why.replace(resolve(path), () => Display.oneLine(path, 200)) })
            )
          )
        const images = yield* readAll(image)
        const files = yield* readAll(file)
        const parts = [...before, ...images.map(({ bytes, name }) => Input.image(bytes, { name })), ...files]
        const { draft } = yield* InputTaking.take(parts, Input.defaults, Redaction.shapesOnly)
        const refusal = InputTaking.notTaken(draft, model)
        return refusal === undefined ? parts : yield* refusal
      }).pipe(Effect.mapError(({ message }) => new Arguments.UsageError({ message })))

/** The files that words of the command line name with `@`, as a chat reads them. */
export const mentioned = (
  words: string,
  files: WorkspaceRoot.Options,
  tell: (sentence: string) => Effect.Effect<void>
): Effect.Effect<ReadonlyArray<Input.Part>, Arguments.UsageError, FileSystem.FileSystem | Path.Path> =>
  words.includes("@")
    ? Effect.gen(function* () {
        const ChatFiles = yield* Effect.promise(() => import("../../tui/chat/ChatFiles.js"))
        const gathered = yield* Effect.flatMap(ChatFiles.make(files, "--file"), ({ gather }) => gather(words))
        if (gathered.files.length > 0) yield* tell(`with ${ChatFiles.told(gathered.files)}`)
        if (gathered.words.length > 0) yield* tell(`${ChatFiles.toldWords(gathered.words)}.`)
        return ChatFiles.parts(gathered.files)
      }).pipe(Effect.mapError((message) => new Arguments.UsageError({ message })))
    : none

/** Standard input that was piped in beside words, behind a line that says what it is; nothing if there is none. */
export const piped = (
  tell: (sentence: string) => Effect.Effect<void>
): Effect.Effect<ReadonlyArray<Input.Part>, Arguments.UsageError> =>
  Effect.gen(function* () {
    const [Input, ChatFiles] = yield* Effect.promise(() =>
      Promise.all([import("../../inbox/Input.js"), import("../../tui/chat/ChatFiles.js")])
    )
    const bytes = yield* pipedBytes(tell)
    if (bytes === undefined || /^\s*$/.test(new TextDecoder().decode(bytes.subarray(0, 1_000_000)))) return []
    const described = ChatFiles.described(Input.fromBytes(bytes, { name: "standard input" }), "standard input")
    if (Either.isLeft(described)) {
      const message = `${described.left} Give less of it, or put it into a file and name that.`
      return yield* new Arguments.UsageError({ message })
    }
    yield* tell(`with ${described.right.said}`)
    return ChatFiles.parts([described.right])
  })

/** Standard input as words; undefined if there are none. */
export const pipedWords = (tell: (sentence: string) => Effect.Effect<void>): Effect.Effect<string | undefined> =>
  Effect.map(pipedBytes(tell), (bytes) => new TextDecoder().decode(bytes).trim() || undefined)

/** Words with files; the words alone where there are none. */
export const withWords = (words: string | undefined, files: ReadonlyArray<Input.Part>): Input.Input | undefined =>
  files.length === 0 ? words : [...(words === undefined ? [] : [words]), ...files]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const pipedBytes = (tell: (sentence: string) => Effect.Effect<void>): Effect.Effect<Uint8Array | undefined> =>
  Effect.flatMap(
    Effect.promise(() => import("../../tui/process/Piped.js")),
    (Piped) => Piped.read({ most: mostPiped, waiting: tell(waits) })
  )

const mostPiped = 20_000_000
const waits = "standard input is open and silent. It is waited for; < /dev/null goes without it."

/** An error names the file without its directories, and a person knows it as they typed it: `63` is `/dev/fd/63`. */
const asTyped = <A, R>(path: string, read: Effect.Effect<A, Input.InputRefused, R>) =>
  Effect.mapError(read, ({ file, message }) => ({
    message: file === undefined ? message : message.replace(file, () => Display.oneLine(path, 200))
  }))

const none: Effect.Effect<ReadonlyArray<Input.Part>> = Effect.succeed([])

const load = Effect.promise(() =>
  Promise.all([
    import("../../inbox/Input.js"),
    import("../../inbox/InputTaking.js"),
    import("../../builtin/WorkspaceRoot.js"),
    import("@effect/platform/Path")
  ])
)
