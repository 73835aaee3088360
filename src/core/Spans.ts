/**
 * Spans around the work of agents: what a trace shows of a turn, a model call, a tool, a permission, an interaction and a
 * compaction.
 *
 * By default they go to the tracer of the program, when it has one beside Effect's default, under the names of
 * OpenTelemetry's conventions for generative AI: `invoke_agent main`, `chat openai/gpt-5`, `execute_tool read_file`. Without
 * one, and with {@link off}, every effect is returned unchanged, so it costs nothing. Words of people, models and tools are
 * shown as their length only.
 * ```
 *  turn ─┬─ model_call
 *        ├─ permission ── interaction
 *        └─ tool ── turn of a child ── …
 * ```
 *
 * The running span is kept in the context beside the tracer's own. Library spans in between may go elsewhere; they must
 * not break the line from a child to the tool call that started it.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import { globalValue } from "effect/GlobalValue"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as Tracer from "effect/Tracer"
import * as Origin from "./Origin.js"
import type * as Redaction from "./Redaction.js"
import * as Region from "./Region.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Everything that gets a span. Hot paths inside these get none.
 *
 * @since 0.1.0
 * @category models
 */
export type Name =
  "assent.turn" | "assent.model_call" | "assent.tool" | "assent.permission" | "assent.interaction" | "assent.compaction"

/**
 * Named by OpenTelemetry's conventions for generative AI where they have a name, else `assent.…`. Absent members are left
 * out. `error.type` marks the span as failed.
 *
 * @since 0.1.0
 * @category models
 */
export interface Attributes {
  readonly [name: string]: string | number | boolean | ReadonlyArray<string> | undefined
}

/**
 * How a span begins.
 *
 * @since 0.1.0
 * @category models
 */
export interface Beginning {
  readonly name: Name
  /** The acting agent's attributes are added to them. */
  readonly attributes: Attributes
  /** Its name in the program's own tracer. Default: {@link name}. */
  readonly title?: string | undefined
  /** The span where the work was asked for, if that is another fiber. Default: the running fiber's span. */
  readonly parent?: Tracer.AnySpan | undefined
  /** The acting origin, if it is not the running fiber's. */
  readonly origin?: Origin.Origin | undefined
}

/**
 * How a span begins, and which attributes are known at its end.
 *
 * @since 0.1.0
 * @category models
 */
export interface Opening<A, E> extends Beginning {
  /** Called once when the work has ended, in any way. A failure sets `error.type` itself unless it is given here. */
  readonly ended?: ((exit: Exit.Exit<A, E>) => Attributes) | undefined
}

/**
 * The parent of a span: a running fiber, or the FiberRefs of a fiber.
 *
 * @since 0.1.0
 * @category models
 */
export type Place = Pick<Fiber.RuntimeFiber<unknown, unknown>, "getFiberRef">

/**
 * A span that has begun.
 *
 * @since 0.1.0
 * @category models
 */
export interface Open {
  readonly span: Tracer.Span
  /** The services of the work in it, made of those around it. */
  readonly around: (context: Context.Context<never>) => Context.Context<never>
  /** Ends it. Only the first call counts. */
  readonly end: (exit: Exit.Exit<unknown, unknown>, attributes?: Attributes) => void
}

/**
 * Opens the spans of the runtime.
 *
 * @since 0.1.0
 * @category services
 */
