/**
 * A stand-in for a language model without key and network: it turns plain requests into tool calls and reports their
 * results, so that everything around a model can be tried. It is deterministic.
 *
 * It understands the table of `OfflineRequest`. It proposes only tools that it was given; to any other request it
 * replies that it is not a language model. What plan mode refuses becomes a plan, and is done once that is approved.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Chunk from "effect/Chunk"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Id from "../core/Id.js"
import * as Model from "./Model.js"
import * as OfflinePlan from "./OfflinePlan.js"
import * as OfflineReport from "./OfflineReport.js"
import * as OfflineRequest from "./OfflineRequest.js"

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * A model without a network: plain requests become tool calls.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: { readonly id?: string | undefined } = {}): Model.Service => {
  const ids = Id.random()
  return {
    id: options.id ?? "offline/offline",
    stream: ({ prompt, tools }) => {
      const names = new Set(tools.map((tool) => tool.name))
      const input = inputOf(prompt)
      const { calls, text } = OfflinePlan.next(prompt, names) ?? answer(input, names)
      const parts: Array<Model.Part> = calls.map(({ params, tool }) => ({
        type: "tool-call",
        id: ids.unsafeNext("call"),
        name: tool,
        params
      }))
      const end: Model.Part = {
        type: "finish",
        reason: calls.length > 0 ? "tool-calls" : "stop",
        usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
      }
      return Stream.fromChunks(...spoken(text), Chunk.unsafeFromArray([...parts, end]))
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The offline model is the one that agents use.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: { readonly id?: string | undefined } = {}): Layer.Layer<Model.Model> =>
  Layer.sync(Model.Model, () => make(options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Input {
  readonly results: ReadonlyArray<Prompt.ToolResultPart>
  /** The words of people or of a parent agent. */
  readonly said: string
  /** Names of files that came with them. */
  readonly files: ReadonlyArray<string>
}

/** The input after the last reply: results of its calls, and new words. */
const inputOf = (prompt: Prompt.Prompt): Input => {
  const last = prompt.content.findLastIndex((message) => message.role === "assistant")
  const results: Array<Prompt.ToolResultPart> = []
  const said: Array<string> = []
  const files: Array<string> = []
  for (const message of prompt.content.slice(last + 1)) {
    if (message.role === "tool") results.push(...message.content)
    else if (message.role === "user") {
      for (const part of message.content) {
        if (part.type === "text") {
          // What is said of a file that comes with words, of the mode and of jobs is said to a model.
          if (!/^\[(?:File|Plan mode|Background job)\b[^\n]*\]$/.test(part.text)) said.push(part.text)
        } else files.push(part.fileName ?? part.mediaType)
      }
    }
  }
  return { results, said: said.join("\n"), files }
}

const answer = (
  input: Input,
  names: ReadonlySet<string>
): { readonly text: string; readonly calls: ReadonlyArray<OfflineRequest.Request> } => {
  const paragraphs = input.results.map(OfflineReport.describe)
  if (input.files.length > 0) {
    paragraphs.push(`I cannot look at ${sentence(input.files)}: the offline model reads words only.`)
  }
  const { requests, rest } = OfflineRequest.parse(input.said)
  const calls = requests.filter(({ tool }) => names.has(tool))
  const absent = requests.filter(({ tool }) => !names.has(tool))
  for (const { intent, tool } of absent) {
    paragraphs.push(`I cannot ${intent}: this agent does not have the tool ${tool}.`)
  }
  if (requests.length > 0 && rest.length > 0) {
    paragraphs.push(`I did not understand: ${rest.slice(0, 3).map(OfflineReport.oneLine).join("; ")}`)
  }
  if (calls.length > 0) paragraphs.push(`I will ${sentence(calls.map(({ intent }) => intent))}.`)
  if (requests.length === 0 && (rest.length > 0 || input.results.length === 0)) paragraphs.push(account(names))
  return { text: paragraphs.join("\n\n"), calls }
}

const sentence = (parts: ReadonlyArray<string>): string =>
  parts.length <= 1 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`

const account = (names: ReadonlySet<string>): string => {
  const possible = OfflineRequest.examples.filter(({ tool }) => names.has(tool))
  const lines =
    possible.length === 0
      ? ["This agent has none of the tools that I know how to use."]
      : [
          "I understand:",
          "",
          ...possible.map(({ example }) => `- ${example}`),
          ...(names.has(OfflinePlan.proposer) ? [`- in plan mode: ${OfflinePlan.example}`] : []),
          "",
          "Write several requests on several lines, or join them with `and` or `then`."
        ]
  return [
    "I am not a language model but Assent's offline stand-in: I turn plain requests into tool calls.",
    "",
    ...lines,
    "For a real model, set the model to PROVIDER/MODEL."
  ].join("\n")
}

/** A few chunks, cut between words, so that a terminal shows streaming. */
const spoken = (text: string): ReadonlyArray<Chunk.Chunk<Model.Part>> => {
  if (text === "") return []
  const words = text.match(/\s*\S+|\s+$/g) ?? [text]
  const size = Math.max(4, Math.ceil(words.length / 8))
  const deltas: Array<Model.Part> = []
  for (let at = 0; at < words.length; at += size) {
    deltas.push({ type: "text-delta", id: "1", delta: words.slice(at, at + size).join("") })
  }
  const start: Model.Part = { type: "text-start", id: "1" }
  const end: Model.Part = { type: "text-end", id: "1" }
  return [start, ...deltas, end].map((part) => Chunk.of(part))
}
