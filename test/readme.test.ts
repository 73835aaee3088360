import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as SchemaAST from "effect/SchemaAST"
import { readFileSync } from "node:fs"
import * as Yaml from "yaml"
import * as Arguments from "../src/cli/config/Arguments.js"
import * as ConfigFile from "../src/host/local/ConfigFile.js"
import * as Help from "../src/cli/config/Help.js"
import * as Wire from "../src/host/Wire.js"
import * as ScriptFile from "../src/model/ScriptFile.js"
import * as PermissionFile from "../src/permission/PermissionFile.js"
import * as CompactionConfig from "../src/conversation/CompactionConfig.js"
import * as SubagentProfile from "../src/subagent/SubagentProfile.js"
import * as Documents from "./kit/Documents.js"

/** Lines without indentation or blank ones: documents show parts of programs at their own depth. */
const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n")

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly scripts: Record<string, string>
  readonly devDependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
}

describe("README and guide", () => {
  it("shows code that the tests run", () => {
    const code = Documents.blocks.filter(({ language }) => language === "ts" || language === "js")
    assert.isAtLeast(code.length, 17)
    for (const { file, text } of code) {
      assert(file !== undefined, `no file is named for:\n${text}`)
      assert.include(lines(readFileSync(file, "utf8")), lines(text), file)
    }
  })

  it("shows files and JSON commands that are accepted", () => {
    const readers: { readonly [language: string]: { readonly [format: string]: (text: string) => boolean } } = {
      json: {
        policy: (text) => Either.isRight(PermissionFile.decode(text, "README.md")),
        config: (text) => Either.isRight(ConfigFile.decode(text, "README.md")),
        commands: (text) =>
          text
            .trim()
            .split("\n")
            .every((line) => Either.isRight(Wire.parse(line)))
      },
      yaml: {
        script: (text) => Either.isRight(ScriptFile.parse(text)),
        profile: (text) =>
          Either.isRight(SubagentProfile.decode(Yaml.parse(text), { name: "readme", source: "README.md" }))
      }
    }
    for (const [language, formats] of Object.entries(readers)) {
      const found = Documents.blocks
        .filter((block) => block.language === language)
        .map(({ text }) => Object.entries(formats).flatMap(([format, accepts]) => (accepts(text) ? [format] : [])))
      const names = found.map((formats) => formats.join(" and "))
      assert.deepStrictEqual([...new Set(names)].sort(), Object.keys(formats).sort())
    }
  })

  it("holds the list of settings that `assent help settings` prints, with every field", () => {
    const rows = ConfigFile.described()
    assert.isAtLeast(rows.length, 25)
    assert.include(readFileSync(".github/guide/settings.md", "utf8"), `\`\`\`text\n${Help.settings(rows)}\n\`\`\``)
    for (const { name } of SchemaAST.getPropertySignatures(ConfigFile.ConfigFile.ast))
      assert.isTrue(
        rows.some(([path, meaning]) => path.split(".")[0] === name && meaning !== ""),
        String(name)
      )
    const sessions = readFileSync(".github/guide/sessions.md", "utf8")
    for (const { name } of SchemaAST.getPropertySignatures(CompactionConfig.CompactionFile.ast))
      assert.match(sessions, new RegExp(`\\| [^|]*\`${String(name)}\``), String(name))
  })

  it("keeps the README short and in one order", () => {
    assert.isAtMost(Documents.readme.text.trimEnd().split("\n").length, 250)
    assert.deepStrictEqual(
      Array.from(Documents.readme.text.matchAll(/^## (.*)$/gm), ([, title]) => title),
      ["At a terminal", "As a library", "Beside others", "Where to read on"]
    )
  })

  it("names every page of the guide in the README and in the index", () => {
    const index = readFileSync(".github/guide/README.md", "utf8")
    const pages = Documents.guide
      .map(({ path }) => path.replace(".github/guide/", ""))
      .filter((name) => name !== "README.md")
    assert.isAtLeast(pages.length, 12)
    for (const name of pages) {
      assert.include(index, `](${name})`)
      assert.include(Documents.readme.text, name === "AGENTS.md" ? name : `](.github/guide/${name})`)
    }
  })

  it("has no link that leads nowhere", () => {
    const all = [Documents.readme, ...[".github", "src", "test"].flatMap(Documents.below)]
    assert.deepStrictEqual(all.flatMap(Documents.deadLinks), [])
  })

  it("names the versions that the tests run with, and every peer that must be there", () => {
    const named = new Map(
      Documents.forUsers.flatMap(({ text }) =>
        Array.from(text.matchAll(/ (@?[\w/-]+)@(\d[\d.]*\d)/g), ([, name = "", version]) => [name, version] as const)
      )
    )
    const { devDependencies, peerDependencies, peerDependenciesMeta } = manifest
    const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
    for (const name of new Set([...peers, ...named.keys()]))
      assert.strictEqual(named.get(name), devDependencies[name], name)
  })

  it("shows commands and flags that exist", () => {
    for (const command of Documents.commands) {
      const script = /npm run (\S+)/.exec(command)?.[1]
      if (script !== undefined) assert.property(manifest.scripts, script)
      const words = /^(?:\w+=\S+ )?(?:assent|.*npm start --) ?(.*)$/.exec(command)?.[1]
      if (words === undefined) continue
      const argv = Array.from(words.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? "")
      assert.isTrue(Either.isRight(Arguments.parse(argv)), command)
    }
  })
})
