import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as FetchUrl from "../../src/builtin/FetchUrl.js"
import * as Planning from "../../src/builtin/Planning.js"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Kit from "../kit/session.js"

const kindsOf = <T extends Record<string, Tool.Any>>(toolkit: Toolkit.Toolkit<T>) =>
  // The kinds of tools need no handlers.
  Effect.map(ToolRegistry.make(toolkit) as Effect.Effect<ToolRegistry.Service, unknown>, ({ entries }) =>
    Object.fromEntries(entries.map(({ kind, name }) => [name, kind]))
  )

describe("what a tool does to the world", () => {
  it.effect("is known of our own", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* kindsOf(Toolkit.merge(Workspace.toolkit, FetchUrl.toolkit, Delegate.toolkit, Planning.toolkit)),
        {
          run_command: "execute",
          job_output: "read",
          job_stop: "other",
          read_file: "read",
          list_files: "search",
          search_files: "search",
          write_file: "edit",
          edit_file: "edit",
          fetch_url: "fetch",
          delegate: "think",
          spawn_subagent: "think",
          explore: "think",
          plan: "think",
          agent: "think",
          todo_write: "think",
          propose_plan: "switch_mode"
        }
      )
    })
  )

  it.effect("goes by the traits of others, unless they say it", () =>
    Effect.gen(function* () {
      const parameters = { file: Schema.String }
      const plain = Tool.make("plain", { parameters })
      const toolkit = Toolkit.make(
        plain,
        Tool.make("looks", { parameters }).annotate(ToolTrait.Paths, ["file"]).annotate(Tool.Readonly, true),
        Tool.make("changes", { parameters }).annotate(ToolTrait.Paths, ["file"]),
        Tool.make("knows", { parameters }).annotate(Tool.Readonly, true),
        Tool.make("plans", { parameters }).annotate(ToolTrait.Kind, "think"),
        Tool.make("runs", { parameters }).annotate(ToolTrait.ShellCommand, "file"),
        Tool.make("asks", { parameters }).annotate(ToolTrait.WebAddress, "file")
      )
      assert.deepStrictEqual(yield* kindsOf(toolkit), {
        plain: "other",
        looks: "read",
        changes: "other",
        knows: "other",
        plans: "think",
        runs: "execute",
        asks: "fetch"
      })
    })
  )
})

describe("a proposed call", () => {
  it.scoped("is told with its kind and its arguments, secrets masked", () =>
    Effect.gen(function* () {
      const kit = yield* Kit.start({
        model: [{ tools: [{ name: "work", params: { name: "use hunter2-hunter2" } }] }, { text: "done" }],
        runtime: { policy: Kit.allowAll, secrets: [Redacted.make("hunter2-hunter2")] }
      })
      yield* kit.agent.run("go")
      const [proposed] = yield* kit.of("ToolCallProposed")
      assert.deepStrictEqual(proposed?.arguments, { name: "use [REDACTED]" })
      assert.strictEqual(proposed?.kind, "other")
    })
  )
})
