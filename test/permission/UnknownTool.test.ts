import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as SessionRule from "../../src/permission/SessionRule.js"

const known = ["read_file", "write_file", "run_command"]
const read = (file: unknown) => Either.getOrThrow(PermissionFile.decode(JSON.stringify(file), "p.json"))
const check = (file: unknown) => PermissionFile.checkTools(read(file), known)
const problems = (file: unknown) =>
  Either.match(PermissionFile.decode(JSON.stringify(file), "p.json"), {
    onLeft: ({ problems }) => problems.map(({ path }) => path),
    onRight: () => []
  })

describe("a tool that there is not", () => {
  it("is an error in a list that denies, with the name that may be meant", () => {
    for (const file of [{ blacklist: { tools: ["wirte_file"] } }, { guards: { deny: { tools: ["write_fil"] } } }]) {
      const { message } = Either.getOrThrow(Either.flip(check(file)))
      assert.match(message, /^The permission file p\.json is not valid/)
      assert.include(message, "Did you mean write_file?")
    }
    const far = Either.getOrThrow(Either.flip(check({ blacklist: { tools: ["read_file", "deploy"] } })))
    assert.deepStrictEqual(far.problems, [
      { path: "$.blacklist.tools[1]", message: 'there is no tool "deploy". Tools: read_file, write_file, run_command.' }
    ])
  })

  it("is a remark in a list that allows", () => {
    assert.deepStrictEqual(Either.getOrThrow(check({ whitelist: { tools: ["readfile", "write_file"] } })), [
      { file: "p.json", path: "$.whitelist.tools[0]", message: 'there is no tool "readfile". Did you mean read_file?' }
    ])
  })

  it("of a server is known later", () => {
    const tools = ["mcp__github__*", "mcp__github__list"]
    assert.deepStrictEqual(Either.getOrThrow(check({ blacklist: { tools }, whitelist: { tools } })), [])
  })

  it("is looked for in both files", () => {
    const user = read({ blacklist: { tools: ["x"] } })
    const both = PermissionFile.merge(read({}), user, { trusted: false })
    assert.isTrue(Either.isLeft(PermissionFile.checkTools(both, known)))
  })
})

describe("a star", () => {
  it("alone is an error where things are allowed, and names what it would be", () => {
    for (const text of [
      "*",
      "**",
      "* *",
      " *",
      "?*",
      "*?*",
      "[!~]*",
      "*[!a-b]",
      "[]]*",
      "*(*",
      "*(*)",
      "?*(*)",
      "* ?"
    ]) {
      const wrong = PermissionFile.decode(JSON.stringify({ whitelist: { patterns: [text] } }), "p.json")
      assert.include(Either.getOrThrow(Either.flip(wrong)).message, '"defaultPolicy": "allow"')
    }
    assert.deepStrictEqual(problems({ blacklist: { patterns: ["*"] } }), [])
    const inCode = PermissionFile.policy({ whitelist: { patterns: ["*"] } })
    assert.include(inCode.warnings.join(), "defaultPolicy")
  })

  it("beside no letter of its own is never enough, in a file or in a session", () => {
    const piece = FastCheck.constantFrom("*", "?", " ", "(", ")", "[!x]", "[a-z]", "[!]]", "[]a]", "x", "r")
    const tools = ["run_command", "write", "q", "mcp__a__list"]
    FastCheck.assert(
      FastCheck.property(FastCheck.array(piece, { minLength: 1, maxLength: 6 }), (pieces) => {
        const text = pieces.join("")
        if (Either.isLeft(SessionRule.of("allow", text))) return
        const rules = PermissionRule.compile({ ...PermissionRule.noRules, patterns: [text] })
        const allowed = tools.filter(
          (tool) => PermissionRule.allows(rules, PermissionRule.subject({ tool, params: {} })) !== undefined
        )
        assert.notStrictEqual(allowed.length, tools.length, text)
        const entered = tools.filter(
          (tool) => PermissionRule.entriesAllow([text], PermissionRule.subject({ tool, params: {} })) !== undefined
        )
        assert.notStrictEqual(entered.length, tools.length, text)
      })
    )
  })

  it("in the name of a tool stands for the tools of one server only", () => {
    assert.deepStrictEqual(
      problems({ whitelist: { tools: ["read*", "mcp__a__*"] }, guards: { deny: { tools: ["*"] } } }),
      ["$.guards.deny.tools[0]", "$.whitelist.tools[0]"]
    )
  })

  it("in the place of a program is said to allow no command, and behind a program allows its words", () => {
    const warnings = (text: string) => PermissionFile.policy({ whitelist: { patterns: [text] } }).warnings
    assert.include(warnings("*--help").join(), "allows no command")
    for (const text of [
      "git*",
      "npm*",
      "ls *",
      "npm *",
      "touch *",
      "npm test*",
      "npm test",
      "write(path=*)",
      "FOO=* npm test"
    ]) {
      assert.deepStrictEqual(warnings(text), [], text)
    }
  })
})
