/**
 * Long JSON, parsed beside the event loop: in a thread that starts with the first of it. What would take long to hand over,
 * because it has very many values, is refused.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Worker } from "node:worker_threads"
import * as UntrustedJson from "../core/UntrustedJson.js"
import * as Api from "./Api.js"

export interface LongJson {
  /** The value of this text in UTF-8. A text is a sentence without its subject: what is wrong with it. */
  readonly parse: (bytes: Uint8Array) => Effect.Effect<unknown, Api.BodyTooLarge | string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** The thread ends with the scope. */
export const make: Effect.Effect<LongJson, never, Scope.Scope> = Effect.gen(function* () {
  /** By number, in the order in which the thread answers. When the thread ends, all of them fail. */
  const waiting = new Map<number, (reply: Reply) => void>()
  let thread: Worker | undefined
  let count = 0

  const start = (): Worker => {
    const begun = new Worker(program, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 192 } })
    begun.unref()
    const ended = () => {
      if (thread === begun) thread = undefined
      for (const [number, resume] of waiting) {
        waiting.delete(number)
        resume({ number, isTooMuch: true })
      }
    }
    begun.on("error", ended)
    begun.on("exit", ended)
    begun.on("message", (reply: Reply) => {
      waiting.get(reply.number)?.(reply)
      waiting.delete(reply.number)
    })
    return begun
  }

  yield* Effect.addFinalizer(() => Effect.promise(async () => thread?.terminate()))
  return {
    parse: (bytes) =>
      Effect.flatMap(
        Effect.async<Reply>((resume) => {
          const number = count++
          waiting.set(number, (reply) => resume(Effect.succeed(reply)))
          thread ??= start()
          const own = Uint8Array.from(bytes)
          thread.postMessage({ number, bytes: own, depth: UntrustedJson.maxDepth, values: most }, [own.buffer])
          return Effect.sync(() => waiting.delete(number))
        }),
        ({ isTooMuch, refused, value }): Effect.Effect<unknown, Api.BodyTooLarge | string> => {
          if (isTooMuch === true) return new Api.BodyTooLarge({ message: `The body has more than ${most} values.` })
          return refused === undefined ? Effect.succeed(value) : Effect.fail(refused)
        }
      )
  }
})

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** Values of one text. Handing them over takes some 20 milliseconds. */
const most = 100_000

interface Reply {
  readonly number: number
  readonly value?: unknown
  readonly refused?: string
  /** It has too many values, or the thread has not the memory for it. */
  readonly isTooMuch?: true
}

/** Of the thread. Depth and values are counted before anything is parsed: a parser takes memory for each of them. */
const program = `
const { parentPort } = require("node:worker_threads")
const refusal = (bytes, depth, values) => {
  let level = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === 0x22) {
      while (++at < bytes.length && bytes[at] !== 0x22) if (bytes[at] === 0x5c) at++
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++level > depth) return "is nested more than " + depth + " levels deep"
      values--
    } else if (byte === 0x5d || byte === 0x7d) level--
    else if (byte === 0x2c) values--
    if (values < 0) return ""
  }
}
parentPort.on("message", ({ number, bytes, depth, values }) => {
  const refused = refusal(bytes, depth, values)
  if (refused !== undefined) return parentPort.postMessage(refused === "" ? { number, isTooMuch: true } : { number, refused })
  let value
  try {
    value = JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return parentPort.postMessage({ number, refused: "is not JSON" })
  }
  parentPort.postMessage({ number, value })
})
`
