/** What a policy says to the sanitizer, and which calls that is about. */
import type * as PermissionRule from "./PermissionRule.js"

/**
 * What is refused before any rule is looked at.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** Refuse `; | & $ ( ) { } < >`, backquotes and line ends anywhere in a command, quoted or not. */
  readonly metacharacters: boolean
  /**
   * Refuse programs that delete, overwrite, gain rights, end processes or talk to the network, such as `rm`, `sudo` and
   * `curl`, and the `blocked` ones, except the `allowed` ones.
   */
  readonly dangerousCommands:
    | boolean
    | { readonly blocked?: ReadonlyArray<string> | undefined; readonly allowed?: ReadonlyArray<string> | undefined }
  /**
   * What becomes of a call that names a path outside the workspace: a person is asked, or it is refused, or `off`. `true`
   * is `deny`, `false` is `off`. Commands in a sandbox are not looked at: there the sandbox decides.
   */
  readonly pathScope: PathScope
}

/**
 * How paths outside of the workspace are treated.
 *
 * @since 0.1.0
 * @category models
 */
export type PathScope = boolean | "ask" | "deny" | "off" | PathScopeOptions

/**
 * Which paths outside of the workspace may be named, and what becomes of a call that names others.
 *
 * @since 0.1.0
 * @category models
 */
export interface PathScopeOptions {
  /** Default: `ask`. */
  readonly outside?: "ask" | "deny" | undefined
  /** Directories allowed beside the workspace; relative ones start there. */
  readonly roots?: ReadonlyArray<string> | undefined
  /** The system's temp directory. Default: true. */
  readonly allowTmp?: boolean | undefined
  /** Default: false. */
  readonly allowHome?: boolean | undefined
  /** Also absolute paths that lead inside, temporary ones excepted. Default: false. */
  readonly blockAbsolute?: boolean | undefined
}

/** The options of a scope; nothing if paths may lead anywhere. */
export const scopeOf = (scope: PathScope): PathScopeOptions | undefined => {
  if (typeof scope === "object") return scope
  if (scope === false || scope === "off") return undefined
  return { outside: scope === "ask" ? "ask" : "deny" }
}

/** Of two scopes the one that is on, and the one that refuses. */
export const stricter = (a: PathScope, b: PathScope): PathScope => {
  const [x, y] = [scopeOf(a), scopeOf(b)]
  if (x === undefined) return b
  return y?.outside === "deny" && x.outside !== "deny" ? b : a
}

/** Only the path scope. */
export const defaults: Options = { metacharacters: false, dangerousCommands: false, pathScope: "ask" }

/** Everything on, the workspace only. */
export const strict: Options = { metacharacters: true, dangerousCommands: true, pathScope: "deny" }

/** Metacharacters and dangerous programs except `rm`; any path. */
export const permissive: Options = { metacharacters: true, dangerousCommands: { allowed: ["rm"] }, pathScope: "off" }

/**
 * Whether there is anything to check: a call that names neither a path nor a command violates nothing, unless some paths
 * may not be mentioned.
 */
export const concerns = (self: PermissionRule.Subject, pathFields: ReadonlyArray<string>): boolean => {
  if (self.command !== undefined || self.quoted.length > 0 || (self.call.denied?.length ?? 0) > 0) return true
  for (const field of pathFields) if (fieldOf(self, field).length > 0) return true
  return false
}

/** The paths in a parameter that holds one, or a list of them. */
export const fieldOf = ({ params }: PermissionRule.Subject, field: string): ReadonlyArray<string> => {
  if (typeof params !== "object" || params === null) return []
  const value: unknown = Object.getOwnPropertyDescriptor(params, field)?.value
  const values: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  return values.filter((path) => typeof path === "string")
}
