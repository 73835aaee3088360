/** A provider in a thread of its own, whose answer is Markdown without end at a steady rate: what it costs is not ours. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { once } from "node:events"
import { Worker } from "node:worker_threads"

/** Its base URL for `openai-compatible` models, for as long as the scope lives. */
export const start = (deltasPerSecond: number): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const worker = new Worker(program, { eval: true, workerData: { deltasPerSecond, words: [...words] } })
      const [port] = await once(worker, "message")
      return { worker, url: `http://127.0.0.1:${port}/v1` }
    }),
    ({ worker }) => Effect.promise(() => worker.terminate())
  ).pipe(Effect.map(({ url }) => url))

/** Words of an answer as models write them, one after the other and again from the beginning. */
const words = `## Part of the answer

Some **bold words**, *soft ones* and \`npm ci\`, in a sentence that is long enough to be wrapped at words, and 漢字 too.

1. First, with [a link](https://example.com/docs)
2. Second:
   - a detail
   - another one

| Name | Meaning | Count |
|------|:-------:|------:|
| alpha | the first of them, said at some length | 1 |
| 漢字 | wide | 12 |

\`\`\`ts
/** Adds what is there. */
export const add = (parts: ReadonlyArray<number>): number => parts.reduce((sum, part) => sum + part, 0)
\`\`\`

`.split(/(?<= )/)

/** As text, because no test runner's loader is in that thread. */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
const { deltasPerSecond, words } = workerData
const chunk = (content) => JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m",
  choices: [{ index: 0, delta: { content }, finish_reason: null }] })
const server = require("node:http").createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    const began = performance.now()
    let sent = 0
    const timer = setInterval(() => {
      let out = ""
      for (const due = (performance.now() - began) * deltasPerSecond / 1000; sent < due; sent++)
        out += "data: " + chunk(words[sent % words.length]) + "\\n\\n"
      if (out !== "") response.write(out)
    }, 2)
    response.on("close", () => clearInterval(timer))
  })
})
server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port))
`
