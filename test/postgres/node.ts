/**
 * A node of a cluster with tools of its own: `nap`, which nobody is asked about, `deploy`, which is asked about, and `login`,
 * which asks for a password. Each leaves a row when it has done its work. Prints a line of JSON when it listens, and ends with SIGTERM.
 * With `others` it has tool servers and an agent of others, and the first words of a session choose what its model does.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { resolve } from "node:path"
import * as Delegate from "../../src/builtin/Delegate.js"
import * as WorkspaceRoot from "../../src/builtin/WorkspaceRoot.js"
import * as Digest from "../../src/core/Digest.js"
import * as Origin from "../../src/core/Origin.js"
import * as ClusterNode from "../../src/cluster/ClusterNode.js"
import * as ForeignAgents from "../../src/foreign/ForeignAgents.js"
import * as ForeignTools from "../../src/foreign/ForeignTools.js"
import * as Api from "../../src/http/Api.js"
import { AuthPassword, Confirm } from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as McpServer from "../../src/mcp/McpServer.js"
import * as Model from "../../src/model/Model.js"
import * as Scripted from "../../src/model/ScriptedModel.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import * as AgentRuntime from "../../src/runtime/AgentRuntime.js"
import * as SubagentProfile from "../../src/subagent/SubagentProfile.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"

const [url = "", name = "", apiPort = "0", nodePort = "0", options = "{}"] = process.argv.slice(2)
const {
  nap: napFor = 3_000,
  secret = false,
  once = false,
  quorum = 1,
  ahead = 0,
  limit,
  others,
  webhook,
  ...settings
} = JSON.parse(options) as {
  readonly nap?: number
  readonly secret?: boolean
  /** `login` is asked about once: no other process asks again. */
  readonly once?: boolean
  /** How many people have to agree to `deploy`. */
  readonly quorum?: number
  /** Milliseconds that the clock of the machine is ahead. */
  readonly ahead?: number
  /** Milliseconds in which a question of a subagent has to be answered. With it, a subagent deploys. */
  readonly limit?: number
  /** A directory for what tool servers and the agent of others did. */
  readonly others?: string
  /** Is called about each question that is open for a second. */
  readonly webhook?: string
  readonly parkAfter?: number
  readonly evictAfter?: number
  readonly drainWithin?: number
}

const machine = Date.now
Date.now = () => machine() + ahead

const Nap = Tool.make("nap", { success: Schema.String })
const Deploy = Tool.make("deploy", { success: Schema.String })
const Login = Tool.make("login", { success: Schema.String, dependencies: [Interactor.Interactor] }).annotate(
  ToolTrait.Resumable,
  !once
)
/** Asks within a limit of its own. */
const Hurry = Tool.make("hurry", { success: Schema.String, dependencies: [Interactor.Interactor] }).annotate(
  ToolTrait.Resumable,
  true
)
const tools = Toolkit.make(Nap, Deploy, Login, Hurry)
const toolkit = Toolkit.merge(tools, Delegate.toolkit, ForeignTools.toolkit)

const calls = secret ? ["login"] : ["nap", "deploy"]
const work = [...calls.map((name) => ({ tools: [{ name }] })), { text: "done" }]
const delegation = (task: string, profile: string) => [
  { tools: [{ name: "delegate", params: { task, profile } }] },
  { text: "done" }
]
const round = limit === undefined ? work : delegation("go", "helper")
const script = { agents: { main: Array.from({ length: 20 }, () => round).flat(), helper: work } }

const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
/** By the first word of a session. */
const stories = (words: string): Readonly<Record<string, ReadonlyArray<Scripted.Step>>> => ({
  talk: [{ text: "first" }, { text: "second" }, { tools: [{ name: "deploy" }] }, { text: "third" }, { text: "fourth" }],
  hurry: [{ tools: [{ name: "hurry" }] }, { text: "done" }],
  modern: [{ tools: [{ name: "mcp__modern__deploy", params: { to: "prod" } }] }, { text: "done" }],
  legacy: [{ tools: [{ name: "mcp__legacy__ask", params: { form, message: "Who?" } }] }, { text: "done" }],
  leave: delegation(words, "other"),
  form: delegation(words, "other")
})

const textIn = ({ content }: Prompt.Message): string =>
  typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : "")).join("")

/** Says which files it sees, once it has napped. */
const reading = ({ content }: Prompt.Prompt): ReadonlyArray<Scripted.Step> => {
  const files = content.flatMap((message) =>
    message.role === "user" ? message.content.filter((part) => part.type === "file") : []
  )
  const seen = files.map(
    ({ data, fileName }) => `${fileName} ${data instanceof Uint8Array ? Digest.sha256(data) : "?"}`
  )
  return [{ tools: [{ name: "nap" }] }, { text: `sees ${seen.join()}` }, { text: `sees ${seen.join()}` }]
}

