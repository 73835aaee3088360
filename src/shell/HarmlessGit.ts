/**
 * Git's part of the harmless table: subcommands that read, each with the options that keep it so.
 *
 * A repository's configuration (a pager, a diff program) belongs to its owner and is not looked at here. Options that
 * bring another configuration, another repository, a file to read or a program of their own are not listed. Git is called
 * with settings of ours in its environment, so nothing in a line may touch those: see `ProgramRun`.
 */
import { reader, type Options } from "./HarmlessOption.js"

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

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Use = (rest: ReadonlyArray<string>) => boolean

const plainOptions = new Set("--no-pager -P --no-optional-locks --literal-pathspecs --version -v".split(" "))

/**
 * Formats and orders by a signature's state run the program that verifies it. A whole diff of a submodule runs git in what is
 * there now, which may be no submodule any more.
 */
const verifies = /%[-+ ]?G|%\(\*?signature|^--sort=.*signature|^-?\*?signature|^--submodule=diff$/

const use = (options: string, more: Omit<Options, "options"> = {}): Use => {
  const read = reader({ ...more, options })
  return (rest) => read(rest) !== undefined
}

/** A first operand would create a branch or a tag. */
const listing = { most: 0 } as const

/** The first word says what to do, and no option stands in front of it. */
const verb =
  (verbs: { readonly [name: string]: Use }, otherwise: Use = () => false): Use =>
  (rest) => {
    const [first = "", ...behind] = rest
    const use = Object.hasOwn(verbs, first) ? verbs[first] : undefined
    return use === undefined ? otherwise(rest) : use(behind)
  }

const diff =
  "-puzabwWRrtcsq -U# -# -l# -GSI= -MCBX? --stat? --shortstat --numstat --dirstat? --summary --patch --no-patch --patch-with-stat " +
  "--patch-with-raw --raw --name-only --name-status --minimal --patience --histogram --cached --staged --merge-base --color? " +
  "--no-color --no-ext-diff --no-textconv --full-index --binary --check --exit-code --quiet --text --ignore-space-at-eol " +
  "--ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --function-context --word-diff? " +
  "--word-diff-regex= --color-words? --no-prefix --default-prefix --find-renames? --find-copies? --find-copies-harder --no-renames " +
  "--pickaxe-all --pickaxe-regex --relative? --no-relative --ignore-submodules? --submodule? --compact-summary " +
  "--no-indent-heuristic --indent-heuristic --root --abbrev? --no-abbrev --color-moved? --no-color-moved --color-moved-ws= " +
  "--ws-error-highlight= --ita-invisible-in-index --cc --combined-all-paths --base --ours --theirs --unified= --diff-filter= " +
  "--inter-hunk-context= --stat-width= --stat-name-width= --stat-count= --diff-algorithm= --anchored= --src-prefix= --dst-prefix= " +
  "--line-prefix= --ignore-matching-lines= --find-object= --skip-to= --rotate-to="

const log =
  `${diff} -mgiEFP -L= -n# --oneline --graph --all --branches? --tags? --remotes? --glob= --exclude= --decorate? --no-decorate ` +
  "--decorate-refs= --decorate-refs-exclude= --clear-decorations --reverse --merges --no-merges --first-parent --follow " +
  "--abbrev-commit --no-abbrev-commit --date-order --topo-order --author-date-order --walk-reflogs --left-right --cherry " +
  "--cherry-mark --cherry-pick --left-only --right-only --boundary --source --parents --children --no-walk? --not " +
  "--simplify-merges --simplify-by-decoration --full-history --dense --sparse --ancestry-path? --show-pulls --no-notes " +
  "--regexp-ignore-case --invert-grep --all-match --extended-regexp --basic-regexp --fixed-strings --perl-regexp --full-diff " +
  "--log-size --relative-date --use-mailmap --no-mailmap --mailmap --remove-empty --dd --diff-merges= --remerge-diff " +
  "--no-expand-tabs --expand-tabs? --show-linear-break? --in-commit-order --objects --count --timestamp --header --bisect --date= " +
  "--format= --pretty? --max-count= --skip= --since= --until= --after= --before= --since-as-filter= --author= --committer= --grep= " +
  "--grep-reflog= --max-parents= --min-parents= --encoding="

const list =
  "-i --contains= --no-contains= --merged= --no-merged= --points-at= --color? --no-color --column? --no-column --ignore-case " +
  "--omit-empty --sort= --format= --abbrev?"
const branch = `-arv --all --remotes --verbose --no-abbrev ${list}`
const tag = `-n? ${list}`

const subcommands: ReadonlyMap<string, Use> = new Map<string, Use>([
  [
    "status",
    use(
      "-sbvz -uM? --short --branch --show-stash --porcelain? --long --verbose --null --untracked-files? --ignore-submodules? --ignored? " +
        "--column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?"
    )
  ],
  ...["diff", "diff-tree", "diff-index", "diff-files", "range-diff"].map((name): [string, Use] => [name, use(diff)]),
  ...["log", "show", "whatchanged", "rev-list"].map((name): [string, Use] => [name, use(log)]),
  [
    "shortlog",
    use(
      "-nsec -w? --numbered --summary --email --committer --all --no-merges --merges --branches? --tags? --remotes? --since= --until= " +
        "--after= --before= --author= --group= --format= --date="
    )
  ],
  [
    "blame",
    use(
      "-lteswfncpb -L= -MC? --porcelain --line-porcelain --incremental --root --show-name --show-number --show-email --show-stats " +
        "--date= --since= --color-lines --color-by-age --abbrev="
    )
  ],
  ["annotate", use("-ltesfncp -L= -MC?")],
  [
    "grep",
    use(
      "-inlLcwvEFGPoqhHzaIrpW -mABC# -# -e= --cached --untracked --ignore-case --word-regexp --text --full-name --line-number --column " +
        "--files-with-matches --name-only --files-without-match --count --all-match --and --or --not --extended-regexp --basic-regexp " +
        "--perl-regexp --fixed-strings --show-function --function-context --break --heading --color? --no-color --only-matching --quiet " +
        "--null --invert-match --recurse-submodules --exclude-standard --no-exclude-standard --recursive --no-recursive --max-depth= " +
        "--max-count= --threads= --context= --after-context= --before-context="
    )
  ],
  [
    "ls-files",
    use(
      "-cdmoisuktvzf -x= --cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude-standard --full-name " +
        "--error-unmatch --eol --directory --no-empty-directory --deduplicate --debug --recurse-submodules --exclude= --abbrev? " +
        "--resolve-undo --sparse --format="
    )
  ],
  ["ls-tree", use("-rtldz --name-only --name-status --object-only --full-name --full-tree --long --abbrev? --format=")],
  [
    "cat-file",
    use("-pets --batch? --batch-check? --batch-all-objects --buffer --follow-symlinks --unordered --allow-unknown-type")
  ],
  [
    "rev-parse",
    use(
      "-q --show-toplevel --abbrev-ref? --short? --verify --git-dir --is-inside-work-tree --is-inside-git-dir --absolute-git-dir " +
        "--is-bare-repository --is-shallow-repository --symbolic-full-name --symbolic --show-prefix --show-cdup --git-common-dir " +
        "--show-superproject-working-tree --quiet --all --branches? --tags? --remotes? --glob= --exclude= --revs-only --no-revs --flags " +
        "--no-flags --show-object-format? --show-ref-format --local-env-vars --since= --until= --git-path="
    )
  ],
  [
    "describe",
    use(
      "--tags --all --always --long --dirty? --broken? --contains --exact-match --first-parent --abbrev= --match= --exclude= " +
        "--candidates="
    )
  ],
  ["name-rev", use("--tags --all --name-only --always --no-undefined --refs= --exclude=")],
  ["merge-base", use("-a --all --is-ancestor --octopus --fork-point --independent")],
  [
    "show-ref",
    use("-dqh -s? --heads --branches --tags --head --verify --exists --dereference --hash? --abbrev? --quiet")
  ],
  [
    "for-each-ref",
    use(
      "--contains= --no-contains= --merged= --no-merged= --points-at= --ignore-case --omit-empty --format= --sort= --count= " +
        "--exclude= --color?"
    )
  ],
  ["count-objects", use("-vH --verbose --human-readable")],
  ["check-ignore", use("-qvnz --quiet --verbose --non-matching --no-index --stdin")],
  ["check-attr", use("-az --all --cached --stdin")],
  // `-l` had another meaning in old versions of `git branch`.
  ["branch", verb({ "--list": use(branch) }, use(`--list --show-current ${branch}`, listing))],
  ["tag", verb({ "--list": use(tag), "-l": use(tag) }, use(`-l --list ${tag}`, listing))],
  ["stash", verb({ list: use(log), show: use(diff) })],
  ["remote", verb({ "get-url": use("--all --push") }, (rest) => /^(?:-v|--verbose)?$/.test(rest.join(" ")))],
  ["reflog", verb({ show: use(log) }, use(log, listing))],
  ["worktree", verb({ list: use("-vz --porcelain --verbose") })],
  ["version", use("")]
])
