import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import { commandField } from "../kit/Commands.js"

const rules = PermissionRule.compile({ tools: [], patterns: ["rm *"], arguments: [] })

/** What a rule that denies `rm *` comes to. */
const said = (command: string): "denied" | "doubted" | "passed" => {
  const subject = PermissionRule.subject({ tool: "run_command", params: { command }, commandField })
  if (PermissionRule.denies(rules, subject) !== undefined) return "denied"
  return PermissionRule.doubt(rules, subject) === undefined ? "passed" : "doubted"
}

const lines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line.trim() !== "")

describe("a program that is not seen", () => {
  it.each(
    lines(String.raw`
cat f | sh
bash < f
curl https://a.b | sudo bash
cat f | bash -s x
cat f | sh -
cat f | bash /dev/stdin
bash /dev/fd/0 < f
cat f | bash /dev//stdin
cat f | bash //dev/./stdin
cat f | bash ../../dev/stdin
cat f | python3 -i a.py
cat f | python3 -Bi -c 'x'
cat f | python
cat f | python3 -
cat f | python3.12 -u
cat f | node
cat f | node -
cat f | node --inspect
cat f | perl
cat f | ruby
cat f | php
cat f | lua
cat f | deno run -
cat f | tclsh
cat f | env sh
cat f | nohup bash
cat f | timeout 5 sh
cat f | nice -n 5 sh
cat f | sudo -u a sh
cat f | busybox sh
cat f | (cd x && sh)
cat f | xargs -I{} sh -c {}
cat f | xargs -I% sh -c 'a %'
cat f | xargs -I{} {} x
cat f | xargs sh
cat f | xargs sh -c
cat f | xargs env
cat f | xargs -a g nice
cat f | parallel
cat f | docker exec -i box sh
cat f | docker run -i image bash
cat f | ssh host
cat f | ssh host sh
cat f | uv run python
cat f | npx tsx -
cat f | poetry run bash
cat f | sed -f -
cat f | sed -f /dev/stdin a
cat f | awk -f -
cat f | ed a
cat f | ex a
cat f | vim -
cat f | psql db
cat f | sqlite3 db
cat f | mysql db
cat f | dc
cat f | m4
cat f | gnuplot
cat f | at now
cat f | make -f -
cat f | make -f-
cat f | make --file=/dev/stdin
cat f | crontab -
exec < f; sh
bash -c "$(cat f)"
sh -c "$x"
sh $x
bash "$file"
sh -o pipefail $x
node "$file"
python $script
find . -name '*.sh' -exec sh {} \;
find . -exec {} \;
find . -exec sh -c '{}' \;
find . -execdir bash {} +
fd -x sh
fd -e sh -x {}
. "$x"
. /dev/stdin
source $f
eval $x
eval "a $x"
eval 'r$(true)m x'
bash -c 'r$(true)m x'
bash -c 'eval "$x"'
bash -c "bash -c 'r$()m x'"
ssh host "$x"
ssh host 'a $(b)c d; $e'
ssh -o ProxyCommand=x host
ssh -oProxyCommand=x host
ssh -F x host
scp -S x a b
env -S "$x" a
env -S 'r\_m x'
docker exec box sh -c "$x"
su -c "$x"
script -qc "$x" /dev/null
watch "$x"
trap "$x" EXIT
flock f sh -c "$x"
flock f -c "$x"
npm exec -c "$x"
npx -c "$x"
a='-exec rm {} ;'; find b $a
read d < f; find . $d
find $(cat f)
let "$a"
a='b[$(x)]'; echo $((a))
read a < f; echo $((a))
test -v "$a"
printf -v "$a" x
read "$a" < f
declare "$a"=1
split -l1 --filter=sh f
split --filter="$x" f
sort --compress-program="$x" f
rg --pre sh x
GIT_PAGER=sh git log
git -c core.pager='sh' log
rsync -e sh a b
socat - EXEC:"$x"
socat - EXEC:x
nc -e /bin/x host 1
wget --use-askpass=x y
go test -exec "$x"
cargo --config x build
apt -o APT::Update::Pre-Invoke::=x update
nix-shell --run "$x"
hyperfine "$x"
`)
  )("%s", (line) => assert.strictEqual(said(line), "doubted"))
})

