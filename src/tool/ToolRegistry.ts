/**
 * The tools of a runtime, with their handlers, decoders and traits looked up once.
 *
 * Takes any `@effect/ai` toolkit unchanged. Decoders and encoders are compiled when a tool is first used and kept.
 *
 * @since 0.1.0
 */
import * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as JsonFault from "../core/JsonFault.js"
import * as Lazy from "../core/Lazy.js"
import * as Nearest from "../core/Nearest.js"
import { CommandField, type Quotes } from "../shell/CommandField.js"
import * as ToolTrait from "./ToolTrait.js"
import type { ToolDisplay, ToolKind } from "./ToolCall.js"
import type { ToolDefinition } from "./ToolDefinition.js"

export type { CommandField } from "../shell/CommandField.js"
export type { ToolDefinition, Written } from "./ToolDefinition.js"

/**
 * Runs a tool with decoded arguments, in the context its handler was built with.
 *
 * @since 0.1.0
 * @category models
 */
export type Handler = (params: unknown) => Effect.Effect<unknown, unknown>

/**
 * `confined`: in a sandbox. `reading`: in a sandbox in which nothing can be changed. `network`: in a sandbox, with the network,
 * which commands do not have by default. `left`: outside, though there is a sandbox. `open`: there is none.
 *
 * @since 0.1.0
 * @category models
 */
export type RunsHow = "confined" | "reading" | "network" | "left" | "open"

/**
 * One tool as the runtime uses it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Entry {
  readonly name: string
  readonly tool: Tool.Any
  /** Absent for a tool that the provider runs itself. */
  readonly handler: Handler | undefined
  /** The context in which the handler, the validation and the preview were built; its schemas use it too. */
  readonly context: Context.Context<never>
  /** Decodes the arguments for the handler. A left is a sentence for the model about the problem. */
  readonly decode: (params: unknown) => Either.Either<unknown, string>
  readonly encode: (value: unknown) => unknown
  readonly encodeFailure: (failure: unknown) => unknown
  readonly kind: ToolKind
  readonly readonly: boolean
  readonly idempotent: boolean
  readonly essential: boolean
  readonly autoApproved: boolean
  readonly groups: ReadonlyArray<string>
  readonly editable: { readonly parameters: ReadonlyArray<string>; readonly format: ToolTrait.EditFormat } | undefined
  /** The parameter that holds a shell command. */
  readonly shellCommand: CommandField | undefined
  /** Its command runs through the sandbox, where there is one. */
  readonly sandboxed: boolean
  /** How a call with these arguments would run. For sandboxed tools, once it is known whether there is a sandbox. */
  readonly runs?: ((params: unknown) => RunsHow | undefined) | undefined
  /** The parameter that lets what the call starts live on beside the turns, as long as the session. */
  readonly outlives: string | undefined
  readonly paths: ReadonlyArray<string>
  readonly webAddress: string | undefined
  readonly timeout: Duration.DurationInput | undefined
  readonly injectable: number | undefined
  readonly resumable: boolean
  /** True if another process can continue the call at its open question; see `Origin.continuing`. */
  readonly continues?: boolean | undefined
  readonly validate: ((params: unknown) => Effect.Effect<void, string>) | undefined
  readonly preview: ((params: unknown) => Effect.Effect<ToolDisplay, string>) | undefined
  /** Present for a tool of a server: a permission holds for this definition and no other. */
  readonly definition?: ToolDefinition | undefined
}

/**
 * A set of tools, by name.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  readonly get: (name: string) => Entry | undefined
  /** In order of definition. */
  readonly entries: ReadonlyArray<Entry>
  /** The tools that a model gets; the same array until the tools of a server change. */
  readonly tools: ReadonlyArray<Tool.Any>
  /** Why a tool of a server is absent: a sentence for the model. */
  readonly gone?: ((name: string) => string | undefined) | undefined
  /** Waits a limited time for the tools of servers that start. Undefined: no server starts. */
  readonly arrival?: (() => Effect.Effect<void> | undefined) | undefined
}

/**
 * The state of a tool server, for events.
 *
 * @since 0.1.0
 * @category models
 */
export interface ServerState {
  readonly server: string
  readonly state: "starting" | "ready" | "reconnecting" | "failed" | "closed"
  /** Names of its tools; present when it is ready. */
  readonly tools?: ReadonlyArray<string> | undefined
  readonly reason?: string | undefined
}

