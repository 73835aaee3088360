/** The exit codes of the process. */
import type { TurnEnd } from "../turn/Turn.js"

export const completed = 0
export const failed = 1
export const usage = 2
export const halted = 3
export const cancelled = 130

/** Of a run, whose result is the answer: one without words is a failure. */
export const ofRun = (end: TurnEnd): number =>
  end._tag === "Completed" && end.text.trim() === "" ? failed : ofTurn(end)

export const ofTurn = (end: TurnEnd): number => {
  switch (end._tag) {
    case "Completed":
      return completed
    case "TurnLimit":
    case "Denied":
    case "Failed":
      return failed
    case "Halted":
      return halted
    case "Cancelled":
      return cancelled
  }
}
