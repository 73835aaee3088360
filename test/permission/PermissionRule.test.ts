import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Glob from "../../src/core/Glob.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "../kit/Commands.js"
import * as Computation from "../kit/Computation.js"
import * as Runs from "../kit/Runs.js"

const command = (text: unknown) =>
  PermissionRule.subject({
    tool: "run_command",
    params: { command: text, timeout: 3 },
    commandField,
    repository: "harmless"
  })
const call = (tool: string, params: unknown = {}) => PermissionRule.subject({ tool, params })
const rules = (some: Partial<PermissionRule.RuleSet>) => PermissionRule.compile({ ...PermissionRule.noRules, ...some })
const patterns = (...list: ReadonlyArray<string>) => rules({ patterns: list })
const words = (...list: ReadonlyArray<string>) => rules({ arguments: list })

// The definition, in as many words: exponential, and obviously right.
const reference = (pattern: ReadonlyArray<string>, text: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = pattern
  if (first === undefined) return text.length === 0
  if (first === "*") return reference(rest, text) || (text.length > 0 && reference(pattern, text.slice(1)))
  const [char, ...others] = text
  if (char === undefined) return false
  const ok =
    first === "?" ||
    (first === "[ab]"
      ? "ab".includes(char)
      : first === "[!ab]"
        ? !"ab".includes(char)
        : first === "[a-c]"
          ? "abc".includes(char)
          : first === char)
  return ok && reference(rest, others)
}

describe("a glob", () => {
  it("matches what its definition matches", () => {
    const step = fc.constantFrom(
      "*",
      "?",
      "[ab]",
      "[!ab]",
      "[a-c]",
      "a",
      "b",
      "c",
      "/",
      " ",
      "\n",
      "😀",
      ".",
      "\\",
      "(",
      "^",
      "$"
    )
    const char = fc.constantFrom("a", "b", "c", "d", "/", " ", "\n", "😀", ".", "\\", "(", "^", "$", "*", "[")
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), fc.array(char, { maxLength: 9 }), (pattern, text) => {
        assert.strictEqual(Glob.test(pattern.join(""), text.join("")), reference(pattern, text))
      }),
      { numRuns: Runs.of(5000) }
    )
  })

  it("knows classes, and takes what is never closed for what it says", () => {
    const cases: ReadonlyArray<readonly [string, string, boolean]> = [
      ["[]a]", "]", true],
      ["[!]a]", "]", false],
      ["[a-]", "-", true],
      ["[*]", "*", true],
      ["[*]", "x", false],
      ["[^a]", "^", true],
      ["[a", "[a", true],
      ["[", "[", true],
      ["[!", "[!", true],
      ["Git", "git", false],
      ["", "", true],
      ["", "a", false],
      ["**", "", true]
    ]
    for (const [pattern, text, expected] of cases) assert.strictEqual(Glob.test(pattern, text), expected, pattern)
  })

  it("is not slowed down by malice", () => {
    const computed = Computation.begin()
    assert.isFalse(Glob.test("*a".repeat(500) + "b", "a".repeat(20_000)))
    assert.isFalse(Glob.test("*?[!b]".repeat(100) + "*b", "a".repeat(20_000)))
    assert.isBelow(computed(), 2000)
  })
})

describe("a signature", () => {
  it("is the command, or the name with sorted arguments", () => {
    assert.strictEqual(command("git  status").signature, "git  status")
    assert.strictEqual(call("list", undefined).signature, "list()")
    assert.strictEqual(call("list").signature, "list()")
    assert.strictEqual(
      call("write", { path: "a b", content: "x", mode: 7, deep: { z: 1, a: [true] }, gone: undefined }).signature,
      'write(content=x, deep={"a":[true],"z":1}, mode=7, path=a b)'
    )
  })

  it("stays a command's when the command is missing or no text, and then only the tool's name allows it", () => {
    for (const odd of [undefined, 7, ["git", "status"], ""]) {
      assert.isUndefined(PermissionRule.allows(patterns("*", "git*"), command(odd)))
      assert.strictEqual(PermissionRule.allows(rules({ tools: ["run_command"] }), command(odd)), "run_command")
    }
  })
})

