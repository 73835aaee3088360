/**
 * The world of a caller: the FiberRefs of its fiber, its context among them. With these come loggers, the clock, the
 * tracer and its parent span, settings, and whatever else a program keeps there.
 *
 * An agent's loop runs in the world around its start. A run that was asked for somewhere else carries the world of its
 * caller; its turn runs in both, and what the run's caller has of its own counts first:
 *
 * ```
 *  around start ─┐
 *  around run  ──┴─► turn: model calls, guards, questions ─► handler: what it was built with, then these, then the session's
 * ```
 *
 * A FiberRef at its initial value is not a caller's own, and leaves the one around the start.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"

/**
 * What a caller has of its own, for the fiber whose FiberRefs are `outer`; undefined when it has nothing. The service
 * with the key `except` does not count. `plain`: a context that is known to have nothing of its own.
 */
export const own = (
  outer: FiberRefs.FiberRefs,
  caller: FiberRefs.FiberRefs,
  except: string,
  plain: Context.Context<never> | undefined
): Own | undefined => {
  let found: Map<object, Value> | undefined
  // The map's type loses what a FiberRef holds; nothing here needs to know.
  for (const local of caller.locals) {
    const theirs: unknown = local[1][0][1]
    if (theirs === plain) continue
    const ref: FiberRef.FiberRef<unknown> = local[0]
    const stack = outer.locals.get(ref)
    if ((stack !== undefined && stack[0][1] === theirs) || personal.has(ref)) continue
    const initial = FiberRefs.getOrDefault(nothing, ref)
    if (theirs === initial) continue
    const ours = FiberRefs.getOrDefault(outer, ref)
    const value = Context.isContext(theirs) ? services(ours, theirs, initial, except) : merged(ours, theirs)
    if (value !== ours) (found ??= new Map()).set(ref, { fiberRef: ref, value })
  }
  return found
}

/** Values of FiberRefs, by the FiberRef. */
export type Own = ReadonlyMap<object, Value>

interface Value {
  readonly fiberRef: FiberRef.FiberRef<unknown>
  readonly value: unknown
}

/** The FiberRefs of a fiber that works in this world for the rest of its life. */
export const entered = (fiberId: FiberId.Single, refs: FiberRefs.FiberRefs, own: Own): FiberRefs.FiberRefs => {
  let entered = refs
  for (const { fiberRef, value } of own.values()) entered = FiberRefs.updateAs(entered, { fiberId, fiberRef, value })
  return entered
}

/** The FiberRefs that a fiber had. */
export interface Kept {
  readonly id: FiberId.Single
  readonly refs: FiberRefs.FiberRefs
}

/** Gives its FiberRefs back to the fiber that had them; nothing in another one. */
export const back = ({ id, refs }: Kept): Effect.Effect<void> =>
  Effect.updateFiberRefs((fiberId, now) => (fiberId === id ? restored(fiberId, now, refs) : now))

const restored = (
  fiberId: FiberId.Single,
  now: FiberRefs.FiberRefs,
  before: FiberRefs.FiberRefs
): FiberRefs.FiberRefs => {
  // A pending interrupt is in a FiberRef too, and must not be lost.
  const value = FiberRefs.getOrDefault(now, FiberRef.interruptedCause)
  if (Cause.isEmpty(value)) return before
  return FiberRefs.updateAs(before, { fiberId, fiberRef: FiberRef.interruptedCause, value })
}

/** A FiberRef that belongs to the fiber that has it, and never goes from a caller to a turn. */
export const belongsToFiber = <A>(ref: FiberRef.FiberRef<A>): FiberRef.FiberRef<A> => {
  personal.add(ref)
  return ref
}

// -----------------------------------------------------------------------------------------------------------------
// services of handlers
// -----------------------------------------------------------------------------------------------------------------

/** The context of a handler, and the one around the turn that called it. */
export interface Handler {
  readonly outer: Context.Context<never>
  readonly inner: Context.Context<never>
}

/** Tells a handler's context from the world around it. */
class CurrentHandler extends Context.Reference<CurrentHandler>()("assent/core/CurrentHandler", {
  defaultValue: (): Handler | undefined => undefined
}) {}

/**
 * The context of a handler: what it was built with, then the caller's, then the session's. A later one counts, as
 * with `@effect/ai`.
 */
export const handlerContext = (
  built: Context.Context<never>,
  outer: Context.Context<never>,
  session: Context.Context<never>
): Context.Context<never> => {
  // One copy for all of them.
  const services = new Map<string, unknown>(built.unsafeMap)
  for (const [key, value] of outer.unsafeMap) services.set(key, value)
  for (const [key, value] of session.unsafeMap) services.set(key, value)
  const inner: Context.Context<never> = Context.unsafeMake(services)
  const handler: Handler = { outer, inner }
  services.set(CurrentHandler.key, handler)
  return inner
}

/**
 * The services around a fiber. In a handler these are the caller's and those that the handler itself provides; what it
 * was built with is its own, and an agent that it starts or calls does not see it.
 */
export const around = (context: Context.Context<never>): Context.Context<never> => {
  if (!context.unsafeMap.has(CurrentHandler.key)) return context
  const handler = Context.get(context, CurrentHandler)
  if (handler === undefined) return context
  // Mostly a handler provides nothing: then all that it starts, such as a thousand children, shares the outer one.
  let services: Map<string, unknown> | undefined
  const { unsafeMap: given } = handler.inner
  for (const [key, value] of context.unsafeMap) {
    if (given.get(key) !== value) (services ??= new Map(handler.outer.unsafeMap)).set(key, value)
  }
  return services === undefined ? handler.outer : Context.unsafeMake(services)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// The scheduler is that of the program's edge: the one of `runSync` is over when that returns.
const personal = new WeakSet<object>([
  FiberRef.interruptedCause,
  FiberRef.currentRuntimeFlags,
  FiberRef.currentScheduler
])

const nothing = FiberRefs.empty()

/** Our services with theirs over them; ours themselves when they add nothing. */
const services = (
  ours: unknown,
  theirs: Context.Context<never>,
  initial: unknown,
  except: string
): Context.Context<never> => {
  const below = mapOf(ours)
  const defaults = mapOf(initial)
  let found: Map<string, unknown> | undefined
  for (const [key, value] of around(theirs).unsafeMap) {
    if (key === except || below.get(key) === value || defaults.get(key) === value) continue
    ;(found ??= new Map(below)).set(key, value)
  }
  return found === undefined && Context.isContext(ours) ? ours : Context.unsafeMake(found ?? new Map(below))
}

const mapOf = (context: unknown): Map<string, unknown> =>
  Context.isContext(context) ? context.unsafeMap : new Map<string, unknown>()

/** Annotations of the caller stand beside those around the start. */
const merged = (ours: unknown, theirs: unknown): unknown =>
  HashMap.isHashMap(ours) && HashMap.isHashMap(theirs) ? HashMap.union(ours, theirs) : theirs
