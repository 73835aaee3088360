/**
 * Reads pages of the web by Node's own client, and nothing of other networks.
 *
 * A name is resolved once. When one of its addresses is not public, none is used; else the connection goes to those
 * addresses, whatever the name means a moment later. A proxy is used only if an option names its client. No cookies, no
 * credentials.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { WebAccess } from "../builtin/FetchUrl.js"
import type { Options } from "./WebRequest.js"

export type { Options } from "./WebRequest.js"

/**
 * Access to the web, for `FetchUrl`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: Options): Layer.Layer<WebAccess> =>
  Layer.succeed(WebAccess, {
    // The client is loaded with the first page.
    get: (url) =>
      Effect.flatMap(
        Effect.promise(() => import("./WebRequest.js")),
        ({ get }) => get(url, options)
      )
  })
