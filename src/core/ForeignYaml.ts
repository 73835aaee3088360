/**
 * YAML that somebody else wrote. Its parser goes as deep as the text does, and a text that is deep enough ends the whole
 * process in it, before anything can be caught: so the depth is bounded before the text is parsed.
 */
import * as ForeignJson from "./ForeignJson.js"

/** Why a text is not even parsed; nothing when it may be. Look at what comes of it with `ForeignJson.refusal`. */
export const textRefusal = (text: string, limits?: ForeignJson.Limits): ForeignJson.ForeignJsonRefused | undefined => {
  const size = limits?.size ?? ForeignJson.maxSize
  if (text.length > size) return new ForeignJson.ForeignJsonRefused({ reason: "size", size })
  return isTooDeep(text) ? new ForeignJson.ForeignJsonRefused({ reason: "depth", size }) : undefined
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/**
 * Far more than a value may have, because brackets are counted in prose as well, and far less than the parser survives.
 */
const most = 256

const isTooDeep = (text: string): boolean => {
  let open = 0
  // What stands in each other without brackets does so by what a line begins with.
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
