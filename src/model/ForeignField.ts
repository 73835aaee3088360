/**
 * Reads fields of provider data one by one: a field that is missing, null or of an unexpected type counts as absent and
 * does not affect the others. A schema over a whole event would reject the whole event.
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

/** A non-empty text. */
export const name = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined

/** A count or an index. Some servers write numbers as text. */
export const number = (value: unknown): number | undefined => {
  const read = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value
  return typeof read === "number" && Number.isFinite(read) ? read : undefined
}
