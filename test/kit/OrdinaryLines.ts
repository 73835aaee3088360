/**
 * Three hundred lines of ordinary work: from public CI files, scripts, READMEs, manuals and aliases, and as agents write
 * them who look around in a project.
 */
import { readFileSync } from "node:fs"

const [, reading = "", other = ""] = readFileSync("test/kit/ordinaryLines.txt", "utf8").split(
  /^# (?:reading|other work)\n/m
)

const linesOf = (text: string): ReadonlyArray<string> => text.trimEnd().split("\n")

export const all: { readonly reading: ReadonlyArray<string>; readonly other: ReadonlyArray<string> } = {
  /** They only look at something. */
  reading: linesOf(reading),
  other: linesOf(other)
}
