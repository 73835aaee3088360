import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as HttpProxy from "../../src/host/HttpProxy.js"
import * as Collector from "../kit/Collector.js"
import * as ForwardProxy from "../kit/ForwardProxy.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Program from "../kit/Program.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"
import { anthropic, chat, google, openai, type Wire } from "../kit/Wire.js"

const read = (environment: Readonly<Record<string, string>>) =>
  Effect.withConfigProvider(HttpProxy.load, ConfigProvider.fromMap(new Map(Object.entries(environment))))

/** The variable that decides about each address; `direct` for none. */
const chosen = (environment: Readonly<Record<string, string>>, urls: ReadonlyArray<string>) =>
  Effect.map(read(environment), ({ routeOf }) => urls.map((url) => routeOf(new URL(url))?.variable ?? "direct"))

describe("the proxy of an address", () => {
  it.effect("is the one of its scheme, lower case first, ALL_PROXY for a missing one", () =>
    Effect.gen(function* () {
      const urls = ["https://a.test", "http://a.test"]
      const table: ReadonlyArray<readonly [Record<string, string>, ReadonlyArray<string>]> = [
        [{}, ["direct", "direct"]],
        [{ HTTPS_PROXY: "http://p:1" }, ["HTTPS_PROXY", "direct"]],
        [{ HTTP_PROXY: "http://p:1" }, ["direct", "HTTP_PROXY"]],
        [{ https_proxy: "http://p:1", HTTPS_PROXY: "http://q:1" }, ["https_proxy", "direct"]],
        [{ https_proxy: "", HTTPS_PROXY: "http://q:1" }, ["HTTPS_PROXY", "direct"]],
        [{ all_proxy: "p:1", HTTP_PROXY: "http://q:1" }, ["all_proxy", "HTTP_PROXY"]],
        [{ ALL_PROXY: "p:1" }, ["ALL_PROXY", "ALL_PROXY"]]
      ]
      for (const [environment, expected] of table) assert.deepStrictEqual(yield* chosen(environment, urls), expected)
    })
  )

  it.effect("is none on this machine, and none for what NO_PROXY names", () =>
    Effect.gen(function* () {
      const loopback = ["http://localhost:11434", "http://127.0.0.7", "http://[::1]:80", "http://x.localhost"]
      assert.deepStrictEqual(
        yield* chosen({ ALL_PROXY: "p:1" }, loopback),
        loopback.map(() => "direct")
      )
      const table: ReadonlyArray<readonly [string, string, boolean]> = [
        ["a.test", "https://a.test", true],
        ["a.test", "https://b.a.test", true],
        ["a.test", "https://ba.test", false],
        [".a.test", "https://b.a.test", true],
        ["*.a.test", "https://b.a.test", true],
        ["A.Test.", "https://a.test", true],
        ["x.test, a.test", "https://a.test", true],
        ["x.test a.test", "https://a.test", true],
        ["a.test:443", "https://a.test", true],
        ["a.test:8443", "https://a.test", false],
        ["a.test:8443", "https://a.test:8443", true],
        ["*", "https://a.test", true],
        ["10.0.0.0/8", "http://10.1.2.3", true],
        ["10.0.0.0/8", "http://11.1.2.3", false],
        ["10.1.2.3", "http://10.1.2.3", true],
        ["10.1.2.3", "http://10.1.2.34", false],
        ["fd00::/8", "http://[fd00::1]", true],
        ["[fd00::1]:8080", "http://[fd00::1]:8080", true],
        ["10.0.0.0/99", "http://10.1.2.3", false],
        ["", "https://a.test", false]
      ]
      for (const name of ["NO_PROXY", "no_proxy"]) {
        for (const [value, url, direct] of table) {
          const expected = direct ? "direct" : "ALL_PROXY"
          assert.deepStrictEqual(
            yield* chosen({ ALL_PROXY: "p:1", [name]: value }, [url]),
            [expected],
            `${value} ${url}`
          )
        }
      }
    })
  )

  it.effect("is described without its password, which is masked", () =>
    Effect.gen(function* () {
      const { described, isUsable, secrets } = yield* read({
        HTTPS_PROXY: "http://me:s%40cret@proxy.test:3128",
        HTTP_PROXY: "proxy.test:3128",
        NO_PROXY: "a.test"
      })
      assert.deepStrictEqual(described, [
        "http://me:***@proxy.test:3128 (HTTPS_PROXY)",
        "http://proxy.test:3128 (HTTP_PROXY)",
        "not for a.test (NO_PROXY)"
      ])
      assert.deepStrictEqual([isUsable, secrets], [true, ["s%40cret", "s@cret"]])
      for (const value of ["socks5://p:1080", "http://", "http://p:99999", "::"]) {
        const unusable = yield* read({ ALL_PROXY: value })
        assert.deepStrictEqual(unusable.described, [
          "ALL_PROXY names no HTTP proxy; write http://HOST:PORT, or unset it"
        ])
        assert.isFalse(unusable.isUsable)
      }
    })
  )
})

