import { assert, describe, it } from "@effect/vitest"
import * as CommandLine from "../../src/shell/CommandLine.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField, isByTable } from "../kit/Commands.js"

const byName = (text: string): boolean => CommandLine.remembered(text)._tag === "Program"

describe("remembered by name", () => {
  it.each([
    "ls -la",
    "cat a b",
    "grep -rn --include='*.ts' x src",
    "head -5 a",
    "wc -l a",
    "find . -name '*.ts' -type f -mtime -7",
    "sort -t, -k2n a",
    "sort --reverse a",
    "uniq -c a",
    "date +%s",
    "date -u",
    "date -d yesterday +%F",
    "tree -L 2 -a",
    "file -b a",
    "diff -u a b",
    "diff -r --no-dereference a b",
    "sed -n 1,5p a",
    "sed -n '$p' a",
    "rg -n --hidden x",
    "xxd -l 5 a",
    "xxd -ps a",
    "sort -nrk2 a",
    "grep -rnA3 x .",
    "grep -- -x a",
    "ps aux",
    "ps -eo pid,args",
    "test -f a",
    "printf '%s\\n' a",
    "git status -sb",
    "git log --oneline -5 --author=x -- src",
    "git --no-pager diff HEAD~1 --stat",
    "git show HEAD:a",
    "git branch -a",
    "git branch --list 'x*'",
    "git tag -l 'v*'",
    "git stash list",
    "git stash show -p",
    "git remote -v",
    "git remote get-url origin",
    "git worktree list",
    "git grep -n -e x",
    "git blame -L 1,5 a",
    "git rev-parse --abbrev-ref HEAD",
    "git ls-files -o --exclude-standard",
    "git reflog",
    "git log --format='%h %s'",
    "git tag -l 'v*' --sort=-v:refname",
    "git branch --merged main"
  ])("%j", (text) => assert.isTrue(byName(text)))
})

