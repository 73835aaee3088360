import * as Tool from "@effect/ai/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Clarification from "../../src/builtin/Clarification.js"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"

const tools: Record<string, Tool.Any> = { ...Workspace.toolkit.tools, ...Clarification.toolkit.tools }

/** Names of the tools for which a trait holds. */
const having = <I, A>(trait: Context.Tag<I, A>, holds: (value: A) => boolean): ReadonlyArray<string> =>
  Object.values(tools).flatMap((tool) => {
    // Traits are references: every context has a value for them.
    const annotations = tool.annotations as Context.Context<I>
    return holds(Context.get(annotations, trait)) ? [tool.name] : []
  })

describe("built-in tools", () => {
  it("have the parameters that scripts, profiles and policies name", () => {
    const parameters = Object.values(tools).map((tool) => {
      const schema = Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast) as {
        required: ReadonlyArray<string>
        properties: Record<string, unknown>
      }
      return [
        tool.name,
        Object.keys(schema.properties).map((name) => (schema.required.includes(name) ? name : `${name}?`))
      ]
    })
    assert.deepStrictEqual(Object.fromEntries(parameters), {
      run_command: ["command", "cwd?", "timeout?", "sandbox?", "reason?", "background?"],
      job_output: ["job_id"],
      job_stop: ["job_id"],
      read_file: ["path", "offset?", "limit?"],
      list_files: ["path?", "pattern?", "depth?"],
      search_files: ["pattern", "path?", "glob?", "ignore_case?"],
      write_file: ["path", "content"],
      edit_file: ["path", "old_text", "new_text", "replace_all?"],
      request_clarification: ["context", "questions"],
      ask_user: ["prompt"],
      request_input: ["title", "fields"]
    })
  })

  it("have the traits by which they are grouped, asked about and shown", () => {
    const asking = ["run_command", "write_file", "edit_file"]
    const quiet = ["read_file", "list_files", "search_files", "request_clarification", "ask_user", "request_input"]
    assert.deepStrictEqual(
      having(ToolTrait.AutoApproved, (value) => value),
      ["job_output", "job_stop", ...quiet]
    )
    assert.deepStrictEqual(
      having(Tool.Readonly, (value) => value),
      ["job_output", ...quiet]
    )
    assert.deepStrictEqual(
      having(ToolTrait.Outlives, (value) => value !== undefined),
      ["run_command"]
    )
    assert.deepStrictEqual(
      having(Tool.Destructive, (value) => value),
      asking
    )
    assert.deepStrictEqual(
      having(ToolTrait.Editable, (value) => value !== undefined),
      asking
    )
    assert.deepStrictEqual(
      having(ToolTrait.Preview, (value) => value !== undefined),
      asking
    )
    assert.deepStrictEqual(
      having(ToolTrait.Essential, (value) => value),
      ["read_file", "list_files", "request_clarification"]
    )
    assert.deepStrictEqual(
      having(ToolTrait.Resumable, (value) => value),
      ["request_clarification", "ask_user", "request_input"]
    )
    assert.deepStrictEqual(
      having(ToolTrait.ShellCommand, (value) => value === "command"),
      ["run_command"]
    )
    for (const [group, members] of [
      ["cli", ["run_command", "job_output", "job_stop"]],
      ["files", ["read_file", "list_files", "search_files"]],
      ["file_edit", ["read_file", "write_file", "edit_file"]],
      ["grep", ["search_files"]],
      ["grep_content", ["search_files"]],
      ["clarification", ["request_clarification", "ask_user", "request_input"]]
    ] as const) {
      assert.deepStrictEqual(
        having(ToolTrait.Groups, (value) => value.includes(group)),
        [...members]
      )
    }
  })

  it("describe themselves without a word about permission", () => {
    for (const tool of Object.values(tools)) {
      assert.isAbove((tool.description ?? "").length, 20)
      assert.notMatch(tool.description ?? "", /permission|approv|allowed|deny|denied/i)
    }
  })
})
