/** Text of models, tools, servers and files in the page: nothing of it runs, and nothing leaves. Other pages get nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Locator } from "playwright-core"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { ToolCallId } from "../../src/core/Id.js"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Served from "../kit/Served.js"
import { payloads } from "./payloads.js"

const { act } = Console

describe.skipIf(!Browser.isWanted)("the page", () => {
  const browser = Browser.forFile()

  it("knows 200 payloads and more", () => {
    assert.isAtLeast(new Set(payloads).size, 200)
  })

  it.scopedLive(
    "runs nothing of what models, tools, people and files say, and asks no other server",
    () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const whole = payloads.join("\n\n")
        const model = place.script(
          {
            text: whole,
            thinking: whole,
            tools: [
              {
                name: "todo_write",
                params: { items: payloads.slice(0, 30).map((content) => ({ content, status: "pending" })) }
              },
              { name: "list_files", params: { path: payloads[3] } }
            ]
          },
          ...payloads.slice(0, 12).map((payload) => ({ text: payload })),
          { text: "done" }
        )
        const served = yield* Served.serve(place, model, { web: Console.built })
        yield* served.call("/v1/sessions", { id: "one" })
        yield* served.call("/v1/sessions/one/messages", { text: whole.slice(0, 20_000) })
        yield* Served.until(served.call("/v1/sessions/one"), ({ body }) => body.agents[0]?.isIdle === true)
        for (const [at, payload] of payloads.slice(0, 12).entries()) {
          yield* served.call("/v1/sessions", { id: `title-${at}` })
          yield* served.call(`/v1/sessions/title-${at}/messages`, { text: payload })
        }
        const ask = (interaction: Interaction.Interaction, origin?: string) =>
          Console.ask(served, "one", interaction, origin)
        for (let at = 0; at < payloads.length; at += 8) {
          const some = payloads.slice(at, at + 8)
          const text = (index: number) => some[index % some.length] ?? "x"
          const formats = ["text", "diff", "json", "code", "markdown"] as const
          yield* ask(
            new Interaction.Clarify({
              context: text(0),
              questions: [
                { text: text(1), question_type: "single_choice", choices: [text(2), `${text(3)} `], required: true },
                { text: text(4), question_type: "free_text", choices: [], required: false }
              ]
            }),
            text(5)
          )
          yield* ask(new Interaction.Confirm({ prompt: text(6), default: false }), text(7))
          yield* ask(new Interaction.Select({ prompt: text(0), options: [text(1), text(2)] }))
          yield* ask(
            new Interaction.Elicit({
              title: text(0),
              fields: [
                {
                  name: text(1),
                  title: text(2),
                  description: text(3),
                  type: "string",
                  required: false,
                  default: text(4)
                },
                { name: `${text(5)}.`, type: "choice", choices: [text(6)], labels: [text(7)], required: true }
              ]
            })
          )
          yield* ask(new Interaction.AuthDeviceCode({ url: text(0), code: text(1), expiresAt: 1 }))
          if (at < 80)
            yield* ask(
              new Interaction.Approve({
                toolCallId: `call_${at}` as ToolCallId,
                tool: text(0),
                argumentsSummary: text(1),
                arguments: { [text(2)]: text(3) },
                approvalKey: text(4),
                options: [{ short: "y", full: "yes", description: text(5) }],
                display: {
                  summary: text(6),
                  details: some.join("\n"),
                  format: formats[(at / 8) % formats.length] ?? "text",
                  warnings: [text(7)]
                }
              }),
              text(2)
            )
        }
        const seen = yield* browser.open(`${served.url}/#token=${served.token}`)
        const { page } = seen
        yield* act(() => page.locator("article.card").first().waitFor())
        let markup = 0
        /** Brings each row of the list into the page once. */
        const walk = (list: Locator, meet: () => Promise<unknown>) =>
          act(async () => {
            for (let top = 0; ; top += 700) {
              const at = await list.evaluate((element, to) => {
                element.scrollTop = to
                return element.scrollTop
              }, top)
              await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
              await meet()
              markup += await page.evaluate<number>(
                "document.querySelectorAll('body :is(script, img, svg, iframe, object, embed, style, link, base, meta, video, audio, math)').length"
              )
              if (at < top) return
            }
          })
        yield* walk(page.locator(".virtual"), async () => {})
        yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
        yield* act(() => page.getByRole("button", { name: "Fork here" }).waitFor())
        const closed = '.call-toggle[aria-expanded="false"], details:not([open]) > summary'
        yield* walk(page.locator(".transcript"), () =>
          page.evaluate(`document.querySelectorAll('${closed}').forEach((element) => element.click())`)
        )
        for (const path of ["session/one/history", "session/one/policy", "sessions"]) {
          yield* act(() => page.evaluate(`location.hash = "#/${path}"`))
          yield* act(() => page.locator("#main").waitFor())
        }
        assert.deepStrictEqual(yield* act(() => page.evaluate<unknown>("window.ran ?? null")), null)
        assert.strictEqual(markup, 0)
        const links = yield* act(() =>
          page.evaluate<ReadonlyArray<string>>("[...document.querySelectorAll('#main a')].map((link) => link.protocol)")
        )
        assert.isTrue(
          links.every((protocol) => protocol === "http:" || protocol === "https:"),
          links.join()
        )
        Browser.isQuiet(seen)
      }),
    300_000
  )

  it.scopedLive("is neither read nor answered nor framed by a page of another port", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place), { web: Console.built })
      const { requestId } = yield* Served.question(served)
      const foreign = yield* Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<ReturnType<typeof createServer>>((resolve) => {
              const server = createServer((_, response) => {
                response.setHeader("content-type", "text/html")
                response.end("<!doctype html><title>foreign</title>")
              }).listen(0, "127.0.0.1", () => resolve(server))
            })
        ),
        (server) => Effect.sync(() => server.close())
      )
      const { port } = foreign.address() as AddressInfo
      // The victim is signed in, in the same browser.
      const victim = yield* browser.open(`${served.url}/#token=${served.token}`)
      yield* Console.cards(victim.page, 1)
      for (const host of ["127.0.0.1", "localhost"]) {
        const page = yield* Effect.acquireRelease(
          act(() => victim.page.context().newPage()),
          (page) => Effect.promise(() => page.close())
        )
        yield* act(() => page.goto(`http://${host}:${port}/`))
        const got = yield* act(() =>
          page.evaluate<ReadonlyArray<string>>(`(async () => {
            const attempts = [
              () => fetch("${served.url}/v1/requests").then((it) => it.text()),
              () => fetch("${served.url}/v1/requests", { headers: { authorization: "Bearer ${served.token}" } }).then((it) => it.text()),
              () => fetch("${served.url}/v1/requests", { mode: "no-cors", credentials: "include" }).then((it) => it.type + it.status + "-read"),
              () => fetch("${served.url}/v1/requests/${requestId}/answer", { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body: '{"answer":"y"}' }).then((it) => it.type),
              () => fetch("${served.url}/v1/requests/${requestId}/answer", { method: "POST", headers: { "content-type": "application/json", authorization: "Bearer ${served.token}" }, body: '{"answer":"y"}' }).then((it) => it.text()),
              () => fetch("${served.url}/").then((it) => it.text()),
              async () => sessionStorage.getItem("assent-token") ?? localStorage.getItem("assent-token") ?? "nothing",
              () => new Promise((done) => {
                const frame = document.createElement("iframe")
                frame.onload = () => { try { done(frame.contentDocument.body.innerText || "nothing") } catch { done("closed") } }
                frame.src = "${served.url}/#token=${served.token}"
                document.body.append(frame)
              })
            ]
            const got = []
            for (const attempt of attempts) got.push(await attempt().then(String, (error) => "refused"))
            return got
          })()`)
        )
        assert.notInclude(got.join(" "), requestId)
        for (const text of got) assert.match(text, /^(?:refused|opaque0?(?:-read)?|nothing|closed)$/)
      }
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
      Browser.isQuiet({ ...victim, outside: [] })
    })
  )
})
