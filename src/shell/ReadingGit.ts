/** Git's part of what looks like reading: subcommands that only look, with most of their options. */

/** `rest` is what stands behind `git`. */
export const isReading = (rest: ReadonlyArray<string>, known: (at: number) => boolean): boolean => {
  let at = 0
  for (; rest[at]?.startsWith("-") === true && known(at); at++) {
    const word = rest[at] ?? ""
    if (word === "-c") {
      at++
      if (!known(at) || !settings.test(rest[at] ?? "")) return false
    } else if (valued.test(word)) at++
    else if (!plain.test(word)) return false
  }
  const subcommand = rest[at]
  if (subcommand === undefined) return true
  if (!known(at)) return false
  const words = rest.slice(at + 1)
  if (words.length === 1 && words[0] === "-h") return true
  const use = subcommands.get(subcommand)
  return use !== undefined && use(words, (index) => known(at + 1 + index))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Use = (words: ReadonlyArray<string>, known: (at: number) => boolean) => boolean

const valued = /^(?:-C|--git-dir|--work-tree|--namespace)$/
const plain =
  /^(?:-P|-p|-v|-h|--no-pager|--paginate|--version|--bare|--no-replace-objects|--no-optional-locks|--literal-pathspecs|--glob-pathspecs|--icase-pathspecs|--(?:git-dir|work-tree|namespace)=.*|--exec-path|--html-path|--man-path)$/
/** Settings that name no program. */
const settings =
  /^(?:color\.[\w.-]+|column\.[\w.-]+|core\.(?:quotepath|abbrev|pager=(?:cat)?$|precomposeunicode|ignorecase|autocrlf|filemode)|log\.(?:date|decorate|follow|showRoot|mailmap)|diff\.(?:renames|renameLimit|algorithm|context|noprefix|mnemonicPrefix|colorMoved|wordRegex)|grep\.[\w.-]+|status\.[\w.-]+|versionsort\.[\w.-]+|safe\.directory|i18n\.[\w.-]+|user\.(?:name|email)|advice\.[\w.-]+)(?:=|$)/i

/** Options that write a file or start a program. Git takes every unambiguous start of a long option. */
const acting = /^--(?:out|ext|open|textc|filt|exe|upl|rec)/

const looks: Use = (words) => !words.some((word) => acting.test(word))

const without =
  (shape: RegExp): Use =>
  (words, known) =>
    looks(words, known) && !words.some((word) => shape.test(word))

/** One of these words comes first, or nothing that does not begin with a dash. */
const verbs =
  (first: RegExp): Use =>
  (words, known) =>
    looks(words, known) && (words[0] === undefined ? first.test("") : known(0) && first.test(words[0]))

const has =
  (needed: RegExp, otherwise: RegExp): Use =>
  (words, known) =>
    looks(words, known) &&
    words.some((word, at) => needed.test(word) && known(at)) &&
    !words.some((word) => otherwise.test(word))

/** Without an operand it lists; with one of these options its operands are patterns. */
const lists =
  (listing: RegExp, acts: RegExp): Use =>
  (words, known) =>
    !words.some((word) => acts.test(word)) &&
    (words.some((word, at) => listing.test(word) && known(at)) ||
      words.every(
        (word, at) =>
          known(at) && (word.startsWith("-") || /^--(?:sort|format|color|column|abbrev)$/.test(words[at - 1] ?? ""))
      ))

const subcommands: ReadonlyMap<string, Use> = new Map<string, Use>([
  ...[
    "status diff log show whatchanged rev-list shortlog blame annotate ls-files ls-tree rev-parse describe name-rev merge-base show-ref",
    "for-each-ref count-objects check-ignore check-attr check-ref-format check-mailmap diff-tree diff-index diff-files range-diff cherry",
    "show-branch verify-pack patch-id stripspace column version"
  ]
    .flatMap((line) => line.split(" "))
    .map((name): [string, Use] => [name, looks]),
  ["cat-file", looks],
  ["grep", without(/^-[a-zA-Z]*O/)],
  ["fsck", without(/^--lost/)],
  ["var", verbs(/^(?:-l|[A-Z_]+)$/)],
  [
    "branch",
    lists(
      /^(?:-l|--list|--(?:no-)?contains.*|--(?:no-)?merged.*|--points-at.*)$/,
      /^(?:-[a-zA-Z]*[dDmMcCufe]|--(?:del|mov|copy|for|set|unset|edit|track|no-track|cre))/
    )
  ],
  [
    "tag",
    lists(
      /^(?:-l.*|-n\d*|--list|--(?:no-)?contains.*|--(?:no-)?merged.*|--points-at.*)$/,
      /^(?:-[a-zA-Z]*[dasumFvfe]|--(?:del|ann|sig|no-sig|loc|mes|fil|ver|for|cre|edi|cle|tra))/
    )
  ],
  ["stash", verbs(/^(?:list|show)$/)],
  ["remote", verbs(/^(?:|-v|--verbose|get-url)$/)],
  [
    "reflog",
    (words, known) =>
      looks(words, known) &&
      (words.length === 0 || (known(0) && !/^(?:expire|delete|drop|write)$/.test(words[0] ?? "")))
  ],
  ["worktree", verbs(/^list$/)],
  ["submodule", verbs(/^(?:|status|summary|--quiet|--cached)$/)],
  ["notes", verbs(/^(?:|list|show)$/)],
  ["bisect", verbs(/^(?:log|terms)$/)],
  ["bundle", verbs(/^(?:verify|list-heads)$/)],
  ["sparse-checkout", verbs(/^list$/)],
  [
    "config",
    has(
      /^(?:--get.*|--list|-l|--show-origin|--show-scope|list|get)$/,
      /^--(?:add|unset.*|replace-all|edit|rename.*|remove.*)$|^-e$|^(?:set|unset|edit|rename-section|remove-section)$/
    )
  ],
  [
    "symbolic-ref",
    (words, known) =>
      words.filter((word, at) => !known(at) || !word.startsWith("-")).length <= 1 &&
      !words.some((word) => /^-[a-z]*[dm]|^--del/.test(word))
  ],
  ["apply", has(/^--(?:check|stat|numstat|summary)$/, /^--(?:apply|index|cached|reject|3way)$|^-[a-z]*3/)],
  ["format-patch", has(/^--stdout$/, /^-o|^--output/)]
])
