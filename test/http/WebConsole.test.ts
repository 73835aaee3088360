/** The files of the web console: who gets which, and what browsers may do with them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as http from "node:http"
import * as Served from "../kit/Served.js"

describe("the files of the console", () => {
  it.scopedLive("are served without a token, under a strict policy, and no other file is", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.mkdirSync(place.at("web"))
      for (const name of ["index.html", "console.js", "console.css", "icon.svg"])
        fs.writeFileSync(place.at("web", name), name)
      fs.writeFileSync(place.at("web", "secret"), "secret")
      const served = yield* Served.serve(place, Served.asking(place), { web: place.at("web") })
      const none = { authorization: "" }
      const page = yield* served.call("/", undefined, none)
      assert.deepStrictEqual([page.status, page.body], [200, "index.html"])
      const policy = page.headers.get("content-security-policy") ?? ""
      for (const part of [
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'"
      ])
        assert.include(policy, part)
      assert.notInclude(policy, "unsafe")
      assert.strictEqual(page.headers.get("x-content-type-options"), "nosniff")
      assert.match((yield* served.call("/console.js", undefined, none)).headers.get("content-type") ?? "", /javascript/)
      assert.match((yield* served.call("/console.css?x", undefined, none)).headers.get("content-type") ?? "", /css/)
      for (const path of [
        "/secret",
        "/../secret",
        "/%2e%2e/config/serve-token",
        "/web/index.html",
        "//",
        "/__proto__",
        "/constructor"
      ])
        assert.strictEqual((yield* served.call(path, undefined, none)).status, 404, path)
      assert.strictEqual((yield* served.call("/", {}, none)).status, 405)
      assert.include(
        (yield* served.call("/v1/about")).headers.get("content-security-policy") ?? "",
        "default-src 'none'; frame"
      )
    })
  )

  it.scopedLive("open from a link of another site, and nothing else does", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      fs.writeFileSync(place.at("home", "index.html"), "<title>page</title>")
      fs.writeFileSync(place.at("home", "console.js"), "page()")
      const served = yield* Served.serve(place, Served.asking(place), { web: place.at("home") })
      const visit = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }
      // `fetch` says itself what it fetches.
      const ask = (path: string, headers: Readonly<Record<string, string>>, method = "GET") =>
        Effect.async<{ readonly status: number | undefined; readonly body: string }>((resume) => {
          http
            .request(`${served.url}${path}`, { method, headers, agent: false }, (answer) => {
              let body = ""
              answer.on("data", (data) => (body += String(data)))
              answer.on("end", () => resume(Effect.succeed({ status: answer.statusCode, body })))
            })
            .end()
        })
      const page = yield* ask("/", visit)
      assert.deepStrictEqual([page.status, page.body], [200, "<title>page</title>"])
      assert.notInclude(page.body, served.token)
      assert.strictEqual((yield* ask("/", { ...visit, "sec-fetch-site": "same-site" })).status, 200)
      const strange: ReadonlyArray<readonly [path: string, change: Readonly<Record<string, string>>, method?: string]> =
        [
          ["/", { "sec-fetch-dest": "iframe" }],
          ["/", { "sec-fetch-dest": "embed" }],
          ["/", { "sec-fetch-mode": "no-cors" }],
          ["/", { "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" }],
          ["/", { origin: "http://evil.example" }],
          ["/", {}, "POST"],
          ["/", {}, "HEAD"],
          ["/?next=/v1/sessions", {}],
          ["//", {}],
          ["/console.js", {}],
          ["/openapi.json", {}],
          ["/v1/sessions", {}],
          ["/v1/events", {}],
          ["/metrics", {}],
          ["/healthz", {}]
        ]
      for (const [path, change, method = "GET"] of strange) {
        const { status } = yield* ask(path, { ...visit, ...change, authorization: `Bearer ${served.token}` }, method)
        assert.strictEqual(status, 403, `${method} ${path} ${JSON.stringify(change)}`)
      }
    })
  )

  it.scopedLive("that are missing are named, with what to do", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place), { web: place.at("nowhere") })
      const { body, status } = yield* served.call("/")
      assert.deepStrictEqual([status, body._tag], [404, "NotFound"])
      assert.include(body.message, "no web console")
    })
  )
})
