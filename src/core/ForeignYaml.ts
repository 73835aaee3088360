/**
 * YAML from outside. Its parser recurses as deep as the text nests, and a deep text ends the whole process before
 * anything can be caught. So the depth is bounded before the text is parsed.
 */
import * as ForeignJson from "./ForeignJson.js"

/**
 * Why a text is refused before parsing; nothing when it may be parsed. Check the parsed value with
 * `ForeignJson.refusal`.
 */
export const textRefusal = (text: string, limits?: ForeignJson.Limits): ForeignJson.ForeignJsonRefused | undefined => {
  const size = limits?.size ?? ForeignJson.maxSize
  if (text.length > size) return new ForeignJson.ForeignJsonRefused({ reason: "size", size })
  return isTooDeep(text) ? new ForeignJson.ForeignJsonRefused({ reason: "depth", size }) : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Far above the limit for a value, because brackets in prose are counted too, and far below what the parser survives.
 */
const most = 256

const isTooDeep = (text: string): boolean => {
  let open = 0
  // Without brackets, nesting shows in what a line begins with.
  let lead = 0
  let isLead = true
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    switch (code) {
      case 0x0a: // line feed
      case 0x0d: // carriage return
        lead = 0
        isLead = true
        continue
      case 0x5b: // [
      case 0x7b: // {
        if (++open > most) return true
        break
      case 0x5d: // ]
      case 0x7d: // }
        if (open > 0) open--
    }
    if (!isLead) continue
    isLead = isBlank(code) || ((code === 0x2d || code === 0x3f) && isBlank(text.charCodeAt(at + 1)))
    if (isLead && ++lead > 2 * most) return true
  }
  return false
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09