describe("remembered exactly", () => {
  it.each([
    // options that write, execute or load: in full, shortened, clustered, joined, behind --
    "sort -o out a",
    "sort -ro out a",
    "sort -oout a",
    "sort --output=out a",
    "sort --outp=out a",
    "sort --out out a",
    "sort a -o out",
    "sort -- a -o out",
    "sort --compress-program=x a",
    "sort -T . a",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -execdir rm {} +",
    "find . -ok rm {} ';'",
    "find . -fprint out",
    "find . -fprintf out x",
    "find . -fls out",
    "find . -name -delete -delete",
    "date -s now",
    "date -us now",
    "date --set=now",
    "date --se=now",
    "date 01010101",
    "tee a",
    "sed -i s/a/b/ a",
    "sed -n 1e a",
    "sed 's/a/b/e' a",
    "sed -n '1w out' a",
    "sed -n -e 1p -e 'w out' a",
    "sed -nf x a",
    "awk 1 a",
    "rg --pre x y",
    "rg --pre=x y",
    "rg -z x",
    "rg --search-zip x",
    "rg --hostname-bin=x y",
    "tree -o out",
    "tree -Lo 2 out",
    "tree -ao out",
    "tree -R -L 2",
    "less a",
    "more a",
    "man ls",
    "xxd a out",
    "xxd -ps a out",
    "xxd -autoskip a out",
    "xxd a -r",
    "xxd -r a",
    "xxd --r a",
    "uniq a out",
    "uniq a* ",
    "uniq --all-repeated a out",
    "uniq --skip-fields 1 a out",
    "uniq a -c",
    "uniq -- a out",
    "uniq -f 1 a out",
    "diff --output=x a b",
    "diff -l a b",
    "diff --pag a b",
    "file -C -m x",
    "file -m x a",
    "file -bm x a",
    "file --magic-file=x a",
    "fd -x rm",
    "fd -Hx rm",
    "fd --exec rm",
    "fd --exe rm",
    "jq -f x a",
    "jq -rL x . a",
    "jq --from-file x a",
    "test -v 'a[$(x)]'",
    "test 'a[$(x)]' -eq 0",
    "printf -v 'a[$(x)]' y",
    "hostname evil",
    "hexdump -f x a",
    "base64 -o out a",
    "uname -S x",
    "[ -f x ]",
    // git
    "git push",
    "git fetch",
    "git pull",
    "git commit -m x",
    "git add .",
    "git apply x",
    "git merge x",
    "git config -l",
    "git clone x",
    "git difftool",
    "git mergetool",
    "git ls-remote",
    "git co",
    "git log --output=x",
    "git log --outpu=x",
    "git diff --output x",
    "git diff --no-index a b",
    "git diff --ext-diff",
    "git log -p --ext-diff",
    "git show --textconv HEAD:a",
    "git show --textc HEAD:a",
    "git log --show-signature",
    "git log --format=%G?",
    "git log --pretty='%+GK'",
    "git for-each-ref --format='%(signature)'",
    "git for-each-ref --sort=-signature",
    "git tag --sort=*signature:grade",
    "git for-each-ref --sort signature",
    "git log -p --submodule=diff",
    "git -c a=b log",
    "git -C x log",
    "git -p log",
    "git --paginate log",
    "git --exec-path=x log",
    "git --git-dir=x log",
    "git --help",
    "git log --help",
    "git help log",
    "git grep -O x",
    "git grep -Oless x",
    "git grep -nOx y",
    "git grep -rmO x",
    "git grep --open-files-in-pager x",
    "git grep --op x",
    "git grep -- -O",
    "git grep -e -- -Ox",
    "git cat-file --textconv HEAD:a",
    "git cat-file --filters HEAD:a",
    "git branch x",
    "git branch -d x",
    "git branch -v x",
    "git branch -r --list -D x",
    "git branch --edit-description",
    "git tag x",
    "git tag -d x",
    "git tag -v x",
    "git stash",
    "git stash pop",
    "git stash -- list",
    "git remote add a b",
    "git remote update",
    "git remote show origin",
    "git reflog expire --all",
    "git worktree add x",
    "git archive HEAD",
    "git symbolic-ref HEAD x",
    "git fetch-pack --upload-pack=x y",
    "git submodule status",
    "git notes add",
    "git bisect log",
    // assignments, paths, programs that are not listed
    "A=1 ls",
    "PATH=. git log",
    "./ls",
    "/bin/ls",
    "bin/git log",
    "npm test",
    "make",
    "python a.py",
    "env ls",
    "timeout 5 ls",
    "nohup ls",
    "xargs ls",
    "command ls",
    "exec ls",
    "sudo ls",
    "cd x",
    "alias ls=rm",
    "ls > a",
    "ls $X",
    "ls *",
    "ls; ls",
    "LS",
    ""
  ])("%j", (text) => {
    assert.isFalse(byName(text))
    assert.isTrue(CommandLine.covers(CommandLine.remembered(text), text))
  })
})

const command = (text: string, cwd?: string) =>
  PermissionRule.subject({
    tool: "run_command",
    params: { command: text, ...(cwd === undefined ? {} : { cwd }) },
    commandField,
    pathFields: ["cwd"],
    workspace: "/w/project",
    repository: "harmless"
  })
const names = PermissionRule.compile({
  tools: [],
  patterns: ["git", "ls", "grep", "find", "env", "xargs", "timeout", "nohup", "echo*", "time", "npm test*"],
  arguments: ["cat"]
})
const allowed = (text: string, cwd?: string) => PermissionRule.allows(names, command(text, cwd)) !== undefined