describe("allow rules", () => {
  it.each<[pattern: string, text: string, allowed: boolean]>([
    ["git status*", "git status", true],
    ["git status*", "git status -s 2>&1", true],
    ["git *", "git", true],
    ["git *", "git log --oneline", true],
    ["git *", "git push", true],
    ["git *", "git difftool", false],
    ["touch *", "touch a b", true],
    ["touch *", "touch", true],
    ["touch *", "touch a; rm b", false],
    ["touch *", "touch $(rm b)", false],
    ["touch *", "touch > a", false],
    ["touch *", "A=1 touch a", false],
    ["touch*", "touch a", true],
    ["touch*", "touch", true],
    ["touch*", "touchy a", false],
    ["touch", "touch a", false],
    ["touch ma*", "touch made", true],
    ["touch ma*", "touch other", false],
    ["touch src/*", "touch src/../a", false],
    ["cp a*", "cp ab c", true],
    ["unheard ma*", "unheard made", false],
    ["unheard ma*", "unheard ma de", true],
    ["unheard *", "unheard of", true],
    ["npm *", "npm run x", true],
    ["sudo *", "sudo rm x", false],
    ["env *", "env rm x", false],
    ["xargs *", "xargs rm", false],
    ["bash *", "bash -c 'rm x'", false],
    ["bash *", "echo rm | bash", false],
    ["find *", "find . -delete", false],
    ["git*", "git", true],
    ["git*", "git log", true],
    ["git*", "git push", true],
    ["git*", "gitk", false],
    ["git*", "git-evil log", false],
    ["git*", "git -c a=b log", false],
    ["git*", "git config a b", false],
    ["git*", "git gitevil", false],
    ["git*", "git log --output=x", false],
    ["git*", "git push; rm x", false],
    ["git*", "A=1 git push", false],
    ["git**", "git push", true],
    ["git *", "git", true],
    ["git *", "git push", true],
    ["git", "git", true],
    ["git", "git log", true],
    ["cat*", "cat a", true],
    ["cat*", "catx a", false],
    ["sudo*", "sudo apt update", false],
    ["xargs*", "xargs rm", false],
    ["bash*", "bash -c 'rm x'", false],
    ["bash*", "echo rm | bash", false],
    ["bash*", "bash deploy.sh", true],
    ["A=*  touch*", "A=1 touch a", true],
    ["git", "git push", false],
    ["git push*", "git push origin main", true],
    ["git push*", "git pushx", false],
    ["git diff*", "git difftool", false],
    ["git diff*", "git diff --stat", true],
    ["git diff*", "git diff --output=x", false],
    ["git diff --output=*", "git diff --output=x", true],
    ["git diff --output=*", "git diff --output=x --ext-diff", false],
    ["git d*ff", "git diff", false],
    ["g*t status", "git status", false],
    ["git fetch*", "git fetch --upload-pack=x", false],
    ["git merge*", "git mergetool", false],
    ["git merge*", "git merge main", true],
    ["cat README*", "cat README.md", true],
    ["cat src/*", "cat src/a.ts", true],
    ["cat src/*", "cat src/../package.json", false],
    ["cat ../*", "cat ../x", true],
    ["npm run test:*", "npm run test:unit", true],
    ["npm run test*", "npm run test -- x", true],
    ["npm run test*", "npm run testevil", false],
    ["npm*", "npm test", true],
    ["npm*", "npm", true],
    ["npm", "npm", true],
    ["npm", "npm test", false],
    ["cat 'a b'", "cat 'a b'", true],
    ["rm a b", "rm 'a b'", false],
    ["rm a b", "rm  a  b", true],
    ["rm a b", "rm a 'b'", true],
    ["rm a b", "env rm a b", false],
    ["rm a b", "ls | xargs rm a b", false],
    ["rm a b", "A=1 rm a b", false],
    ["bash", "echo rm | bash", false],
    ["sudo apt update*", "sudo apt update -y", true],
    ["sudo apt update*", "sudo apt upgrade", false],
    ["sudo*", "sudo rm x", false],
    ["timeout 5 npm test*", "timeout 5 npm test", true],
    ["timeout 5*", "timeout 5 npm test", false],
    ["env A=1 npm test*", "env A=1 npm test", true],
    ["env A=1 npm test*", "env A=1 PATH=. npm test", false],
    ["bash -c *", "bash -c 'rm x'", false],
    ["bash -c 'rm x'", "bash -c 'rm x'", true],
    ["bash deploy.sh*", "bash deploy.sh now", true],
    ["bash deploy.sh*", "bash deploy.shx", false],
    ["git *", "gitevil", false],
    ["git *", "git status; rm x", false],
    ["git *", "git status && git log", true],
    ["git *", "git $(x)", false],
    ["git *", "git `x`", false],
    ["git *", "git $X", false],
    ["git *", "git status > f", false],
    ["git *", "git status\nrm x", false],
    ["git *", "if git status; then x; fi", false],
    ["git *", "git -c a=b log", false],
    ["git *", "git config a b", false],
    ["git -c *", "git -c a=b log", true],
    ["git config *", "git config a b", true],
    ["git -* log", "git -c a=b log", false],
    ["git *", "PATH=. git status", false],
    ["*git *", "PATH=. git status", false],
    ["NODE_ENV=* git *", "NODE_ENV=test git status", true],
    ["find *", "find . -name x", true],
    ["find *", "find . -exec rm {} +", false],
    ["find * -exec grep *", "find . -exec grep x {} +", true],
    ["find * -exec grep *", "find . -exec rm {} ';' -exec grep x {} +", false],
    ["find * -exec grep *", "find . -exec grep x {} ';' -exec rm {} +", false],
    ["find * -exec grep *", "find . -delete -exec grep x {} +", false],
    ["python *", "python run.py", true],
    ["python*", "python run.py", true],
    ["python*", "python3 run.py", false],
    ["python", "python run.py", false],
    ["python run.py*", "python run.py", true],
    ["*--help", "bash -c 'rm x' --help", false],
    ["*--help", "ls --help", false],
    ["*", "bash -c 'rm x'", false],
    ["*", "ls", false],
    ["*", "rm $X", false],
    ["*", "ls > f", false],
    ["npm test", "npm test", true],
    ["npm test", "npm test -- x", false]
  ])("%s allows %j: %s, in a file, in code and in a session", (pattern, text, allowed) => {
    assert.strictEqual(PermissionRule.allows(patterns(pattern), command(text)), allowed ? pattern : undefined)
    assert.strictEqual(PermissionRule.entriesAllow([pattern], command(text)), allowed ? pattern : undefined)
  })

  it("need one rule for each part of a compound, of whatever kind", () => {
    const some = rules({ patterns: ["git *"], arguments: ["ls", "npm test"] })
    assert.strictEqual(PermissionRule.allows(some, command("git log && ls -l | git x")), undefined)
    assert.strictEqual(PermissionRule.allows(some, command("git log && ls -l; npm test")), "git * + ls + npm test")
    assert.isUndefined(PermissionRule.allows(some, command("git log && npm run x")))
  })

  it("on arguments must begin the command with whole words", () => {
    assert.strictEqual(PermissionRule.allows(words("git status"), command("git status -s")), "git status")
    for (const text of [
      "gitevil",
      "git statusx",
      "rm git status",
      "git 'status x'",
      "A=1 git status",
      "git -c a git status"
    ]) {
      assert.isUndefined(PermissionRule.allows(words("git status"), command(text)), text)
    }
    assert.isUndefined(PermissionRule.allows(words("git"), command("git -c a=b log")))
    assert.isUndefined(PermissionRule.allows(words("bash"), command("bash run.sh")))
    assert.strictEqual(PermissionRule.allows(words("bash run.sh"), command("bash run.sh x")), "bash run.sh")
    assert.strictEqual(PermissionRule.allows(words("git"), command("git log")), "git")
    assert.isUndefined(PermissionRule.allows(words("git"), command("git push")))
  })

  it("on arguments of other tools must cover every text among them", () => {
    assert.strictEqual(PermissionRule.allows(words("src"), call("read", { path: "src", limit: 3 })), "src")
    assert.isUndefined(PermissionRule.allows(words("src"), call("read", { path: "srcs" })))
    assert.isUndefined(
      PermissionRule.allows(words("git status"), call("write", { path: "/etc/x", content: "git status" }))
    )
    assert.isUndefined(PermissionRule.allows(words("src"), call("read", { limit: 3 })))
  })

  it("cannot be met by a value that imitates another argument", () => {
    const allow = patterns("write(*path=src/*)")
    assert.isDefined(PermissionRule.allows(allow, call("write", { path: "src/a", content: "x" })))
    assert.isDefined(PermissionRule.allows(allow, call("write", { path: "src/a", content: "f(a, b=1)" })))
    assert.isUndefined(PermissionRule.allows(allow, call("write", { path: "/etc/x", content: "a, path=src/b" })))
    assert.isUndefined(PermissionRule.allows(allow, call("write", { path: "/etc/x", "a, path": "src/b" })))
    assert.isUndefined(PermissionRule.allows(allow, call("write", { path: "/etc/x", nested: { a: "b, path=src/b" } })))
    // The glob in front covers the name it stands in; no comma is needed.
    for (const content of ["path=src/b", "see path=src/b", "xpath=src/b", ["path=src/b"], { a: "path=src/b" }]) {
      assert.isUndefined(
        PermissionRule.allows(allow, call("write", { path: "/etc/x", content })),
        JSON.stringify(content)
      )
      assert.isDefined(PermissionRule.allows(allow, call("write", { path: "src/x", content })), JSON.stringify(content))
    }
    assert.isUndefined(PermissionRule.allows(allow, call("write", { query: "path=src/b" })))
    assert.isDefined(PermissionRule.allows(patterns("get(url=*?q=*)"), call("get", { url: "https://a.b/?q=1&r=2" })))
  })
})