describe("what an option tells to run", () => {
  it.each(
    lines(String.raw`
git -c alias.x='!a' x
git -c alias.x=push x
git -c core.fsmonitor=./x status
git -c core.hooksPath=x commit -m y
git -c include.path=x log
git -c 'filter.x.clean=a' add .
git -c diff.x.textconv=a diff
git -c credential.helper=a fetch
git --config-env=core.pager=X log
git --config-env core.pager=X log
git --exec-path=x log
git -c core.pager="$x" log
git -c$x log
git "$x" log
git clone -c core.fsmonitor=x y
git clone --config=core.fsmonitor=x y
git clone --config core.fsmonitor=x y
git clone ext::a b
git fetch ext::sh x
git rebase -x "$x" main
git rebase --exec="$x"
git rebase $x
git merge -s x a
git merge --strategy=x a
git bisect run $x
git submodule foreach "$x"
git submodule foreach 'r$(true)m x'
git filter-branch --tree-filter "$x"
git difftool -x "$x"
git grep -O"$x" y
git fetch --upload-pack="$x" y
git push --receive-pack="$x" y
git send-email a
git svn x
sed '1e a' x
sed e x
sed 's/a/b/e' x
sed 's/a/b/gew' x
sed 's/a/b/w f' x
sed -n '/a/w f' x
sed -n '1{e a
}' x
sed -e p -e 'e a' x
sed --expression='1e a' x
sed --expression '1e a' x
sed --expr='1e a' x
sed "$x" f
sed -i "s/a/$x/" f
sed -n '/[/]e/e' f
sed -n '\,a,e x' f
sed '$!{N;e
}' f
awk 'BEGIN { system("a") }'
awk '{ print | "sh" }' f
awk '{ "a" | getline x }' f
awk '@load "x"; {}'
awk -l x 1 f
awk -i x 1 f
awk "$x" f
awk '/[/"]/ { print | "sh" } /"/' f
awk '{ a++ / b | "sh" / c }'
awk '# "
{ print | "sh" } # "'
gawk -e 'BEGIN { system("a") }'
awk '{ print |& "sh" }'
make -f /dev/stdin
make --eval='x:;a'
make -E 'x:;a'
make 'X=$(shell a)'
make "CC=$x"
make 'SHELL=/bin/sh -c $(x)'
make 'MAKEFLAGS=--eval=$(shell a)'
make $x
tar xf a --to-command="$x"
tar xf a --to-command 'r$()m x'
tar cf a --checkpoint=1 --checkpoint-action='exec=r$()m x' b
tar -I "$x" -xf a
tar --use-compress-program="$x" -xf a
tar xIf x a
tar -xF "$x" -f a
tar xf a --to-comm=x
tar cf a $x
rsync -e "$x" a b
rsync -ave 'r$()m x' a b
rsync --rsh="$x" a b
rsync -M--x a b
rsync $x a b
zip -T -TT x a b
zip a b --unzip-command=x
man -P "$x" a
man --pager 'r$()m' a
man -H"x" a
less '+!a' f
less -k x f
vim -c '!a' f
vim '+!a' f
nvim --cmd x f
emacs --batch --eval x
emacs -l x
view -S x
psql -c '\! a'
psql db -c 'select 1' -c '\! a'
sqlite3 db '.shell a'
sqlite3 db "select 1;
.system a"
sqlite3 -cmd '.shell a' db
mysql -e '\! a'
mysql -e 'system a'
dc -e '!a'
npm test --script-shell=x
npm --script-sh x test
npm run a --node-options='-r ./x'
npm --userconfig=x test
find . -exec sed '1e a' {} \;
xargs sed 1ea
env -i sed '1e a' x
nohup awk 'BEGIN { system("a") }'
let 'a[$(b)]=1'
test -v 'a[$(b)]'
printf -v 'a[$(b)]' x
declare 'a[$(b)]=1'
alias x="$y"
mapfile -C a b
hash -p /x ls
enable -f x y
complete -C x y
`)
  )("%s", (line) => assert.strictEqual(said(line), "doubted"))
})

