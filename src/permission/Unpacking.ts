/**
 * Programs that lay down files whose names stand in their input: archivers and `patch`. No word of the command tells
 * whether one of the files is git's.
 */
import type { Reading } from "../shell/CommandLine.js"
import * as Program from "../shell/Program.js"

/** The directories into which the command unpacks, as written; `.` for its own. */
export const destinations = (readings: ReadonlyArray<Reading>): ReadonlySet<string> => {
  const out = new Set<string>()
  for (const { deep, words } of readings) {
    for (let at = 0; at < words.length && (deep || at === 0); at++) {
      const unpacker = unpackers.get(Program.nameOf(words[at] ?? ""))
      if (unpacker === undefined) continue
      const rest = words.slice(at + 1, at + maxWords)
      if (unpacker.unpacks(rest)) for (const place of placesOf(rest, unpacker.into)) out.add(place)
    }
    if (out.size > maxPlaces) break
  }
  return out
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Nobody writes more options than that; the search takes as long as they are many. */
const maxWords = 64
const maxPlaces = 32

interface Unpacker {
  readonly unpacks: (rest: ReadonlyArray<string>) => boolean
  /** Its option for the directory; what is behind it, or the next word, is the value. */
  readonly into: RegExp
}

const placesOf = (rest: ReadonlyArray<string>, into: RegExp): ReadonlyArray<string> => {
  const found = rest.flatMap((word, at) => {
    const glued = into.exec(word)
    return glued === null ? [] : [glued[1] === undefined || glued[1] === "" ? (rest[at + 1] ?? ".") : glued[1]]
  })
  return found.length === 0 ? ["."] : found
}

const having =
  (word: RegExp) =>
  (rest: ReadonlyArray<string>): boolean =>
    rest.some((text) => word.test(text))

const lacking =
  (word: RegExp) =>
  (rest: ReadonlyArray<string>): boolean =>
    rest.length > 0 && !rest.some((text) => word.test(text))

const tar: Unpacker = {
  unpacks: (rest) => /^[A-Za-z]*x/.test(rest[0] ?? "") || having(/^(?:-[A-Za-z]*x|--(?:ex(?:t|$)|get))/)(rest),
  into: /^(?:-[A-Za-z]*C|--directory(?:=|$)|--one-top-level=)(.*)$/s
}

const unpackers: ReadonlyMap<string, Unpacker> = new Map<string, Unpacker>([
  ["tar", tar],
  ["gtar", tar],
  ["bsdtar", tar],
  ["jar", { ...tar, into: /^(?!)/ }],
  ["unzip", { unpacks: lacking(/^-[A-Za-z]*[lptvZ]/), into: /^-[A-Za-z]*d(.*)$/s }],
  [
    "cpio",
    { unpacks: having(/^(?:-[A-Za-z0]*[ip]|--(?:extract|pass-through))/), into: /^(?:-D|--directory(?:=|$))(.*)$/s }
  ],
  ["pax", { unpacks: having(/^-[A-Za-z]*r/), into: /^(?!)/ }],
  ["patch", { unpacks: lacking(/^--(?:dry-run|version|help)$/), into: /^(?:-d|--directory(?:=|$))(.*)$/s }],
  ["7z", { unpacks: having(/^[xe]$/), into: /^-o(.*)$/s }],
  ["7za", { unpacks: having(/^[xe]$/), into: /^-o(.*)$/s }],
  ["7zr", { unpacks: having(/^[xe]$/), into: /^-o(.*)$/s }],
  ["unrar", { unpacks: having(/^[xe]$/), into: /^(?!)/ }]
])
