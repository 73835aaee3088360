/**
 * The harmless table: programs that only read and print, with the options that keep them so.
 *
 * It is an allow list twice over. A program outside the table is not harmless, and a word that its list does not hold
 * makes a call not harmless. So a future option that writes, executes or loads is asked about. A listed program reads
 * the files among its operands and no others: an option that names a file to read, and a program text, are not listed.
 */
import * as HarmlessGit from "./HarmlessGit.js"
import { reader, type Options } from "./HarmlessOption.js"

/**
 * Which words follow that are not known yet. `path`: each `{}` is one path, which cannot begin with a dash. `paths`: more
 * paths may follow. `words`: any words may follow.
 */
export type Open = "path" | "paths" | "words"

/** How a call runs, beside its words. */
export interface How {
  readonly open?: Open | undefined
  /** It runs no other program. */
  readonly alone?: boolean
  /** A sandbox decides what it can reach. */
  readonly confined?: boolean
}

/** A command with these words only reads and prints. */
export const isHarmless = (words: ReadonlyArray<string>, how: How = plain): boolean => {
  const program = words[0] ?? ""
  const { alone = false, confined = false, open } = how
  // It shows all variables.
  if (program === "env" && alone) return false
  if (saying.has(program) || wrapping.has(program)) return true
  if (open === "words") return confined && unwriting.has(program)
  if (open === "paths" && writing.has(program)) return false
  if (program === "git") return HarmlessGit.isHarmless(words)
  const use = table.get(program) ?? (confined ? confinedTable.get(program) : undefined)
  return use !== undefined && use(words.slice(1))
}

/**
 * Every file that it reads is named, or found without following a link. `globs`: a word of it is a glob, which finds
 * links too.
 */
export const followsNoLink = (words: ReadonlyArray<string>, globs: boolean): boolean => {
  const program = words[0] ?? ""
  // Names alone, and Git looks behind no link.
  if (globs && program !== "git" && program !== "printf" && !saying.has(program)) return false
  return (program !== "find" && program !== "gfind") || runsOnFiles(words)
}

/** Programs of which at least some calls are harmless. */
export const isListed = (program: string): boolean =>
  program === "git" || saying.has(program) || wrapping.has(program) || table.has(program) || confinedTable.has(program)

/** The program has subcommands: the word behind its name says what it does. */
export const hasSubcommands = (program: string): boolean => !isOwn(program) && !takingFiles.has(program)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const plain: How = {}

const isOwn = (program: string): boolean => program !== "git" && isListed(program)

const names = (...lines: ReadonlyArray<string>): ReadonlySet<string> =>
  new Set(lines.flatMap((line) => line.split(" ")))

/** They read no file, and no word of theirs is an option that does more. */
const saying = names("echo true false expr")

/** The program behind them is judged by itself. */
const wrapping = names("env nice nohup timeout time stdbuf setsid command xargs")

/** None of their options writes a file, runs a program or loads code, in any version in use. */
const unwriting = names(
  "ls dir vdir cat tac nl rev head tail wc pwd basename dirname readlink realpath stat du df",
  "grep egrep fgrep cut paste tr comm join fold fmt expand unexpand od cmp",
  "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum"
)

/** A second operand is an output. */
const writing = names("uniq xxd base64")

/** Not harmless, but their operands are files. A program outside this list may have subcommands. */
const takingFiles = names(
  "touch mkdir rmdir rm cp mv ln install chmod chown chgrp tee truncate shred unlink mktemp mkfifo dd split csplit patch",
  "gzip gunzip bzip2 bunzip2 xz unxz zstd zip unzip curl wget rsync scp printenv"
)

type Use = (rest: ReadonlyArray<string>) => boolean

/** These options, and what every program has. */
const use = (options: string, more: Omit<Options, "options"> = {}, check?: Use): Use => {
  const read = reader({ ...more, options: `--help --version ${options}`.trim() })
  return (rest) => {
    const operands = read(rest)
    return operands !== undefined && (check === undefined || check(operands))
  }
}