/**
 * A server whose tools may change while sessions run; see `McpServer`. Sessions read its tools before each model call.
 *
 * @since 0.1.0
 * @category models
 */
export interface Server {
  readonly name: string
  /** The name under which profiles ask for all of its tools, such as `mcp:github`. */
  readonly group: string
  /** Its tools now: the same array until they change. */
  readonly entries: () => ReadonlyArray<Entry>
  /** Why a tool is absent, if its name is one of this server. */
  readonly gone: (name: string) => string | undefined
  readonly state: () => ServerState
  /** Calls the listener after each change of the state, until the returned function is called. */
  readonly watch: (listener: (state: ServerState) => void) => () => void
  /** Waits a limited time for its tools, if it starts or is connected again. Undefined: there is nothing to wait for. */
  readonly arrival?: (() => Effect.Effect<void> | undefined) | undefined
}

/**
 * The tools that all sessions of a runtime share.
 *
 * @since 0.1.0
 * @category services
 */
export class ToolRegistry extends Context.Tag("assent/tool/ToolRegistry")<ToolRegistry, Service>() {}

/**
 * A tool that its provider runs was registered without {@link ToolTrait.ungated}, which allows it to run unasked.
 *
 * @since 0.1.0
 * @category errors
 */
export class ProviderToolNotAllowed extends Schema.TaggedError<ProviderToolNotAllowed>(
  "assent/tool/ProviderToolNotAllowed"
)("ProviderToolNotAllowed", { tool: Schema.String }) {
  override get message(): string {
    return (
      `The provider runs the tool ${this.tool} itself, beyond the reach of permissions and questions. ` +
      `To allow that, register it as ToolTrait.ungated(${this.tool}).`
    )
  }
}

/**
 * Code names tools that are not there.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolsUnknown extends Schema.TaggedError<ToolsUnknown>("assent/tool/ToolsUnknown")("ToolsUnknown", {
  /** The owner of the names, such as `agent main`. */
  by: Schema.String,
  unknown: Schema.Array(Schema.String),
  /** The tools and groups that there are. */
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const named = this.unknown.map((name) => {
      const near = Nearest.of(name, this.known)
      return near === undefined ? JSON.stringify(name) : `${JSON.stringify(name)} (did you mean ${near}?)`
    })
    const there = this.known.length === 0 ? "There are none." : `There are: ${this.known.join(", ")}.`
    return `There is no tool ${named.join(", ")}, which ${this.by} names. ${there}`
  }
}

/**
 * The failures of registering these tools: none, unless a provider defines one of them.
 *
 * @since 0.1.0
 * @category models
 */
export type Refusal<Tools extends Record<string, Tool.Any>> =
  Extract<Tools[keyof Tools], Tool.Tool.ProviderDefinedProto> extends never ? never : ProviderToolNotAllowed

/**
 * Looks up the handlers of a toolkit. Merge several toolkits with `Toolkit.merge` first. Requires what the handlers and
 * the tools require, except what the runtime gives every call (`Provided`).
 *
 * A provider-defined tool with a handler is a tool like others. A tool that the provider runs itself has to be allowed
 * by `ToolTrait.ungated`: the gate never sees its calls. Both are offered to models of their provider only.
 *
 * Schemas may use what their tool requires. They may not wait: a call is decoded and encoded at once, and where a schema
 * would wait, the call crashes, and the log says why.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools>
): Effect.Effect<Service, Refusal<Tools>, Tool.HandlersFor<Tools> | Tool.Requirements<Tools[keyof Tools]>> =>
  Effect.flatMap(Effect.context<Tool.HandlersFor<Tools> | Tool.Requirements<Tools[keyof Tools]>>(), (context) => {
    const tools = Object.values(toolkit.tools)
    const refused = tools.find((tool) => Tool.isProviderDefined(tool) && !tool.requiresHandler && !isUngated(tool))
    // A toolkit's type says whether it has such a tool; its value does not, hence the cast.
    if (refused !== undefined) return Effect.fail(new ProviderToolNotAllowed({ tool: refused.name }) as Refusal<Tools>)
    const handlers = context as Context.Context<never>
    if (tools.every((tool) => commandOf(tool) === undefined && textsOf(tool) === undefined)) {
      return Effect.succeed(fromEntries(tools.map((tool) => makeEntry(tool, handlers, undefined))))
    }
    const entries = Effect.forEach(tools, (tool) => {
      const command = commandOf(tool)
      if (command !== undefined)
        return Effect.map(CommandField.make(command), (field) => makeEntry(tool, handlers, field))
      const texts = textsOf(tool)
      const entry = makeEntry(tool, handlers, undefined)
      return texts === undefined
        ? Effect.succeed(entry)
        : Effect.map(CommandField.make(""), ({ reader }) => {
            quoting.set(tool, { reader, textsOf: texts })
            return entry
          })
    })
    return Effect.map(entries, fromEntries)
  })

/**
 * No tools.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: Service = { get: () => undefined, entries: [], tools: [] }

/**
 * The tools of several sets; where names clash, the earlier set wins.
 *
 * @since 0.1.0
 * @category combinators
 */