describe("a compound, or a program that runs programs", () => {
  it.each([
    "git log && ls | grep x; cat a",
    "env git log",
    "env nohup timeout 5 git log",
    "timeout -s KILL 5 npm test",
    "find . -type f -exec grep x {} ';' -exec cat {} +",
    "find . -type f -exec git log {} ';'",
    "find . -name '*.ts' -type f -exec env grep x {} +",
    "git ls-files | xargs echo",
    "time ls",
    "cd . && git log",
    "cd /w/project && npm test"
  ])("is allowed when all of it is: %j", (text) => assert.isTrue(allowed(text)))

  it.each([
    "env git push",
    "env rm x",
    "env A=1 git log",
    "env -S 'rm x'",
    "env -C / ls",
    "env --split-string='rm x'",
    "nohup rm x",
    "timeout 5 rm x",
    "timeout --foo 5 ls",
    "time rm x",
    "time -o out ls",
    "nice ls",
    "command ls",
    "find . -exec grep x {} ';' -exec rm {} ';'",
    "find . -exec rm {} ';' -exec grep x {} ';'",
    "find . -exec {} ';'",
    "find . -execdir ls ';'",
    "find . -exec sh -c 'rm x' ';'",
    "find . -exec git -C {} log ';'",
    "find . -exec uniq {} +",
    "find . -exec sed -n {} ';'",
    "find . -exec strings {} ';'",
    "find . -exec",
    "ls | xargs rm",
    "ls | xargs -I{} cat {}",
    "ls | xargs git log",
    "ls | xargs npm test",
    "ls | xargs find",
    "xargs xargs rm",
    "xargs -a x cat",
    "ls; rm x",
    "ls && ./ls",
    "ls | sh",
    "bash -c 'git log'",
    "sudo git log",
    "watch git log",
    "parallel ls",
    "busybox ls",
    "PATH=.; ls",
    "export PATH=.; ls",
    "alias ls=rm; ls",
    "ls() { rm x; }; ls",
    "hash -p ./x ls; ls",
    "cd .. && git log",
    "command cd sub; git log",
    "pushd sub; ls",
    "cd $X; ls",
    "cd; ls",
    "cd - && ls",
    "eval ls; ls",
    "ls `rm x`",
    "git log $(rm x)",
    "ls <(rm x)",
    "exec ls"
  ])("is asked about when some of it is not: %j", (text) => assert.isFalse(allowed(text)))

  it("is told by what runs it, too, when a pattern spells that", () => {
    const rules = PermissionRule.compile({ tools: [], patterns: ["sh -c *", "ls *"], arguments: [] })
    assert.isDefined(PermissionRule.allows(rules, command("sh -c 'ls; ls -l'")))
    assert.isUndefined(PermissionRule.allows(rules, command("sh -c 'ls; rm x'")))
    assert.isDefined(PermissionRule.allows(rules, command("sh -c 'cd x; ls'")))
    assert.isUndefined(PermissionRule.allows(rules, command("sh -c 'cd ..; ls'")))
    assert.isUndefined(PermissionRule.allows(rules, command("echo rm | sh -c 'sh'")))
  })

  it("only reads when all of it does", () => {
    for (const text of ["git log | head -5", "env ls", "find . -type f -exec cat {} +"])
      assert.isTrue(PermissionRule.reads(command(text)))
    for (const text of ["npm test", "git push", "ls > x", "ls | xargs sort", "for f in a; do ls; done"]) {
      assert.isFalse(PermissionRule.reads(command(text)), text)
    }
    assert.isFalse(PermissionRule.reads(command("ls", "sub")))
  })
})

