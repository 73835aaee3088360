/**
 * The answer of a model that has it whole: what its `stream` would say, without a stream. A stream costs more than all
 * the rest of a turn.
 */
import type * as Effect from "effect/Effect"
import * as FastPath from "../internal/FastPath.js"
import type { ModelError } from "./ModelError.js"
import type { Part, Request, Service } from "./ModelPort.js"

/** Nothing for a request whose answer comes as a stream after all. */
export type WholeAnswer = (request: Request) => Effect.Effect<Iterable<Part>, ModelError> | undefined

/** Bound to the `stream` of a model. */
export const { bind, of } = FastPath.make<Service["stream"], WholeAnswer>()
