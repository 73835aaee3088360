/** A call acts on the place that was decided, whatever somebody renames between the decision and the effect. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as TestAgent from "../../src/testing/TestAgent.js"
import { Attacker } from "../kit/Attacker.js"
import * as Runs from "../kit/Runs.js"

/**
 * ```
 * ws/src/d/config  ws/src/d/a.txt  ws/other/config  ws/other/a.txt  ws/.git/config  outside/config  outside/a.txt
 * ```
 */
class CallerContext {
  readonly base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-place-")))
  readonly root = `${this.base}/ws`

  constructor() {
    for (const name of ["ws/src/d", "ws/other", "ws/.git", "outside"]) {
      fs.mkdirSync(`${this.base}/${name}`, { recursive: true })
      fs.writeFileSync(`${this.base}/${name}/config`, `config of ${name}\n`)
      fs.writeFileSync(`${this.base}/${name}/a.txt`, `text of ${name}\n`)
    }
  }

  /** Every file: the number of its directory, its own name and number, and its content. */
  get files(): ReadonlyArray<Seen> {
    const visit = (directory: string): ReadonlyArray<Seen> => {
      const above = fs.statSync(directory).ino
      return fs.readdirSync(directory, { withFileTypes: true }).flatMap((entry): ReadonlyArray<Seen> => {
        const name = `${directory}/${entry.name}`
        if (entry.isDirectory()) return visit(name)
        return entry.isFile() ? [{ above, name, ino: fs.statSync(name).ino, text: fs.readFileSync(name, "utf8") }] : []
      })
    }
    return visit(this.base)
  }

  remove(): void {
    fs.rmSync(this.base, { recursive: true })
  }
}

interface Seen {
  readonly above: number
  readonly name: string
  readonly ino: number
  readonly text: string
}

/** What a job does in the workspace. */
const deeds: Readonly<Record<string, (world: CallerContext) => void>> = {
  "a link to .git": ({ root }) => {
    fs.renameSync(`${root}/src/d`, `${root}/src/aside`)
    fs.symlinkSync("../.git", `${root}/src/d`)
  },
  "a link out of the workspace": ({ root }) => {
    fs.renameSync(`${root}/src/d`, `${root}/src/aside`)
    fs.symlinkSync("../../outside", `${root}/src/d`)
  },
  "a link above": ({ root }) => {
    fs.mkdirSync(`${root}/made`)
    fs.symlinkSync("../.git", `${root}/made/d`)
    fs.renameSync(`${root}/src`, `${root}/aside`)
    fs.symlinkSync("made", `${root}/src`)
  },
  "another directory": ({ root }) => {
    fs.renameSync(`${root}/src/d`, `${root}/src/aside`)
    fs.renameSync(`${root}/other`, `${root}/src/d`)
  },
  "a link in place of the file": ({ root }) => {
    for (const name of ["config", "a.txt"]) {
      fs.rmSync(`${root}/src/d/${name}`)
      fs.symlinkSync(`../../.git/${name}`, `${root}/src/d/${name}`)
    }
  },
  "another file": ({ root }) => {
    for (const name of ["config", "a.txt"]) fs.renameSync(`${root}/other/${name}`, `${root}/src/d/${name}`)
  }
}

const calls: ReadonlyArray<readonly [tool: string, params: object]> = [
  ["write_file", { path: "src/d/config", content: "new\n" }],
  ["write_file", { path: "src/d/made.txt", content: "new\n" }],
  ["write_file", { path: "src/d/deep/er/made.txt", content: "new\n" }],
  ["edit_file", { path: "src/d/a.txt", old_text: "text of", new_text: "new" }],
  ["read_file", { path: "src/d/a.txt" }],
  ["list_files", { path: "src/d" }],
  ["search_files", { path: "src/d", pattern: "of" }],
  ["search_files", { path: "src/d/a.txt", pattern: "of" }]
]

