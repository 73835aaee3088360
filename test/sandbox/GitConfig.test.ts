import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as GitConfig from "../../src/sandbox/GitConfig.js"
import * as Runs from "../kit/Runs.js"

const harmful = (text: string): boolean =>
  GitConfig.parse(text)?.every((setting) => GitConfig.isHarmless(setting) || GitConfig.isHeld(setting)) !== true

/** Documented keys that name a program, or a file that names one. */
const naming = `
  alias.x browser.x.cmd browser.x.path core.alternateRefsCommand core.askPass core.editor core.gitProxy
  core.sshCommand credential.helper credential.x.helper diff.external diff.guitool diff.tool diff.x.command diff.x.textconv
  difftool.x.cmd difftool.x.path filter.x.clean filter.x.process filter.x.smudge gc.recentObjectsHook gpg.x.program
  gpg.ssh.defaultKeyCommand guitool.x.cmd help.browser hook.x.command imap.tunnel include.path includeIf.x.path
  instaweb.browser instaweb.httpd interactive.diffFilter init.templateDir lfs.customtransfer.x.path lfs.extension.x.clean
  man.viewer man.x.cmd man.x.path merge.guitool merge.tool merge.x.driver merge.x.recursive mergetool.x.cmd mergetool.x.path
  pager.x receive.procReceiveRefs remote.x.promisor remote.x.receivepack remote.x.uploadpack remote.x.vcs
  sendemail.ccCmd sendemail.tocmd sendemail.smtpServer sequence.editor tar.x.command trailer.x.cmd trailer.x.command
  uploadpack.packObjectsHook web.browser
`
/** Documented keys that make git read another place. */
const leading = `
  blame.ignoreRevsFile bundle.x.uri commit.template core.attributesFile core.excludesFile core.hooksPath core.worktree
  diff.orderFile extensions.partialClone fetch.fsck.skipList fsck.skipList format.signatureFile gpg.ssh.allowedSignersFile
  http.cookieFile http.sslCert http.sslKey mailmap.blob mailmap.file receive.fsck.skipList url.x.insteadOf url.x.pushInsteadOf
`
const words = (text: string) => text.trim().split(/\s+/)

const cased = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) => [...text].map((letter, index) => (upper[index] === true ? letter.toUpperCase() : letter)).join(""))
const blank = fc.constantFrom("", " ", "\t", "  ")

/** A setting, written in any of the ways in which git reads it. */
const spelled = (key: string, value: string) => {
  const [section = "", ...rest] = key.split(".")
  const variable = rest.pop() ?? ""
  const sub = rest.length === 0 ? undefined : rest.join(".")
  const heading =
    sub === undefined
      ? cased(section).map((name) => `[${name}]`)
      : fc.oneof(
          cased(section).map((name) => `[${name} "${sub}"]`),
          cased(section).map((name) => `[${name}\t"${[...sub].map((letter) => `\\${letter}`).join("")}"]`),
          cased(section).map((name) => `[${name}.${sub}]`)
        )
  const written = fc.oneof(
    fc.constant(value),
    fc.constant(`"${value}"`),
    fc.constant(`"${value}" # ${value}`),
    fc.constant(`\\\n  ${value}`),
    fc.constant(`${value.slice(0, 3)}\\\n${value.slice(3)}`)
  )
  const before = fc.constantFrom(
    "",
    "\ufeff",
    "# c\n",
    "[core]\n\tbare = false\n",
    "[core] bare\n",
    '[user]\n name = "a;b" ; c\n'
  )
  return fc
    .tuple(
      before,
      heading,
      fc.constantFrom("\n", "\n\t", " ", "\r\n", "\n# [x]\n", ""),
      cased(variable),
      blank,
      blank,
      written
    )
    .map(([begin, head, gap, name, left, right, text]) => `${begin}${head}${gap}${name}${left}=${right}${text}\n`)
}

describe("a key that names a program or another place", () => {
  const keys = words(`${naming} ${leading}`)
  it.each(keys)("is never harmless, however it is written: %s", (key) => {
    fc.assert(
      fc.property(spelled(key, "./evil.sh"), (text) => {
        assert.isTrue(harmful(text), text)
      }),
      { numRuns: Math.max(20, Runs.of(1_000)) }
    )
  })
  it.each([
    ["remote.origin.url", "ext::sh -c evil"],
    ["remote.origin.pushurl", "foo::bar"],
    ["submodule.a.url", "ext::sh"],
    ["submodule.a.update", "!evil"],
    ["branch.a.remote", "ext::sh"],
    ["format.pretty", "%G?"],
    ["pretty.mine", "%h %-GK"],
    ["tag.sort", "-signature:grade"],
    ["branch.sort", "signature"],
    ["diff.submodule", "diff"]
  ])("is one by its value: %s = %s", (key, value) => {
    assert.isTrue(harmful(`[${key.split(".").slice(0, -1).join(".")}]\n${key.split(".").at(-1)} = "${value}"\n`))
  })
  it.each([
    "pager = less\n",
    "[core\nbare\n",
    '[core]\nbare = "true\n',
    "[core]\nbare = \\x\n",
    "[core]\n1bare = true\n",
    "[core]\nbare true\n",
    '[ "a"]\nbare\n',
    "[core]\n\u00a0bare\n",
    "[core]\nbare = \0\n",
    "[core]\rbare\n",
    "[core]\nba_re = true\n",
    '[core] "a"\nbare\n'
  ])("may be in text that is not certain: %j", (text) => {
    assert.isUndefined(GitConfig.parse(text))
  })
})

