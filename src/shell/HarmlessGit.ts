/**
 * Git's part of the harmless table: subcommands that read, each with the options that keep it so.
 *
 * A repository's configuration (a pager, a diff program) belongs to its owner and is not looked at here. Options that
 * bring another configuration, another repository or a program of their own are not listed.
 */
import { takes, type Options } from "./HarmlessOption.js"

/** `words` begin with `git`. */
export const isHarmless = (words: ReadonlyArray<string>): boolean => {
  let at = 1
  while (plainOptions.has(words[at] ?? "")) at++
  const subcommand = words[at]
  if (subcommand === undefined) return true
  const use = subcommands.get(subcommand)
  const rest = words.slice(at + 1)
  return use !== undefined && !rest.some((word) => verifies.test(word)) && use(rest)
}

/** Some calls of the subcommand are harmless. */
export const isListed = (subcommand: string): boolean => subcommands.has(subcommand)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Use = (rest: ReadonlyArray<string>) => boolean

const split = (...lines: ReadonlyArray<string>): ReadonlyArray<string> => lines.flatMap((line) => line.split(" "))

const plainOptions = new Set(split("--no-pager -P --no-optional-locks --literal-pathspecs --version -v"))

/** Formats that show a signature's state run the program that verifies it. */
const verifies = /%[-+ ]?G|%\(\*?signature/

const use =
  (options: Options, check?: (operands: ReadonlyArray<string>, rest: ReadonlyArray<string>) => boolean): Use =>
  (rest) => {
    const operands = takes(options, rest)
    return operands !== undefined && (check === undefined || check(operands, rest))
  }

const diffLong = split(
  "--stat --shortstat --numstat --dirstat --summary --patch --no-patch --patch-with-stat --raw --name-only --name-status",
  "--minimal --patience --histogram --cached --staged --merge-base --color --no-color --no-ext-diff --no-textconv --full-index",
  "--binary --check --exit-code --quiet --text --ignore-space-at-eol --ignore-space-change --ignore-all-space",
  "--ignore-blank-lines --ignore-cr-at-eol --function-context --word-diff --color-words --no-prefix --default-prefix",
  "--find-renames --find-copies --find-copies-harder --no-renames --pickaxe-all --pickaxe-regex --relative --no-relative",
  "--ignore-submodules --submodule --compact-summary --no-indent-heuristic --indent-heuristic --root --abbrev --no-abbrev",
  "--color-moved --no-color-moved --ita-invisible-in-index --cc --combined-all-paths -- --base --ours --theirs"
)
const diffValues = split(
  "--stat --dirstat --unified --color --word-diff --word-diff-regex --color-words --find-renames --find-copies --abbrev",
  "--diff-filter --ignore-submodules --submodule --color-moved --color-moved-ws --ws-error-highlight --inter-hunk-context",
  "--stat-width --stat-name-width --stat-count --diff-algorithm --anchored --src-prefix --dst-prefix --line-prefix",
  "--relative --ignore-matching-lines --find-object --skip-to --rotate-to"
)
const logLong = split(
  "--oneline --graph --all --branches --tags --remotes --decorate --no-decorate --reverse --merges --no-merges --first-parent",
  "--follow --abbrev-commit --no-abbrev-commit --date-order --topo-order --author-date-order --walk-reflogs --left-right",
  "--cherry --cherry-mark --cherry-pick --left-only --right-only --boundary --source --parents --children --no-walk --not",
  "--simplify-merges --simplify-by-decoration --full-history --dense --sparse --ancestry-path --show-pulls --no-notes",
  "--regexp-ignore-case --invert-grep --all-match --extended-regexp --fixed-strings --perl-regexp --full-diff --log-size",
  "--relative-date --use-mailmap --no-mailmap --mailmap --clear-decorations --remove-empty --dd --diff-merges --remerge-diff",
  "--no-expand-tabs --expand-tabs --show-linear-break --in-commit-order --objects --count --timestamp --header --bisect",
  "--date --format --pretty --max-count --since --until"
)
const logValues = split(
  "--format --pretty --since --until --after --before --author --committer --grep --max-count --skip --date --decorate",
  "--decorate-refs --decorate-refs-exclude --branches --tags --remotes --glob --exclude --max-parents --min-parents --encoding",
  "--no-walk --diff-merges --ancestry-path --since-as-filter --expand-tabs --show-linear-break --grep-reflog"
)

const diff: Options = {
  flags: "puzabwWRrtcsq0123456789",
  values: "UGS",
  optional: "MCBlX",
  long: diffLong,
  longValues: diffValues
}

const log: Options = {
  flags: "puzabwWRrtcmsgiEFPq0123456789",
  values: "UGSLn",
  optional: "MCBlX",
  long: [...diffLong, ...logLong],
  longValues: [...diffValues, ...logValues]
}

const listFilters = new Set(split("-l --list --contains --no-contains --merged --no-merged --points-at"))

/** An operand creates a branch or tag, unless the list is asked for. */
const listing = (operands: ReadonlyArray<string>, rest: ReadonlyArray<string>): boolean =>
  operands.length === 0 || rest.some((word) => listFilters.has(word.replace(/=.*$/s, "")))

const listLong = split(
  "--list --contains --no-contains --merged --no-merged --points-at --color --no-color --column --no-column --ignore-case",
  "--omit-empty"
)
const listValues = split(
  "--sort --format --color --column --contains --no-contains --merged --no-merged --points-at --abbrev"
)

/** The first word says what to do, and no option stands in front of it. */
const verb =
  (verbs: { readonly [name: string]: Use }): Use =>
  ([first = "", ...rest]) =>
    Object.hasOwn(verbs, first) && verbs[first]?.(rest) === true

const nothing: Options = {}

const subcommands: ReadonlyMap<string, Use> = new Map<string, Use>([
  [
    "status",
    use({
      flags: "sbvz",
      optional: "u",
      long: split(
        "--short --branch --show-stash --porcelain --long --verbose --untracked-files --ignore-submodules --ignored --column",
        "--no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames"
      ),
      longValues: split("--porcelain --untracked-files --ignore-submodules --ignored --column --find-renames")
    })
  ],
  ...["diff", "diff-tree", "diff-index", "diff-files"].map((name): [string, Use] => [name, use(diff)]),
  ...["log", "show", "whatchanged", "rev-list"].map((name): [string, Use] => [name, use(log)]),
  [
    "shortlog",
    use({
      flags: "nsec",
      optional: "w",
      long: split("--numbered --summary --email --all --no-merges --merges --branches --tags --remotes"),
      longValues: split("--since --until --after --before --author --group --format --date")
    })
  ],
  [
    "blame",
    use({
      flags: "lteswfncp",
      values: "L",
      optional: "MC",
      long: split(
        "--porcelain --line-porcelain --root --show-name --show-number --show-email --date --since --color-lines"
      ),
      longValues: split("--date --since --abbrev")
    })
  ],
  ["annotate", use({ flags: "ltesfncp", values: "L", optional: "MC" })],
  [
    "grep",
    use(
      {
        flags: "inlLcwvEFGPoqhHzaIrpW0123456789",
        values: "efmABC",
        long: split(
          "--cached --untracked --ignore-case --word-regexp --text --full-name --line-number --column --files-with-matches",
          "--name-only --files-without-match --count --all-match --and --or --not --extended-regexp --basic-regexp --perl-regexp",
          "--fixed-strings --show-function --function-context --break --heading --color --no-color --only-matching --quiet --null",
          "--invert-match --recurse-submodules --exclude-standard --no-exclude-standard --recursive --no-recursive"
        ),
        longValues: split("--color --max-depth --max-count --threads --context --after-context --before-context")
      },
      // To a version that does not know the letter before it, it opens a pager.
      (_, rest) => !rest.some((word) => /^-[^-]*O/.test(word))
    )
  ],
  [
    "ls-files",
    use({
      flags: "cdmoisuktvzf",
      values: "x",
      long: split(
        "--cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude-standard --full-name",
        "--error-unmatch --eol --directory --no-empty-directory --deduplicate --debug --recurse-submodules --abbrev"
      ),
      longValues: split("--exclude --abbrev")
    })
  ],
  [
    "ls-tree",
    use({
      flags: "rtldz",
      long: split("--name-only --name-status --object-only --full-name --full-tree --long --abbrev"),
      longValues: split("--abbrev --format")
    })
  ],
  [
    "cat-file",
    use({
      flags: "pets",
      long: split(
        "--batch --batch-check --batch-all-objects --buffer --follow-symlinks --unordered --allow-unknown-type"
      ),
      longValues: split("--batch --batch-check")
    })
  ],
  [
    "rev-parse",
    use({
      flags: "q",
      long: split(
        "--show-toplevel --abbrev-ref --short --verify --git-dir --is-inside-work-tree --is-inside-git-dir --absolute-git-dir",
        "--is-bare-repository --is-shallow-repository --symbolic-full-name --symbolic --show-prefix --show-cdup --git-common-dir",
        "--show-superproject-working-tree --quiet --all --branches --tags --remotes --revs-only --no-revs --flags --no-flags",
        "--show-object-format --show-ref-format --local-env-vars"
      ),
      longValues: split("--short --abbrev-ref --branches --tags --remotes --glob --exclude --since --until --git-path")
    })
  ],
  [
    "describe",
    use({
      long: split("--tags --all --always --long --dirty --broken --contains --exact-match --first-parent"),
      longValues: split("--abbrev --match --exclude --candidates --dirty --broken")
    })
  ],
  [
    "name-rev",
    use({ long: split("--tags --all --name-only --always --no-undefined"), longValues: split("--refs --exclude") })
  ],
  ["merge-base", use({ flags: "a", long: split("--all --is-ancestor --octopus --fork-point --independent") })],
  [
    "show-ref",
    use({
      flags: "dsqh",
      long: split("--heads --branches --tags --head --verify --exists --dereference --hash --abbrev --quiet"),
      longValues: split("--hash --abbrev")
    })
  ],
  [
    "for-each-ref",
    use({
      long: split("--contains --no-contains --merged --no-merged --points-at --ignore-case --omit-empty"),
      longValues: split(
        "--format --sort --count --contains --no-contains --merged --no-merged --points-at --exclude --color"
      )
    })
  ],
  ["count-objects", use({ flags: "vH", long: split("--verbose --human-readable") })],
  ["check-ignore", use({ flags: "qvnz", long: split("--quiet --verbose --non-matching --no-index --stdin") })],
  ["check-attr", use({ flags: "az", long: split("--all --cached --stdin") })],
  [
    "branch",
    use(
      {
        flags: "arvi",
        long: [...listLong, ...split("--all --remotes --show-current --verbose --abbrev --no-abbrev")],
        longValues: listValues
      },
      listing
    )
  ],
  // `-l` had another meaning in old versions of `git branch`.
  ["tag", use({ flags: "il", optional: "n", long: listLong, longValues: listValues }, listing)],
  ["stash", verb({ list: use(log), show: use(diff) })],
  [
    "remote",
    (rest) => rest.length === 0 || (rest.length === 1 && /^(?:-v|--verbose)$/.test(rest[0] ?? "")) || remote(rest)
  ],
  ["reflog", (rest) => rest.length === 0 || reflog(rest)],
  ["worktree", verb({ list: use({ flags: "vz", long: split("--porcelain --verbose") }) })],
  ["version", use(nothing)],
  ["range-diff", use(diff)]
])

const remote = verb({ "get-url": use({ long: split("--all --push") }) })
const reflog = verb({ show: use(log) })
