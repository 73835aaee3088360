import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "fast-check"
import { execFileSync, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as PathPattern from "../../src/core/PathPattern.js"
import * as Computation from "../kit/Computation.js"

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
    ["./*.txt", "a.txt", true],
    ["./*.txt", "sub/a.txt", false],
    ["/*.txt", "sub/a.txt", false],
    ["**/test", "a/b/test", true],
    ["*.{ts,tsx}", "a.tsx", true],
    ["*.{ts,tsx}", "a.js", false],
    ["{a,b/c}.md", "b/c.md", true],
    ["{a,{b,c}}.md", "c.md", true],
    ["\\{a,b}", "{a,b}", true],
    ["src/**.ts", "src/x/y.ts", true],
    ["src/a**b.ts", "src/a1/2/3b.ts", true],
    ["src/a**b.ts", "src/x/ab.ts", false],
    ["a**/b", "ax/y/b", true],
    ["src/**", "src", false],
    ["[[:constructor:]]", "c", false],
    ["file?.txt", "file1.txt", true],
    ["file?.txt", "file10.txt", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["a[!b]c", "a/c", false],
    ["[]a]", "]", true],
    ["[[:digit:]x]*", "7", true],
    ["[[:digit:]x]*", "d", false],
    ["[!a[:upper:]]", "B", false],
    ["[\\]a]", "]", true],
    ["[+-9]", "/", false],
    ["a[+-9]b", "a7b", true],
    ["[é🙂]", "🙂", true],
    ["?", "é", true],
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
    assert.isTrue(Either.isLeft(PathPattern.glob(`${"[".repeat(200_000)}]`)))
    assert.isTrue(Either.isLeft(PathPattern.glob("{a,b}".repeat(9))))
    const name = "a".repeat(250)
    for (const hostile of ["**a", "a**b", "[a]*", "[", "{[", "{a,b}**", "a**/", "[[:x:]", "?*/**/"]) {
      const taken = Computation.least(1_000, () => {
        const made = PathPattern.glob(hostile.repeat(1_000 / hostile.length))
        if (Either.isRight(made)) made.right(`${`${name}/`.repeat(15)}${name}`)
      })
      assert.isBelow(taken, 1_000, hostile)
    }
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
    assert.isUndefined(verdict("/*.log", "a/b.log"))
  })

  it("reads a line in linear time", () => {
    assert.isUndefined(verdict(`a${" ".repeat(200_000)}b${"\\".repeat(200_000)} \na`.repeat(2), "b"))
  })

  it("takes stars behind a literal beginning as git does, which compares that by itself", () => {
    for (const path of ["ab", "axx/b", "axx/y/b"]) assert.isTrue(verdict("/a**/b", path), path)
    for (const path of [".x", ".xa", ".xa/b"]) assert.isTrue(verdict("/.x**/**", path), path)
    for (const path of ["x/ab/q", "x/a/b/q"])
      assert.strictEqual(verdict("x/[a]**/q", path), path === "x/ab/q" || undefined)
  })

  it("ignores what git ignores", () => {
    const part = FastCheck.constantFrom(
      ...["a", "b", "ab", ".x", "a.b", "*", "*.b", "a*", "**", "?", "[ab]", "[!a]", "a**b", "*a*", "\\*", "\\a"],
      ...["[]a]", "[!]a]", "[\\]a]", "[a-", "[a-c]", "[c-a]", "[a-]", "[+-9]", "[!+-9]", "[[:alpha:]]", "[[:digit:]-]"],
      ...["[[:nope:]]", "[[:a]", "[^[:upper:]a]", "[a\\-c]", "é", "[é]", "??", "[🙂]"]
    )
    const joined = FastCheck.array(FastCheck.tuple(part, FastCheck.constantFrom("/", "/", "")), {
      minLength: 1,
      maxLength: 3
    })
    const rule = FastCheck.tuple(
      FastCheck.constantFrom("", "", "!"),
      FastCheck.constantFrom("", "/"),
      joined.map((parts) => parts.flat().join("").replace(/\/$/, "")),
      FastCheck.constantFrom("", "", "/"),
      FastCheck.constantFrom("", "", "", " ", "\\ ", "\\\\ ", "\\  ", "\t", "\r")
    ).map((parts) => parts.join(""))
    const name = FastCheck.constantFrom(
      "a",
      "b",
      "c",
      "ab",
      "a.b",
      ".x",
      "c.b",
      "abb",
      "xab",
      "]",
      "A",
      "7",
      "-",
      "é",
      "🙂",
      "a ",
      "b\\"
    )
    const tree = FastCheck.record({
      rules: FastCheck.array(rule, { minLength: 1, maxLength: 4 }),
      paths: FastCheck.array(FastCheck.array(name, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 10 })
    })
    const root = fs.mkdtempSync(`${os.tmpdir()}/assent-ignore-`)
    try {
      execFileSync("git", ["init", "-q", root])
      const ours = FastCheck.sample(tree, 800).flatMap(({ paths, rules }, i) => {
        fs.mkdirSync(`${root}/${i}`)
        fs.writeFileSync(`${root}/${i}/.gitignore`, rules.join("\n"))
        const { verdict } = PathPattern.ignoreRules(rules.join("\n"))
        // What is in a directory that is ignored cannot be kept.
        const isIgnored = (names: ReadonlyArray<string>) =>
          names.some((_, at) => verdict(names.slice(0, at + 1).join("/"), at + 1 < names.length) === true)
        return paths.map((names) => ({ path: `${i}/${names.join("/")}`, rules, ignored: isIgnored(names) }))
      })
      const told = spawnSync("git", ["-C", root, "check-ignore", "--no-index", "--stdin", "-z"], {
        input: ours.map(({ path }) => `${path}\0`).join(""),
        encoding: "utf8"
      })
      const ignored = new Set(told.stdout.split("\0"))
      assert.isAbove(ignored.size, 100)
      assert.deepStrictEqual(
        ours.filter((one) => one.ignored !== ignored.has(one.path)),
        []
      )
    } finally {
      fs.rmSync(root, { recursive: true })
    }
  })
})
