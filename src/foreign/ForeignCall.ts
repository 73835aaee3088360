/**
 * A call of an agent of others: what the agent says of it, and what the gate decides about.
 *
 * A decoder takes one key after the other out of the description. A call is understood if nothing is left over but keys that
 * are harmless by their schema. Any other call is `foreign_act`, with the whole description: no rule allows it.
 *
 * The keys are those that adapters send in `session/request_permission`: claude-code-acp (`src/acp-agent.ts`, `src/tools.ts`),
 * codex-acp (`src/thread.rs`: `exec_approval`, `patch_approval`), gemini-cli (`packages/cli/src/acp/acpSession.ts`), Qwen Code
 * (`acpAgent`), opencode (`packages/opencode/src/acp/permission.ts`, and what 1.18.33 sent to us), and `assent acp`.
 */
import * as Location from "../shell/Location.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * All that an agent has said of a call, by the names of the protocol. What it adds to the protocol is there too. `_meta` is
 * that of the question.
 */
export type Description = { readonly [key: string]: unknown }

/** A call as the gate decides about it. */
export type Proposed =
  | { readonly tool: "foreign_execute"; readonly params: { readonly command: string } }
  | { readonly tool: "foreign_edit"; readonly params: Edit }
  | { readonly tool: "foreign_act"; readonly params: Act }

/** A change of one file. */
export interface Edit {
  readonly path: string
  readonly title?: string
  readonly before?: string
  readonly after?: string
  /** As a unified diff, where the agent sends one. */
  readonly diff?: string
}

