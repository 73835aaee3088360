/** Bodies on their way: whose they are is asked first, and nobody takes the room of the others. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as net from "node:net"
import type * as Api from "../../src/http/Api.js"
import * as LongJson from "../../src/http/LongJson.js"
import * as Share from "../../src/http/Share.js"
import * as Served from "../kit/Served.js"
import * as VirtualClock from "../kit/VirtualClock.js"

interface Sender {
  readonly status: () => number | undefined
  readonly isClosed: () => boolean
  readonly write: (text: string) => void
}

/** A connection that has sent these bytes, and what came back. */
const sender = (url: string, bytes: string | Buffer) =>
  Effect.acquireRelease(
    Effect.async<Sender & { readonly end: () => void }>((resume) => {
      const { hostname, port } = new URL(url)
      let text = ""
      const socket = net.connect(Number(port), hostname, () => {
        socket.write(bytes)
        resume(
          Effect.succeed({
            status: () => Number(/HTTP\/1\.1 ([2-5]\d\d)/.exec(text)?.[1]) || undefined,
            isClosed: () => socket.destroyed,
            write: (more) => void socket.write(more),
            end: () => void socket.destroy()
          })
        )
      })
      socket.on("data", (data) => (text += String(data)))
      socket.on("error", () => {})
    }),
    ({ end }) => Effect.sync(end)
  )

const head = (url: string, path: string, headers: Readonly<Record<string, string>>) =>
  [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    "Content-Type: application/json",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "\r\n"
  ].join("\r\n")

const million = 1_048_576

const served = (people?: Readonly<Record<string, Api.Person>>) =>
  Effect.gen(function* () {
    const place = yield* Served.place
    return yield* Served.serve(place, place.script({ text: "done" }), people === undefined ? {} : { people })
  })

describe("a body without a token", () => {
  const strangers: Readonly<Record<string, readonly [path: string, headers: Readonly<Record<string, string>>]>> = {
    "with its length": ["/v1/agui/x", { "Content-Length": String(4 * million) }],
    "in chunks": ["/v1/ai/x", { "Transfer-Encoding": "chunked" }],
    "with a wrong token": ["/v1/sessions", { Authorization: "Bearer wrong", "Content-Length": String(million) }],
    "for a path that is not there": ["/v1/nothing", { "Content-Length": String(4 * million) }],
    "for a path that takes none": ["/metrics", { "Content-Length": String(4 * million) }]
  }
  it.scopedLive.each(Object.entries(strangers))(
    "%s is refused at once, and its connection is closed",
    ([, [path, headers]]) =>
      Effect.gen(function* () {
        const { call, url } = yield* served()
        const begin = head(url, path, headers)
        const chunk = "Transfer-Encoding" in headers ? `10000\r\n${" ".repeat(65_536)}\r\n` : " ".repeat(65_536)
        const all = yield* Effect.forEach(Array.from({ length: 50 }), () => sender(url, begin + chunk), {
          concurrency: "unbounded"
        })
        yield* Served.until(
          Effect.sync(() => all.filter((one) => one.isClosed()).length),
          (closed) => closed === all.length
        )
        const statuses = all.map((one) => one.status()).filter((status) => status !== undefined)
        assert.isNotEmpty(statuses)
        assert.includeMembers([401, 404, 405], statuses)
        assert.strictEqual((yield* call("/v1/sessions")).status, 200)
      })
  )

  it.scopedLive("that is short leaves its connection open for the next request", () =>
    Effect.gen(function* () {
      const { url } = yield* served()
      const one = yield* sender(url, `${head(url, "/v1/sessions", { "Content-Length": "2" })}{}`)
      yield* Served.until(Effect.sync(one.status), (status) => status === 401)
      assert.isFalse(one.isClosed())
    })
  )
})

