/** Tools, prompts and readings of replies that tests of models share. */
import * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { inspect } from "node:util"
import * as Model from "../../src/model/Model.js"

/** A key that must not turn up anywhere. */
export const key = "sk-canary-8f3a9b2c7d6e5f40"

class Person extends Schema.Class<Person>("Person")({ name: Schema.String }) {}

export const ReadFile = Tool.make("read_file", {
  description: "Reads a file.",
  parameters: { path: Schema.String, limit: Schema.optional(Schema.Int) }
})
export const Greet = Tool.make("greet", { description: "Greets.", parameters: { person: Person } })
export const Now = Tool.make("now", { description: "Tells the time." })
export const tools = [ReadFile, Greet, Now]

/** Who asks. */
export const asker: Pick<Model.Request, "agent" | "sessionId"> = { agent: "main", sessionId: "ses_1" }

export const ask = Prompt.make([
  { role: "system", content: "Be brief." },
  { role: "user", content: [{ type: "text", text: "Hello?" }] }
])

export const collect = (
  model: Model.Service,
  prompt: Prompt.Prompt = ask,
  offered: ReadonlyArray<Tool.Any> = tools,
  more: Partial<Model.Request> = {}
): Effect.Effect<ReadonlyArray<Model.Part>, Model.ModelError> =>
  Effect.map(Stream.runCollect(model.stream({ ...asker, prompt, tools: offered, ...more })), Chunk.toReadonlyArray)

export const textIn = (parts: ReadonlyArray<Model.Part>): string =>
  parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])).join("")

export const callsIn = (parts: ReadonlyArray<Model.Part>) =>
  parts.flatMap((part) => (part.type === "tool-call" ? [{ name: part.name, params: part.params }] : []))

export const finishOf = (parts: ReadonlyArray<Model.Part>) => {
  const last = parts.at(-1)
  return last?.type === "finish" ? last : assert.fail(`ends with ${last?.type}`)
}

/** Searches every rendering in which a value could reach a log, a journal or a screen. */
export const assertClean = (value: unknown): void => {
  const renderings = [
    JSON.stringify(value) ?? "",
    String(value),
    inspect(value, { depth: null, showHidden: true }),
    ...(value instanceof Error ? [value.message, value.stack ?? "", JSON.stringify(Object.entries(value))] : []),
    ...(Schema.is(Model.ModelError)(value) ? [JSON.stringify(Schema.encodeSync(Model.ModelError)(value))] : [])
  ]
  for (const text of renderings) assert.notInclude(text, key)
}

/** The failure of a generation, after its whole cause was searched for the key. */
export const failureOf = <A, R>(effect: Effect.Effect<A, Model.ModelError, R>) =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(Effect.withSpan(effect, "turn"))
    if (Exit.isSuccess(exit)) return assert.fail("the generation succeeded")
    assertClean(exit.cause)
    assertClean(Cause.pretty(exit.cause))
    const error = yield* Effect.orDieWith(Cause.failureOption(exit.cause), () => new Error(Cause.pretty(exit.cause)))
    assertClean(error)
    // What may pass is asked for again by itself, and this message says why.
    if (Model.isTransient(error)) assert.notMatch(error.message, /try again/i)
    assert.isTrue(Schema.is(Model.ModelError)(error))
    assert.notProperty(error, "cause")
    return error
  })
