/**
 * What is known of programs: which of them run other programs, or code they are given.
 *
 * Allowing such a program for good would allow everything, so only its exact command is ever remembered. The lists err
 * on the safe side: an unneeded name costs a question, a missing name opens a hole. Git is judged by subcommand,
 * because it is by far the most used; an unknown subcommand may be an alias for anything.
 */

/** The name a program is known by: no directory, no `.exe`, no version (`python3.12` → `python`), lower case. */
export const nameOf = (program: string): string => {
  const end = bareEnd(program)
  if (end >= 0) return end === program.length ? program : program.slice(0, end) || program
  // No file system has longer names, and the search for a version at the end could take very long.
  if (program.length > 4096) return program
  const own = basename(program)
  if (own.length < program.length) return nameOf(own)
  const base = own
    .slice(-256)
    .toLowerCase()
    .replace(/\.(?:exe|cmd|bat|com)$/, "")
  let version = base.length
  while (version > 0 && isVersion(base.charCodeAt(version - 1))) version--
  // A version begins with a digit; a dot, a dash or an underscore before it belongs to it.
  while (base.charAt(version) === ".") version++
  if (version === base.length) return base
  if (version > 0 && "-_.".includes(base.charAt(version - 1))) version--
  return base.slice(0, version) || base
}

const isGit = (word: string): boolean => /git/i.test(word) && nameOf(word) === "git"

export const basename = (program: string): string =>
  program.includes("/") ? program.slice(program.lastIndexOf("/") + 1) : program

/** Every word that makes the command run others. */
export const escapes = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const program = words[0]
  if (program === undefined) return none
  const use = useOf(program)
  if (use === "always") return [program]
  if (use === "never") return none
  return use === "git" ? gitEscapesIn(words) : words.filter((word, at) => at > 0 && use.test(word))
}

/** Some argument would make the program run others. */
export const canEscape = (program: string): boolean => {
  const name = nameOf(program)
  return name === "git" || byArgument.has(name)
}

/** The program runs others with any arguments. */
export const alwaysRuns = (program: string): boolean => useOf(program) === "always"

/** The words without the options between git and its subcommand; nothing where there are none. */
export const withoutGitOptions = (words: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  if (!words.some((word, at) => words[at + 1]?.startsWith("-") === true && isGit(word))) return undefined
  const out = words.slice()
  let size = 0
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    out[size++] = word
    if (!isGit(word)) continue
    for (; words[at + 1]?.startsWith("-") === true; at++) if (gitValueOptions.has(words[at + 1] ?? "")) at++
  }
  out.length = size
  return out
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const none: ReadonlyArray<string> = []

/**
 * Where the name ends in a word without a directory, a dot and capitals, which nearly all words are: before a version,
 * else at its end. -1 for any other word. Saves half the time of a command that consists of short words.
 */
const bareEnd = (word: string): number => {
  const { length } = word
  if (length > 256) return -1
  let end = 0
  for (let at = 0; at < length; at++) {
    const code = word.charCodeAt(at)
    if (code > 0x7f || code === 0x2e || code === 0x2f || (code >= 0x41 && code <= 0x5a)) return -1
    if (code < 0x30 || code > 0x39) end = at + 1
  }
  const last = word.charCodeAt(end - 1)
  return end < length && (last === 0x2d || last === 0x5f) ? end - 1 : end
}

/** A digit or a dot. */
const isVersion = (code: number): boolean => code === 0x2e || (code >= 0x30 && code <= 0x39)

/** Which words of a program make it run others. */
type Use = "always" | "never" | "git" | RegExp

const useOf = (program: string): Use => {
  const name = nameOf(program)
  const use = uses.get(name)
  if (use === "always" || families.test(name)) return "always"
  if (name !== program && uses.get(basename(program).toLowerCase()) === "always") return "always"
  return use ?? "never"
}

const lines = (...groups: ReadonlyArray<string>): ReadonlySet<string> => new Set(groups.flatMap((g) => g.split(" ")))