export const merge = (...sets: ReadonlyArray<Service>): Service => {
  const byName = new Map<string, Entry>()
  for (const set of sets) for (const entry of set.entries) if (!byName.has(entry.name)) byName.set(entry.name, entry)
  return fromEntries([...byName.values()])
}

/**
 * A registry of these tools; a later one of the same name counts.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromEntries = (entries: ReadonlyArray<Entry>): Service => {
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  return {
    get: (name) => byName.get(name),
    entries,
    tools: entries.flatMap(({ tool }) => (isOffered(tool) ? [tool] : []))
  }
}

/**
 * A registry of these tools and of the present tools of servers. A fixed tool goes before one of a server.
 *
 * @since 0.1.0
 * @category combinators
 */
export const withServers = (fixed: Service, servers: ReadonlyArray<Server>): Service =>
  servers.length === 0 ? fixed : new Changing(fixed, servers, () => true)

/**
 * The same tools, with servers of these names that have no tools yet: names of their tools count as known.
 *
 * @internal
 */
export const expecting = (set: Service, servers: ReadonlyArray<string>): Service =>
  withServers(set, servers.map(absent))

/**
 * The tools named by `names` (tools or groups; null is all), and the essential ones. Names that are neither a tool nor a
 * group are reported.
 *
 * @since 0.1.0
 * @category combinators
 */
export const subset = (
  set: Service,
  names: ReadonlyArray<string> | null
): { readonly tools: Service; readonly unknown: ReadonlyArray<string> } => {
  if (names === null) return { tools: set, unknown: [] }
  const wanted = new Set(names)
  const isMeant = (entry: Entry) =>
    entry.essential || wanted.has(entry.name) || entry.groups.some((group) => wanted.has(group))
  const known = namesIn(set)
  const tools = set instanceof Changing ? set.narrowed(isMeant) : fromEntries(set.entries.filter(isMeant))
  return { tools, unknown: names.filter((name) => !known.has(name) && !isOfServer(set, name)) }
}

/**
 * The names of a set's tools and groups. The groups of servers are among them, also before the servers have tools.
 *
 * @internal
 */
export const namesIn = (set: Service): ReadonlySet<string> =>
  new Set([
    ...(set instanceof Changing ? set.servers.map(({ group }) => group) : []),
    ...set.entries.flatMap((entry) => [entry.name, ...entry.groups])
  ])

/**
 * The name is one of a server of this set, which may list such a tool later.
 *
 * @internal
 */
export const isOfServer = (set: Service, name: string): boolean =>
  set instanceof Changing && set.servers.some((server) => name === server.group || server.gone(name) !== undefined)

/**
 * The tools with exactly these names, if they are in the set; groups and essential tools are not added.
 *
 * @since 0.1.0
 * @category combinators
 */
