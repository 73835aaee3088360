/** The tools and the mock model's answers in the terms of `@effect/ai`, for the systems that use them. */
import type * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Script from "./Script.js"
import type * as Workload from "./Workload.js"

/** The tool as a program declares it; new each time. */
export const declared = () =>
  Toolkit.make(Tool.make("add", { parameters: { a: Schema.Number, b: Schema.Number }, success: Schema.Number }))

const kit = declared()

/** `add`, and so many tools that are declared and never called, that there are `size`. */
export const toolkit = (size: number) => Toolkit.merge(kit, others(size - 1))

/** The handlers of {@link toolkit}; `before` is what a call does first. */
export const handlers = (size: number, count: Workload.Tally, before: Effect.Effect<unknown> = Effect.void) => {
  const idle = others(size - 1)
  const names = Object.keys(idle.tools)
  return [
    kit.toLayer({
      add: ({ a, b }) =>
        Effect.map(before, () => {
          count.toolRuns++
          count.sum += a + b
          return a + b
        })
    }),
    idle.toLayer(Object.fromEntries(names.map((name) => [name, () => Effect.succeed("")])))
  ] as const
}

/** An answer as a provider streams it. */
export const streamed = ({ calls, text }: Script.Reply): Array<Response.StreamPartEncoded> => [
  ...calls.map(toolCall),
  ...(text === "" ? [] : textParts([text])),
  finish(calls.length > 0)
]

/** An answer as a provider gives it at once. */
export const whole = ({ calls, text }: Script.Reply): Array<Response.PartEncoded> => [
  ...calls.map(toolCall),
  ...(text === "" ? [] : [{ type: "text", text } as const]),
  finish(calls.length > 0)
]

/** An answer that is one call of another tool. */
export const calling = (call: {
  readonly id: string
  readonly name: string
  readonly params: unknown
}): Array<Response.StreamPartEncoded> => [{ type: "tool-call", ...call, providerExecuted: false }, finish(true)]

/** A text that is streamed in these pieces. */
export const pieced = (pieces: ReadonlyArray<string>): Array<Response.StreamPartEncoded> => [
  ...textParts(pieces),
  finish(false)
]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const others = (count: number) =>
  Toolkit.make(
    ...Array.from({ length: count }, (_, i) =>
      Tool.make(`other_${i}`, {
        description: "Does something else.",
        parameters: { path: Schema.String, limit: Schema.optional(Schema.Number) },
        success: Schema.String
      })
    )
  )

const toolCall = ({ id, a, b }: Script.Call) =>
  ({ type: "tool-call", id, name: "add", params: { a, b }, providerExecuted: false }) as const

const textParts = (pieces: ReadonlyArray<string>): ReadonlyArray<Response.StreamPartEncoded> => [
  { type: "text-start", id: "0" },
  ...pieces.map((delta) => ({ type: "text-delta", id: "0", delta }) as const),
  { type: "text-end", id: "0" }
]

const finish = (called: boolean) =>
  ({
    type: "finish",
    reason: called ? "tool-calls" : "stop",
    usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
  }) as const
