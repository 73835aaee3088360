import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import * as InteractorCall from "../../src/interaction/InteractorCall.js"
import * as WebhookChannel from "../../src/channel/WebhookChannel.js"
import type { RequestId } from "../../src/core/Id.js"
import { Approve, Ask, Confirm } from "../../src/interaction/Interaction.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Form from "../../src/interaction/Form.js"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import * as InteractionSample from "../kit/InteractionSample.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"
import { interactorSuite, type Outside, type Subject } from "../suite/interactorSuite.js"

const confirm = new Confirm({ prompt: "Deploy?", default: false })
const newRequest = InteractionSample.request(confirm)
const once = Schedule.recurs(0)

const open = (options: Omit<WebhookChannel.Options, "url"> = {}) =>
  Effect.gen(function* () {
    const receiver = yield* WebhookReceiver.make
    const interactor = yield* WebhookChannel.make({ url: receiver.url, retry: once, ...options })
    return { interactor, receiver }
  }).pipe(Effect.provide(FetchHttpClient.layer))

const subject = (
  form: "encoded" | "line" | "form",
  dialogs: "one" | "unbounded"
): Effect.Effect<Subject, never, Scope.Scope> =>
  Effect.gen(function* () {
    const receiver = yield* WebhookReceiver.make
    const fetch = yield* HttpClient.HttpClient
    // What the channel has under way: its connections.
    const underWay = new Set<string>()
    const client = HttpClient.transform(fetch, (effect, request) => {
      const key = request.headers["idempotency-key"] ?? ""
      return Effect.suspend(() => {
        underWay.add(key)
        return effect
      }).pipe(Effect.ensuring(Effect.sync(() => underWay.delete(key))))
    })
    const interactor = yield* Effect.provideService(
      WebhookChannel.make({ url: receiver.url, token: Redacted.make("hush-hush"), dialogs, retry: once }),
      HttpClient.HttpClient,
      client
    )
    const arrivals = new Map<string, WebhookReceiver.Arrival>()
    let output = ""
    const reply = (requestId: string, value: unknown) =>
      arrivals.get(requestId)?.reply(WebhookReceiver.json(value)) ?? Effect.die(`${requestId} has not arrived`)
    const outside: Outside = {
      shown: Effect.map(receiver.arrival, (arrival) => {
        arrivals.set(arrival.requestId, arrival)
        output += arrival.body
        return arrival.requestId as RequestId
      }),
      answer: ({ requestId }, sample) => {
        const values = form === "form" ? InteractionSample.filled(sample) : undefined
        return reply(
          requestId,
          values !== undefined
            ? { requestId, form: values }
            : { requestId, answer: form === "line" ? sample.line : sample.encoded }
        )
      },
      nonsense: ({ requestId }) => reply(requestId, { requestId, answer: "by all means\ndo\nit" }),
      send: ({ requestId }, json) =>
        arrivals.get(requestId)?.reply({ body: `{"requestId":${JSON.stringify(requestId)},"answer":${json}}` }) ??
        Effect.die(`${requestId} has not arrived`),
      cancel: ({ requestId }) => reply(requestId, { requestId, answer: "cancel" }),
      visible: Effect.sync(() => [...underWay])
    }
    return { interactor, outside, output: Effect.sync(() => output) }
  }).pipe(Effect.orDie, Effect.provide(FetchHttpClient.layer))

for (const form of ["encoded", "line", "form"] as const) {
  for (const dialogs of ["one", "unbounded"] as const) {
    interactorSuite(`WebhookChannel (${form} answers, dialogs: ${dialogs})`, {
      claims: ["Approve", "Clarify", "Confirm", "Ask", "Select", "Elicit"],
      dialogs,
      afterNonsense: "fails",
      make: subject(form, dialogs)
    })
  }
}

