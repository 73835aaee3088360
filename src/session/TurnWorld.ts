/**
 * Where the turns of one session run: in the world around its start, as its origin, with its interactor. The turn of a
 * caller that has something of its own runs in both worlds: see `World`.
 *
 * A turn has a fiber of its own that ends with it. So it enters its world once and restores nothing, and an idle session
 * holds only the FiberRefs of its starter.
 */
import * as Context from "effect/Context"
import * as DefaultServices from "effect/DefaultServices"
import * as Effect from "effect/Effect"
import type * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as Origin from "../core/Origin.js"
import * as Spans from "../core/Spans.js"
import * as World from "../core/World.js"
import * as ResumedRequests from "../interaction/ResumedRequests.js"
import * as Interactor from "../interaction/Interactor.js"
import * as DetachedFiber from "../internal/DetachedFiber.js"
import type { TurnSpan } from "../turn/SessionSpan.js"
import type { TurnContext } from "../turn/TurnContext.js"
import type { Work } from "../turn/TurnFiber.js"

/** What a turn has besides the world around its session's start. */
export interface Entering {
  readonly origin: Origin.Origin
  /** What its caller has of its own. */
  readonly own: World.Own | undefined
  /** Present for a turn that another process began. */
  readonly resumed: ResumedRequests.Service | undefined
  /** Its span; undefined when there are none, and for work that is no turn. */
  readonly span: TurnSpan | undefined
}

export class TurnWorld {
  /** The context around the start with the interactor: most turns run in it, and their handlers' contexts are kept by it. */
  private usual: Context.Context<never> | undefined
  /** The context of a caller that had nothing of its own in it: most runs have the same one. */
  private plain: Context.Context<never>

  constructor(
    readonly start: DetachedFiber.Place,
    private readonly session: Pick<TurnContext, "interactor" | "spans">
  ) {
    this.plain = start.context
  }

  /** Starts a fiber around the start of the session. It begins after the running code. */
  fork(work: Effect.Effect<void>): void {
    DetachedFiber.unsafeFork(this.start, work)
  }

  /** What a caller has that is not around the start. Call it before the first span of the caller's turn. */
  ownOf(caller: FiberRefs.FiberRefs | undefined): World.Own | undefined {
    const { fiberRefs } = this.start
    // A caller in the starting fiber, as most are, has nothing to be compared.
    if (caller === undefined || caller === fiberRefs) return undefined
    const own = World.own(fiberRefs, caller, Interactor.Interactor.key, this.plain)
    if (own?.has(FiberRef.currentContext) !== true) this.plain = FiberRefs.getOrDefault(caller, FiberRef.currentContext)
    const { spans } = this.session
    if (own?.has(DefaultServices.currentServices) === true && spans instanceof Spans.Following) {
      spans.notice(FiberRefs.getOrDefault(caller, DefaultServices.currentServices))
    }
    return own
  }

  /** Runs work until the end of its fiber. */
  within(entering: Entering, work: Work): Effect.Effect<void> {
    // The interactor is among what is entered; the types do not know.
    return Effect.zipRight(
      Effect.updateFiberRefs((id, refs) => this.entered(id, refs, entering)),
      work as Effect.Effect<void>
    )
  }

  private entered(
    id: FiberId.Single,
    refs: FiberRefs.FiberRefs,
    { origin, own, resumed, span }: Entering
  ): FiberRefs.FiberRefs {
    const around = own === undefined ? refs : World.entered(id, refs, own)
    const asking = own === undefined ? (this.usual ??= this.asking(around)) : this.asking(around)
    const outside = resumed === undefined ? asking : Context.add(asking, ResumedRequests.ResumedRequests, resumed)
    const context = span === undefined ? outside : span.around(outside, new Spans.In(around))
    const entries = [...Interactor.locals(this.session.interactor, context, id), Origin.local(origin, id)] as const
    return FiberRefs.updateManyAs(around, { entries })
  }

  private asking(refs: FiberRefs.FiberRefs): Context.Context<never> {
    const context = FiberRefs.getOrDefault(refs, FiberRef.currentContext)
    return Context.add(context, Interactor.Interactor, this.session.interactor)
  }
}
