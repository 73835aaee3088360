/** An agent with a small context window, and what becomes of its history. */
import type * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as CompactionConfig from "../../src/conversation/CompactionConfig.js"
import * as History from "../../src/conversation/History.js"
import type * as Model from "../../src/model/Model.js"
import * as Kit from "./session.js"

export const config = (
  changes: Partial<CompactionConfig.CompactionConfig> = {}
): CompactionConfig.CompactionConfig => ({
  ...CompactionConfig.defaults,
  preserveRecentTurns: 1,
  ...changes
})

/** A model with a small window that answers turn after turn, and separately what it is asked for as a summary. */
export const conversing = (
  answers: ReadonlyArray<Kit.Reply>,
  options: { readonly window?: number; readonly summaries?: ReadonlyArray<Kit.Reply> } = {}
) => {
  const talk = Kit.replies(...answers)
  const summarise = Kit.replies(...(options.summaries ?? []))
  const model: Model.Service = {
    id: "test/small",
    contextWindow: options.window ?? 1_000,
    stream: (request) => (isSummary(request.prompt) ? summarise : talk).model.stream(request)
  }
  return { model, heard: talk.heard, asked: summarise.heard }
}

export const isSummary = ({ content: [first] }: Prompt.Prompt): boolean =>
  first?.role === "system" && first.content.startsWith("You write a summary")

/** So many tokens by our estimate, in one message. */
export const long = (tokens: number, letter = "x") => letter.repeat((tokens - 4) * 4)
export const says = (tokens: number, letter?: string): Kit.Step => ({ text: long(tokens, letter) })

export const start = (model: Model.Service, compaction?: CompactionConfig.CompactionConfig, worker?: Kit.Worker) =>
  Kit.start({ model, worker, runtime: { compaction, secrets: [Redacted.make("hunter2-hunter2")] } })

export const compactions = (kit: Kit.Started) =>
  Effect.map(kit.events, (events) =>
    events.flatMap((event) =>
      event._tag === "CompactionStarted"
        ? [`${event.reason}…`]
        : event._tag === "CompactionEnded"
          ? [`${event.reason} -${event.removed}`]
          : []
    )
  )

/** The first letters of what is said. */
export const brief = (messages: ReadonlyArray<Prompt.Message>) =>
  messages.map((message) => {
    const text = History.textOf(message)
    return History.metadata(message).summary === true
      ? `summary ${text.split("\n")[1]}`
      : `${message.role} ${text.slice(0, 5)}`
  })

export const turns = (kit: Kit.Started, ...words: ReadonlyArray<string>) =>
  Effect.forEach(words, (text) => kit.agent.run(text), { discard: true })
