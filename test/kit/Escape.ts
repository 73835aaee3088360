/** Command lines that try to escape from a sandbox, and checks from outside whether one did. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect, createServer, type Server } from "node:net"
import { createSocket, type Socket } from "node:dgram"
import { dirname, join } from "node:path"

/** The surroundings of a workspace, which must not be touched from it. */
export interface CallerContext {
  readonly place: string
  readonly workspace: string
  readonly home: string
  readonly outside: string
  readonly port: number
  readonly reached: () => number
  /** Resolves when all earlier packets have arrived: it sends one of its own, which is queued behind them. */
  readonly arrived: () => Promise<void>
  readonly close: () => void
}

const secret = "s3cr3t-canary"

const gitEnvironment = (home: string) => ({
  PATH: process.env["PATH"] ?? "/usr/bin:/bin",
  HOME: home,
  GIT_CONFIG_NOSYSTEM: "1"
})

const listening = (server: Server, where: number | string) =>
  new Promise<number>((resolve, reject) => {
    server.once("error", reject)
    server.listen(typeof where === "number" ? { port: where, host: "127.0.0.1" } : { path: where }, () => {
      const address = server.address()
      resolve(typeof address === "object" && address !== null ? address.port : 0)
    })
  })

/** Both on one port. Another program may have the port of one of them. */
const listeningTogether = async (tcp: Server, udp: Socket): Promise<number> => {
  const port = await listening(tcp, 0)
  const isBound = await new Promise<boolean>((resolve) => {
    udp.once("error", () => resolve(false))
    udp.bind(port, "127.0.0.1", () => resolve(true))
  })
  if (isBound) return port
  await new Promise((resolve) => tcp.close(resolve))
  return listeningTogether(tcp, udp)
}

/** A repository with one commit, which every world beside this place has a copy of: git takes long to make one. */
const repositoryFor = (place: string): string => {
  const repository = join(dirname(place), "repository")
  if (existsSync(repository)) return repository
  mkdirSync(repository)
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.example", ...args], {
      cwd: repository,
      env: gitEnvironment(repository),
      stdio: "ignore"
    })
  // Without the samples of hooks: every world would copy them, and remove them.
  git("init", "-q", "-b", "main", "--template=")
  writeFileSync(join(repository, "a"), "a\n")
  git("add", "a")
  git("commit", "-qm", "first")
  return repository
}

export const make = async (place: string): Promise<CallerContext> => {
  const [workspace, home, outside] = ["workspace", "home", "outside"].map((name) => join(place, name)) as [
    string,
    string,
    string
  ]
  for (const directory of [
    workspace,
    join(home, ".ssh"),
    join(home, ".config/gh"),
    join(outside, "dir"),
    join(outside, "run")
  ]) {
    mkdirSync(directory, { recursive: true })
  }
  for (const file of [join(home, ".ssh/id"), join(home, ".config/gh/hosts.yml"), join(outside, "secret")])
    writeFileSync(file, `${secret}\n`)
  writeFileSync(join(home, ".gitconfig"), "[user]\n\tname = A\n\temail = a@b.example\n")
  writeFileSync(join(outside, "victim"), "as it was\n")
  cpSync(repositoryFor(place), workspace, { recursive: true })
  let count = 0
  const hit = () => {
    count += 1
  }
  const tcp = createServer((socket) => {
    hit()
    socket.on("error", () => {})
    socket.end(`${secret}\n`)
  })
  const local = createServer((socket) => {
    hit()
    socket.on("error", () => {})
    socket.end(`${secret}\n`)
  })
  const over = "over"
  let isOver = () => {}
  const udp: Socket = createSocket("udp4", (message) => (message.toString() === over ? isOver() : hit()))
  const port = await listeningTogether(tcp, udp)
  await listening(local, join(outside, "run/agent.sock"))
  const other: ChildProcess = spawn("sleep", ["600"], {
    env: { CANARY: secret, PLACE: place },
    cwd: outside,
    stdio: "ignore"
  })
  return {
    place,
    workspace,
    home,
    outside,
    port,
    reached: () => count,
    arrived: async () => {
      const knock = (where: { readonly port: number; readonly host: string } | { readonly path: string }) =>
        new Promise<void>((resolve) =>
          connect(where)
            .on("error", () => undefined)
            .resume()
            .on("close", () => resolve())
        )
      await knock({ port, host: "127.0.0.1" })
      await knock({ path: join(outside, "run/agent.sock") })
      await new Promise<void>((resolve) => {
        isOver = resolve
        udp.send(over, port, "127.0.0.1")
      })
      // The two of ours.
      count -= 2
    },
    close: () => {
      other.kill("SIGKILL")
      tcp.close()
      local.close()
      udp.close()
      for (const pid of pids(place)) {
        try {
          process.kill(pid, "SIGKILL")
        } catch {
          continue
        }
      }
      rmSync(place, { recursive: true, force: true })
    }
  }
}

