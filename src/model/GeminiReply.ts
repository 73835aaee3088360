/**
 * Reads the reply of a `streamGenerateContent` server.
 *
 * Every event is a whole response with the new parts. A finish reason ends the reply, also an unknown one; calls are
 * taken whatever the reason is.
 */
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import * as Answer from "./Answer.js"
import type * as Connection from "./Connection.js"
import * as ForeignField from "./ForeignField.js"
import * as OfferedTool from "./OfferedTool.js"
import * as ProviderError from "./ProviderError.js"

export const make = (answer: Answer.Answer, tools: ReadonlyArray<Tool.Any>): Connection.Reader => {
  let reason: string | undefined
  let usage = Answer.unknownUsage
  /** Code that the provider runs, until its result. */
  let running: string | undefined

  const signed = (part: Fields, more: Fields = {}): Answer.Metadata | undefined => {
    const thoughtSignature = ForeignField.name(part.thoughtSignature)
    const google = { ...(thoughtSignature === undefined ? {} : { thoughtSignature }), ...more }
    return Object.keys(google).length === 0 ? undefined : { google }
  }

  const takeCall = (part: Fields, called: Fields) => {
    const named = ForeignField.name(called.name)
    if (named === undefined) return answer.leaveOut("a function call without a name")
    const id = ForeignField.name(called.id)
    const metadata = signed(part, id === undefined ? {} : { hasId: true })
    const call = answer.call(id, OfferedTool.registered(tools, named) ?? named, metadata)
    answer.argue(call, Answer.written(called.args))
    answer.end(call)
  }

  const takePart = (part: Fields) => {
    const text = ForeignField.text(part.text)
    const called = ForeignField.record(part.functionCall)
    const code = ForeignField.record(part.executableCode)
    const ran = ForeignField.record(part.codeExecutionResult)
    const codeTool = OfferedTool.registered(tools, "code_execution")
    if (called !== undefined) takeCall(part, called)
    else if (text !== undefined) {
      const block = part.thought === true ? "reasoning" : "text"
      const metadata = signed(part)
      if (text !== "") answer.say(block, text, metadata)
      // The signature of earlier parts may come alone.
      else if (metadata !== undefined) answer.keep("text", metadata)
    } else if (code !== undefined && codeTool !== undefined) {
      running = answer.executed({ id: undefined, name: codeTool, params: code }, { google: { part: "executableCode" } })
    } else if (ran !== undefined && codeTool !== undefined && running !== undefined) {
      const isFailure = ran.outcome !== undefined && ran.outcome !== "OUTCOME_OK"
      answer.result(
        { id: running, name: codeTool, result: ran, isFailure },
        { google: { part: "codeExecutionResult" } }
      )
      running = undefined
    } else {
      const kinds = Object.keys(part).filter((key) => key !== "thoughtSignature" && key !== "thought")
      const type = ForeignField.name(ForeignField.record(part.inlineData)?.mimeType)
      if (kinds.length > 0) answer.leaveOut(type === undefined ? kinds[0] : `${kinds[0]} ${type}`)
    }
  }

  return {
    take: (event) => {
      if (event.error != null) return answer.fail(ProviderError.fromReported(answer.source, event))
      answer.begin(event.responseId, event.modelVersion)
      const counted = ForeignField.record(event.usageMetadata)
      if (counted !== undefined) usage = usageOf(counted)
      const candidate = ForeignField.records(event.candidates).find(
        ({ index }) => (ForeignField.number(index) ?? 0) === 0
      )
      if (candidate === undefined) {
        const feedback = ForeignField.record(event.promptFeedback)
        const blocked = ForeignField.name(feedback?.blockReason)
        if (blocked !== undefined) {
          return answer.fail(ProviderError.refused(answer.source, `the prompt was blocked: ${blocked}`))
        }
        if (counted === undefined && feedback === undefined) answer.leaveOut(event.type ?? Object.keys(event)[0])
        return
      }
      for (const part of ForeignField.records(ForeignField.record(candidate.content)?.parts)) takePart(part)
      // Some models give a finish reason with every event: only the end of the stream counts.
      reason = ForeignField.name(candidate.finishReason) ?? reason
    },
    end: () => {
      if (reason !== undefined) answer.finish(reasonOf(reason), usage)
    }
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

const reasons: ReadonlyArray<readonly [RegExp, Response.FinishReason]> = [
  [/^STOP$/, "stop"],
  [/^MAX_TOKENS$/, "length"],
  [/^FINISH_REASON_UNSPECIFIED$/, "unknown"],
  // The model wrote an unreadable call, or one that the provider does not pass on.
  [/^(MALFORMED_|UNEXPECTED_|TOO_MANY_|MISSING_)/, "error"],
  [/SAFETY|RECITATION|PROHIBITED|^(BLOCKLIST|SPII|LANGUAGE)$/, "content-filter"]
]

const reasonOf = (reason: string): Response.FinishReason =>
  reasons.find(([pattern]) => pattern.test(reason))?.[1] ?? "other"

const usageOf = (usage: Fields): Answer.Usage =>
  Answer.usage({
    input: ForeignField.number(usage.promptTokenCount),
    output: ForeignField.number(usage.candidatesTokenCount),
    total: ForeignField.number(usage.totalTokenCount),
    reasoning: ForeignField.number(usage.thoughtsTokenCount),
    cached: ForeignField.number(usage.cachedContentTokenCount)
  })