describe("the directory is part of what was allowed", () => {
  it.each<[cwd: string, allowed: boolean]>([
    [".", true],
    ["", true],
    ["./", true],
    ["sub/..", true],
    ["/w/project", true],
    ["/w/project/", true],
    ["/w/./project", true],
    ["sub", false],
    ["..", false],
    ["/w", false],
    ["/w/project/sub", false],
    ["/w/projectx", false]
  ])("rules hold in the workspace: %j", (cwd, expected) => assert.strictEqual(allowed("git log", cwd), expected))

  it("and what was remembered where it was", () => {
    const key = PermissionRule.rememberKey(command("npm run build", "web/"))
    assert.strictEqual(key, '(in "web") npm run build')
    const covers = (text: string, cwd?: string) => PermissionRule.entriesAllow([key], command(text, cwd)) !== undefined
    assert.isTrue(covers("npm run build", "./web"))
    assert.isTrue(covers("npm run build", "/w/project/web"))
    assert.isFalse(covers("npm run build"))
    assert.isFalse(covers("npm run build", "other"))
    assert.isFalse(covers("npm run build:all", "web"))
    const git = PermissionRule.rememberKey(command("git status", "web"))
    assert.strictEqual(git, '(in "web") (reading) git *')
    assert.isDefined(PermissionRule.entriesAllow([git], command("git log", "web")))
    assert.isUndefined(PermissionRule.entriesAllow([git], command("git log")))
    assert.isUndefined(PermissionRule.entriesAllow([git], command("git push", "web")))
  })

  it("also of one that denies everywhere", () => {
    const key = PermissionRule.rememberKey(command("npm run build", "web"))
    assert.strictEqual(PermissionRule.entryMatches(key, command("npm  run build && ls"), "deny"), "signature")
  })

  it("is asked about when it is no path at all", () => {
    const odd = PermissionRule.subject({
      tool: "run_command",
      params: { command: "git log", cwd: ["x"] },
      commandField,
      pathFields: ["cwd"]
    })
    assert.isUndefined(PermissionRule.allows(names, odd))
  })
})

describe("what is fed to a program", () => {
  const covers = (key: string, text: string) =>
    PermissionRule.entriesAllow([key, "echo *"], command(text)) !== undefined

  it.each(["echo rm | bash", "echo rm | (true; bash)", "bash < x", "echo x | { bash; }", "echo x | env bash"])(
    "may be what it does: %j",
    (text) => assert.isFalse(covers("$ bash", text))
  )

  it("is nothing where nothing is fed", () => {
    assert.isTrue(covers("npm run x", "echo a; npm run x"))
    assert.isTrue(covers("npm run x", "npm run x </dev/null"))
    assert.isFalse(covers("npm run x", "echo a | npm run x"))
  })
})

describe("paths of other tools", () => {
  const rules = PermissionRule.compile({ tools: [], patterns: ["write(*path=src/*)"], arguments: ["docs"] })
  const call = (path: unknown) =>
    PermissionRule.subject({ tool: "write", params: { path }, pathFields: ["path"], workspace: "/w/project" })

  it.each(["src/a", "./src/a", "src//a", "src/./a", "x/../src/a", "/w/project/src/a", "docs", "./docs/"])(
    "are compared by their shortest text: %j",
    (path) => assert.isDefined(PermissionRule.allows(rules, call(path)))
  )

  it.each([
    "src/../package.json",
    "./src/.././package.json",
    "src/a/../../b",
    "/src/a",
    "../src/a",
    "/w/project/src/../x",
    "docs/.."
  ])("do not climb out of what is allowed: %j", (path) => assert.isUndefined(PermissionRule.allows(rules, call(path))))

  it("are found by what denies them, however they are written", () => {
    const deny = PermissionRule.compile({ tools: [], patterns: ["write(path=src/secret*)"], arguments: [] })
    for (const path of ["src/secret", "./src/secret", "src/x/../secret", "/w/project/src//secrets"]) {
      assert.isDefined(PermissionRule.denies(deny, call(path)), path)
    }
    assert.isUndefined(PermissionRule.denies(deny, call("src/open")))
  })

  it("in patterns are shortened as well", () => {
    const dotted = PermissionRule.compile({ tools: [], patterns: ["write(path=./src//*)"], arguments: [] })
    assert.isDefined(PermissionRule.allows(dotted, call("src/a")))
    assert.isUndefined(PermissionRule.allows(dotted, call("a")))
  })
})

