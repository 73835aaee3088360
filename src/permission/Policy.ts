/**
 * Policies made in code: what agents may do unasked, what they are asked about, and what they must not do.
 *
 * @example
 * ```ts
 * import { Policy } from "assent"
 *
 * export const policy = Policy.make({
 *   whitelist: { tools: ["search"], patterns: ["git status*"] },
 *   guards: { deny: { patterns: ["*--force*"] } }
 * })
 * ```
 *
 * Those in files are read with `PolicyFile`.
 *
 * @since 0.1.0
 */
export { defaults, make, merge, PolicyInvalid, subject, widens } from "./CompiledPolicy.js"
export type { NamedIn, Of, Policy, Source } from "./CompiledPolicy.js"
export type { Approval, Channel, PolicySource } from "./PolicySource.js"
export type { Options as SanitizerOptions, PathScope, PathScopeOptions } from "./SanitizerOptions.js"