const login = "me:canary-password"

const keys: Readonly<Record<Wire["provider"], string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GOOGLE_API_KEY",
  "openai-compatible": "OPENAI_COMPATIBLE_API_KEY"
}

const variable = (provider: string) => `${provider.toUpperCase().replace("-", "_")}_BASE_URL`

describe.concurrent("a program behind a proxy", () => {
  it.scopedLive("asks every provider through it: HTTP as it is, HTTPS in a tunnel", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const server = yield* ModelServer.make
      const authority = yield* at.write("ca.pem", ForwardProxy.certificate)
      for (const wire of [anthropic, chat, google, openai]) {
        for (const scheme of ["http", "https"]) {
          // A program may still connect to the one of the case before.
          const proxy = yield* ForwardProxy.make({ to: server.url, login })
          yield* server.play(ModelServer.eventStream(wire.events({ text: ["Milk."] })))
          // Only a process takes another certificate.
          const asking = scheme === "http" ? at.call : at.run
          const result = yield* asking(["run", "--model", `${wire.provider}/${wire.model}`, "what to buy?"], {
            env: {
              [keys[wire.provider]]: "a-key-of-a-person",
              [variable(wire.provider)]: `${scheme}://provider.assent.test${wire.basePath}`,
              [scheme === "http" ? "http_proxy" : "HTTPS_PROXY"]: `http://${login}@${proxy.host}`,
              NODE_EXTRA_CA_CERTS: authority
            }
          })
          assert.deepStrictEqual([result.code, result.stdout], [0, "Milk.\n"], `${wire.provider} ${result.stderr}`)
          const expected =
            scheme === "http" ? /^POST http:\/\/provider\.assent\.test\// : /^CONNECT provider\.assent\.test:443$/
          assert.isAbove(proxy.asked.length, 0)
          for (const one of proxy.asked) assert.match(one, expected)
          const received = yield* server.received
          assert.isUndefined(received.headers["proxy-authorization"])
        }
      }
      assert.notInclude(yield* at.allText, "canary-password")
    })
  )

  it.scopedLive("says what a proxy that refuses did, and what to do", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const server = yield* ModelServer.make
      const proxy = yield* ForwardProxy.make({ to: server.url, login })
      const strict = yield* ForwardProxy.make({ to: server.url, refusal: 403 })
      const closed = "127.0.0.1:9"
      const wants = `The proxy ${proxy.host} wants a user name and a password \\(407\\)\\. Write http://USER:PASSWORD@${proxy.host} into`
      const table: ReadonlyArray<readonly [scheme: string, value: string, said: string]> = [
        ["http", proxy.host, `${wants} HTTP_PROXY\\.`],
        ["https", proxy.host, `${wants} HTTPS_PROXY\\.`],
        ["https", `me:wrong-one@${proxy.host}`, `${wants} HTTPS_PROXY\\.`],
        [
          "https",
          strict.host,
          `The proxy ${strict.host} refused the connection \\(403\\)\\. Ask for access, or name the host`
        ],
        ["http", closed, `The proxy ${closed} cannot be reached \\(ECONNREFUSED\\)\\. Check HTTP_PROXY, or name`],
        ["https", closed, `The proxy ${closed} cannot be reached \\(ECONNREFUSED\\)\\. Check HTTPS_PROXY, or name`],
        [
          "https",
          "socks5://127.0.0.1:1080",
          "HTTPS_PROXY names no HTTP proxy\\. Write http://HOST:PORT, or unset it\\."
        ]
      ]
      for (const [scheme, value, said] of table) {
        const { code, stderr } = yield* at.call(["run", "--model", "anthropic/claude-test", "what to buy?"], {
          env: {
            ANTHROPIC_API_KEY: "a-key-of-a-person",
            ANTHROPIC_BASE_URL: `${scheme}://provider.assent.test`,
            [scheme === "http" ? "HTTP_PROXY" : "HTTPS_PROXY"]: value.includes("://") ? value : `http://${value}`
          }
        })
        assert.strictEqual(code, 1)
        assert.match(stderr, new RegExp(`anthropic/claude-test: ${said}`))
        assert.notInclude(stderr, "wrong-one")
      }
      assert.strictEqual(server.count(), 0)
    })
  )

  it.scopedLive("asks the webhook and sends its traces through it", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const collector = yield* Collector.make()
      const receiver = yield* WebhookReceiver.make
      const toCollector = yield* ForwardProxy.make({ to: collector.url })
      const toReceiver = yield* ForwardProxy.make({ to: new URL(receiver.url).origin })
      const authority = yield* at.write("ca.pem", ForwardProxy.certificate)
      const model = yield* at.script(
        { text: "", tools: [{ name: "write_file", params: { path: "a.txt", content: "a" } }] },
        { text: "Done." }
      )
      const program = yield* at.start(
        ["run", "--model", model, "--channel", "webhook:https://ask.assent.test/ask", "write it"],
        {
          env: {
            OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.assent.test",
            OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
            http_proxy: toCollector.host,
            https_proxy: `http://${toReceiver.host}`,
            NODE_EXTRA_CA_CERTS: authority
          }
        }
      )
      yield* program.endInput
      const { reply, requestId } = yield* receiver.arrival
      yield* reply(WebhookReceiver.json({ requestId, answer: "y" }))
      assert.strictEqual((yield* program.exit).code, 0)
      assert.deepStrictEqual(toReceiver.asked, ["CONNECT ask.assent.test:443"])
      assert.include(toCollector.asked, "POST http://collector.assent.test/v1/traces")
    })
  )

  it.scopedLive("reads pages through it, and none of its own networks", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const server = yield* ModelServer.make
      yield* server.play({ headers: { "content-type": "text/plain" }, body: "the page" })
      const proxy = yield* ForwardProxy.make({ to: server.url })
      const authority = yield* at.write("ca.pem", ForwardProxy.certificate)
      const fetched = (url: string) => ({ text: "", tools: [{ name: "fetch_url", params: { url } }] })
      const model = yield* at.script(
        fetched("https://page.assent.test/a"),
        fetched("https://10.0.0.1/"),
        fetched("https://intranet/"),
        { text: "Done." }
      )
      const { stdout } = yield* at.run(["run", "--yolo", "--json", "--model", model, "read"], {
        env: { ALL_PROXY: `http://${proxy.host}`, NODE_EXTRA_CA_CERTS: authority }
      })
      assert.strictEqual((yield* server.received).url, "/a")
      assert.strictEqual(stdout.split('"outcome":"succeeded"').length, 2)
      assert.include(stdout, "10.0.0.1 is not an address of the public web")
      assert.deepStrictEqual(proxy.asked, ["CONNECT page.assent.test:443"])
    })
  )

  it.scopedLive("is shown by doctor without the password", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const env = { HTTPS_PROXY: `http://${login}@proxy.test:3128`, NO_PROXY: "a.test" }
      const { stdout } = yield* at.call(["doctor"], { env })
      assert.match(
        stdout,
        /✓ proxy +http:\/\/me:\*\*\*@proxy\.test:3128 \(HTTPS_PROXY\); not for a\.test \(NO_PROXY\)\n/
      )
      assert.notInclude(stdout, "canary-password")
    })
  )
})
