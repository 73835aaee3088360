/**
 * What people began at a node that ends in the middle of it: forks, files, exports, questions of tool servers and of agents of
 * others. One cluster plays all stories at once: first one of its nodes is killed, and later another one ends gently.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Cluster from "../kit/Cluster.js"
import * as Postgres from "../kit/Postgres.js"
import * as Program from "../kit/Program.js"
import * as WebhookReceiver from "../kit/WebhookReceiver.js"

interface Place extends Cluster.Cluster {
  /** The node that ends. */
  readonly owner: Cluster.Node
  /** Those that live on; the same one if there is one. */
  readonly other: Cluster.Node
  readonly third: Cluster.Node
  /** What tool servers and agents of others did, line by line, on all nodes. */
  readonly log: (name: string) => ReadonlyArray<string>
  /** The command line, over the database. */
  readonly assent: (...args: ReadonlyArray<string>) => Effect.Effect<string, Cluster.Failed>
  readonly program: Program.Place
}

/** Goes on until its node may end, and yields what has to come true after that. */
type Story = (place: Place, id: string) => Effect.Effect<Effect.Effect<void, unknown>, unknown>

// -----------------------------------------------------------------------------------------------------------------
// parts of stories
// -----------------------------------------------------------------------------------------------------------------

const send = ({ call }: Cluster.Node, id: string, text: string, files?: ReadonlyArray<object>) =>
  Effect.flatMap(
    Cluster.asking(call(`/v1/sessions/${id}/messages`, { text, ...(files && { files }) })),
    ({ body, status }) => (status === 200 ? Effect.void : new Cluster.Failed({ message: JSON.stringify(body) }))
  )

const idle = ({ call }: Cluster.Node, id: string) =>
  Cluster.until(
    call(`/v1/sessions/${id}`),
    ({ body }) =>
      body?.open?.length === 0 && (body.status === "idle" || body.agents?.every((one: any) => one.isIdle) === true)
  )

/** Says it, and waits for the end of the turn. */
const say = (node: Cluster.Node, id: string, text: string) =>
  Effect.gen(function* () {
    const { body } = yield* node.call(`/v1/sessions/${id}`)
    yield* send(node, id, text)
    yield* Cluster.until(node.call(`/v1/sessions/${id}`), (found) => found.body?.turns > (body?.turns ?? 0))
    yield* idle(node, id)
  })

const answer = ({ call }: Cluster.Node, request: string, given: object, by?: string) =>
  Cluster.asking(call(`/v1/requests/${request}/answer`, given, by))

/** The journal, as text. */
const journal = ({ sql }: Cluster.Cluster, id: string) =>
  Effect.map(sql<{ readonly body: string }>`SELECT body FROM assent_entry WHERE root = ${id} ORDER BY seq`, (rows) =>
    rows.map(({ body }) => body).join("\n")
  )

const ran = ({ runs }: Cluster.Cluster, id: string, tool: string) =>
  Effect.map(runs(id), (found) => found.filter((one) => one.tool === tool).length)

/** The question that a session has now, which has to be another one. */
const askedAnew = ({ call }: Cluster.Node, id: string, before: string) =>
  Effect.map(
    Cluster.until(call(`/v1/sessions/${id}`), ({ body }) => body?.open?.length === 1 && body.open[0] !== before),
    ({ body }) => String(body.open[0])
  )

/** An answer that comes too late hears so. Nobody has settled the request. */
const withdrawn = (node: Cluster.Node, request: string, given: object) =>
  Effect.map(answer(node, request, given), ({ body, status }) =>
    assert.deepStrictEqual(
      [status, body._tag, body.message],
      [409, "InteractionAlreadyAnswered", `Request ${request} was withdrawn. No call waits for an answer to it.`]
    )
  )

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

/** An image with these words at its end, as the API takes it, and as the model tells of it. */
const image = (words: string) => {
  const bytes = Buffer.concat([pixel, Buffer.from(words)])
  const name = `${words}.png`
  return {
    file: { base64: bytes.toString("base64"), name, mediaType: "image/png" },
    seen: `${name} ${createHash("sha256").update(bytes).digest("hex")}`
  }
}

// -----------------------------------------------------------------------------------------------------------------
// stories
// -----------------------------------------------------------------------------------------------------------------

