/**
 * Runs a command of a model where it can do no harm: it sees what it needs, changes the workspace, and reaches nothing else.
 *
 * What a parser of command lines can only guess, the operating system enforces. Where it cannot, {@link Service.state} says
 * why in one sentence, and whoever runs commands decides what to make of it.
 *
 * Layers: {@link HostSandbox.layer} for what the machine has, {@link layerNone} for none.
 */
import type * as CommandExecutor from "@effect/platform/CommandExecutor"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** `auto`: where the machine has one. `require`: no command runs without. `off`: none. */
export const modes = ["auto", "require", "off"] as const
/** Whether commands are confined: where it can be, always, or never. */
export type Mode = (typeof modes)[number]

/** What holds on this machine. */
export type State =
  | {
      readonly _tag: "Confined"
      /** What confines, such as `bubblewrap`. */
      readonly by: string
      /** Directories in which commands may change what is there. */
      readonly writable: ReadonlyArray<string>
      readonly network: boolean
    }
  /** `reason` is a sentence: why there is none, and how to get it. */
  | { readonly _tag: "Unconfined"; readonly reason: string }

/** One command. */
export interface Job {
  /** The program, by an absolute path, and its arguments. */
  readonly command: readonly [string, ...ReadonlyArray<string>]
  /** Where it runs: the workspace or a directory in it, absolute, without links. */
  readonly directory: string
  /** What a command outside would get; what names something that is not there inside is left out. */
  readonly environment: Readonly<Record<string, string>>
}

/** How a command ended. */
export interface Ended {
  /** Nothing when a signal ended the command. */
  readonly exitCode: number | null
  readonly signal?: string
}

/** A command that runs confined. */
export interface Running {
  /** What it prints, errors among it, is this process's standard output; its other streams are ours. */
  readonly process: CommandExecutor.Process
  /** How the command ended. Fails with a sentence when it never began. */
  readonly ended: Effect.Effect<Ended, string>
  /** Asks all of it to terminate, and kills two seconds later what did not. Nothing: stop the process's group. */
  readonly stop: Effect.Effect<void> | undefined
  /**
   * To be run when it has ended, before anything else runs: puts away what appeared in the workspace and would act later.
   * Sentences that say so. Once; the closing scope does it where nobody did.
   */
  readonly settle: Effect.Effect<ReadonlyArray<string>>
}

/** Starts commands. */
export interface Service {
  readonly mode: Mode
  /** What holds here; found out when it is first wanted, and kept. */
  readonly state: Effect.Effect<State>
  /** What is known of it already, for whoever cannot wait. */
  readonly known: () => State | undefined
  /** Starts a command. Fails with a sentence where commands cannot be confined, and never runs one that is not. */
  readonly start: (job: Job) => Effect.Effect<Running, string, Scope.Scope>
}

/** What confines the commands of the running tool set. */
export class Sandbox extends Context.Tag("assent/sandbox/Sandbox")<Sandbox, Service>() {}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** None, for this reason. */
export const none = (reason: string, mode: Mode = "off"): Service => {
  const state: State = { _tag: "Unconfined", reason }
  return { mode, state: Effect.succeed(state), known: () => state, start: () => Effect.fail(reason) }
}

/** What `off` is, in words. */
export const turnedOff = "The sandbox is turned off."

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/** Commands run as they are. */
export const layerNone: Layer.Layer<Sandbox> = Layer.succeed(Sandbox, none(turnedOff))

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** One line for a model whose confined command failed. */
export const explain = ({ network, writable }: State & { readonly _tag: "Confined" }): string =>
  `[It ran in a sandbox: it could write in ${writable.join(", ")} and /tmp only${network ? "" : ", and had no network"}. ` +
  `If that is why it failed, call again with sandbox "off" and a reason; the person will be asked.]`
