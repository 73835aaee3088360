/** A time after which something stops, as people write it: `90s`, `5m`, `1.5h`, `500ms`; a bare number is seconds. */

/** Milliseconds; undefined for a text that is no such time. */
export const parse = (text: string): number | undefined => {
  const [, number, unit = "s"] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)?$/.exec(text.trim()) ?? []
  const milliseconds = Number(number) * (units[unit] ?? 0)
  return milliseconds > 0 ? milliseconds : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const units: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
