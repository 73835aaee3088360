/**
 * The old name of `Policy` and `PolicyFile`, until 1.0: policies made in code are in the first, files in the second.
 *
 * @since 0.1.0
 */
export * from "./PolicyFile.js"
export { defaults, make as policy, merge, subject, widens } from "./CompiledPolicy.js"
export type { Of, Policy, Source } from "./CompiledPolicy.js"
export type { Options as SanitizerOptions, PathScope, PathScopeOptions } from "./SanitizerOptions.js"