const telling: Model.Service = {
  id: "script/stories",
  stream: (request) => {
    const [first] = request.prompt.content.filter(({ role }) => role === "user")
    const words = first === undefined ? "" : textIn(first)
    const [story = ""] = words.split(" ")
    const main = story === "read" ? reading(request.prompt) : stories(words)[story]
    return Scripted.make(main === undefined ? script : { agents: { main } }).stream(request)
  }
}

const logger = Layer.merge(
  Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger)),
  Logger.minimumLogLevel(LogLevel.Warning)
)

const program = Effect.gen(function* () {
  // Told apart from the node's connections, which a test may cut.
  const own = url.replace(/application_name=[^&]*/, "application_name=tools")
  const sql = yield* PostgresConnection.open({ url: Redacted.make(own), maxConnections: 2 })
  const ran = (tool: string) =>
    Effect.withFiberRuntime<void, unknown>((fiber) => {
      const session = Origin.of(fiber).rootSessionId
      return Effect.asVoid(sql`INSERT INTO tool_run ${sql.insert({ tool, session, node: name })}`)
    })
  const handlers = tools.toLayer({
    nap: () =>
      ran("nap begins").pipe(
        Effect.zipRight(Effect.sleep(napFor)),
        Effect.zipRight(ran("nap")),
        Effect.orDie,
        Effect.as("rested")
      ),
    deploy: () => Effect.as(Effect.orDie(ran("deploy")), "deployed"),
    hurry: () =>
      Effect.flatMap(Interactor.current, (interactor) =>
        Interactor.ask(new Confirm({ prompt: "Quick?", default: false })).pipe(
          Interactor.withInteractor(Interactor.withTimeout(interactor, { clarification: "12 seconds" })),
          Effect.map(String),
          Effect.catchTag("InteractionTimedOut", () => Effect.succeed("late"))
        )
      ).pipe(Effect.tap(ran), Effect.orDie),
    // What it was given leaves its length alone.
    login: () =>
      Interactor.ask(new AuthPassword({ prompt: "Password?" })).pipe(
        Effect.flatMap((given) => ran(`login with ${Redacted.value(given).length}`)),
        Effect.orDie,
        Effect.as("in")
      )
  })
  const program = (file: string) => resolve("test/kit/servers", file)
  const agents = yield* ForeignAgents.make({ workspace: resolve(".") })
  const server = (name: string) =>
    McpServer.make({ name, command: process.execPath, args: [program(`${name}.mjs`), `${others}/${name}`] })
  const servers = others === undefined ? [] : yield* Effect.all([server("modern"), server("legacy")])
  yield* Effect.forEach(servers, ({ settled }) => settled)
  const runtime = AgentRuntime.layer({
    toolkit,
    servers,
    guards: ForeignTools.guards,
    policy: PermissionFile.policy({
      whitelist: { tools: ["nap", "login", "hurry", "delegate", ...servers.map(({ name }) => `mcp__${name}__*`)] },
      ...(quorum > 1 ? { approvals: [{ tools: ["deploy"], quorum }] } : {})
    }),
    subagents: {
      profiles: [
        SubagentProfile.make({ name: "helper", description: "deploys" }),
        SubagentProfile.make({ name: "other", description: "is of others", plugins: [], model: "command:other" })
      ],
      resolveModel: () => Effect.succeed(agents.model(`${process.execPath} ${program("acp.mjs")} ${others}/acp`)),
      ...(limit === undefined ? {} : { timeouts: { permission: limit } })
    }
  }).pipe(
    Layer.provide(
      Layer.mergeAll(
        handlers,
        Delegate.layer,
        ForeignTools.layer(agents),
        Model.layer(others === undefined ? Scripted.make(script) : telling),
        WorkspaceRoot.layer({ root: resolve(".") })
      )
    ),
    Layer.provide(NodeContext.layer)
  )
  const people = Layer.succeed(Api.Authentication, {
    token: (given) => Effect.succeed({ name: Redacted.value(given) || "nobody" })
  })
  const ended = yield* Deferred.make<void>()
  // For those who measure memory.
  process.on("SIGUSR2", () => globalThis.gc?.())
  process.once("SIGTERM", () => Deferred.unsafeDone(ended, Effect.void))
  const node = yield* ClusterNode.make({
    url: Redacted.make(url),
    listen: { host: "127.0.0.1", port: Number(apiPort) },
    advertise: { host: "127.0.0.1", port: Number(nodePort) },
    ...(webhook !== undefined && {
      notify: { webhook: new URL(webhook), after: "1 second", console: "https://assent.example.com" }
    }),
    ...settings
  }).pipe(Effect.provide(Layer.merge(runtime, people)))
  process.stdout.write(`${JSON.stringify({ url: node.url, pid: process.pid })}\n`)
  yield* Deferred.await(ended)
  yield* node.end
})

Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(NodeContext.layer), Effect.provide(logger))).then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${String(error)}\n`)
    process.exit(2)
  }
)
