/**
 * Fields of what a provider sent, read one by one: one that is missing, null or of a type that nobody expects counts as
 * absent, and leaves the others alone. A schema over a whole event would lose the event with it.
 */
import * as Predicate from "effect/Predicate"

export const record = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  Predicate.isRecord(value) ? value : undefined

/** The elements of a list; none where there is no list. */
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The objects of a list. */
export const records = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  list(value).filter(Predicate.isRecord)

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** A text that names something: an empty one names nothing. */
export const name = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** A count or an index. Some servers write numbers as text. */
export const number = (value: unknown): number | undefined => {
  const read = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof read === "number" && Number.isFinite(read) ? read : undefined
}
