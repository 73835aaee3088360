/**
 * An agent for a test: a scripted model, a scripted person, predictable ids, and everything in memory.
 *
 * Everything works under `TestClock`.
 *
 * @example
 * ```ts
 * import { Tool, Toolkit } from "@effect/ai"
 * import { assert, it } from "@effect/vitest"
 * import { TestAgent } from "assent/testing"
 * import { Effect } from "effect"
 *
 * const toolkit = Toolkit.make(Tool.make("deploy"))
 *
 * it.scoped("does not deploy when the person says no", () =>
 *   Effect.gen(function* () {
 *     const { agent, events, person } = yield* TestAgent.start()
 *     yield* agent.run("ship it")
 *     assert.strictEqual((yield* person.shown).length, 1)
 *     assert.notInclude(
 *       (yield* events).map((event) => event._tag),
 *       "ToolCallStarted"
 *     )
 *   }).pipe(
 *     Effect.provide(
 *       TestAgent.layer({ toolkit, script: [{ tools: [{ name: "deploy" }] }, { text: "All right." }], person: ["n"] })
 *     ),
 *     Effect.provide(toolkit.toLayer({ deploy: () => Effect.void }))
 *   )
 * )
 * ```
 *
 * @since 0.1.0
 */
import type * as Tool from "@effect/ai/Tool"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as QueueChannel from "../channel/QueueChannel.js"
import * as Id from "../core/Id.js"
import type { AgentEvent } from "../event/AgentEvent.js"
import type { Interactor } from "../interaction/Interactor.js"
import type * as Model from "../model/Model.js"
import * as ScriptedModel from "../model/ScriptedModel.js"
import * as Limits from "../turn/Limits.js"
import * as Agent from "../runtime/Agent.js"
import * as AgentRuntime from "../runtime/AgentRuntime.js"
import type * as ToolRegistry from "../tool/ToolRegistry.js"
import * as TestInteractor from "./TestInteractor.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * Options of a runtime for tests.
 *
 * @since 0.1.0
 * @category models
 */
export interface RuntimeOptions<Tools extends Record<string, Tool.Any>> extends AgentRuntime.Options<Tools> {
  /** The model's script: the steps of the root agent, or of several agents by name. */
  readonly script: ReadonlyArray<ScriptedModel.Step> | ScriptedModel.Script
  /** The file system. Default: an empty one. */
  readonly files?: Layer.Layer<FileSystem.FileSystem | Path.Path> | undefined
}

/**
 * Options of an agent for tests: the runtime's, and the person.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<Tools extends Record<string, Tool.Any>> extends RuntimeOptions<Tools> {
  /** The person's script, or all of their options. Default: never answers. */
  readonly person?: TestInteractor.Script | TestInteractor.Options | undefined
}

/**
 * The services that the test provides: the toolkit's handlers and their requirements.
 *
 * @since 0.1.0
 * @category models
 */
export type Requirements<Tools extends Record<string, Tool.Any>> = Exclude<AgentRuntime.Requirements<Tools>, Provided>

/**
 * A started agent with its person and its events.
 *
 * @since 0.1.0
 * @category models
 */