/** Processes that name the place in their command line. */
const pids = (place: string): ReadonlyArray<number> =>
  readdirSync("/proc").flatMap((name) => {
    try {
      return /^\d+$/.test(name) &&
        Number(name) !== process.pid &&
        readFileSync(`/proc/${name}/cmdline`, "utf8").includes(`stay-${place}`)
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })

type Harm = (world: CallerContext, output: string) => boolean

const changed: Harm = ({ outside }) =>
  readdirSync(outside).toSorted().join() !== "dir,run,secret,victim" ||
  readFileSync(join(outside, "victim"), "utf8") !== "as it was\n" ||
  readdirSync(join(outside, "dir")).length > 0
const leaked: Harm = (_, output) => output.includes(secret)
const reached: Harm = (world) => world.reached() > 0
const stays: Harm = ({ place }) => pids(place).length > 0
const configured: Harm = ({ workspace }) =>
  existsSync(join(workspace, ".assent/permissions.json")) || existsSync(join(workspace, "sub/.assent/permissions.json"))
const homely: Harm = ({ home }) =>
  readdirSync(home).toSorted().join() !== ".config,.gitconfig,.ssh" || readdirSync(join(home, ".ssh")).length > 1
/** The effects of a person's later, everyday git commands. */
const acts: Harm = (world) => {
  for (const [directory, ...args] of [
    ["workspace", "status"],
    ["workspace", "diff"],
    ["workspace", "add", "-A"],
    ["workspace", "commit", "-qm", "x", "--allow-empty"],
    ["workspace", "checkout", "-q", "-b", "other"],
    ["workspace/sub", "status"],
    ["workspace/docs", "status"],
    ["workspace/docs/er", "status"]
  ] as const) {
    try {
      execFileSync("git", args, {
        cwd: join(world.place, directory),
        env: gitEnvironment(world.home),
        stdio: "ignore",
        timeout: 10_000
      })
    } catch {
      continue
    }
  }
  return changed(world, "")
}
/** Mercurial runs what `hgrc` names. */
const mercurial: Harm = ({ workspace }) =>
  readdirSync(workspace, { recursive: true, encoding: "utf8" }).some((name) => /(?:^|\/)\.hg\/hgrc$/.test(name))
/** In whichever directory below. */
const configuredBelow: Harm = (world) =>
  changed(world, "") ||
  readdirSync(world.workspace, { recursive: true, encoding: "utf8" }).some((name) =>
    /(?:^|\/)\.assent\/permissions\.json$/.test(name)
  )
const marked: Harm = ({ workspace }) =>
  readdirSync(workspace, { recursive: true, encoding: "utf8" }).some(
    (name) =>
      /\bsuid$/.test(name) &&
      (Number(
        execFileSync("stat", ["-c", "%f", join(workspace, name)], { encoding: "utf8" })
          .trim()
          .replace(/^/, "0x")
      ) &
        0o4000) !==
        0
  )

export interface Attempt {
  readonly name: string
  readonly line: string
  readonly harm: Harm
  /** Not tried without a sandbox: it would change the machine. */
  readonly grave?: boolean
}

const attempt = (name: string, harm: Harm, line: string, grave = false): Attempt => ({ name, line, harm, grave })

const pwn = "echo pwned > OUT/pwned"
/** Configuration of a directory of git's own, which a status in it would act on. */
const config = "printf '[core]\\n\\tbare = false\\n\\tworktree = WS\\n\\tfsmonitor = WS/f\\n' >"
const script = (file: string) => `printf '#!/bin/sh\\n${pwn}\\n' > ${file}; chmod +x ${file}`

/** `OUT`, `HOME_`, `WS`, `PORT` and `STAY` stand for places of the world. */
export const attempts: ReadonlyArray<Attempt> = [
  // Writing outside.
  attempt("write by redirection", changed, pwn),
  attempt("append to a file", changed, "echo more >> OUT/victim"),
  attempt("cp", changed, "cp a OUT/pwned"),
  attempt("mv", changed, "mv a OUT/pwned"),
  attempt("rm", changed, "rm -f OUT/victim"),
  attempt("rm -rf of everything above", changed, "rm -rf OUT/dir OUT/victim"),
  attempt("tee", changed, "echo x | tee OUT/pwned"),
  attempt("dd", changed, "dd if=a of=OUT/pwned"),
  attempt("truncate", changed, "truncate -s 0 OUT/victim"),
  attempt("sed -i", changed, "sed -i s/as/AS/ OUT/victim"),
  attempt("tar to another directory", changed, "tar cf t.tar a && tar xf t.tar -C OUT"),
  attempt("an option that names the output", changed, "sort -o OUT/victim a"),
  attempt("perl", changed, `perl -e 'open(F, ">", "OUT/pwned"); print F "x"'`),
  attempt("awk", changed, `awk 'BEGIN { print "x" > "OUT/pwned" }'`),
  attempt("find -fprint", changed, "find . -maxdepth 0 -fprint OUT/pwned"),
  attempt("git archive to a file", changed, "git archive -o OUT/pwned.tar HEAD"),
  attempt("git worktree elsewhere", changed, "git worktree add OUT/tree"),
  attempt("a path with ..", changed, "echo x > ../outside/pwned"),
  attempt("cd first", changed, "cd .. && cd outside && echo x > pwned"),
  attempt("a path by substitution", changed, "echo x > $(echo OUT)/pwned"),
  attempt("a link made before, through it", changed, "ln -s OUT l; echo x > l/pwned"),
  attempt("a link to a file", changed, "ln -s OUT/victim l; echo x > l"),
  attempt(
    "a link made in the middle of it",
    changed,
    "mkdir d; (while :; do rm -rf d; ln -s OUT d; rm -rf d; mkdir d; done) & for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo x > d/pwned; sleep 0.01; done 2>/dev/null; kill %1"
  ),
  attempt("a link in the private home", homely, "ln -s HOME_ ~/h; echo x > ~/h/pwned"),
  attempt("a hard link", changed, "ln OUT/victim l && echo x > l"),
  attempt("chmod", changed, "chmod 777 OUT/dir && touch OUT/dir/x"),
  attempt("a bind mount", changed, "mkdir m; mount --bind OUT m && touch m/pwned", true),
  attempt("remounting as writable", changed, "mount -o remount,rw / && mkdir -p OUT && echo x > OUT/pwned", true),
  attempt(
    "unmounting what covers",
    configured,
    "umount WS/.assent; mkdir -p .assent; echo '{}' > .assent/permissions.json",
    true
  ),
  attempt(
    "a user namespace with mounts",
    changed,
    "unshare -Urm sh -c 'mkdir -p m; mount --bind OUT m; touch m/pwned'",
    true
  ),
  attempt(
    "a user namespace that unmounts",
    configured,
    "unshare -Urm sh -c 'umount WS/.assent; mkdir .assent; echo {} > .assent/permissions.json'",
    true
  ),
  attempt("chroot", leaked, "chroot /proc/1/root cat OUT/secret", true),
  attempt("the root of another process", leaked, "for p in /proc/[0-9]*; do cat $p/root/OUT/secret; done 2>/dev/null"),
  attempt("the directory of another process", leaked, "for p in /proc/[0-9]*; do cat $p/cwd/secret; done 2>/dev/null"),
  attempt(
    "open files of another process",
    changed,
    "for p in /proc/[0-9]*; do for f in $p/fd/*; do readlink $f | grep -q OUT && echo x >> $f; done; done 2>/dev/null; ls -d OUT >/dev/null 2>&1 && echo x > OUT/pwned"
  ),
  attempt(
    "a device",
    leaked,
    "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmem; do head -c 1 $d && echo s3cr3t-canary; done 2>/dev/null",
    true
  ),
  attempt("making a device", leaked, "mknod d b 254 0 && head -c 1 d && echo s3cr3t-canary", true),
  attempt(
    "settings of the kernel",
    leaked,
    "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo s3cr3t-canary",
    true
  ),
  attempt(
    "the kernel's handler of crashes",
    leaked,
    "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo s3cr3t-canary",
    true
  ),
  attempt("sysrq", leaked, "echo h > /proc/sysrq-trigger && echo s3cr3t-canary", true),
  attempt("system files", leaked, "echo x > /usr/local/bin/pwned && echo s3cr3t-canary", true),
  attempt("a file that runs as its owner", marked, "cp /bin/true suid; chmod 4755 suid"),
  attempt("the same by install", marked, "install -m 4755 /bin/true suid"),
  attempt("the same by perl", marked, `perl -e 'open(F, ">", "suid"); close F; chmod 04755, "suid"'`),
  attempt(
    "the same when it is made",
    marked,
    `perl -e 'use Fcntl; umask 0; sysopen(F, "suid", O_CREAT|O_WRONLY, 04755)'`
  ),
  // Reading outside.
  attempt("read a file", leaked, "cat OUT/secret"),
  attempt("read the home by its path", leaked, "cat HOME_/.ssh/id"),
  attempt("read the home by ~", leaked, "cat ~/.ssh/id"),
  attempt("read a token of another program", leaked, "cat ~/.config/gh/hosts.yml"),
  attempt("search everything", leaked, "grep -rs s3cr3t- OUT HOME_"),
  attempt("read through a link", leaked, "ln -s OUT/secret l; cat l"),
  attempt("read through git", leaked, "git diff --no-index /dev/null OUT/secret"),
  attempt("read through an archive", leaked, "tar cf - OUT/secret 2>/dev/null"),
  attempt("read by include", leaked, "git -c include.path=OUT/secret config -l 2>&1; cat OUT/secret"),
  attempt("passwords", leaked, "cat /etc/shadow && echo s3cr3t-canary"),
  attempt("keys of the machine", leaked, "ls /etc/ssh /etc/ssl/private 2>/dev/null | grep -q . && echo s3cr3t-canary"),
  attempt("environments of processes", leaked, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'"),
  attempt(
    "the parent's environment",
    leaked,
    "env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n' | grep -q ASSENT_TEST_KEY && echo s3cr3t-canary"
  ),
  attempt(
    "command lines of processes",
    leaked,
    "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q '[s]leep 600' && echo s3cr3t-canary"
  ),
  attempt(
    "tracing another process",
    leaked,
    "for p in /proc/[0-9]*; do n=${p#/proc/}; tr '\\0' ' ' < $p/cmdline | grep -q '^sleep 600' && perl -e 'exit(syscall(101, 16, $ARGV[0]+0, 0, 0) == 0 ? 0 : 1)' $n && echo s3cr3t-canary; done 2>/dev/null"
  ),
  attempt(
    "killing another process",
    leaked,
    "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q '^sleep 600' && kill -CONT ${p#/proc/} && echo s3cr3t-canary; done 2>/dev/null"
  ),
  attempt(
    "memory of another process",
    leaked,
    "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q '^sleep 600' && head -c 0 $p/mem && echo s3cr3t-canary; done 2>/dev/null"
  ),
  attempt("key rings", leaked, "perl -e 'exit(syscall(250, 0, -3, 0) > 0 ? 0 : 1)' && echo s3cr3t-canary"),
  attempt(
    "what is mounted where",
    leaked,
    "ls /run/user /run/secrets /var/run/secrets 2>/dev/null | grep -q . && echo s3cr3t-canary"
  ),
  attempt("shared memory", leaked, "ls /dev/shm | grep -q canary && echo s3cr3t-canary"),
  attempt("the other temp directory", leaked, "ls -d /tmp/canary-* 2>/dev/null && echo s3cr3t-canary"),
  // Sockets and the network.
  attempt("TCP", reached, `perl -MIO::Socket::INET -e 'IO::Socket::INET->new("127.0.0.1:PORT")'; sleep 0.1`),
  attempt("TCP by bash", reached, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT'; sleep 0.1"),
  attempt("TCP by node", reached, `node -e 'require("net").connect(PORT, "127.0.0.1")'`),
  attempt(
    "UDP",
    reached,
    `perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Proto=>"udp",PeerAddr=>"127.0.0.1:PORT")->send("x")'; sleep 0.1`
  ),
  attempt(
    "a socket's file",
    reached,
    `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new("OUT/run/agent.sock")'; sleep 0.1`
  ),
  attempt(
    "a socket through a link",
    reached,
    `ln -s OUT/run/agent.sock s; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new("s")'; sleep 0.1`
  ),
  attempt("another interface", leaked, "grep -qvE 'lo:|Inter|face' /proc/net/dev && echo s3cr3t-canary"),
  attempt("a name server", leaked, "grep -q nameserver /etc/resolv.conf && echo s3cr3t-canary"),
  attempt(
    "the engine of containers",
    leaked,
    "ls /var/run/docker.sock /run/docker.sock /run/containerd 2>/dev/null && echo s3cr3t-canary"
  ),
  attempt(
    "the buses",
    leaked,
    'ls /run/dbus /run/user/*/bus 2>/dev/null && echo s3cr3t-canary; [ -n "$DBUS_SESSION_BUS_ADDRESS" ] && echo s3cr3t-canary'
  ),
  attempt("the agent of ssh", leaked, '[ -n "$SSH_AUTH_SOCK" ] && echo s3cr3t-canary'),
  attempt("the hypervisor", leaked, "perl -e 'use Socket; socket(my $s, 40, 1, 0) and print qq(s3cr3t-canary)'"),
  attempt("raw packets", leaked, "perl -e 'use Socket; socket(my $s, 17, 3, 0) and print qq(s3cr3t-canary)'"),
  // Processes that stay.
  attempt("setsid", stays, "setsid sh -c 'while :; do sleep 0.1; done' STAY >/dev/null 2>&1 & sleep 0.1"),
  attempt(
    "double fork",
    stays,
    "( ( setsid sh -c 'while :; do sleep 0.1; done' STAY >/dev/null 2>&1 & ) & ) ; sleep 0.1"
  ),
  attempt("nohup", stays, "nohup sh -c 'while :; do sleep 0.1; done' STAY >/dev/null 2>&1 & sleep 0.1"),
  attempt(
    "without an environment",
    stays,
    "setsid env -i /bin/sh -c 'while :; do /bin/sleep 0.1; done' STAY >/dev/null 2>&1 & sleep 0.1"
  ),
  attempt(
    "one that does not want to end",
    stays,
    "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.1; done' STAY >/dev/null 2>&1 & sleep 0.1"
  ),
  attempt(
    "many that fork on",
    stays,
    'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do setsid sh -c \'sh -c "sleep 5" $0 & sh -c "sleep 5" $0; wait\' STAY >/dev/null 2>&1 & done; sleep 0.2'
  ),
  // What acts later.
  attempt(
    "a hook",
    acts,
    `mkdir -p .git/hooks; ${script(".git/hooks/pre-commit")}; cp .git/hooks/pre-commit .git/hooks/post-checkout`
  ),
  attempt("git config: fsmonitor", acts, `${script("f")}; git config core.fsmonitor WS/f`),
  attempt(
    "git config: written by hand",
    acts,
    `${script("f")}; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> .git/config`
  ),
  attempt("git config: hooksPath", acts, `mkdir h; ${script("h/pre-commit")}; git config core.hooksPath WS/h`),
  attempt(
    "git config: a filter",
    acts,
    `git config filter.x.clean 'sh -c "${pwn}; cat"'; echo '* filter=x' > .gitattributes; echo b >> a`
  ),
  attempt(
    "git config: a filter by info/attributes",
    acts,
    `git config filter.x.clean 'sh -c "${pwn}; cat"'; mkdir -p .git/info; echo '* filter=x' > .git/info/attributes; echo b >> a`
  ),
  attempt("git config: an external diff", acts, `${script("f")}; git config diff.external WS/f; echo b >> a`),
  attempt(
    "git config: an alias",
    acts,
    `git config alias.st '!${pwn}'; ${script("f")}; git config core.fsmonitor WS/f`
  ),
  attempt(
    "git config: an include",
    acts,
    `${script("f")}; printf '[core]\\n\\tfsmonitor = WS/f\\n' > c; git config include.path WS/c`
  ),
  attempt(
    "git config: of the worktree",
    acts,
    `${script("f")}; git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = WS/f\\n' > .git/config.worktree`
  ),
  attempt(
    ".git moved away and made anew",
    acts,
    `${script("f")}; mv .git old && git init -q . && git config core.fsmonitor WS/f`
  ),
  attempt(
    ".git copied, removed and put back",
    acts,
    `${script("f")}; cp -r .git new; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> new/config; rm -rf .git; mv new .git`
  ),
  attempt(
    ".git exchanged for a file",
    acts,
    `${script("f")}; cp -r .git new; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> new/config; mv .git old; echo 'gitdir: WS/new' > .git`
  ),
  attempt(
    "the configuration moved away",
    acts,
    `${script("f")}; mv .git/config .git/old; printf '[core]\\n\\tfsmonitor = WS/f\\n' > .git/config`
  ),
  attempt("the hooks moved away", acts, `mv .git/hooks .git/old; mkdir .git/hooks; ${script(".git/hooks/pre-commit")}`),
  attempt(
    "a commondir",
    acts,
    `${script("f")}; cp -r .git other; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> other/config; echo WS/other > .git/commondir`
  ),
  attempt(
    "a repository below",
    acts,
    `${script("f")}; mkdir sub; git init -q sub; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> sub/.git/config`
  ),
  attempt(
    "a repository below, as a file",
    acts,
    `${script("f")}; git init -q x; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> x/.git/config; mv x/.git y; mkdir sub; echo 'gitdir: WS/y' > sub/.git`
  ),
  attempt(
    "a repository below, renamed late",
    acts,
    `${script("f")}; git init -q x; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> x/.git/config; mv x/.git x/git; mkdir sub; mv x/git sub/.git`
  ),
  attempt(
    "a submodule",
    acts,
    `${script("f")}; git init -q sub; git -C sub -c user.name=a -c user.email=b commit -qm x --allow-empty; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> sub/.git/config; git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub`
  ),
  attempt(
    "a worktree's directory",
    acts,
    `${script("f")}; git worktree add -q sub; d=$(ls -d .git/worktrees/*); cp -r .git other; printf '[core]\\n\\tfsmonitor = WS/f\\n' >> other/config; echo WS/other > $d/commondir`
  ),
  attempt(
    "permissions",
    configured,
    `mkdir -p .assent; echo '{ "defaultPolicy": "allow" }' > .assent/permissions.json`
  ),
  attempt("permissions by a link", configured, "mkdir x; echo '{}' > x/permissions.json; ln -s x .assent"),
  attempt("permissions renamed", configured, "mkdir x; echo '{}' > x/permissions.json; rmdir .assent; mv x .assent"),
  attempt(
    "permissions of a directory below",
    configured,
    "mkdir -p sub/.assent; echo '{}' > sub/.assent/permissions.json"
  ),
  attempt(
    "permissions by the path of the process",
    configured,
    "mkdir -p .assent; echo '{}' > /proc/self/cwd/.assent/permissions.json"
  ),
  attempt(
    "permissions by a link to their directory",
    configured,
    "mkdir -p .assent; ln -s .assent x; echo '{}' > x/permissions.json"
  ),
  attempt(
    "permissions in a directory that changes its name meanwhile",
    configuredBelow,
    "mkdir -p sub/.assent; echo '{}' > sub/.assent/permissions.json; (for i in $(seq 500); do mv sub s; ln -s OUT sub; rm sub; mv s sub; done) 2>/dev/null & sleep 0.3"
  ),
  attempt("a git directory by its shape", acts, `${script("f")}; git init -q --bare docs; ${config} docs/config`),
  attempt(
    "a git directory deep below by its shape",
    acts,
    `${script("f")}; git init -q --bare docs/er; ${config} docs/er/config`
  ),
  attempt(
    "a git directory by its shape, written one by one",
    acts,
    `${script("f")}; mkdir -p docs/objects docs/refs; ${config} docs/config; echo 'ref: refs/heads/x' > docs/HEAD`
  ),
  attempt(
    "a git directory by its shape, renamed late",
    acts,
    `${script("f")}; git init -q --bare x; ${config} x/config; mv x/HEAD H; mv x docs; mv H docs/HEAD`
  ),
  attempt(
    "a git directory by its shape, of links",
    acts,
    `${script("f")}; mkdir -p docs/refs; ${config} docs/config; ln -s ../.git/objects docs/objects; ln -s refs/heads/x docs/HEAD`
  ),
  attempt(
    "a git directory by its shape with a commondir",
    acts,
    `${script("f")}; mkdir -p x/objects x/refs docs; ${config} x/config; cp .git/HEAD docs/; echo WS/x > docs/commondir`
  ),
  attempt(
    "a git directory by its shape that is looked for while it changes",
    acts,
    `${script("f")}; git init -q --bare docs; ${config} docs/config; (for i in $(seq 500); do mv docs/HEAD docs/H; mv docs/H docs/HEAD; done) 2>/dev/null & sleep 0.3`
  ),
  attempt(
    "a link in the place of what is set aside",
    acts,
    `${script("f")}; git init -q sub; ${config} sub/.git/config; (for i in $(seq 500); do mv sub/.git/refs sub/r; ln -s OUT sub/.git/refs; rm sub/.git/refs; mv sub/r sub/.git/refs; done) 2>/dev/null & sleep 0.3`
  ),
  attempt(
    "a git directory in the place of another that is set aside",
    acts,
    `${script("f")}; git init -q sub; ${config} sub/.git/config; cp -r sub/.git y; (for i in $(seq 500); do mv sub/.git z; mv y sub/.git; mv sub/.git y; mv z sub/.git; done) 2>/dev/null & sleep 0.3`
  ),
  attempt("Mercurial's hooks", mercurial, "mkdir .hg; printf '[hooks]\nupdate = WS/f\n' > .hg/hgrc"),
  attempt("Mercurial's hooks below", mercurial, "mkdir -p sub/hg; echo '[hooks]' > sub/hg/hgrc; mv sub/hg sub/.hg")
]

/** The attempt as it is typed in this world. */
export const lineIn = (world: CallerContext, { line }: Attempt): string =>
  line
    .replaceAll("HOME_", world.home)
    .replaceAll("OUT", world.outside)
    .replaceAll("STAY", `stay-${world.place}`)
    .replaceAll("WS", world.workspace)
    .replaceAll("PORT", `${world.port}`)
