/** Texts for `sed`, `awk` and `sqlite3`: whether they only print. What they would write or run is spelled out in them. */

/** `rest` is what stands behind `sed`. */
export const isSed = (rest: ReadonlyArray<string>, known: (at: number) => boolean): boolean => {
  let script: string | undefined
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ""
    if (!word.startsWith("-") || word === "-" || !known(at)) {
      if (script !== undefined) continue
      script = ""
      if (!isSedScript(known(at) ? word : word.replace(expansion, "1"))) return false
      continue
    }
    if (/^(?:--expression|-[nErsuz]*e)$/.test(word)) {
      at++
      script = ""
      if (!isSedScript(known(at) ? (rest[at] ?? "") : (rest[at] ?? "").replace(expansion, "1"))) return false
    } else if (/^(?:--expression=|-e)/.test(word)) {
      script = ""
      if (!isSedScript(word.replace(/^(?:--expression=|-e)/, ""))) return false
    } else if (
      !/^(?:-[nErsuz]+|--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|debug|sandbox|version|help))$/.test(
        word
      )
    )
      return false
  }
  return true
}

/** `rest` is what stands behind `awk`. */
export const isAwk = (rest: ReadonlyArray<string>): boolean => {
  let at = 0
  for (; rest[at]?.startsWith("-") === true; at++) {
    const word = rest[at] ?? ""
    if (word === "-F" || word === "-v") at++
    else if (word === "--") {
      at++
      break
    } else if (!/^(?:-[Fv].+|--(?:posix|traditional|re-interval|csv|version|help))$/.test(word)) return false
  }
  const program = rest[at]
  if (program === undefined) return rest.length > 0
  const bare = program.replace(awkLiterals, '""')
  return (
    !/\bsystem\s*\(|\bgetline\b|@load|@include|(?<!\|)\|(?!\|)/.test(bare) &&
    !bare.split(/[;}\n]/).some((statement) => statement.includes(">", indexOf(statement, /\bprintf?\b/)))
  )
}

/** `rest` is what stands behind `sqlite3`. */
export const isSqlite = (rest: ReadonlyArray<string>): boolean => {
  const operands = rest.filter((word) => !word.startsWith("-"))
  const options = rest.filter((word) => word.startsWith("-"))
  const [, sql = ""] = operands
  return (
    operands.length === 2 &&
    options.every((word) =>
      /^--?(?:readonly|header|noheader|column|csv|json|line|list|table|box|markdown|html|safe|bail|batch|ascii|quote)$/.test(
        word
      )
    ) &&
    /^\s*(?:select|with|explain|pragma|values|\.(?:schema|tables|indexes|databases|dump|fullschema|dbinfo)\b)/i.test(
      sql
    ) &&
    !/\b(?:load_extension|writefile|edit|attach|insert|update|delete|drop|alter|create|replace|vacuum)\b|\n\s*\./i.test(
      sql
    )
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const expansion = /\$\{\w+\}|\$\w+|\$\(\([^()]*\)\)/g

/** Behind the end, if the text does not hold it. */
const indexOf = (text: string, shape: RegExp): number => {
  const at = text.search(shape)
  return at < 0 ? text.length : at
}

/** Strings, and regular expressions where they can begin. */
const awkLiterals = /"(?:[^"\\\n]|\\.)*"|(?<=(?:^|[~(,!&|{;])[ \t]*)\/(?:[^/\\\n]|\\.)*\//g

const address = /(?:\d+(?:~\d+)?|\$)?/y
const range = /[ \t]*,[ \t]*(?:[+~]?\d+|\$)?/y

/** A script without `w`, `W`, `e` and `i` of a file; `s` without `w` and `e`. */
const isSedScript = (script: string): boolean => {
  let at = 0
  const skip = (shape: RegExp): string => {
    shape.lastIndex = at
    const text = shape.exec(script)?.[0] ?? ""
    at += text.length
    return text
  }
  /** Behind the next delimiter that is not escaped, nor in brackets. */
  const part = (delimiter: string): boolean => {
    for (; at < script.length; at++) {
      if (script[at] === "\\") at++
      else if (script[at] === delimiter) {
        at++
        return true
      }
    }
    return false
  }
  const pattern = (): boolean => {
    if (script[at] === "/") at++
    else if (script[at] === "\\" && script[at + 1] !== undefined) at += 2
    else return true
    const isClosed = part(script[at - 1] ?? "/")
    skip(/[IM]*/y)
    return isClosed
  }
  while (at < script.length) {
    if (skip(/[\s;{}]+/y) !== "" && at >= script.length) return true
    skip(address)
    if (!pattern()) return false
    skip(range)
    if (script[at - 1] === "," || /,[ \t]*$/.test(script.slice(Math.max(0, at - 20), at))) if (!pattern()) return false
    skip(/[ \t]*!*[ \t]*/y)
    const command = script[at++] ?? ""
    switch (command) {
      case "{":
        continue
      case "s":
      case "y": {
        const delimiter = script[at++] ?? ""
        if (!/[^\\\n\w\s]/.test(delimiter) || !part(delimiter) || !part(delimiter)) return false
        if (command === "s") skip(/[gpiIMm\d]*/y)
        break
      }
      case "q":
      case "Q":
      case "l":
        skip(/[ \t]*\d*/y)
        break
      case "b":
      case "t":
      case "T":
      case ":":
        skip(/[ \t]*[\w-]*/y)
        break
      case "a":
      case "i":
      case "c":
      case "r":
      case "R":
        // Up to the end of a line that ends without a backslash.
        skip(/(?:[^\\\n]|\\[^])*/y)
        break
      default:
        if (command === "" || !"pPdDnNgGhHxzF=".includes(command)) return false
    }
    if (skip(/[ \t]*(?=[;}\n#]|$)/y) === "" && at < script.length && !/[;}\n#]/.test(script[at] ?? "")) return false
    if (script[at] === "#") skip(/[^\n]*/y)
  }
  return true
}