export interface TestAgent {
  readonly agent: Agent.Agent
  readonly person: TestInteractor.Service
  /** All events of the agent from its start, in order. This is the reader of `agent.events`. */
  readonly events: Effect.Effect<ReadonlyArray<AgentEvent>>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Starts an agent that asks the scripted person. It ends with the scope.
 *
 * @since 0.1.0
 * @category constructors
 */
export const start: Agent.Start<
  TestAgent,
  AgentRuntime.AgentRuntime | TestInteractor.TestInteractor | Interactor | Scope.Scope
> = (options?: Agent.Options) =>
  Effect.gen(function* () {
    const person = yield* TestInteractor.TestInteractor
    // As in `Agent.start`: plain options cannot fail.
    const kept = { events: { capacity: Number.POSITIVE_INFINITY }, ...options } as Agent.Plain
    const agent = yield* Agent.start(kept)
    const events: Array<AgentEvent> = []
    const read = Effect.flatMap(agent.events.takeAll, (batch) => {
      if (Option.isNone(batch)) return Effect.succeed(false)
      events.push(...batch.value)
      return Effect.succeed(true)
    })
    yield* Effect.forkScoped(Effect.repeat(read, { while: (more) => more }))
    // The reader was resumed before this caller, so yielding lets it run first.
    return {
      agent,
      person,
      events: Effect.zipRight(
        settle,
        Effect.sync(() => [...events])
      )
    }
  })

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * A runtime with a scripted model and a scripted person.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <Tools extends Record<string, Tool.Any>>(
  options: Options<Tools>
): Layer.Layer<
  AgentRuntime.AgentRuntime | TestInteractor.TestInteractor | Interactor | Id.IdGenerator,
  ToolRegistry.Refusal<Tools>,
  Requirements<Tools>
> => Layer.merge(layerRuntime(options), TestInteractor.layer(toOptions(options.person)))

/**
 * A runtime with a scripted model and a queue of dialogs that the test answers.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerQueue = <Tools extends Record<string, Tool.Any>>(
  options: RuntimeOptions<Tools>,
  queue?: QueueChannel.Options
): Layer.Layer<
  AgentRuntime.AgentRuntime | QueueChannel.QueueChannel | Interactor | Id.IdGenerator,
  ToolRegistry.Refusal<Tools>,
  Requirements<Tools>
> => Layer.merge(layerRuntime(options), QueueChannel.layer(queue))

/**
 * A runtime with a scripted model and no interactor.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRuntime = <Tools extends Record<string, Tool.Any>>(
  options: RuntimeOptions<Tools>
): Layer.Layer<AgentRuntime.AgentRuntime | Id.IdGenerator, ToolRegistry.Refusal<Tools>, Requirements<Tools>> => {
  const { script } = options
  const model = ScriptedModel.layer("agents" in script ? script : { agents: { [rootName]: script } })
  // The runtime gets the interactor too: its tools pass it to children.
  return Layer.provideMerge(
    Layer.provide(runtimeOf(options), Layer.merge(model, options.files ?? noFiles)),
    Layer.sync(Id.IdGenerator, Id.sequence)
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Provided = Model.Model | FileSystem.FileSystem | Path.Path

const rootName = "main"

/** An empty workspace: it is there, and no hidden file is in it or above it. */
const noFiles: Layer.Layer<FileSystem.FileSystem | Path.Path> = Layer.merge(
  FileSystem.layerNoop({ exists: (path) => Effect.succeed(!/[/\\]\.[^/\\]*$/.test(path)) }),
  Path.layer
)

const settle = Effect.repeatN(Effect.yieldNow(), 3)

const toOptions = (person: TestInteractor.Script | TestInteractor.Options | undefined): TestInteractor.Options =>
  person === undefined ? {} : typeof person === "function" || isSteps(person) ? { script: person } : person

const isSteps = (
  person: ReadonlyArray<TestInteractor.Step> | TestInteractor.Options
): person is ReadonlyArray<TestInteractor.Step> => Array.isArray(person)

/** Invalid limits and rules are a defect: a mistake in the test. */
const runtimeOf = <Tools extends Record<string, Tool.Any>>({ limits, ...options }: RuntimeOptions<Tools>) =>
  Layer.effect(
    AgentRuntime.AgentRuntime,
    Effect.flatMap(Effect.orDie(Limits.checked(limits)), (limits) =>
      AgentRuntime.make(options).pipe(
        Effect.catchAll((error) => (error._tag === "PolicyInvalid" ? Effect.die(error) : Effect.fail(error))),
        Effect.map((runtime) => ({ ...runtime, limits }))
      )
    )
  )
