/** What a policy says to the sanitizer, and which calls that is about. */
import type * as PathScope from "./PathScope.js"
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
  readonly pathScope: boolean | PathScope.Options
}

/** Only the path scope. */
export const defaults: Options = { metacharacters: false, dangerousCommands: false, pathScope: true }

/** Everything on, the workspace only. */
export const strict: Options = { metacharacters: true, dangerousCommands: true, pathScope: true }

/** Metacharacters and dangerous programs except `rm`; any path. */
export const permissive: Options = { metacharacters: true, dangerousCommands: { allowed: ["rm"] }, pathScope: false }

/** Whether there is anything to check: a call that names neither a path nor a command violates nothing. */
export const concerns = (self: PermissionRule.Subject, pathFields: ReadonlyArray<string>): boolean => {
  if (self.command !== undefined) return true
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
