/** `assent serve` as a process: its line, its end, its death, and the guide's lines of curl. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as net from "node:net"
import * as Program from "../kit/Program.js"
import * as Served from "../kit/Served.js"

/** A server that has said where it is. */
const serving = (place: Program.Place, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const program = yield* place.start(["serve", "--port", "0", ...args])
    const line = yield* program.line((text) => text.startsWith("http://"))
    const [url = "", token = ""] = line.split("/#token=")
    const call = (path: string, body?: unknown) =>
      Effect.promise(async () => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
        const answer = await fetch(`${url}${path}`, {
          headers,
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
        })
        return { status: answer.status, body: JSON.parse(await answer.text()) }
      })
    return { program, url, token, call }
  })

const asking = (place: Program.Place) =>
  place.script({ tools: [{ name: "run_command", params: { command: "touch made" } }] }, { text: "done" })

describe("assent serve", () => {
  it.scopedLive("does what the guide's lines of curl say", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { url } = yield* serving(place, ["--model", yield* asking(place)])
      const [, lines = ""] =
        /<!-- curl -->\n\n```sh\n([^]*?)```/.exec(fs.readFileSync(".github/guide/server.md", "utf8")) ?? []
      const env = { ...place.environment, PORT: new URL(url).port }
      const { stdout } = yield* Program.execute("bash", ["-euc", lines], { env })
      assert.match(stdout, /\{"messageId":"first"\}\{"messageId":"first","again":true\}/)
      assert.include(stdout, '{"status":"answered"}')
      assert.match(stdout, /"winner":"[^"]+","_tag":"InteractionAlreadyAnswered"/)
      assert.match(stdout, /"_tag":"ToolCallEnded".*\n(?:.*\n)*id: \d+/)
      assert.isTrue(yield* place.exists("workspace/made"))
    })
  )

  it.scopedLive(
    "has all questions again under their ids after it was killed, and clients catch up",
    () =>
      Effect.gen(function* () {
        const place = yield* Program.place
        const model = yield* asking(place)
        const first = yield* Scope.make()
        const before = yield* Scope.extend(serving(place, ["--model", model]), first)
        const asked = yield* Effect.forEach(
          Array.from({ length: 12 }, (_, at) => `s${at}`),
          (id) =>
            Effect.gen(function* () {
              yield* before.call("/v1/sessions", { id })
              yield* before.call(`/v1/sessions/${id}/messages`, { text: "go" })
              const { body } = yield* Served.until(
                before.call(`/v1/sessions/${id}`),
                ({ body }) => body.open.length > 0
              )
              return { id, requestId: String(body.open[0]), cursor: String(body.cursor) }
            }),
          { concurrency: 4 }
        )
        yield* before.program.signal("SIGKILL")
        yield* before.program.exit
        yield* Scope.close(first, Exit.void)
        const after = yield* serving(place, ["--model", model])
        const { requests } = (yield* after.call("/v1/requests")).body
        assert.deepStrictEqual(
          requests.map((one: { request: { requestId: string } }) => one.request.requestId).sort(),
          asked.map(({ requestId }) => requestId).sort()
        )
        const outcomes = yield* Effect.forEach(
          asked,
          ({ requestId }) => after.call(`/v1/requests/${requestId}/answer`, { answer: "y", id: "once" }),
          { concurrency: 4 }
        )
        assert.isTrue(outcomes.every(({ status }) => status === 200))
        for (const { cursor, id } of asked) {
          yield* Served.until(after.call(`/v1/sessions/${id}`), ({ body }) => body.agents[0]?.isIdle === true)
          const answer = yield* Effect.promise(async () => {
            const response = await fetch(`${after.url}/v1/sessions/${id}/events`, {
              headers: { authorization: `Bearer ${after.token}`, "last-event-id": cursor }
            })
            let text = ""
            const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
            while (!/"_tag":"TurnEnded"[^]*\nid: \d+\n\n/.test(text)) text += (await reader.read()).value ?? ""
            await reader.cancel()
            return text
          })
          const ids = answer
            .split("\n\n")
            .flatMap(Served.parse)
            .flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
          assert.isTrue(
            ids.every((one, at) => one > (at === 0 ? Number(cursor) : (ids[at - 1] ?? 0))),
            ids.join()
          )
        }
      }),
    120_000
  )

  it.scopedLive("ends with code 0 after a signal, at once after a second one, and leaves questions open", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "sleep 30" } }] },
        { text: "done" }
      )
      const { call, program, token } = yield* serving(place, ["--model", model, "--mode", "allow"])
      yield* call("/v1/sessions", { id: "one" })
      yield* call("/v1/sessions/one/messages", { text: "go" })
      yield* Served.until(call("/v1/sessions/one"), ({ body }) => body.agents[0]?.isIdle === false)
      yield* program.signal("SIGTERM")
      const refused = yield* Served.until(call("/v1/sessions", {}), ({ status }) => status === 503)
      assert.strictEqual(refused.body._tag, "Unavailable")
      yield* program.signal("SIGTERM")
      const { code, stderr, stdout } = yield* program.exit
      assert.strictEqual(code, 0)
      assert.notInclude(stderr, token)
      assert.strictEqual(stdout.split(token).length, 2)
    })
  )

  it.scopedLive("says what is wrong with its words, and exits with 2", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const taken = yield* Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<net.Server>((resolve) => {
              const server = net.createServer((socket) => socket.end()).listen(0, "127.0.0.1", () => resolve(server))
            })
        ),
        (server) => Effect.sync(() => server.close())
      )
      const port = String((taken.address() as net.AddressInfo).port)
      yield* place.write("short", "abc\n")
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
        [["--port", port], `Port ${port} of 127.0.0.1 is in use`],
        [["--port", "many"], '"many" is no port'],
        [["--port", "70000"], "is no port"],
        [["/nowhere"], 'There is no directory "/nowhere"'],
        [["--host", "203.0.113.9", "--port", "0"], "Cannot listen on 203.0.113.9:0"],
        [["--host", "0.0.0.0", "--token-file", place.path("short")], "at least 22 characters"],
        [["token"], "assent serve token takes: rotate."]
      ]
      for (const [args, says] of cases) {
        const { code, stderr } = yield* place.run(["serve", ...args])
        assert.deepStrictEqual([code, stderr.includes(says)], [2, true], `${args.join(" ")}: ${stderr}`)
      }
    })
  )
})