describe("ordinary keys", () => {
  it("are harmless: what git, its clients and people write into a repository", () => {
    const text = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	ignorecase = true
	precomposeunicode = true
	autocrlf = input
	fsmonitor = true
	pager = less -F
[remote "origin"]
	url = git@github.com:ada/engine.git
	fetch = +refs/heads/*:refs/remotes/origin/*
	gh-resolved = base
[remote "v6"]
	url = ssh://git@[2001:db8::1]/engine.git
[branch "main"]
	remote = origin
	merge = refs/heads/main
	vscode-merge-base = origin/main
	rebase = true
[user]
	name = Ada
	email = ada@example.com
[submodule "lib/x"]
	active = true
	url = ../x.git
	update = rebase
[lfs]
	repositoryformatversion = 0
[lfs "https://example.com/info/lfs"]
	access = basic
[http "https://github.com/"]
	extraheader = AUTHORIZATION: basic x
[pull]
	rebase = true
[push]
	default = simple
[commit]
	gpgsign = true
[color "diff"]
	meta = yellow
[pretty]
	mine = %h %s
[extensions]
	worktreeConfig = true
[diff]
	algorithm = histogram
	colorMoved
`
    const settings = GitConfig.parse(text) ?? []
    assert.lengthOf(settings, text.split("\n\t").length - 1)
    assert.deepStrictEqual(
      settings.filter((setting) => !GitConfig.isHarmless(setting) && !GitConfig.isHeld(setting)).map(GitConfig.keyOf),
      []
    )
  })

  it("are a short list: most of what git documents asks", () => {
    const known = spawnSync("git", ["help", "--config"], { encoding: "utf8" }).stdout.split("\n")
    const keys = known.filter((key) => /^(?!advice|color)[a-z]\w*\.[\w.-]+$/i.test(key))
    assert.isAbove(keys.length, 500)
    const passing = keys.filter((key) => {
      const parts = key.split(".")
      return !harmful(`[${parts.slice(0, -1).join(".")}]\n${parts.at(-1) ?? ""} = ./evil.sh\n`)
    })
    const risky =
      /cmd|command|program|helper|driver|textconv|external|tool|proxy|template|path$|(?<!re)file$|editor$|worktree$/i
    assert.deepStrictEqual(
      passing.filter((key) => risky.test(key)),
      ["core.quotePath", "gpg.program"]
    )
  })
})

describe("a configuration", () => {
  const piece = fc.constantFrom(
    ...'[core]|[a "b"]|[a "B\\"c\\\\"]|[A.b]|[a.B "c"]|key|Key-1|bare|=| = |\n|\r\n|\t|  |"|"x y"|\\n|\\t|\\\\|\\"|\\\n|#c|;c|true|x  y|1|]|[|.|-'.split(
      "|"
    )
  )
  const line = fc.oneof(
    fc.constantFrom("[core]\n", '[a "b c"]\n', "[A.b]\n", "# c\n", "\n"),
    fc
      .tuple(fc.constantFrom("key", "Other-1"), fc.array(piece, { maxLength: 5 }))
      .map(([key, all]) => `${key} = ${all.join("")}\n`),
    fc.array(piece, { maxLength: 4 }).map((all) => all.join(""))
  )
  it("has the settings that git reads in it", () => {
    const directory = fs.mkdtempSync(join(tmpdir(), "assent-config-"))
    const file = join(directory, "config")
    let agreed = 0
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 8 }).map((lines) => `[core]\n${lines.join("")}`),
        (text) => {
          const ours = GitConfig.parse(text)
          if (ours === undefined) return
          fs.writeFileSync(file, text)
          const { status, stdout } = spawnSync("git", ["config", "-f", file, "--list", "-z"], { encoding: "utf8" })
          if (status !== 0) return
          agreed++
          const shown = ours.map((one) =>
            one.value === undefined ? GitConfig.keyOf(one) : `${GitConfig.keyOf(one)}\n${one.value}`
          )
          // Versions differ in how they show blanks inside of a value.
          const plain = (texts: ReadonlyArray<string>) => texts.map((one) => one.replace(/[ \t]+/g, " "))
          assert.deepStrictEqual(plain(shown), plain(stdout.split("\0").slice(0, -1)), JSON.stringify(text))
        }
      ),
      { numRuns: Runs.of(8_000) }
    )
    fs.rmSync(directory, { recursive: true })
    assert.isAbove(agreed, Runs.of(8_000) / 4)
  })

  it("has subsections as they are written", () => {
    const text = '[a "x\\"y\\\\z\\w.B"]\nc\n[A.B "C"]\nd = 1\n'
    assert.deepStrictEqual(GitConfig.parse(text)?.map(GitConfig.keyOf), ['a.x"y\\zw.B.c', "a.b.C.d"])
  })

  it("of a megabyte takes no longer than its length", () => {
    for (const text of [
      `[a]\nb = ${"x".repeat(1e6)}`,
      `[a]\n${"\n".repeat(1e6)}b`,
      `[a "${"\\x".repeat(5e5)}"]\nb`,
      `[a]\nb = ${"\\\n".repeat(5e5)}`
    ])
      assert.lengthOf(GitConfig.parse(text) ?? [], 1)
  })
})
