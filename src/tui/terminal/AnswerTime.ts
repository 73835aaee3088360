/** The time that a question has, as a person reads of it. All pure; milliseconds. */

/** What is left of it, on a row that is drawn again. */
export const left = (millis: number): string => {
  const seconds = secondsOf(millis)
  const minutes = Math.floor(seconds / 60)
  return `${minutes}:${String(seconds % 60).padStart(2, "0")} left to answer`
}

/** All of it, said once. */
export const whole = (millis: number): string => `You have ${secondsOf(millis)} s to answer.`

/** Why a question was taken away that was not answered here. */
export const whyClosed = (until: number | undefined, now: number): string =>
  until !== undefined && now >= until - early ? "nobody answered in time" : "answered elsewhere or withdrawn"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A timer may end a little before the clock says so. */
const early = 20

const secondsOf = (millis: number): number => Math.max(0, Math.ceil(millis / 1_000))
