/**
 * What agents of others ask leave for, as tools: the gate decides about their calls as about any other. No model is
 * offered them. The handler of an allowed call lets the agent go on, and its result is what the agent says of it.
 */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as WorkspaceRoot from "../builtin/WorkspaceRoot.js"
import * as Origin from "../core/Origin.js"
import * as Guard from "../permission/Guard.js"
import * as ToolTrait from "../tool/ToolTrait.js"
import type { ForeignAgents } from "./ForeignAgents.js"
import * as ForeignCall from "./ForeignCall.js"

const sentence = { success: Schema.String, failure: Schema.String, failureMode: "return" as const }

/** What the agent says it is about. */
const Title = Schema.String.annotations({ description: "What the agent says that it does." })

const Execute = Tool.make("foreign_execute", {
  description: "An agent of others runs a command.",
  parameters: { command: Schema.String },
  ...sentence
})
  .annotate(ToolTrait.Unoffered, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.ShellCommand, "command")

const Edit = Tool.make("foreign_edit", {
  description: "An agent of others changes a file.",
  parameters: {
    path: Schema.String,
    title: Schema.optional(Title),
    before: Schema.optional(Schema.String),
    after: Schema.optional(Schema.String),
    diff: Schema.optional(Schema.String)
  },
  ...sentence
})
  .annotate(ToolTrait.Unoffered, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.Kind, "edit")
  .annotate(ToolTrait.Paths, ["path"])
  .pipe(
    // As the tools of ours that write: a place outside the workspace is no question.
    ToolTrait.validate(({ path }) =>
      Effect.flatMap(WorkspaceRoot.WorkspaceRoot, ({ locateToChange }) => Effect.asVoid(locateToChange(path)))
    ),
    ToolTrait.preview(({ after, before, diff, path, title }) =>
      Effect.succeed({
        summary: title ?? `change ${path}`,
        ...(after === undefined ? {} : { change: { path, after, ...(before === undefined ? {} : { before }) } }),
        ...(diff === undefined ? {} : { details: diff, format: "diff" as const })
      })
    )
  )

const Act = Tool.make("foreign_act", {
  description: "An agent of others does something else.",
  parameters: {
    title: Title,
    kind: Schema.String,
    input: Schema.optional(Schema.Unknown),
    more: Schema.optional(Schema.Unknown),
    paths: Schema.optional(Schema.Array(Schema.String))
  },
  ...sentence
})
  .annotate(ToolTrait.Unoffered, true)
  .annotate(ToolTrait.Essential, true)
  .annotate(ToolTrait.Paths, ["paths"])
  .annotate(ToolTrait.Quotes, ForeignCall.commandsIn)

export const toolkit = Toolkit.make(Execute, Edit, Act)

/** What is known by the words of an agent alone is asked each time: no rule and no lasting answer covers it. */
export const guards: ReadonlyArray<Guard.Guard> = [
  Guard.forTool(Act, () =>
    Effect.succeed(
      Guard.ask({
        reason: "Only the words of the agent say what it does, so each such call is asked.",
        coveredBy: "all"
      })
    )
  )
]

/** The handlers: each lets the agent go on that asked by the call. */
export const layer = (agents: ForeignAgents): Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>> => {
  const goOn = Effect.flatMap(Origin.current, ({ toolCallId }) => agents.goOn(toolCallId))
  return toolkit.toLayer({
    foreign_execute: () => goOn,
    foreign_edit: () => goOn,
    foreign_act: () => goOn
  })
}
