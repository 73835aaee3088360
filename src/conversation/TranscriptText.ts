/**
 * A conversation as plain text, for a model that summarises it.
 *
 * It is text and not messages: a provider requires the tools of every call in a prompt, and a model with tools uses
 * them.
 */
import type * as Prompt from "@effect/ai/Prompt"
import { canonicalJson } from "../core/CanonicalJson.js"
import * as AttachedFile from "./AttachedFile.js"
import * as History from "./History.js"

type Messages = ReadonlyArray<Prompt.Message>

/**
 * Writes messages as text of at most this many characters. From `words` only the words of people and the model are
 * written. If it is too long, calls and results are cut first, then the oldest part is left out.
 */
export const make = (words: Messages, all: Messages, limit: number): string => {
  const said = words.flatMap((message) => (message.role === "tool" ? [] : written(message, undefined)))
  const text = (each: number) => [...said, ...all.flatMap((message) => written(message, each))].join("\n\n")
  const long = text(2_000)
  if (long.length <= limit) return long
  const short = text(300)
  return short.length <= limit ? short : leftOut + tail(short, Math.max(0, limit - leftOut.length))
}

/** The beginning of a text, without half a character at its end. */
export const head = (text: string, length: number): string =>
  text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) && length < text.length ? length - 1 : length)

/** The end of a text, without half a character at its beginning. */
export const tail = (text: string, length: number): string => {
  const from = Math.max(0, text.length - length)
  return text.slice(from > 0 && isHighSurrogate(text.charCodeAt(from - 1)) ? from + 1 : from)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const leftOut = "[The oldest part is left out here.]\n\n"

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/** Calls and results are cut to `each` characters; without a number they are left out. */
const written = (message: Prompt.Message, each: number | undefined): ReadonlyArray<string> => {
  switch (message.role) {
    case "system":
      return []
    case "user": {
      const { source, summary } = History.metadata(message)
      const who = summary === true ? "Summary of what came before" : source === "child" ? "Subagent" : "User"
      return [`${who}: ${History.textOf(AttachedFile.noted(message))}`]
    }
    case "assistant": {
      const text = History.textOf(message)
      const calls = message.content.flatMap((part) => (part.type === "tool-call" ? [part] : []))
      return [
        ...(text === "" ? [] : [`Assistant: ${text}`]),
        ...(each === undefined
          ? []
          : calls.map(({ name, params }) => `Assistant called ${name}: ${cut(canonicalJson(params), each)}`))
      ]
    }
    case "tool":
      return message.content.map(({ isFailure, name, result }) => {
        const text = typeof result === "string" ? result : canonicalJson(result)
        return `${isFailure ? "Failure" : "Result"} of ${name}: ${cut(text, each ?? 0)}`
      })
  }
}

const cut = (text: string, length: number): string => (text.length <= length ? text : `${head(text, length)} […]`)