describe("a variable that names what is run or loaded", () => {
  it.each(
    lines(String.raw`
PAGER="$x" man a
EDITOR='r$()m x' git commit
GIT_SSH_COMMAND="$x" git fetch
LESSOPEN='|x %s' less a
LD_PRELOAD=./x.so ls
LD_PRELOAD=1 ls
LD_LIBRARY_PATH=. ls
DYLD_INSERT_LIBRARIES=x ls
NODE_OPTIONS='-r ./x' node a.js
BASH_ENV=f bash a.sh
BASH_ENV=1 bash a.sh
ENV=f sh -i
PYTHONSTARTUP=f python -i
PYTHONPATH=. python a.py
PERL5OPT=-Mx perl a.pl
PERL5LIB=. perl a.pl
RUBYOPT=-rx ruby a.rb
JAVA_TOOL_OPTIONS=-javaagent:x java A
MAKEFLAGS='--eval=x:;a' make
PATH=. ls
PATH=.:$PATH; ls
HOME=. git status
XDG_CONFIG_HOME=x git log
IFS=m; a
PS4='$(a)' bash -x b.sh
PROMPT_COMMAND=a bash
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!a' git x
GIT_CONFIG_GLOBAL=x git log
GIT_CONFIG_PARAMETERS="'a.b=c'" git log
GIT_DIR=x git log
GIT_EXEC_PATH=x git log
GIT_PROXY_COMMAND=x git fetch
GIT_TEMPLATE_DIR=x git init
TAR_OPTIONS='--to-command=a' tar xf b
RSYNC_OLD_ARGS=x rsync a b
npm_config_script_shell=x npm test
NPM_CONFIG_NODE_OPTIONS=x npm test
CARGO_TARGET_X86_64_RUNNER=x cargo run
GOFLAGS=-toolexec=x go build
CFLAGS=-fplugin=x make
env 'BASH_FUNC_ls%%=() { a; }' bash b
WHATEVER=./x prog
export PATH=.
export LD_PRELOAD=x
export NODE_OPTIONS=-rx; npm test
declare -x BASH_ENV=f
set -a; BASH_ENV=f; bash x.sh
NODE_OPTIONS=-rx; npm test
env LD_PRELOAD=x ls
env -u A NODE_OPTIONS=-rx npm test
sudo LD_PRELOAD=x ls
nohup env PATH=. ls
bash -c 'LD_PRELOAD=x ls'
xargs env BASH_ENV=f bash a.sh
A=1 LD_AUDIT=x ls
readonly BASH_ENV=f; export BASH_ENV; bash -c a
env "LD_PRELOAD=$x" ls
`)
  )("%s", (line) => assert.notStrictEqual(said(line), "passed"))
})

describe("a text that is there to be read", () => {
  it.each(
    lines(String.raw`
PAGER='rm x' man a
EDITOR='rm x' git commit
GIT_SEQUENCE_EDITOR='rm x' git rebase -i main
GIT_SSH_COMMAND='rm x' git fetch
make SHELL='rm x'
make CC='rm x' all
make CC=rm all
git -c core.pager='rm x' log
git -c core.sshCommand='rm x' fetch
git rebase -x 'rm y' main
git submodule foreach 'rm x'
git submodule foreach --recursive rm x
git bisect run rm x
git difftool -x 'rm x'
git filter-branch --tree-filter 'rm x' HEAD
git clone --upload-pack='rm x' y
git grep -O'rm x' y
tar xf a --to-command='rm x'
tar cf a --checkpoint=1 --checkpoint-action='exec=rm x' b
tar -I 'rm x' -xf a
rsync -e 'rm x' a b
rsync -ae 'rm x' a b
rsync --rsh='rm x' a b
man -P 'rm x' a
ssh h 'cd x && rm y'
ssh h cd x '&&' rm y
env -S 'rm x' ls
watch rm x
trap 'rm x' EXIT
alias ls='rm x'
eval rm x
flock f -c 'rm x'
hyperfine 'rm x'
xargs -I{} rm {}
find . -exec sh -c 'rm "$1"' _ {} \;
docker exec box sh -c 'rm x'
uv run bash -c 'rm x'
python -c "import os; os.system('rm x')"
node -e "require('child_process').execSync('rm x')"
su -c 'rm x'
npm exec -c 'rm x'
python -c "import subprocess; subprocess.run(['rm', 'x'])"
perl -e 'system "rm x"'
perl -e 'exec("rm", "x")'
node -e 'spawn("rm", ["x"])'
ruby -e 'system(%w[rm x])'
split --filter='rm x' f
env PAGER='uv run rm x' man a
`)
  )("%s", (line) => assert.strictEqual(said(line), "denied"))
})

