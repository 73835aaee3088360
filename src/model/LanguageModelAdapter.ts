/**
 * Any `@effect/ai` language model as a `Model`.
 *
 * Tool resolution is off and tool arguments are not decoded, so that the turn can answer a malformed call. A reply that
 * the language model itself rejects is saved where possible:
 *
 * - arguments that are no JSON become an ordinary call with the raw text as its arguments;
 * - a call of a tool that does not exist is handed on when the reply has already shown something, for that cannot be
 *   taken back; a reply that has shown nothing is asked for again, at most twice, with a note that corrects the model.
 */
import type * as AiError from "@effect/ai/AiError"
import * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import * as Response from "@effect/ai/Response"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Redaction from "../core/Redaction.js"
import * as LenientTool from "./LenientTool.js"
import * as ModelError from "./ModelError.js"
import type * as ModelPort from "./ModelPort.js"
import * as OfferedTool from "./OfferedTool.js"
import * as ProviderError from "./ProviderError.js"

export interface Options {
  /** `provider/model`, for people, events and the ledger. */
  readonly id: string
  readonly contextWindow?: number | undefined
  /** Media types of the files that it takes; see `Model.Service`. Default: nobody knows. */
  readonly inputs?: ReadonlyArray<string> | undefined
  /** Masks what a server echoes: declare the keys to it. Default: masks the shapes of tokens only. */
  readonly redactor?: Redaction.Redactor | undefined
  /** What to do when the key is refused, such as `Check ANTHROPIC_API_KEY.` */
  readonly credentials?: string | undefined
  /** Writes `$ref`s of tool schemas out, for providers that do not follow them. Default: off. */
  readonly inlineReferences?: boolean | undefined
}

/** The most retries of a reply that called an unknown tool. */
const maxCorrections = 2

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Adapts the language model of the context; `secrets` are the keys that it sends. */
export const make = ({
  secrets,
  ...options
}: Omit<Options, "redactor"> & {
  readonly secrets?: ReadonlyArray<Redacted.Redacted> | undefined
}): Effect.Effect<ModelPort.Service, never, LanguageModel.LanguageModel> =>
  Effect.map(LanguageModel.LanguageModel, (languageModel) =>
    fromService(languageModel, { ...options, redactor: Redaction.make(secrets) })
  )

/**
 * Adapts a given language model. Of the optional fields of a request the tool choice is passed on and an output schema
 * is refused; the rest is configured where the language model is made.
 */
