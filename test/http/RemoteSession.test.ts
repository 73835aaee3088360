/** A session that another process serves, over real HTTP. */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as fs from "node:fs"
import { RequestId } from "../../src/core/Id.js"
import type { AgentEvent } from "../../src/event/AgentEvent.js"
import * as ApiClient from "../../src/http/ApiClient.js"
import * as RemoteSession from "../../src/http/RemoteSession.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import type { Service } from "../../src/interaction/InteractorPort.js"
import * as Served from "../kit/Served.js"

/** The session as a terminal has it, with what it was told. */
const attach = ({ token, url }: Pick<Served.Served, "token" | "url">, id: string) =>
  Effect.gen(function* () {
    const client = yield* ApiClient.make({ url, token: Effect.succeed(Redacted.make(token)) })
    const said: Array<string> = []
    const heard: Array<string> = []
    const session = yield* RemoteSession.attach({
      client,
      id,
      say: (line) => Effect.sync(() => said.push(line)),
      heard: (words) => Effect.sync(() => heard.push(words))
    })
    const events: Array<AgentEvent> = []
    yield* Effect.forkScoped(Stream.runForEach(session.events.stream, (event) => Effect.sync(() => events.push(event))))
    return { session, said, heard, events, tags: () => events.map(({ _tag }) => _tag) }
  }).pipe(Effect.provide(FetchHttpClient.layer))

/** A person who answers with this once `ready`, and notes what was asked and how it ended. */
const person = (id: string, answer: Effect.Effect<unknown, InteractionCancelled>) => {
  const asked: Array<string> = []
  const ends: Array<string> = []
  const service = {
    id,
    relay: false,
    request: (request: { readonly requestId: string }, options?: { readonly ended?: () => unknown }) =>
      Effect.sync(() => asked.push(request.requestId)).pipe(
        Effect.zipRight(answer),
        Effect.map((answer) => ({ answer })),
        Effect.onInterrupt(() => Effect.sync(() => ends.push(JSON.stringify(options?.ended?.()))))
      )
    // The answer fits what is asked in these tests.
  } as unknown as Service
  return { service, asked, ends }
}

const yes = { decision: "allow", scope: "once" }
const soon = <A>(look: () => A, holds: (value: A) => boolean) => Served.until(Effect.sync(look), holds)

