/**
 * A client for the conformance kit, from the built library: it signs in if the server wants that, calls each tool once, and
 * accepts what the server asks. The kit gives the address as the last argument, and the scenario in the environment.
 */
import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { Interactor } from "../../../dist/node/index.js"
import { McpServer } from "../../../dist/node/mcp/index.js"

const url = process.argv.at(-1)
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ""
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}")

let stored
const credentials = { read: () => stored, write: (text) => void (stored = text) }

const { declines } = Interactor
const person = Interactor.make({
  id: "judge",
  handlers: {
    Approve: declines,
    grantStageTool: declines,
    approveSubagentEnvelope: declines,
    Clarify: declines,
    // The page is visited, and the browser returns to us.
    Ask: ({ interaction }) =>
      Effect.promise(async () => {
        const page = interaction.prompt.split("\n").find((line) => line.startsWith("http"))
        const { headers } = await fetch(page, { redirect: "manual" })
        return headers.get("location") ?? ""
      }),
    Select: declines,
    // A page of a sign-in is visited, and the browser returns to the loopback address.
    Confirm: ({ interaction: { prompt } }) =>
      Effect.promise(async () => {
        if (prompt.includes("wants you to sign in"))
          await fetch(prompt.split("\n").find((line) => line.startsWith("http")))
        return true
      }),
    Elicit: ({ interaction }) =>
      Effect.succeed(
        Object.fromEntries(
          interaction.fields.flatMap(({ default: value, name, type }) =>
            value !== undefined
              ? [[name, value]]
              : type === "boolean"
                ? [[name, true]]
                : type === "string"
                  ? [[name, "x"]]
                  : []
          )
        )
      ),
    "Auth.DeviceCode": declines,
    "Auth.Password": declines
  }
})

const valueOf = ({ type } = {}) =>
  type === "number" || type === "integer"
    ? 1
    : type === "boolean"
      ? true
      : type === "array"
        ? []
        : type === "object"
          ? {}
          : "x"

const argumentsOf = ({ properties = {} } = {}) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valueOf(schema)]))

const auth =
  context.client_id === undefined
    ? {}
    : { auth: { client_id: context.client_id, client_secret: context.client_secret } }
const settings = { name: "judged", url, ...auth }

const use = Effect.scoped(
  Effect.gen(function* () {
    const server = yield* McpServer.make(settings, { credentials })
    const state = yield* server.settled
    if (state.state !== "ready") return state
    for (const entry of server.entries()) {
      yield* Effect.ignore(entry.handler(argumentsOf(entry.definition?.schema)))
    }
    return server.state()
  })
)

const main = Effect.gen(function* () {
  let state = yield* use
  for (let times = 0; times < 3 && state.state !== "ready" && /sign in/.test(state.reason ?? ""); times++) {
    const signed = yield* Effect.either(McpServer.signIn(settings, { credentials }))
    if (signed._tag === "Left") return console.error(signed.left)
    state = yield* use
  }
  if (state.state !== "ready") console.error(state.reason)
})

await Effect.runPromise(
  main.pipe(Effect.provideService(Interactor.Interactor, person), Effect.provide(NodeContext.layer))
)
process.exit(scenario === "" ? 1 : 0)
