/**
 * Expands `${NAME}` in a profile's text. An unknown variable stays as it is written.
 *
 * ```
 * ProfileVariables.expand({ root: "${workspaceRoot}/src", depth: 2 }, (name) => known[name])
 * ```
 */
import type { SubagentProfile } from "./SubagentProfile.js"

/**
 * The value of a name, if it has one.
 *
 * @since 0.1.0
 * @category models
 */
export type Variables = (name: string) => string | undefined

/** Variables that name places. Profiles of untrusted directories may read them too. */
export const places: ReadonlyArray<string> = ["workspaceRoot", "projectPath", "cwd", "HOME", "USER"]

/** Only the places: any other variable may hold a secret. */
export const onlyPlaces =
  (variables: Variables): Variables =>
  (name) =>
    places.includes(name) ? variables(name) : undefined

/** Expands all strings of a value, also nested ones. Field names and other values stay as they are. */
export const expand = (value: unknown, variables: Variables): unknown => {
  if (typeof value === "string") return expandText(value, variables)
  if (Array.isArray(value)) return value.map((item) => expand(item, variables))
  return typeof value === "object" && value !== null ? expandFields(value, variables) : value
}

/** Expands the instructions and the settings of tools. */
export const expandProfile = (profile: SubagentProfile, variables: Variables): SubagentProfile => ({
  ...profile,
  systemInstructions:
    profile.systemInstructions === undefined ? undefined : expandText(profile.systemInstructions, variables),
  pluginConfigs: Object.fromEntries(
    Object.entries(profile.pluginConfigs).map(([name, config]) => [name, expandFields(config, variables)])
  )
})

/** Every name that a profile's text mentions, each once. */
export const namesIn = (profile: SubagentProfile): ReadonlyArray<string> => {
  const names = new Set<string>()
  const note: Variables = (name) => {
    names.add(name)
    return undefined
  }
  expandProfile(profile, note)
  return [...names]
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

// One pass: variables inside of a value are not expanded.
const expandText = (text: string, variables: Variables): string =>
  text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (written, name: string) => variables(name) ?? written)

const expandFields = (fields: object, variables: Variables): { readonly [key: string]: unknown } =>
  Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, expand(inner, variables)]))