export interface Service {
  /** Runs an effect inside a span. `opening` is evaluated when the span begins, and never when spans are off. */
  readonly within: <A, E, R>(opening: () => Opening<A, E>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Begins a span for work that has its own ways to begin and to end; undefined when spans are off. `beginning` is
   * evaluated at once, and never when spans are off.
   */
  readonly open: (beginning: () => Beginning, place: Place) => Open | undefined
  /** The running fiber's span, to hand it to work in another fiber. */
  readonly current: Effect.Effect<Tracer.AnySpan | undefined>
  /** Words as an attribute may hold them: `[REDACTED: 12 chars]`, or the words with secrets masked. */
  readonly content: (text: string) => string
}

/**
 * Which tracer, and whether spans carry content.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The tracer that receives spans. Default: the fiber's own tracer, which also receives spans of other libraries. */
  readonly tracer?: Tracer.Tracer | undefined
  /** Shows content, masked with this. Default: its length is shown. */
  readonly content?: Redaction.Redactor | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

const isOwn = (tracer: Tracer.Tracer | undefined): boolean => tracer !== undefined && tracer !== native

/** Keeps spans in memory, for nobody. */
const native: Tracer.Tracer = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** In one tracer, spans of libraries in between are part of the line. */
const nearest = (place: Place): Tracer.AnySpan | undefined =>
  Option.getOrUndefined(Context.getOption(place.getFiberRef(FiberRef.currentContext), Tracer.ParentSpan))

/**
 * Spans that are never opened: every effect is returned unchanged.
 *
 * @since 0.1.0
 * @category constructors
 */
export const off: Service = {
  within: (_, effect) => effect,
  open: () => undefined,
  current: Effect.succeed(undefined),
  content: (text) => hidden(text)
}

/**
 * Spans of a tracer; default: the one of the fiber.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Service => {
  const { content, tracer } = options
  const above = tracer === undefined ? nearest : ours
  const begin = (beginning: Beginning, place: Place): Open | undefined => {
    if (!place.getFiberRef(FiberRef.currentTracerEnabled)) return undefined
    const { attributes, name, origin = Origin.of(place), parent = above(place), title = name } = beginning
    const services = place.getFiberRef(DefaultServices.currentServices)
    const clock = Context.get(services, Clock.Clock)
    const isTimed = place.getFiberRef(FiberRef.currentTracerTimingEnabled)
    const span = (tracer ?? Context.get(services, Tracer.Tracer)).span(
      tracer === undefined ? title : name,
      Option.fromNullable(parent),
      Context.empty(),
      // A list of its own: a span may add to it.
      Chunk.toReadonlyArray(place.getFiberRef(FiberRef.currentTracerSpanLinks)).slice(),
      isTimed ? clock.unsafeCurrentTimeNanos() : 0n,
      name === "assent.model_call" ? "client" : "internal",
      parent === undefined ? { root: true } : { parent }
    )
    HashMap.forEach(place.getFiberRef(FiberRef.currentTracerSpanAnnotations), (value, key) =>
      span.attribute(key, value)
    )
    describeOrigin(span, origin)
    describe(span, attributes)
    return new OpenSpan(span, tracer !== undefined, isTimed ? clock : undefined)
  }
  const around = <A, E, R>(
    fiber: Fiber.RuntimeFiber<unknown, unknown>,
    opening: Opening<A, E>,
    effect: Effect.Effect<A, E, R>
  ) => {
    const span = begin(opening, fiber)
    if (span === undefined) return effect
    // What is there already runs nothing that could look for its span.
    if (isThere(effect)) {
      span.end(effect, opening.ended?.(effect))
      return effect
    }
    const before = fiber.currentContext
    return Effect.flatMap(FiberRef.set(FiberRef.currentContext, span.around(before)), () =>
      Effect.flatMap(Effect.exit(effect), (exit) =>
        Effect.flatMap(FiberRef.set(FiberRef.currentContext, before), () => {
          span.end(exit, opening.ended?.(exit))
          return exit
        })
      )
    )
  }
  return {
    // The context is set and set back by hand, and what is not interruptible anyway needs no region: with
    // `acquireUseRelease` and `mapInputContext` a span cost twice as much.
    within: (opening, effect) =>
      Effect.withFiberRuntime((fiber, { runtimeFlags }) =>
        RuntimeFlags.interruptible(runtimeFlags)
          ? Effect.uninterruptible(Region.once(around(fiber, opening(), Effect.interruptible(Region.once(effect)))))
          : around(fiber, opening(), effect)
      ),
    open: (beginning, place) => begin(beginning(), place),
    current: Effect.withFiberRuntime((fiber) => Effect.succeed(above(fiber))),
    content: (text) => (content === undefined ? hidden(text) : cut(content.text(text)))
  }
}

/**
 * Spans in the tracer of the fiber, where the program has set one; none with Effect's default tracer, which keeps nothing.
 * One for all copies of this module in a process, as the default value of {@link Spans} is.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ofApp: Service = globalValue("assent/core/Spans/ofApp", (): Service => {
  const spans = make()
  return {
    ...spans,
    within: (opening, effect) =>
      Effect.withFiberRuntime((fiber) => (isOwn(fiber.currentTracer) ? spans.within(opening, effect) : effect)),
    open: (beginning, place) => {
      const services = place.getFiberRef(DefaultServices.currentServices)
      return isOwn(Context.get(services, Tracer.Tracer)) ? spans.open(beginning, place) : undefined
    }
  }
})

/**
 * Like {@link ofApp} for one tree of agents, at no cost until one of its callers has a tracer: a step of Effect for each
 * place where a span may open would be one too many.
 *
 * @internal
 */
export class Following implements Service {
  private isOn = false
  readonly current = ofApp.current
  readonly content = ofApp.content

  /** Looks whether there is a tracer among these services. */
  notice(services: Context.Context<never>): void {
    this.isOn ||= isOwn(Option.getOrUndefined(Context.getOption(services, Tracer.Tracer)))
  }

  within<A, E, R>(opening: () => Opening<A, E>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.isOn ? ofApp.within(opening, effect) : effect
  }

  open(beginning: () => Beginning, place: Place): Open | undefined {
    return this.isOn ? ofApp.open(beginning, place) : undefined
  }

