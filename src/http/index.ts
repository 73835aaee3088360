/**
 * `assent/http`: the HTTP API as a declaration, for clients. It needs no Node.
 *
 * @since 0.1.0
 */
export * as Api from "./Api.js"
