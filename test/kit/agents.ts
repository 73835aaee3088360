/** Agents for tests: a few small tools, a scripted model, and everything in memory. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as Scripted from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"

export const Add = Tool.make("add", {
  description: "Adds two numbers.",
  parameters: { a: Schema.Number, b: Schema.Number },
  success: Schema.Number
})

export const Fail = Tool.make("fail", {
  description: "Always fails.",
  parameters: { why: Schema.String },
  success: Schema.String,
  failure: Schema.String,
  failureMode: "return"
})

export const Crash = Tool.make("crash", { description: "Always crashes.", success: Schema.String })

/** Runs until it is interrupted. */
export const Hang = Tool.make("hang", { description: "Never ends.", success: Schema.String })

export const kit = Toolkit.make(Add, Fail, Crash, Hang)

export const handlers = (
  options: { readonly onHang?: Effect.Effect<void>; readonly onHangEnd?: Effect.Effect<void> } = {}
) =>
  kit.toLayer({
    add: ({ a, b }) => Effect.succeed(a + b),
    fail: ({ why }) => Effect.fail(why),
    crash: () => Effect.dieMessage("boom"),
    hang: () =>
      Effect.zipRight(options.onHang ?? Effect.void, Effect.never).pipe(
        Effect.onInterrupt(() => options.onHangEnd ?? Effect.void)
      )
  })

/** An empty file system, for runtimes whose tools touch no files. */
export const noFiles = Layer.merge(FileSystem.layerNoop({}), Path.layer)

export const runtime = (
  script: ScriptedModel.Script,
  options: Omit<AgentRuntime.Options<typeof kit.tools>, "toolkit"> & Parameters<typeof handlers>[0] = {}
) =>
  AgentRuntime.layer({ toolkit: kit, ...options }).pipe(
    Layer.provide(Layer.mergeAll(handlers(options), Scripted.layer(script), noFiles))
  )

/** A policy that asks nobody. */
export const allowAll = PermissionFile.policy({ defaultPolicy: "allow" })
