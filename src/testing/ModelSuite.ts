/**
 * The contract of a model as checks, for any test framework:
 *
 * ```ts
 * import { OfflineModel } from "assent"
 * import { ModelSuite } from "assent/testing"
 * import * as Effect from "effect/Effect"
 * import { it } from "vitest"
 *
 * const fresh = Effect.sync(() => OfflineModel.make())
 *
 * for (const { check, name } of ModelSuite.make({ fresh })) it(name, () => Effect.runPromise(check), 30_000)
 * ```
 *
 * A model that breaks it fails with a sentence that says what is wrong. It is asked a few short questions; behind a
 * provider's client, let a server of your own answer them.
 *
 * @since 0.1.0
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Digest from "../core/Digest.js"
import * as Model from "../model/Model.js"

/**
 * The model that is checked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** A model, each time another. It answers the question, and may say anything. */
  readonly fresh: Effect.Effect<Model.Service, unknown, Scope.Scope>
  /** What it is asked. Default: `Hello?`. */
  readonly question?: string | undefined
  /** A question on which it calls at least one of these tools. Default: it is not asked to. */
  readonly calling?: { readonly question: string; readonly tools: ReadonlyArray<Tool.Any> } | undefined
  /** A model whose provider fails, with what no error of it may show, such as its key. Default: not checked. */
  readonly failing?:
    | {
        readonly fresh: Effect.Effect<Model.Service, unknown, Scope.Scope>
        readonly secrets?: ReadonlyArray<string> | undefined
      }
    | undefined
  /** How long one check may take. Default: 20 seconds. */
  readonly within?: Duration.DurationInput | undefined
}

/**
 * One part of the contract.
 *
 * @since 0.1.0
 * @category models
 */
export interface Check {
  readonly name: string
  readonly check: Effect.Effect<void, ModelBroken>
}

/**
 * The model breaks its contract.
 *
 * @since 0.1.0
 * @category errors
 */
export class ModelBroken extends Schema.TaggedError<ModelBroken>("assent/testing/ModelBroken")("ModelBroken", {
  /** What is wrong. */
  sentence: Schema.String
}) {
  override get message(): string {
    return this.sentence
  }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * The whole contract. Each check uses a model of its own.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): ReadonlyArray<Check> =>
  Object.entries(contract).map(([name, body]) => ({
    name: `a model ${name}`,
    check: body(options).pipe(
      Effect.scoped,
      Effect.catchAllCause((cause) => Effect.fail(brokenBy(cause))),
      Effect.timeoutFail({
        duration: options.within ?? "20 seconds",
        onTimeout: () => new ModelBroken({ sentence: `It hangs: the check "${name}" did not end in time.` })
      })
    )
  }))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const expect = (holds: boolean, sentence: string): Effect.Effect<void, ModelBroken> =>
  holds ? Effect.void : new ModelBroken({ sentence })

const brokenBy = (cause: Cause.Cause<unknown>): ModelBroken => {
  const found = Option.getOrElse(Cause.failureOption(cause), () => Cause.squash(cause))
  if (found instanceof ModelBroken) return found
  const how = Option.isSome(Cause.failureOption(cause)) ? "failed" : "crashed"
  return new ModelBroken({
    sentence: `It ${how} where it must not: ${found instanceof Error ? found.message : String(found)}`
  })
}

const requestOf = (question: string, tools: ReadonlyArray<Tool.Any> = []): Model.Request => ({
  prompt: Prompt.make([
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: question }] }
  ]),
  tools,
  agent: "main",
  sessionId: "ses_checked"
})

const hello = ({ question = "Hello?" }: Options): Model.Request => requestOf(question)

const partsOf = (model: Model.Service, request: Model.Request) =>
  Effect.map(Stream.runCollect(model.stream(request)), Chunk.toReadonlyArray)

