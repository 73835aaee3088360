/**
 * `assent/serve`: the HTTP API in a server of your own, with an authentication of your own.
 *
 * @since 0.1.0
 */
export * as AssentApi from "./AssentApi.js"
