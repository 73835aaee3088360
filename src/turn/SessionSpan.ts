/** The spans of a session: their attributes at the start and at the end. */
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Origin from "../core/Origin.js"
import type { EndReason } from "../event/AgentEvent.js"
import type { Message } from "../inbox/Message.js"
import type * as Model from "../model/Model.js"
import type { ToolCall } from "../tool/ToolCall.js"
import type { Generated } from "./ReplyCollector.js"
import type { TurnContext } from "./TurnContext.js"

export interface TurnOptions {
  readonly input: ReadonlyArray<Message>
  /** The origin of the turn's fibers. */
  readonly origin: Origin.Origin
  /** Called once the turn has ended. */
  readonly ended: () => { readonly reason: EndReason; readonly steps: number }
}

/** Around a whole turn. */
export const turn =
  (session: TurnContext, { ended, input, origin }: TurnOptions) =>
  <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
    session.spans.within(
      () => ({
        name: "assent.turn",
        title: `invoke_agent ${origin.agent}`,
        origin,
        attributes: {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.request.model": session.model().id,
          "assent.turn.input": session.spans.content(input.map(({ text }) => text).join("\n\n"))
        },
        ended: () => {
          const { reason, steps } = ended()
          return {
            "assent.turn.end": reason,
            "assent.turn.steps": steps,
            "error.type": reason === "failed" ? reason : undefined
          }
        }
      }),
      effect
    )

/** Around one model call with all its attempts. `step` counts from 1 within the turn. */
export const modelCall = (
  session: TurnContext,
  model: Model.Service,
  step: number,
  effect: Effect.Effect<Generated, Model.ModelError>
): Effect.Effect<Generated, Model.ModelError> =>
  session.spans.within(
    () => ({
      name: "assent.model_call",
      title: `chat ${model.id}`,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": model.id.split(/[/:]/, 1)[0],
        "gen_ai.request.model": model.id,
        "assent.step": step
      },
      ended: (exit) => {
        if (Exit.isFailure(exit)) return {}
        const { calls, content, finishReason, usage } = exit.value
        const text = content.map((part) => (part.type === "text" ? part.text : "")).join("")
        return {
          "gen_ai.response.finish_reasons": [finishReason],
          "gen_ai.usage.input_tokens": usage.inputTokens,
          "gen_ai.usage.output_tokens": usage.outputTokens,
          "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
          "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
          "assent.model_call.tools": calls.length,
          "assent.model_call.text": session.spans.content(text)
        }
      }
    }),
    effect
  )

/** Around a tool that runs, with the arguments it runs with. `outcomeOf` tells how it ended, and its result. */
export const tool = <A, E>(
  session: TurnContext,
  call: ToolCall,
  params: unknown,
  outcomeOf: (exit: Exit.Exit<A, E>) => { readonly outcome: string; readonly result: unknown },
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  session.spans.within(
    () => ({
      name: "assent.tool",
      title: `execute_tool ${call.name}`,
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": session.spans.content(textOf(params))
      },
      ended: (exit) => {
        const { outcome, result } = outcomeOf(exit)
        return {
          "assent.tool.outcome": outcome,
          "gen_ai.tool.call.result": session.spans.content(textOf(result)),
          "error.type": outcome === "failed" ? "failed" : undefined
        }
      }
    }),
    effect
  )

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))