describe("WebhookChannel", () => {
  it.scopedLive("posts the encoded request with token, headers and an idempotency key", () =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open({
        token: Redacted.make("hush-hush"),
        headers: { "x-team": "ops" }
      })
      const request = yield* newRequest
      const asking = yield* Effect.fork(InteractorCall.ask(interactor, request))
      const arrival = yield* receiver.arrival
      assert.strictEqual(arrival.headers["authorization"], "Bearer hush-hush")
      assert.strictEqual(arrival.headers["x-team"], "ops")
      assert.strictEqual(arrival.headers["idempotency-key"], request.requestId)
      assert.include(arrival.headers["content-type"] ?? "", "application/json")
      assert.deepStrictEqual(JSON.parse(arrival.body), JSON.parse(JSON.stringify(InteractionRequest.present(request))))
      assert.deepStrictEqual(JSON.parse(arrival.body).form, Form.of(request.interaction))
      yield* arrival.reply(WebhookReceiver.json({ requestId: request.requestId, answer: true }))
      assert.deepStrictEqual(yield* Fiber.join(asking), { answer: true, by: "webhook", how: "answered" })
    })
  )

  it.scopedLive("sends no declared secret, not even where arguments may be edited, and what only looks like one", () =>
    Effect.gen(function* () {
      const key = "correct-horse-battery"
      const token = `sk-${"a".repeat(30)}`
      const { interactor, receiver } = yield* open({ redactor: Redaction.make([key]) })
      const sample = InteractionSample.samples.Approve.interaction
      const request = yield* InteractionSample.request(
        new Approve({
          toolCallId: sample.toolCallId,
          tool: sample.tool,
          argumentsSummary: sample.argumentsSummary,
          approvalKey: "curl",
          options: sample.options,
          editable: { parameters: ["command"], format: "text", current: { command: `curl -H ${key}` } },
          display: { details: `curl -H ${key} ${token}` }
        })
      )
      yield* Effect.fork(interactor.request(request))
      const { body } = yield* receiver.arrival
      assert.notInclude(body, key)
      assert.include(body, "[REDACTED]")
      assert.include(body, token)
    })
  )

  it.scopedLive.each([
    ["another status", { status: 403, body: "{}" }, "status 403"],
    ["an accepted without an answer", { status: 202, body: "{}" }, "status 202"],
    ["no JSON", { body: "<html>" }, "status 200, but not with"],
    ["nothing", { body: "" }, "status 200, but not with"],
    ["no answer", { body: '{"requestId":"ID"}' }, "does not fit"],
    ["a form that does not fit", { body: '{"requestId":"ID","form":{"answer":1}}' }, "Yes?: Yes or no is expected."],
    ["both", { body: '{"requestId":"ID","answer":true,"form":{"answer":true}}' }, "both an answer and a form"],
    ["no request id", { body: '{"answer":true}' }, "status 200, but not with"],
    ["another request's id", { body: '{"requestId":"req_other","answer":true}' }, "another request"],
    ["extra fields", { body: '{"requestId":"ID","answer":true,"also":1}' }, "status 200, but not with"],
    ["an answer of another kind", { body: '{"requestId":"ID","answer":{"decision":"allow"}}' }, "does not fit"],
    ["too much", { body: `{"requestId":"ID","answer":"${"y".repeat(2_000_000)}"}` }, "larger than"]
  ] as const)("fails as unavailable, never allows, when it gets %s", ([, reply, reason]) =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open()
      const request = yield* newRequest
      const asking = yield* Effect.fork(Effect.flip(interactor.request(request)))
      const arrival = yield* receiver.arrival
      yield* arrival.reply({ ...reply, body: reply.body.replace("ID", request.requestId) })
      const failed = yield* Fiber.join(asking)
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.strictEqual(failed.requestId, request.requestId)
      assert.include(failed.message, reason)
    })
  )

  it.scopedLive("tries again after what may pass by itself, under the same key, and takes the answer then", () =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open({ retry: Schedule.recurs(3) })
      const request = yield* newRequest
      const asking = yield* Effect.fork(interactor.request(request))
      for (const status of [503, 429, 500]) {
        const arrival = yield* receiver.arrival
        assert.strictEqual(arrival.requestId, request.requestId)
        yield* arrival.reply({ status, body: "later" })
      }
      const last = yield* receiver.arrival
      yield* last.reply(WebhookReceiver.json({ requestId: request.requestId, answer: "y" }))
      assert.strictEqual((yield* Fiber.join(asking)).answer, true)
    })
  )

  it.scopedLive("fails with the last status when it has tried often enough", () =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open({ retry: Schedule.recurs(1) })
      const asking = yield* Effect.fork(Effect.flip(interactor.request(yield* newRequest)))
      yield* Effect.flatMap(receiver.arrival, ({ reply }) => reply({ status: 503, body: "" }))
      yield* Effect.flatMap(receiver.arrival, ({ reply }) => reply({ status: 502, body: "" }))
      assert.include((yield* Fiber.join(asking)).message, "status 502")
    })
  )

  it.scopedLive("closes the connection when the request is withdrawn", () =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open()
      const asking = yield* Effect.fork(interactor.request(yield* newRequest))
      const arrival = yield* receiver.arrival
      yield* Fiber.interrupt(asking)
      yield* arrival.gone
    })
  )

  it.scopedLive("says so, without its address or token, when nobody listens there", () =>
    Effect.gen(function* () {
      const closing = yield* Scope.make()
      const { url } = yield* Scope.extend(WebhookReceiver.make, closing)
      yield* Scope.close(closing, Exit.void)
      for (const address of [url, "not a url", "ftp://host", "http://user:hush-hush@host"]) {
        const failed = yield* Effect.flip(
          Effect.flatMap(
            WebhookChannel.make({
              url: `${address}?key=hidden-in-here`,
              token: Redacted.make("hush-hush"),
              retry: once
            }),
            (interactor) => Effect.flatMap(newRequest, (request) => interactor.request(request))
          )
        )
        assert.strictEqual(failed._tag, address === url ? "InteractorUnavailable" : "WebAddressRefused")
        for (const shown of [failed.message, JSON.stringify(failed), String(failed.stack)]) {
          assert.notInclude(shown, "hush-hush")
          assert.notInclude(shown, "hidden-in-here")
        }
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.scopedLive.each([301, 302, 303, 307, 308])("follows no redirect, and says so: %i", (status) =>
    Effect.gen(function* () {
      const other = yield* WebhookReceiver.make
      const { interactor, receiver } = yield* open({ token: Redacted.make("hush-hush"), retry: Schedule.forever })
      const asking = yield* Effect.fork(Effect.flip(interactor.request(yield* newRequest)))
      const arrival = yield* receiver.arrival
      yield* arrival.reply({ status, headers: { location: other.url }, body: "" })
      const failed = yield* Fiber.join(asking)
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.include(failed.message, `status ${status}, a redirect`)
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(other.arrival, "20 millis")), "nobody was asked there")
    })
  )

  it.scopedLive("tells its last failure, not that nobody answered, also when there is no time to try again", () =>
    Effect.gen(function* () {
      const receiver = yield* WebhookReceiver.make
      const interactor = yield* WebhookChannel.make({
        url: receiver.url,
        timeouts: { clarification: "3 seconds" },
        retry: Schedule.spaced("1 minute")
      })
      const asking = yield* Effect.fork(Effect.flip(interactor.request(yield* newRequest)))
      yield* (yield* receiver.arrival).reply({ status: 503, body: "" })
      const failed = yield* Fiber.join(asking)
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.include(failed.message, "status 503")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.scopedLive.each([
    { what: "as its server only", who: {}, ada: "webhook" },
    { what: "as whom the server stands for", who: { principal: "grace" }, ada: "grace" },
    { what: "as the server says, where it vouches", who: { vouches: true }, ada: "ada" }
  ])("knows who answers $what", ({ ada, who }) =>
    Effect.gen(function* () {
      const { interactor, receiver } = yield* open(who)
      for (const [by, named] of [
        [" ada\u00a0", ada],
        [undefined, who.principal ?? "webhook"]
      ]) {
        const request = yield* newRequest
        const asking = yield* Effect.fork(interactor.request(request))
        yield* (yield* receiver.arrival).reply(WebhookReceiver.json({ requestId: request.requestId, answer: true, by }))
        assert.strictEqual((yield* Fiber.join(asking)).by, named)
      }
    })
  )

  /** Answers with statuses, on the test's clock; 0 is no connection, nothing left is silence. */
  const scripted = (statuses: Array<number>, seen: { count: number }) =>
    HttpClient.make((request) => {
      seen.count++
      const status = statuses.shift()
      if (status === undefined) return Effect.never
      return status === 0
        ? Effect.fail(new HttpClientError.RequestError({ request, reason: "Transport" }))
        : Effect.succeed(HttpClientResponse.fromWeb(request, new Response("", { status })))
    })

  it.scoped("spends its time on trying and tells the last failure before the time is up", () =>
    Effect.gen(function* () {
      const seen = { count: 0 }
      const interactor = yield* Effect.provideService(
        WebhookChannel.make({ url: "http://localhost" }),
        HttpClient.HttpClient,
        scripted([...Array.from({ length: 40 }, () => 0), 503], seen)
      )
      const asking = yield* Effect.fork(Effect.flip(interactor.request(yield* newRequest)))
      for (let second = 0; second < 60; second++) yield* TestClock.adjust("1 seconds")
      const failed = yield* Fiber.join(asking)
      assert.strictEqual(failed._tag, "InteractorUnavailable")
      assert.include(failed.message, "could not be reached")
      assert.isAbove(seen.count, 5)
      assert.isBelow(seen.count, 25)
    })
  )

  it.scoped("times out when the webhook accepts the request and says nothing", () =>
    Effect.gen(function* () {
      const seen = { count: 0 }
      const interactor = yield* Effect.provideService(
        WebhookChannel.make({ url: "http://localhost" }),
        HttpClient.HttpClient,
        scripted([], seen)
      )
      const request = yield* InteractionSample.request(InteractionSample.samples.Approve.interaction)
      const asking = yield* Effect.fork(Effect.either(interactor.request(request)))
      yield* TestClock.adjust("30 seconds")
      const ended = yield* Fiber.join(asking)
      assert.isTrue(Either.isLeft(ended) && ended.left._tag === "InteractionTimedOut")
      assert.strictEqual(seen.count, 1)
    })
  )

  it.scoped("waits for ever when told so, and still gives up trying", () =>
    Effect.gen(function* () {
      const seen = { count: 0 }
      const interactor = yield* Effect.provideService(
        WebhookChannel.make({ url: "http://localhost", timeouts: { clarification: Duration.zero } }),
        HttpClient.HttpClient,
        scripted([503], seen)
      )
      const asking = yield* Effect.fork(interactor.request(yield* InteractionSample.request(new Ask({ prompt: "?" }))))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(seen.count, 2)
      assert.isTrue((yield* Fiber.poll(asking))._tag === "None")
    })
  )
})
