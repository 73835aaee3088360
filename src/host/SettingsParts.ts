/**
 * What decides about sessions, as digests: two hosts that have the same files and flags have the same ones. Places of files
 * and what a person allowed at prompts are not in them, nor is a key.
 */
import * as Effect from "effect/Effect"
import * as Digest from "../core/Digest.js"
import * as Launch from "./Launch.js"
import type { Overrides } from "./Overrides.js"
import * as Settings from "./Settings.js"

/** By the names that a message calls them. */
export const of = (flags: Overrides) =>
  Effect.gen(function* () {
    const settings = Settings.addressed(yield* Settings.load(flags), flags)
    const { all, chosen } = yield* Launch.profiles(settings)
    const { project: _project, workspace: _workspace, ...policy } = settings.policy
    const { compaction, escalation, inline, instructions, limits, mediator, mode, model, models } = settings
    const { allowHome, mode: sandbox, network } = settings.sandbox
    return {
      policy: digest(policy),
      profiles: digest({ all: [...all].sort(([a], [b]) => (a < b ? -1 : 1)), chosen: chosen?.name }),
      servers: digest([settings.servers, settings.serverStart]),
      configuration: digest({
        model,
        mode,
        instructions,
        limits,
        compaction,
        mediator,
        reviewer: settings.reviewer,
        escalation,
        models,
        inline,
        prices: settings.prices,
        timeouts: settings.timeouts,
        sandbox: { allowHome, network, mode: sandbox },
        trusted: settings.trusted,
        variables: settings.commandVariables,
        providers: Object.keys(settings.keys).sort(),
        tenantKeys: settings.modelKeys === undefined ? undefined : flags["own-model-keys"] === true ? "alone" : "first",
        addresses: settings.baseUrls
      })
    }
  })

/** Those of two directories. */
export const both = (
  one: { readonly [part: string]: string },
  other: { readonly [part: string]: string }
): { readonly [part: string]: string } =>
  Object.fromEntries(Object.entries(other).map(([part, found]) => [part, Digest.sha256((one[part] ?? "") + found)]))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const digest = (value: unknown): string => Digest.digest(plain(value, new Set()))

/** As JSON has it: patterns and collections as what they hold, functions left out. */
const plain = (value: unknown, above: ReadonlySet<unknown>): unknown => {
  if (typeof value === "function" || typeof value === "bigint" || above.has(value)) return undefined
  if (typeof value !== "object" || value === null) return value
  if (value instanceof RegExp) return String(value)
  const inside = new Set(above).add(value)
  if (value instanceof Map || value instanceof Set) return [...value].map((one) => plain(one, inside))
  if (Array.isArray(value)) return value.map((one) => plain(one, inside))
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one, inside)]))
}
