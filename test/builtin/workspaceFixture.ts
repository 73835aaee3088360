/** A workspace in a temporary directory, with real files and real processes. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Workspace from "../../src/builtin/Workspace.js"
import type { WorkspaceRoot } from "../../src/builtin/WorkspaceRoot.js"
import type { ToolDisplay } from "../../src/tool/ToolCall.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"

type ToolName = keyof typeof Workspace.toolkit.tools
export type Needs = WorkspaceRoot | FileSystem.FileSystem

export interface Fixture {
  readonly root: string
  /** A directory beside the workspace. */
  readonly outside: string
  readonly fileSystem: FileSystem.FileSystem
  /** Runs a call; the result, or the failure as a sentence that begins with `failed: `. */
  readonly call: (name: ToolName, params: object) => Effect.Effect<string, never, Needs>
  /** As `call`, for the structured result of `run_command`; dies when it fails. */
  readonly run: (params: object) => Effect.Effect<typeof Workspace.Ended.Type, never, Needs>
  /** What the check before anybody is asked says; nothing when the call may go on. */
  readonly check: (name: ToolName, params: object) => Effect.Effect<string | undefined, never, Needs>
  readonly preview: (name: ToolName, params: object) => Effect.Effect<ToolDisplay, string, Needs>
  readonly put: (path: string, content: string | Uint8Array) => Effect.Effect<void>
  readonly get: (path: string) => Effect.Effect<string>
}

export const inWorkspace =
  (
    use: (fixture: Fixture) => Effect.Effect<void, unknown, Needs | Scope.Scope>,
    options:
      Partial<Workspace.Options> | ((place: Pick<Fixture, "root" | "outside">) => Partial<Workspace.Options>) = {},
    fileSystemLayer?: Layer.Layer<FileSystem.FileSystem, never, FileSystem.FileSystem>
  ) =>
  (): Effect.Effect<void, unknown, Scope.Scope> =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const base = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
      const root = `${base}/ws`
      const outside = `${base}/outside`
      yield* fileSystem.makeDirectory(root)
      yield* fileSystem.makeDirectory(outside)
      const platform = fileSystemLayer === undefined ? Layer.empty : fileSystemLayer
      yield* Effect.provide(
        Effect.gen(function* () {
          const kit = yield* Workspace.toolkit
          // The tests name tools by strings, so parameters and results are checked by the schemas only.
          const handle = (name: ToolName, params: object) =>
            Effect.orDie(kit.handle(name, params as never)) as Effect.Effect<
              { readonly isFailure: boolean; readonly encodedResult: unknown },
              never,
              WorkspaceRoot
            >
          yield* use({
            root,
            outside,
            fileSystem,
            call: (name, params) =>
              Effect.map(handle(name, params), ({ isFailure, encodedResult }) => {
                const text = typeof encodedResult === "string" ? encodedResult : JSON.stringify(encodedResult)
                return isFailure ? `failed: ${text}` : text
              }),
            run: (params) =>
              Effect.flatMap(handle("run_command", params), ({ isFailure, encodedResult }) =>
                isFailure ? Effect.dieMessage(String(encodedResult)) : Effect.succeed(encodedResult as never)
              ),
            check: (name, params) => {
              const check = Context.get(Workspace.toolkit.tools[name].annotations, ToolTrait.Validate)
              if (check === undefined) return Effect.succeed(undefined)
              return Effect.match(check(params as never) as Effect.Effect<void, string, WorkspaceRoot>, {
                onFailure: (reason) => reason,
                onSuccess: () => undefined
              })
            },
            preview: (name, params) => {
              const show = Context.get(Workspace.toolkit.tools[name].annotations, ToolTrait.Preview)
              return show === undefined
                ? Effect.fail("no preview")
                : (show(params as never) as Effect.Effect<ToolDisplay, string, WorkspaceRoot>)
            },
            put: (path, content) =>
              Effect.gen(function* () {
                const absolute = `${root}/${path}`
                yield* fileSystem.makeDirectory(absolute.slice(0, absolute.lastIndexOf("/")), { recursive: true })
                const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content
                yield* fileSystem.writeFile(absolute, bytes)
              }).pipe(Effect.orDie),
            get: (path) =>
              Effect.map(Effect.orDie(fileSystem.readFile(`${root}/${path}`)), (bytes) =>
                new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
              )
          })
        }),
        Layer.provideMerge(
          Workspace.layer({ root, ...(typeof options === "function" ? options({ root, outside }) : options) }),
          platform
        )
      )
    }).pipe(Effect.provide(NodeContext.layer))
