/**
 * The API for a server of your own: it has routes, your layer says who calls.
 *
 * @since 0.1.0
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Host from "../host/Host.js"
import type { Authentication } from "./Api.js"
import * as ApiHandlers from "./ApiHandlers.js"

/**
 * What a server may do.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Absolute directories in which clients may begin sessions; the first one is the default. */
  readonly workspaces: ReadonlyArray<string>
  /** `PROVIDER/MODEL` of sessions that name none. Default: what the settings say. */
  readonly model?: string | undefined
  /** Where sessions are kept: a file, `postgres://…`, `:memory:`. Default: with the state of this account. */
  readonly store?: string | undefined
  /** Event streams and runs of one caller at once. Default: 64. */
  readonly streams?: number | undefined
}

/**
 * The API cannot be served: a workspace, the settings or a store.
 *
 * @since 0.1.0
 * @category errors
 */
export class ApiUnusable extends Schema.TaggedError<ApiUnusable>("assent/http/ApiUnusable")("ApiUnusable", {
  /** A sentence that says what to do. */
  message: Schema.String
}) {}

/**
 * The routes, for `HttpApiBuilder.serve`. Whom `Api.Authentication` names has answered: their name is in the audit, and
 * their roles count where several have to agree.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({
  model,
  store,
  streams,
  workspaces
}: Options): Layer.Layer<HttpApi.Api, ApiUnusable, Authentication> =>
  ApiHandlers.layer({ workspaces, streams }).pipe(
    Layer.provide(Host.layer({ workspaces, overrides: { model, store } })),
    Layer.provide(NodeContext.layer),
    Layer.catchAll(({ message }) => Layer.fail(new ApiUnusable({ message })))
  )
