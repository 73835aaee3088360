/** Parameters that hold commands, with what takes those apart. */
import * as Effect from "effect/Effect"
import { CommandField } from "../../src/shell/CommandField.js"

/** Of a parameter of this name. */
export const fieldOf = CommandField.make

export const commandField = await Effect.runPromise(fieldOf("command"))
