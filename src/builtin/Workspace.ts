/**
 * The tools with which a model works on files and runs commands, in one directory.
 *
 * Results are plain text where a model reads that best; failures are sentences. A call is checked before a person is
 * asked, and again when it runs.
 *
 * @example
 * ```ts
 * import { NodeContext } from "@effect/platform-node"
 * import { Workspace } from "assent"
 * import { Effect } from "effect"
 *
 * const program = Effect.flatMap(Workspace.toolkit, (kit) => kit.handle("read_file", { path: "README.md" })).pipe(
 *   Effect.provide(Workspace.layer({ root: "/home/me/project" })),
 *   Effect.provide(NodeContext.layer)
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as LazyModule from "../core/LazyModule.js"
import type * as HostSandbox from "../sandbox/HostSandbox.js"
import * as Sandbox from "../sandbox/Sandbox.js"
import * as ToolTrait from "../tool/ToolTrait.js"
import * as Jobs from "./Jobs.js"
import type * as ShellProcess from "./ShellProcess.js"
import * as WorkspaceRoot from "./WorkspaceRoot.js"

export type { Options as SandboxOptions } from "../sandbox/HostSandbox.js"
export type { Options as CommandOptions } from "./ShellProcess.js"
export type { Environment } from "./CommandEnvironment.js"

/**
 * The directory, how commands run in it, and how they are confined.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends WorkspaceRoot.Options, ShellProcess.Options {
  /** How commands are confined. Default: not at all; the command line's default is `auto`. */
  readonly sandbox?: Omit<HostSandbox.Options, "root"> | undefined
  /**
   * The program `rg` of version 15, by an absolute path. False: files are searched without ripgrep. Default: the program of
   * the package `@vscode/ripgrep`, if that is installed.
   */
  readonly ripgrep?: string | false | undefined
}

const described = <A, I, R>(schema: Schema.Schema<A, I, R>, description: string): Schema.Schema<A, I, R> =>
  schema.annotations({ description })
const text = (description: string) => described(Schema.String, description)
const optional = <A, I, R>(schema: Schema.Schema<A, I, R>, description: string) =>
  Schema.optional(described(schema, description))

const path = text("Path of the file, relative to the workspace.")
const failing = { failure: Schema.String, failureMode: "return" } as const

const exact = <A, I, R>(schema: Schema.Schema<A, I, R>) => Schema.optionalWith(schema, { exact: true })
const exit = { exitCode: Schema.NullOr(Schema.Number), signal: exact(Schema.String) }

/**
 * How a command ended.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Ended = Schema.Struct({
  ...exit,
  output: Schema.String,
  outputFile: exact(Schema.String),
  notice: exact(Schema.String),
  durationMs: Schema.Number
})

/**
 * A background job, and its output since the last look.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Job = Schema.Struct({
  job_id: Schema.String,
  state: Schema.Literal("running", "ended"),
  output: Schema.String,
  /** Present when it has ended. */
  ended: exact(Schema.Struct(exit)),
  notice: exact(Schema.String)
})

/**
 * Runs a command line in a shell, to its end or in the background.
 *
 * @since 0.1.0
 * @category tools
 */
export const RunCommand = Tool.make("run_command", {
  description:
    "Runs a command line in a POSIX shell and returns its exit code and what it printed, standard error included. " +
    "Nothing can be typed into it. It is stopped when its time is up, and processes that it leaves are stopped when it " +
    "ends. Long output is cut in the middle. With background it goes on beside your work, as a server or a watcher does: " +
    "you get a job_id and its first output at once; it ends with job_stop or with the session. At most 8 run at once.",
  parameters: {
    command: text("The command line, as one would type it into a shell."),
    cwd: optional(Schema.String, "Directory to run it in, relative to the workspace. Default: the workspace."),
    timeout: optional(
      Schema.Number,
      "Seconds after which it is stopped. Default: two minutes, and no limit in the background."
    ),
    sandbox: Schema.optional(
      Schema.Literal("off", "network", "write").annotations({
        description:
          "If there is a sandbox: network gives the command the network in it, also so that others can reach it, as your " +
          "next command has to, which then needs network too; off runs it outside. The person is asked. A command that looks " +
          "like one that only reads can change nothing: write lets it. Give a reason."
      })
    ),
    reason: optional(Schema.String, "Why it needs that; shown to the person."),
    background: optional(Schema.Boolean, "Whether it goes on in the background. Default: false.")
  },
  success: Schema.Union(Ended, Job),
  ...failing
})
  .annotate(ToolTrait.Groups, ["cli"])
  .annotate(ToolTrait.ShellCommand, "command")
  .annotate(ToolTrait.Sandboxed, true)
  .annotate(ToolTrait.Outlives, "background")
  .annotate(ToolTrait.Paths, ["cwd"])
  .pipe(
    ToolTrait.editable(["command"]),
    ToolTrait.validate((params) =>
      Effect.zipRight(
        Effect.flatMap(work(), ({ ShellRun }) => ShellRun.check(params)),
        params.background === true
          ? Effect.flatMap(Jobs.Jobs, ({ room }) => Effect.mapError(room, ({ message }) => message))
          : Effect.void
      )
    ),
    ToolTrait.preview((params) =>
      Effect.flatMap(work(), ({ ChangePreview, ShellRun }) =>
        Effect.map(ShellRun.check(params), (directory) =>
          ChangePreview.ofCommand(params.command, directory, params.background)
        )
      )
    )
  )

