/**
 * Asks about calls that leave the sandbox, and says of every call of a tool that runs commands how it runs.
 *
 * What lets a confined command run unasked was said about confined commands: leaving is a question of its own.
 */
import * as Effect from "effect/Effect"
import type * as Sandbox from "../sandbox/Sandbox.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as Guard from "./Guard.js"

/** Runs before everything else, so that whoever comes later knows whether there is a sandbox. */
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

/** The tools, with how calls of those run that are sandboxed. */
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