describe("deny rules", () => {
  it.each<[pattern: string, text: string, denied: boolean]>([
    ["rm -rf *", "rm -rf x", true],
    ["rm -rf *", "rm   -rf   x", true],
    ["rm -rf *", "'rm' \"-rf\" x", true],
    ["rm -rf *", "ls; rm -rf x", true],
    ["rm -rf *", "ls $(rm -rf x)", true],
    ["rm -rf *", "/bin/rm -rf x", true],
    ["rm -rf *", "sudo -u root rm -rf x", true],
    ["rm -rf *", "bash -c 'cd x; rm -rf y'", true],
    ["rm -rf *", "if true; then rm -rf x; fi", true],
    ["rm -rf *", "A=1 rm -rf x", true],
    ["rm -rf *", "rm x", false],
    ["rm -rf *", "echo rm -rf x", false],
    ["rm -rf *", "$CMD -rf x", false],
    ["git   push", "git push", true],
    ["git push*", "git  -C . --no-pager push x", true],
    ["git push*", "env git -c a=b push", true],
    ["rm *", "sudo /bin/rm x", true],
    ["rm *", "sudo ls /tmp/rm/x", false],
    ["rm -rf *", "r\\\nm -rf x", true],
    ["sudo *", "sudo", true],
    ["*.env*", "cat .env", true],
    ["*> /etc/*", "echo x > /etc/passwd", true],
    ["curl * | *sh*", "curl x | sh", true]
  ])("%s denies %j: %s", (pattern, text, denied) =>
    assert.strictEqual(PermissionRule.denies(patterns(pattern), command(text)) !== undefined, denied)
  )

  it("on arguments are found as whole words in a row, anywhere", () => {
    const deny = words("rm -rf", "sudo")
    for (const text of [
      "rm -rf x",
      "ls; rm -rf x",
      "env rm -rf x",
      "rm '-rf' x",
      "x sudo y",
      "for f in a; do sudo x; done"
    ]) {
      assert.isDefined(PermissionRule.denies(deny, command(text)), text)
    }
    for (const text of ["rm -r -f x", "pseudo x", "rm -rfv x", "rm x -rf"]) {
      assert.isUndefined(PermissionRule.denies(deny, command(text)), text)
    }
    assert.strictEqual(PermissionRule.denies(deny, call("send", { to: ["a", { text: "use sudo now" }] })), "sudo")
  })

  it("name themselves, and why where it is not obvious", () => {
    assert.strictEqual(PermissionRule.denies(rules({ tools: ["x"] }), call("x")), "x")
    assert.strictEqual(PermissionRule.denies(patterns("x(*a=1*)"), call("x", { a: 1 })), "x(*a=1*)")
  })
})

