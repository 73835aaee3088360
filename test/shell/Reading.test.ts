/** What looks like reading: it runs unasked in the reading view, where the kernel lets nothing be written. */
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as CommandReader from "../../src/shell/CommandReader.js"
import { commandField } from "../kit/Commands.js"
import * as OrdinaryLines from "../kit/OrdinaryLines.js"
import * as ReadingLines from "../kit/ReadingLines.js"
import * as Runs from "../kit/Runs.js"
import * as ShellLines from "../kit/ShellLines.js"

const subject = (command: string, confined = true) =>
  PermissionRule.subject({ tool: "run_command", params: { command }, commandField, confined, workspace: "/w" })

/** By no other rule. */
const looksLikeReading = (command: string, confined = true): boolean => PermissionRule.reads(subject(command, confined))

/** `@{` stands for `${`, which a template cannot hold. */
const lines = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll("@{", "${")
    .split("\n")
    .filter((line) => line.trim() !== "")

describe("what looks like reading", () => {
  it.each(
    lines(String.raw`
for f in a b; do cat "$f" | head -3; done
for f in $(git ls-files '*.ts'); do wc -l $f; done
for ((i = 0; i < 3; i++)); do sed -n "$((i + 1))p" a; done
while read -r a b; do echo "$b $a"; done < a
while IFS=, read -ra all; do printf '%s\n' "@{all[0]}"; done < <(cut -d: -f1 a)
until [ -f a ]; do sleep 1; done
if [ -d a ] && ! grep -q x a; then ls a; elif test -f b; then cat b; else pwd; fi
case "$x" in a|b) ls;; *.ts) cat "$x";; esac
{ ls; pwd; } 2>&1 | head
[[ $x == a* && -d b ]] && ls
n=0; ((n++)); echo $n
all=(a b "c d"); printf '%s\n' "@{all[@]}"
cat <<'E' | wc -l
cat <<< "$x" | tr a b
diff <(sort a) <(sort b)
x=$(git rev-parse HEAD); git show --stat "$x"
LC_ALL=C sort a | uniq -c
GIT_PAGER=cat PAGER= git log -3
export TZ=UTC; date
set -euo pipefail; ls; exit 0
shopt -s globstar nullglob; ls **/*.ts
unset x; declare -a y; local z=1
mapfile -t all < a; echo "@{#all[@]}"
cat /etc/os-release ~/.profile ../x
cd /etc && ls; cd - ; pushd .. ; popd
cat $f *.md d*/x {a,b}
grep -R x . ; find -L . -name '*.ts' ; ls -LR
find $d -name '*.ts' -exec grep -l x {} +
find . -exec sh -c 'wc -l "$1"' _ {} \;
ls | xargs -n1 sed -n 1p
ls | xargs sh -c 'cat "$@"' _
sh -c 'cat a | wc -l' _ x
timeout 5 nice cat a
env ; env | grep x ; printenv PATH
awk -F: -v n=1 '$3 > 5 && /a|b/ { print $1 " > " $2 } END { printf "%d\n", NR }' a
awk "{ print \$1 }" a
sed -e 's/a/b/g; /x/d' -e '1,5p' a
sed -nE 's|(.*)/w|\1|p' a
sed "s/x/$y/" a
sed '/a/,/b/{/c/!d;s/x/y/;}' a
sed -n '$=' a
jq -f x.jq a ; yq '.a' b
tree -L 2 ; file a ; stat a
unzip -l a.zip ; zipinfo a.zip ; tar -tvzf a.tgz ; tar tf a ; gzip -dc a.gz | head ; gzip -l a.gz ; zcat a
xxd a | head ; xxd -r -p a ; hexdump -C a ; nm a ; objdump -d a ; readelf -h a ; strings a
node --version ; npm -v ; npm ls --depth=0 ; npm run ; npm config get registry ; pnpm why x ; yarn list
python3 --version ; pip list ; pip show x ; python3 -m json.tool a ; python -m pip freeze
cargo --version ; cargo tree --offline ; cargo metadata --offline --no-deps ; rustc -V
go version ; go list ./... ; go env GOPATH ; java -version ; tsc --version ; docker --version ; gh --version
bash --version ; make --version ; gcc -v ; ssh -V
command -v node ; type ls ; which -a git ; date -u ; id ; uname -a ; ps aux ; df -h ; du -sh .
git log --format='%h %s' ; git --no-pager diff --stat HEAD~1 ; git -C sub status ; git branch -a ; git tag -l 'v*'
git stash list ; git stash show -p ; git remote -v ; git config --get user.name ; git config --list ; git worktree list
git submodule status ; git rev-parse HEAD ; git ls-files ; git blame a ; git shortlog -sn ; git describe ; git cat-file -p HEAD
git grep x ; git reflog ; git diff --no-index a b ; git -c color.ui=always log ; git apply --check p ; git bisect log
sqlite3 -readonly a.db 'select 1' ; sqlite3 a.db .schema
echo "1 + 2" | bc ; seq 3 | factor
ls > /dev/null 2>&1 ; ls 2>/dev/null >&2
cat a & wait
true && { echo a; } || false
watch -n 1 df
`).map((line) => (line.startsWith("cat <<'E'") ? `${line}\n$(rm x)\nE` : line))
  )("runs unasked: %j", (line) => assert.isTrue(looksLikeReading(line)))

  it.each(
    lines(String.raw`
for f in a; do rm $f; done
for PATH in .; do ls; done
for LD_PRELOAD in a; do ls; done
while read -r PATH; do ls; done < a
while rm x; do ls; done
if npm test; then ls; fi
if ls; then node x.js; fi
case $(rm x) in a) ls;; esac
{ ls; make; }
! touch a
[[ -n $(rm x) ]]
[[ 'a[$(rm x)]' -eq 0 ]]
[[ -v 'a[$(rm x)]' ]]
test -v "a[1]"
((n++)); rm x
a=($(rm x)); ls
cat <<< $(rm x)
diff <(rm x) a
ls > >(rm x)
ls > a
ls | tee a
cat a >> b
ls 2> log
PATH=. ls
LD_PRELOAD=x ls
BASH_ENV=x ls
GIT_EXTERNAL_DIFF=x git diff
GIT_PAGER=less git log
PATH=.; ls
export PATH=.; ls
declare PATH=.; ls
unset GIT_CONFIG_COUNT; git status
read PATH < a; ls
: @{PATH:=.}; ls
: $((PATH = 1)); ls
: @{x@P}
env -i git status
env PATH=. ls
env $x ls
timeout $t ls
nice $x
$x a
"$x" a
$(echo rm) a
xargs $x
ls | xargs rm
ls | xargs env
ls | xargs find .
ls | xargs uniq
ls | xargs sh -c
find . -delete
find . -fprint a
find . -execdir cat {} +
find . -exec rm {} +
find . -exec sh -c 'cat {}' \;
find . -exec $x {} +
sh a
sh -c "$x"
sh -c "cat $x"
bash -s < a
echo ls | bash
bash -v < a
eval ls
. ./a
source a
exec ls
trap 'rm x' EXIT
alias ls=rm
hash -p ./x ls; ls
printf -v PATH x
let 'a[$(rm x)]'
jobs -x rm
wait -p 'a[$(rm x)]'
set -k; git status PATH=x
shopt -s expand_aliases
mapfile -C rm -c 1 < a
declare -i 'x=a[$(rm y)]'
unset 'a[$(rm x)]'
awk '{ print > "a" }' b
awk '{ print | "sh" }' b
awk 'BEGIN { system("rm x") }'
awk '{ "rm x" | getline }' b
awk -f a b
gawk -i inplace 1 a
sed -i s/a/b/ a
sed -ni p a
sed --in-place s/a/b/ a
sed 's/a/b/w out' a
sed 's/a/b/e' a
sed '1w out' a
sed '1e rm x' a
sed -n '/a/{
sed -f a b
sort -o a b
sort --compress-program=x a
uniq a b
xxd a b
xxd -r a b
tree -o a
date -s now
yq -i .a b
rg --pre x y
fd -x rm
bat --pager=x a
git push
git commit -m x
git branch x
git branch -D x
git tag x
git stash
git stash drop
git remote add a b
git config a b
git config --unset a
git worktree add x
git submodule update
git reflog expire
git log --output=x
git diff --ext-diff
git grep -Ox y
git -c core.pager=x log
git -c alias.x=!rm x
git --exec-path=x log
git $x
git $x log
git ls-remote x
git fetch
git symbolic-ref HEAD x
git apply p
gzip a
gunzip a
tar xf a
tar cf a b
tar tf a --to-command=x
tar -tf a -I x
unzip a.zip
unzip -o a.zip
npm test
npm ci
npm outdated
npm run x
npm config set a b
npx x
node x.js
node -e 1
python x.py
python3 -c 1
python3 -m http.server
python3 -m json.tool a b
pip install x
cargo build
cargo run
go build
go env -w a=b
go list -toolexec=x
make
make -n
docker ps
curl x
ldd a
sqlite3 a.db 'delete from a'
sqlite3 a.db '.shell rm x'
sqlite3 a.db
rm a
mv a b
cp a b
touch a
mkdir a
chmod +x a
kill 1
sudo ls
./ls
/bin/ls
f() { rm x; }; f
function ls { rm x; }; ls
coproc rm x
crontab -r
ip link set a up
hostname x
`)
  )("is asked: %j", (line) => assert.isFalse(looksLikeReading(line)))

  it("is asked where nothing confines", () => {
    for (const line of ["for f in a; do cat $f; done", "cat $x", "awk 1 a", "node --version"])
      assert.isFalse(looksLikeReading(line, false), line)
  })

  it("does not add up with other rules, because those run where files can be written", () => {
    const compiled = PermissionRule.compile({ tools: [], patterns: ["npm test*"], arguments: [] })
    const known = (command: string) =>
      PermissionRule.together(subject(command), { entries: [], compiled, readers: true })
    assert.deepStrictEqual(known("npm test | tail -5"), {
      rules: ["npm test*", "programs that only read"],
      allowed: ["npm test", "tail -5"],
      missing: []
    })
    for (const line of [
      "npm test; cat $x",
      "npm test | awk '{print $1}'",
      "for f in a; do npm test; done",
      "npm test; find $x"
    ])
      assert.isNotEmpty(known(line)?.missing, line)
  })
})

