/** `assent serve` as a process: its line, its end, its death, and the guide's lines of curl. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as net from "node:net"
import * as Program from "../kit/Program.js"
import * as Served from "../kit/Served.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"

/** A server that has said where it is. */
const serving = (place: Program.Place, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const program = yield* place.start(["serve", "--port", "0", ...args])
    const line = yield* program.line((text) => text.startsWith("http://"))
    const [url = "", token = ""] = line.split("/#token=")
    return { program, url, token, call: callAt(url, token) }
  })

const callAt = (url: string, token: string) => (path: string, body?: unknown) =>
  Effect.promise(async () => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const answer = await fetch(`${url}${path}`, {
      headers,
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
    })
    const isJson = answer.headers.get("content-type")?.includes("json") === true
    return { status: answer.status, body: await (isJson ? answer.json() : answer.text()) }
  })

const asking = (place: Program.Place) =>
  place.script({ tools: [{ name: "run_command", params: { command: "touch made" } }] }, { text: "done" })

describe.concurrent("assent run --serve", () => {
  it.scopedLive("shows its session and no other, takes an answer, and prints the result", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* asking(place)
      // Another session of the same store, with an open question.
      yield* place.run(["run", "go", "--model", model, "--channel", "halt"])
      const program = yield* place.start(["run", "go", "--serve", "--model", model])
      const said = yield* program.errorLine((line) => line.includes("others see this run at"))
      const [, url = "", token = ""] = /(http:\S+)\/#token=(\S+)/.exec(said) ?? []
      const call = callAt(url, token)
      const asked = yield* Served.until(call("/v1/requests"), ({ body }) => body.requests.length > 0)
      assert.lengthOf(asked.body.requests, 1)
      const [{ request, sessionId }] = asked.body.requests
      assert.deepStrictEqual(
        (yield* call("/v1/sessions")).body.sessions.map((one: { sessionId: string; isLive: boolean }) => [
          one.sessionId,
          one.isLive
        ]),
        [[sessionId, true]]
      )
      const { body: metrics } = yield* call("/metrics")
      for (const gauge of ["assent_sessions_live 1", "assent_requests_open 1"]) assert.include(metrics, `\n${gauge}\n`)
      const { stdout } = yield* place.run(["sessions", "list", "--json"])
      const other = Program.linesOf(stdout).flatMap((line) => {
        const { rootSessionId = "" } = JSON.parse(line)
        return rootSessionId === sessionId ? [] : [String(rootSessionId)]
      })
      assert.lengthOf(other, 1)
      assert.strictEqual((yield* call(`/v1/sessions/${other[0]}`)).status, 404)
      assert.strictEqual((yield* call("/v1/sessions", {})).status, 403)
      assert.strictEqual((yield* call(`/v1/sessions/${sessionId}/model`, { model: "offline" })).status, 422)
      assert.strictEqual((yield* call(`/v1/requests/${request.requestId}/answer`, { answer: "y" })).status, 200)
      const { code, stdout: printed } = yield* program.exit
      assert.deepStrictEqual([code, printed], [0, "done\n"])
      assert.isTrue(yield* place.exists("workspace/made"))
      assert.strictEqual((yield* place.run(["run", "go", "--port", "1"])).code, 2)
    })
  )
})