describe("a blank command", () => {
  it.each(["", "  ", "\n"])("%j is remembered as itself", (text) => {
    const key = PermissionRule.rememberKey(command(text))
    assert.strictEqual(key, "$ ")
    assert.isDefined(PermissionRule.entriesAllow([key], command("")))
    assert.isUndefined(PermissionRule.entriesAllow([key], command("ls")))
    assert.isUndefined(PermissionRule.entriesAllow([key], PermissionRule.subject({ tool: "run_command", params: {} })))
  })

  it("or none is remembered for nothing else", () => {
    for (const params of [{}, { command: 7 }, { command: ["ls"] }, null]) {
      const missing = PermissionRule.subject({ tool: "run_command", params, commandField })
      const key = PermissionRule.rememberKey(missing)
      assert.notStrictEqual(key, "run_command")
      assert.isUndefined(PermissionRule.entriesAllow([key], command("ls")))
    }
  })
})

describe("names of tools", () => {
  it("are exact, but for all tools of one server", () => {
    const rules = PermissionRule.compile({ tools: ["mcp__github__*", "read*"], patterns: [], arguments: [] })
    const allows = (tool: string) => PermissionRule.allows(rules, PermissionRule.subject({ tool, params: {} }))
    assert.strictEqual(allows("mcp__github__list"), "mcp__github__*")
    assert.isUndefined(allows("mcp__githubx__list"))
    assert.isUndefined(allows("read_file"))
    assert.isTrue(PermissionRule.isServer("mcp__a__*"))
    for (const name of ["mcp__*", "mcp__a*", "mcp__a__b*", "*", "mcp__a__b__*"])
      assert.isFalse(PermissionRule.isServer(name), name)
  })
})

/** In the workspace `/w`, by the harmless table alone. */
const reads = (text: string, confined = false): boolean =>
  isByTable(
    PermissionRule.subject({
      tool: "run_command",
      params: { command: text },
      commandField,
      pathFields: ["cwd"],
      workspace: "/w",
      repository: "harmless",
      confined
    })
  )

