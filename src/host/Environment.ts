/**
 * The environment variables of the process, read once and kept. Keys are then hidden from `process.env`, so that no command
 * of an agent inherits them, and every session still finds them here.
 */
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as HiddenVariables from "./local/HiddenVariables.js"
import * as Settings from "./Settings.js"
import * as Traces from "./Traces.js"

/** The variables as they are now. Later changes of `process.env` do not reach it. */
export const take: Effect.Effect<ConfigProvider.ConfigProvider> = Effect.sync(() => of(process.env))

/** These variables, and no other. */
export const of = (variables: { readonly [name: string]: string | undefined }): ConfigProvider.ConfigProvider =>
  ConfigProvider.fromMap(
    new Map(Object.entries(variables).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    { pathDelim: "_" }
  )

/** The variables of the fiber that asks. */
export const current: Effect.Effect<ConfigProvider.ConfigProvider> = Effect.configProviderWith(Effect.succeed)

/** Takes our keys out of the process's environment. Take an {@link take environment} first. */
export const hideKeys: Effect.Effect<void> = Effect.suspend(() =>
  HiddenVariables.hide([...Settings.secretNames(), ...Traces.secretNames])
)
