/** A whole agent whose model, tools and people the test controls: the test decides the order of events. */
import * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentEvent, EventOf } from "../../src/event/AgentEvent.js"
import type * as Interactor from "../../src/interaction/Interactor.js"
import * as Model from "../../src/model/Model.js"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as Agent from "../../src/runtime/Agent.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolOutput from "../../src/tool/ToolOutput.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import { noFiles } from "./agents.js"
import * as EventRules from "./eventRules.js"
import * as HistoryRules from "./historyRules.js"
import { settle } from "./Recorder.js"

// -----------------------------------------------------------------------------------------------------------------
// tools
// -----------------------------------------------------------------------------------------------------------------

const Work = Tool.make("work", { parameters: { name: Schema.String }, success: Schema.Unknown })
  .pipe(ToolTrait.editable(["name"]))
  .annotate(ToolTrait.Groups, ["labour"])
const Slow = Tool.make("slow", { success: Schema.String }).annotate(ToolTrait.Timeout, "2 minutes")
const Typed = Tool.make("typed", {
  parameters: { why: Schema.String },
  success: Schema.Struct({ at: Schema.Date }),
  failure: Schema.Struct({ code: Schema.Number, why: Schema.String }),
  failureMode: "return"
})
export const toolkit = Toolkit.make(Work, Slow, Typed)

/** What `work` does with a name. Default: it gives the name back. */
export type Worker = (name: string) => Effect.Effect<unknown>

const handlers = (worker: Worker) =>
  toolkit.toLayer({
    work: ({ name }) => worker(name),
    slow: () => Effect.never,
    typed: ({ why }) =>
      why === "wrong"
        ? // A handler may lie about its type, such as one in JavaScript.
          Effect.succeed({ at: "yesterday" } as never)
        : why === "odd"
          ? Effect.fail("odd" as never)
          : why === "fine"
            ? Effect.succeed({ at: new Date(0) })
            : Effect.fail({ code: 7, why })
  })

export const print = (text: string) => ToolOutput.emit({ stream: "stdout", text })

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

export type Step = ScriptedModel.Step
/** One reply: of a script, or part by part. */
export type Reply = Step | Parts
type Parts = Stream.Stream<Model.Part, Model.ModelError>

/** The parts of one reply. */
export const parts = (step: Step): Parts =>
  ScriptedModel.make({ agents: { main: [step] } }).stream({
    prompt: Prompt.empty,
    tools: [],
    agent: "main",
    sessionId: ""
  })

export const text = (delta: string): Model.Part => ({ type: "text-delta", id: "1", delta })

export const finish = (
  reason: "stop" | "tool-calls" | "length" | "content-filter" | "error" | "pause" = "stop"
): Model.Part => ({
  type: "finish",
  reason,
  usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
})

export const call = (name: string, params: unknown = {}, id = ""): Model.Part => ({
  type: "tool-call",
  id,
  name,
  params
})

export interface Heard {
  readonly messages: ReadonlyArray<Prompt.Message>
  readonly agent: string
}

/** A model that gives one reply after the other, whatever the request, and records the requests. */
export const replies = (...all: ReadonlyArray<Reply>) => {
  const heard: Array<Heard> = []
  const model: Model.Service = {
    id: "test/replies",
    stream: ({ agent, prompt }) =>
      Stream.suspend(() => {
        const reply = all[heard.length] ?? { text: "no more replies" }
        heard.push({ messages: [...prompt.content], agent })
        return Stream.StreamTypeId in reply ? reply : parts(reply)
      })
  }
  return { model, heard }
}

/** A stream that begins with these parts, signals that, and continues when it is released. */
export const halting = (
  before: ReadonlyArray<Model.Part>,
  begun: Deferred.Deferred<void>,
  after: Parts = Stream.never
): Parts =>
  Stream.concat(Stream.fromIterable(before), Stream.unwrap(Effect.as(Deferred.succeed(begun, undefined), after)))

// -----------------------------------------------------------------------------------------------------------------
// agents
// -----------------------------------------------------------------------------------------------------------------

export interface Options {
  readonly model: Model.Service | ReadonlyArray<Step>
  readonly worker?: Worker | undefined
  readonly person?: TestInteractor.Script | undefined
  /** Instead of the person. */
  readonly interactors?: ReadonlyArray<Interactor.Service> | undefined
  readonly runtime?: Omit<AgentRuntime.Options<typeof toolkit.tools>, "toolkit"> | undefined
  readonly agent?: Agent.Options | undefined
}

/** A policy that asks nobody. */
export const allowAll = PermissionFile.policy({ defaultPolicy: "allow" })

export const runtimeOf = (options: Options) =>
  AgentRuntime.make({ toolkit, policy: allowAll, ...options.runtime }).pipe(
    Effect.provide(
      Layer.mergeAll(
        handlers(options.worker ?? ((name) => Effect.succeed(name))),
        noFiles,
        "stream" in options.model
          ? Model.layer(options.model)
          : ScriptedModel.layer({ agents: { main: options.model } })
      )
    )
  )

export const start = (options: Options) =>
  Effect.gen(function* () {
    const runtime = yield* Effect.orDie(runtimeOf(options))
    const person = yield* TestInteractor.make(options.person === undefined ? {} : { script: options.person })
    const agent = yield* Effect.provideService(
      Effect.orDie(Agent.startWith(options.interactors ?? [person.interactor], options.agent)),
      AgentRuntime.AgentRuntime,
      runtime
    )
    const events: Array<AgentEvent> = []
    const subscription = yield* agent.subscribe({ capacity: Number.POSITIVE_INFINITY })
    const reader = yield* Effect.fork(
      Effect.repeat(
        Effect.map(subscription.takeAll, (batch) => {
          events.push(...Option.getOrElse(batch, () => []))
          return Option.isSome(batch)
        }),
        { while: (more) => more }
      )
    )
    return {
      agent,
      person,
      runtime,
      reader,
      /** What happened so far. */
      events: Effect.as(settle, events as ReadonlyArray<AgentEvent>),
      of: <Tag extends AgentEvent["_tag"]>(tag: Tag): Effect.Effect<ReadonlyArray<EventOf<Tag>>> =>
        Effect.map(settle, () => events.filter((event): event is EventOf<Tag> => event._tag === tag)),
      /** What is wrong with the history and the events; nothing while no turn runs. */
      wrong: Effect.map(settle, () => [
        ...HistoryRules.violations(agent.history.messages),
        ...EventRules.violations(events)
      ]),
      /** The results the model was given last. */
      results: () => resultsOf(agent.history.messages)
    }
  })

export type Started = Effect.Effect.Success<ReturnType<typeof start>>

/** The results of the last tool message. */
export const resultsOf = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<unknown> => {
  const last = messages.findLast((message) => message.role === "tool")
  return last?.role === "tool" ? last.content.map((part) => part.result) : []
}

/** A history as one line a message. */
export const outline = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<string> =>
  messages.map((message) => {
    if (typeof message.content === "string") return `${message.role}: ${message.content}`
    const shown = message.content.map((part) => {
      switch (part.type) {
        case "text":
          return part.text
        case "tool-call":
          return `${part.name}(${JSON.stringify(part.params)})`
        case "tool-result":
          return `${part.isFailure ? "✗ " : ""}${typeof part.result === "string" ? part.result : JSON.stringify(part.result)}`
        default:
          return `<${part.type}>`
      }
    })
    const partial = (message.options["assent"] as { partial?: boolean } | undefined)?.partial === true ? " …" : ""
    return `${message.role}: ${shown.join(" | ")}${partial}`
  })