describe.concurrent("assent serve", () => {
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

  it.scopedLive("works in each of its workspaces, in no other one, and trusts as the guide's lines of curl say", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      for (const name of ["two", "three", "other"]) fs.mkdirSync(place.path(name))
      yield* place.write(
        "workspace/.assent/permissions.json",
        JSON.stringify({ version: "1.0", whitelist: { patterns: ["touch *"] } })
      )
      const directories = [
        "--workspace",
        place.path("workspace"),
        "--workspace",
        place.path("two"),
        place.path("three")
      ]
      const { call, program, url } = yield* serving(place, [...directories, "--model", yield* asking(place)])
      const workspaces = ["workspace", "three", "two"].map((name) => fs.realpathSync(place.path(name)))
      assert.deepStrictEqual((yield* call("/v1/about")).body.workspaces, workspaces)
      for (const workspace of workspaces) {
        const { body, status } = yield* call("/v1/sessions", { workspace })
        assert.strictEqual(status, 200)
        assert.strictEqual((yield* call(`/v1/sessions/${body.sessionId}`)).body.workspace, workspace)
      }
      yield* program.errorLine((line) => line.includes("does not count until you trust it"))
      for (const workspace of ["other", ".", "workspace/.assent", "nowhere"])
        assert.strictEqual((yield* call("/v1/sessions", { workspace: place.path(workspace) })).status, 403)

      const guide = fs.readFileSync(".github/guide/server.md", "utf8")
      const [, first = ""] = /<!-- curl -->\n\n```sh\n([^]*?\n)\n/.exec(guide) ?? []
      const [, lines = ""] = /<!-- curl trust -->\n\n```sh\n([^]*?)```/.exec(guide) ?? []
      const env = { ...place.environment, PORT: new URL(url).port }
      const { stdout } = yield* Program.execute("bash", ["-euc", first + lines], { env, cwd: workspaces[0] ?? "" })
      assert.match(stdout, /"allowances":\["calls like touch \*"\].*"isTrusted":true/s)
      yield* call("/v1/sessions", { id: "later" })
      yield* call("/v1/sessions/later/messages", { text: "go" })
      yield* Served.until(place.exists("workspace/made"), (isThere) => isThere)
    })
  )

  it.scopedLive("calls the webhook of the person's settings about a question, and takes no other one", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const receiver = yield* WebhookReceiver.make
      const configure = (notify: object) => place.write("config/config.json", JSON.stringify({ notify }))
      for (const [notify, words] of [
        [{ webhook: "file:///etc/passwd" }, "The address of notify.webhook is not an http or https address."],
        [{ webhook: "https://ann:secret@ops.example.com" }, "holds a user name or a password"],
        [{ webhook: receiver.url, after: "soon" }, 'notify.after: "soon" is no time.'],
        [{ webhook: receiver.url, after: "0" }, 'notify.after: "0" is no time.'],
        [{ after: "1m" }, "notify.webhook"],
        [{ webhook: receiver.url, hook: true }, "notify.hook"]
      ] as const) {
        yield* configure(notify)
        const { code, stderr } = yield* place.run(["serve", "--port", "0"])
        assert.deepInclude({ code, isSaid: stderr.includes(words) }, { code: 2, isSaid: true }, stderr)
        assert.notInclude(stderr, "secret")
      }
      yield* configure({ webhook: receiver.url, after: "1s" })
      // What a workspace brings does not count here, trusted or not.
      const other = { notify: { webhook: "http://127.0.0.1:1/", after: "1s" } }
      yield* place.write("workspace/.assent/config.json", JSON.stringify(other))
      const args = ["--allow-host", "ops.example.com:443", "--model", yield* asking(place)]
      const { call, program } = yield* serving(place, args)
      yield* call("/v1/sessions", { id: "mine" })
      yield* program.errorLine((line) => line.includes('"notify" in the config.json of a workspace does not count'))
      yield* call("/v1/sessions/mine/messages", { text: "go" })
      const arrival = yield* receiver.arrival
      const { age, ...body } = JSON.parse(arrival.body)
      assert.isAtLeast(age, 1)
      assert.deepStrictEqual(body, {
        kind: "Approve",
        session: "mine",
        link: "https://ops.example.com/#/session/mine"
      })
      yield* arrival.reply({ body: "" })
    })
  )

  it.scopedLive("asks a page in AG-UI, is killed, and takes the page's answer as the next process", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* asking(place)
      const input = { threadId: "t", protocolVersion: "1.0", messages: [{ id: "m", role: "user", content: "go" }] }
      const run = (served: { readonly url: string; readonly token: string }, body: object) =>
        Effect.promise(async () => {
          const answer = await fetch(`${served.url}/v1/agui/mine`, {
            method: "POST",
            headers: { authorization: `Bearer ${served.token}`, "content-type": "application/json" },
            body: JSON.stringify({ ...input, ...body })
          })
          const events = (await answer.text()).split("\n\n").flatMap(Served.parse)
          return events.map(({ data }) => data)
        })
      const first = yield* Scope.make()
      const before = yield* Scope.extend(serving(place, ["--model", model]), first)
      yield* before.call("/v1/sessions", { id: "mine" })
      const asked = (yield* run(before, { runId: "r1" })).at(-1)
      assert.strictEqual(asked.outcome.type, "interrupt")
      yield* before.program.signal("SIGKILL")
      yield* before.program.exit
      yield* Scope.close(first, Exit.void)
      const after = yield* serving(place, ["--model", model])
      const [{ id: interruptId }] = asked.outcome.interrupts
      const events = yield* run(after, {
        runId: "r2",
        resume: [{ interruptId, status: "resolved", payload: { approved: true } }]
      })
      assert.deepStrictEqual(events.at(-1).outcome, { type: "success" }, JSON.stringify(events.at(-1)))
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
        { tools: [{ name: "run_command", params: { command: "touch begun; sleep 30" } }] },
        { text: "done" }
      )
      const { call, program, token } = yield* serving(place, ["--model", model, "--mode", "allow"])
      yield* call("/v1/sessions", { id: "one" })
      yield* call("/v1/sessions/one/messages", { text: "go" })
      // A server without a running tool would end at once.
      yield* place.appears("workspace/begun")
      yield* program.signal("SIGTERM")
      const refused = yield* Served.until(call("/v1/sessions", {}), ({ status }) => status === 503)
      assert.strictEqual(refused.body._tag, "Unavailable")
      assert.deepStrictEqual([(yield* call("/readyz")).status, (yield* call("/healthz")).status], [503, 200])
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
        [["--port", "many"], '"many" is not a port'],
        [["--port", "70000"], "is not a port"],
        [["/nowhere"], 'There is no directory "/nowhere"'],
        [["--host", "203.0.113.9", "--port", "0"], "Cannot listen on 203.0.113.9:0"],
        [["--host", "0.0.0.0", "--token-file", place.path("short")], "at least 22 characters"],
        [["token"], "assent serve token takes: rotate."]
      ]
      for (const [args, says] of cases) {
        const { code, stderr } = yield* place.call(["serve", ...args])
        assert.deepStrictEqual([code, stderr.includes(says)], [2, true], `${args.join(" ")}: ${stderr}`)
      }
    })
  )
})
