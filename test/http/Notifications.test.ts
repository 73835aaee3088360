/** Calls of a webhook about questions that wait. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as Notifications from "../../src/http/Notifications.js"
import * as Served from "../kit/Served.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"

const retry = Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(3))

const following = (
  { at }: Served.Place,
  served: Served.Served,
  { url }: { readonly url: string },
  options: Partial<Notifications.Options> = {}
) =>
  Effect.gen(function* () {
    const warnings: Array<string> = []
    yield* Notifications.run(served.host, {
      webhook: new URL(url),
      after: "200 millis",
      console: served.url,
      file: at("notified.json"),
      fetch,
      warn: (sentence) => warnings.push(sentence),
      retry,
      ...options
    })
    return warnings
  })

const kept = ({ at }: Served.Place): ReadonlyArray<string> =>
  fs.existsSync(at("notified.json")) ? JSON.parse(fs.readFileSync(at("notified.json"), "utf8")) : []

const isKept = (place: Served.Place, ids: ReadonlyArray<string>) =>
  Served.until(
    Effect.sync(() => kept(place)),
    (now) => JSON.stringify(now) === JSON.stringify(ids)
  )

describe("a question that waits", () => {
  it.scopedLive("calls the webhook once, with its kind and age and nothing of what it asks", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const receiver = yield* WebhookReceiver.make
      const served = yield* Served.serve(place, Served.asking(place, "touch secret-name"))
      yield* following(place, served, receiver)
      const { requestId, sessionId } = yield* Served.question(served)
      const call = yield* receiver.arrival
      const { age, ...body } = JSON.parse(call.body)
      assert.deepStrictEqual(body, {
        kind: "Approve",
        session: sessionId,
        link: `${served.url}/#/session/${sessionId}`
      })
      assert.isAtLeast(age, 0)
      assert.strictEqual(call.requestId, requestId)
      assert.notInclude(call.body, "secret-name")
      assert.isUndefined(call.headers["authorization"])
      yield* call.reply({ status: 204, body: "" })
      yield* isKept(place, [requestId])
      // The next question is the next call, so nothing came in between.
      const next = yield* Served.question(served)
      const second = yield* receiver.arrival
      assert.strictEqual(second.requestId, next.requestId)
      yield* second.reply({ body: "" })
      yield* isKept(place, [requestId, next.requestId])
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "n" })
      yield* isKept(place, [next.requestId])
    })
  )

  it.scopedLive("is not called for again by the next process, and still called for if it was not", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const receiver = yield* WebhookReceiver.make
      const model = Served.asking(place)
      const first = yield* Scope.make()
      const before = yield* Scope.extend(Served.serve(place, model), first)
      yield* Scope.extend(following(place, before, receiver), first)
      const told = yield* Served.question(before)
      yield* Effect.flatMap(receiver.arrival, (call) => call.reply({ body: "" }))
      yield* isKept(place, [told.requestId])
      const untold = yield* Served.question(before)
      // Its call hangs when the process ends.
      const hanging = yield* receiver.arrival
      yield* Scope.close(first, Exit.void)
      yield* hanging.gone
      const after = yield* Served.serve(place, model)
      yield* following(place, after, receiver)
      const call = yield* receiver.arrival
      assert.strictEqual(call.requestId, untold.requestId)
      yield* call.reply({ body: "" })
      yield* isKept(place, [told.requestId, untold.requestId])
    })
  )

  it.scopedLive("is answered while its webhook fails, is away, redirects or hangs", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const receiver = yield* WebhookReceiver.make
      const served = yield* Served.serve(place, Served.asking(place))
      const warnings = yield* following(place, served, receiver)
      // Fails for a while: the same call again.
      const passing = yield* Served.question(served)
      for (const status of [500, 429, 200]) {
        const call = yield* receiver.arrival
        assert.strictEqual(call.requestId, passing.requestId)
        yield* call.reply({ status, body: "" })
      }
      yield* isKept(place, [passing.requestId])
      assert.deepStrictEqual(warnings, [])
      // A redirect is not followed, and a refusal is not tried again.
      for (const [status, headers] of [
        [307, { location: `${receiver.url}/elsewhere` }],
        [404, {}]
      ] as const) {
        const { requestId } = yield* Served.question(served)
        const call = yield* receiver.arrival
        assert.strictEqual(call.requestId, requestId)
        yield* call.reply({ status, headers, body: "" })
        yield* Served.until(
          Effect.sync(() => warnings.at(-1)),
          (said) => said?.includes(`the status ${status}`) === true
        )
      }
      // Always fails: there is an end to it.
      yield* Served.question(served)
      for (let count = 0; count < 4; count++)
        yield* Effect.flatMap(receiver.arrival, (call) => call.reply({ status: 503, body: "" }))
      yield* Served.until(
        Effect.sync(() => warnings.length),
        (count) => count === 3
      )
      // Hangs: the answer counts, and the call is given up.
      const hung = yield* Served.question(served)
      const call = yield* receiver.arrival
      assert.strictEqual((yield* served.call(`/v1/requests/${hung.requestId}/answer`, { answer: "n" })).status, 200)
      yield* call.gone
    })
  )

  it.scopedLive("is called for when nobody listens, without an end of the server", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const warnings = yield* following(place, served, { url: "http://127.0.0.1:1/secret-path" })
      const { requestId } = yield* Served.question(served)
      yield* isKept(place, [requestId])
      assert.lengthOf(warnings, 1)
      assert.include(
        warnings[0],
        "The webhook at 127.0.0.1:1 did not take that a question waits: it cannot be reached."
      )
      assert.notInclude(warnings[0], "secret-path")
    })
  )

  it.scopedLive("is called for no more when it was answered before its time", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const receiver = yield* WebhookReceiver.make
      const served = yield* Served.serve(place, Served.asking(place))
      yield* following(place, served, receiver, { after: "1 second" })
      const quick = yield* Served.question(served)
      yield* served.call(`/v1/requests/${quick.requestId}/answer`, { answer: "n" })
      const slow = yield* Served.question(served)
      const call = yield* receiver.arrival
      assert.strictEqual(call.requestId, slow.requestId)
      yield* call.reply({ body: "" })
    })
  )
})