describe("an entry of a session list", () => {
  const allow = (entry: string, subject: PermissionRule.Subject) => PermissionRule.entryMatches(entry, subject, "allow")
  const deny = (entry: string, subject: PermissionRule.Subject) => PermissionRule.entryMatches(entry, subject, "deny")

  it("is a name, a pattern over names, or a pattern over signatures, in this order", () => {
    assert.strictEqual(deny("createPlan", call("createPlan")), "exact")
    assert.strictEqual(deny("create*", call("createPlan", { title: "x" })), "name")
    assert.strictEqual(deny("createPlan(*secret*)", call("createPlan", { title: "secret" })), "signature")
    assert.isUndefined(deny("createPlan", call("createPlanB")))
    assert.strictEqual(deny("git push*", command("git push -f")), "signature")
    assert.strictEqual(deny("git push*", command("ls && git push")), "signature")
    assert.strictEqual(allow("git push*", command("git push -f")), "signature")
    assert.isUndefined(allow("git push*", command("git push; x")))
  })

  it("that was remembered allows the same program and no other, and denies it everywhere", () => {
    const key = PermissionRule.rememberKey(command("git status"))
    assert.strictEqual(key, "(reading) git *")
    assert.isUndefined(allow(key, command("git push")))
    assert.strictEqual(allow("git *", command("git push")), "signature")
    assert.strictEqual(allow(key, command("git log")), "signature")
    assert.isUndefined(allow(key, command("git log; rm x")))
    assert.isUndefined(allow(key, command("git -c a=b log")))
    assert.strictEqual(deny(key, command("sudo git log")), "signature")
  })

  it("that remembers an exact command is never taken for a tool or a pattern", () => {
    for (const text of ["bash", "rm *", "bash a.sh", "if x; then y; fi", "echo $X"]) {
      const key = PermissionRule.rememberKey(command(text))
      assert.strictEqual(allow(key, command(` ${text} `)), "signature")
      assert.isUndefined(allow(key, command(`${text} x`)))
      assert.isUndefined(allow(key, call("bash")))
    }
    assert.isUndefined(allow(PermissionRule.rememberKey(command("rm *")), command("rm x")))
  })

  it("a person typed is a pattern, and means what it says", () => {
    assert.strictEqual(allow("python run.py *", command("python run.py")), "signature")
    assert.isUndefined(allow("python run.py *", command("python run.py; x")))
    assert.strictEqual(allow("python *", command("python run.py")), "signature")
    assert.strictEqual(allow("python*", command("python run.py")), "signature")
    assert.isUndefined(allow("python", command("python run.py")))
    assert.strictEqual(allow("touch *", command("touch a")), "signature")
  })

  it("can be one of several that allow a compound together", () => {
    assert.strictEqual(PermissionRule.entriesAllow(["git *", "ls *"], command("git log | ls")), "git * + ls *")
    assert.isUndefined(PermissionRule.entriesAllow(["git *", "ls *"], command("git log | wc")))
    assert.isUndefined(PermissionRule.entriesAllow([], command("git log")))
    assert.strictEqual(PermissionRule.entriesAllow(["x", "read*"], call("read_file")), "read*")
  })

  it("for another tool is its name", () => {
    assert.strictEqual(PermissionRule.rememberKey(call("write", { path: "a" })), "write")
  })
})

