/**
 * Asks about calls that leave the sandbox, and tells for every call of a command tool how it runs.
 *
 * A rule that lets confined commands run unasked holds for confined commands only: leaving needs a question of its own.
 */
import * as Effect from "effect/Effect"
import type * as Sandbox from "../sandbox/Sandbox.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Guard from "./Guard.js"

/** Runs before all other guards, so that they know whether there is a sandbox. */
export const make =
  (sandbox: Sandbox.Service): Guard.Guard =>
  ({ entry, params }) => {
    if (!entry.sandboxed) return Effect.void
    const known = sandbox.known()
    if (known !== undefined && !leaves(params)) return Effect.void
    return Effect.map(known === undefined ? sandbox.state : Effect.succeed(known), (state) =>
      leaves(params) && state._tag === "Confined"
        ? Guard.ask({ reason: `It is to run outside of the sandbox: ${reasonOf(params)}`, coveredBy: "all" })
        : undefined
    )
  }

/** The tools; each sandboxed tool now knows how its calls run. */
export const informed = (tools: ToolRegistry.Service, sandbox: Sandbox.Service): ReadonlyArray<ToolRegistry.Entry> =>
  tools.entries.map((entry) => {
    if (!entry.sandboxed) return entry
    return {
      ...entry,
      runs: (params) => {
        const state = sandbox.known()
        if (state === undefined) return undefined
        return state._tag === "Unconfined" ? "open" : leaves(params) ? "left" : "confined"
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const fieldsOf = (params: unknown): { readonly sandbox?: unknown; readonly reason?: unknown } =>
  typeof params === "object" && params !== null ? params : {}

const leaves = (params: unknown): boolean => fieldsOf(params).sandbox !== undefined

const reasonOf = (params: unknown): string => {
  const { reason } = fieldsOf(params)
  return typeof reason === "string" && reason.trim() !== "" ? reason.trim() : "no reason is given"
}
