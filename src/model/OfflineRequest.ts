/**
 * Plain requests and the tool calls they stand for.
 *
 * | request | call |
 * |---|---|
 * | `run CMD [in the background]` | `run_command` |
 * | `read FILE` | `read_file` |
 * | `list [DIR]` | `list_files` |
 * | `search TEXT [in DIR]` | `search_files`, the text taken literally |
 * | `write FILE: TEXT` | `write_file`; with nothing after the colon, all lines that follow |
 * | `ask me …? [a \| b \| c]` | `request_clarification`, a choice when there are brackets |
 * | `delegate PROFILE: TASK` | `delegate` |
 * | `explore TASK`, `plan TASK` | `explore`, `plan` |
 * | `todo A \| B \| C` | `todo_write`; `[x]` before an entry says that it is done, `[>]` that it is begun |
 *
 * Every line is parsed separately. `and` and `then` separate requests when a request follows them; inside a task they
 * are part of the task, unless another task follows. Text in quotes or brackets is not split; file names with spaces
 * need quotes.
 */

/** One request and the call that fulfils it. */
export interface Request {
  readonly tool: string
  readonly params: { readonly [name: string]: unknown }
  /** The action, as it follows "I will". */
  readonly intent: string
}

export interface Understood {
  /** In the order in which they were made. */
  readonly requests: ReadonlyArray<Request>
  /** Lines that are no request. */
  readonly rest: ReadonlyArray<string>
}

/** An example of each possible request, with the tool it needs. */
export const examples: ReadonlyArray<{ readonly tool: string; readonly example: string }> = [
  { tool: "run_command", example: "run ls -la" },
  { tool: "run_command", example: "run sleep 60 in the background" },
  { tool: "read_file", example: "read README.md" },
  { tool: "list_files", example: "list src" },
  { tool: "search_files", example: "search TODO in src" },
  { tool: "write_file", example: "write notes.txt: remember the milk" },
  { tool: "request_clarification", example: "ask me which colour? [red | green | blue]" },
  { tool: "delegate", example: "delegate reviewer: read README.md" },
  { tool: "explore", example: "explore list src and read README.md" },
  { tool: "plan", example: "plan read package.json" },
  { tool: "todo_write", example: "todo [x] look around | [>] change it | test it" }
]

/** Finds the requests in a text. It never fails: at worst everything is in `rest`. */
export const parse = (text: string): Understood => {
  const requests: Array<Request> = []
  const rest: Array<string> = []
  const lines = text.split(/\r?\n/)
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue
    const heading = /^write\s+(?<path>"[^"]+"|'[^']+'|[^\s:]+):$/i.exec(plainly(line))
    const path = heading?.groups?.["path"]
    if (path !== undefined) {
      requests.push(writing(path, lines.slice(index + 1).join("\n")))
      break
    }
    const clauses = clausesOf(line)
    for (const clause of clauses) {
      const request = parseClause(clause)
      if (request === undefined) rest.push(clause)
      else requests.push(request)
    }
  }
  return { requests, rest }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const plainly = (text: string): string => text.trim().replace(/^(?:(?:please|now|also),?\s+)+/i, "")

/** Cuts a line at each `and` or `then` that a request follows. Other text stays with the clause before it. */
const clausesOf = (line: string): ReadonlyArray<string> => {
  const spans = protectedSpans(line)
  const clauses: Array<string> = []
  let start = 0
  for (const match of line.matchAll(/(?<=\S)(?:\s*,)?\s+(?:and\s+then|and|then)\s+/gi)) {
    const end = match.index + match[0].length
    if (match.index < start || spans.some(([from, to]) => match.index >= from && match.index < to)) continue
    const verbs = taskVerb.test(plainly(line.slice(start, match.index))) ? taskVerb : anyVerb
    if (!verbs.test(plainly(line.slice(end)))) continue
    clauses.push(line.slice(start, match.index).trim())
    start = end
  }
  clauses.push(line.slice(start).trim())
  return clauses
}

