/** `blacklist.paths`: no tool and no confined command yields a denied file, whatever allows the call. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as DeniedPaths from "../../src/core/DeniedPaths.js"
import * as NodeFiles from "../../src/host/NodeFiles.js"
import * as Policy from "../../src/permission/Policy.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import * as Bubblewrap from "../kit/Bubblewrap.js"
import * as Runs from "../kit/Runs.js"

const canary = "mauve4711"

type Call = readonly [tool: string, params: object]

/** An agent for which everything is allowed makes the calls. What each of them yields, as a text. */
const play = (root: string, paths: ReadonlyArray<string>, calls: ReadonlyArray<Call>, isConfined: boolean) =>
  Effect.gen(function* () {
    const { agent, events } = yield* TestAgent.start()
    yield* agent.permissions.suspend("all")
    yield* agent.run("go")
    return (yield* events).flatMap((event) =>
      event._tag === "ToolCallEnded" ? [JSON.stringify(event.result ?? event.summary)] : []
    )
  }).pipe(
    Effect.scoped,
    Effect.provide(
      TestAgent.layer({
        toolkit: Workspace.toolkit,
        script: [...calls.map(([name, params]) => ({ tools: [{ name, params }] })), { text: "done" }],
        // The tools themselves know of no denied path.
        policy: Policy.make({
          defaultPolicy: "allow",
          guards: { sanitize: { pathScope: "deny" } },
          blacklist: { paths: [...paths] }
        }),
        workspace: root,
        temporary: [],
        limits: { maxSteps: calls.length + 2, identicalErrors: 1_000 },
        files: NodeContext.layer
      })
    ),
    Effect.provide(
      Workspace.layer({ root, ripgrep: false, ...(isConfined ? { sandbox: { mode: "require" as const } } : {}) })
    ),
    Effect.provide(Layer.provideMerge(NodeFiles.layer, NodeContext.layer))
  )

interface Tree {
  readonly globs: ReadonlyArray<string>
  readonly files: ReadonlyArray<string>
  readonly links: ReadonlyArray<readonly [name: string, target: string]>
}

const names = ["a", "b", "Deep", "zq"]
const file = FastCheck.tuple(
  FastCheck.array(FastCheck.constantFrom(...names), { maxLength: 3 }),
  FastCheck.constantFrom(".env", "k.pem", "x.txt", "note")
).map(([parts, last]) => [...parts, last].join("/"))
const tree: FastCheck.Arbitrary<Tree> = FastCheck.record({
  globs: FastCheck.uniqueArray(
    FastCheck.constantFrom(
      ".env",
      "**/.env",
      "*.pem",
      "a/**",
      "Deep",
      "a/*/k.pem",
      "{b,zq}/x.txt",
      "**/zq",
      "./b/.env"
    ),
    { minLength: 1, maxLength: 3 }
  ),
  files: FastCheck.uniqueArray(file, { minLength: 3, maxLength: 10 }),
  links: FastCheck.array(
    FastCheck.tuple(
      FastCheck.constantFrom("l1", "l2", "b/l3", "a/l4"),
      FastCheck.constantFrom("a", "a/b", ".env", "b/.env", "..", ".", "Deep", "l1", "k.pem")
    ),
    { maxLength: 3 }
  )
})

/** Makes the tree. Each denied file holds the canary. Yields the files, and which of them are denied. */
const plant = ({ files, globs, links }: Tree) => {
  const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "denied-")))
  const denied = DeniedPaths.make(globs)
  const isDenied = (name: string) => DeniedPaths.find(denied, name) !== undefined
  const made: Array<string> = []
  for (const name of files) {
    try {
      fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
      fs.writeFileSync(path.join(root, name), isDenied(name) ? `${canary} of ${name}\n` : "open\n", { flag: "wx" })
      made.push(name)
    } catch {
      // Another file is in the way.
    }
  }
  for (const [name, target] of links) {
    try {
      fs.symlinkSync(target, path.join(root, name))
      made.push(name)
    } catch {
      // So is the place of a link.
    }
  }
  return { root, made, isDenied }
}

const spelled = (root: string, name: string): ReadonlyArray<string> => [
  name,
  `./${name}`,
  `b/../${name}`,
  `${root}/${name}`,
  `l1/${name}`,
  `l2/../${name}`,
  name.toUpperCase(),
  `${name}/`
]

/** Calls that would read or change each file, under many texts for its path. */
const callsFor = (root: string, made: ReadonlyArray<string>, seed: number): ReadonlyArray<Call> => {
  const all = [...made, "a", "b", "Deep", ".", "l1", "b/l3"].flatMap((name) => spelled(root, name))
  const pick = (at: number) => all[(seed * 31 + at * 17) % all.length] ?? "."
  return [
    ["list_files", { pattern: "**" }],
    ["list_files", { path: pick(1), depth: 4 }],
    ["search_files", { pattern: canary.slice(0, 5) }],
    ["search_files", { path: pick(2), pattern: "of" }],
    ...[3, 4, 5, 6].map((at): Call => ["read_file", { path: pick(at) }]),
    ["write_file", { path: pick(7), content: "changed" }],
    ["edit_file", { path: pick(8), old_text: canary, new_text: "changed" }],
    ["run_command", { command: `cat '${pick(9)}'` }],
    ["run_command", { command: `cat '${pick(10)}'`, cwd: "b" }],
    ["run_command", { command: `grep -r of '${pick(11)}'` }],
    ["run_command", { command: "cat * .e* */* */.e* ./?/?/*" }],
    ["run_command", { command: `cp -r '${pick(12)}' copied; cat copied copied/*` }],
    ["run_command", { command: `ln -s '${pick(13)}' q; cat q q/*` }],
    ["run_command", { command: "f=.en; cat ${f}v b/${f}v" }],
    ["search_files", { pattern: "of" }]
  ]
}

const holds = (isConfined: boolean, numRuns: number) =>
  Effect.promise(() =>
    FastCheck.assert(
      FastCheck.asyncProperty(tree, FastCheck.nat(1_000), async (tree, seed) => {
        const { isDenied, made, root } = plant(tree)
        try {
          const before = new Map(made.filter(isDenied).map((name) => [name, contentOf(path.join(root, name))]))
          const calls = callsFor(root, made, seed)
          const results = await Effect.runPromise(play(root, tree.globs, calls, isConfined))
          assert.strictEqual(results.length, calls.length)
          for (const [at, result] of results.entries())
            assert.notInclude(result, canary, `${JSON.stringify(calls[at])} under ${tree.globs.join(" ")}`)
          const [listed = ""] = results
          for (const line of JSON.parse(listed).split("\n"))
            assert.isFalse(isDenied(line.replace(/[/@]$/, "")), `list_files names ${line}`)
          for (const [name, content] of before) assert.strictEqual(contentOf(path.join(root, name)), content, name)
        } finally {
          fs.rmSync(root, { recursive: true, force: true })
        }
      }),
      { numRuns }
    )
  )

const contentOf = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    return "none"
  }
}

describe("a denied path", () => {
  it.live("is neither read, listed, searched nor changed, in any spelling", () => holds(false, Runs.of(160)), 120_000)

  it.live.skipIf(!Bubblewrap.isPossible)("is not seen by a confined command", () => holds(true, Runs.of(160)), 120_000)
})
