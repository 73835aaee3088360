/** What a profile sets for single tools or groups of them. The agent's handlers read it. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** By the name of a tool or group. */
export interface Settings {
  readonly [name: string]: { readonly [key: string]: unknown }
}

/** The settings of the running agent. None unless its profile has some. */
export class ToolSettings extends Context.Reference<ToolSettings>()("assent/tool/ToolSettings", {
  defaultValue: (): Settings => ({})
}) {}

/** What is set under a name. */
export const of = (name: string): Effect.Effect<{ readonly [key: string]: unknown }> =>
  Effect.map(ToolSettings, (settings) => settings[name] ?? {})
