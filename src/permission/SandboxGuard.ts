/**
 * Asks about calls that leave the sandbox or want more of it, and tells for every call of a command tool how it runs.
 *
 * A rule that lets confined commands run unasked holds for commands that are confined as set: the network, and leaving,
 * need a question of their own.
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
    if (known !== undefined && fieldsOf(params).sandbox === undefined) return Effect.void
    return Effect.map(known === undefined ? sandbox.state : Effect.succeed(known), (state) => {
      const how = howOf(params, state)
      return how === "left" || how === "network"
        ? Guard.ask({ reason: `${questions[how]}: ${reasonOf(params)}`, coveredBy: "all" })
        : undefined
    })
  }

/** The tools; each sandboxed tool now knows how its calls run. */
export const informed = (tools: ToolRegistry.Service, sandbox: Sandbox.Service): ReadonlyArray<ToolRegistry.Entry> =>
  tools.entries.map((entry) => {
    if (!entry.sandboxed) return entry
    return {
      ...entry,
      runs: (params) => {
        const state = sandbox.known()
        return state === undefined ? undefined : howOf(params, state)
      }
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const questions = {
  left: "It runs outside the sandbox",
  network: "It reaches the network and the services of this machine from its sandbox"
}

const fieldsOf = (params: unknown): { readonly sandbox?: unknown; readonly reason?: unknown } =>
  typeof params === "object" && params !== null ? params : {}

/** A wish that is not known leaves the sandbox, as far as anybody can say. */
const howOf = (params: unknown, state: Sandbox.State): ToolRegistry.RunsHow => {
  if (state._tag === "Unconfined") return "open"
  const { sandbox } = fieldsOf(params)
  if (sandbox === undefined || sandbox === "write" || (sandbox === "network" && state.network)) return "confined"
  return sandbox === "network" ? "network" : "left"
}

const reasonOf = (params: unknown): string => {
  const { reason } = fieldsOf(params)
  return typeof reason === "string" && reason.trim() !== "" ? reason.trim() : "no reason is given"
}
