/** What somebody at a command line does about what the library tells programs. */
import { AuditBroken } from "../audit/AuditBroken.js"
import type { Hint } from "../channel/HaltChannel.js"
import * as NeedText from "../interaction/NeedText.js"
import * as StoreError from "../journal/StoreError.js"

/** How to get a request answered in the next run. */
export const hint: Hint = (interaction, plan) => {
  switch (interaction._tag) {
    case "Approve":
      if (plan !== undefined)
        return "No person can approve the plan, and nothing was changed. Resume the session at a terminal to approve it."
      if (interaction.needs !== undefined) {
        return (
          `No person can decide about ${interaction.tool}, which ${NeedText.describeAll(interaction.needs.all)}. Let them answer ` +
          `through --channel file:DIR or webhook:URL, at a terminal, or with assent sessions answer; nothing else allows it.`
        )
      }
      return (
        `No person can approve ${interaction.tool}. Answer with assent sessions answer, or resume at a terminal. ` +
        `To allow such calls, add a whitelist rule to permissions.json or --policy FILE. --yolo allows everything.`
      )
    case "grantStageTool":
    case "approveSubagentEnvelope":
      return (
        "No person can grant these tools. Answer with assent sessions answer, or resume at a terminal. " +
        "A profile with auto_approved: true needs no question. --yolo allows everything."
      )
    case "Auth.DeviceCode":
    case "Auth.Password":
      return "No person can sign in. Resume at a terminal. --yolo does not sign in for you."
    default:
      return (
        "No person can answer the question. Answer with assent sessions answer, or resume at a terminal. " +
        "--channel auto and --yolo take defaults and first choices."
      )
  }
}

/** An error's sentence, with the command or flag that helps. */
export const said = (error: { readonly message: string }): string => {
  if (error instanceof StoreError.SessionElsewhere)
    return `Session ${error.rootSessionId} works in ${error.workspace} only. Use it there. If that directory was moved, take the session over: assent sessions adopt ${error.rootSessionId}.`
  if (error instanceof StoreError.SessionUnknown)
    return `There is no session ${error.rootSessionId} in this store. assent sessions list shows those there are.`
  if (error instanceof StoreError.PositionUnknown && error.entries !== undefined)
    return `${error.message} assent sessions turns ${error.rootSessionId} lists its turns.`
  return error instanceof AuditBroken && error.problem === "keyNeeded"
    ? `${error.message} Here it is given with --key FILE.`
    : error.message
}
