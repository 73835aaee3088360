/** An editor for tests: the protocol's own client, with everything that it was sent. */
import * as acp from "@agentclientprotocol/sdk"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as AcpSchema from "./AcpSchema.js"

/** A question, with how it is answered. */
export interface Question {
  readonly method: "session/request_permission" | "elicitation/create"
  readonly params: acp.RequestPermissionRequest & acp.CreateElicitationRequest
  /** True once the agent has withdrawn it. */
  readonly isWithdrawn: () => boolean
  readonly answer: (response: unknown) => void
}

export interface Editor {
  readonly request: <M extends acp.AgentRequestMethod>(
    method: M,
    params: acp.AgentRequestParamsByMethod[M]
  ) => Effect.Effect<acp.AgentRequestResponsesByMethod[M]>
  /** The code and the sentence with which a request fails. */
  readonly refusal: <M extends acp.AgentRequestMethod>(
    method: M,
    params: acp.AgentRequestParamsByMethod[M]
  ) => Effect.Effect<string>
  readonly cancel: (sessionId: string) => Effect.Effect<void>
  readonly updates: ReadonlyArray<acp.SessionUpdate>
  readonly questions: ReadonlyArray<Question>
  /** Every line, as it was read. */
  readonly lines: ReadonlyArray<any>
  /** Waits for the first of a kind. */
  readonly sees: <A>(find: () => A | undefined) => Effect.Effect<A>
  /** The question of this number, from 0, when it is there. */
  readonly question: (index: number) => Effect.Effect<Question>
  readonly leave: Effect.Effect<void>
}

export interface Options {
  readonly capabilities?: acp.ClientCapabilities
  /** Answers at once. Default: the test answers. */
  readonly answers?: (question: Question) => unknown
  /** What it has open, by path: unsaved words, which a write changes. */
  readonly buffers?: Map<string, string>
}

export const open = (
  pipes: { readonly input: WritableStream<Uint8Array>; readonly output: ReadableStream<Uint8Array> },
  { answers, buffers, capabilities = {} }: Options = {}
): Effect.Effect<Editor, never, Scope.Scope> =>
  Effect.gen(function* () {
    const updates: Array<acp.SessionUpdate> = []
    const questions: Array<Question> = []
    const lines: Array<unknown> = []
    const watched = tap(pipes.output, (line) => lines.push(JSON.parse(line)))
    const ask =
      (method: Question["method"]) =>
      ({ params, signal }: { readonly params: unknown; readonly signal: AbortSignal }): Promise<never> =>
        new Promise((answer) => {
          const question = {
            method,
            // Tests look at the fields of the kind that they wait for.
            params: params as Question["params"],
            isWithdrawn: () => signal.aborted,
            answer: (response: unknown) => answer(response as never)
          }
          questions.push(question)
          const given = answers?.(question)
          if (given !== undefined) question.answer(given)
        })
    const { client } = acp.methods
    const connection = acp
      .client()
      .onRequest(client.session.requestPermission, ask("session/request_permission"))
      .onRequest(client.elicitation.create, ask("elicitation/create"))
      .onRequest(client.fs.readTextFile, ({ params }) => {
        const content = buffers?.get(params.path)
        if (content === undefined) throw acp.RequestError.resourceNotFound(params.path)
        return { content }
      })
      .onRequest(client.fs.writeTextFile, ({ params }) => {
        buffers?.set(params.path, params.content)
        return {}
      })
      .onNotification(client.session.update, ({ params }) => void updates.push(params.update))
      .connect(acp.ndJsonStream(pipes.input, watched))
    const { agent } = connection
    yield* Effect.addFinalizer(() => Effect.sync(() => connection.close()))
    yield* Effect.promise(() => agent.request("initialize", { protocolVersion: 1, clientCapabilities: capabilities }))
    const sees: Editor["sees"] = (find) =>
      Effect.suspend(() => {
        const found = find()
        return found === undefined ? Effect.zipRight(Effect.sleep("5 millis"), sees(find)) : Effect.succeed(found)
      })
    return {
      request: (method, params) => Effect.promise(() => agent.request(method, params)),
      refusal: (method, params) =>
        Effect.promise(() =>
          agent.request(method, params).then(
            () => "answered",
            (error: unknown) => (error instanceof acp.RequestError ? `${error.code} ${error.message}` : String(error))
          )
        ),
      cancel: (sessionId) => Effect.promise(() => agent.notify("session/cancel", { sessionId })),
      updates,
      questions,
      lines,
      sees,
      question: (index) => sees(() => questions[index]),
      leave: Effect.promise(() => pipes.input.close().catch(() => {}))
    }
  })

/** The answer of a person who chooses an option. */
export const choose = (optionId: string) => ({ outcome: { outcome: "selected", optionId } })

export const text = (words: string): Array<acp.ContentBlock> => [{ type: "text", text: words }]

/** Each update in few words. */
export const short = (update: acp.SessionUpdate): string => {
  switch (update.sessionUpdate) {
    case "user_message_chunk":
    case "agent_message_chunk":
      return `${update.sessionUpdate.split("_")[0]}: ${update.content.type === "text" ? update.content.text : ""}`
    case "tool_call":
    case "tool_call_update":
      return `${update.sessionUpdate === "tool_call" ? "call" : "update"} ${update.status ?? ""}`
    default:
      return update.sessionUpdate
  }
}

/** What an agent says, its pieces put together. */
export const saying = (updates: ReadonlyArray<acp.SessionUpdate>): string =>
  updates
    .flatMap((update) =>
      update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? [update.content.text] : []
    )
    .join("")

/** Asserts that each line of an agent is one of the protocol. */
export const judge = ({ lines }: Editor): void => {
  for (const line of lines) {
    const type = line.method === undefined ? undefined : requestTypes.get(line.method)
    if (line.method === undefined) assert.isTrue("result" in line || "error" in line)
    else assert.isDefined(type, line.method)
    if (type !== undefined) assert.isUndefined(AcpSchema.problem(type, line.params))
  }
}

const requestTypes = new Map([
  ["session/update", "SessionNotification"],
  ["session/request_permission", "RequestPermissionRequest"],
  ["elicitation/create", "CreateElicitationRequest"],
  ["elicitation/complete", "CompleteElicitationNotification"],
  ["fs/read_text_file", "ReadTextFileRequest"],
  ["fs/write_text_file", "WriteTextFileRequest"],
  ["$/cancel_request", "CancelRequestNotification"]
])

const tap = (output: ReadableStream<Uint8Array>, take: (line: string) => void): ReadableStream<Uint8Array> => {
  const decoder = new TextDecoder()
  let rest = ""
  return output.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n")
        rest = parts.pop() ?? ""
        for (const line of parts) if (line !== "") take(line)
        controller.enqueue(chunk)
      }
    })
  )
}
