/** A foreign call is understood whole, or it is `foreign_act` with all that its agent says. */
import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as ForeignCall from "../../src/foreign/ForeignCall.js"
import * as ShellGrammar from "../../src/shell/ShellGrammar.js"

const ws = "/w"

const decide = (said: object) => ForeignCall.decide(ForeignCall.merge({}, { ...said }), ws)

const command = (input: object, more: object = {}) => decide({ kind: "execute", title: "t", rawInput: input, ...more })

const lineOf = (input: object, more?: object) => {
  const decided = command(input, more)
  return decided.tool === "foreign_execute" ? decided.params.command : decided.tool
}

const text = (words: string) => ({ type: "content", content: { type: "text", text: words } })
const diff = (path: string, newText = "2", more: object = {}) => ({
  type: "diff",
  path,
  oldText: "1",
  newText,
  ...more
})

/** What adapters send in a permission request, as they wrote it, or as their source says; and what is decided. */
const ordinary: ReadonlyArray<readonly [adapter: string, said: object, decided: ForeignCall.Proposed]> = [
  [
    "claude-agent-acp 0.23.1",
    {
      toolCallId: "call_1",
      rawInput: { command: "touch made.txt", description: "Makes it", timeout: 5_000, run_in_background: true },
      title: "touch made.txt",
      kind: "execute",
      content: [text("Makes it")]
    },
    { tool: "foreign_execute", params: { command: "touch made.txt" } }
  ],
  [
    "opencode 1.18.33",
    {
      toolCallId: "call_1",
      title: "touch made.txt",
      kind: "execute",
      status: "pending",
      locations: [{ path: "/w" }],
      rawInput: { command: "touch made.txt", description: "Makes it", cwd: "/w" }
    },
    { tool: "foreign_execute", params: { command: "touch made.txt" } }
  ],
  [
    "Qwen Code 0.24.4",
    {
      toolCallId: "call_1",
      status: "pending",
      title: "touch made.txt (Makes it)",
      content: [text("Review it manually.")],
      locations: [],
      kind: "execute",
      rawInput: { command: "touch made.txt", description: "Makes it", is_background: false }
    },
    { tool: "foreign_execute", params: { command: "touch made.txt" } }
  ],
  [
    "codex-acp",
    {
      kind: "read",
      title: "Read a.md",
      locations: [{ path: "/w/a.md" }],
      content: [text("Available Decisions: approved\nabort")],
      rawInput: {
        call_id: "call_1",
        turn_id: "1",
        approval_id: null,
        command: ["/bin/bash", "-lc", "cat a.md"],
        cwd: "/w",
        reason: null,
        proposed_execpolicy_amendment: ["cat", "a.md"],
        network_approval_context: null,
        additional_permissions: null,
        available_decisions: ["approved", "abort"],
        parsed_cmd: [{ type: "read", cmd: "cat a.md", name: "a.md", path: "a.md" }]
      }
    },
    { tool: "foreign_execute", params: { command: "/bin/bash -lc 'cat a.md'" } }
  ],
  [
    "assent acp",
    {
      kind: "execute",
      title: "npm test",
      rawInput: { command: "npm test", timeout: 60, reason: "to see" },
      content: []
    },
    { tool: "foreign_execute", params: { command: "npm test" } }
  ],
  [
    "assent acp, about a change by an agent of its own",
    {
      kind: "edit",
      title: "t",
      rawInput: { path: "a.ts", title: "t", before: "1", after: "2" },
      content: [diff("/w/a.ts")]
    },
    { tool: "foreign_edit", params: { path: "/w/a.ts", title: "t", before: "1", after: "2" } }
  ],
  [
    "Claude Code's Edit",
    {
      kind: "edit",
      title: "Edit `/w/a.ts`",
      rawInput: { file_path: "/w/a.ts", old_string: "1", new_string: "2", replace_all: false },
      content: [diff("/w/a.ts")],
      locations: [{ path: "/w/a.ts", line: 3 }]
    },
    { tool: "foreign_edit", params: { path: "/w/a.ts", title: "Edit `/w/a.ts`", before: "1", after: "2" } }
  ],
  [
    "Gemini CLI's edit",
    {
      kind: "edit",
      title: "a.ts: 1 => 2",
      content: [diff("/w/a.ts", "2", { _meta: { kind: "modify" } })],
      locations: [{ path: "a.ts" }]
    },
    { tool: "foreign_edit", params: { path: "a.ts", title: "a.ts: 1 => 2", before: "1", after: "2" } }
  ],
  [
    "opencode's edit",
    { kind: "edit", title: "edit", rawInput: { filepath: "/w/a.ts", diff: "--- /w/a.ts\n+++ /w/a.ts\n@@\n-1\n+2" } },
    {
      tool: "foreign_edit",
      params: { path: "/w/a.ts", title: "edit", diff: "--- /w/a.ts\n+++ /w/a.ts\n@@\n-1\n+2" }
    }
  ],
  [
    "codex-acp's patch of one file",
    {
      kind: "edit",
      title: "Edit /w/a.ts",
      locations: [{ path: "/w/a.ts" }],
      content: [diff("/w/a.ts"), diff("/w/a.ts", "4"), text("because")],
      rawInput: {
        call_id: "1",
        turn_id: "1",
        reason: "because",
        grant_root: null,
        changes: { "/w/a.ts": { type: "update", unified_diff: "@@\n-1\n+2", move_path: null } }
      }
    },
    {
      tool: "foreign_edit",
      params: { path: "/w/a.ts", title: "Edit /w/a.ts", before: "1\n⋯\n1", after: "2\n⋯\n4", diff: "@@\n-1\n+2" }
    }
  ]
]