const always = lines(
  // Shells, and shell builtins that run text or change the meaning of later commands.
  "sh bash dash zsh ksh mksh ash fish csh tcsh rbash nu elvish xonsh osh ysh pwsh powershell cmd busybox toybox",
  "eval exec source . command builtin trap alias unalias coproc noglob nocorrect repeat foreach hash enable bind complete",
  "cd pushd popd set shopt setopt export declare typeset local readonly unset let read mapfile readarray getopts",
  // Wrappers.
  "env sudo doas su pkexec runuser gosu setpriv xargs parallel sem nohup nice ionice renice chrt taskset timeout time",
  "watch stdbuf unbuffer script scriptreplay expect setsid chroot unshare nsenter fakeroot fakechroot flock strace ltrace",
  "gdb lldb valgrind perf ld.so catchsegv rlwrap run-parts start-stop-daemon systemd-run systemctl launchctl dbus-run-session",
  "dbus-launch xvfb-run direnv chronic ifne mispipe chpst prlimit numactl cgexec firejail bwrap proot torsocks proxychains",
  "proxychains4 hyperfine watchexec entr nodemon pm2 forever concurrently dotenv at batch crontab screen tmux zellij byobu",
  "open xdg-open start osascript op aws-vault doppler vault caffeinate arch",
  // Other machines and containers.
  "ssh slogin scp sftp rsync mosh telnet rsh socat nc ncat netcat docker podman nerdctl kubectl oc lxc lxd vagrant multipass",
  "gcloud heroku fly flyctl vercel wrangler terraform tofu packer ansible ansible-playbook salt puppet chef helm gh hub glab",
  // Interpreters, editors and pagers that take commands.
  "python py pypy ipython node nodejs deno bun tsx ts-node ruby jruby irb perl php lua luajit r rscript julia java jshell groovy",
  "kotlin kotlinc scala clojure clj lein ghci runghc runhaskell stack cabal ocaml racket guile sbcl clisp erl elixir iex mix",
  "tclsh wish awk gawk mawk nawk sed gsed ed ex vi vim nvim vimdiff view emacs emacsclient nano pico less more most man info",
  "sqlite sqlite3 psql mysql mariadb mongo mongosh redis-cli bc dc gnuplot octave m4 jupyter swift dart nim crystal zig",
  // Package and tool managers: they run install scripts.
  "npm npx pnpm pnpx yarn yarnpkg bunx corepack nvm fnm volta pip pipx easy_install uv uvx poetry pipenv conda mamba hatch rye",
  "gem bundle bundler rake rbenv pyenv asdf mise nix nix-shell nix-env nix-build guix brew apt apt-get aptitude dpkg rpm",
  "dnf yum zypper pacman apk snap flatpak port cpan cpanm composer artisan",
  // Builders and test runners: they run what the project says.
  "make gmake bmake cmake ctest ninja meson bazel bazelisk buck gradle gradlew mvn mvnw ant sbt cargo go dotnet msbuild",
  "just task invoke inv fab scons waf pytest py.test tox nox unittest jest vitest mocha ava tap phpunit rspec karma cypress",
  "playwright turbo nx lerna gulp grunt pre-commit husky lint-staged act",
  // Archivers and other version control: helpers, aliases and hooks by argument.
  "hg svn bzr fossil jj tar gtar bsdtar cpio zip 7z rar ld ldd"
)

const families = /^(?:ld-linux|python|perl|ruby|php|lua|node|pip|bash|zsh|docker|ansible)[-._]/