const taskVerb = /^(?:delegate\s+\S+:\s*\S|(?:explore|plan|todo)\s+\S)/i
const anyVerb =
  /^(?:run\s+\S|read\s+\S|list(?:\s+\S|$)|search\s+\S|write\s+(?:"[^"]+"|'[^']+'|[^\s:]+):|ask\s+me\s+\S|delegate\s+\S+:\s*\S|(?:explore|plan|todo)\s+\S)/i

/** Start and end of texts in quotes or brackets. An apostrophe inside a word opens no quote. */
const protectedSpans = (line: string): ReadonlyArray<readonly [number, number]> =>
  Array.from(
    line.matchAll(/(?<![^\s(:=])"[^"]*"|(?<![^\s(:=])'[^']*'|`[^`]*`|\[[^\]]*\]/g),
    (match) => [match.index, match.index + match[0].length] as const
  )

/** Takes off the quotes around the whole text. */
const unquoted = (text: string): string => {
  const inner = /^(["'`])([^]*)\1$/.exec(text.trim())
  return inner?.[2] !== undefined && !inner[2].includes(inner[1] ?? "") ? inner[2] : text.trim()
}

const place = String.raw`"[^"]+"|'[^']+'|\S+`

interface Rule {
  readonly pattern: RegExp
  readonly toRequest: (groups: { readonly [name: string]: string | undefined }) => Request | undefined
}

const rules: ReadonlyArray<Rule> = [
  {
    pattern: /^run\s+(?<command>[^]+?)(?<aside>\s+in\s+the\s+background)?$/i,
    toRequest: ({ aside, command = "" }) => {
      const plain = /^`[^`]+`$/.test(command) ? command.slice(1, -1) : command
      const params = aside === undefined ? { command: plain } : { command: plain, background: true }
      return { tool: "run_command", params, intent: `run \`${plain}\`${aside ?? ""}` }
    }
  },
  {
    pattern: new RegExp(`^read\\s+(?<path>${place})$`, "i"),
    toRequest: ({ path = "" }) => ({
      tool: "read_file",
      params: { path: unquoted(path) },
      intent: `read ${unquoted(path)}`
    })
  },
  {
    pattern: new RegExp(`^list(?:\\s+files)?(?:(?:\\s+in)?\\s+(?<path>${place}))?$`, "i"),
    toRequest: ({ path }) => ({
      tool: "list_files",
      params: path === undefined ? {} : { path: unquoted(path) },
      intent: path === undefined || path === "." ? "list the files here" : `list ${unquoted(path)}`
    })
  },
  {
    pattern: new RegExp(`^search\\s+(?:for\\s+)?(?<text>"[^"]+"|'[^']+'|.+?)(?:\\s+in\\s+(?<path>${place}))?$`, "i"),
    toRequest: ({ path, text = "" }) => {
      const wanted = unquoted(text)
      const pattern = wanted.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")
      return path === undefined
        ? { tool: "search_files", params: { pattern }, intent: `search for "${wanted}"` }
        : {
            tool: "search_files",
            params: { pattern, path: unquoted(path) },
            intent: `search for "${wanted}" in ${unquoted(path)}`
          }
    }
  },
  {
    pattern: /^write\s+(?<path>"[^"]+"|'[^']+'|[^\s:]+):\s*(?<content>[^]*)$/i,
    toRequest: ({ content = "", path = "" }) => writing(path, unquoted(content))
  },
  {
    pattern: /^ask\s+me:?\s+(?<question>[^]+?)(?:\[(?<choices>[^\][]*)\])?$/i,
    toRequest: ({ choices = "", question = "" }) => {
      const offered = choices
        .split("|")
        .map((choice) => choice.trim())
        .filter((choice) => choice !== "")
      return {
        tool: "request_clarification",
        params: {
          context: "You asked to be asked.",
          questions: [
            offered.length === 0
              ? { text: question.trim(), question_type: "free_text" }
              : { text: question.trim(), question_type: "single_choice", choices: offered }
          ]
        },
        intent: "ask you"
      }
    }
  },
  {
    pattern: /^delegate\s+(?<profile>[^\s:]+):\s*(?<task>[^]+)$/i,
    toRequest: ({ profile = "", task = "" }) => ({
      tool: "delegate",
      params: { profile, task: unquoted(task) },
      intent: `delegate to ${profile}`
    })
  },
  {
    pattern: /^explore\s+(?<task>[^]+)$/i,
    toRequest: ({ task = "" }) => ({ tool: "explore", params: { task: unquoted(task) }, intent: "explore that" })
  },
  {
    pattern: /^plan\s+(?<task>[^]+)$/i,
    toRequest: ({ task = "" }) => ({ tool: "plan", params: { task: unquoted(task) }, intent: "plan that" })
  },
  {
    pattern: /^todo:?\s+(?<items>[^]+)$/i,
    toRequest: ({ items = "" }) => {
      const entries = items.split("|").flatMap((item) => {
        const [, mark = "", content = ""] = /^\s*(?:\[([x> ])\])?\s*([^]*?)\s*$/i.exec(item) ?? []
        return content === "" ? [] : [{ content, status: statuses[mark.toLowerCase()] ?? "pending" }]
      })
      return entries.length === 0
        ? undefined
        : { tool: "todo_write", params: { items: entries }, intent: "keep that list" }
    }
  }
]

const statuses: { readonly [mark: string]: string | undefined } = { x: "completed", ">": "in_progress" }

const parseClause = (clause: string): Request | undefined => {
  const text = plainly(clause)
  for (const { pattern, toRequest } of rules) {
    const match = pattern.exec(text)
    if (match !== null) return toRequest(match.groups ?? {})
  }
  return undefined
}

const writing = (path: string, content: string): Request => ({
  tool: "write_file",
  params: { path: unquoted(path), content },
  intent: `write ${unquoted(path)}`
})
