/** Passing a question on: what a person is told of whoever is asked next, and the word that leaves it to them. */
import * as Duration from "effect/Duration"
import type { Interaction } from "./Interaction.js"
import type { Next } from "./InteractorPort.js"

/** Why an interactor has no answer when its person passed. */
export const reason = "it passes the question on"

/** Whether the line passes the question on: the word `pass`, where it can mean nothing else. */
export const is = (interaction: Interaction, line: string): boolean =>
  isPassable(interaction) && line.trim().toLowerCase() === word

/** For the person who is asked first: who is asked after them, and when. */
export const describe = (interaction: Interaction, { after, by }: Next): string => {
  const hand = isPassable(interaction) ? `; type ${word} to ask them now` : ""
  return after === undefined
    ? `${by} is asked if you do not answer${hand}`
    : `${by} is asked too after ${Duration.format(after)}${hand}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const word = "pass"

/** Where a text is wanted, the word may be the answer; a sign-in is one person's. */
const isPassable = (interaction: Interaction): boolean => {
  switch (interaction._tag) {
    case "Approve":
    case "grantStageTool":
    case "approveSubagentEnvelope":
    case "Confirm":
      return true
    case "Select":
      return !interaction.options.some((option) => option.trim().toLowerCase() === word)
    case "Clarify":
    case "Ask":
    case "Elicit":
    case "Auth.DeviceCode":
    case "Auth.Password":
      return false
  }
}