/** The requests whose answers are looked at part by part. */
const answersOf = (options: Options) =>
  Effect.gen(function* () {
    const model = yield* options.fresh
    const said = yield* partsOf(model, hello(options))
    if (options.calling === undefined) return [said]
    const { question, tools } = options.calling
    return [said, yield* partsOf(model, requestOf(question, tools))]
  })

/** Tools by name, with the results that a reply could never hold. */
const decoderOf = (tools: ReadonlyArray<Tool.Any>) =>
  Schema.decodeUnknownEither(Response.StreamPart(Toolkit.make(...tools.filter(Tool.isUserDefined))))

/** Parts that stream in pieces, between a start and an end of one id. */
const streamed: { readonly [start: string]: { readonly delta: string; readonly end: string } } = {
  "text-start": { delta: "text-delta", end: "text-end" },
  "reasoning-start": { delta: "reasoning-delta", end: "reasoning-end" },
  "tool-params-start": { delta: "tool-params-delta", end: "tool-params-end" }
}

const kindOf = (type: string) =>
  Object.entries(streamed).find(([start, { delta, end }]) => [start, delta, end].includes(type))?.[0]

/** What is wrong with the order of parts, if anything is. */
const disorder = (parts: ReadonlyArray<Model.Part>): string | undefined => {
  const open = new Map<string, string>()
  for (const part of parts) {
    const start = kindOf(part.type)
    if (start === undefined || !("id" in part)) continue
    const key = `${start} ${part.id}`
    if (part.type === start) {
      if (open.has(key)) return `${part.type} came twice for ${JSON.stringify(part.id)}`
      open.set(key, part.type)
    } else if (!open.has(key))
      return `${part.type} came for ${JSON.stringify(part.id)}, which was not started or has ended`
    else if (part.type === streamed[start]?.end) open.delete(key)
  }
  const [left] = open.keys()
  return left === undefined ? undefined : `${left} has no end`
}

const shown = (parts: ReadonlyArray<Model.Part>): string => parts.map(({ type }) => type).join(", ") || "nothing"

/** A copy that cannot be changed; whoever tries crashes. */
const frozen = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) frozen(member)
  }
  return value
}

