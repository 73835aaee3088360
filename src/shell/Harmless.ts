/**
 * The harmless table: programs that only read and print, with the options that keep them so.
 *
 * It is an allow list twice over. A program outside the table is not harmless, and an option that is not named here
 * makes a call not harmless. So a future option that writes, executes or loads is asked about. Options are compared as
 * they are written: an abbreviation (`--out=x`) matches none. Letters are compared one by one, so a cluster (`-ro x`)
 * is as good as its worst letter. A word that looks like an option counts as one in every place, behind `--` and as the
 * value of another option too, because which words a program takes as values cannot be relied on.
 */
import * as HarmlessGit from "./HarmlessGit.js"
import { takes, type Options } from "./HarmlessOption.js"
import * as Program from "./Program.js"

/** A command with these words only reads and prints. `open`: unknown words may follow. */
export const isHarmless = (words: ReadonlyArray<string>, open = false): boolean => {
  const program = words[0]
  if (program === undefined) return false
  if (anything.has(program)) return true
  if (open) return false
  if (program === "git") return HarmlessGit.isHarmless(words)
  const use = table.get(program)
  return use !== undefined && use(words.slice(1))
}

/** Programs of which at least some calls are harmless. */
export const isListed = (program: string): boolean => program === "git" || anything.has(program) || table.has(program)

/** Known to run no program that stands among its words, apart from what its options tell it. Any other program may. */
export const isKnown = (program: string): boolean => {
  const name = Program.isPlainName(program) ? program : Program.nameOf(program)
  return (
    anything.has(name) ||
    takingFiles.has(name) ||
    plainBuiltins.has(name) ||
    isListed(name) ||
    Program.canEscape(program) ||
    anything.has(Program.basename(program)) ||
    table.has(Program.basename(program))
  )
}

/** The program has subcommands: the word behind its name says what it does. */
export const hasSubcommands = (program: string): boolean =>
  !anything.has(program) && !table.has(program) && !takingFiles.has(program)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Use = (rest: ReadonlyArray<string>) => boolean

/** None of their options writes a file, runs a program or loads code, in any version in use. */
const anything: ReadonlySet<string> = new Set(
  [
    "ls dir vdir cat tac nl rev head tail wc pwd whoami id groups tty nproc uptime echo true false sleep",
    "seq expr factor basename dirname readlink realpath stat du df free which whereis type printenv locale getconf lscpu",
    "grep egrep fgrep cut paste tr comm join fold fmt expand unexpand od cmp cksum sum md5sum sha1sum sha224sum",
    "sha256sum sha384sum sha512sum b2sum ps numfmt tsort pathchk"
  ].flatMap((line) => line.split(" "))
)

/** Not harmless, but their operands are files. A program outside this list may have subcommands. */
const takingFiles: ReadonlySet<string> = new Set(
  (
    "touch mkdir rmdir rm cp mv ln install chmod chown chgrp tee truncate shred unlink mktemp mkfifo dd split csplit patch " +
    "gzip gunzip bzip2 bunzip2 xz unxz zstd zip unzip curl wget rsync scp"
  ).split(" ")
)

/** What a shell does itself, without running its words. */
const plainBuiltins: ReadonlySet<string> = new Set(
  ": [ return shift exit break continue wait jobs kill pkill killall umask ulimit times tput clear reset".split(" ")
)

const use =
  (options: Options, check?: (operands: ReadonlyArray<string>) => boolean): Use =>
  (rest) => {
    const operands = takes(options, rest)
    return operands !== undefined && (check === undefined || check(operands))
  }

