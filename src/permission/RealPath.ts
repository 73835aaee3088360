/** Where paths of settings lead when links are followed; they need not exist. See `FileSurvey`. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as FileSurvey from "./FileSurvey.js"

/** Keeps what it has found: make one per check, since links may change. */
export interface RealPath {
  /** Resolves an absolute path. Never fails. */
  readonly real: (path: string) => Effect.Effect<string>
}

export const make = (fs: FileSystem.FileSystem, path: Path.Path): RealPath => {
  const survey = new FileSurvey.FileSurvey(fs, path)
  return { real: (text) => Effect.suspend(() => FileSurvey.run(survey.own(text))) }
}
