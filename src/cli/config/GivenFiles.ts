/** Files that a person gives with words: `--image FILE`, `--file FILE`. They are looked at before anything begins. */
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Redaction from "../../core/Redaction.js"
import type * as Input from "../../inbox/Input.js"
import type * as Model from "../../model/Model.js"
import * as Arguments from "./Arguments.js"

/** The files of the command line, images first; those that the model would not take are refused. */
export const read = (
  { file = [], image = [] }: Arguments.Flags,
  model: Model.Service
): Effect.Effect<ReadonlyArray<Input.Part>, Arguments.UsageError, FileSystem.FileSystem> =>
  image.length + file.length === 0
    ? none
    : Effect.gen(function* () {
        const [Input, InputTaking] = yield* load
        const images = yield* Effect.forEach(image, (path) => Input.read(path))
        const files = yield* Effect.forEach(file, (path) => Input.read(path))
        const parts = [...images.map(({ bytes, name }) => Input.image(bytes, { name })), ...files]
        const { draft } = yield* InputTaking.take(parts, Input.defaults, Redaction.shapesOnly)
        const refusal = InputTaking.notTaken(draft, model)
        return refusal === undefined ? parts : yield* refusal
      }).pipe(Effect.mapError(({ message }) => new Arguments.UsageError({ message })))

/** Words with files; the words alone where there are none. */
export const withWords = (words: string | undefined, files: ReadonlyArray<Input.Part>): Input.Input | undefined =>
  files.length === 0 ? words : [...(words === undefined ? [] : [words]), ...files]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: Effect.Effect<ReadonlyArray<Input.Part>> = Effect.succeed([])

const load = Effect.promise(() => Promise.all([import("../../inbox/Input.js"), import("../../inbox/InputTaking.js")]))