export const named = (set: Service, names: ReadonlyArray<string>): Service => {
  const wanted = new Set(names)
  if (set instanceof Changing) return set.narrowed(({ name }) => wanted.has(name))
  const entries = set.entries.filter((entry) => wanted.has(entry.name))
  return entries.length === set.entries.length ? set : fromEntries(entries)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const noEntries: ReadonlyArray<Entry> = []

const absent = (name: string): Server => ({
  name,
  group: `mcp:${name}`,
  entries: () => noEntries,
  gone: (tool) => (tool.startsWith(`mcp__${name}__`) ? `The server ${name} is not started.` : undefined),
  state: () => ({ server: name, state: "closed" }),
  watch: () => () => undefined
})

/** Its arrays are made anew when a server's tools are others than at the last look. A subset sees the same changes. */
class Changing implements Service {
  private seen: ReadonlyArray<ReadonlyArray<Entry>> | undefined
  private present: Service = empty

  constructor(
    private readonly fixed: Service,
    readonly servers: ReadonlyArray<Server>,
    private readonly isMeant: (entry: Entry) => boolean
  ) {}

  get entries(): ReadonlyArray<Entry> {
    return this.now.entries
  }

  get tools(): ReadonlyArray<Tool.Any> {
    return this.now.tools
  }

  readonly get = (name: string): Entry | undefined => this.now.get(name)

  readonly gone = (name: string): string | undefined => {
    for (const server of this.servers) {
      const reason = server.gone(name)
      if (reason !== undefined) return reason
    }
    return undefined
  }

  readonly arrival = (): Effect.Effect<void> | undefined => {
    const awaited = this.servers.flatMap((server) => server.arrival?.() ?? [])
    return awaited.length === 0 ? undefined : Effect.all(awaited, { concurrency: "unbounded", discard: true })
  }

  narrowed(isMeant: (entry: Entry) => boolean): Changing {
    const both = (entry: Entry) => this.isMeant(entry) && isMeant(entry)
    return new Changing(fromEntries(this.fixed.entries.filter(isMeant)), this.servers, both)
  }

  private get now(): Service {
    const { seen } = this
    if (seen !== undefined && this.servers.every((server, i) => server.entries() === seen[i])) return this.present
    const listed = this.servers.map((server) => server.entries())
    this.seen = listed
    return (this.present = merge(this.fixed, fromEntries(listed.flat().filter(this.isMeant))))
  }
}

// Provider-defined tools have no annotations, though their type says so.
const annotationsOf = (tool: Tool.Any): Context.Context<never> =>
  (tool.annotations as Context.Context<never> | undefined) ?? Context.empty()

/**
 * Whether models are offered the tool: see `ToolTrait.Unoffered`.
 *
 * @internal
 */
export const isOffered = (tool: Tool.Any): boolean => !Context.get(annotationsOf(tool), ToolTrait.Unoffered)

/**
 * The texts of a tool's calls that may be commands; see `ToolTrait.Quotes`.
 *
 * @internal
 */
export const quotesOf = (tool: Tool.Any): Quotes | undefined => quoting.get(tool)

const isUngated = (tool: Tool.Any): boolean => Context.get(annotationsOf(tool), ToolTrait.Ungated)

const commandOf = (tool: Tool.Any): string | undefined => Context.get(annotationsOf(tool), ToolTrait.ShellCommand)

const textsOf = (tool: Tool.Any): Quotes["textsOf"] | undefined => Context.get(annotationsOf(tool), ToolTrait.Quotes)

/** Filled before an entry of the tool is there: no call of it is decided without. */
const quoting = new WeakMap<Tool.Any, Quotes>()

const makeEntry = (tool: Tool.Any, context: Context.Context<never>, shellCommand: CommandField | undefined): Entry => {
  const annotations = annotationsOf(tool)
  const trait = <Id, A>(tag: Context.Reference<Id, A>): A => Context.get(annotations, tag)
  // `@effect/ai` keeps handlers in the context under the tool's id, beside the context they were built with.
  const registered = context.unsafeMap.get(tool.id) as Tool.Handler<string> | undefined
  const world = atRest(registered === undefined ? context : Context.merge(context, registered.context))
  return {
    name: tool.name,
    tool,
    handler: registered?.handler,
    context: world,
    decode: Lazy.make(() => renaming(trait(ToolTrait.Renamed), decoder(tool.parametersSchema, world))),
    encode: Lazy.make(() => encoder(tool.successSchema, world)),
    encodeFailure: Lazy.make(() => encoder(tool.failureSchema, world)),
    kind: trait(ToolTrait.Kind) ?? kindOf(annotations),
    readonly: trait(Tool.Readonly),
    idempotent: trait(Tool.Idempotent),
    essential: trait(ToolTrait.Essential),
    autoApproved: trait(ToolTrait.AutoApproved),
    groups: trait(ToolTrait.Groups),
    editable: trait(ToolTrait.Editable),
    shellCommand,
    sandboxed: trait(ToolTrait.Sandboxed),
    outlives: trait(ToolTrait.Outlives),
    paths: trait(ToolTrait.Paths),
    webAddress: trait(ToolTrait.WebAddress),
    timeout: trait(ToolTrait.Timeout),
    injectable: trait(ToolTrait.Injectable),
    resumable: trait(ToolTrait.Resumable),
    // An annotation loses the type of a tool's parameters; the decoder above guards it.
    validate: trait(ToolTrait.Validate) as Entry["validate"],
    preview: trait(ToolTrait.Preview) as Entry["preview"]
  }
}

const kindOf = (annotations: Context.Context<never>): ToolKind => {
  if (Context.get(annotations, ToolTrait.ShellCommand) !== undefined) return "execute"
  if (Context.get(annotations, ToolTrait.WebAddress) !== undefined) return "fetch"
  const reads = Context.get(annotations, Tool.Readonly) && Context.get(annotations, ToolTrait.Paths).length > 0
  return reads ? "read" : "other"
}

/** Without the span in which it was built, which is over when the tool runs. */
const atRest = (context: Context.Context<never>): Context.Context<never> => Context.omit(Tracer.ParentSpan)(context)

const decoder = (schema: Schema.Schema.All, context: Context.Context<never>): Entry["decode"] => {
  const decode = ParseResult.decodeUnknown(schema as Schema.Schema<unknown>, { errors: "all" })
  return (params) =>
    Either.mapLeft(
      atOnce(decode(params ?? {}), context),
      (issue) => shapeless(params ?? {}) ?? told(ParseResult.ArrayFormatter.formatIssueSync(issue))
    )
}

/** An argument under a former name counts, unless the call has its name of now too. */
const renaming = (names: Readonly<Record<string, string>> | undefined, decode: Entry["decode"]): Entry["decode"] =>
  names === undefined
    ? decode
    : (params) =>
        decode(
          typeof params !== "object" || params === null || Array.isArray(params)
            ? params
            : {
                ...Object.fromEntries(Object.entries(params).map(([name, value]) => [names[name] ?? name, value])),
                ...params
              }
        )

/** Arguments that are no object fail as a whole: text that could not be parsed comes as it is. */
const shapeless = (params: unknown): string | undefined => {
  if (typeof params === "string") return `they ${JsonFault.of(params) ?? "are JSON within a text, and no object"}`
  return typeof params === "object" && !Array.isArray(params) ? undefined : "they are no object"
}

const encoder = (schema: Schema.Schema.All, context: Context.Context<never>): Entry["encode"] => {
  const encode = ParseResult.encodeUnknown(schema as Schema.Schema<unknown>)
  return (value) => Either.getOrThrowWith(atOnce(encode(value), context), ParseResult.parseError)
}

/**
 * Most schemas need no fiber. Others may use what the tool was built with, but one that would have to be waited for is a
 * defect of the tool: no other call helps.
 */
const atOnce = <A, E>(parse: Effect.Effect<A, E>, context: Context.Context<never>): Either.Either<A, E> => {
  if (isDecided(parse)) return parse
  try {
    return Effect.runSync(Effect.provide(Effect.either(parse), context))
  } catch (cause) {
    throw new Error("Its schema crashed, or it waits: what waits belongs into the handler.", { cause })
  }
}

const isDecided = <A, E>(effect: Effect.Effect<A, E>): effect is Effect.Effect<A, E> & Either.Either<A, E> =>
  Either.isEither(effect)

/** Enough text to correct every argument, in one line; the given value is quoted in it, however long it is. */
const told = (issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>): string =>
  issues
    .slice(0, 50)
    .map(({ message, path }) => UntrustedJson.echo([path.join("."), inWords(message)].filter(Boolean).join(": ")))
    .join("; ")

/** The type of an object or a list is a page of TypeScript. */
const inWords = (message: string): string =>
  message.replace(
    /^Expected (\{|ReadonlyArray<|readonly ).*, actual /s,
    (_, begin) => `Expected ${begin === "{" ? "an object" : "a list"}, actual `
  )
