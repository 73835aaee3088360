/**
 * The parameter of a tool that holds a shell command, with what takes commands apart.
 *
 * Those readers are a third of what an agent needs, and most agents have no commands: they are loaded with the first
 * field. There is no field without them, so no call with a command can be decided before they are there.
 */
import * as Effect from "effect/Effect"
import * as LazyModule from "../core/LazyModule.js"

export type CommandReader = typeof import("./CommandReader.js")

/**
 * The parameter that holds a shell command.
 *
 * @since 0.1.0
 * @category models
 */
export class CommandField {
  readonly name: string
  // A private member: nothing else has this type, an object with a name least of all.
  readonly #reader: CommandReader

  private constructor(name: string, reader: CommandReader) {
    this.name = name
    this.#reader = reader
  }

  /** @internal */
  get reader(): CommandReader {
    return this.#reader
  }

  /** @internal */
  static readonly make = (name: string): Effect.Effect<CommandField> =>
    Effect.map(load, (reader) => new CommandField(name, reader))
}

/** Texts among the arguments of a tool that may be commands, and what takes them apart. */
export interface Quotes {
  readonly reader: CommandReader
  readonly textsOf: (params: unknown) => ReadonlyArray<string>
}

const load = LazyModule.make(() => import("./CommandReader.js"))