/** One call by an agent. A rule allows it in `src`, or a person does who looks where it would write. */
const attacked = (
  world: CallerContext,
  attacker: Attacker,
  [name, params]: (typeof calls)[number],
  by: "rule" | "person"
) =>
  Effect.gen(function* () {
    const files = Layer.provideMerge(attacker.layer, NodeContext.layer)
    const patterns = ["write_file", "edit_file"].map((tool) => `${tool}(*path=src/*)`)
    const runtime = TestAgent.layer({
      toolkit: Workspace.toolkit,
      script: [
        // A file that an agent has not read is not replaced unasked.
        { tools: [{ name: "read_file", params: { path: "src/d/config" } }] },
        { text: "read" },
        { tools: [{ name, params: { ...params } }] },
        { text: "done" }
      ],
      person: ({ interaction }) => {
        const change = interaction._tag === "Approve" ? interaction.display?.change : undefined
        return by === "person" && change?.path.startsWith(`${world.root}/src/`) === true ? "y" : "n"
      },
      workspace: world.root,
      policy: PermissionFile.policy(by === "rule" ? { whitelist: { patterns } } : {}),
      files
    }).pipe(Layer.provide(Workspace.layer({ root: world.root })), Layer.provide(files))
    return yield* Effect.gen(function* () {
      const { agent } = yield* TestAgent.start()
      yield* agent.run("look")
      const known = agent.history.messages.length
      attacker.decided = undefined
      yield* attacker.during(agent.run("go"))
      return agent.history.messages
        .slice(known)
        .flatMap((message) => (message.role === "tool" ? [JSON.stringify(message)] : []))
    }).pipe(Effect.provide(runtime))
  })

/** The job strikes at each moment in the soak, and here at one in 60, which differ by case. */
const stride = Runs.isWhole ? 1 : 60

describe("a call whose path becomes", () => {
  for (const [row, [what, deed]] of Object.entries(deeds).entries()) {
    for (const [column, call] of calls.entries()) {
      const first = Runs.isWhole ? 0 : (row * 3 + column) % stride
      const [tool, params] = call
      // Nobody is asked about what only reads.
      for (const by of tool.endsWith("_file") && tool !== "read_file"
        ? (["rule", "person"] as const)
        : (["rule"] as const)) {
        it.live(
          `${what} acts on what was decided: ${tool} ${JSON.stringify(params)} by a ${by}`,
          () =>
            Effect.gen(function* () {
              let done = 0
              for (let at = first; ; at += stride) {
                const world = new CallerContext()
                const before = world.files
                const attacker = new Attacker(at, () => deed(world))
                const said = yield* Effect.scoped(attacked(world, attacker, call, by))
                const where = `${at}: ${said.join()}`
                const decided = [...(attacker.decided?.values() ?? [])][0]
                const after = world.files
                // What the tool wrote is in the directory that was decided, or in one that was made there.
                for (const { above, name, text } of after) {
                  if (!text.startsWith("new")) continue
                  done++
                  const isMade = name.includes("/deep/er/")
                  if (!isMade) assert.strictEqual(above, decided?.above?.identity.ino, where)
                  else assert.match(name, /ws\/(?:src|aside)\/(?:d|aside)\/deep\/er\/made\.txt$/, where)
                }
                // What it replaced was decided, and nothing else is lost.
                const texts = after.map(({ text }) => text)
                for (const { ino, text } of before)
                  if (!texts.includes(text) && !deedRemoves(what, text))
                    assert.strictEqual(ino, decided?.file?.ino, where)
                // The lines that a difference takes away the agent has read before.
                const told = said.join().replaceAll(/\\n-[^\\]*/g, "")
                const shown = before.filter(({ text }) => told.includes(text.trim()))
                for (const { ino } of shown) {
                  done++
                  if (
                    decided?.file !== undefined &&
                    tool !== "list_files" &&
                    "path" in params &&
                    params.path !== "src/d"
                  )
                    assert.strictEqual(ino, decided.file.ino, where)
                }
                assert.notMatch(said.join(), /(?:text|config) of outside/, where)
                world.remove()
                if (!attacker.struck) break
              }
              // In the last round the job comes too late.
              if (tool !== "list_files") assert.isAbove(done, 0)
            }),
          120_000
        )
      }
    }
  }
})

/** The job itself removes these. */
const deedRemoves = (what: string, text: string): boolean =>
  (what === "a link in place of the file" || what === "another file") && text.includes("ws/src/d")
