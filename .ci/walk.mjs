/**
 * Walks through one approval, from the words to the end of the turn, and counts what runs of Assent's own:
 * `node .ci/walk.mjs [--list]`. Needs `npm run build:lib`.
 *
 * V8 counts the calls of every function between two moments. The modules are those of `dist/lib`, one for each source, so
 * a file here is a file there. The second round is what counts: the first one loads and prepares.
 */
import { Tool, Toolkit } from "@effect/ai"
import { NodeContext } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { Session } from "node:inspector"
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"

const library = pathToFileURL(resolve("dist/lib")).href
const { Agent, AgentRuntime, Interactor, ScriptedModel } = await import(`${library}/index.js`)

const session = new Session()
session.connect()
const post = (method, options) =>
  new Promise((done, fail) => session.post(method, options, (error, result) => (error ? fail(error) : done(result))))

/** Every function that ran since the last look, by file and name. */
const look = Effect.promise(async () => {
  const { result } = await post("Profiler.takePreciseCoverage")
  return result
    .filter(({ url }) => url.startsWith(library))
    .map(({ functions, url }) => ({
      file: url.slice(library.length + 1).replace(/\.js$/, ""),
      // The first function of a script is the script.
      functions: functions.slice(1).filter(({ ranges }) => ranges[0].count > 0)
    }))
    .filter(({ functions }) => functions.length > 0)
})

const Send = Tool.make("send", { parameters: { to: Schema.String }, success: Schema.String })
const toolkit = Toolkit.make(Send)

/** A person who says yes, and reports at which moment they were asked. */
const person = (asked) =>
  Interactor.make({
    id: "person",
    handlers: {
      Approve: () => Effect.as(asked, { decision: "allow", scope: "once" }),
      ...Object.fromEntries(
        [
          "Confirm",
          "grantStageTool",
          "approveSubagentEnvelope",
          "Clarify",
          "Ask",
          "Select",
          "Elicit",
          "Auth.DeviceCode",
          "Auth.Password"
        ].map((kind) => [kind, Interactor.declines])
      )
    }
  })

const step = { tools: [{ name: "send", params: { to: "ada" } }] }
const script = [step, { text: "Sent." }, step, { text: "Sent." }]
const layers = AgentRuntime.layer({ toolkit }).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      toolkit.toLayer({ send: ({ to }) => Effect.succeed(`sent to ${to}`) }),
      ScriptedModel.layer({ agents: { main: script } }),
      NodeContext.layer
    )
  )
)

const legs = []
const walk = Effect.gen(function* () {
  let until
  const asked = Effect.flatMap(look, (seen) => Effect.sync(() => (until = seen)))
  const agent = yield* Effect.provideService(Agent.start(), Interactor.Interactor, person(asked))
  for (const round of ["first", "second"]) {
    yield* look
    yield* agent.run("Write to Ada.")
    legs.push({ round, until, after: yield* look })
  }
})

await post("Profiler.enable")
await post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
await Effect.runPromise(walk.pipe(Effect.scoped, Effect.provide(layers)))

const sum = (numbers) => numbers.reduce((all, number) => all + number, 0)
const figuresOf = (parts) => {
  const names = new Set()
  const files = new Set()
  for (const { file, functions } of parts) {
    files.add(file)
    for (const { functionName, ranges } of functions) names.add(`${file} ${functionName} ${ranges[0].startOffset}`)
  }
  return {
    files: files.size,
    rooms: new Set([...files].map((file) => file.split("/")[0])).size,
    functions: names.size,
    calls: sum(parts.flatMap(({ functions }) => functions.map(({ ranges }) => ranges[0].count)))
  }
}
const rows = legs.flatMap(({ after, round, until }) => [
  [`${round}: words → asked`, until],
  [`${round}: answer → end of the turn`, after],
  [`${round}: whole`, [...until, ...after]]
])
console.table(Object.fromEntries(rows.map(([name, parts]) => [name, figuresOf(parts)])))
if (process.argv.includes("--list")) {
  const { after, until } = legs[1]
  for (const file of [...new Set([...until, ...after].map(({ file }) => file))].sort()) console.log(file)
}
