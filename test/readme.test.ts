import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { readFileSync } from "node:fs"
import * as Arguments from "../src/cli/Arguments.js"
import * as JsonCommand from "../src/cli/JsonCommand.js"
import * as ScriptFile from "../src/model/ScriptFile.js"
import * as PermissionFile from "../src/permission/PermissionFile.js"

interface Block {
  readonly language: string
  readonly text: string
  /** The file it is taken from, for code. */
  readonly file: string | undefined
}

const readme = readFileSync("README.md", "utf8")
const blocks: ReadonlyArray<Block> = Array.from(
  readme.matchAll(/(?:<!-- (\S+) -->\n\n)?```(\w+)\n([^]*?)```/g),
  ([, file, language = "", text = ""]) => ({ language, text, file })
)

/** Lines without indentation or blank ones: the README shows parts of programs at their own depth. */
const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { readonly scripts: Record<string, string> }

describe("the README", () => {
  it("shows code that the tests run", () => {
    const code = blocks.filter((block) => block.language === "ts")
    assert.isAtLeast(code.length, 4)
    for (const { file, text } of code) {
      assert(file !== undefined, `no file is named for:\n${text}`)
      assert.include(lines(readFileSync(file, "utf8")), lines(text), file)
    }
  })

  it("shows a permission file, a script and JSON commands that are accepted", () => {
    const json = blocks.filter((block) => block.language === "json").map((block) => block.text)
    const [policy = "", commands = ""] = json
    assert.strictEqual(json.length, 2)
    assert.isTrue(Either.isRight(PermissionFile.decode(policy, "README.md")))
    for (const line of commands.trim().split("\n")) assert.isTrue(Either.isRight(JsonCommand.parse(line)), line)
    const scripts = blocks.filter((block) => block.language === "yaml")
    assert.strictEqual(scripts.length, 1)
    for (const { text } of scripts) assert.isTrue(Either.isRight(ScriptFile.parse(text)))
  })

  it("shows commands and flags that exist", () => {
    const commands = blocks
      .filter((block) => block.language === "sh")
      .flatMap((block) => block.text.trim().split("\n"))
      .map((line) => line.replace(/#.*/, "").trim())
    for (const command of commands) {
      const script = /npm run (\S+)/.exec(command)?.[1]
      if (script !== undefined) assert.property(manifest.scripts, script)
      const words = /^(?:assent|.*npm start --) ?(.*)$/.exec(command)?.[1]
      if (words === undefined) continue
      const argv = Array.from(words.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "")
      assert.isTrue(Either.isRight(Arguments.parse(argv)), command)
    }
  })
})
