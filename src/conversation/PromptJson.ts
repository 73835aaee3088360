/** Messages as JSON. They are the schemas of `@effect/ai`, except that bytes and URLs of files are encoded for JSON. */
import * as Prompt from "@effect/ai/Prompt"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"

const Bytes = /* @__PURE__ */ Lazy.schema(() =>
  Schema.transform(
    Schema.Struct({ base64: Schema.Uint8ArrayFromBase64 }),
    Schema.typeSchema(Schema.Uint8ArrayFromSelf),
    { strict: true, decode: ({ base64 }) => base64, encode: (base64) => ({ base64 }) }
  )
)

const Address = /* @__PURE__ */ Lazy.schema(() =>
  Schema.transform(Schema.Struct({ url: Schema.URL }), Schema.URLFromSelf, {
    strict: true,
    decode: ({ url }) => url,
    encode: (url) => ({ url })
  })
)

const options = Schema.optionalWith(Prompt.ProviderOptions, { default: () => ({}) })

const FilePart = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Struct({
    type: Schema.Literal("file"),
    mediaType: Schema.String,
    fileName: Schema.optional(Schema.String),
    data: Schema.Union(Schema.String, Bytes, Address),
    options
  }).pipe(Schema.attachPropertySignature(Prompt.PartTypeId, Prompt.PartTypeId))
)

/** A part of an assistant's message. */
export const AssistantPart = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(Prompt.TextPart, Prompt.ReasoningPart, Prompt.ToolCallPart, Prompt.ToolResultPart, FilePart)
)

export const Message = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(
    Prompt.SystemMessage,
    Schema.Struct({
      role: Schema.Literal("user"),
      content: Schema.Array(Schema.Union(Prompt.TextPart, FilePart)),
      options
    }).pipe(Schema.attachPropertySignature(Prompt.MessageTypeId, Prompt.MessageTypeId)),
    Schema.Struct({ role: Schema.Literal("assistant"), content: Schema.Array(AssistantPart), options }).pipe(
      Schema.attachPropertySignature(Prompt.MessageTypeId, Prompt.MessageTypeId)
    ),
    Prompt.ToolMessage
  )
)
