/** The ids that a person means with a word. */

/**
 * Those of the known ids that a word names: the one of exactly this id, with or without what all begin with, else those
 * that begin so. `1` is `job_1` and not `job_12`, where `job_` is what all begin with.
 */
export const found = (word: string, known: ReadonlyArray<string>, start: string): ReadonlyArray<string> => {
  if (word === "") return []
  const names = [word, `${start}${word}`]
  const exact = known.filter((id) => names.includes(id))
  return exact.length > 0 ? exact.slice(0, 1) : known.filter((id) => names.some((name) => id.startsWith(name)))
}
