/** An id belongs to the words that came with it first, at each door that takes one. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "fast-check"
import * as Scope from "effect/Scope"
import * as Served from "../kit/Served.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 90_000)

const agui = (id: string, content: string) => ({
  threadId: "t",
  runId: "r",
  messages: [{ id, role: "user", content }]
})

const chat = (id: string, text: string) => ({
  id: "c",
  messages: [{ id, role: "user", parts: [{ type: "text", text }] }]
})

/** Ways to give words with an id. */
const doors: Readonly<
  Record<string, (served: Served.Served, id: string, text: string) => Effect.Effect<Served.Answer>>
> = {
  "a message": ({ call }, id, text) => call("/v1/sessions/s/messages", { id, text }),
  "a message with a header": ({ call }, id, text) =>
    call("/v1/sessions/s/messages", { text }, { "idempotency-key": id }),
  "a queued message": ({ call }, id, text) => call("/v1/sessions/s/messages", { id, text, delivery: "queue" }),
  "a run of AG-UI": ({ call }, id, text) => call("/v1/agui/s", agui(id, text)),
  "a run of the AI SDK": ({ call }, id, text) => call("/v1/ai/s", chat(id, text))
}

describe("other words under an id", () => {
  for (const [name, first] of Object.entries(doors))
    live(`that ${name} took are a conflict at each door, and the same words are not`, () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, place.script({ text: "done" }))
        yield* served.call("/v1/sessions", { id: "s" })
        assert.strictEqual((yield* first(served, "k1", "deploy to staging")).status, 200)
        for (const [again, door] of Object.entries(doors)) {
          const other = yield* door(served, "k1", "do NOT deploy")
          assert.deepStrictEqual([other.status, other.body._tag], [409, "Conflict"], again)
          assert.include(other.body.message, "k1")
          assert.strictEqual((yield* door(served, "k1", "deploy to staging")).status, 200, again)
        }
        const turns = yield* served.call("/v1/sessions/s/turns")
        assert.deepStrictEqual(
          turns.body.turns.map(({ words }: { words: string }) => words),
          ["deploy to staging"]
        )
      })
    )

  live("are a conflict after a restart, and with other files", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = place.script({ text: "done" })
      const file = (text: string) => ({
        base64: Buffer.from(text).toString("base64"),
        name: "a.txt",
        mediaType: "text/plain"
      })
      const first = yield* Scope.make()
      const before = yield* Scope.extend(Served.serve(place, model), first)
      yield* before.call("/v1/sessions", { id: "s" })
      const send = ({ call }: Served.Served, body: object) => call("/v1/sessions/s/messages", body)
      assert.strictEqual((yield* send(before, { id: "k1", text: "read", files: [file("one")] })).status, 200)
      assert.strictEqual((yield* send(before, { id: "k2", text: "only words" })).status, 200)
      yield* Scope.close(first, Exit.void)
      const served = yield* Served.serve(place, model)
      const others = [
        { id: "k1", text: "read", files: [file("two")] },
        { id: "k1", text: "read", files: [file("one"), file("one")] },
        { id: "k1", text: "read" },
        { id: "k1", text: "write", files: [file("one")] },
        { id: "k2", text: "only words", files: [file("one")] },
        { id: "k2", text: "only words " }
      ]
      for (const body of others) assert.strictEqual((yield* send(served, body)).status, 409, JSON.stringify(body))
      const same = yield* send(served, { id: "k1", text: "read", files: [file("one")] })
      assert.deepStrictEqual(same.body, { messageId: "k1", again: true })
      assert.strictEqual((yield* send(served, { id: "k2", text: "only words" })).status, 200)
    })
  )

  live("of an answer are not the answer that counted", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId } = yield* Served.question(served)
      const path = `/v1/requests/${requestId}/answer`
      const answer = (answer: unknown) => served.call(path, { answer, id: "a1" })
      assert.strictEqual((yield* answer("n")).status, 200)
      for (const same of ["n", "no", { decision: "deny", scope: "once" }])
        assert.deepStrictEqual((yield* answer(same)).body, { status: "answered", again: true }, JSON.stringify(same))
      for (const other of ["y", "never", "c: not so", { decision: "allow", scope: "once" }])
        assert.strictEqual((yield* answer(other)).status, 409, JSON.stringify(other))
      assert.strictEqual((yield* served.call(path, { answer: "n", id: "a2" })).status, 409)
    })
  )
})

describe("an id with a control character", () => {
  live("is a bad request wherever it stands", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "done" }))
      yield* served.call("/v1/sessions", { id: "s" })
      const paths = [
        ...["", "/turns", "/models", "/audit", "/events"].map((rest) => (id: string) => [`/v1/sessions/${id}${rest}`]),
        (id: string) => [`/v1/ai/s/${id}/stream`],
        (id: string) => [`/v1/ai/${id}/c/stream`],
        (id: string) => [`/v1/requests?session=${id}`],
        (id: string) => [`/v1/sessions?workspace=${id}`],
        (id: string) => [`/v1/sessions/${id}/messages`, { text: "x" }],
        (id: string) => [`/v1/requests/${id}/answer`, { answer: "y" }],
        (id: string) => [`/v1/requests/${id}/cancel`, {}],
        (id: string) => [`/v1/agui/${id}`, agui("m", "x")],
        (id: string) => ["/v1/sessions", { id: decodeURIComponent(id) }],
        (id: string) => ["/v1/sessions/s/messages", { id: decodeURIComponent(id), text: "x" }],
        (id: string) => ["/v1/agui/s", agui(decodeURIComponent(id), "x")],
        (id: string) => ["/v1/ai/s", chat(decodeURIComponent(id), "x")]
      ] as ReadonlyArray<(id: string) => readonly [path: string, body?: object]>
      const ids = ["%00", "s%00", "%00s", "a%0Ab", "%1b%5B2J", "%7f"]
      for (const at of paths)
        for (const id of ids) {
          const [path, body] = at(id)
          assert.strictEqual((yield* served.call(path, body)).status, 400, JSON.stringify([path, body]))
        }
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.string({ minLength: 1, maxLength: 8, unit: "binary-ascii" }), (id) =>
            Effect.runPromise(
              Effect.map(served.call(`/v1/sessions/${encodeURIComponent(id)}/turns`), ({ status }) =>
                // oxlint-disable-next-line no-control-regex
                assert.strictEqual(status === 400, /[\u0000-\u001f\u007f]/.test(id), JSON.stringify([id, status]))
              )
            )
          ),
          { numRuns: 200 }
        )
      )
    })
  )
})