describe("three hundred ordinary lines", () => {
  it("run unasked if they read, and most of the others are asked", () => {
    const { other, reading } = OrdinaryLines.all
    const unasked = (some: ReadonlyArray<string>) => some.filter((line) => looksLikeReading(line)).length
    assert.deepStrictEqual(
      { reading: reading.length, unasked: unasked(reading), other: other.length, unaskedToo: unasked(other) },
      { reading: 148, unasked: 144, other: 152, unaskedToo: 0 }
    )
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// generated lines
// ---------------------------------------------------------------------------------------------------------------------

/** Runs each line in a shell of its own, and says of which `evil` ran. */
const ranEvil = async (shell: string, root: string, texts: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const log = join(root, "log")
  writeFileSync(log, "")
  const program =
    'n=0; while [ $# -gt 0 ]; do export LINE=$n; n=$((n+1)); ( cd "$ROOT/w" || exit; set +m; eval "$1" ) </dev/null >/dev/null 2>&1; shift; done'
  await new Promise<void>((resolve, reject) => {
    const child = spawn(shell, ["-c", program, shell, ...texts], {
      env: {
        PATH: `${root}/bin:/usr/bin:/bin`,
        HOME: root,
        ROOT: root,
        LOG: log,
        x: "$(evil)",
        E: "evil",
        e: "; evil ;"
      },
      stdio: "ignore"
    })
    child.on("error", reject)
    child.on("close", () => resolve())
  })
  return [...new Set(readFileSync(log, "utf8").split("\n"))].flatMap((number) => texts[Number(number || "x")] ?? [])
}

describe("generated lines that look like reading", () => {
  it("start no program that is in no table, in any shell", async () => {
    const root = mkdtempSync(join(tmpdir(), "reading-"))
    try {
      for (const place of ["bin", "w/sub", "w/1"]) mkdirSync(join(root, place), { recursive: true })
      for (const place of ["bin/evil", "w/evil", "w/cat", "w/ls", "w/1/cat", "w/1/ls"]) {
        writeFileSync(join(root, place), '#!/bin/sh\necho "$LINE" >> "$LOG"\n')
        chmodSync(join(root, place), 0o755)
      }
      for (const file of ["a", "b", "x", "sub/c"]) writeFileSync(join(root, "w", file), `${file}\n`)
      const random = ShellLines.randomOf(20_261_129)
      const allowed = new Set<string>()
      for (let i = 0; i < Runs.of(160_000); i++) {
        const text = ReadingLines.line(random)
        // They never end without a terminal.
        if (/watch|tail -f|sleep|yes/.test(text)) continue
        if (looksLikeReading(text)) allowed.add(text)
      }
      const texts = [...allowed].filter((text) => /evil|[;&|(\n]/.test(text)).slice(0, Runs.of(12_000))
      assert.isAbove(texts.length, Runs.of(6_000))
      assert.isAbove(texts.filter((text) => text.includes("evil")).length, Runs.of(600))
      assert.isAbove(texts.filter((text) => /\b(?:done|fi|esac)\b/.test(text)).length, Runs.of(900))
      for (const shell of ["/bin/dash", "/bin/bash"].filter((path) => existsSync(path)))
        assert.deepStrictEqual(await ranEvil(shell, root, texts), [], shell)
      // It would be seen.
      assert.deepStrictEqual(await ranEvil("/bin/sh", root, ["ls", "if true; then evil; fi"]), [
        "if true; then evil; fi"
      ])
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  }, 300_000)
})

describe("a denied program in a structure", () => {
  // Each here-document has a delimiter of its own: the body of an outer one ends at the first line that is its delimiter.
  const around = fc.constantFrom<(text: string) => string>(
    (text) => `for f in a b; do ${text}; done`,
    (text) => `for f in $(${text}); do ls; done`,
    (text) => `for ((i = 0; i < 2; i++)); do ${text}; done`,
    (text) => `while ${text}; do ls; done`,
    (text) => `while read -r x; do ls; ${text}; done < a`,
    (text) => `until ls\ndo\n  ${text} # x\ndone`,
    (text) => `if ${text}; then ls; fi`,
    (text) => `if ls; then ${text}; else pwd; fi`,
    (text) => `if ls; then pwd; elif ls; then pwd; else ${text}; fi 2>&1`,
    (text) => `case $x in a|b) ls;; (*) ${text};; esac`,
    (text) => `case $(${text}) in a) ls\nesac`,
    (text) => `{ ls; ${text}; }`,
    (text) => `( ${text} ) | cat`,
    (text) => `! ${text}`,
    (text) => `[[ -n $(${text}) && -f b ]]`,
    (text) => `[[ -f a ]] && ${text}`,
    (text) => `x=$(${text}); ls`,
    (text) => `x=(a $(${text}) b)`,
    (text) => `cat <(ls) <(${text})`,
    (text) => `ls > >(${text})`,
    (text) => `cat <<E${text.length}\n$(${text})\nE${text.length}`,
    (text) => `cat <<'E${text.length}'\nx\nE${text.length}\n${text}`,
    (text) => `cat <<< "$(${text})"`,
    (text) => `echo "\${x:-$(${text})}" $(( $(${text}) + 1 ))`,
    (text) => `f() { ${text}; }; f`,
    (text) => `ls & ${text}`,
    (text) => `true || ${text}`
  )
  const denied = PermissionRule.compile({ tools: [], patterns: ["git push*"], arguments: [] })

  it("is found, and nothing that allows the rest allows it", () => {
    const allowing = PermissionRule.compile({
      tools: [],
      patterns: ["ls*", "cat*", "echo*", "pwd", "true", "read*"],
      arguments: []
    })
    fc.assert(
      fc.property(
        fc.constantFrom("git push", "git push origin main", "sudo git push"),
        fc.array(around, { maxLength: 4 }),
        (text, wraps) => {
          const whole = wraps.reduce((known, wrap) => wrap(known), text)
          const found = subject(whole)
          assert.isDefined(PermissionRule.denies(denied, found), whole)
          assert.isUndefined(PermissionRule.allows(allowing, found), whole)
          assert.isFalse(looksLikeReading(whole), whole)
        }
      ),
      { numRuns: Runs.of(5_000) }
    )
  })

  it("is not found in what is data there", () => {
    for (const text of [
      "for f in git push; do ls; done",
      "case 'git push' in git) ls;; esac",
      "cat <<'E'\ngit push\n$(git push)\nE",
      "cat <<E\ngit push\nE",
      "[[ $x == 'git push' ]]",
      "x=('git push' git push)",
      "cat <<< 'git push'"
    ])
      assert.isUndefined(PermissionRule.denies(denied, subject(text)), text)
  })
})

describe("a structure", () => {
  const rules = PermissionRule.compile({ tools: [], patterns: ["npm test*", "git status", "echo *"], arguments: [] })
  const isAllowed = (text: string) => PermissionRule.allows(rules, subject(text, false)) !== undefined

  it("is allowed by patterns that allow all of it", () => {
    for (const text of [
      "if npm test; then echo ok; else echo failed; fi",
      "{ npm test; git status; } 2>&1",
      "! npm test",
      "while npm test; do echo again; done",
      "case x in x) npm test;; esac",
      "echo a <<'E' && npm test\nx\nE"
    ])
      assert.isTrue(isAllowed(text), text)
  })

  it("is asked about if it changes a variable, a directory or the meaning of a name", () => {
    for (const text of [
      "for f in a; do npm test; done",
      "for ((i=0;i<2;i++)); do npm test; done",
      "while read x; do npm test; done",
      "if x=1; then npm test; fi",
      "if cd ..; then npm test; fi",
      "{ export A=1; npm test; }",
      "((A++)); npm test",
      "case ${A:=1} in x) npm test;; esac",
      "case $((A=1)) in x) npm test;; esac",
      "if npm test; then rm x; fi",
      "while npm test; do rm x; done"
    ])
      assert.isFalse(isAllowed(text), text)
  })

  it("that loops runs what stands before a change of directory behind it", () => {
    const entry = "npm run x"
    const covers = (text: string) => PermissionRule.entriesAllow([entry, "echo *"], subject(text, false)) !== undefined
    assert.isTrue(covers("while npm run x; do echo a; done"))
    assert.isFalse(covers("while npm run x; do cd sub; done"))
    assert.isTrue(covers("if npm run x; then cd sub; fi"))
  })
})

describe("a line that is Git's", () => {
  const isGit = (text: string): boolean => {
    const line = Either.getOrUndefined(CommandReader.parse(text))
    return CommandReader.isGit(text, line, CommandReader.startedBy(text, line))
  }

  it.each([
    "git status",
    'git add -A && git commit -m "x"',
    "git commit -m \"$(cat <<'EOF'\nit's (x)\nEOF\n)\"",
    "git commit -F - <<'EOF'\nx > .git/hooks/a\nEOF",
    "cd sub && git stash pop",
    "GIT_EDITOR=true git rebase --continue",
    "git diff --name-only | xargs git add",
    "git -c user.name=A commit -am x",
    'git rebase -x "npm test" main',
    "git log --oneline | head -5 > log.txt",
    "for f in a b; do git add $f; done",
    "if git diff --quiet; then echo none; else git commit -am x; fi",
    'if [[ -n $(git status -s) ]]; then git commit -am "$(date +%F)"; fi',
    'b=$(git branch --show-current); git push -u origin "$b"',
    "find . -name '*.ts' | xargs git add",
    "env GIT_AUTHOR_NAME=a git commit -m x",
    "test -f a && cat $x | git apply"
  ])("is one: %j", (text) => assert.isTrue(isGit(text)))

  it.each([
    "ls",
    "sh x.sh; git status",
    "./git commit",
    "npm test && git commit -am x",
    "git log > .git/hooks/x",
    "git log > .GIT/hooks/x",
    "git log > sub/.git/config",
    "git log > $x",
    "git log > .gi*/x",
    "cd .git && git log > hooks/x",
    "cd $x && git status",
    "PATH=. git status",
    "PATH=.; git status",
    "export PATH=.; git status",
    "for PATH in .; do git status; done",
    ": ${PATH:=.}; git status",
    "read PATH < a; git status",
    "env PATH=. git status",
    "GIT_EDITOR=./x git commit",
    "GIT_DIR=x git commit",
    "eval git x",
    "$G commit",
    "git status; $x",
    "alias git=x; git status",
    "git() { x; }; git status",
    "git status | sh",
    "git status | xargs env",
    "git status | xargs",
    "git status | xargs rm",
    "git status | xargs -I{} sh -c {}",
    "sort $x; git status",
    "sort -o .git/x a; git status",
    "find . -delete; git status",
    "find . $x; git status",
    "tee .git/x; git status",
    "sudo git status",
    "sh -c 'git status'",
    "git $(x) commit",
    "git status <(x)",
    "git status; [[ 'a[$(x)]' -eq 1 ]]",
    "if git status; then make; fi",
    "git commit -m 'x"
  ])("is none: %j", (text) => assert.isFalse(isGit(text)))
})
