/** The whole answer of a model, with the content of its `stream`. A stream costs more than all the rest of a turn. */
import type * as Effect from "effect/Effect"
import * as FastPath from "../internal/FastPath.js"
import type { ModelError } from "./ModelError.js"
import type { Part, Request, Service } from "./ModelPort.js"

/** Undefined for a request whose answer must come as a stream. */
export type WholeAnswer = (request: Request) => Effect.Effect<Iterable<Part>, ModelError> | undefined

/** Bound to the `stream` of a model. */
export const { bind, of } = FastPath.make<Service["stream"], WholeAnswer>()
