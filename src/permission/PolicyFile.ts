/**
 * Policies in files.
 *
 * ```json
 * { "version": 1,
 *   "defaultPolicy": "ask",
 *   "guards": { "deny": { "patterns": ["rm -rf *"] }, "sanitize": { "pathScope": { "allowTmp": true } } },
 *   "blacklist": { "arguments": ["--force"] },
 *   "whitelist": { "tools": ["list_files"], "patterns": ["git status*"], "readonly": true },
 *   "channel": { "type": "console", "timeout": 30 } }
 * ```
 *
 * Every part is optional. A file with any problem is refused as a whole, and all its problems are reported: half a
 * policy is worse than none.
 *
 * @since 0.1.0
 */
import type * as Tool from "@effect/ai/Tool"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as RegularFile from "../core/RegularFile.js"
import * as SchemaProblem from "../core/SchemaProblem.js"
import * as CompiledPolicy from "./CompiledPolicy.js"
import type { Policy } from "./CompiledPolicy.js"
import * as PolicyRemarks from "./PolicyRemarks.js"
import * as PolicySource from "./PolicySource.js"

export type { Channel, PolicySource, Problem } from "./PolicySource.js"

// -----------------------------------------------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The file's content is not a policy.
 *
 * @since 0.1.0
 * @category errors
 */
export class PermissionFileInvalid extends Schema.TaggedError<PermissionFileInvalid>(
  "assent/permission/PermissionFileInvalid"
)("PermissionFileInvalid", {
  path: Schema.String,
  /** All of them; `path` such as `$.whitelist.tools[0]`. */
  problems: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
}) {
  override get message(): string {
    const lines = this.problems.map(({ path, message }) => `  ${path}: ${message}`)
    return [`The permission file ${this.path} is not valid. Correct it:`, ...UntrustedJson.few(lines)].join("\n")
  }
}

/**
 * The file cannot be read.
 *
 * @since 0.1.0
 * @category errors
 */
export class PermissionFileUnreadable extends Schema.TaggedError<PermissionFileUnreadable>(
  "assent/permission/PermissionFileUnreadable"
)("PermissionFileUnreadable", {
  path: Schema.String,
  /** The platform's word for it, such as `NotFound` or `PermissionDenied`. */
  reason: Schema.String
}) {
  override get message(): string {
    return `The permission file ${this.path} cannot be read (${this.reason}); name a file that exists and is readable.`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/**
 * Reads a file's text. `path` only names it in the error.
 *
 * @since 0.1.0
 * @category conversions
 */
export const decode = (text: string, path: string): Either.Either<Policy, PermissionFileInvalid> =>
  Either.mapLeft(
    Either.flatMap(parseJson(text), (json) =>
      Either.flatMap(Either.mapLeft(decodeFile(json), problemsOf), (source) => {
        const problems = PolicyRemarks.misread(source)
        return problems.length > 0
          ? Either.left(problems)
          : Either.right({ ...CompiledPolicy.make(source), files: [{ path, source }] })
      })
    ),
    (problems) => new PermissionFileInvalid({ path, problems })
  )

/**
 * Reads a file. A missing file is a failure too, with `reason` `NotFound`.
 *
 * @since 0.1.0
 * @category operations
 */
export const load = (
  path: string
): Effect.Effect<Policy, PermissionFileInvalid | PermissionFileUnreadable, FileSystem.FileSystem> =>
  FileSystem.FileSystem.pipe(
    Effect.flatMap((fs) => RegularFile.read(fs, path, maxBytes)),
    Effect.mapError(
      (error) =>
        new PermissionFileUnreadable({
          path,
          reason:
            error._tag === "FileUnfit"
              ? `it ${error.reason}`
              : error._tag === "SystemError"
                ? error.reason
                : (error.description ?? error._tag)
        })
    ),
    Effect.flatMap((text) => decode(text, path))
  )

// -----------------------------------------------------------------------------------------------------------------
// operations
// -----------------------------------------------------------------------------------------------------------------

/**
 * Compares the rules in the files with the existing tools. An unknown name is an error in a list that denies, because it
 * denies nothing, and a remark in a list that allows. The same holds for a pattern that can match no call of a tool, such
 * as one with an unknown parameter. If only a tool's name is given, its parameters are not checked. Tools of MCP servers
 * are known later.
 *
 * @since 0.1.0
 * @category operations
 */
export const checkTools = (
  { files }: Policy,
  known: ReadonlyArray<string | Tool.Any>
): Either.Either<ReadonlyArray<PolicySource.Problem & { readonly file: string }>, PermissionFileInvalid> => {
  const remarks: Array<PolicySource.Problem & { readonly file: string }> = []
  const names = known.map((tool) => (typeof tool === "string" ? tool : tool.name))
  const tools = known.filter((tool) => typeof tool !== "string")
  for (const { path: file, source } of files) {
    const unknown = PolicyRemarks.unknownTools(source, names)
    const unmatchable = PolicyRemarks.unmatchable(source, tools)
    const denying = [...unknown.denying, ...unmatchable.denying]
    if (denying.length > 0) return Either.left(new PermissionFileInvalid({ path: file, problems: denying }))
    const allowing = [...unknown.allowing, ...unmatchable.allowing]
    remarks.push(...allowing.map(({ message, path }) => ({ file, message, path })))
  }
  return Either.right(remarks)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Bytes. No handwritten file is longer. */
const maxBytes = 200_000

type Problem = PolicySource.Problem

const parseJson = (text: string): Either.Either<unknown, ReadonlyArray<Problem>> =>
  Either.mapLeft(UntrustedJson.parse(text.replace(/^\ufeff/, "")), ({ detail, message }) => [
    { path: "$", message: detail === undefined ? `it ${message}` : `not JSON: ${detail}` }
  ])

const decodeFile = Lazy.make(() =>
  Schema.decodeUnknownEither(PolicySource.PolicySource, { errors: "all", onExcessProperty: "error" })
)

const problemsOf = (error: ParseResult.ParseError): ReadonlyArray<Problem> =>
  SchemaProblem.of(error).map(({ message, path }) => ({ path: SchemaProblem.place(path), message }))
