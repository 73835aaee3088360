import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Documents from "./kit/Documents.js"
import * as Messages from "./kit/Messages.js"
import * as Prose from "./kit/Prose.js"

const faults = (text: string): ReadonlyArray<string> =>
  Prose.sentences(text).flatMap((sentence) => Prose.fault(sentence) ?? [])

/** Rooms of which people read sentences, and none that speak with models. */
const rooms = ["audit", "channel", "cli/command", "cli/executor", "cli/terminal", "cli/view", "event", "inbox"].concat([
  "interaction",
  "journal",
  "permission",
  "store",
  "terminal",
  "tool",
  "xml"
])

describe("plain English", () => {
  it("finds long sentences and riddles", () => {
    const long = Array.from({ length: 21 }, () => "word").join(" ")
    assert.deepStrictEqual(faults(`Short.\n\n- ${long}`), [`21 words: ${long}`])
    assert.deepStrictEqual(faults(`| ${long} | a |`).length, 1)
    assert.deepStrictEqual(faults(`${"`a b` ".repeat(20)}\n\n\`\`\`sh\n${long}\n\`\`\``), [])
    for (const riddle of [
      "Whoever asks waits.",
      "What is not known is left out.",
      "Where it ends, it ends.",
      "So is that."
    ])
      assert.deepStrictEqual(faults(riddle), [`begins without its subject: ${riddle}`])
    assert.deepStrictEqual(faults("What you see\n\nIf a call fails, the turn continues."), [])
  })

  it.each([...Documents.forUsers, ...[".github/contributing", "src"].flatMap(Documents.below)])(
    "is in $path",
    ({ text }) => {
      assert.deepStrictEqual(faults(text), [])
    }
  )

  it("is in what the program shows", { timeout: 60_000 }, () => {
    const found = Messages.read(rooms)
      .filter(({ text }) => !text.includes(" NOT NULL"))
      .flatMap(({ file, line, text }) => faults(text).map((problem) => `${file}:${line}: ${problem}`))
    assert.deepStrictEqual(found, [])
  })

  it("keeps the documents short that everybody reads", () => {
    const lines = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n").length
    assert.isAtMost(lines("src/README.md"), 150)
    assert.isAtMost(lines("CHANGELOG.md"), 60)
    const glossary = readFileSync("src/README.md", "utf8").split("## Glossary")[1] ?? ""
    assert.isAtMost(glossary.match(/^\|/gm)?.length ?? Infinity, 42)
  })
})
