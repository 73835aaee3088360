// @ts-check
/** Calls of a generated client, each as a line of JSON. The compiler checks them against the generated types. */
import { createClient } from "./client/client/index.js"
import * as api from "./client/sdk.gen.js"

const [, , baseUrl = "", token = ""] = process.argv
const client = createClient({ baseUrl, auth: token })

/** @param {string} name @param {{ data?: unknown, error?: unknown, response?: Response }} outcome */
const tell = (name, { data, error, response }) =>
  console.log(JSON.stringify({ name, status: response?.status, ...(error === undefined ? { data } : { error }) }))

const stranger = createClient({ baseUrl, auth: "wrong" })
tell("stranger", await api.sessionsList({ client: stranger }))

const begun = await api.sessionsCreate({ client, body: { id: "generated" } })
tell("begin", begun)
tell("begin again", await api.sessionsCreate({ client, body: { id: "generated" } }))
tell("begin elsewhere", await api.sessionsCreate({ client, body: { workspace: "/" } }))
// @ts-expect-error The document knows no such field.
tell("begin with a wrong field", await api.sessionsCreate({ client, body: { dir: "/" } }))
const path = { sessionId: begun.data?.sessionId ?? "" }

const words = {
  text: "go",
  id: "first",
  files: [{ base64: btoa("some text"), name: "a.txt", mediaType: "text/plain" }]
}
tell("send", await api.sessionsSend({ client, path, body: words }))
tell("send again", await api.sessionsSend({ client, path, body: words }))

let last = ""
/** Reads events behind the last one until one has this tag. @param {string} tag */
const until = async (tag) => {
  const ended = new AbortController()
  const { stream } = await api.sessionsEvents({
    client,
    path,
    headers: { "last-event-id": last },
    signal: ended.signal,
    onSseEvent: ({ id }) => void (last = id ?? last)
  })
  for await (const piece of stream) {
    /** @type {any} */
    const event = piece
    if (event._tag !== tag) continue
    console.log(JSON.stringify({ name: "event", data: event, last: Number(last) }))
    ended.abort()
    return
  }
}

const asked = async () => {
  const { data } = await api.requestsList({ client, query: { session: path.sessionId } })
  return String(data?.requests[0]?.request.requestId)
}

await until("InteractionRequested")
const first = { requestId: await asked() }
tell("misfit", await api.requestsAnswer({ client, path: first, body: { form: { approved: "maybe" } } }))
tell("answer", await api.requestsAnswer({ client, path: first, body: { answer: "y", id: "mine" } }))
tell("answer again", await api.requestsAnswer({ client, path: first, body: { answer: "y", id: "mine" } }))
const late = await api.requestsAnswer({ client, path: first, body: { answer: "n" } })
tell("late", late)
if (late.error?._tag === "InteractionAlreadyAnswered")
  console.log(JSON.stringify({ name: "winner", data: late.error.winner }))

await until("InteractionRequested")
const second = { requestId: await asked() }
tell("wrong form", await api.requestsAnswer({ client, path: second, body: { form: { count: 0 } } }))
tell("form", await api.requestsAnswer({ client, path: second, body: { form: { count: 3 } } }))
await until("TurnEnded")

tell("unknown request", await api.requestsCancel({ client, path: { requestId: "req_none" }, body: {} }))
tell("session", await api.sessionsGet({ client, path }))
tell("unknown session", await api.sessionsGet({ client, path: { sessionId: "nobody" } }))
tell("page", await api.sessionsList({ client, query: { limit: 1 } }))
tell("turns", await api.controlTurns({ client, path }))
tell("workspaces", await api.controlWorkspaces({ client }))
tell("health", await api.healthz({ client }))
const metrics = await api.metrics({ client })
tell("metrics", { ...metrics, data: metrics.data?.split("\n")[0] })
tell("remove", await api.sessionsRemove({ client, path }))