export const fromService = (languageModel: LanguageModel.Service, options: Options): ModelPort.Service => {
  const source = { model: options.id, redactor: options.redactor, credentials: options.credentials }
  const kitOf = LenientTool.makeKits(options.inlineReferences ?? false)
  return {
    id: options.id,
    contextWindow: options.contextWindow,
    inputs: options.inputs,
    stream: (request) =>
      Stream.suspend(() => {
        const toolChoice = OfferedTool.chosen(request)
        if (Either.isLeft(toolChoice)) return Stream.fail(ProviderError.refused(source, toolChoice.left))
        if (request.outputSchema !== undefined) return Stream.fail(ProviderError.refused(source, OfferedTool.noSchema))
        const run: Run = { languageModel, source, kit: kitOf(request.tools), toolChoice: toolChoice.right }
        return generate(run, withObjectParams(request.prompt), 0)
      })
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

interface Run {
  readonly languageModel: LanguageModel.Service
  readonly source: ProviderError.Source
  readonly kit: LenientTool.Kit
  readonly toolChoice: ModelPort.ToolChoice | undefined
}

const generate = (
  run: Run,
  prompt: Prompt.Prompt,
  corrections: number
): Stream.Stream<ModelPort.Part, ModelError.ModelError> =>
  Stream.suspend(() => {
    const reply = makeReply(run)
    return decodedParts(run, prompt).pipe(
      Stream.takeUntil((part) => part.type === "finish" || part.type === "error"),
      Stream.mapChunks((chunk) => reply.take(chunk)),
      Stream.concat(Stream.suspend(reply.end)),
      Stream.catchAllCause((cause) =>
        Option.match(Cause.failureOption(cause), {
          // A client library that throws on an unexpected stream is a bad answer, not a defect of ours.
          onNone: () =>
            Cause.isInterruptedOnly(cause)
              ? Stream.failCause(Cause.stripFailures(cause))
              : Stream.fail(ProviderError.badOutput(run.source, defectOf(cause))),
          onSome: (error) => {
            if (isModelError(error)) return Stream.fail(error)
            const saved = reply.save(error)
            if (saved !== undefined) return Stream.fromIterable(saved)
            const invented = inventedIn(error, run.kit)[0]
            if (invented === undefined) return Stream.fail(ProviderError.fromAiError(run.source, error))
            return corrections < maxCorrections
              ? generate(run, withCorrection(prompt, invented.name, run.kit), corrections + 1)
              : Stream.fail(
                  ProviderError.badOutput(run.source, `it calls the tool ${invented.name}, which does not exist`)
                )
          }
        })
      )
    )
  })

const decodedParts = (
  { kit, languageModel, toolChoice }: Run,
  prompt: Prompt.Prompt
): Stream.Stream<DecodedPart, AiError.AiError> =>
  kit.names.size === 0
    ? languageModel.streamText({ prompt })
    : languageModel.streamText({ prompt, toolkit: kit.toolkit, disableToolCallResolution: true, toolChoice })

const isModelError = Schema.is(ModelError.ModelError)

const defectOf = (cause: Cause.Cause<unknown>): string => {
  const defect = Option.getOrUndefined(Cause.dieOption(cause))
  return `the client library failed: ${defect instanceof Error ? defect.message : "unexpected defect"}`
}

// ---- the prompt ----

// Providers require an object as arguments of a call. Text that was not JSON is wrapped in one, or the provider would
// refuse this and every later request of the session.
const withObjectParams = (prompt: Prompt.Prompt): Prompt.Prompt => {
  let changed = false
  const messages = prompt.content.map((message) => {
    if (message.role !== "assistant" || message.content.every(hasObjectParams)) return message
    changed = true
    const content = message.content.map((part) =>
      part.type !== "tool-call" || hasObjectParams(part) ? part : { ...part, params: { arguments: part.params } }
    )
    return { ...message, content }
  })
  return changed ? Prompt.fromMessages(messages) : prompt
}

const hasObjectParams = (part: Prompt.AssistantMessagePart): boolean =>
  part.type !== "tool-call" || Predicate.isRecord(part.params)

const withCorrection = (prompt: Prompt.Prompt, invented: string, kit: LenientTool.Kit): Prompt.Prompt => {
  const valid = kit.names.size === 0 ? "You have no tools." : `The tools are: ${Array.from(kit.names).join(", ")}.`
  const text = `Your last reply was discarded: it called the tool "${invented}", which does not exist. ${valid} Reply again.`
  const note = Prompt.userMessage({ content: [Prompt.textPart({ text })] })
  return Prompt.fromMessages([...prompt.content, note])
}

// ---- the reply ----

type DecodedPart = Response.StreamPart<LenientTool.Tools>

interface Reply {
  readonly take: (chunk: Chunk.Chunk<DecodedPart>) => Chunk.Chunk<ModelPort.Part>
  /** Parts after the language model's stream ended without a failure. */
  readonly end: () => Stream.Stream<never, ModelError.ModelError>
  /** The rest of a failed reply, when the failure is a call that the turn can answer. */
  readonly save: (error: AiError.AiError) => ReadonlyArray<ModelPort.Part> | undefined
}

const makeReply = ({ kit, source }: Run): Reply => {
  let shown = false
  let failure: ModelError.ModelError | undefined
  let finished = false
  // Calls whose arguments are arriving. Calls of unknown tools are not emitted: the reply may be retried.
  const open = new Map<string, { readonly name: string; readonly known: boolean; text: string }>()

  const take = (part: DecodedPart): ModelPort.Part | undefined => {
    switch (part.type) {
      case "error":
        failure = ProviderError.fromReported(source, part.error)
        return undefined
      case "finish":
        finished = true
        if (part.reason === "error") {
          failure = ProviderError.badOutput(source, "the model stopped because of an error")
          return undefined
        }
        break
      case "tool-params-start": {
        const known = part.providerExecuted || kit.names.has(part.name)
        open.set(part.id, { name: part.name, known, text: "" })
        if (!known) return undefined
        break
      }
      case "tool-params-delta": {
        const call = open.get(part.id)
        if (call !== undefined) call.text += part.delta
        if (call?.known === false) return undefined
        break
      }
      case "tool-params-end":
        if (open.get(part.id)?.known === false) return undefined
        break
      case "tool-call":
        open.delete(part.id)
        break
    }
    if (part.type !== "response-metadata") shown = true
    return encode(part)
  }

  return {
    take: (chunk) => Chunk.filterMap(chunk, (part) => Option.fromNullable(take(part))),
    end: () =>
      failure !== undefined
        ? Stream.fail(failure)
        : finished
          ? Stream.empty
          : Stream.fail(ProviderError.cutOff(source)),
    save: (error) => {
      if (error._tag !== "MalformedOutput") return undefined
      if (!ParseResult.isParseError(error.cause)) {
        // Complete arguments that could not be parsed, so that no call was emitted.
        const calls = Array.from(open, ([id, call]): ModelPort.Part => {
          const params = call.text.trim() === "" ? {} : call.text
          return { type: "tool-call", id, name: call.name, params }
        })
        return calls.length === 0 ? undefined : [...calls, stopped]
      }
      if (!shown || inventedIn(error, kit).length === 0) return undefined
      const rest = encodedIn(error).map((part) =>
        part.type === "tool-call" && !kit.names.has(part.name) && kit.names.has(part.providerName ?? "")
          ? { ...part, name: part.providerName ?? part.name }
          : part
      )
      return rest.some((part) => part.type === "finish") ? rest : [...rest, stopped]
    }
  }
}

const stopped: ModelPort.Part = {
  type: "finish",
  reason: "tool-calls",
  usage: { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }
}

/** The encoded parts that a response decoder rejected, unchanged. */
const encodedIn = (error: AiError.AiError): ReadonlyArray<ModelPort.Part> => {
  if (error._tag !== "MalformedOutput" || !ParseResult.isParseError(error.cause)) return []
  const { actual } = error.cause.issue
  const values = Chunk.isChunk(actual) ? Chunk.toReadonlyArray(actual) : [actual]
  return values.filter(
    (value): value is ModelPort.Part =>
      Predicate.isRecord(value) && typeof value.type === "string" && value.type !== "error"
  )
}

const inventedIn = (error: AiError.AiError, kit: LenientTool.Kit): ReadonlyArray<Response.ToolCallPartEncoded> =>
  encodedIn(error).filter(
    (part): part is Response.ToolCallPartEncoded => part.type === "tool-call" && !kit.names.has(part.name)
  )

const encode = (part: DecodedPart): ModelPort.Part => {
  switch (part.type) {
    case "file":
      return { type: "file", mediaType: part.mediaType, data: Encoding.encodeBase64(part.data), ...metadataOf(part) }
    case "source":
      return part.sourceType === "url"
        ? { ...bare(part), url: part.url.href, ...metadataOf(part) }
        : { ...bare(part), ...metadataOf(part) }
    case "response-metadata":
      return {
        type: "response-metadata",
        ...Option.match(part.id, { onNone: () => ({}), onSome: (id) => ({ id }) }),
        ...Option.match(part.modelId, { onNone: () => ({}), onSome: (modelId) => ({ modelId }) }),
        ...Option.match(part.timestamp, {
          onNone: () => ({}),
          onSome: (timestamp) => ({ timestamp: DateTime.formatIso(timestamp) })
        }),
        ...metadataOf(part)
      }
    case "tool-result": {
      const { encodedResult, ...rest } = bare(part)
      return { ...rest, result: encodedResult, ...metadataOf(part) }
    }
    case "finish":
      return { type: "finish", reason: part.reason, usage: { ...part.usage }, ...metadataOf(part) }
    default:
      // The other parts are the same in both forms, part by part, which the type system does not see over their union.
      return { ...bare(part), ...metadataOf(part) } as ModelPort.Part
  }
}

const bare = <P extends DecodedPart>(part: P): Omit<P, Response.PartTypeId | "metadata"> => {
  const { [Response.PartTypeId]: _, metadata: __, ...rest } = part
  return rest
}

const metadataOf = <P extends DecodedPart>(part: P): { readonly metadata?: P["metadata"] } =>
  Object.keys(part.metadata).length === 0 ? {} : { metadata: part.metadata }
