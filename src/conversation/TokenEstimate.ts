/**
 * The size of a history in tokens: the provider's last count, and an estimate of later messages.
 *
 * Every message is measured once, at its first use. An estimate is four characters a token: good enough to decide when
 * to compact, and every model call corrects it.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as AttachedFile from "./AttachedFile.js"
import * as History from "./History.js"

export interface TokenEstimate {
  /** Tokens of the whole history. */
  readonly tokens: () => number
  /** Turns in the history, the running one included. */
  readonly turns: () => number
  /** Takes the provider's count for the present history; 0 is none. */
  readonly reported: (tokens: number) => void
  /** The history was replaced with one of this many tokens. */
  readonly reset: (tokens: number) => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

export const make = (history: History.History): TokenEstimate => new HistoryMeter(history)

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/** Tokens of these messages, by their length alone. */
export const estimate = (messages: Iterable<Prompt.Message>): number => {
  let sum = 0
  for (const message of messages) sum += weigh(message)
  return sum
}

/** Tokens of one message, by its length alone. */
const weigh = (message: Prompt.Message): number => {
  if (typeof message.content === "string") return perMessage + tokensOf(message.content.length)
  let length = 0
  let files = 0
  for (const part of message.content) {
    switch (part.type) {
      case "text":
      case "reasoning":
        length += part.text.length
        break
      case "file":
        files += AttachedFile.weigh(part)
        break
      case "tool-call":
        length += part.name.length + part.id.length + lengthOf(part.params)
        break
      case "tool-result":
        length += part.name.length + part.id.length + lengthOf(part.result)
    }
  }
  return perMessage + tokensOf(length) + files
}

/** The approximate length of a value as JSON. */
export const lengthOf = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 4
  let length = 2
  if (Array.isArray(value)) for (const item of value) length += lengthOf(item) + 1
  else for (const [key, item] of Object.entries(value)) length += key.length + lengthOf(item) + 4
  return length
}

/** Characters of one token, on average. */
export const charactersPerToken = 4

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const tokensOf = (length: number): number => Math.ceil(length / charactersPerToken)

/** The overhead of a message: its role and its limits. */
const perMessage = 4

class HistoryMeter implements TokenEstimate {
  private revision: number
  private weighed = 0
  private estimated = 0
  private begun = 0
  /** The provider's count, and our estimate of the same messages. */
  private counted = 0
  private countedEstimate = 0

  constructor(private readonly history: History.History) {
    this.revision = history.revision()
  }

  tokens(): number {
    this.catchUp()
    return this.counted + this.estimated - this.countedEstimate
  }

  turns(): number {
    this.catchUp()
    return this.begun
  }

  reported(tokens: number): void {
    if (tokens > 0) this.reset(tokens)
  }

  reset(tokens: number): void {
    this.catchUp()
    this.counted = tokens
    this.countedEstimate = this.estimated
  }

  private catchUp(): void {
    const { messages } = this.history
    const revision = this.history.revision()
    if (this.revision !== revision) {
      this.revision = revision
      this.weighed = this.estimated = this.begun = this.counted = this.countedEstimate = 0
    }
    for (; this.weighed < messages.length; this.weighed++) {
      const message = messages[this.weighed]
      if (message === undefined) continue
      this.estimated += weigh(message)
      if (History.beginsTurn(message)) this.begun++
    }
  }
}
