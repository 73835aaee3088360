/** Streams of callers that no longer count: each ends, and says why. */
import { assert, describe, it } from "@effect/vitest"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Api from "../../src/http/Api.js"
import * as Parting from "../../src/http/Parting.js"
import * as RouteTable from "../../src/http/RouteTable.js"
import * as Token from "../../src/http/Token.js"
import * as Served from "../kit/Served.js"
import * as VirtualClock from "../kit/VirtualClock.js"

/** What stays open until it is cut: its text so far, and whether it is over. */
const open = (url: string, path: string, by: string, body?: object) =>
  Effect.map(
    Effect.promise(async () => {
      const answer = await fetch(`${url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${by}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const stream = { status: answer.status, text: "", isOver: false }
      void answer.body
        ?.pipeThrough(new TextDecoderStream())
        .pipeTo(
          new WritableStream({
            write: (text) => void (stream.text += text),
            close: () => void (stream.isOver = true)
          })
        )
        .catch(() => {})
      return stream
    }),
    (stream) => stream
  )

/** A server in a time of its own, with a session that waits for a person. */
const started = (people: Record<string, Api.Person>) =>
  Effect.gen(function* () {
    const virtual = VirtualClock.make()
    const place = yield* Served.place
    const served = yield* Effect.withClock(Served.serve(place, Served.asking(place), { people }), virtual.clock)
    const call = (path: string, body?: object) => served.call(path, body, { authorization: "Bearer operator" })
    yield* call("/v1/sessions", { id: "s" })
    yield* call("/v1/sessions/s/messages", { text: "go", id: "m1" })
    yield* Served.until(
      Effect.zipRight(virtual.advance(100), call("/v1/sessions/s")),
      ({ body }) => body.open.length > 0
    )
    return { place, served, call, advance: virtual.advance }
  })

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 90_000)

/** Each path that stays open, so that a path which is new is here too. */
const streams = RouteTable.doors.filter(({ rule }) => rule.stream)

const agui = { threadId: "t", runId: "r", messages: [] }
const chat = { id: "c", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "go" }] }] }

/** A run ends at the question of its session, so its stream is read while the session works. */
const working = (place: Served.Place) => place.script({ tools: [{ name: "run_command", params: { command: "true" } }] })

describe("a stream", () => {
  const changes: Readonly<
    Record<string, readonly [change: (people: Record<string, Api.Person>) => void, says: RegExp]>
  > = {
    "whose key is revoked": [(people) => void delete people["leaver"], /Nobody\. This stream ends/],
    "whose key is another person's": [(people) => void (people["leaver"] = { name: "somebody" }), /another person's/],
    "whose key may less": [
      (people) => void (people["leaver"] = { name: "leaver", may: ["cancel"] }),
      /does not permit \\"read\\"/
    ],
    "whose key is of a tenant now": [
      (people) => void (people["leaver"] = { name: "leaver", tenant: "a" }),
      /another person's/
    ]
  }
  for (const [name, [change, says]] of Object.entries(changes))
    live(`${name} ends within 10 seconds and says why, and the others go on`, () =>
      Effect.gen(function* () {
        const people: Record<string, Api.Person> = {
          operator: { name: "operator" },
          leaver: { name: "leaver" },
          stays: { name: "stays" }
        }
        const { advance, call, served } = yield* started(people)
        const paths = ["/v1/events", "/v1/sessions/s/events"]
        const gone = yield* Effect.forEach(paths, (path) => open(served.url, path, "leaver"))
        const kept = yield* Effect.forEach(paths, (path) => open(served.url, path, "stays"))
        yield* Served.until(
          Effect.sync(() => gone.map(({ text }) => text)),
          (texts) => texts.every((text) => text !== "")
        )
        change(people)
        yield* Served.until(
          Effect.as(
            advance(1_000),
            gone.map(({ isOver }) => isOver)
          ).pipe(Effect.map(() => gone.every(({ isOver }) => isOver))),
          (all) => all
        )
        for (const { text } of gone) {
          assert.match(text, says)
          assert.match(text, /event: unauthorized\ndata: .*\n\n$/)
        }
        yield* call("/v1/sessions/s/mode", { mode: "plan" })
        for (const one of kept) assert.isFalse(one.isOver)
        for (const { text } of gone) assert.notInclude(text, '"plan"')
      })
    )

  live("of a page ends in the page's own words", () =>
    Effect.gen(function* () {
      const virtual = VirtualClock.make()
      const people: Record<string, Api.Person> = { operator: { name: "operator" }, leaver: { name: "leaver" } }
      const place = yield* Served.place
      const model = place.script({ text: "a long word", delay: "1 hour" })
      const served = yield* Effect.withClock(Served.serve(place, model, { people }), virtual.clock)
      const as = { authorization: "Bearer operator" }
      for (const id of ["s", "t"]) yield* served.call("/v1/sessions", { id }, as)
      const one = yield* open(served.url, "/v1/agui/s", "leaver", {
        ...agui,
        messages: [{ id: "m1", role: "user", content: "go" }]
      })
      const two = yield* open(served.url, "/v1/ai/t", "leaver", chat)
      const three = yield* open(served.url, "/v1/ai/t/c/stream", "leaver")
      const all = [one, two, three]
      assert.deepStrictEqual(
        all.map(({ status }) => status),
        [200, 200, 200]
      )
      delete people["leaver"]
      yield* Served.until(Effect.as(virtual.advance(1_000), all), (all) => all.every(({ isOver }) => isOver))
      assert.match(one.text, /"type":"RUN_ERROR","message":"Nobody\. This stream ends\."/)
      for (const { text } of [two, three])
        assert.match(text, /"type":"error","errorText":"Nobody\. This stream ends\."/)
    })
  )

  live("of a token that was rotated ends, and the next token has one", () =>
    Effect.gen(function* () {
      const virtual = VirtualClock.make()
      const place = yield* Served.place
      const served = yield* Effect.withClock(Served.serve(place, working(place)), virtual.clock)
      const one = yield* open(served.url, "/v1/events", served.token)
      yield* Token.rotate(place.at("config", "serve-token"))
      yield* Served.until(Effect.as(virtual.advance(1_000), one), ({ isOver }) => isOver)
      assert.include(one.text, "event: unauthorized")
      const next = yield* Token.open(place.at("config", "serve-token"))
      assert.isTrue(yield* Effect.flatMap(next.value, next.isIt))
    })
  )

  const looks: Readonly<
    Record<string, readonly [look: Effect.Effect<Api.Person, Api.Unavailable>, ends: number | undefined]>
  > = {
    "nobody answers for": [Effect.never, 39],
    "the database cannot say": [new Api.Unavailable({ message: "not now" }), 30],
    "a defect ends": [Effect.die("broken"), 30],
    "somebody still has": [Effect.succeed({ name: "ann" }), undefined]
  }
  for (const [name, [look, ends]] of Object.entries(looks))
    it.effect(`whose key ${name} ends after three looks, if at all`, () =>
      Effect.gen(function* () {
        const { advance, clock, now } = VirtualClock.make()
        const rule = RouteTable.doors[0]?.rule ?? assert.fail("no door")
        const request = HttpServerRequest.fromWeb(
          new Request("http://x.example", { headers: { authorization: "Bearer k" } })
        )
        const ended = Parting.ofCaller({ token: () => look }, { name: "ann" }, rule).pipe(
          Effect.map((parting) => [parting.event, now() / 1_000]),
          Effect.provideService(HttpServerRequest.HttpServerRequest, request),
          Effect.provideService(HttpServerRequest.ParsedSearchParams, {}),
          Effect.scoped,
          // Nobody asks for the rest of a route.
          Effect.mapInputContext(
            (context: Context.Context<never>) => context as Context.Context<HttpRouter.RouteContext>
          ),
          Effect.withClock(clock)
        )
        const fiber = yield* Effect.fork(ended)
        yield* advance(300_000)
        const exit = yield* fiber.poll
        assert.deepStrictEqual(
          Option.getOrUndefined(exit),
          ends === undefined ? undefined : Exit.succeed(["unauthorized", ends])
        )
        yield* Fiber.interrupt(fiber)
      })
    )

  it("knows each path that stays open", () =>
    assert.deepStrictEqual(streams.map(({ path }) => path).sort(), [
      "/v1/agui/:sessionId",
      "/v1/ai/:sessionId",
      "/v1/ai/:sessionId/:chatId/stream",
      "/v1/events",
      "/v1/sessions/:sessionId/events"
    ]))
})
