import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as PathPattern from "../../src/builtin/PathPattern.js"

const glob = (pattern: string, path: string): boolean => Either.getOrThrow(PathPattern.glob(pattern))(path)

describe("PathPattern.glob", () => {
  it.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "src/deep/a.ts", true],
    ["*.ts", "a.tsx", false],
    ["src/*.ts", "src/a.ts", true],
    ["src/*.ts", "src/deep/a.ts", false],
    ["src/**/*.ts", "src/a.ts", true],
    ["src/**/*.ts", "src/x/y/a.ts", true],
    ["src/**/*.ts", "other/a.ts", false],
    ["./src/**", "src/x/y", true],
    ["**", "anything/at/all", true],
    ["**/test", "a/b/test", true],
    ["*.{ts,tsx}", "a.tsx", true],
    ["*.{ts,tsx}", "a.js", false],
    ["{a,b/c}.md", "b/c.md", true],
    ["file?.txt", "file1.txt", true],
    ["file?.txt", "file10.txt", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["a[!b]c", "a/c", false],
    ["[]a]", "]", true],
    ["a.b", "aXb", false],
    ["a\\*b", "a*b", true],
    ["a\\*b", "aXb", false],
    ["(x|y)+$", "(x|y)+$", true],
    ["[unclosed", "[unclosed", true],
    ["{unclosed", "{unclosed", true],
    [".env*", ".env.local", true]
  ])("%s on %s is %s", (pattern, path, expected) => {
    assert.strictEqual(glob(pattern, path), expected)
  })

  it("answers at once for a glob that would make others backtrack", () => {
    assert.isFalse(glob(`${"a*".repeat(40)}b`, "a".repeat(250)))
  })
})

describe("PathPattern.ignoreRules", () => {
  const verdict = (rules: string, path: string, directory = false) =>
    PathPattern.ignoreRules(rules).verdict(path, directory)

  it("knows names at any depth, anchored paths and directories", () => {
    assert.isTrue(verdict("*.log", "a/b/c.log"))
    assert.isTrue(verdict("/dist", "dist"))
    assert.isUndefined(verdict("/dist", "a/dist"))
    assert.isTrue(verdict("docs/*.pdf", "docs/a.pdf"))
    assert.isUndefined(verdict("docs/*.pdf", "x/docs/a.pdf"))
    assert.isTrue(verdict("build/", "x/build", true))
    assert.isUndefined(verdict("build/", "build", false))
    assert.isTrue(verdict("**/tmp/**", "a/tmp/x/y"))
  })

  it("lets the last rule that matches decide, and takes comments, escapes and line endings", () => {
    const rules = "# all logs\r\n*.log\r\n!keep.log\r\n\\#odd\r\ntrailing   \r\n"
    assert.isTrue(verdict(rules, "a.log"))
    assert.isFalse(verdict(rules, "x/keep.log"))
    assert.isTrue(verdict(rules, "#odd"))
    assert.isTrue(verdict(rules, "trailing"))
    assert.isUndefined(verdict(rules, "# all logs"))
    assert.isUndefined(verdict("{a,b}", "a"), "braces are no part of this language")
  })
})