describe("what is known to run nothing else, or only a file", () => {
  it.each(
    lines(String.raw`
npm test
npm run build
npm run build -- --watch
npm install --save-dev x
npm ci --no-audit
npx vitest run a.test.ts
npx tsc --noEmit
pnpm --filter web build
yarn build
node build.js
node --max-old-space-size=4096 build.js
node --test
node -e 'console.log(1)'
node -p 'process.version'
echo x | node -e 'process.stdin.pipe(process.stdout)'
echo x | node script.js
python3 x.py
python3 -m pytest -k a
python3 -c 'print(1)'
cat a.json | python3 -m json.tool
cat a | python3 -c 'import sys; print(sys.stdin.read())'
cat a | python3 -u x.py
perl -pe 's/a/b/' f
cat a | perl -ne 'print if /x/'
cat a | ruby -e 'puts 1'
deno run x.ts
bash deploy.sh
bash -x deploy.sh now
bash -euo pipefail deploy.sh
bash -c 'npm test && npm run lint'
sh -c 'echo "$0"' x
cat a | bash deploy.sh
cat a | while_x
. ./env.sh
source venv/bin/activate
make
make -j8 all
make -C sub test
make V=1 PREFIX=/usr/local CC=gcc CFLAGS='-O2 -g' install
cargo build --release
cargo test
go build ./...
go test -run X ./...
pytest -q
git commit -m x
git commit -am "fix: a & b"
git add -A
git push origin main
git push origin "$branch"
git fetch --all --prune
git log $x
git diff --stat | head
git -c user.name=a -c user.email=b commit -m c
git -c core.pager=cat log
git -c color.ui=never status
git -c commit.gpgsign=false commit -m x
git -C sub status
git --no-pager log -5
git clone https://example.com/a.git b
git rebase main
git rebase -i --autosquash main
git rebase -x 'npm test' main
git bisect run npm test
git submodule update --init
git submodule foreach 'git status'
git merge -s ours main
git grep -n x
git stash pop
ls | grep x
ls -la | wc -l
cat a | sort | uniq -c
cat a | xargs cat
ls | xargs -n1 echo
ls | xargs -I{} cp {} x
ls | xargs npm test
xargs -0 -P4 -n1 echo
find . -name x -exec cat {} +
find . -name x -exec sh -c 'echo "$1"' _ {} \;
sed -i 's/a/b/g' f
sed -i.bak -e 's/a/b/' -e '/x/d' f
sed -n '1,20p' f
sed -n '/a/,/b/p' f
sed 's|a/b|c|; s#d#e#2' f
sed '/^#/d;/^$/d' f
sed '1i\text e rm' f
sed 's/[^a-z]/_/g' f
sed -E 's/(a|b)+/\1/' f
sed '$d' f
sed ':a;N;$!ba;s/\n/ /g' f
sed '1!G;h;$!d' f
sed --quiet --regexp-extended '5q' f
awk '{print $1}' f
awk -F: '{ print $1, $3 }' /etc/passwd
awk -v a=1 'NR > a && /x|y/ { s += $2 } END { print s / NR }' f
awk 'a || b' f
awk -f x.awk f
awk '{ print "a|b" }' f
tar xzf a.tgz
tar -czf a.tgz --exclude=node_modules -C x .
tar xf a --strip-components=1 -C y
tar -xvf "a b.tar"
tar --list --file=a
rsync -avz --delete --exclude node_modules a/ b/
rsync -av -e 'ssh -p 22' a h:b
ssh host
ssh -p 22 -i k h ls -la
ssh -o StrictHostKeyChecking=no h 'cd x && npm test'
scp -r a h:b
man ls
less f
vim f
psql -c 'select 1'
sqlite3 db '.tables'
sqlite3 db 'select * from a'
mysql -e 'show tables'
docker build -t a .
docker run --rm -v a:b image npm test
docker compose up -d
docker exec box ls
kubectl get pods
kubectl apply -f a.yaml
cat a | kubectl apply -f -
cat a | docker load
cat a | jq .
NODE_ENV=test npm test
CI=1 npm test
DEBUG='*' node x.js
PORT=3000 node server.js
FORCE_COLOR=0 npm test
LC_ALL=C sort f
TZ=UTC date
DATABASE_URL=postgres://localhost/a npm test
API_TOKEN=$TOKEN node x.js
GIT_EDITOR=true git rebase --continue
GIT_PAGER=cat git log
EDITOR='code --wait' git commit
GIT_COMMITTER_DATE='2020-01-01' git commit -m x
SKIP_SLOW=1 npm test
CGO_ENABLED=0 GOOS=linux go build
x=1; echo $x
DIR=src; ls "$DIR"
FILES=$(git ls-files); echo "$FILES"
export NODE_ENV=production
export API_URL=https://a.b
env NODE_ENV=test npm test
env | grep x
timeout 60 npm test
timeout -k 5 60 npm test
time npm test
nohup npm start &
nice -n 10 make -j4
sudo apt install x
sudo -u a npm test
command -v node
exec npm start
trap 'echo x' EXIT
trap - EXIT
test -f x
[ -n "$x" ]
printf '%s\n' "$x"
read x < f
cd sub && npm test
mkdir -p a && cp b a/
curl -fsSL https://a.b -o c
gh pr create --title x --body 'a $(b) c'
gh pr view 1
tmux -V
chmod +x a.sh && ./a.sh
eval 'npm test'
watch -n 1 'ls -la'
ionice -c3 npm test
flock f npm test
hyperfine 'npm test'
uv run pytest
poetry run pytest -q
bundle exec rspec
pip install -r requirements.txt
python -m venv .venv
python --version
bash --version
node --version
sh
npm -v
make SHELL=/bin/bash test
n=1; echo $((n + 1))
find "$d" -name x
find . -name "$x"
sort -o a b
sort -k2 a
split -l 100 a
curl -o a https://a.b/c
gcc -O2 -o a a.c
git fetch origin "$branch"
export API_KEY=$X
readonly A=1
x=$(git rev-parse HEAD); git show "$x"
`)
  )("%s", (line) => assert.strictEqual(said(line), "passed"))
})

