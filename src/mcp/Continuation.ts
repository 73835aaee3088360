/** The rest of a call that waits for answers, as text that a journal keeps with its question. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"
import type { Answer, Asked } from "./McpClient.js"

export interface Continuation {
  /** By the server's ids; undefined for what is no question to a person. */
  readonly questions: Readonly<Record<string, Asked | undefined>>
  /** The answers so far. */
  readonly answers: Readonly<Record<string, Answer>>
  /** The server's own state of the call, which only the server reads. */
  readonly state: string | undefined
}

// -----------------------------------------------------------------------------------------------------------------
// conversions
// -----------------------------------------------------------------------------------------------------------------

export const format = ({ answers, questions, state }: Continuation): string =>
  JSON.stringify({ questions, answers, state })

/** Fails with a sentence for what another version wrote. */
export const parse = (text: string): Effect.Effect<Continuation, string> =>
  Effect.mapBoth(decode(text), {
    onFailure: () => "The rest of this call cannot be read. Propose the call again.",
    onSuccess: ({ answers, questions, state }) => ({ answers, questions, state })
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const decode = Lazy.make(() =>
  Schema.decodeUnknown(
    Schema.parseJson(
      Schema.Struct({
        questions: Schema.Record({
          key: Schema.String,
          value: Schema.Struct({
            mode: Schema.Literal("form", "url"),
            message: Schema.String,
            schema: Schema.Unknown,
            url: Schema.String
          })
        }),
        answers: Schema.Record({
          key: Schema.String,
          value: Schema.Union(
            Schema.Struct({
              action: Schema.Literal("accept"),
              content: Schema.optionalWith(
                Schema.Record({
                  key: Schema.String,
                  value: Schema.Union(
                    Schema.String,
                    Schema.Number,
                    Schema.Boolean,
                    Schema.mutable(Schema.Array(Schema.String))
                  )
                }),
                { exact: true }
              )
            }),
            Schema.Struct({ action: Schema.Literal("decline", "cancel") })
          )
        }),
        state: Schema.optional(Schema.String)
      })
    )
  )
)