describe("an option", () => {
  it.each<readonly [listed: string, ...unlisted: ReadonlyArray<string>]>([
    ["ls -la --color=auto --sort=size -w 80", "ls --colo", "ls --color=auto --foo", "ls -lay"],
    ["cat -n a", "cat --num a", "cat -nx a", "cat -n5 a"],
    ["head -n 5 -c5 -20 a", "head -n x a", "head -n --lines a", "head -nq a", "head --line=5 a"],
    ["head -n -5 --lines=5 a", "head --lines -x a", "head -5q a"],
    ["tail -fn 20 +5 a", "tail --pi=5 a", "tail -n5 -J a"],
    [
      "grep -e x --include='*.ts' -m 3 -d skip a",
      "grep -e -x a",
      "grep --includ=x a",
      "grep --exclude-from=x a",
      "grep -rex a"
    ],
    ["grep -c -- -x a", "cat -- -n", "sort -- -o a", "git log -- --output=x"],
    ["cut -d: -f1,3- -s a", "cut -d -f1 a", "cut -sd: a", "cut --fields a -o"],
    [
      "sort -t, -k2,2n -u a",
      "sort -k -o a",
      "sort -t -o a",
      "sort -T . a",
      "sort --random-source=a b",
      "sort --files0-from=a"
    ],
    ["uniq -c -f 1 a", "uniq -f 1 a b", "uniq -f a b", "uniq -cf x a", "uniq -- a b", "uniq {a,b}", "uniq *"],
    ["xxd -c 16 -s -5 -l5 a", "xxd -cx a b", "xxd -au a", "xxd -r a", "xxd -revert a", "xxd -s a b", "xxd -n x a b"],
    ["base64 -d a", "base64 a b", "base64 -d -o b a", "base64 --decod a", "base64 -i a -o b"],
    ["date -u -d yesterday +%F", "date -s now", "date -d -s", "date -f a", "date -r a", "date 0101", "date -u 0101"],
    ["file -b --mime-type a", "file -C a", "file -f a", "file -z a", "file -p a", "file --mime-typ a"],
    ["strings -n 8 -8 a", "strings @a", "strings a @b", "strings -T x a"],
    ["sha256sum -b a", "sha256sum -c a", "sha256sum --check a", "sha256sum -bc a"],
    ["tree -aL 2 -I x", "tree -Lo 2 x", "tree -R", "tree -o x", "tree --fromfile a", "tree --infofile=a"],
    [
      "diff -uN -U5 --label a b c",
      "diff -l a b",
      "diff --from-file=a b",
      "diff -X a b c",
      "diff -S a b c",
      "diff --to-file a b"
    ],
    [
      "rg -nA 2 -g '*.ts' -t ts x",
      "rg --pre=x y",
      "rg -z x",
      "rg -f a",
      "rg --ignore-file=a x",
      "rg --hostname-bin=x y"
    ],
    [
      "fd -HI -e ts -d 3 x",
      "fd -l",
      "fd -x rm",
      "fd -X rm",
      "fd --exec=rm",
      "fd --ignore-file a",
      "fd --search-path a"
    ],
    [
      "find . -mtime -7 -newermt 2024-01-01",
      "find . -newer a",
      "find . -fprint a",
      "find . -files0-from a",
      "find . -ok x {} +"
    ],
    ["wc -lwc a", "wc --files0-from=a", "wc -lq a", "wc --line a"],
    ["du -shd1 --exclude=x .", "du -X a .", "du --files0-from=a", "du --exclude-from a"],
    ["ps aux", "ps auxe", "ps e", "ps -auxe", "ps -o environ", "ps auxo env", "ps -eE"],
    ["getconf PATH", "getconf -v ./x PATH"],
    ["sed -n 1,5p a", "sed -n 'r b' a", "sed -n '1w b' a", "sed 1,5d a", "sed -f b a", "sed -n p a"],
    ["[ -d a ]", "[ -d a", "[ 'a[$(x)]' -eq 0 ]", "[ -v a ]"],
    [
      "git diff -M90% -U5 --stat=80",
      "git diff -O a",
      "git diff --no-index a b",
      "git diff --outpu=a",
      "git diff -Mp5 --output=x"
    ],
    ["git grep -nA 3 -e x", "git grep -f a", "git grep -Ox y", "git grep -nO x", "git grep --no-index x"],
    ["git blame -L 1,5 a", "git blame --contents a b", "git blame -S a b", "git blame --ignore-revs-file a b"],
    ["git ls-files -o -x '*.o'", "git ls-files -X a", "git ls-files --exclude-per-directory=a"],
    [
      "git branch --list 'x*'",
      "git branch -a x",
      "git branch -v --no-color x",
      "git branch --contains x y",
      "git branch -r --list x"
    ],
    ["git tag --sort=-creatordate", "git tag -n 3", "git tag --sort x y", "git tag --points-at x y"],
    ["git reflog -5", "git reflog -5 expire", "git reflog delete x"],
    ["printf '%s\\n' a", "printf -v a b"]
  ])("is harmless as it is listed, as in %j, and in no other form", (listed, ...unlisted) => {
    assert.isTrue(reads(listed), listed)
    for (const text of unlisted) {
      assert.isFalse(reads(text), text)
      assert.isFalse(reads(text, true), text)
    }
  })
})

describe("a program that reads more files than its operands", () => {
  it.each([
    `jq -n 'import "token" as $x {search:"/home"}; $x'`,
    "jq . a",
    "ls | xargs cat",
    "echo a | base64 -d | xargs head",
    "du -sh *",
    "cat *.md",
    "nice wc -l ?a",
    "find . -name x | xargs grep -l y"
  ])("only reads where a sandbox holds it: %j", (text) => {
    assert.isFalse(reads(text))
    assert.isTrue(reads(text, true))
    const key = (confined: boolean) => CommandLine.remembered(text, "", undefined, confined)._tag
    if (text.startsWith("jq")) assert.deepStrictEqual([key(false), key(true)], ["Exact", "Program"])
  })

  it.each([
    "jq -f a b",
    "jq -L . a",
    "jq --slurpfile x y z",
    "jq --rawfile x y z",
    "ls | xargs sort",
    "ls | xargs git log",
    "ls | xargs jq .",
    "awk 1 a",
    "sed -n 'r b' a",
    "ls | xargs xxd",
    "sort *",
    "git log *",
    "file *",
    "ls */x",
    "ls $X",
    "ls $(x)*",
    "ls {a,b}*",
    "A=$X ls *",
    "ls * <$X",
    "ls <$X",
    "env *",
    "timeout 5 *",
    "sh -c *",
    "*",
    "printenv",
    "env"
  ])("or not even there: %j", (text) => {
    assert.isFalse(reads(text, true))
  })
})

