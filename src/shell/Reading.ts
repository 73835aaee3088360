/**
 * What looks like reading: programs of which a person would say that they only look at something.
 *
 * It holds for the reading view alone, where the kernel lets nothing be written and nothing reach the network. So these
 * tables are generous: most programs may have any options, and words that are not known yet. A word that plainly
 * writes, or that starts a program of its own, is no reading. Where nothing confines, the harmless table decides.
 */
import * as Harmless from "./Harmless.js"
import type { ProgramRun } from "./ProgramRun.js"
import * as ReadingGit from "./ReadingGit.js"
import * as ReadingScript from "./ReadingScript.js"
import * as Variable from "./Variable.js"

/** The program itself reads. What it would run is judged by itself. */
export const isReading = (run: ProgramRun): boolean => {
  const { assignments, confined, named, open, own, unknown, words } = run
  if (!confined || !named || !assignments.every(Variable.isPlainAssignment)) return false
  const [program, ...rest] = own
  if (program === undefined) return true
  // Other variables may bring other settings.
  if (program === "env") return own.length === 1
  if (wrappers.has(program)) return true
  // With a text; a file with one is a program of its own.
  if (shells.has(program) && own.length < words.length) return true
  const isKnown = unknown.length === 0 && open === undefined
  const isOpen = open === "words"
  const use = table.get(program)
  if (use !== undefined) return use(rest, { isKnown, isOpen, known: (at) => !unknown.includes(at + 1) })
  if (isKnown && queries.get(program)?.some((shape) => shape.test(rest.join(" "))) === true) return true
  return (open === undefined || !limited.has(program)) && Harmless.isHarmless(own, { confined: true })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What is known of the words behind a program. */
interface Words {
  readonly isKnown: boolean
  /** Any words may follow. */
  readonly isOpen: boolean
  readonly known: (at: number) => boolean
}

type Use = (rest: ReadonlyArray<string>, words: Words) => boolean

const names = (...lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.flatMap((line) => line.split(" "))

const many = (programs: ReadonlyArray<string>, use: Use): ReadonlyArray<readonly [string, Use]> =>
  programs.map((name) => [name, use] as const)

/** They run other programs, which are judged by themselves. */
const wrappers: ReadonlySet<string> = new Set(names("nice nohup timeout time stdbuf setsid command xargs watch"))
const shells: ReadonlySet<string> = new Set(names("sh bash dash"))

/** A further word could be an output. */
const limited: ReadonlySet<string> = new Set(names("uniq xxd base64"))

const any: Use = () => true

/** Any words but these. */
const without =
  (shape: RegExp): Use =>
  (rest) =>
    !rest.some((word) => shape.test(word))

/** At least one of the first words, and none of the others. */
const having =
  (needed: RegExp, shape: RegExp): Use =>
  (rest, words) =>
    rest.some((word, at) => needed.test(word) && words.known(at)) && !rest.some((word) => shape.test(word))

const variable = /^[A-Za-z_]\w*$/

/** Names of variables, perhaps with values, behind these options. A subscript would be computed. */
const variables =
  (options: RegExp): Use =>
  (rest, words) =>
    rest.every((word, at) => {
      if (words.known(at) && options.test(word)) return true
      const end = word.indexOf("=")
      if (end < 0) return words.known(at) && variable.test(word) && Variable.isPlain(word)
      const name = word.slice(0, end).replace(/\+$/, "")
      return variable.test(name) && Variable.isPlainAssignment(word)
    })

/** Options with their values, then names of variables. */
const inputs =
  (options: RegExp, valued: RegExp): Use =>
  (rest, words) => {
    let at = 0
    for (; rest[at]?.startsWith("-") === true && words.known(at); at++) {
      const word = rest[at] ?? ""
      if (valued.test(word)) at++
      else if (!options.test(word)) return false
    }
    return rest.every(
      (word, index) => index < at || (words.known(index) && variable.test(word) && Variable.isPlain(word))
    )
  }

/** A shell may compute what is in brackets, and run commands there. */
const uncomputed: Use = (rest, words) =>
  rest.every((word, at) => !words.known(at) || !/\$\(|`/.test(word) || !word.includes("["))

const tests: Use = (rest, words) =>
  uncomputed(rest, words) &&
  rest.every((word, at) => !/^-[vR]$/.test(word) || (words.known(at + 1) && variable.test(rest[at + 1] ?? "")))

/** Operands: words that are no options, nor values of these. */
const atMost =
  (most: number, valued: RegExp): Use =>
  (rest, words) =>
    words.isKnown && rest.filter((word, at) => !/^-./.test(word) && !valued.test(rest[at - 1] ?? "")).length <= most

/** What `find` runs with `-exec` is judged by itself. */
const finding = /^-(?:delete|fprint|fprintf|fprint0|fls|execdir|okdir)$/

const table: ReadonlyMap<string, Use> = new Map<string, Use>([
  ...many(
    names(
      "echo true false : expr seq sleep pwd basename dirname readlink realpath ls dir vdir cat tac nl rev head tail wc stat du df",
      "grep egrep fgrep zgrep zcat bzcat xzcat zstdcat cut paste tr comm join fold fmt expand unexpand od cmp cksum sum md5sum",
      "md5 sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum column hexdump hd hexyl numfmt tsort pr look factor bc",
      "id whoami groups users who w last tty nproc uptime free uname arch getent locale lscpu lsblk lsmod lspci lsusb findmnt ps",
      "pgrep pidof pstree lsof vmstat printenv which whereis type nm objdump readelf strings size c++filt addr2line zipinfo jq",
      "shellcheck tokei cal clear tput uuidgen dirs popd exit return break continue shift times umask ulimit"
    ),
    any
  ),
  ...many(names("cd pushd"), any),
  ...many(names("test ["), tests),
  ["wait", without(/^-p|\[/)],
  ["jobs", without(/^-[a-z]*x/)],
  ["[[", tests],
  ["((", any],
  ["printf", (rest, words) => words.known(0) && rest[0]?.startsWith("-v") !== true && uncomputed(rest, words)],
  ["let", (rest, words) => words.isKnown && rest.every((word) => /^[a-z_]\w*(?:\+\+|--|[-+]?=\d+)$/.test(word))],
  ["read", inputs(/^-[rs]+$/, /^-[rs]*[adinNptu]$/)],
  ...many(names("mapfile readarray"), inputs(/^-t$/, /^-t?[dnOsu]$/)),
  ...many(names("export readonly declare typeset local"), variables(/^-[aArxpg]+$/)),
  ["unset", variables(/^-v$/)],
  [
    "set",
    (rest, words) =>
      words.isKnown &&
      /^(?: ?[-+](?:[efux]+|[efux]*o (?:pipefail|errexit|nounset|noglob|xtrace)))+$/.test(rest.join(" "))
  ],
  ["shopt", (rest) => /^-[su] (?: ?(?:nullglob|globstar|dotglob|nocaseglob|failglob))+$/.test(rest.join(" "))],
  // ---- with options that write, or start a program
  ...many(names("find gfind"), (rest, words) => !words.isOpen && !rest.some((word) => finding.test(word))),
  ["sort", without(/^-[a-zA-Z]*[oT]|^--(?:o|co|t)/)],
  ["date", without(/^-[a-zA-Z]*s|^--s|^\d{8}/)],
  ["tree", without(/^-[a-zA-Z]*[oR]|^--output/)],
  ["file", without(/^-[a-zA-Z]*[Cz]|^--(?:comp|unc)/i)],
  ["diff", without(/^-[a-zA-Z]*l|^--pag/)],
  ["iconv", without(/^-o|^--o/)],
  ["shuf", without(/^-o|^--o/)],
  ["hostname", without(/^[^-]|^-(?:F|-file)/)],
  ["rg", without(/^--(?:pre|hostname-bin|search-zip)|^-[a-yA-Z]*z/)],
  ...many(names("ag ack"), without(/^--(?:pager|create-ackrc)/)),
  ...many(names("fd fdfind"), without(/^-[a-zA-Z]*[xX]|^--exec/)),
  ...many(names("bat batcat"), without(/^--(?:pager|diff|map-syntax)|^cache$/)),
  ["less", without(/^\+|^-[a-zA-Z]*[oOkt]|^--(?:log|lesskey|tag)/i)],
  ["more", without(/^\+/)],
  ["yq", without(/^-[a-zA-Z]*[is]|^--(?:inplace|in-place|split)/)],
  ["xmllint", without(/^--?(?:o|shell)/)],
  ["top", (rest) => rest.some((word) => /^-[a-zA-Z]*b/.test(word))],
  ["ip", without(/^(?:add|del|delete|set|flush|change|replace|append|exec|netns|-b|-batch|-force)$/)],
  ...many(names("ss netstat ifconfig"), without(/^[^-]|^-[a-zA-Z]*K|^--kill/)),
  ["xxd", atMost(1, /^-(?:c|cols|g|l|len|o|s|seek|n|R)$/)],
  ...many(
    names("gzip gunzip bzip2 bunzip2 xz unxz zstd lz4"),
    having(/^-[a-z]*[clt]|^--(?:stdout|list|test)$/, /^-o|^--output/)
  ),
  ...many(
    names("tar gtar bsdtar"),
    (rest, words) =>
      words.known(0) &&
      /^(?:-?[a-zA-Z]*t[a-zA-Z]*|--list)$/.test(rest[0] ?? "") &&
      !/^-?[a-zA-Z]*[xcruAI]/.test(rest[0] ?? "") &&
      !rest.some(
        (word, at) =>
          at > 0 && /^-[a-zA-Z]*[xcruAIF]|^--(?:to-|check|use|rsh|rmt|info|new|del|ext|get|cre|app|upd)/.test(word)
      )
  ),
  ["unzip", having(/^-[12Zlpqtvz]+$/, /^-[a-zA-Z]*[donjufx]/)],
  ["ar", having(/^-?[tp]v?$/, /^-?[a-zA-Z]*[dmqrsx]v?$/)],
  ["jar", having(/^-?tv?f$|^--list$/, /^-?[cuxi]/)],
  ["openssl", having(/^(?:version|x509|asn1parse)$/, /^-(?:out|engine|provider.*|config|signkey|CA.*|req|new)$/)],
  ["sqlite3", (rest, words) => words.isKnown && ReadingScript.isSqlite(rest)],
  ...many(names("sed gsed"), (rest, words) => ReadingScript.isSed(rest, words.known)),
  ...many(names("awk gawk mawk nawk"), (rest) => ReadingScript.isAwk(rest)),
  ["git", (rest, words) => ReadingGit.isReading(rest, words.known)]
])

/** Versions and lists of tool chains, by the words behind the program. */
const asked: ReadonlyArray<readonly [programs: string, shape: RegExp]> = [
  [
    "node deno bun ts-node tsc tsx eslint prettier jest vitest npx npm pnpm yarn corepack ruby rustc rustup rustfmt javac kotlinc scala " +
      "gcc g++ cc c++ clang clang++ ld cmake make gmake ninja meson bazel gradle mvn ant docker docker-compose podman kubectl helm " +
      "terraform gh glab aws gcloud az heroku curl wget ssh rsync psql mysql sqlite3 redis-cli mongosh openssl ffmpeg convert magick " +
      "pytest mypy ruff black flake8 pylint tox poetry pipenv uv uvx pipx conda virtualenv php composer lua luajit perl dart flutter " +
      "elixir mix ghc cabal stack ocaml opam zig nim crystal julia R Rscript dotnet nvim vim emacs tmux sh bash dash python python2 " +
      "python3 pip pip3 cargo gem bundle bundler git-lfs brew apt apt-get dpkg rpm yum dnf apk pacman snap nix pre-commit shfmt hadolint " +
      "protoc buf nginx systemctl mise asdf pyenv rbenv fnm volta",
    /^--version$/
  ],
  [
    "rustc ssh tmux pytest ruff poetry pip pip3 conda uv cargo psql mysql curl wget python python2 python3 pre-commit R composer",
    /^-V$/
  ],
  [
    "node bun tsc eslint jest vitest npx npm pnpm yarn ruby gcc g++ cc clang docker php perl lua luajit gradle mvn nginx redis-cli gem make",
    /^-v$/
  ],
  ["java javac kotlinc scala ocaml ffmpeg convert magick ant sqlite3", /^-version$/],
  ["node", /^(?:--v8-options|-h|--help|-p process\.versions?(?:\.\w+)?)$/],
  ["java", /^--version$/],
  [
    "python python2 python3",
    /^(?:-VV|-m pip (?:--version|list.*|show .*|freeze.*|check)|-m json\.tool(?: --[a-z-]+)*(?: [^- ]\S*)?)$/
  ],
  ["php", /^-(?:-(?:ini|rf \w+|rc \w+|re \w+|ri \w+)|[im])$/],
  ["gcc g++ cc c++ clang clang++", /^-(?:dumpversion|dumpmachine|print-search-dirs|print-file-name=\S+)$/],
  [
    "npm",
    /^(?:-\S+ )*(?:(?:ls|list|ll|la|root|prefix|bin|explain|why|query)(?: .*)?|config (?:ls|list|get)(?: .*)?|get \S+|pkg get(?: .*)?|run)$/
  ],
  ["pnpm", /^(?:(?:ls|list|ll|la|why|root|bin)(?: .*)?|config (?:list|get)(?: .*)?|store path|run)$/],
  ["yarn", /^(?:(?:list|why|workspaces (?:list|info))(?: .*)?|config (?:list|get)(?: .*)?|run)$/],
  ["bun", /^pm (?:ls|bin|cache|hash)(?: .*)?$/],
  [
    "pip pip3",
    /^(?:(?:list|show|freeze|check|inspect)(?: .*)?|config (?:list|get|debug)(?: .*)?|cache (?:dir|info|list))$/
  ],
  [
    "poetry pipenv uv conda",
    /^(?:show|list|env list|env info|graph|pip list|pip show \S+|pip freeze|tree|info)(?: --?[a-z-]+)*$/
  ],
  ["cargo", /^(?:--list|version|(?:tree|metadata|locate-project|pkgid|read-manifest)(?: .*)?)$/],
  ["rustc", /^(?:-vV|--version --verbose|--print \S+)$/],
  ["rustup", /^(?:show(?: .*)?|which \S+|(?:toolchain|target|component) list(?: .*)?)$/],
  [
    "go",
    /^(?:version(?: .*)?|env(?: [A-Z]\w*| -json)*|list(?: (?!-(?:exec|toolexec|overlay|modfile))\S+)*|doc(?: .*)?)$/
  ],
  ["gem", /^(?:list(?: .*)?|env(?:ironment)?|which \S+|contents \S+|specification .*)$/],
  ["bundle bundler", /^(?:list|show(?: .*)?|info .*|platform|config(?: list| get \S+)?)$/],
  ["composer", /^(?:show(?: .*)?|licenses|depends .*|why .*)$/],
  ["brew", /^(?:list(?: .*)?|--prefix(?: \S+)?|--cellar|config|leaves|deps .*|uses .*)$/],
  ["apt", /^(?:list|show|policy)(?: .*)?$/],
  ["apt-cache", /^(?:policy|show|search|depends|rdepends|showpkg|madison)(?: .*)?$/],
  ["dpkg", /^(?:-[lLsSpc]|--list|--listfiles|--status|--search|--print-architecture|--get-selections)(?: .*)?$/],
  ["dpkg-query", /^(?:-[WlLsS]|--show|--list)(?: .*)?$/],
  ["rpm", /^-q\S*(?: [^- ]\S*)*$/],
  ["apk", /^(?:info|list|policy)(?: .*)?$/],
  ["pacman", /^-Q\S*(?: .*)?$/],
  ["pkg-config", /^/],
  ["dotnet", /^--(?:info|list-sdks|list-runtimes)$/],
  ["terraform kubectl helm", /^version(?: --client)?(?: -o \w+| --output=\w+| --short)?$/],
  ["asdf mise pyenv rbenv fnm volta", /^(?:list|ls|current|version|versions|which \S+)$/],
  ["crontab", /^-l$/],
  ["mount", /^(?:-l|-t \w+)?$/],
  ["dmesg", /^(?:-[THLx]+)?$/],
  ["ldconfig", /^-p$/],
  ["lsb_release sw_vers", /^(?:-[a-zA-Z]+)?$/],
  ["sysctl", /^(?:-a|(?:-n )?[a-z][\w.]*)$/]
]

const queries = new Map<string, Array<RegExp>>()
for (const [programs, shape] of asked)
  for (const program of programs.split(" ")) queries.set(program, [...(queries.get(program) ?? []), shape])