const stories: Readonly<Record<string, Story>> = {
  "asks again what a tool server of 2026 asked, and takes an answer that came while nobody had the session": (
    { log, other, owner, third },
    id
  ) =>
    Effect.gen(function* () {
      yield* send(owner, id, "modern")
      const request = yield* Cluster.asked(other, id)
      return Effect.gen(function* () {
        const given = { form: { region: id }, id: "one" }
        const first = yield* answer(third, request, given)
        assert.deepStrictEqual([first.status, first.body.status], [200, "answered"], JSON.stringify(first))
        const again = yield* answer(other, request, given)
        assert.deepStrictEqual(again.body, { status: "answered", again: true })
        const late = yield* answer(other, request, { form: { region: "us" } }, "ben")
        assert.deepStrictEqual([late.status, late.body.winner], [409, "ann"])
        yield* idle(other, id)
        assert.deepStrictEqual(
          log("modern").filter((line) => line.includes(`"${id}"`)),
          [`prod state of prod {"action":"accept","content":{"region":"${id}"}}`]
        )
      })
    }),

  "withdraws what a tool server of 2025 asked, and says so to the model and to a late answer": (place, id) =>
    Effect.gen(function* () {
      const { other, owner, third } = place
      yield* send(owner, id, "legacy")
      const request = yield* Cluster.asked(other, id)
      return Effect.gen(function* () {
        yield* idle(other, id)
        const entries = yield* journal(place, id)
        assert.include(entries, '"outcome":"interrupted"')
        assert.include(entries, '"text":"done"')
        yield* withdrawn(third, request, { form: { name: "x" } })
        const { body } = yield* other.call(`/v1/requests?session=${id}`)
        assert.deepStrictEqual(body.requests, [])
      })
    }),

  "withdraws the question about a call of an agent of others, which gets its task again and asks anew": (place, id) =>
    Effect.gen(function* () {
      const { log, other, owner, third } = place
      yield* send(owner, id, `leave ${id}`)
      const request = yield* Cluster.asked(other, id)
      return Effect.gen(function* () {
        const anew = yield* askedAnew(other, id, request)
        yield* withdrawn(third, request, { answer: "y" })
        const { body } = yield* answer(third, anew, { answer: "y" })
        assert.strictEqual(body.status, "answered", JSON.stringify(body))
        yield* idle(other, id)
        assert.include(yield* journal(place, id), "so the call was not made.")
        const ended = log("acp").filter((line) => line.includes(id) && !line.startsWith("heard"))
        assert.strictEqual(ended.length, 1, ended.join())
        assert.match(String(ended[0]), /^yes to "Your process ended in the middle of this task\./)
      })
    }),

  "withdraws the form of an agent of others, which asks anew": ({ log, other, owner, third }, id) =>
    Effect.gen(function* () {
      yield* send(owner, id, `form ${id}`)
      const request = yield* Cluster.asked(other, id)
      return Effect.gen(function* () {
        const anew = yield* askedAnew(other, id, request)
        yield* withdrawn(third, request, { form: { region: "eu" } })
        const { body } = yield* answer(third, anew, { form: { region: "eu" } })
        assert.strictEqual(body.status, "answered", JSON.stringify(body))
        yield* idle(other, id)
        // The process of a node that ends gently hears that its form is cancelled, and no answer.
        assert.deepStrictEqual(
          log("acp").filter((line) => line.includes(id) && !/^(?:heard|\{"action":"cancel"\})/.test(line)),
          [`{"action":"accept","content":{"region":"eu"}} to "form ${id}"`]
        )
      })
    }),

  "forks and rewinds a session whose node has ended, beside its open question": (place, id) =>
    Effect.gen(function* () {
      const { other, owner, sql, third } = place
      yield* say(other, id, "talk")
      yield* say(other, id, "two")
      yield* send(owner, id, "three")
      const request = yield* Cluster.asked(other, id)
      return Effect.gen(function* () {
        // Nobody has it now.
        const fork = (turn?: number) => third.call(`/v1/sessions/${id}/fork`, turn === undefined ? {} : { turn })
        const one = yield* fork(1)
        assert.deepStrictEqual([one.status, one.body.turn, one.body.words], [200, 1, "two"], JSON.stringify(one))
        const last = yield* fork()
        assert.deepStrictEqual([last.status, last.body.turn, last.body.words], [200, 2, "three"], JSON.stringify(last))
        const start = yield* fork(0)
        assert.deepStrictEqual([start.status, start.body.words], [200, "talk"], JSON.stringify(start))
        const { body, status } = yield* fork(7)
        assert.deepStrictEqual([status, body._tag], [422, "Unprocessable"], JSON.stringify(body))
        // Rewound: its last words are said otherwise in the fork, and the question of the origin is cancelled.
        yield* send(other, last.body.sessionId, "otherwise")
        const anew = yield* Cluster.asked(third, last.body.sessionId)
        assert.notStrictEqual(anew, request)
        const agreed = yield* answer(other, anew, { answer: "y" })
        assert.strictEqual(agreed.body.status, "answered", JSON.stringify(agreed))
        yield* idle(third, last.body.sessionId)
        assert.strictEqual(yield* ran(place, last.body.sessionId, "deploy"), 1)
        yield* say(other, one.body.sessionId, "else")
        assert.include(yield* journal(place, one.body.sessionId), '"text":"second"')
        // The origin waits as before, under the same id.
        assert.strictEqual(yield* Cluster.asked(third, id, 60_000), request)
        assert.strictEqual(yield* ran(place, id, "deploy"), 0)
        const stopped = yield* Cluster.asking(other.call(`/v1/sessions/${id}/interrupt`, {}))
        assert.strictEqual(stopped.status, 200)
        yield* idle(third, id)
        assert.strictEqual(yield* ran(place, id, "deploy"), 0)
        const turns = yield* Cluster.asking(third.call(`/v1/sessions/${id}/turns`))
        assert.strictEqual(turns.body.turns.length, 3)
        const origins = yield* sql<{ readonly body: string }>`
          SELECT body FROM assent_entry WHERE tag = 'SessionOpened' AND body LIKE ${`%"forkOf":{"rootSessionId":"${id}"%`}`
        assert.strictEqual(origins.length, 3)
      })
    }),

  "shows the model files that came through another node, and those of a fork": (place, id) =>
    Effect.gen(function* () {
      const { other, owner, third } = place
      const [before, meanwhile] = [image(`a.${id}`), image(`b.${id}`)]
      yield* send(other, id, "read", [before.file])
      yield* Cluster.until(ran(place, id, "nap begins"), (count) => count === 1)
      yield* send(third, id, "and this", [meanwhile.file])
      assert.strictEqual((yield* owner.call(`/v1/sessions/${id}`)).body.open.length, 0)
      return Effect.gen(function* () {
        const seen = `sees ${before.seen},${meanwhile.seen}`
        yield* Cluster.until(journal(place, id), (entries) => entries.includes(seen), 60_000)
        yield* idle(other, id)
        assert.strictEqual(yield* ran(place, id, "nap begins"), 1)
        const forked = yield* Cluster.asking(other.call(`/v1/sessions/${id}/fork`, {}))
        assert.strictEqual(forked.status, 200, JSON.stringify(forked))
        yield* say(third, forked.body.sessionId, "again")
        assert.include(yield* journal(place, forked.body.sessionId), seen)
      })
    }),

  "exports the same before and after, also to a store of another program": (place, id) =>
    Effect.gen(function* () {
      const { assent, other, owner, program, third } = place
      const { file, seen } = image(`c.${id}`)
      yield* send(owner, id, "talk", [file])
      yield* idle(other, id)
      yield* say(other, id, "two")
      yield* send(owner, id, "three")
      const request = yield* Cluster.asked(other, id)
      const exported = Effect.map(assent("sessions", "export", id), (text) => JSON.parse(text))
      const before = yield* exported
      return Effect.gen(function* () {
        assert.strictEqual(yield* Cluster.asked(third, id, 60_000), request)
        const after = yield* exported
        assert.deepStrictEqual(after.entries.slice(0, before.entries.length), before.entries)
        assert.deepStrictEqual(after.contents, before.contents)
        assert.strictEqual(before.contents.length, 1)
        assert.include(seen, before.contents[0].sha256)
        const written = yield* program.write(`${id}.json`, after)
        const store = program.path(`${id}.db`)
        const taken = yield* program.call(["sessions", "import", written, "--store", store])
        assert.match(taken.stdout, new RegExp(`was ${id}`), taken.stderr)
        const shown = yield* program.call(["sessions", "show", taken.stdout.split(" ")[0] ?? "", "--store", store])
        assert.include(shown.stdout, "second", shown.stderr)
        yield* answer(third, request, { answer: "y" })
        yield* idle(other, id)
        assert.strictEqual(yield* ran(place, id, "deploy"), 1)
      })
    })
}

/** It ends by itself, so only the first node can end before it. */
const onTime: Story = (place, id) =>
  Effect.gen(function* () {
    const { other, owner, sql, third } = place
    yield* send(owner, id, "hurry")
    const request = yield* Cluster.asked(other, id)
    return Effect.gen(function* () {
      yield* Cluster.until(ran(place, id, "late"), (count) => count === 1, 60_000)
      yield* idle(third, id)
      const [end] = yield* sql<{ readonly after: number }>`
        SELECT (max(at) - min(at))::int AS after FROM assent_entry WHERE request = ${request}`
      assert.isAtLeast(end?.after ?? 0, 11_500)
      // A node that died is missed after some seconds, and a machine may be loaded.
      assert.isAtMost(end?.after ?? 0, 60_000)
      yield* withdrawn(other, request, { answer: "y" })
      assert.strictEqual(yield* ran(place, id, "true"), 0)
    })
  })

const storiesOf = {
  killed: { ...stories, "ends a question at the limit that its tool had set": onTime },
  ended: stories
}

/** A story whose node may end. */
interface Prepared {
  readonly id: string
  readonly rest: Effect.Effect<void, unknown>
}

// -----------------------------------------------------------------------------------------------------------------

describe.runIf(Postgres.isThere)("a node that ends in the middle of everything", () => {
  const scope = Effect.runSync(Scope.make())
  /** What the webhook got. */
  const called: Array<Pick<WebhookReceiver.Arrival, "requestId" | "body">> = []
  let places: { readonly killed: Place; readonly ended: Place }
  const prepared = { killed: new Map<string, Prepared>(), ended: new Map<string, Prepared>() }

  beforeAll(() => Effect.runPromise(Scope.extend(begin, scope)), 120_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const begin = Effect.gen(function* () {
    const url = Postgres.url(yield* Postgres.schema)
    const cluster = yield* Cluster.make(url)
    const program = yield* Program.place
    const others = yield* program.makeDirectory("others")
    const { arrival, url: webhook } = yield* WebhookReceiver.make
    yield* arrival.pipe(
      Effect.tap((one) => Effect.sync(() => called.push(one))),
      Effect.flatMap(({ reply }) => reply({ status: 204, body: "" })),
      Effect.forever,
      Effect.forkScoped
    )
    const options = { webhook, nap: 60_000, parkAfter: 60_000, evictAfter: 3_000, drainWithin: 500, others }
    const [a, b, c] = yield* Effect.all(
      // What waits at the last one leaves memory, and is answered there too.
      [cluster.start("a", options), cluster.start("b", options), cluster.start("c", { ...options, parkAfter: 500 })],
      { concurrency: "unbounded" }
    )
    yield* cluster.settled(3)
    const common = {
      ...cluster,
      program,
      log: (name: string) => readFileSync(program.path("others", name), "utf8").trim().split("\n"),
      assent: (...args: ReadonlyArray<string>) =>
        Effect.flatMap(program.call([...args, "--store", Redacted.value(url)]), ({ code, stderr, stdout }) =>
          code === 0 ? Effect.succeed(stdout) : new Cluster.Failed({ message: stderr })
        )
    }
    places = { killed: { ...common, owner: a, other: b, third: c }, ended: { ...common, owner: b, other: c, third: c } }
    yield* Effect.forEach(
      (["killed", "ended"] as const).flatMap((how) =>
        Object.entries(storiesOf[how]).map(([title, story], index) => ({ how, title, story, index }))
      ),
      ({ how, index, story, title }) =>
        Effect.gen(function* () {
          const place = places[how]
          const id = yield* sessionOf(place, `${how}${index}-`)
          prepared[how].set(title, { id, rest: yield* story(place, id) })
        }),
      { concurrency: 8 }
    )
  })

  /** Begins a session that the node has which is to end. */
  const sessionOf = ({ other, owner, sql }: Place, prefix: string) =>
    Effect.gen(function* () {
      for (let number = 0; ; number++) {
        const id = `${prefix}${number}`
        yield* Cluster.asking(other.call("/v1/sessions", { id }))
        const [lock] = yield* sql<{ readonly pid: string }>`SELECT pid FROM assent_lock WHERE root = ${id}`
        if (Number(lock?.pid) === owner.pid) return id
      }
    })

  /** All stories go on at once. */
  const goingOn = (how: "killed" | "ended", signal: NodeJS.Signals) => {
    const running = new Map<string, Fiber.RuntimeFiber<void, unknown>>()
    beforeAll(() =>
      Effect.runPromise(
        Effect.gen(function* () {
          const { owner, sql } = places[how]
          // A node that dies in a call of the webhook leaves it to the next one, which makes it again.
          const open = Effect.map(Cluster.asking(owner.call("/v1/requests")), ({ body }) =>
            body.requests.map(({ request }: any) => String(request.requestId))
          )
          const notified = sql<{ readonly request: string }>`SELECT request FROM assent_notified`
          yield* Cluster.until(Effect.all([open, notified]), ([ids, found]) =>
            ids.every((id: string) => found.some(({ request }) => request === id))
          )
          yield* owner.signal(signal)
          yield* owner.exit
          for (const [title, { rest }] of prepared[how]) running.set(title, Effect.runFork(rest))
        })
      )
    )
    it.live.each(Object.keys(storiesOf[how]))(
      "%s",
      (title) => Effect.suspend(() => Fiber.join(running.get(title) ?? assert.fail("it was not begun"))),
      90_000
    )
  }

  describe("by SIGKILL", () => goingOn("killed", "SIGKILL"))

  describe("and sessions are deleted from a command line meanwhile", () => {
    it.live(
      "loses those that are over, and none that a node works on or that waits",
      () =>
        Effect.gen(function* () {
          const { assent, log, other, owner, sql, third } = places.ended
          const over = [...prepared.killed.values()].map(({ id }) => id)
          const waiting = yield* sessionOf({ ...places.ended, owner: third, other: owner }, "waiting-")
          yield* send(other, waiting, "modern")
          const request = yield* Cluster.asked(owner, waiting)
          const locks = sql<{ readonly root: string }>`
            SELECT root FROM assent_lock WHERE root = ${waiting} AND token = 'parked'
            UNION ALL SELECT root FROM assent_lock WHERE token <> 'parked' AND ${sql.in("root", over)}`
          yield* Cluster.until(locks, (found) => found.length === 1 && found[0]?.root === waiting, 60_000)
          const deleted = yield* assent("sessions", "prune", "--keep", "0")
          for (const id of over) assert.include(deleted, id)
          for (const { id } of [{ id: waiting }, ...prepared.ended.values()]) assert.notInclude(deleted, id)
          for (const { call } of [owner, third])
            assert.strictEqual((yield* Cluster.asking(call(`/v1/sessions/${over[0]}`))).status, 404)
          const left = yield* sql`SELECT 1 FROM assent_reference WHERE ${sql.in("root", over)}`
          assert.lengthOf(left, 0)
          // A node that was told nothing goes on with the answer.
          yield* assent("sessions", "answer", waiting, request, '{"region":"north"}')
          yield* idle(owner, waiting)
          assert.lengthOf(
            log("modern").filter((line) => line.includes('"north"')),
            1
          )
        }),
      60_000
    )
  })

  describe("by SIGTERM", () => goingOn("ended", "SIGTERM"))

  it.live(
    "calls a webhook once for each question, whichever node has it or looks",
    () =>
      Effect.gen(function* () {
        const { sql, third } = places.ended
        yield* Cluster.asking(third.call("/v1/sessions", { id: "last" }))
        yield* send(third, "last", "modern")
        const request = yield* Cluster.asked(third, "last")
        const seen = Effect.sync(() => called.map(({ requestId }) => requestId))
        const all = yield* Cluster.until(seen, (ids) => ids.includes(request))
        assert.deepStrictEqual([...all].sort(), [...new Set(all)].sort())
        const { body } = called.at(-1) ?? assert.fail("no call")
        assert.include(body, '"kind":"Elicit","session":"last"')
        assert.include(body, '"link":"https://assent.example.com/#/session/last"')
        // What is settled is forgotten.
        yield* Cluster.until(
          sql<{ readonly request: string }>`SELECT request FROM assent_notified`,
          (found) => found.length === 1 && found[0]?.request === request
        )
      }),
    120_000
  )
})