describe("evaluation", () => {
  it("of a call against names costs next to nothing", () => {
    const lists = [rules({ tools: ["a", "b"] }), rules({ tools: ["c"] }), rules({ tools: ["read_file"] })] as const
    const params = { path: "src/a.ts", content: "x".repeat(10_000) }
    const once = () => {
      const subject = call("read_file", params)
      return (
        PermissionRule.denies(lists[0], subject) ??
        PermissionRule.denies(lists[1], subject) ??
        PermissionRule.allows(lists[2], subject)
      )
    }
    for (let i = 0; i < 20_000; i++) once()
    const computed = Computation.begin()
    for (let i = 0; i < 100_000; i++) once()
    // Generous: about 0.1 µs each on a quiet machine.
    assert.isBelow(computed() / 100_000, 0.005)
  })

  it("of a long command ends in good time", () => {
    const big = "rm -rf x a b; ".repeat(900)
    const many = Array.from({ length: 100 }, (_, i) => `sudo ${i}*`)
    const computed = Computation.begin()
    assert.isDefined(PermissionRule.denies(patterns(...many, "rm -rf *"), command(big)))
    PermissionRule.denies(patterns("sudo *", "*a*b*c*d*", "rm *z"), command(big))
    PermissionRule.denies(words("a b"), command(`cat <<E\n${"rm -rf x\n".repeat(1500)}E`))
    assert.isBelow(computed(), 5000)
  })
})