/** A word that the shell cannot expand to several words. */
const single = (word: string): boolean => !/[*?[]/.test(word)

/** At most one operand: a second one would be an output file. */
const reading: (operands: ReadonlyArray<string>) => boolean = (operands) =>
  operands.length === 0 || (operands.length === 1 && operands.every(single))

const long = (text: string): ReadonlyArray<string> => text.split(" ")

const findTests = new Set(
  [
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -depth -d",
    "-size -mtime -mmin -ctime -cmin -atime -amin -newer -anewer -cnewer -newermt -newerat -newerct -empty -user -group -uid",
    "-gid -perm -links -inum -samefile -follow -mount -xdev -x -s -E -H -L -P -not -and -or -a -o -print -print0 -printf -ls",
    "-prune -quit -true -false -daystart -readable -writable -executable -nouser -nogroup -noleaf -lname -ilname -used",
    "-fstype -warn -nowarn -ignore_readdir_race -noignore_readdir_race -O1 -O2 -O3"
  ].flatMap((line) => line.split(" "))
)

/** Sizes and times may be negative. `-exec` and its like are judged where the programs they run are judged. */
const find: Use = (rest) =>
  rest.every((word, i) => !word.startsWith("-") || findTests.has(word) || (/^-\d+[a-zA-Z]?$/.test(word) && i > 0))

/** Only printing lines by their numbers. */
const sed: Use = use(
  { flags: "nEru", long: long("--quiet --silent --regexp-extended --unbuffered") },
  ([script = ""]) => /^(?:(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?p|\d+q)$/.test(script)
)

/** A word without brackets: a shell may evaluate an expression in brackets, and run a command inside it. */
const uncomputed = (word: string): boolean => !/[[\]$`(]/.test(word)

const table: ReadonlyMap<string, Use> = new Map<string, Use>([
  ["find", find],
  ["gfind", find],
  ["sed", sed],
  ["printf", (rest) => rest[0]?.startsWith("-") !== true && rest.every((word) => !/\$\(|`|\[/.test(word))],
  [
    "test",
    (rest) =>
      rest.every((word) => uncomputed(word) && (!word.startsWith("-") || /^-(?:[a-uw-zA-QS-Z]|[a-z]{2})$/.test(word)))
  ],
  [
    "date",
    use(
      {
        flags: "uR",
        values: "dr",
        optional: "I",
        long: long("--utc --universal --rfc-email --rfc-2822"),
        longValues: long("--date --reference --iso-8601 --rfc-3339")
      },
      (operands) => operands.every((word) => word.startsWith("+"))
    )
  ],
  [
    "sort",
    use({
      flags: "bdfgiMhnRrVcCmsuz",
      values: "kt",
      long: long(
        "--reverse --unique --numeric-sort --human-numeric-sort --version-sort --general-numeric-sort --ignore-case --ignore-leading-blanks --dictionary-order --month-sort --random-sort --check --stable --zero-terminated --merge"
      ),
      longValues: long("--key --field-separator --check --sort")
    })
  ],
  [
    "uniq",
    use(
      {
        flags: "cdDiuz",
        values: "fsw",
        long: long("--count --repeated --unique --ignore-case --zero-terminated"),
        longValues: long("--skip-fields --skip-chars --check-chars --all-repeated --group")
      },
      reading
    )
  ],
  ["xxd", use({ flags: "abeiEpu", values: "clsgo" }, reading)],
  ["hexdump", use({ flags: "bcCdovx", values: "ns" })],
  ["strings", use({ flags: "afo", values: "nte" })],
  ["column", use({ flags: "tex", values: "sc" })],
  [
    "file",
    use({
      flags: "bikhLNrs0E",
      long: long(
        "--brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension --keep-going --print0 --raw"
      )
    })
  ],
  [
    "tree",
    use({
      flags: "adfixpsughDFqNQrtcUnCASJXv",
      lastValues: "LPI",
      long: long(
        "--noreport --dirsfirst --filesfirst --gitignore --prune --du --si --inodes --device --matchdirs --ignore-case --metafirst"
      ),
      longValues: long("--charset --filelimit --timefmt --sort")
    })
  ],
  [
    "diff",
    use({
      flags: "qrsuciwbBaNydtTHpEZe",
      values: "UCWxIL",
      long: long(
        "--brief --recursive --report-identical-files --unified --context --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --text --new-file --side-by-side --suppress-common-lines --minimal --no-dereference --strip-trailing-cr --expand-tabs --show-c-function --ed --normal"
      ),
      longValues: long("--unified --context --width --exclude --ignore-matching-lines --label --color")
    })
  ],
  [
    "rg",
    use({
      flags: "ciFHhIlLnNopPqsSuUvVwx0.a",
      values: "ABCdeEfgjmMrtT",
      long: long(
        "--hidden --no-ignore --no-ignore-vcs --ignore-case --smart-case --case-sensitive --fixed-strings --word-regexp --line-regexp --files --files-with-matches --files-without-match --count --count-matches --line-number --no-line-number --no-heading --heading --no-filename --with-filename --only-matching --invert-match --multiline --multiline-dotall --pcre2 --json --vimgrep --column --trim --text --follow --null --stats --type-list --no-messages --no-config --unrestricted --quiet --passthru --pretty --crlf --version"
      ),
      longValues: long(
        "--glob --iglob --type --type-not --context --after-context --before-context --max-count --max-depth --max-filesize --max-columns --regexp --file --color --colors --sort --sortr --replace --threads --encoding --engine --ignore-file"
      )
    })
  ],
  ...(["fd", "fdfind"] as const).map((name): [string, Use] => [
    name,
    use({
      flags: "HIusigFaLp0q1",
      values: "dtecESjo",
      long: long(
        "--hidden --no-ignore --no-ignore-vcs --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --follow --full-path --print0 --quiet --max-one-result --unrestricted --one-file-system --prune"
      ),
      longValues: long(
        "--max-depth --min-depth --exact-depth --type --extension --exclude --size --changed-within --changed-before --color --max-results --threads --owner"
      )
    })
  ]),
  [
    "jq",
    use({
      flags: "rcsnejaSCMRh",
      long: long(
        "--raw-output --compact-output --slurp --null-input --exit-status --join-output --ascii-output --sort-keys --color-output --monochrome-output --raw-input --tab --arg --argjson --args --jsonargs --stream --seq"
      ),
      longValues: long("--indent")
    })
  ],
  ["uname", use({ flags: "asnrvmpio" })],
  ["base64", use({ flags: "d", values: "w", long: long("--decode") })],
  ["lsblk", use({ flags: "abdDfiJlmMnOpPrsStz", values: "oIex" })],
  // Wrappers: the program behind them is judged where wrapped programs are judged.
  ...["env", "nice", "nohup", "timeout", "time", "stdbuf", "setsid", "command", "xargs"].map((name): [string, Use] => [
    name,
    () => true
  ])
])
