/**
 * Runs a model's command where it can do no harm: it sees what it needs, changes the workspace, and reaches nothing
 * else.
 *
 * A parser of command lines can only guess; the operating system enforces. If it cannot, {@link Service.state} says why
 * in one sentence, and the tool decides what to do.
 *
 * Layers: {@link HostSandbox.layer} for the machine's own sandbox, {@link layerNone} for none.
 *
 * @since 0.1.0
 */
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * `auto`: a sandbox where the machine has one. `require`: no command runs without a sandbox. `off`: none.
 *
 * @since 0.1.0
 * @category constants
 */
export const modes = ["auto", "require", "off"] as const
/**
 * When commands are confined: if possible, always, or never.
 *
 * @since 0.1.0
 * @category models
 */
export type Mode = (typeof modes)[number]

/**
 * Whether and how commands are confined on this machine, or why they are not.
 *
 * @since 0.1.0
 * @category models
 */
export type State =
  | {
      readonly _tag: "Confined"
      /** The confining program, such as `bubblewrap`. */
      readonly by: string
      /** Directories that commands may change; absolute paths. */
      readonly writable: ReadonlyArray<string>
      /** The root of the repository around the workspace. Commands can read it and cannot change it. */
      readonly repository?: string | undefined
      readonly network: boolean
    }
  /** `reason` is a sentence: why there is no sandbox, and how to get one. */
  | { readonly _tag: "Unconfined"; readonly reason: string }

/**
 * One command to confine.
 *
 * @since 0.1.0
 * @category models
 */
export interface Job {
  /** The program, by an absolute path, and its arguments. */
  readonly command: readonly [string, ...ReadonlyArray<string>]
  /** The working directory: the workspace or a directory in it; absolute, without links. */
  readonly directory: string
  /** The environment as outside; variables that name a file which is not there inside are left out. */
  readonly environment: Readonly<Record<string, string>>
  /** It reaches the network and the services of this machine, and is reached. Default: as the sandbox is set. */
  readonly network?: boolean | undefined
  /** A directory outside that the command may change too, and the variables that name it by its place inside. */
  readonly shared?: Shared | undefined
  /** Files and directories that the command does not see; absolute, without links. */
  readonly hidden?: ReadonlyArray<string> | undefined
  /**
   * Nothing can be changed but a private temp directory, and there is no network. These further files are visible. Nothing has
   * to be guarded or set aside then.
   */
  readonly reads?: ReadonlyArray<string> | undefined
  /** The command is git: it may write git directories. Every other command finds those read-only. Default: no. */
  readonly git?: boolean | undefined
}

/**
 * A directory that one command shares with the program that started it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Shared {
  /** An absolute path without links. No other command can write to it. */
  readonly directory: string
  /** Added to the environment, for the place of the directory inside. The environment counts before it. */
  readonly variables: (place: string) => Readonly<Record<string, string>>
}

/**
 * How a command ended.
 *
 * @since 0.1.0
 * @category models
 */
export interface Ended {
  /** Nothing when a signal ended the command. */
  readonly exitCode: number | null
  readonly signal?: string
}

/**
 * A command that runs confined.
 *
 * @since 0.1.0
 * @category models
 */
export interface Running {
  /** The command's output, errors included, is this process's standard output; its other streams are ours. */
  readonly process: CommandExecutor.Process
  /** How the command ended. Fails with a sentence when it never began. */
  readonly ended: Effect.Effect<Ended, string>
  /**
   * Asks all processes of the command to terminate, and kills the rest after two seconds. `undefined`: stop the process
   * group.
   */
  readonly stop: Effect.Effect<void> | undefined
  /**
   * Run it when the command has ended, before anything else runs: it sets aside files that appeared in the workspace
   * and would act later, and yields sentences that say so. It acts once; the closing scope runs it otherwise.
   */
  readonly settle: Effect.Effect<ReadonlyArray<string>>
}

/**
 * Starts commands.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly mode: Mode
  /** The sandbox's state; computed at the first use, then cached. */
  readonly state: Effect.Effect<State>
  /** The state if it is already known, for callers that cannot wait. */
  readonly known: () => State | undefined
  /** Starts a command. Fails with a sentence where commands cannot be confined, and never runs one that is not. */
  readonly start: (job: Job) => Effect.Effect<Running, string, Scope.Scope>
}

/**
 * The sandbox for the commands of the running tool set.
 *
 * @since 0.1.0
 * @category services
 */
export class Sandbox extends Context.Tag("assent/sandbox/Sandbox")<Sandbox, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * No sandbox, for this reason.
 *
 * @since 0.1.0
 * @category constructors
 */
export const none = (reason: string, mode: Mode = "off"): Service => {
  const state: State = { _tag: "Unconfined", reason }
  return { mode, state: Effect.succeed(state), known: () => state, start: () => Effect.fail(reason) }
}

/**
 * The reason when the sandbox is off.
 *
 * @since 0.1.0
 * @category constants
 */
export const turnedOff = "The sandbox is turned off."

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * No sandbox: commands run as they are.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNone: Layer.Layer<Sandbox> = Layer.succeed(Sandbox, none(turnedOff))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * One line for the model about a failed confined command.
 *
 * @since 0.1.0
 * @category conversions
 */
export const explain = ({ network, writable }: State & { readonly _tag: "Confined" }, printed = ""): string =>
  `[It ran in a sandbox: it could write in ${writable.join(", ")} and /tmp only${network ? "" : ", and had no network"}. ` +
  `${namesGit.test(printed) ? onlyGit : ""}${wayOut(network)}]`

/**
 * One line for the model about a command that failed where nothing can be changed. Nothing if what it printed shows no sign
 * of that.
 *
 * @internal
 */
export const explainReading = (printed: string): string | undefined =>
  heldBack.test(printed)
    ? "[It ran as a command that only reads: it could write in /tmp only, and had no network. If it has to change something, " +
      'call again with sandbox "write" and a reason; the person may be asked.]'
    : undefined

/**
 * What a model can do then; a person who ran the command cannot.
 *
 * @internal
 */
export const wayOut = (network: boolean): string =>
  network
    ? 'If that is why it failed, call again with sandbox "off" and a reason; the person will be asked.'
    : 'If that is why it failed, call again with a reason and sandbox "network", which gives it the network and nothing ' +
      'else, or "off"; the person will be asked.'

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const namesGit = /[./]git\b/
const onlyGit = "Only git may write in .git: run git in a call of its own. "

/** What programs print if they cannot write, reach the network or get more memory. */
const heldBack =
  /read-only file system|permission denied|operation not permitted|\b(?:EROFS|EACCES|EPERM|ENETUNREACH|EAI_AGAIN)\b|could not resolve|unreachable|name resolution|cannot (?:create|write|allocate)|out of memory|no space left/i