const many = (programs: string, use: Use): ReadonlyArray<readonly [string, Use]> =>
  programs.split(" ").map((name) => [name, use] as const)

// ---- programs with a reading of their own

const findTests = names(
  "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -depth -d",
  "-size -mtime -mmin -ctime -cmin -atime -amin -newermt -newerat -newerct -empty -user -group -uid",
  "-gid -perm -links -inum -mount -xdev -x -s -E -H -P -not -and -or -a -o -print -print0 -printf -ls",
  "-prune -quit -true -false -daystart -readable -writable -executable -nouser -nogroup -noleaf -lname -ilname -used",
  "-fstype -warn -nowarn -ignore_readdir_race -noignore_readdir_race -O1 -O2 -O3"
)

/** Sizes and times may be negative. `-exec` and its like are judged where the programs they run are judged. */
const find: Use = (rest) =>
  rest.every((word, i) => !word.startsWith("-") || findTests.has(word) || (/^-\d+[a-zA-Z]?$/.test(word) && i > 0))

/** Each program that `find` runs gets plain files: `-type f` holds for it. */
const runsOnFiles = (words: ReadonlyArray<string>): boolean => {
  let depth = 0
  let isFile = false
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "(") depth++
    else if (word === ")") depth--
    else if (word === "-exec" || word === "-ok") {
      if (!isFile || depth > 0) return false
      while (at < words.length && words[at] !== ";" && words[at] !== "+") at++
    } else if (depth > 0) continue
    else if (word === "-o" || word === "-or" || word === ",") isFile = false
    else if (word === "-type") isFile ||= words[at + 1] === "f" && !/^(?:!|-not)$/.test(words[at - 1] ?? "")
  }
  return true
}

