/** One text for equal values. Agents compare by it; what hashes it, also where there is no Node, is only for some: `Digest`. */

/**
 * JSON with object keys sorted at every depth and no white space, so equal values have equal text.
 * `undefined` members are left out, as in `JSON.stringify`. Throws for what JSON cannot write: cycles and bigints.
 *
 * @since 0.1.0
 * @category conversions
 */
export const canonicalJson = (value: unknown): string => JSON.stringify(sortKeys(value)) ?? "null"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!isRecord(value)) return value
  if (typeof value["toJSON"] === "function") return sortKeys(value["toJSON"]())
  const sorted: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    const member = sortKeys(value[key])
    // A plain assignment to `__proto__` would set the prototype and add no member.
    if (key === "__proto__") Object.defineProperty(sorted, key, { value: member, enumerable: true })
    else sorted[key] = member
  }
  return sorted
}

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null
