/** The spans of a session: their attributes at the start and at the end. */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberId from "effect/FiberId"
import type * as Tracer from "effect/Tracer"
import * as Defect from "../core/Defect.js"
import type * as Origin from "../core/Origin.js"
import * as Spans from "../core/Spans.js"
import type { ToolOutcome } from "../core/ToolOutcome.js"
import * as CallerContext from "../core/CallerContext.js"
import type { EndReason } from "../event/AgentEvent.js"
import type { Message } from "../inbox/Message.js"
import type * as Model from "../model/Model.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { Generated } from "./ReplyCollector.js"
import type { InSpan, TurnContext } from "./TurnContext.js"

/** How a tool ended. */
export interface Ended {
  readonly outcome: ToolOutcome
  readonly result: unknown
}

/** The span of a turn, which may work in several fibers. */
export class TurnSpan implements InSpan {
  private open: Spans.Open | undefined
  private before: Context.Context<never> | undefined
  private within: Context.Context<never> | undefined

  constructor(
    private readonly session: TurnContext,
    private readonly input: ReadonlyArray<Message>,
    /** The origin of the turn's fibers. */
    private readonly origin: Origin.Origin
  ) {}

  /** The services of one of its fibers, made of those around it; the first of them begins the span. */
  around(context: Context.Context<never>, place: Spans.Place): Context.Context<never> {
    this.open ??= this.session.spans.open(() => this.beginning(), place)
    this.before = context
    this.within = this.open === undefined ? context : this.open.around(context)
    return this.within
  }

  get span(): Tracer.Span | undefined {
    return this.open?.span
  }

  /** The same services without the span. */
  outside(context: Context.Context<never>): Context.Context<never> {
    return context === this.within && this.before !== undefined ? this.before : context
  }

  /** Ends it. A tracer is foreign code: what it throws is logged, and keeps no turn from its end. */
  ended({ reason, steps }: { readonly reason: EndReason; readonly steps: number }): Effect.Effect<void> {
    const { open, origin, session } = this
    session.state.span = undefined
    const ended = Effect.sync(() =>
      open?.end(Exit.void, {
        "assent.turn.end": reason,
        "assent.turn.steps": steps,
        "error.type": reason === "failed" ? reason : undefined
      })
    )
    const { agent, sessionId } = origin
    return Effect.catchAllCause(ended, (cause) =>
      Defect.log("The tracer", cause, session.redactor, { session: sessionId, agent })
    )
  }

  private beginning(): Spans.Beginning {
    const { input, origin, session } = this
    return {
      name: "assent.turn",
      title: `invoke_agent ${origin.agent}`,
      origin,
      attributes: {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": session.state.model.id,
        "assent.turn.input": session.spans.content(input.map(({ text }) => text).join("\n\n"))
      }
    }
  }
}

/** The span of one model call with all its attempts. */
export class ModelSpan {
  private open: Spans.Open | undefined
  /** The FiberRefs around it. */
  private outer: CallerContext.Kept | undefined

  /** `step` counts from 1 within the turn. */
  constructor(
    private readonly session: TurnContext,
    private readonly model: Model.Service,
    private readonly step: number
  ) {}

  /** Runs an attempt in it; the first one begins it. */
  around<A, E, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const entered = Effect.updateFiberRefs((id, refs) => {
      this.open ??= this.session.spans.open(() => this.beginning(), new Spans.In(refs))
      if (this.open === undefined) return refs
      this.outer = { id, refs }
      return Spans.entered(id, refs, this.open)
    })
    return Effect.zipRight(entered, attempt)
  }

  /** Ends it, and leaves it; another fiber than that of the attempt never was in it. */
  end(exit: Exit.Exit<Generated, unknown>): Effect.Effect<void> {
    const { open, outer } = this
    open?.end(exit, Exit.isSuccess(exit) ? this.ofReply(exit.value) : {})
    return outer === undefined ? Effect.void : CallerContext.back(outer)
  }

  private beginning(): Spans.Beginning {
    const { id } = this.model
    return {
      name: "assent.model_call",
      title: `chat ${id}`,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": id.split(/[/:]/, 1)[0],
        "gen_ai.request.model": id,
        "assent.step": this.step
      }
    }
  }

  private ofReply({ calls, content, finishReason, usage }: Generated): Spans.Attributes {
    const text = content.map((part) => (part.type === "text" ? part.text : "")).join("")
    return {
      "gen_ai.response.finish_reasons": [finishReason],
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
      "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
      "assent.model_call.tools": calls.length,
      "assent.model_call.text": this.session.spans.content(text)
    }
  }
}

/** How the span of a tool begins that runs with these arguments. */
export const tool = ({ spans, state }: TurnContext, call: ToolCall, params: unknown): Spans.Beginning => ({
  name: "assent.tool",
  // Handlers' contexts are shared by turns, and made without it.
  parent: state.span?.span,
  title: `execute_tool ${call.name}`,
  attributes: {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": call.name,
    "gen_ai.tool.type": "function",
    "gen_ai.tool.call.id": call.id,
    "gen_ai.tool.call.arguments": spans.content(textOf(params))
  }
})

/** How it ends. */
export const toolEnded = ({ spans }: TurnContext, span: Spans.Open | undefined, { outcome, result }: Ended): void => {
  if (span === undefined) return
  const exit = outcome === "cancelled" || outcome === "interrupted" ? Exit.interrupt(FiberId.none) : Exit.void
  span.end(exit, {
    "assent.tool.outcome": outcome,
    "gen_ai.tool.call.result": spans.content(textOf(result)),
    "error.type": outcome === "failed" ? "failed" : undefined
  })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))
