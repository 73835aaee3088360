/** JSON for a provider, and results of tools as their text. */

/**
 * Like `JSON.stringify`, with U+FFFD for each half of a surrogate pair. Output of a tool or words of a peer may have one;
 * it is an escape in JSON, which providers refuse, and as all that was said is sent again, one would end a conversation.
 */
export const stringify = (value: object): string => {
  const json = JSON.stringify(value)
  // No other surrogates are escaped, and a backslash of a text is two.
  return json.includes("\\ud")
    ? json.replace(/\\(ud[0-9a-f]{3}|[^])/g, (all, escaped: string) => (escaped.length > 1 ? "\ufffd" : all))
    : json
}

/**
 * A tool's result as a model reads it: text as it is, so that the model can repeat it exactly, and anything else as JSON.
 * Some providers refuse an empty result.
 */
export const resultText = (result: unknown): string =>
  typeof result === "string" ? result || "(empty)" : (JSON.stringify(result) ?? "null")
