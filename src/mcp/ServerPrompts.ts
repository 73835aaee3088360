/**
 * Prompts of tool servers as commands of a person: `/mcp:SERVER:PROMPT [ARGUMENTS]`.
 *
 * The person chooses a prompt, and its text is the server's: it reaches the model as foreign text, with a sentence of the
 * person before it.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as ForeignText from "../core/ForeignText.js"
import type { McpServer, Prompt } from "./McpServer.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/** A prompt of a server, as a person calls it. */
export interface Command {
  /** `mcp:SERVER:PROMPT` */
  readonly name: string
  readonly description: string
  readonly parameters: Prompt["parameters"]
}

/** The prompts of the servers of one session. */
export interface ServerPrompts {
  /** Those that there are now, and again when they change. */
  readonly commands: Stream.Stream<ReadonlyArray<Command>>
  /** Gets the prompt of a line from its server; yields the words for the model. Fails with a sentence. */
  readonly words: (line: string) => Effect.Effect<string, string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (servers: ReadonlyArray<McpServer>): ServerPrompts => {
  const list = Effect.map(
    Effect.forEach(
      servers,
      ({ name, prompts, state }) =>
        state().state === "ready"
          ? Effect.orElseSucceed(
              Effect.map(prompts, (found) => commandsOf(name, found)),
              (): ReadonlyArray<Command> => []
            )
          : Effect.succeed([]),
      { concurrency: "unbounded" }
    ),
    (lists) => lists.flat()
  )
  /** Servers write, one reader lists anew; one change stands for all before it. */
  const changes = Stream.asyncPush<void>(
    (emit) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const leave = servers.map(({ watch }) => watch(() => void emit.single(undefined)))
          emit.single(undefined)
          return leave
        }),
        (leave) => Effect.sync(() => leave.forEach((end) => end()))
      ),
    { bufferSize: 1, strategy: "sliding" }
  )
  return {
    commands: Stream.changesWith(
      Stream.mapEffect(changes, () => list),
      (before, after) => JSON.stringify(before) === JSON.stringify(after)
    ),
    words: (line) =>
      Effect.gen(function* () {
        const [, called = "", wanted = "", rest = ""] = form.exec(line.trim()) ?? []
        const server = servers.find(({ name }) => name === called)
        if (server === undefined) return yield* Effect.fail(`There is no server ${shown(called)}. Servers: assent mcp`)
        yield* Effect.timeoutOption(server.settled, patience)
        const prompts = yield* server.prompts
        const prompt = prompts.find(({ name }) => name === wanted)
        if (prompt === undefined) {
          const { reason = "", state } = server.state()
          if (state !== "ready") return yield* Effect.fail(`The server ${called} is not ready. ${reason}`.trim())
          const names = UntrustedJson.few(
            prompts.map(({ name }) => `/mcp:${called}:${shown(name)}`),
            10
          ).join(", ")
          return yield* Effect.fail(
            names === ""
              ? `The server ${called} offers no prompts.`
              : `The server ${called} has no prompt ${shown(wanted)}. It has ${names}.`
          )
        }
        const args = argumentsOf(prompt, rest)
        const missing = prompt.parameters.filter(({ name, required }) => required && !Object.hasOwn(args, name))
        if (missing.length > 0) return yield* Effect.fail(usage(called, prompt))
        const text = yield* server.prompt(prompt.name, args)
        return `Do what the prompt ${shown(prompt.name)} of the server ${called} says. I chose it.\n${text}`
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

/** Whether a line calls a prompt of a server. */
export const isLine = (line: string): boolean => form.test(line.trim())

/** What a person may write behind the name of a prompt. */
export const hint = ({ parameters }: Pick<Command, "parameters">): string =>
  parameters.map(({ name, required }) => (required ? name.toUpperCase() : `[${name.toUpperCase()}]`)).join(" ")

/**
 * The arguments of a line: `name=value` for one of that name, and all other words in the order of the parameters. Quotes
 * hold words together. The last parameter takes the rest of the words.
 */
export const argumentsOf = ({ parameters }: Pick<Prompt, "parameters">, rest: string): Record<string, string> => {
  const args = new Map<string, string>()
  const others: Array<string> = []
  for (const [, name, double, single, plain = ""] of rest.matchAll(word)) {
    const value = double ?? single ?? plain
    const isNamed = name !== undefined && parameters.some((parameter) => parameter.name === name)
    if (isNamed) args.set(name, value)
    else others.push(name === undefined ? value : `${name}=${value}`)
  }
  const open = parameters.filter(({ name }) => !args.has(name))
  open.forEach(({ name }, at) => {
    const value = at === open.length - 1 ? others.slice(at).join(" ") : others[at]
    if (value !== undefined && value !== "") args.set(name, value)
  })
  return Object.fromEntries(args)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const form = /^\/mcp:([A-Za-z0-9_-]+):(\S+)(?:\s+([^]*))?$/

const word = /(?:([A-Za-z0-9_.-]+)=)?(?:"([^"]*)"|'([^']*)'|(\S+))/g

/** A server that is starting is waited for. */
const patience = "30 seconds"

/** Of one server. */
const maxCommands = 200

/** A name with blanks or invisible characters cannot be typed, so it is left out. */
const commandsOf = (server: string, prompts: ReadonlyArray<Prompt>): ReadonlyArray<Command> =>
  prompts
    .filter(({ name }) => /^[^\s\p{C}]{1,100}$/u.test(name))
    .slice(0, maxCommands)
    .map(({ description, name, parameters }) => ({ name: `mcp:${server}:${name}`, description, parameters }))

const usage = (server: string, prompt: Prompt): string =>
  `The prompt needs arguments: /mcp:${server}:${shown(prompt.name)} ${shown(hint(prompt))}`

const shown = (name: string): string => UntrustedJson.echo(ForeignText.clean(name), 200)