  get isOff(): boolean {
    return !this.isOn
  }
}

/**
 * Whether no span opens now: then work can begin at once, where a span would have to be around all of it.
 *
 * @internal
 */
export const areOff = (spans: Service): boolean => spans === off || (spans instanceof Following && spans.isOff)

/**
 * The FiberRefs of a fiber whose further work is in this span. `FiberRef.set` would hash both contexts, to see whether
 * they are the same.
 *
 * @internal
 */
export const entered = (id: FiberId.Single, refs: FiberRefs.FiberRefs, span: Open): FiberRefs.FiberRefs => {
  const ref = FiberRef.currentContext
  const context = span.around(FiberRefs.getOrDefault(refs, ref))
  const [, ...others] = refs.locals.get(ref) ?? []
  return FiberRefs.unsafeMake(new Map(refs.locals).set(ref, [[id, context], ...others]))
}

/**
 * These FiberRefs as a place where a span begins.
 *
 * @internal
 */
export class In implements Place {
  constructor(private readonly refs: FiberRefs.FiberRefs) {}

  getFiberRef<A>(ref: FiberRef.FiberRef<A>): A {
    return FiberRefs.getOrDefault(this.refs, ref)
  }
}

/**
 * The spans of a program: {@link ofApp} unless others are provided.
 *
 * @since 0.1.0
 * @category services
 */
export class Spans extends Context.Reference<Spans>()("assent/core/Spans", { defaultValue: (): Service => ofApp }) {}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Our innermost span; library spans in between do not hide it. */
class OurSpan extends Context.Reference<OurSpan>()("assent/core/OurSpan", {
  defaultValue: (): Tracer.AnySpan | undefined => undefined
}) {}

const isThere = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Effect.Effect<A, E, R> & Exit.Exit<A, E> =>
  Exit.isExit(effect)

const withParent = (context: Context.Context<never>, span: Tracer.AnySpan): Context.Context<never> =>
  Context.add(context, Tracer.ParentSpan, span)

const withOurs = (context: Context.Context<never>, span: Tracer.AnySpan): Context.Context<never> =>
  Context.add(withParent(context, span), OurSpan, span)

/** Our span, else the one around us that is not of this process. */
const ours = (place: Place): Tracer.AnySpan | undefined => {
  const context = place.getFiberRef(FiberRef.currentContext)
  return (
    Context.get(context, OurSpan) ??
    Option.match(Context.getOption(context, Tracer.ParentSpan), { onNone: () => undefined, onSome: external })
  )
}

/** A span from a wire belongs to the trace's collector; a span of this process may be kept in memory only. */
const external = (span: Tracer.AnySpan): Tracer.AnySpan | undefined =>
  span._tag === "ExternalSpan"
    ? span
    : Option.match(span.parent, { onNone: (): Tracer.AnySpan | undefined => undefined, onSome: external })

/** The longest text that is shown as an attribute, in characters. */
const longest = 8_000

const hidden = (text: string): string => `[REDACTED: ${text.length} chars]`

const cut = (text: string): string =>
  text.length <= longest ? text : `${text.slice(0, longest)}… [${text.length - longest} more chars]`

/** Tells who acts. */
const describeOrigin = (span: Tracer.Span, origin: Origin.Origin): void => {
  const { agent, correlationId, depth, sessionId, subagentId, toolCallId } = origin
  if (sessionId === Origin.outside.sessionId) return
  span.attribute("gen_ai.agent.name", agent)
  span.attribute("gen_ai.conversation.id", sessionId)
  span.attribute("assent.depth", depth)
  if (correlationId !== undefined) span.attribute("assent.turn.id", correlationId)
  if (subagentId !== undefined) span.attribute("assent.subagent.id", subagentId)
  if (toolCallId !== undefined) span.attribute("gen_ai.tool.call.id", toolCallId)
}

/** Gives a span the attributes that are there; later ones win. */
const describe = (span: Tracer.Span, attributes: Attributes): void => {
  for (const name in attributes) {
    const value = attributes[name]
    if (value !== undefined) span.attribute(name, value)
  }
}

class OpenSpan implements Open {
  private isOver = false

  constructor(
    readonly span: Tracer.Span,
    private readonly isOurs: boolean,
    private readonly clock: Clock.Clock | undefined
  ) {}

  around(context: Context.Context<never>): Context.Context<never> {
    return this.isOurs ? withOurs(context, this.span) : withParent(context, this.span)
  }

  /** A failure is told by its kind only: a message may quote content. */
  end(exit: Exit.Exit<unknown, unknown>, attributes: Attributes = {}): void {
    if (this.isOver) return
    this.isOver = true
    const { span } = this
    describe(span, attributes)
    const type = attributes["error.type"] ?? (Exit.isFailure(exit) ? kindOf(exit.cause) : undefined)
    if (type !== undefined) span.attribute("error.type", type)
    const outcome =
      type !== undefined
        ? Exit.fail(String(type))
        : Exit.isFailure(exit)
          ? Exit.failCause(Cause.interrupt(FiberId.none))
          : Exit.void
    span.end(this.clock?.unsafeCurrentTimeNanos() ?? 0n, outcome)
  }
}

/** The tag or name of the failure; nothing for an interruption, which is no failure. */
const kindOf = (cause: Cause.Cause<unknown>): string | undefined => {
  if (Cause.isInterruptedOnly(cause)) return undefined
  const error = Cause.squash(cause)
  if (typeof error !== "object" || error === null) return "failure"
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "failure"
}