const byArgument: ReadonlyMap<string, RegExp> = new Map([
  // Options that delete or write are included: allowing a search should not allow them.
  ["find", /^-(?:exec|ok|delete|fprint|fls)/],
  ["gfind", /^-(?:exec|ok|delete|fprint|fls)/],
  ["fd", /^(?:-[A-Za-z]*[xX]|--exec)/],
  ["fdfind", /^(?:-[A-Za-z]*[xX]|--exec)/],
  ["rg", /^--(?:pre|hostname-bin)/],
  ["ag", /^--pager/],
  ["sort", /^(?:-[A-Za-z]*o|--o|--co)/],
  ["split", /^--f/],
  ["wget", /^(?:-[A-Za-z]*e|--ex|--use-a|--conf)/],
  ["curl", /^(?:-[A-Za-z]*K|--(?:conf|eng))/],
  ["test", /\$\(|`|^-v$/],
  ["[", /\$\(|`|^-v$/],
  // Some shells compute what is in brackets.
  ["printf", /^-v|\[.*(?:\$\(|`)/],
  ["wait", /^-[A-Za-z]*p|\$\(|`/],
  ["jobs", /^-[A-Za-z]*x/],
  ["gcc", /^(?:-wrapper|-fplugin|-B|--?specs|@)/],
  ["g++", /^(?:-wrapper|-fplugin|-B|--?specs|@)/],
  ["cc", /^(?:-wrapper|-fplugin|-B|--?specs|@)/],
  ["clang", /^(?:-fplugin|-load|-Xclang|-B|--?config|@)/],
  ["rustc", /^(?:-C|--codegen|@)/],
  ["openssl", /engine|provider/],
  ["ssh-keygen", /^-[A-Za-z]*[Dw]/],
  ["ssh-add", /^-s/],
  ["journalctl", /^--pager/]
])

const uses: ReadonlyMap<string, Use> = new Map<string, Use>([
  ...byArgument,
  ["git", "git"],
  ...Array.from(always, (name): [string, Use] => [name, "always"])
])

const gitEscapesIn = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let at = 1
  for (; words[at]?.startsWith("-"); at++) {
    const option = words[at] ?? ""
    // `-c`, `--exec-path`, `--config-env`, `-C`, `--git-dir` bring another configuration, which may name programs.
    if (!harmlessGitOptions.has(option)) out.push(option)
    // The option's value is no subcommand, even if it looks like one.
    if (gitValueOptions.has(option)) at++
  }
  const subcommand = words[at]
  if (subcommand === undefined) return out
  if (!gitSubcommands.has(subcommand)) out.push(subcommand)
  const own = gitOptions.get(subcommand)
  for (at++; at < words.length; at++) {
    const word = words[at] ?? ""
    if (gitEscapes.test(word) || own?.test(word) === true) out.push(word)
  }
  return out
}

const gitValueOptions = lines(
  "-c -C --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source"
)

const harmlessGitOptions = lines("--no-pager -P --no-optional-locks --literal-pathspecs --version -v --help -h")

const gitSubcommands = lines(
  "status log diff show add commit push pull fetch branch checkout switch restore reset merge rebase stash tag blame annotate",
  "rev-parse rev-list ls-files ls-tree ls-remote describe remote clean rm mv cherry-pick cherry revert clone init apply am",
  "shortlog reflog cat-file grep worktree show-ref symbolic-ref for-each-ref merge-base name-rev count-objects fsck gc",
  "prune version whatchanged range-diff diff-tree diff-index diff-files check-ignore check-attr notes sparse-checkout",
  "merge-tree show-branch verify-commit verify-tag var stage"
)

// Git accepts every unambiguous start of a long option. `::` names a transport helper, which is a program; `--output`
// writes a file at any place.
const gitEscapes = /^--(?:ext|exe|upl|rece|out|open|config|templ|strat|textc)|^(?:--[a-z-]+=)?[A-Za-z0-9+.-]*::/

const remoteOptions = /^(?:--(?:u|e)|-[A-Za-z]*u)/

const gitOptions: ReadonlyMap<string, RegExp> = new Map([
  ["clone", /^(?:--(?:u|co|te)|-[A-Za-z]*[uc])/],
  ["init", /^--t/],
  ["fetch", remoteOptions],
  ["pull", /^(?:--(?:u|e|s)|-[A-Za-z]*[us])/],
  ["ls-remote", remoteOptions],
  ["push", /^--(?:e|rec)/],
  ["grep", /^(?:--op|-[A-Za-z]*O)/],
  ["rebase", /^(?:--(?:ex|in|ed|st)|-[A-Za-z]*[xis])/],
  ["merge", /^(?:--str|-[A-Za-z]*s)/],
  ["cherry-pick", /^--str/],
  ["revert", /^--str/],
  ["cat-file", /^--(?:fi|te)/]
])