const jobId = { job_id: text("The job_id that run_command gave.") }
const job = { parameters: jobId, success: Job, ...failing }

/**
 * Shows what a background job printed since the last look.
 *
 * @since 0.1.0
 * @category tools
 */
export const JobOutput = Tool.make("job_output", {
  description:
    "Yields what a background job of yours printed since you last looked, and whether it still runs. Of much output the " +
    "end is given. You are told by yourself when a job ends: there is no need to look again and again.",
  ...job
})
  .annotate(ToolTrait.Kind, "read")
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["cli"])
  .annotate(ToolTrait.AutoApproved, true)

/**
 * Ends a background job.
 *
 * @since 0.1.0
 * @category tools
 */
export const JobStop = Tool.make("job_stop", {
  description:
    "Stops a background job of yours with all its processes, and yields what it printed since you last looked.",
  ...job
})
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["cli"])
  .annotate(ToolTrait.AutoApproved, true)

/**
 * Reads a file, or lines of it.
 *
 * @since 0.1.0
 * @category tools
 */
export const ReadFile = Tool.make("read_file", {
  description:
    "Reads a text file. Each line comes as its number, a tab, and the text; number and tab are not part of the file. " +
    "Long files are cut, and a last line in brackets says with which offset to go on.",
  parameters: {
    path,
    offset: optional(Schema.Int, "Number of the first line to read, from 1. Default: 1."),
    limit: optional(Schema.Int, "How many lines to read. Default: 2000.")
  },
  success: Schema.String,
  ...failing
})
  .annotate(ToolTrait.Kind, "read")
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["files", "file_edit"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    ToolTrait.validate((params) =>
      Effect.flatMap(WorkspaceRoot.WorkspaceRoot, (workspace) => Effect.asVoid(workspace.locateFile(params.path)))
    )
  )

/**
 * Lists files by pattern.
 *
 * @since 0.1.0
 * @category tools
 */
export const ListFiles = Tool.make("list_files", {
  description:
    "Lists files and directories, one path a line, relative to the workspace; directories end with /, links with @. " +
    "Without pattern and depth it lists one directory; with a pattern it finds matching files below it. " +
    "Leaves out .git, node_modules and what .gitignore excludes; a last line in brackets counts what was left out.",
  parameters: {
    path: optional(Schema.String, "Directory, relative to the workspace. Default: the workspace."),
    pattern: optional(
      Schema.String,
      "Glob such as *.ts or src/**/*.test.ts; without a / it is matched against names, else against paths below path."
    ),
    depth: optional(Schema.Int, "How many levels to go down. Default: 1, or no limit with a pattern.")
  },
  success: Schema.String,
  ...failing
})
  .annotate(ToolTrait.Kind, "search")
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["files"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    ToolTrait.validate((params) =>
      Effect.flatMap(WorkspaceRoot.WorkspaceRoot, (workspace) =>
        Effect.asVoid(workspace.locateDirectory(params.path ?? "."))
      )
    )
  )

/**
 * Searches the text of files.
 *
 * @since 0.1.0
 * @category tools
 */
export const SearchFiles = Tool.make("search_files", {
  description:
    "Searches text files for lines that match a regular expression and returns them as path:line: text. " +
    "The syntax is that of ripgrep: no lookaround, no backreferences, no newlines. " +
    "Leaves out binary files, .git, node_modules and what .gitignore excludes; a last line counts what was left out.",
  parameters: {
    pattern: text("The regular expression; it is matched against each line."),
    path: optional(Schema.String, "File or directory to search, relative to the workspace. Default: the workspace."),
    glob: optional(Schema.String, "Only files that match, such as *.ts or src/**/*.md."),
    ignore_case: optional(Schema.Boolean, "Whether upper and lower case are the same. Default: false.")
  },
  success: Schema.String,
  ...failing
})
  .annotate(ToolTrait.Kind, "search")
  .annotate(Tool.Readonly, true)
  .annotate(Tool.Destructive, false)
  .annotate(Tool.Idempotent, true)
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["files", "grep", "grep_content"])
  .annotate(ToolTrait.AutoApproved, true)
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    ToolTrait.validate((params) => Effect.flatMap(work(), ({ WorkspaceSearch }) => WorkspaceSearch.checkSearch(params)))
  )

/**
 * Writes a whole file.
 *
 * @since 0.1.0
 * @category tools
 */
