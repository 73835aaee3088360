/** A tool server of the revision of 2026, by the SDK. Its questions come within the results of its calls. */
import { fromJsonSchema, inputRequired, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { appendFileSync } from "node:fs"

const [, , log] = process.argv

serveStdio(() => {
  const server = new McpServer({ name: "modern", version: "1" })
  server.registerTool(
    "deploy",
    {
      description: "Deploys after a question.",
      inputSchema: fromJsonSchema({ type: "object", properties: { to: { type: "string" } } })
    },
    ({ to }, { mcpReq }) => {
      const answer = mcpReq.inputResponses?.region
      if (answer === undefined) {
        return inputRequired({
          requestState: `state of ${to}`,
          inputRequests: {
            region: inputRequired.elicit({
              message: `Which region for ${to}?`,
              requestedSchema: { type: "object", properties: { region: { type: "string" } }, required: ["region"] }
            })
          }
        })
      }
      const text = `${to} ${mcpReq.requestState()} ${JSON.stringify(answer)}`
      if (log !== undefined) appendFileSync(log, `${text}\n`)
      return { content: [{ type: "text", text }] }
    }
  )
  return server
})
