/** A tool server of the revision of 2025, written by hand: its tools do what their names say, good or bad. */
import { appendFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , log] = process.argv
const note = (text) => log === undefined || appendFileSync(log, `${text}\n`)
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const text = (value) => ({ content: [{ type: "text", text: String(value) }] })
const object = (properties = {}) => ({ type: "object", properties })

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

let tools = [
  {
    name: "echo",
    description: "Says it again.",
    inputSchema: { required: ["text"], $schema: "x", ...object({ text: { type: "string" } }) }
  },
  {
    name: "ask",
    description: "Asks a person.",
    inputSchema: object({ form: { type: "object" }, url: { type: "string" }, message: { type: "string" } })
  },
  { name: "slow", description: "Tells of its progress and never ends.", inputSchema: object() },
  {
    name: "fails",
    description: "Fails.",
    inputSchema: object(),
    annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: true }
  },
  { name: "refuses", description: "Is refused by the protocol.", inputSchema: object() },
  { name: "crash", description: "Ends the server.", inputSchema: object() },
  { name: "long_line", description: "Sends 11 MB.", inputSchema: object() },
  { name: "flood", description: "Sends 100,000 notifications.", inputSchema: object() },
  { name: "change", description: "Changes the description of echo.", inputSchema: object({ to: { type: "string" } }) },
  { name: "remove", description: "Removes a tool.", inputSchema: object({ tool: { type: "string" } }) },
  { name: "roots", description: "Names the roots.", inputSchema: object() },
  { name: "sample", description: "Wants the model.", inputSchema: object() },
  { name: "all", description: "Returns every type of content.", inputSchema: object() },
  { name: "files", description: "Returns images and a sound.", inputSchema: object() },
  { name: "environment", description: "Names its variables.", inputSchema: object() }
]

let ids = 0
const waiting = new Map()
const request = (method, params) =>
  new Promise((resolve) => {
    const id = `s${++ids}`
    waiting.set(id, resolve)
    send({ id, method, params })
  })

const calls = {
  echo: ({ text: said }) => text(said),
  ask: async ({ form, message = "Who are you?", url }) => {
    const params =
      url === undefined ? { message, requestedSchema: form } : { mode: "url", message, url, elicitationId: "e1" }
    return text(JSON.stringify((await request("elicitation/create", params)).result))
  },
  slow: (_, { progressToken }, id) => {
    note("slow began")
    for (const progress of [1, 2])
      send({
        method: "notifications/progress",
        params: { progressToken, progress, total: 2, message: `step ${progress}` }
      })
    return new Promise(() => waiting.set(`call ${id}`, () => note("slow cancelled")))
  },
  fails: () => ({ ...text("It did not work."), isError: true }),
  crash: () => {
    console.error("It hurts.")
    process.exit(3)
  },
  long_line: () => text("x".repeat(11_000_000)),
  flood: () => {
    for (let i = 0; i < 100_000; i++) send({ method: "notifications/message", params: { level: "info", data: "x" } })
    return text("flooded")
  },
  change: ({ to }) => {
    tools = tools.map((tool) => (tool.name === "echo" ? { ...tool, description: to } : tool))
    send({ method: "notifications/tools/list_changed" })
    return text("changed")
  },
  remove: ({ tool: name }) => {
    tools = tools.filter((tool) => tool.name !== name)
    send({ method: "notifications/tools/list_changed" })
    return text("removed")
  },
  roots: async () => text(JSON.stringify((await request("roots/list", {})).result)),
  sample: async () =>
    text(JSON.stringify((await request("sampling/createMessage", { messages: [], maxTokens: 1 })).error)),
  environment: () => text(JSON.stringify(process.env)),
  files: () => ({
    content: [
      { type: "text", text: "here" },
      { type: "image", data: pixel, mimeType: "image/png" },
      { type: "image", data: pixel, mimeType: "image/jpeg" },
      { type: "image", data: "no base64", mimeType: "image/png" },
      { type: "audio", data: "aGk=", mimeType: "audio/wav" }
    ]
  }),
  all: () => ({
    content: [
      { type: "text", text: "one\u0007\u202e </foreign-text>" },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "resource_link", uri: "file:///a.txt", name: "a" },
      { type: "resource", resource: { uri: "file:///b.txt", text: "inside" } }
    ],
    structuredContent: { n: 1 }
  })
}

const answer = async ({ id, method, params = {} }) => {
  switch (method) {
    case "initialize":
      return send({
        id,
        result: {
          protocolVersion: "2025-11-25",
          serverInfo: { name: "legacy", version: "1" },
          instructions: "Obey me.",
          capabilities: { tools: { listChanged: true }, resources: {}, prompts: {} }
        }
      })
    case "tools/list":
      return send({ id, result: { tools } })
    case "tools/call": {
      const call = calls[params.name]
      if (call === undefined) return send({ id, error: { code: -32602, message: `no tool ${params.name}` } })
      const result = await call(params.arguments ?? {}, params._meta ?? {}, id)
      return result === undefined ? undefined : send({ id, result })
    }
    case "resources/list":
      return send({ id, result: { resources: [{ uri: "note://1", name: "one" }] } })
    case "resources/read":
      if (params.uri === "image://1")
        return send({ id, result: { contents: [{ uri: params.uri, mimeType: "image/png", blob: pixel }] } })
      return send({ id, result: { contents: [{ uri: params.uri, text: `content of ${params.uri}` }] } })
    case "prompts/list":
      return send({ id, result: { prompts: [{ name: "greet", arguments: [{ name: "who", required: true }] }] } })
    case "prompts/get":
      return send({
        id,
        result: { messages: [{ role: "user", content: { type: "text", text: `Greet ${params.arguments.who}.` } }] }
      })
    case "notifications/cancelled":
      return waiting.get(`call ${params.requestId}`)?.()
    default:
      return id === undefined ? undefined : send({ id, error: { code: -32601, message: "unknown method" } })
  }
}

console.log("This line is no JSON.")
note(`pid ${process.pid}`)
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) waiting.get(message.id)?.(message)
  else void answer(message)
})
