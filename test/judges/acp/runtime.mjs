/**
 * acpx as a library, with forms: sends one prompt, and answers each form. Prints the forms, the answers and the updates of
 * calls as lines of JSON. Arguments: the command of the agent, the workspace, a directory for acpx's own state.
 */
import { createAcpRuntime, createAgentRegistry, createRuntimeStore } from "acpx/runtime"

const [, , agent, cwd, stateDir] = process.argv
const say = (line) => console.log(JSON.stringify(line))

const runtime = createAcpRuntime({
  cwd,
  sessionStore: createRuntimeStore({ stateDir }),
  agentRegistry: createAgentRegistry({ overrides: { judged: agent } }),
  permissionMode: "approve-all",
  elicitationModes: ["form", "url"]
})
const handle = await runtime.ensureSession({ sessionKey: "judged", agent: "judged", mode: "oneshot", cwd })
const turn = runtime.startTurn({
  handle,
  text: "go",
  mode: "prompt",
  requestId: "1",
  // One of a choice, nothing where nothing is required, and words.
  onElicitation: async ({ mode, requestedSchema }) => {
    const { properties = {}, required = [] } = requestedSchema ?? {}
    say({ form: { mode, names: Object.keys(properties), required } })
    const valueOf = ({ enum: values, oneOf }) => values?.[0] ?? oneOf?.[0]?.const ?? "because"
    const names = Object.keys(properties).filter((_, index) => index !== 1)
    return { action: "accept", content: Object.fromEntries(names.map((name) => [name, valueOf(properties[name])])) }
  }
})
for await (const event of turn.events) say({ event })
say({ result: await turn.result })
await runtime.shutdown()
process.exit(0)