describe("a link of the repository, where nothing confines", () => {
  it.each([
    ["cat ./*", "cat ./a"],
    ["cat */id", "cat d/id"],
    ["head d*/id", "head d/id"],
    ["tail ./[k]ey.txt", "tail './[k]ey.txt'"],
    ["wc -l d/?", "wc -l 'd/?'"],
    ["env cat ./*", "env cat ./a"],
    ["timeout 5 nice cat d*/x", "timeout 5 nice cat d/x"],
    ["ls d*/sub", "ls d/sub"],
    ["diff a* b", "diff a b"],
    ["grep x ./*", "grep './*' x"],
    ["find d*/ -name x", "find d/ -name 'd*/x'"],
    ["grep -R x .", "grep -r x ."],
    ["grep -nRi x .", "grep -nri x ."],
    ["grep --dereference-recursive x .", "grep --recursive x ."],
    ["rg -L x", "rg -l x"],
    ["rg --follow x", "rg --files"],
    ["fd -L x", "fd -l x"].map((text) => text.replace("-l", "-H")),
    ["fd --follow x", "fd --hidden x"],
    ["find -L . -name x", "find -P . -name x"],
    ["find . -follow -name x", "find . -name x"],
    ["ls -LR", "ls -R"],
    ["ls --dereference", "ls -l"],
    ["du -L .", "du -s ."],
    ["tree -l", "tree -a"],
    ["diff -r a b", "diff -r --no-dereference a b"],
    ["diff -ru a b", "diff -u a b"],
    ["diff --recursive a b", "diff --brief a b"],
    ["find . -exec cat {} +", "find . -type f -exec cat {} +"],
    ["find . -exec cat {} + -type f", "find . -type f -name x -exec cat {} +"],
    ["find . ! -type f -exec cat {} +", "find . ! -name x -type f -exec cat {} +"],
    ["find . -type f -o -exec cat {} +", "find . '(' -name a -o -name b ')' -type f -exec cat {} +"],
    ["find . '(' -type f -o -name x ')' -exec cat {} +", "find . -type f '(' -name a -o -name b ')' -exec cat {} +"],
    ["find . -type f , -exec cat {} +", "find . -type f -exec cat {} ';' -exec head {} ';'"],
    ["find . -type f -exec cat {} ';' -o -exec cat {} ';'", "find . -type f -exec grep x {} ';' -print"],
    ["find . -type l -exec cat {} +", "find . -type f -exec env cat {} +"]
  ])("is not followed by what runs unasked: %j is asked, %j is not", (asked = "", unasked = "") => {
    assert.isFalse(reads(asked), asked)
    assert.isTrue(reads(unasked), unasked)
  })

  it("matters to nothing that only names it", () => {
    for (const text of ["echo ./*", "printf '%s\\n' ./*", "git diff src/*.ts", "git log -- ./*"])
      assert.isTrue(reads(text), text)
  })
})