const contract: { readonly [name: string]: (options: Options) => Effect.Effect<void, unknown, Scope.Scope> } = {
  "has a name such as provider/model": ({ fresh }) =>
    Effect.flatMap(fresh, ({ id }) =>
      expect(
        /^[^\s/:]+[/:]\S+$/.test(id),
        `Its id is provider/model, for events and prices; here it is ${JSON.stringify(id)}.`
      )
    ),
  "ends each answer with one finish part": (options) =>
    Effect.flatMap(answersOf(options), (answers) =>
      Effect.forEach(
        answers,
        (parts) =>
          expect(
            parts.at(-1)?.type === "finish" && parts.filter(({ type }) => type === "finish").length === 1,
            `An answer ends with its only finish part; here it is: ${shown(parts)}.`
          ),
        { discard: true }
      )
    ),
  "begins, continues and ends its words, thoughts and arguments in this order": (options) =>
    Effect.flatMap(answersOf(options), (answers) =>
      Effect.forEach(
        answers,
        (parts) => {
          const wrong = disorder(parts)
          return expect(wrong === undefined, `The parts are out of order: ${wrong}. There are: ${shown(parts)}.`)
        },
        { discard: true }
      )
    ),
  "says something": (options) =>
    Effect.flatMap(answersOf(options), (answers) =>
      Effect.forEach(
        answers,
        (parts) =>
          expect(
            parts.some((part) => (part.type === "text-delta" && part.delta !== "") || part.type === "tool-call"),
            `An answer has words or calls; here it has: ${shown(parts)}.`
          ),
        { discard: true }
      )
    ),
  "yields parts that @effect/ai can decode": (options) =>
    Effect.gen(function* () {
      const decode = decoderOf(options.calling?.tools ?? [])
      for (const part of (yield* answersOf(options)).flat()) {
        // The turn takes calls as they are, malformed ones too, and answers them.
        if (part.type === "tool-call" || part.type === "tool-result" || part.type === "error") continue
        const decoded = decode(part)
        if (Either.isLeft(decoded)) {
          return yield* expect(false, `A ${part.type} part cannot be decoded: ${decoded.left.message}`)
        }
      }
    }),
  "gives each call an id of its own, and a tool that it was offered": (options) =>
    Effect.gen(function* () {
      const { calling } = options
      if (calling === undefined) return
      const parts = (yield* answersOf(options)).at(-1) ?? []
      const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part] : []))
      yield* expect(calls.length > 0, `It was to call a tool, and here it has: ${shown(parts)}.`)
      const ids = calls.map(({ id }) => id)
      yield* expect(
        ids.every((id) => id !== "") && new Set(ids).size === ids.length,
        `Each call has an id of its own; here they are: ${ids.map((id) => JSON.stringify(id)).join(", ")}.`
      )
      const names = calling.tools.map(({ name }) => name)
      for (const { name } of calls) {
        yield* expect(names.includes(name), `It called ${name}, and was offered: ${names.join(", ")}.`)
      }
    }),
  "does nothing before its stream is run, and answers each time it is": (options) =>
    Effect.gen(function* () {
      const model = yield* options.fresh
      const stream = model.stream(hello(options))
      for (const time of ["first", "second"]) {
        const parts = Chunk.toReadonlyArray(yield* Stream.runCollect(stream))
        yield* expect(
          parts.at(-1)?.type === "finish",
          `A stream is a description that can be run again; the ${time} run gave: ${shown(parts)}.`
        )
      }
    }),
  "answers several at once, each of them whole": (options) =>
    Effect.gen(function* () {
      const model = yield* options.fresh
      const answers = yield* Effect.all(
        Array.from({ length: 5 }, () => partsOf(model, hello(options))),
        { concurrency: "unbounded" }
      )
      for (const parts of answers) {
        const wrong = disorder(parts) ?? (parts.at(-1)?.type === "finish" ? undefined : "one has no end")
        yield* expect(wrong === undefined, `Answers that were given at once are mixed up: ${wrong}; ${shown(parts)}.`)
      }
    }),
  "does not change its request": (options) =>
    Effect.gen(function* () {
      const model = yield* options.fresh
      const request = hello(options)
      const before = Digest.canonicalJson(request.prompt.content)
      const outcome = yield* Effect.exit(partsOf(model, { ...request, prompt: frozen(request.prompt) }))
      yield* expect(
        outcome._tag === "Success" && Digest.canonicalJson(request.prompt.content) === before,
        "It changed the prompt, which is the history of a session and is given to the next call too."
      )
    }),
  "stops when the reader stops": (options) =>
    Effect.gen(function* () {
      const model = yield* options.fresh
      const first = yield* Stream.runHead(model.stream(hello(options)))
      yield* expect(Option.isSome(first), "It gave nothing.")
      // It is as good as new.
      const parts = yield* partsOf(model, hello(options))
      yield* expect(parts.at(-1)?.type === "finish", `After an answer was broken off, the next has: ${shown(parts)}.`)
    }),
  "fails with an error of the port, which shows no secret": ({ failing, question = "Hello?" }) =>
    Effect.gen(function* () {
      if (failing === undefined) return
      const model = yield* failing.fresh
      const exit = yield* Effect.exit(partsOf(model, requestOf(question)))
      const error = exit._tag === "Failure" ? Option.getOrUndefined(Cause.failureOption(exit.cause)) : undefined
      const how = exit._tag === "Success" ? "it answered" : "it crashed"
      yield* expect(
        Schema.is(Model.ModelError)(error),
        `A provider that fails is a ModelError; here ${error === undefined ? how : "it failed with something else"}.`
      )
      const text = `${error?.message ?? ""} ${JSON.stringify(error) ?? ""}`
      yield* expect(
        (failing.secrets ?? []).every((secret) => !text.includes(secret)),
        "Its error shows a secret."
      )
    })
}
