import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import * as Documents from "./kit/Documents.js"
import * as Messages from "./kit/Messages.js"
import * as Prose from "./kit/Prose.js"

const faults = (text: string): ReadonlyArray<string> =>
  Prose.sentences(text).flatMap((sentence) => Prose.fault(sentence) ?? [])

/** Rooms of which people read sentences, and none that speak with models. */
const rooms = ["audit", "channel", "cli/command", "cli/executor", "event", "inbox"].concat([
  "interaction",
  "journal",
  "permission",
  "store",
  "tui",
  "tool",
  "xml"
])

/** The last commit with a longer subject. */
const before = "4f9dbb28cc4afa41291614df2f251f1f2dc222f0"

/** The subjects since then, or nothing if this is no clone with its history. */
const subjects = async (): Promise<ReadonlyArray<string> | undefined> => {
  const git = (...args: ReadonlyArray<string>) => promisify(execFile)("git", args, { timeout: 30_000 })
  try {
    await git("merge-base", "--is-ancestor", before, "HEAD")
    const { stdout } = await git("log", "--no-merges", "--format=%s", `${before}..HEAD`)
    return stdout.split("\n").filter((line) => line !== "")
  } catch {
    return undefined
  }
}

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

  it("finds subjects of commits that are no short imperatives", () => {
    for (const subject of ["Fix the gate", "Feed the model", "Bring back /undo", 'Revert "Drop it"', "Speed up search"])
      assert.strictEqual(Prose.subjectFault(subject), undefined)
    assert.strictEqual(Prose.subjectFault("Fix the gate."), "ends with a full stop: Fix the gate.")
    assert.strictEqual(Prose.subjectFault("Fixed the gate"), "is no imperative: Fixed the gate")
    assert.strictEqual(Prose.subjectFault("Fixing the gate"), "is no imperative: Fixing the gate")
    assert.strictEqual(Prose.subjectFault("fix: the gate"), "begins without a verb: fix: the gate")
    assert.strictEqual(Prose.subjectFault("U the gate"), "begins without a verb: U the gate")
    const long = `Fix ${"x".repeat(57)}`
    assert.strictEqual(Prose.subjectFault(long), `61 characters: ${long}`)
  })

  it("is in the subjects of commits", async ({ skip }) => {
    const read = await subjects()
    if (read === undefined) return skip("there is no history here")
    assert.deepStrictEqual(
      read.flatMap((subject) => Prose.subjectFault(subject) ?? []),
      []
    )
  })

  it("keeps the documents short that everybody reads", () => {
    const lines = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n").length
    assert.isAtMost(lines("src/README.md"), 150)
    assert.isAtMost(lines("CHANGELOG.md"), 60)
    const glossary = readFileSync("src/README.md", "utf8").split("## Glossary")[1] ?? ""
    assert.isAtMost(glossary.match(/^\|/gm)?.length ?? Infinity, 42)
  })
})