describe("a line that may change variables", () => {
  it.each([
    "env -i git status",
    "env - git status",
    "env -u GIT_CONFIG_COUNT git status",
    "env -- git status",
    "command env -i git status",
    "timeout 5 nohup env -i git log",
    "time env -i git status",
    "find . -maxdepth 0 -exec env -i git status ';'",
    "stdbuf -oL git status",
    "xargs --process-slot-var=GIT_CONFIG_COUNT git status",
    "exec -c git status",
    "GIT_CONFIG_COUNT=0 git status",
    "A=1 ls",
    "unset GIT_CONFIG_COUNT; git status",
    "(unset GIT_CONFIG_COUNT; git status)",
    "export GIT_CONFIG_COUNT=0 && git status",
    "GIT_CONFIG_COUNT=0; git status",
    "for GIT_CONFIG_COUNT in 0; do git status; done",
    "if GIT_CONFIG_COUNT=0; then git status; fi",
    "((GIT_CONFIG_COUNT=0)); git status",
    "ls $((GIT_CONFIG_COUNT=0)); git status",
    "cat <<E\n$((GIT_CONFIG_COUNT=0))\nE\ngit status",
    "true {GIT_CONFIG_COUNT}>/dev/null; git status",
    "read GIT_CONFIG_COUNT </dev/null; git status",
    "printf -v GIT_CONFIG_COUNT 0; git status",
    "getopts a GIT_CONFIG_COUNT; git status",
    "git() { command git; }; git status",
    "alias git=x\ngit status",
    "set -k; git status GIT_CONFIG_COUNT=0",
    "env -i ls"
  ])("is not harmless, confined or not: %j", (text) => {
    assert.isFalse(reads(text))
    assert.isFalse(reads(text, true))
  })

  it("is so for wrappers that a person allowed", () => {
    const wrapped = (text: string) =>
      PermissionRule.entriesAllow(["sudo *", "env -i *", "doas *", "sh -c *", "git", "ls"], command(text)) !== undefined
    for (const text of ["sudo git status", "doas git status", "sudo ls", "env -i git log", "sudo sh -c 'git status'"])
      assert.isFalse(wrapped(text), text)
    assert.isTrue(wrapped("sh -c 'git status; ls'"))
  })

  it("is one with a wrapper that hands its variables on", () => {
    for (const text of ["env git status", "nice -n 5 git log", "timeout 5 git diff", "nohup ls", "time git status"])
      assert.isTrue(reads(text), text)
  })
})

describe("what Assent remembers or reads into a word", () => {
  const never = [
    ["helm template x", "--post-renderer ./evil"],
    ["just test", "--shell ./evil"],
    ["gradle test", "-p elsewhere"],
    ["mvn test", "-f other.xml"],
    ["kubectl get pods", "--kubeconfig other"],
    ["npm test", "--script-shell=./evil"],
    ["terraform plan", "-chdir=elsewhere"],
    ["docker ps", "--host x"]
  ] as const

  it.each(never)("covers %j, and no option behind it that was not seen: %j", (text, option) => {
    const [program = ""] = text.split(" ")
    const keys = [PermissionRule.rememberKey(command(text)), program]
    const named = PermissionRule.compile({ tools: [], patterns: [program], arguments: [program] })
    const isAllowed = (line: string) =>
      PermissionRule.entriesAllow(keys, command(line)) !== undefined ||
      PermissionRule.allows(named, command(line)) !== undefined ||
      reads(line)
    assert.isTrue(isAllowed(text))
    for (const line of [
      `${text} ${option}`,
      text.replace(" ", ` ${option} `),
      `env ${text} ${option}`,
      `${program} ${option}`
    ])
      assert.isFalse(isAllowed(line), line)
  })

  it("is less than what a person writes: a star means any words", () => {
    for (const [text, option] of never.slice(0, 1))
      assert.isDefined(PermissionRule.entriesAllow([`${text}*`], command(`${text} ${option}`)))
  })

  it("covers of no program outside of the table more than its very text", () => {
    for (const program of [
      "helm",
      "just",
      "gradle",
      "mvn",
      "kubectl",
      "make",
      "cargo",
      "python3",
      "awk",
      "tee",
      "unknown"
    ])
      for (const words of ["", " test", " --help", " -n x"])
        assert.strictEqual(CommandLine.remembered(`${program}${words}`)._tag, "Exact")
  })
})
