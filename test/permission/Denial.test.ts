/** Each entry that denies either denies a call of the real tools, in the mode that allows everything, or is refused. */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as Glob from "../../src/core/Glob.js"
import type { SessionId } from "../../src/core/Id.js"
import * as BuiltInGuards from "../../src/permission/BuiltInGuards.js"
import * as CallPattern from "../../src/permission/CallPattern.js"
import * as CompiledPolicy from "../../src/permission/CompiledPolicy.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import * as PolicyRemarks from "../../src/permission/PolicyRemarks.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as Ruling from "../../src/permission/Ruling.js"
import * as SessionRule from "../../src/permission/SessionRule.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"

const registry = await Effect.runPromise(
  ToolRegistry.make(Workspace.toolkit).pipe(
    Effect.provide(Workspace.layer({ root: "/ws", ripgrep: false })),
    Effect.provide(NodeContext.layer),
    Effect.scoped
  )
)
const { entries } = registry
const tools = entries.map(({ tool }) => tool)
const session = "root" as SessionId

type Params = Readonly<Record<string, unknown>>

/** A call whose every argument has a value. */
const filled: Readonly<Record<string, Params>> = {
  run_command: { command: "make all", cwd: "src", timeout: 5 },
  job_output: { job_id: "j1" },
  job_stop: { job_id: "j1" },
  read_file: { path: ".env", offset: 3, limit: 7 },
  list_files: { path: "a/b", pattern: "*.ts", depth: 2 },
  search_files: { pattern: "COLOUR", path: ".env", glob: "*.md", ignore_case: true },
  write_file: { path: "src/x y", content: "new" },
  edit_file: { path: ".env", old_text: "a", new_text: "b", replace_all: false }
}

const platform = await Effect.runPromise(
  Effect.provide(Effect.context<FileSystem.FileSystem | Path.Path>(), NodeContext.layer)
)

/** How the mode that allows everything decides. */
const decided = async (source: PolicySource, name: string, params: Params, state = new PermissionState()) => {
  const entry = entries.find((one) => one.name === name)
  assert.isDefined(entry)
  state.setMode("allow")
  const policy = BuiltInGuards.placed(CompiledPolicy.make(source), { workspace: "/ws", platform })
  const subject = await Effect.runPromise(Ruling.resolveLinks({ policy, state }, entry, params))
  return state.evaluate(policy, subject, entry, session).decision
}

/** Names that cover a tool's. */
const nameLike = (name: string): FastCheck.Arbitrary<string> =>
  FastCheck.oneof(
    FastCheck.constantFrom(name, "*", `${name.slice(0, 3)}*`, `*${name.slice(-4)}`, name.replace("_", "?")),
    FastCheck.nat(name.length).map((at) => `${name.slice(0, at)}*`)
  )

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Texts that mean a value. */
const valueLike = (name: string, value: unknown): FastCheck.Arbitrary<string> => {
  const text = shown(value).replace(/[*?[]/g, "[$&]")
  const paths = name === "path" || name === "cwd" ? [`./${text}`, `/ws/${text}`, `${text}*`] : []
  return FastCheck.constantFrom(text, ` ${text} `, `"${text}"`, "*", ...paths)
}

/** An entry about a call: some of its arguments, in any order. */
const derived = FastCheck.constantFrom(...Object.keys(filled)).chain((tool) => {
  const params = Object.entries(filled[tool] ?? {})
  return FastCheck.tuple(
    nameLike(tool),
    FastCheck.shuffledSubarray(params, { minLength: 1 }).chain((some) =>
      FastCheck.tuple(...some.map(([name, value]) => FastCheck.tuple(FastCheck.constant(name), valueLike(name, value))))
    ),
    FastCheck.boolean(),
    FastCheck.constantFrom(")", ")*")
  ).map(([name, named, isStarred, end]) => ({
    tool,
    pattern: `${name}(${named.map(([name, value]) => `${isStarred ? "*" : ""}${name}=${value}`).join(", ")}${end}`
  }))
})

/** An entry with one letter wrong. */
const misspelt = FastCheck.tuple(derived, FastCheck.nat(), FastCheck.constantFrom("", "x", "_")).map(
  ([{ pattern }, at, letter]) => {
    const from = at % pattern.length
    return `${pattern.slice(0, from)}${letter}${pattern.slice(from + 1)}`
  }
)

const refusals = (pattern: string): ReadonlyArray<string> => {
  const source = { blacklist: { patterns: [pattern] } }
  const names = tools.map(({ name }) => name)
  return [
    ...PolicyRemarks.unmatchable(source, tools).denying,
    ...PolicyRemarks.unknownTools(source, names).denying
  ].map(({ message }) => message)
}

/** A call that a pattern over calls means, made from its words. */
const witnesses = (pattern: string): ReadonlyArray<readonly [tool: string, params: Params]> => {
  const own = CallPattern.parse(pattern)
  if (own === undefined) return []
  const plain = (glob: Glob.Glob) =>
    glob.pattern.replace(/\[(.)[^\]]*\]|[*?]/g, (sign, first?: string) => first ?? (sign === "*" ? "" : "a"))
  return entries.flatMap(({ name, shellCommand }): ReadonlyArray<readonly [string, Params]> => {
    const fields = filled[name] ?? {}
    if (!Glob.matches(own.tool, name)) return []
    // It may be one over a command line.
    const lines = [own.whole, ...own.named.map(({ value }) => value)].map((glob) => ({ command: plain(glob) }))
    const ofCommand = shellCommand === undefined ? [] : lines.map((params) => [name, params] as const)
    if (own.named.length === 0)
      return [
        ...ofCommand,
        ...Object.keys(fields).map((field) => [name, { ...fields, [field]: plain(own.whole) }] as const)
      ]
    if (own.named.some((one) => !Object.hasOwn(fields, one.name))) return ofCommand
    const given = own.named.map((one) => [one.name, like(fields[one.name], one.value, plain(one.value))] as const)
    return [...ofCommand, [name, { ...fields, ...Object.fromEntries(given) }]]
  })
}

/** A value of the same kind that the glob matches, if there is one. */
const like = (value: unknown, glob: Glob.Glob, text: string): unknown =>
  [value, text, Number(text), text === "true", text === "false"].find(
    (one) => typeof one === typeof value && Glob.matches(glob, shown(one))
  ) ?? value

describe("an entry that denies", () => {
  it("denies the call that it is about, in any order and spelling", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(derived, async ({ pattern, tool }) => {
        assert.deepStrictEqual(refusals(pattern), [], pattern)
        const params = filled[tool] ?? {}
        assert.strictEqual(await decided({ blacklist: { patterns: [pattern] } }, tool, params), "deny", pattern)
        const entry = Either.getOrThrow(SessionRule.of("deny", pattern, registry))
        const state = new PermissionState()
        state.deny(entry)
        assert.strictEqual(await decided({}, tool, params, state), "deny", entry)
      }),
      { numRuns: 400 }
    ))

  it("is refused if no call is meant", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(misspelt, async (pattern) => {
        // Any other is about commands.
        if (CallPattern.parse(pattern) === undefined || refusals(pattern).length > 0) return
        for (const [tool, params] of witnesses(pattern))
          if ((await decided({ blacklist: { patterns: [pattern] } }, tool, params)) === "deny") return
        assert.fail(pattern)
      }),
      { numRuns: 800 }
    ))
})
