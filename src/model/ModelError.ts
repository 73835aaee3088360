/** Why a generation failed: errors of a provider or of the connection. None has a field that could hold a key. */
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Lazy from "../core/Lazy.js"

const fields = {
  /** `provider/model`. */
  model: Schema.String,
  /** A sentence for a person; holds no key and no request. */
  message: Schema.String,
  /** HTTP status, when there was one. */
  status: Schema.optional(Schema.Number)
}

/**
 * Too many requests; with the milliseconds to wait if the provider named them. Transient.
 *
 * @since 0.1.0
 * @category errors
 */
export class RateLimited extends Schema.TaggedError<RateLimited>("assent/model/RateLimited")("RateLimited", {
  ...fields,
  retryAfter: Schema.optional(Schema.Number)
}) {}

/**
 * The provider is overloaded; with the milliseconds to wait if it named them. Transient.
 *
 * @since 0.1.0
 * @category errors
 */
export class Overloaded extends Schema.TaggedError<Overloaded>("assent/model/Overloaded")("Overloaded", {
  ...fields,
  retryAfter: Schema.optional(Schema.Number)
}) {}

/**
 * No connection, or a broken one. Transient.
 *
 * @since 0.1.0
 * @category errors
 */
export class Network extends Schema.TaggedError<Network>("assent/model/Network")("Network", fields) {}

/**
 * Nothing listens at the address, or the address does not exist. A retry would fail too.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unreachable extends Schema.TaggedError<Unreachable>("assent/model/Unreachable")("Unreachable", fields) {}

/**
 * The key is missing, wrong, or may not use this model.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unauthorized extends Schema.TaggedError<Unauthorized>("assent/model/Unauthorized")(
  "Unauthorized",
  fields
) {}

/**
 * The prompt does not fit into the model's context.
 *
 * @since 0.1.0
 * @category errors
 */
export class ContextTooLong extends Schema.TaggedError<ContextTooLong>("assent/model/ContextTooLong")(
  "ContextTooLong",
  fields
) {}

/**
 * The provider or model sent an unusable answer.
 *
 * @since 0.1.0
 * @category errors
 */
export class BadOutput extends Schema.TaggedError<BadOutput>("assent/model/BadOutput")("BadOutput", fields) {}

/**
 * The provider refused the request: bad parameters, unknown model, content policy.
 *
 * @since 0.1.0
 * @category errors
 */
export class Refused extends Schema.TaggedError<Refused>("assent/model/Refused")("Refused", fields) {}

/**
 * Why a model gave no answer. No message holds a key.
 *
 * @since 0.1.0
 * @category errors
 */
export const ModelError = /* @__PURE__ */ Lazy.schema(() =>
  Schema.Union(RateLimited, Overloaded, Network, Unreachable, Unauthorized, ContextTooLong, BadOutput, Refused)
)
export type ModelError = typeof ModelError.Type

/**
 * Whether a retry of the same request may succeed.
 *
 * @since 0.1.0
 * @category guards
 */
export const isTransient: Predicate.Refinement<ModelError, RateLimited | Overloaded | Network> = Predicate.or(
  Predicate.or(Predicate.isTagged("RateLimited"), Predicate.isTagged("Overloaded")),
  Predicate.isTagged("Network")
) as Predicate.Refinement<ModelError, RateLimited | Overloaded | Network>