describe("a session of another process", () => {
  it.scopedLive("is driven as one of this process, to the end of its turn", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      yield* served.call("/v1/sessions", { id: "one" })
      const { events, heard, session, tags } = yield* attach(served, "one")
      const other = yield* attach(served, "one")
      const ada = person("ada", Effect.succeed(yes))
      yield* session.attach(ada.service)
      assert.isTrue(yield* session.isIdle)
      yield* session.send("go")
      const end = yield* session.awaitIdle
      assert.deepInclude(Option.getOrThrow(end), { _tag: "Completed", text: "done" })
      yield* soon(tags, (all) => all.includes("TurnEnded"))
      assert.lengthOf(ada.asked, 1)
      yield* soon(other.tags, (all) => all.includes("TurnEnded"))
      assert.deepStrictEqual([heard, other.heard], [[], ["go"]])
      assert.include(events.flatMap((event) => (event._tag === "TextDelta" ? [event.text] : [])).join(""), "done")
      assert.deepStrictEqual((yield* session.permissions.status).mode, "ask")
      yield* session.permissions.setMode("plan")
      yield* Served.until(session.permissions.status, ({ mode }) => mode === "plan")
      assert.strictEqual((yield* session.agents).length, 1)
    })
  )

  it.scopedLive("closes a question that somebody else answered, and names them", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      const one = yield* attach(served, sessionId)
      const two = yield* attach(served, sessionId)
      const [ada, bob] = [person("ada", Effect.never), person("bob", Effect.never)]
      yield* one.session.attach(ada.service)
      yield* two.session.attach(bob.service)
      yield* soon(
        () => [...ada.asked, ...bob.asked],
        (all) => all.length === 2
      )
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      yield* soon(
        () => [one.said, two.said].map((all) => all.join()),
        (all) => all.every((text) => text === "The question was answered by ada.")
      )
      assert.deepStrictEqual(
        [...ada.ends, ...bob.ends].map((end) => JSON.parse(end)),
        [1, 2].map(() => ({ status: "answered", by: "ada" }))
      )
    })
  )

  it.scopedLive("tells a late answer who won, and leaves a question open whose asking ended without a decision", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      const { said, session } = yield* attach(served, sessionId)
      const eof = person("eof", Effect.fail(new InteractionCancelled({ requestId: RequestId.make(requestId) })))
      yield* session.attach(eof.service)
      yield* soon(
        () => eof.asked,
        (all) => all.length === 1
      )
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
      const ready = yield* Deferred.make<void>()
      // It does not hear the end: as an answer that is on its way already.
      const slow = person("slow", Effect.uninterruptible(Effect.as(Deferred.await(ready), yes)))
      yield* session.attach(slow.service)
      yield* soon(
        () => slow.asked,
        (all) => all.length === 1
      )
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "y" })
      yield* Deferred.succeed(ready, undefined)
      yield* soon(
        () => said.join(),
        (text) => /answered/.test(text)
      )
      assert.match(said.join(), /The question was answered by ada\.|Too late: ada answered first\./)
    })
  )

  it.scopedLive("says what a key may not answer, and the question stays open", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const people = { ada: { name: "ada" }, bob: { name: "bob", may: ["read", "answer:Ask"] as const } }
      const served = yield* Served.serve(place, Served.asking(place), { people })
      const asAda = { authorization: "Bearer ada" }
      yield* served.call("/v1/sessions", { id: "s" }, asAda)
      yield* served.call("/v1/sessions/s/messages", { text: "go" }, asAda)
      const { body } = yield* Served.until(
        served.call("/v1/sessions/s", undefined, asAda),
        ({ body }) => body.open.length > 0
      )
      const { said, session } = yield* attach({ url: served.url, token: "bob" }, "s")
      yield* session.attach(person("bob", Effect.succeed(yes)).service)
      yield* soon(
        () => said.join(),
        (text) => text.includes('"answer" for a request of the kind Approve')
      )
      assert.deepStrictEqual((yield* served.call("/v1/sessions/s", undefined, asAda)).body.open, body.open)
    })
  )

  it.scopedLive("withdraws what a person withdraws, and leaving withdraws nothing", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { session } = yield* attach(served, sessionId)
          const gone = person("gone", Effect.never)
          yield* session.attach(gone.service)
          yield* soon(
            () => gone.asked,
            (all) => all.length === 1
          )
        })
      )
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
      const { session } = yield* attach(served, sessionId)
      yield* session.attach(
        person("no", Effect.fail(new InteractionCancelled({ requestId: RequestId.make(requestId), by: "no" }))).service
      )
      yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === 0)
    })
  )

  it.scopedLive("connects again after the server, and sends an answer until the server has it", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const [ready, ending] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const port = yield* Effect.scoped(
        Effect.map(Served.serve(place, Served.asking(place)), ({ url }) => Number(new URL(url).port))
      )
      const first = yield* Effect.fork(
        Effect.scoped(
          Effect.gen(function* () {
            const served = yield* Served.serve(place, Served.asking(place), { port })
            yield* Served.question(served, { id: "one" })
            yield* Deferred.succeed(ready, undefined)
            yield* Deferred.await(ending)
            yield* served.end
          })
        )
      )
      yield* Deferred.await(ready)
      const token = fs.readFileSync(place.at("config", "serve-token"), "utf8").trim()
      const { said, session, tags } = yield* attach({ url: `http://127.0.0.1:${port}`, token }, "one")
      const answered = yield* Deferred.make<unknown>()
      const ada = person("ada", Deferred.await(answered))
      yield* session.attach(ada.service)
      yield* soon(
        () => ada.asked,
        (all) => all.length === 1
      )
      yield* Deferred.succeed(ending, undefined)
      yield* Fiber.join(first)
      yield* soon(
        () => said,
        (all) => all.includes("The server ends. Assent connects again when it is back.")
      )
      yield* Deferred.succeed(answered, yes)
      yield* soon(
        () => said,
        (all) => all.includes("The server does not take the answer now. Assent sends it again.")
      )
      yield* Served.serve(place, Served.asking(place), { port })
      yield* soon(tags, (all) => all.includes("TurnEnded"))
      assert.include(said, "Connected again.")
      assert.lengthOf(ada.asked, 1)
    })
  )
})
