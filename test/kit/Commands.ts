/** Parameters that hold commands, with what takes those apart. */
import * as Effect from "effect/Effect"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { CommandField } from "../../src/shell/CommandField.js"

/** Of a parameter of this name. */
export const fieldOf = CommandField.make

export const commandField = await Effect.runPromise(fieldOf("command"))

/** The harmless table alone allows the command. */
export const isByTable = (subject: PermissionRule.Subject): boolean => {
  const known = PermissionRule.together(subject, { entries: [], compiled: PermissionRule.empty, readers: true })
  return known !== undefined && PermissionRule.whole(known) !== undefined
}