/** Only printing lines by their numbers. */
const sed = use("-nEruz --quiet --silent --regexp-extended --unbuffered --null-data", {}, ([script = ""]) =>
  /^(?:(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?p|\d+q)$/.test(script)
)

/** A word without brackets: a shell may evaluate an expression in brackets, and run a command inside it. */
const uncomputed = (word: string): boolean => !/[[\]$`(]/.test(word)

const test: Use = (rest) =>
  rest.every((word) => uncomputed(word) && (!word.startsWith("-") || /^-(?:[a-uw-zA-QS-Z]|[a-z]{2})$/.test(word)))

/** Formats, not the variables of a process: those may hold secrets. */
const processColumns = /^[a-z%_,]+$/
const showsVariables = /env/

/** Without a dash, `e` shows variables. With one it selects all processes. */
const ps: Use = (rest) =>
  rest.every((word, at) => {
    const [, letters] = /^-([A-Za-z]*)o$/.exec(word) ?? []
    if (/^-[A-Za-z]*o$|^-[pC]$|^--sort$/.test(rest[at - 1] ?? ""))
      return processColumns.test(word) ? !showsVariables.test(word) : /^[\d,]+$/.test(word)
    return (
      /^-[AaedfFlLjHMTNrwcmxyP]+$/.test(word) ||
      (letters !== undefined && /^[AaedfFlLjHMTNrwcmxyP]*$/.test(letters)) ||
      /^-?aux[wf]*$|^[aAcfghHjlLmnrSTuvwxX]+$|^\d[\d,]*$|^-[pC]$|^--(?:forest|no-headers?|headers|help|version|sort|sort=[-+a-z%_,]+|ppid=[\d,]+|pid=[\d,]+)$/.test(
        word
      )
    )
  })

const date = use(
  "-uRj -d= -v= -I? --utc --universal --rfc-email --rfc-2822 --date= --iso-8601? --rfc-3339= --debug --resolution",
  {},
  (operands) => operands.every((word) => word.startsWith("+"))
)

/** A word behind `@` is a file with options. */
const strings = use(
  "-adfow -n# -# -tesU= --all --data --print-file-name --bytes= --radix= --include-all-whitespace --encoding= --unicode= --output-separator="
)

const diff = use(
  "-qrsuciwbBaNydtTpHEZen -UCW# -xIFL= -# --brief --recursive --report-identical-files --unified? --context? --ignore-case " +
    "--ignore-all-space --ignore-space-change --ignore-trailing-space --ignore-tab-expansion --ignore-blank-lines --text --new-file " +
    "--unidirectional-new-file --side-by-side --left-column --suppress-common-lines --minimal --no-dereference --strip-trailing-cr " +
    "--expand-tabs --initial-tab --show-c-function --show-function-line= --ed --rcs --normal --width= --exclude= " +
    "--ignore-matching-lines= --label= --tabsize= --color? --speed-large-files --ignore-file-name-case --no-ignore-file-name-case " +
    "--suppress-blank-empty"
)

/** `diff -r`, which reads what links lead to. */
const walking = /(?:^| )(?:-[a-zA-Z]*r|--recursive)/

// ---- the table

const ls =
  "-aAbBcCdDfFgGhHiklmnNopqQrRsStTuUvxXZ1@eOW -Iw= --all --almost-all --author --escape --block-size= --ignore-backups --color? " +
  "--directory --dired --classify? --file-type --format= --full-time --no-group --group-directories-first --human-readable --si " +
  "--dereference-command-line --dereference-command-line-symlink-to-dir --hide= --hyperlink? --indicator-style= --inode --ignore= " +
  "--kibibytes --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name --quoting-style= " +
  "--reverse --recursive --size --sort= --time= --time-style= --tabsize= --width= --context --zero"

const grep =
  "-EFGPiwxyzsvVbnHhoqaIrlLcTZuUSOp -mABC# -# -edD= --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp= " +
  "--ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match --max-count= --byte-offset " +
  "--line-number --line-buffered --with-filename --no-filename --label= --only-matching --quiet --silent --binary-files= --text " +
  "--directories= --devices= --recursive --include= --include-dir= --exclude= --exclude-dir= " +
  "--files-without-match --files-with-matches --count --initial-tab --null --before-context= --after-context= --context= " +
  "--group-separator= --no-group-separator --color? --colour? --binary"

/** `--check` opens the files that its operand lists. */
const digest = "-btz -al# --algorithm= --length= --binary --text --tag --untagged --zero"

const rg =
  "-ciFHhIlnNopPqsSuUvVwx0.a -ABCdjmM# -egtTEr= --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --ignore-case --smart-case " +
  "--case-sensitive --fixed-strings --word-regexp --line-regexp --files --files-with-matches --files-without-match --count " +
  "--count-matches --line-number --no-line-number --no-heading --heading --no-filename --with-filename --only-matching " +
  "--invert-match --multiline --multiline-dotall --pcre2 --json --vimgrep --column --no-column --trim --text --null --null-data --stats " +
  "--type-list --no-messages --no-config --unrestricted --quiet --passthru --pretty --crlf --byte-offset --include-zero --one-file-system --max-columns-preview " +
  "--glob= --iglob= --type= --type-not= --context= --after-context= --before-context= --max-count= --max-depth= --max-filesize= " +
  "--max-columns= --regexp= --color= --colors= --sort= --sortr= --replace= --threads= --encoding= --engine= --context-separator= --glob-case-insensitive"

const fd =
  "-HIusigFap0q1 -dj# -tecES= --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --case-sensitive --ignore-case --glob --regex --fixed-strings " +
  "--absolute-path --full-path --print0 --quiet --max-one-result --unrestricted --one-file-system --prune --max-depth= " +
  "--min-depth= --exact-depth= --type= --extension= --exclude= --size= --changed-within= --changed-before= --color= --max-results= " +
  "--threads= --owner="

const table: ReadonlyMap<string, Use> = new Map<string, Use>([
  ...many("find gfind", find),
  ["sed", sed],
  ["printf", (rest) => rest[0]?.startsWith("-") !== true && rest.every((word) => !/\$\(|`|\[/.test(word))],
  ["test", test],
  ["[", (rest) => rest.at(-1) === "]" && test(rest.slice(0, -1))],
  ["ps", ps],
  ["date", date],
  ["strings", (rest) => strings(rest) && rest.every((word) => !/^@|\{\}/.test(word))],
  ...many("ls dir vdir", use(ls)),
  [
    "cat",
    use("-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting")
  ],
  ["tac", use("-br -s= --before --regex --separator=")],
  [
    "nl",
    use(
      "-p -bdfhns= -ilvw# --body-numbering= --section-delimiter= --footer-numbering= --header-numbering= --line-increment= " +
        "--join-blank-lines= --number-format= --no-renumber --number-separator= --starting-line-number= --number-width="
    )
  ],
  ["head", use("-qvz -cn# -# --bytes= --lines= --quiet --silent --verbose --zero-terminated")],
  [
    "tail",
    use(
      "-fFqvrz -bcns# -# --bytes= --lines= --follow? --quiet --silent --verbose --retry --pid= --sleep-interval= " +
        "--max-unchanged-stats= --zero-terminated"
    )
  ],
  ["wc", use("-cmlLw --bytes --chars --lines --max-line-length --words --total=")],
  ["pwd", use("-LP --logical --physical")],
  ["id", use("-aAFgGnpPruzZ --context --group --groups --name --real --user --zero")],
  ...many("rev whoami groups sleep tsort", use("")),
  ["tty", use("-s --quiet --silent")],
  ["nproc", use("--all --ignore=")],
  ["uptime", use("-ps --pretty --since")],
  ["seq", use("-w -# -fs= --format= --separator= --equal-width")],
  ["basename", use("-az -s= --multiple --suffix= --zero")],
  ["dirname", use("-z --zero")],
  [
    "readlink",
    use(
      "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero"
    )
  ],
  [
    "realpath",
    use(
      "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip --no-symlinks " +
        "--relative-to= --relative-base= --zero"
    )
  ],
  ["stat", use("-LftFlnqrsx -c= --dereference --file-system --cached= --format= --printf= --terse")],
  [
    "du",
    use(
      "-0abcDhHklmnPsSxA -d# -BtI= --null --all --apparent-size --block-size= --bytes --total --dereference-args --max-depth= " +
        "--human-readable --inodes --count-links --no-dereference --separate-dirs --si --summarize --threshold= --time? " +
        "--time-style= --exclude= --one-file-system"
    )
  ],
  [
    "df",
    use(
      "-aAhHiIklmnPTvgbcY -Btx= --all --block-size= --human-readable --si --inodes --local --no-sync --output? --portability --total " +
        "--type= --print-type --exclude-type="
    )
  ],
  [
    "free",
    use(
      "-bkmghltvwL -cs# --bytes --kilo --mega --giga --tera --peta --kibi --mebi --gibi --tebi --pebi --human --si --lohi --line " +
        "--total --committed --seconds= --count= --wide"
    )
  ],
  ["which", use("-as --all")],
  ["whereis", use("-bmsul")],
  ["type", use("-aftpP")],
  // With `-m` it runs `gzip`.
  ["locale", use("-ack --all-locales --category-name --keyword-name")],
  // With `-v` it runs a program of that name.
  ["getconf", use("-a")],
  [
    "lscpu",
    use(
      "-abBcJxy -eCp? --all --online --bytes --offline --json --hex --physical --output-all --extended? --parse? --caches?"
    )
  ],
  ...many("grep egrep fgrep", use(grep, { dashed: true })),
  [
    "cut",
    use(
      "-nszw -bcf# -d= --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter= --zero-terminated"
    )
  ],
  ["paste", use("-sz -d= --delimiters= --serial --zero-terminated")],
  ["tr", use("-cCdstu --complement --delete --squeeze-repeats --truncate-set1")],
  ["comm", use("-123iz --check-order --nocheck-order --output-delimiter= --total --zero-terminated")],
  ["join", use("-iz -aejotv12= --ignore-case --check-order --nocheck-order --header --zero-terminated")],
  ["fold", use("-bs -w# -# --bytes --spaces --width=")],
  [
    "fmt",
    use(
      "-cstumn -p= -wg# -# --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing --width= --goal="
    )
  ],
  ["expand", use("-i -t= -# --initial --tabs=")],
  ["unexpand", use("-a -t= --all --first-only --tabs=")],
  [
    "od",
    use(
      "-abcdDefFHhiIlLoOsvxXB -jN# -AtS= -w? --address-radix= --endian= --skip-bytes= --read-bytes= --strings? --format= " +
        "--output-duplicates --width? --traditional"
    )
  ],
  ["cmp", use("-blsxhz -in# --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent")],
  ["sum", use("-rs --sysv")],
  ...many("cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum", use(digest)),
  [
    "numfmt",
    use(
      "-d= -z --debug --delimiter= --field= --format= --from= --from-unit= --grouping --header? --invalid= --padding= --round= " +
        "--suffix= --to= --to-unit= --zero-terminated"
    )
  ],
  ["pathchk", use("-pP --portability")],
  [
    "sort",
    use(
      "-bdfgiMhnRrVcCmsuz -k# -t= --reverse --unique --numeric-sort --human-numeric-sort --version-sort --general-numeric-sort " +
        "--ignore-case --ignore-leading-blanks --ignore-nonprinting --dictionary-order --month-sort --random-sort --check? --stable " +
        "--zero-terminated --merge --debug --key= --field-separator= --sort= --parallel= --batch-size="
    )
  ],
  [
    "uniq",
    use(
      "-cdDiuz -fsw# --count --repeated --unique --ignore-case --zero-terminated --skip-fields# --skip-chars# --check-chars# " +
        "--all-repeated? --group?",
      { most: 1 }
    )
  ],
  [
    "xxd",
    use("-a -b -C -d -e -E -i -p -ps -plain -u -uppercase -include -bits -c# -cols# -g# -l# -len# -o# -s# -seek#", {
      most: 1,
      single: true
    })
  ],
  ...many("hexdump hd", use("-bcCdovxX -ns# -e= --canonical --one-byte-octal --length= --skip= --no-squeezing")),
  [
    "column",
    use(
      "-texdLJ -c# -soNOHRTWE= --table --json --separator= --output-separator= --output-width= --table-columns= " +
        "--table-noheadings --fillrows --keep-empty-lines --table-right= --table-hide= --table-order= --table-name= --table-truncate= " +
        "--table-wrap= --table-noextreme= --table-header-repeat"
    )
  ],
  [
    "file",
    use(
      "-bihkLnNrs0EI -F= --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension --keep-going " +
        "--print0 --raw --no-pad --no-buffer --special-files --separator="
    )
  ],
  [
    "tree",
    use(
      "-adfixpsughDFqNQrtcUnCASJXv -L# -PI= --noreport --dirsfirst --filesfirst --gitignore --prune --du --si --inodes --device " +
        "--matchdirs --ignore-case --metafirst --charset= --filelimit= --timefmt= --sort="
    )
  ],
  ["diff", (rest) => diff(rest) && (!walking.test(rest.join(" ")) || rest.includes("--no-dereference"))],
  ["rg", use(rg, { dashed: true })],
  ...many("fd fdfind", use(fd)),
  [
    "uname",
    use(
      "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --hardware-platform " +
        "--operating-system"
    )
  ],
  ["base64", use("-dD -w# --decode --ignore-garbage --wrap=", { most: 1 })],
  ["lsblk", use("-aAbdDfiJlmMnOpPrsStTyz -oIexEw=")]
])

/** Programs with a text that names files: only where a sandbox decides which files there are. */
const confinedTable: ReadonlyMap<string, Use> = new Map<string, Use>([
  [
    "jq",
    use(
      "-rcsnejaSCMR --raw-output --compact-output --slurp --null-input --exit-status --join-output --ascii-output --sort-keys " +
        "--color-output --monochrome-output --raw-input --tab --arg= --argjson= --args --jsonargs --stream --seq --indent="
    )
  ]
])
