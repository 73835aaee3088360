/** The example pages in a browser: each is driven once, from the first words to the end. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { chromium, type Page } from "playwright-core"
import { rolldown } from "rolldown"
import * as Served from "../../kit/Served.js"
import * as Judge from "./Judge.js"

const browser = (process.env["PATH"] ?? "")
  .split(":")
  .map((directory) => `${directory}/chromium`)
  .find((file) => fs.existsSync(file))

const html = `<!doctype html><meta charset="utf-8"><title>page</title><link rel="icon" href="data:,"><ol></ol><section aria-live="polite"></section>
<form><input aria-label="Words"><button>Say</button></form><script type="module" src="/page.js"></script>`

const bundled = (name: string) =>
  Effect.promise(async () => {
    const input = fileURLToPath(new URL(`page/${name}.js`, import.meta.url))
    const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" })
    const { output } = await bundle.generate({ format: "esm", codeSplitting: false })
    await bundle.close()
    return output[0].code
  })

/** A server of the page's own: the page, and the API behind it with the token that the page never sees. */
const site = (served: Served.Served, code: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = http.createServer((request, response) => {
        if (request.url === "/") return void response.setHeader("content-type", "text/html").end(html)
        if (request.url === "/page.js") return void response.setHeader("content-type", "text/javascript").end(code)
        const { host } = new URL(served.url)
        const headers = { "content-type": "application/json", host, authorization: `Bearer ${served.token}` }
        const proxied = http.request(`${served.url}${request.url ?? ""}`, { method: request.method ?? "GET", headers })
        proxied.on("response", (answer) => {
          response.writeHead(answer.statusCode ?? 500, answer.headers)
          answer.pipe(response)
        })
        request.pipe(proxied)
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const { port } = server.address() as AddressInfo
      return { server, url: `http://127.0.0.1:${port}` }
    }),
    ({ server }) => Effect.sync(() => server.closeAllConnections() ?? server.close())
  )

const opened = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => chromium.launch({ executablePath: browser ?? "", args: ["--no-sandbox"] })),
    (one) => Effect.promise(() => one.close())
  ),
  (one) => Effect.promise(() => one.newPage())
).pipe(Effect.flatten)

/** Opens the page of a new session and says a word. */
const begin = (name: string, path: string) =>
  Effect.gen(function* () {
    const place = yield* Served.place
    const served = yield* Served.serve(
      place,
      Served.asking(place, "touch made", [
        { text: "I ask.", tools: [{ name: "ask_user", params: { prompt: "<b>Which?</b>" } }] },
        { text: "over" }
      ])
    )
    yield* served.call("/v1/sessions", { id: "mine" })
    const { url } = yield* site(served, yield* bundled(name))
    const page = yield* opened
    const problems: Array<string> = []
    page.on("console", (message) => void (message.type() === "error" && problems.push(message.text())))
    page.on("pageerror", (error) => void problems.push(error.message))
    const does = <A>(act: (page: Page) => Promise<A>) => Effect.promise(() => act(page))
    yield* does((page) => page.goto(`${url}/#/v1/${path}/mine`))
    yield* does((page) => page.getByLabel("Words").fill("go"))
    yield* does((page) => page.getByRole("button", { name: "Say" }).click())
    return { place, page, problems, does }
  })

const lines = (page: Page) => page.locator("ol li").allTextContents()

describe.skipIf(browser === undefined || Judge.load("1.0.0") === undefined)("a page in a browser", () => {
  it.scopedLive("is asked and answers over AG-UI", () =>
    Effect.gen(function* () {
      const { does, page, place, problems } = yield* begin("agui", "agui")
      yield* does((page) => page.getByLabel("Allow?").check())
      yield* does((page) => page.getByRole("button", { name: "Send" }).click())
      yield* does((page) => page.locator("body[data-state=done]").waitFor())
      assert.isTrue(fs.existsSync(place.at("one", "made")))
      assert.strictEqual((yield* does(lines)).at(-1), "assistant | done")
      yield* does((page) => page.evaluate(() => delete document.body.dataset["state"]))
      yield* does((page) => page.getByRole("button", { name: "Say" }).click())
      yield* does((page) => page.getByText("<b>Which?</b>").first().waitFor())
      yield* does((page) => page.getByLabel("Answer").fill("this"))
      yield* does((page) => page.getByRole("button", { name: "Send" }).click())
      yield* does((page) => page.locator("body[data-state=done]").waitFor())
      assert.include(yield* does(lines), "tool | this")
      assert.strictEqual((yield* Effect.promise(() => lines(page))).at(-1), "assistant | over")
      assert.deepStrictEqual(problems, [])
    })
  )

  it.scopedLive("is asked and answers over the AI SDK", () =>
    Effect.gen(function* () {
      const { does, place, problems } = yield* begin("ai", "ai")
      yield* does((page) => page.getByLabel("approved").check())
      yield* does((page) => page.getByRole("button", { name: "Send" }).click())
      yield* does((page) => page.locator("body[data-state=done]").waitFor())
      assert.isTrue(fs.existsSync(place.at("one", "made")))
      const all = yield* does(lines)
      assert.include(all.at(-1), "run_command output-available")
      assert.include(all.at(-1), "done")
      assert.deepStrictEqual(problems, [])
    })
  )
})
