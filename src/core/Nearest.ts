/** The known name that was probably meant. */

/** The known name with the fewest letters changed, swapped, added or left out, when those are few; else nothing. */
export const of = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const text = name.toLowerCase()
  let best: string | undefined
  let fewest = Math.max(1, Math.floor(text.length / 3)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - text.length) >= fewest || text.length > longest) continue
    const changes = distance(text, candidate.toLowerCase())
    if (changes < fewest) {
      fewest = changes
      best = candidate
    }
  }
  return best
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A difference in longer names is no typing error. */
const longest = 64

const distance = (a: string, b: string): number => {
  let above: ReadonlyArray<number> = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwapped ? (above[j - 2] ?? 0) + 1 : Infinity
      next.push(Math.min(changed, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    above = row
    row = next
  }
  return row[b.length] ?? 0
}