/** The same value with a key more in one of its objects. */
const extended = (value: unknown, key: string, extra: unknown, at: number): unknown => {
  let left = at
  const go = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(go)
    if (typeof one !== "object" || one === null) return one
    const isHere = left-- === 0
    const inner = Object.fromEntries(Object.entries(one).map(([name, member]) => [name, go(member)]))
    return isHere ? { ...inner, [key]: extra } : inner
  }
  return go(value)
}

const objectsIn = (value: unknown): number =>
  typeof value !== "object" || value === null
    ? 0
    : Object.values(value).reduce((sum: number, one) => sum + objectsIn(one), Array.isArray(value) ? 0 : 1)

const word = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.constantFrom("git", "a b", "$(rm x)", "it's", "-rf", "A=1", "\n", "*")
)
const argv = fc.array(word, { minLength: 1, maxLength: 5 }).filter((words) => words.every((one) => !one.includes("\0")))

/** The words of a line that a shell runs as one program. */
const wordsOf = (line: string): ReadonlyArray<string> | undefined =>
  Either.match(ShellGrammar.parse(line), {
    onLeft: () => undefined,
    onRight: ({ commands }) => (commands.length === 1 ? commands[0]?.words : undefined)
  })

describe("a call of an agent of others", () => {
  it.each(ordinary)("is ordinary work as %s asks about it", (_, said, decided) => {
    assert.deepStrictEqual(decide(said), decided)
  })

  it("is not understood with any key more, wherever the key is, and shows that key", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ordinary),
        fc.string({ minLength: 1 }).map((name) => `x${name}`),
        fc.jsonValue(),
        fc.nat(),
        ([, said], key, extra, at) => {
          const request = extended(said, key, extra, at % objectsIn(said))
          const decided = decide(Object(request))
          assert.strictEqual(decided.tool, "foreign_act", JSON.stringify(request))
          assert.include(JSON.stringify(decided.params), JSON.stringify(key).slice(1, -1))
        }
      ),
      { numRuns: 500 }
    )
  })

  it("is the quoted command line of its words", () => {
    fc.assert(
      fc.property(argv, (words) => {
        const line = lineOf({ command: words })
        const [program = "", ...args] = words
        if (/^[\w@%+=:,./-]+$/.test(program)) assert.strictEqual(lineOf({ command: program, args }), line)
        const read = wordsOf(line)
        // The grammar gives up some texts, which only the very same text allows.
        if (read !== undefined) assert.deepStrictEqual(read, words)
      }),
      { numRuns: 1_000 }
    )
    assert.strictEqual(lineOf({ command: "npm test", args: [] }), "npm test")
    assert.strictEqual(lineOf({ command: ["/bin/bash", "-lc", "git push"] }), "/bin/bash -lc 'git push'")
    assert.strictEqual(lineOf({ command: "git", args: ["push", "--force"] }), "git push --force")
    assert.strictEqual(lineOf({ command: ["A=1", "sh"] }), "'A=1' sh")
    assert.deepStrictEqual(wordsOf(lineOf({ command: ["echo", "it's", "$HOME"] })), ["echo", "it's", "$HOME"])
  })

  it("that is decided by its command or its file shows every text that it has, but for remarks", () => {
    const place = fc.constantFrom("/w/a.ts", "a.ts", "./a.ts", "/w/b.ts", "/w/.git/hooks/post-commit", "../x")
    const input = fc.dictionary(
      fc.constantFrom(
        ...["command", "args", "cwd", "env", "path", "file_path", "content", "old_string", "new_string", "diff"],
        ...["description", "timeout", "changes", "files", "edits", "shell", "stdin", "move_to"]
      ),
      fc.oneof(word, place, argv, fc.jsonValue(), fc.constantFrom("ls", "/w")),
      { maxKeys: 4 }
    )
    const said = fc.record(
      {
        kind: fc.constantFrom("execute", "edit", "delete", "move", "read", "other"),
        title: word,
        rawInput: input,
        locations: fc.array(fc.record({ path: place }), { maxLength: 2 }),
        content: fc.array(fc.record({ type: fc.constant("diff"), path: place, newText: word }), { maxLength: 2 })
      },
      { requiredKeys: ["kind"] }
    )
    let understood = 0
    fc.assert(
      fc.property(said, (request) => {
        const { params, tool } = decide(request)
        if (tool === "foreign_act") return
        understood++
        assert.include(["execute", "edit"], request.kind)
        const shown = Object.values(params).join("\n")
        const given: { readonly [key: string]: unknown } = { cwd: "/w", ...request.rawInput }
        const { cwd, description: _, timeout: __, ...input } = given
        assert.strictEqual(`${cwd}`.replace(/\/\.?$/, "") || "/", "/w")
        const texts = (value: unknown): ReadonlyArray<string> =>
          typeof value === "string"
            ? [value]
            : typeof value === "object" && value !== null
              ? Object.values(value).flatMap(texts)
              : []
        for (const one of texts(input)) {
          const path = one.replace(/^(?:\/w\/|\.\/)/, "")
          if (!shown.includes(path))
            assert.deepStrictEqual(wordsOf(shown)?.includes(one), true, JSON.stringify(request))
        }
        const places = [...(request.locations ?? []), ...(request.content ?? [])].map(({ path }) => path)
        if ("path" in params)
          assert.isAtMost(new Set([params.path, ...places].map((path) => path.replace(/^(?:\/w\/|\.\/)/, ""))).size, 1)
      }),
      { numRuns: 20_000 }
    )
    assert.isAbove(understood, 100)
  })

  it.each([
    ["a directory elsewhere", { command: "ls", cwd: "/etc" }],
    ["variables", { command: "ls", env: { PATH: "/tmp" } }],
    ["an unknown key", { command: "ls", stdin: "x" }],
    ["a known key with another value", { command: "ls", description: { run: "rm" } }],
    ["its sandbox off", { command: "ls", dangerouslyDisableSandbox: true }],
    ["our sandbox off", { command: "ls", sandbox: "off" }],
    [
      "leave for the network",
      { command: ["ls"], network_approval_context: { host: "example.com", protocol: "https" } }
    ],
    ["further permissions", { command: ["ls"], additional_permissions: { network: { enabled: true } } }],
    ["a view of another command", { command: ["ls"], parsed_cmd: [{ type: "unknown", cmd: "rm -rf x" }] }],
    ["a line with words behind it", { command: "git push", args: ["--force"] }],
    ["words that are no text", { command: ["git", 1] }],
    ["no words", { command: [] }],
    ["a blank command", { command: " " }]
  ])("is none by its command with %s", (_, input) => {
    assert.strictEqual(lineOf(input), "foreign_act")
  })

  it("is none by its command if its title, a place or a diff says more", () => {
    assert.strictEqual(lineOf({ command: "git" }, { title: "git push --force" }), "foreign_act")
    assert.strictEqual(lineOf({ command: ["git", "push"] }, { title: "`git push --force`" }), "foreign_act")
    assert.strictEqual(lineOf({ command: "git push" }, { title: "git push [in /w] (sends it)" }), "git push")
    assert.strictEqual(lineOf({ command: "ls" }, { locations: [{ path: "/etc/passwd" }] }), "foreign_act")
    assert.strictEqual(lineOf({ command: "cat src/a.ts" }, { locations: [{ path: "/w/src/a.ts" }] }), "cat src/a.ts")
    assert.strictEqual(lineOf({ command: "ls" }, { content: [diff("/w/a.ts")] }), "foreign_act")
    for (const kind of ["read", "edit", "other", "fetch", undefined])
      assert.notStrictEqual(decide({ kind, title: "t", rawInput: { command: "ls" } }).tool, "foreign_execute")
  })

  it("is none by its file if it names another file, or does more than edit", () => {
    const edit = (more: object) =>
      decide({ kind: "edit", title: "t", locations: [{ path: "/w/a.ts" }], content: [diff("/w/a.ts")], ...more }).tool
    assert.strictEqual(edit({}), "foreign_edit")
    for (const more of [
      { content: [diff("/w/a.ts"), diff("/w/.git/hooks/pre-commit")] },
      { locations: [{ path: "/w/a.ts" }, { path: "/w/.assent/permissions.json" }] },
      { content: [diff("/w/x/a.ts")] },
      { rawInput: { path: "/w/b.ts" } },
      { rawInput: { file_path: "/w/a.ts", edits: [{ file_path: "/w/b.ts", new_string: "x" }] } },
      { rawInput: { changes: { "/w/a.ts": { type: "update", unified_diff: "", move_path: "/w/b.ts" } } } },
      { rawInput: { changes: { "/w/a.ts": { type: "delete", content: "1" } } } },
      { rawInput: { diff: "--- /w/a.ts\n+++ /w/b.ts\n" } },
      { rawInput: { diff: "rename from a.ts\nrename to b.ts\n" } },
      { content: [diff("/w/a.ts", "2", { _meta: { kind: "delete" } })] },
      { content: [{ type: "terminal", terminalId: "1" }] },
      { content: [{ type: "diff", path: "/w/a.ts", newText: 5 }] },
      { content: "none" },
      { kind: "delete" },
      { kind: "move" }
    ])
      assert.strictEqual(edit(more), "foreign_act", JSON.stringify(more))
    assert.strictEqual(decide({ kind: "edit", title: "t", rawInput: { content: "x" } }).tool, "foreign_act")
  })

  it("that is not understood names its paths and its commands, and no text of a file as one", () => {
    const { params } = decide({
      kind: "edit",
      title: "tidy up",
      content: [diff("/w/a.ts", "rm -rf build"), diff("/w/.git/hooks/pre-commit")],
      rawInput: { new_string: "rm -rf build", argv: ["git", "push"], run: { command: "git", args: ["gc"] } }
    })
    assert.includeMembers("paths" in params ? [...(params.paths ?? [])] : [], ["/w/a.ts", "/w/.git/hooks/pre-commit"])
    const commands = ForeignCall.commandsIn(params)
    assert.includeMembers([...commands], ["git push", "git gc", "tidy up"])
    assert.isFalse(commands.some((one) => one.includes("rm")))
  })

  it("keeps what was said before, and goes on after a yes as long as it does what was allowed", () => {
    const first = ForeignCall.merge({}, { kind: "execute", title: "t", rawInput: { command: "ls", cwd: "/etc" } })
    const later = ForeignCall.merge(first, { title: null, rawInput: { command: "ls" }, status: "completed" })
    assert.strictEqual(ForeignCall.decide(later, ws).tool, "foreign_act")
    const allowed = { kind: "execute", title: "ls", rawInput: { command: "ls" } }
    const isWithin = (more: object) => ForeignCall.isWithin(ForeignCall.merge(allowed, { ...more }), allowed, ws)
    assert.isTrue(isWithin({ title: "Listed", content: [text("a b")], rawInput: { description: "lists" } }))
    assert.isFalse(isWithin({ rawInput: { command: "rm x" } }))
    assert.isFalse(isWithin({ kind: "delete", locations: [{ path: "/w/x" }] }))
    assert.isFalse(isWithin({ content: [diff("/w/x")] }))
  })
})
