/** Times as a person says them, where they are: the day only as far as it is needed. What programs read has UTC. */

/** `today 14:03`, `yesterday 09:12`, `21 Nov 10:00`, and `21 Nov 2025` of another year. */
export const of = (then: number, now: number): string => {
  const date = new Date(then)
  if (Number.isNaN(date.getTime())) return "(no time)"
  const days = daysBetween(date, new Date(now))
  const clock = `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`
  if (days === 0) return `today ${clock}`
  if (days === 1) return `yesterday ${clock}`
  return date.getFullYear() === new Date(now).getFullYear() ? `${day(then, now)} ${clock}` : day(then, now)
}

/** `21 Nov`, and `21 Nov 2025` of another year. */
export const day = (then: number, now: number): string => {
  const date = new Date(then)
  const year = date.getFullYear()
  const isThisYear = year === new Date(now).getFullYear()
  return `${date.getDate()} ${months[date.getMonth()]}${isThisYear ? "" : ` ${year}`}`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

const twoDigits = (number: number): string => String(number).padStart(2, "0")

/** Days of the calendar: those on which clocks are changed are shorter or longer than others. */
const daysBetween = (then: Date, now: Date): number => Math.round((midnight(now) - midnight(then)) / 86_400_000)

const midnight = (date: Date): number => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate())