describe("what runs a program", () => {
  const atom = fc.constantFrom(
    "sh $x",
    'bash -c "$x"',
    "sed '1e a' x",
    "awk 'BEGIN { system(1) }'",
    "git -c alias.x=y x",
    "env LD_PRELOAD=x ls",
    "make --eval=x",
    "tar xf a --to-comm=x",
    "ssh -F x host",
    "rm x"
  )
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const around = fc.constantFrom<(text: string) => string>(
    (text) => `env ${text}`,
    (text) => `env A=1 ${text}`,
    (text) => `nohup ${text}`,
    (text) => `timeout 5 ${text}`,
    (text) => `/usr/bin/nice -n 3 ${text}`,
    (text) => `sudo -u a ${text}`,
    (text) => `echo a | xargs ${text}`,
    (text) => `find . -exec ${text} {} +`,
    (text) => `uv run ${text}`,
    (text) => `docker exec a ${text}`,
    (text) => `bash -c ${quoted(text)}`,
    (text) => `eval ${quoted(text)}`,
    (text) => `ssh host ${quoted(text)}`,
    (text) => `git rebase -x ${quoted(text)} main`,
    (text) => `PAGER=${quoted(text)} man a`,
    (text) => `tar xf a --to-command=${quoted(text)}`,
    (text) => `(ls; ${text})`,
    (text) => `ls && ${text} | cat`,
    (text) => `echo $(${text})`
  )

  it("is never plainer than what it runs", () => {
    fc.assert(
      fc.property(atom, fc.array(around, { maxLength: 3 }), (text, arounds) => {
        const line = arounds.reduce((known, wrap) => wrap(known), text)
        assert.notStrictEqual(said(line), "passed", line)
      }),
      { numRuns: 2000 }
    )
  })
})