describe("bodies on their way", () => {
  it.scopedLive("are no more than a quarter of the room for one caller, and others have theirs", () =>
    Effect.gen(function* () {
      const people = { ann: { name: "ann" }, bob: { name: "bob" }, "ann-2": { name: "ann" } }
      const { call, url } = yield* served(people)
      const begun = (
        by: string,
        headers: Readonly<Record<string, string>> = { "Content-Length": String(4 * million) }
      ) => sender(url, head(url, "/v1/agui/x", { Authorization: `Bearer ${by}`, ...headers }))
      const as = (by: string) => call("/v1/sessions", {}, { authorization: `Bearer ${by}` })
      const four = yield* Effect.forEach([1, 2, 3, 4], () => begun("ann"))
      // Another key of the same person, and a body whose length nobody knows.
      const fifth = yield* begun("ann-2", { "Transfer-Encoding": "chunked" })
      yield* Served.until(Effect.sync(fifth.status), (status) => status === 429)
      assert.strictEqual((yield* as("ann")).status, 429)
      assert.strictEqual((yield* as("bob")).status, 200)
      assert.deepStrictEqual(
        four.map((one) => one.status()),
        [undefined, undefined, undefined, undefined]
      )
      four[0]?.write(" ".repeat(4 * million))
      yield* Served.until(as("ann"), ({ status }) => status === 200)
    })
  )

  it.scoped("have their time", () =>
    Effect.gen(function* () {
      const { advance, clock } = VirtualClock.make()
      const { token, url } = yield* Effect.withClock(served(), clock)
      const one = yield* sender(
        url,
        `${head(url, "/v1/sessions", { Authorization: `Bearer ${token}`, "Content-Length": "100" })}{`
      )
      const seen = Effect.zipRight(advance(1_000), Effect.sync(one.status))
      yield* Effect.withClock(Effect.repeat(seen, { until: (status) => status !== undefined }), clock)
      assert.strictEqual(one.status(), 408)
    })
  )
})

describe("a share", () => {
  it("never gives a caller more than the own part or than is left for the others, and gets all of it back", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d", "e"), fc.integer({ min: 1, max: 20 }), fc.boolean()), {
          maxLength: 60
        }),
        (steps) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const share = Share.make({ all: 64, each: 16 })
              const own = new Map<string, number>()
              const run = (rest: typeof steps): Effect.Effect<void> => {
                const [step, ...others] = rest
                if (step === undefined) return Effect.void
                const [name, amount, isKept] = step
                const sum = [...own.values()].reduce((all, one) => all + one, 0)
                const mine = own.get(name) ?? 0
                return Effect.scoped(
                  Effect.gen(function* () {
                    const outcome = yield* Effect.either(share.hold({ name }, amount))
                    const fits = mine + amount <= 16 && (mine === 0 ? amount : mine + amount) <= 64 - sum
                    assert.strictEqual(Either.isRight(outcome), fits)
                    if (fits) own.set(name, mine + amount)
                    if (isKept) yield* run(others)
                    own.set(name, mine)
                  })
                ).pipe(Effect.zipRight(isKept ? Effect.void : run(others)))
              }
              yield* run(steps)
              assert.strictEqual(share.held(), 0)
            })
          )
      )
    ))
})

describe("long JSON", () => {
  const parse = (text: string) =>
    Effect.scoped(Effect.flatMap(LongJson.make, ({ parse }) => Effect.either(parse(Buffer.from(text)))))

  it.live("is the same value as at once", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.json({ maxDepth: 8 }), (text) =>
          Effect.runPromise(
            Effect.map(parse(text), (found) => assert.deepStrictEqual(found, Either.right(JSON.parse(text))))
          )
        ),
        { numRuns: 30 }
      )
    )
  )

  it.live("is refused if it is deep, has very many values, or is no JSON; and the next one is read", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { parse } = yield* LongJson.make
        const texts: ReadonlyArray<readonly [text: string, says: RegExp]> = [
          ["[".repeat(4_000_000), /64 levels deep/],
          [`${"[".repeat(65)}${"]".repeat(65)}`, /64 levels deep/],
          [`[${"0,".repeat(2_000_000)}0]`, /100000 values/],
          [`[${"{},".repeat(200_000)}{}]`, /100000 values/],
          [`{"a": "${"[".repeat(1_000)}`, /not JSON/],
          ["nothing", /not JSON/],
          ["", /not JSON/]
        ]
        const outcomes = yield* Effect.forEach(texts, ([text]) => Effect.either(parse(Buffer.from(text))), {
          concurrency: "unbounded"
        })
        for (const [at, outcome] of outcomes.entries()) {
          const why = Either.isLeft(outcome) ? outcome.left : assert.fail(texts[at]?.[0].slice(0, 20))
          assert.match(typeof why === "string" ? why : why.message, texts[at]?.[1] ?? /-/)
        }
        const text = JSON.stringify({ text: `"[{\\${"x".repeat(1_000_000)}` })
        assert.deepStrictEqual(yield* parse(Buffer.from(text)), JSON.parse(text))
      })
    )
  )
})