/** A call of which only the words of the agent are known: all of them. */
export interface Act {
  readonly title: string
  readonly kind: string
  readonly input: unknown
  /** What it says beside these. */
  readonly more?: Description
  /** The texts among all this that may be paths. */
  readonly paths?: ReadonlyArray<string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** What is known after another message about the call. Of the input the earlier keys stay, so that none gets lost. */
export const merge = (known: Description, said: Description): Description => {
  const merged = new Map(Object.entries(known))
  for (const [key, value] of Object.entries(said)) {
    if (progress.has(key) || value === undefined || (value === null && ofProtocol.has(key))) continue
    const before = merged.get(key)
    merged.set(key, key === "rawInput" && isRecord(before) && isRecord(value) ? { ...before, ...value } : value)
  }
  return Object.fromEntries(merged)
}

/** The call that the gate decides about. `workspace` is absolute. */
export const decide = (said: Description, workspace: string): Proposed => understand(said, workspace) ?? act(said)

// -----------------------------------------------------------------------------------------------------------------
// getters
// -----------------------------------------------------------------------------------------------------------------

export const titleOf = ({ title }: Description): string => (typeof title === "string" ? title : "")

/** A call that was allowed does what its agent says of it now. Its title and its content may be those of its result. */
export const isWithin = (said: Description, allowed: Description, workspace: string): boolean => {
  const [now, then] = [decide(withoutResult(said), workspace), decide(withoutResult(allowed), workspace)]
  const known = new Set(textsIn(allowed))
  if (!pathsIn(said["content"]).every((path) => known.has(path))) return false
  if (now.tool === "foreign_execute" && then.tool === now.tool) return now.params.command === then.params.command
  if (now.tool === "foreign_edit" && then.tool === now.tool)
    return Location.normal(now.params.path, workspace) === Location.normal(then.params.path, workspace)
  return textsIn(withoutResult(said)).every((text) => known.has(text))
}

/** What a request says beside its call is no part of an act. */
export const isRemark = (request: Description): boolean => new Rest(request).dropAll({ _meta: isMeta }).isEmpty

/** The texts of a `foreign_act` that may be commands, each as a command line. Texts of files are none. */
export const commandsIn = (params: unknown): ReadonlyArray<string> => {
  if (!isRecord(params)) return []
  const { input, kind, more, title } = params
  const others = isRecord(more) ? Object.entries({ ...more, content: withoutTexts(more["content"]) }) : []
  const out = new Set<string>()
  const isFile = kind === "edit" || kind === "delete" || kind === "move"
  const look = (value: unknown): void => {
    if (typeof value === "string") out.add(value)
    else if (Array.isArray(value)) {
      const line = quoteAll(value)
      if (line !== undefined) out.add(line)
      value.forEach(look)
    } else if (isRecord(value)) {
      const members = Object.entries(value).flatMap(([key, inner]) => (isFile && fileTexts.has(key) ? [] : [inner]))
      // Whatever its keys are called, a word may be a program, and another member its arguments.
      for (const program of members.slice(0, most)) {
        if (typeof program !== "string" || !plainWord.test(program)) continue
        for (const rest of members.slice(0, most)) {
          const line =
            typeof rest === "string"
              ? `${program} ${rest}`
              : Array.isArray(rest)
                ? quoteAll([program, ...rest])
                : undefined
          if (line !== undefined) out.add(line)
        }
      }
      members.forEach(look)
    }
  }
  look([title])
  look(input)
  others.forEach(([, value]) => look(value))
  return [...out].filter((text) => text.trim() !== "")
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Members of an object that are put together as commands. */
const most = 12

type Fits = (value: unknown) => boolean

const isRecord = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText: Fits = (value) => typeof value === "string"
const isNumber: Fits = (value) => typeof value === "number"
const isFlag: Fits = (value) => typeof value === "boolean"
const isList: Fits = (value) => Array.isArray(value)
const isOff: Fits = (value) => value === false
const isNothing: Fits = () => false
const isEmpty: Fits = (value) =>
  Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0

/** An object from which a decoder takes what it understands. */
class Rest {
  private readonly left: Map<string, unknown>

  constructor(value: object) {
    this.left = new Map(Object.entries(value))
  }

  take(key: string): unknown {
    const value = this.left.get(key)
    this.left.delete(key)
    return value
  }

  text(key: string): string | undefined {
    const value = this.left.get(key)
    if (typeof value !== "string") return undefined
    this.left.delete(key)
    return value
  }

  /** Removes the key if its value fits, or is null: adapters write null where they have nothing to say. */
  drop(key: string, fits: Fits): void {
    const value = this.left.get(key)
    if (value === null || fits(value)) this.left.delete(key)
  }

  dropAll(harmless: Readonly<Record<string, Fits>>): this {
    for (const [key, fits] of Object.entries(harmless)) this.drop(key, fits)
    return this
  }

  get isEmpty(): boolean {
    return this.left.size === 0
  }
}

/** Keys that say how far a call is, and not what it does. */
const progress: ReadonlySet<string> = new Set(["toolCallId", "status", "sessionUpdate", "rawOutput", "_meta"])

/** Where null says that nothing has changed. */
const ofProtocol: ReadonlySet<string> = new Set(["title", "kind", "name", "content", "locations", "rawInput"])

const withoutResult = ({ kind, locations, rawInput }: Description): Description => ({
  ...(kind === undefined ? {} : { kind }),
  ...(locations === undefined ? {} : { locations }),
  ...(rawInput === undefined ? {} : { rawInput })
})

/** Metadata of adapters. The protocol keeps `_meta` for it, and no part of a call is in these. */
const isMeta: Fits = (value) =>
  isRecord(value) &&
  new Rest(value).dropAll({
    ...{ traceparent: isText, tracestate: isText, baggage: isText },
    // Qwen Code, claude-code-acp, and the title and reason of its permission dialog.
    toolName: isText,
    claudeCode: (own) => isRecord(own) && new Rest(own).dropAll({ toolName: isText, parentToolUseId: isText }).isEmpty,
    permission: (own) =>
      isRecord(own) && new Rest(own).dropAll({ version: isNumber, title: isText, description: isText }).isEmpty,
    // Ours: who asks, and for the how-manieth of how many calls.
    ...{ "assent/requestId": isText, "assent/agent": isText, "assent/batch": isRecord }
  }).isEmpty

/** Gemini CLI says of a diff what kind of change it is. */
const isDiffMeta: Fits = (value) =>
  isMeta(value) ||
  (isRecord(value) && new Rest(value).dropAll({ kind: (kind) => kind === "add" || kind === "modify" }).isEmpty)

/** Ids, reasons and times: they say nothing of what is done. */
const remarks: Readonly<Record<string, Fits>> = {
  ...{ description: isText, title: isText, reason: isText, instruction: isText },
  ...{ call_id: isText, turn_id: isText, approval_id: isText }
}

const ofCommand: Readonly<Record<string, Fits>> = {
  ...remarks,
  timeout: isNumber,
  ...{ run_in_background: isFlag, is_background: isFlag, background: isFlag },
  // Claude Code and Assent leave their sandboxes by these.
  ...{ dangerouslyDisableSandbox: isOff, sandbox: isNothing },
  ...{ env: isEmpty },
  // Codex: offers of lasting answers, which no agent gets.
  ...{ available_decisions: isList },
  ...{ proposed_execpolicy_amendment: isList, proposed_network_policy_amendments: isList },
  // Codex: it asks for more than the command.
  ...{ network_approval_context: isNothing, additional_permissions: isNothing }
}

const ofEdit: Readonly<Record<string, Fits>> = {
  ...remarks,
  ...{ replace_all: isFlag, replaceAll: isFlag, expected_replacements: isNumber, modified_by_user: isFlag },
  ...{ cell_id: isText, cell_type: isText, edit_mode: isText },
  ...{ auto_approved: isFlag, grant_root: isNothing }
}

const pathKeys = ["path", "file_path", "filePath", "filepath", "notebook_path"]
const oldKeys = ["old_string", "oldString", "old_text", "oldText", "old_str", "before"]
const newKeys = [
  "new_string",
  "newString",
  "new_text",
  "newText",
  "new_str",
  "content",
  "new_source",
  "file_text",
  "after"
]
const diffKeys = ["diff", "patch", "unified_diff"]

/** Keys of texts of files. */
const fileTexts: ReadonlySet<string> = new Set([...oldKeys, ...newKeys, ...diffKeys])

interface Diff {
  readonly path: string
  readonly before: string | undefined
  readonly after: string
}

/** A description, taken apart as far as that does not depend on its kind. */
interface Parts {
  readonly title: string
  readonly input: unknown
  readonly diffs: ReadonlyArray<Diff>
  readonly places: ReadonlyArray<string>
  /** The shortest text for a path. */
  readonly normal: (path: string) => string
}

const understand = (said: Description, workspace: string): Proposed | undefined => {
  const rest = new Rest(said)
  const kind = rest.text("kind")
  const title = rest.text("title") ?? ""
  const input = rest.take("rawInput")
  const diffs = diffsOf(rest.take("content"))
  const places = pathsOf(rest.take("locations"))
  rest.dropAll({ name: isText, _meta: isMeta })
  if (!rest.isEmpty || diffs === undefined || places === undefined) return undefined
  const parts = { title, input, diffs, places, normal: (path: string) => Location.normal(path, workspace) }
  return kind === "edit" ? edit(parts) : execute(parts, kind)
}

/** The diffs of a content. Text beside them is free words. Nothing if it holds anything else. */
const diffsOf = (content: unknown): ReadonlyArray<Diff> | undefined => {
  const diffs: Array<Diff> = []
  for (const one of content === undefined ? [] : Array.isArray(content) ? content : [undefined]) {
    if (!isRecord(one)) return undefined
    const rest = new Rest(one)
    const type = rest.take("type")
    if (type === "diff") {
      const path = rest.text("path")
      const before = rest.text("oldText")
      const after = rest.text("newText")
      if (!rest.dropAll({ oldText: isNothing, _meta: isDiffMeta }).isEmpty) return undefined
      if (path === undefined || after === undefined) return undefined
      diffs.push({ path, before, after })
    } else if (type !== "content" || !rest.dropAll({ content: isWords, _meta: isMeta }).isEmpty) return undefined
  }
  return diffs
}

const isWords: Fits = (value) =>
  isRecord(value) &&
  value["type"] === "text" &&
  new Rest(value).dropAll({ type: isText, text: isText, annotations: isEmpty, _meta: isMeta }).isEmpty

const pathsOf = (locations: unknown): ReadonlyArray<string> | undefined => {
  const paths: Array<string> = []
  for (const one of locations === undefined ? [] : Array.isArray(locations) ? locations : [undefined]) {
    if (!isRecord(one)) return undefined
    const rest = new Rest(one)
    const path = rest.text("path")
    if (path === undefined || !rest.dropAll({ line: isNumber, _meta: isMeta }).isEmpty) return undefined
    paths.push(path)
  }
  return paths
}

// ---- commands

const execute = ({ diffs, input, normal, places, title }: Parts, kind: string | undefined): Proposed | undefined => {
  if (!isRecord(input) || diffs.length > 0) return undefined
  // Codex calls a command that reads a file by what it reads.
  const isRead = (kind === "read" || kind === "search") && Array.isArray(input["parsed_cmd"])
  if (kind !== "execute" && !isRead) return undefined
  const rest = new Rest(input)
  const command = lineOf(rest)
  if (command === undefined) return undefined
  const isHere: Fits = (path) => typeof path === "string" && normal(path) === ""
  rest.dropAll({ ...ofCommand, cwd: isHere, workdir: isHere, directory: isHere, parsed_cmd: isViewOf(command) })
  if (!rest.isEmpty) return undefined
  // A place that the command does not name is another act.
  const named = new Set(command.split(separators).map(normal))
  if (!places.every((place) => named.has(normal(place)) || isHere(place))) return undefined
  const plain = Array.isArray(input["command"]) ? input["command"].join(" ") : command
  return goesOn(title, command) || goesOn(title, plain) ? undefined : { tool: "foreign_execute", params: { command } }
}

/** Codex takes the command apart, for people: each part is in the command but for its quotes. */
const isViewOf = (command: string): Fits => {
  const letters = (text: string) => text.replace(/[\s'"\\]/g, "")
  const whole = letters(command)
  const isIn: Fits = (text) => typeof text === "string" && whole.includes(letters(text))
  return (view) =>
    Array.isArray(view) &&
    view.every(
      (part) =>
        isRecord(part) &&
        new Rest(part).dropAll({ type: isText, cmd: isIn, name: isIn, path: isIn, query: isIn }).isEmpty
    )
}

/** The command line that an input holds. Takes its keys. */
const lineOf = (rest: Rest): string | undefined => {
  const command = rest.take("command")
  const args = rest.take("args") ?? undefined
  if (typeof command !== "string") return Array.isArray(command) && args === undefined ? quoteAll(command) : undefined
  if (Array.isArray(args) && plainWord.test(command)) return quoteAll([command, ...args])
  // A whole line has no further words.
  return command.trim() !== "" && (args === undefined || isEmpty(args)) ? command : undefined
}

/** The words of a program and its arguments as a line of the shell. */
const quoteAll = (words: ReadonlyArray<unknown>): string | undefined => {
  if (words.length === 0 || words[0] === "") return undefined
  const quoted: Array<string> = []
  for (const word of words) {
    if (typeof word !== "string" || word.includes("\0")) return undefined
    // A first word with `=` would be an assignment.
    const isPlain = plainWord.test(word) && (quoted.length > 0 || !word.includes("="))
    quoted.push(isPlain ? word : `'${word.replaceAll("'", `'\\''`)}'`)
  }
  return quoted.join(" ")
}

const plainWord = /^[\w@%+=:,./-]+$/

/** What stands between the words of a command line. */
const separators = /[\s'"=;|&()<>`$]+/

/** The title is the command and more of it. In brackets stand a directory and remarks, with Gemini CLI and Qwen Code. */
const goesOn = (title: string, command: string): boolean => {
  const text = single(
    title
      .trim()
      .replace(/^`+|`+$/g, "")
      .replaceAll("\\`", "`")
  )
  const start = `${single(command)} `
  return text.startsWith(start) && !/^[([]/.test(text.slice(start.length))
}

const single = (text: string): string => text.replace(/\s+/g, " ").trim()

// ---- changes of files

/** A change of one file. Its texts are all shown, and every path that it names is the path of that file. */
const edit = ({ diffs, input = {}, normal, places, title }: Parts): Proposed | undefined => {
  if (!isRecord(input)) return undefined
  const found: Found = { paths: [], old: [], new: [], diffs: [] }
  if (!change(new Rest(input), found)) return undefined
  const [path, ...others] = [
    ...places,
    ...diffs.map(({ path }) => path),
    ...found.paths,
    ...found.diffs.flatMap(pathsInDiff)
  ]
  if (path === undefined || others.some((other) => normal(other) !== normal(path))) return undefined
  const old = diffs.flatMap(({ before }) => (before === undefined ? [] : [before]))
  const shown = {
    title: title === "" ? undefined : title,
    before: joined(old, found.old),
    after: joined(
      diffs.map(({ after }) => after),
      found.new
    ),
    diff: joined([], found.diffs)
  }
  const said = Object.fromEntries(Object.entries(shown).filter(([, text]) => text !== undefined))
  return { tool: "foreign_edit", params: { path, ...said } }
}

interface Found {
  readonly paths: Array<string>
  readonly old: Array<string>
  readonly new: Array<string>
  readonly diffs: Array<string>
}

/** Takes a change out of an input. False: it holds something else. */
const change = (rest: Rest, found: Found): boolean => {
  const lists = [
    [pathKeys, found.paths],
    [oldKeys, found.old],
    [newKeys, found.new],
    [diffKeys, found.diffs]
  ] as const
  for (const [keys, list] of lists)
    for (const key of keys) {
      const text = rest.text(key)
      if (text !== undefined) list.push(text)
    }
  // Claude Code: several replacements in one file. opencode: the files of a patch.
  for (const key of ["edits", "files"]) {
    const list = rest.take(key)
    if (list === undefined || list === null) continue
    if (!Array.isArray(list)) return false
    for (const one of list) {
      const inner = isRecord(one) ? new Rest(one) : undefined
      inner?.dropAll({ type: (type) => type === "add" || type === "update", additions: isNumber, deletions: isNumber })
      if (inner === undefined || !change(inner, found)) return false
    }
  }
  // Codex: the change of each file, by its path.
  const changes = rest.take("changes")
  if (changes !== undefined && changes !== null) {
    if (!isRecord(changes)) return false
    for (const [path, one] of Object.entries(changes)) {
      if (!isRecord(one)) return false
      const { add, update, ...others } = one
      const inner = new Rest(isRecord(add) ? { ...others, ...add } : isRecord(update) ? { ...others, ...update } : one)
      inner.dropAll({ type: (type) => type === "add" || type === "update", move_path: isNothing })
      found.paths.push(path)
      if (!change(inner, found)) return false
    }
  }
  return rest.dropAll(ofEdit).isEmpty
}

/** The texts as one. Of `others` those that are in none of the first. */
const joined = (texts: ReadonlyArray<string>, others: ReadonlyArray<string>): string | undefined => {
  const all = [...texts]
  for (const other of others) if (!all.some((text) => text.includes(other))) all.push(other)
  return all.length === 0 ? undefined : all.join("\n⋯\n")
}

/** The files that the heads of a unified diff name. Heads in the form of git name two at once, and so no file. */
const pathsInDiff = (diff: string): ReadonlyArray<string> =>
  diff.split("\n").flatMap((line) => {
    const head = /^(?:--- |\+\+\+ |Index: |diff --git |(?:rename|copy) (?:from|to) )([^\t\r]*)/.exec(line)?.[1]
    return head === undefined || head === "/dev/null" ? [] : [head]
  })

// ---- all else

const act = (said: Description): Proposed => {
  const { kind, rawInput, title, ...others } = said
  const more = {
    ...others,
    // What is no text is shown as it is.
    ...(title === undefined || typeof title === "string" ? {} : { title }),
    ...(kind === undefined || typeof kind === "string" ? {} : { kind })
  }
  const paths = placesOf(said)
  return {
    tool: "foreign_act",
    params: {
      title: titleOf(said),
      kind: typeof kind === "string" ? kind : "other",
      input: rawInput ?? null,
      ...(Object.keys(more).length === 0 ? {} : { more }),
      ...(paths.length === 0 ? {} : { paths })
    }
  }
}

/** Every text of a description that may be a path: its locations and diffs, and what looks like one anywhere else. */
const placesOf = ({ content, locations, title, ...others }: Description): ReadonlyArray<string> => {
  const paths = new Set([...pathsIn(locations), ...pathsIn(content)])
  const texts = textsIn([others, locations, withoutTexts(content)])
  for (const text of [...texts, ...[title, ...texts].flatMap((text) => String(text).split(separators))])
    if (mayBePath.test(text)) paths.add(text)
  return [...paths]
}

/** A content without the texts of files, and without words. */
const withoutTexts = (content: unknown): unknown =>
  Array.isArray(content)
    ? content.map((one: unknown) => {
        if (!isRecord(one)) return one
        const { newText, oldText, ...others } = one
        return isWords(others["content"]) ? { ...others, content: undefined } : others
      })
    : content

/** The paths of locations or of a content, also where the rest of them cannot be read. */
const pathsIn = (list: unknown): ReadonlyArray<string> =>
  (Array.isArray(list) ? list : [list]).flatMap((one) =>
    isRecord(one) && typeof one["path"] === "string" ? [one["path"]] : typeof one === "string" ? [one] : []
  )

const mayBePath = /^(?=.*[\\/]|[.~])[^\n]{1,4096}$/

/** Every text of a value, keys among them. */
const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isRecord(value) ? Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]) : []
}
