/**
 * Shells and interpreters: where the code comes from that they run.
 *
 * A script file counts like any other program: nobody looks inside. Code on the command line can be read. Code that
 * comes from another command or through a redirection cannot, and neither can a file whose name is not known.
 */
import * as Order from "./Order.js"
import * as Program from "./Program.js"

/** Nothing for other programs. */
export const orderOf = (ran: Order.Ran): Order.Order | undefined => {
  const program = ran.words[0] ?? ""
  if (shells.has(Program.nameOf(program))) return ofShell(ran)
  const gives = givesOf(program)
  return gives === undefined ? undefined : ofInterpreter(ran, gives)
}

/** Its input may be the code it runs. */
export const isInterpreter = (program: string): boolean =>
  shells.has(Program.nameOf(program)) || givesOf(program) !== undefined

/** The names of all of them, apart from further names of Python. */
export const names = (): ReadonlyArray<string> => [...shells, ...interpreters.keys()]

/** It runs code of another language than the shell's. */
export const speaksAnother = (program: string): boolean => givesOf(program) !== undefined

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const shells: ReadonlySet<string> = new Set("sh bash dash zsh ksh mksh ash yash rbash fish csh tcsh".split(" "))

const givesOf = (program: string): Gives | undefined =>
  Order.known(interpreters, program) ??
  (likePython.test(Program.nameOf(program)) ? interpreters.get("python") : undefined)

const likePython = /^(?:python|pypy|ipython)/

const ofShell = (ran: Order.Ran): Order.Order => {
  const { fed, words } = ran
  let at = 1
  let hasText = false
  let readsInput = false
  for (; /^[-+]/.test(words[at] ?? "") || Order.mayBeOption(ran, at); at++) {
    const word = words[at] ?? ""
    if (Order.isUnknown(ran, at)) return Order.dark
    if (word === "-" || word === "--") {
      at++
      break
    }
    if (word === "--command") hasText = true
    else if (word.startsWith("--")) {
      if (!/^--(?:norc|noprofile|posix|login|verbose|restricted|no-config|noediting|help|version)$/.test(word))
        return Order.dark
      continue
    }
    hasText ||= word.startsWith("-") && word.includes("c")
    readsInput ||= word.includes("s") && word.startsWith("-")
    // `-o pipefail`: the name of an option is the next word.
    for (const letter of word.slice(1)) if (letter === "o" || letter === "O") at++
  }
  const operand = words[at]
  if (hasText) return operand === undefined || Order.isUnknown(ran, at) ? Order.dark : Order.text(operand)
  if (operand === undefined || readsInput) return fed ? Order.dark : Order.nothing
  return Order.isUnknown(ran, at) || Order.isInput(operand) || mayBeOthers(operand) ? Order.dark : Order.nothing
}

/** A glob as the name of a script: which file it finds is not known. */
const mayBeOthers = (operand: string): boolean => /[*?[]/.test(operand)

interface Gives {
  /** Options that give the code: as text, or as the name of a module. */
  readonly program: RegExp
  /** Options without a value in the next word. */
  readonly flags: RegExp
  /** Options with a value in the next word. */
  readonly values: RegExp
}

const gives = (program: RegExp, flags = /^(?!)/, values = /^(?!)/): Gives => ({ program, flags, values })

const ofInterpreter = (ran: Order.Ran, { flags, program, values }: Gives): Order.Order => {
  const { fed, words } = ran
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? ""
    if (Order.isInput(word)) return Order.dark
    if (Order.isUnknown(ran, at)) return Order.dark
    if (program.test(word)) {
      // The program is the word behind the option, unless it is in the same word.
      const isUnseen = Order.isUnknown(ran, at + 1) || Order.isInput(words[at + 1] ?? "")
      return isUnseen && !word.includes("=") ? Order.dark : Order.nothing
    }
    if (!word.startsWith("-")) return mayBeOthers(word) ? Order.dark : Order.nothing
    if (values.test(word)) at++
    else if (!flags.test(word) && fed) return Order.dark
  }
  return fed ? Order.dark : Order.nothing
}

const interpreters: ReadonlyMap<string, Gives> = new Map<string, Gives>([
  ["python", gives(/^-[bBdEhIOPqsSuvx]*[cm]/, /^(?:-[bBdEhIOPqsSuvVx]+|--version|--help)$/, /^-[WX]$/)],
  [
    "node",
    gives(/^(?:-[ep]|-pe|--eval|--print|--test)(?:$|=)/, /^(?:--?v|--version|--input-type=\w+|--no-warnings)$/, /^-r$/)
  ],
  ["deno", gives(/^(?:eval|run|test|task|fmt|lint|check)$/)],
  ["bun", gives(/^(?:-[ep]|--eval|--print)$/)],
  ["tsx", gives(/^(?:-[ep]|--eval|--print)$/)],
  ["ts-node", gives(/^(?:-[ep]|--eval|--print)$/)],
  ["perl", gives(/^-[A-Za-z0-9.]*[eE]/, /^-[acflnpsStTuUvwWX0-9]+$/)],
  ["ruby", gives(/^-[A-Za-z0-9]*e/, /^-[acdlnpsSvwW0-9]+$/)],
  ["php", gives(/^-[rf]/)],
  ["lua", gives(/^-e/)],
  ["luajit", gives(/^-e/)],
  ...(
    "nodejs jruby irb rscript r julia groovy kotlin scala clojure clj ghci runghc ocaml racket guile sbcl clisp erl elixir " +
    "iex tclsh wish swift dart nim crystal nu elvish xonsh osh ysh pwsh powershell cmd octave gnuplot m4 jshell expect coffee"
  )
    .split(" ")
    .map((name): [string, Gives] => [name, gives(/^(?:-[a-z]*[ec]|--(?:eval|command|execute|expr).*)$/i)])
])