export const WriteFile = Tool.make("write_file", {
  description:
    "Writes a text file, creating it and its directories or replacing its whole content. " +
    "edit_file changes a part of a file.",
  parameters: { path, content: text("The whole new content of the file.") },
  success: Schema.String,
  ...failing
})
  .annotate(ToolTrait.Kind, "edit")
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["file_edit"])
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    ToolTrait.editable(["content"]),
    ToolTrait.validate((params) =>
      Effect.flatMap(work(), ({ WorkspaceFile }) => Effect.asVoid(WorkspaceFile.planWrite(params)))
    ),
    ToolTrait.preview((params) =>
      Effect.flatMap(work(), ({ ChangePreview, WorkspaceFile }) =>
        Effect.map(WorkspaceFile.showWrite(params), (change) => ChangePreview.ofChange(change, "replace"))
      )
    )
  )

/**
 * Replaces a piece of text in a file.
 *
 * @since 0.1.0
 * @category tools
 */
export const EditFile = Tool.make("edit_file", {
  description:
    "Replaces a piece of a text file by another. old_text must occur in the file exactly as given, spaces and line " +
    "breaks included, and only once unless replace_all is set.",
  parameters: {
    path,
    old_text: text("The text to replace, without line numbers; include enough around it to make it unique."),
    new_text: text("The text to put in its place."),
    replace_all: optional(Schema.Boolean, "Replace every occurrence. Default: false.")
  },
  success: Schema.String,
  ...failing
})
  .annotate(ToolTrait.Kind, "edit")
  .annotate(Tool.OpenWorld, false)
  .annotate(ToolTrait.Groups, ["file_edit"])
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    ToolTrait.editable(["new_text"]),
    ToolTrait.validate((params) =>
      Effect.flatMap(work(), ({ WorkspaceFile }) => Effect.asVoid(WorkspaceFile.planEdit(params)))
    ),
    ToolTrait.preview((params) =>
      Effect.flatMap(work(), ({ ChangePreview, WorkspaceFile }) =>
        Effect.map(WorkspaceFile.showEdit(params), (change) => ChangePreview.ofChange(change, "edit"))
      )
    )
  )

/**
 * All eight tools. Besides the handlers they need the {@link WorkspaceRoot.WorkspaceRoot} and the `Jobs` that {@link layer}
 * also provides.
 *
 * @since 0.1.0
 * @category tools
 */
export const toolkit = Toolkit.make(
  RunCommand,
  JobOutput,
  JobStop,
  ReadFile,
  ListFiles,
  SearchFiles,
  WriteFile,
  EditFile
)

/**
 * The handlers, and the workspace that the tools' checks and previews read.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options
): Layer.Layer<
  Tool.HandlersFor<typeof toolkit.tools> | WorkspaceRoot.WorkspaceRoot | Sandbox.Sandbox | Jobs.Jobs,
  never,
  FileSystem.FileSystem | Path.Path | CommandExecutor.CommandExecutor
> =>
  Layer.unwrapEffect(
    Effect.map(
      work(),
      ({ Askpass, CommandExecutor, HostSandbox, Ripgrep, ShellProcess, ShellRun, WorkspaceFile, WorkspaceSearch }) =>
        Layer.provideMerge(
          toolkit.toLayer(
            Effect.gen(function* () {
              const executor = yield* CommandExecutor
              const sandbox = yield* Sandbox.Sandbox
              const jobs = yield* Jobs.Jobs
              const askpass = Option.getOrUndefined(yield* Effect.serviceOption(Askpass.Askpass))
              const start = ShellProcess.starter(executor, options, sandbox, askpass)
              const run = ShellRun.run(start, options)
              return toolkit.of({
                run_command: (params) => (params.background === true ? jobs.begin(start, params) : run(params)),
                job_output: ({ job_id }) => Effect.mapError(jobs.look(job_id), ({ message }) => message),
                job_stop: ({ job_id }) => Effect.mapError(jobs.end(job_id), ({ message }) => message),
                read_file: WorkspaceFile.read,
                list_files: WorkspaceSearch.list,
                search_files: WorkspaceSearch.search,
                write_file: WorkspaceFile.write,
                edit_file: WorkspaceFile.edit
              })
            })
          ),
          Layer.provideMerge(
            Layer.effect(
              WorkspaceRoot.WorkspaceRoot,
              Effect.gen(function* () {
                const workspace = yield* WorkspaceRoot.make(options)
                const executor = yield* CommandExecutor
                const sandbox = yield* Sandbox.Sandbox
                const { direct } = workspace
                const ripgrep = yield* Ripgrep.make({ program: options.ripgrep, direct, executor, sandbox })
                return { ...workspace, ripgrep }
              })
            ),
            Layer.merge(
              Jobs.layer,
              options.sandbox === undefined
                ? Sandbox.layerNone
                : HostSandbox.layer({
                    hidden: options.protectedPaths,
                    ...options.sandbox,
                    root: options.root,
                    writable: [...(options.sandbox.writable ?? []), ...(options.added ?? [])]
                  })
            )
          )
        )
    )
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What the tools do: many programs have none of them. It is at hand from the first {@link layer} on. */
const work = LazyModule.getter(() => import("./WorkspaceWork.js"))
