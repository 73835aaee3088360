/** Callers of several tenants at one server: each has its own sessions, and the others do not exist. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import * as fc from "fast-check"
import * as Api from "../../src/http/Api.js"
import * as Tenancy from "../../src/http/Tenancy.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Runs from "../kit/Runs.js"
import * as Served from "../kit/Served.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 60_000)

/** The name of one tenant begins that of another. */
const tenants = ["a", "ab", "a-b"]

const everybody: Readonly<Record<string, Api.Person>> = {
  operator: { name: "operator" },
  ...Object.fromEntries(tenants.map((tenant) => [tenant, { name: `${tenant}-ann`, tenant }]))
}

/** Calls with the token of a person. */
const as = ({ call }: Served.Served, who: string, path: string, body?: unknown, method?: string) =>
  call(path, body, { authorization: `Bearer ${who}` }, method)

const marker = (tenant: string) => `words-of-${tenant}!`

/** A session `s` of each tenant, which waits for a person. */
const started = (
  people: Readonly<Record<string, Api.Person>> = everybody,
  model: (place: Served.Place) => string = Served.asking
) =>
  Effect.gen(function* () {
    const place = yield* Served.place
    const served = yield* Served.serve(place, model(place), { people })
    const requests = new Map<string, string>()
    for (const tenant of tenants) {
      const begun = yield* as(served, tenant, "/v1/sessions", { id: "s" })
      assert.deepStrictEqual(begun.body, { sessionId: `${tenant}.s` })
      yield* as(served, tenant, "/v1/sessions/s/messages", { text: marker(tenant) })
      const { body } = yield* Served.until(as(served, tenant, "/v1/sessions/s"), ({ body }) => body.open.length > 0)
      requests.set(tenant, String(body.open[0]))
    }
    const requestOf = (tenant: string) => requests.get(tenant) ?? assert.fail(`${tenant} was asked nothing`)
    return { place, served, requestOf }
  })

describe("a server with tenants", () => {
  live("gives each its own sessions, requests and events, and the operator all", () =>
    Effect.gen(function* () {
      const { requestOf, served } = yield* started()
      const idsOf = (body: any) => body.sessions.map(({ sessionId }: { sessionId: string }) => sessionId).sort()
      for (const tenant of tenants) {
        assert.deepStrictEqual(idsOf((yield* as(served, tenant, "/v1/sessions")).body), [`${tenant}.s`])
        const { body } = yield* as(served, tenant, "/v1/requests")
        assert.deepStrictEqual(
          body.requests.map(({ request }: { request: { requestId: string } }) => request.requestId),
          [requestOf(tenant)]
        )
        const [snapshot] = yield* served.events("/v1/events", () => true, undefined, tenant)
        assert.deepStrictEqual(idsOf(snapshot?.data), [`${tenant}.s`])
        // From the beginning, as a client that comes back with a place of the operator's.
        assert.strictEqual((yield* as(served, tenant, `/v1/sessions/${tenant}.s`)).status, 200)
        assert.strictEqual((yield* as(served, tenant, "/v1/workspaces")).status, 403)
      }
      assert.deepStrictEqual(idsOf((yield* as(served, "operator", "/v1/sessions")).body), ["a-b.s", "a.s", "ab.s"])
      assert.strictEqual((yield* as(served, "operator", "/metrics")).status, 200)
      assert.strictEqual((yield* as(served, "nobody", "/v1/sessions")).status, 401)
    })
  )

  live("hides events of the others, also from a client that comes back", () =>
    Effect.gen(function* () {
      const { requestOf, served } = yield* started()
      const [snapshot] = yield* served.events("/v1/events", () => true, undefined, "ab")
      yield* as(served, "a", `/v1/requests/${requestOf("a")}/answer`, { answer: "y" })
      yield* as(served, "ab", `/v1/requests/${requestOf("ab")}/answer`, { answer: "y" })
      const isEnd = ({ data }: Served.Piece) => data._tag === "TurnEnded"
      const pieces = yield* served.events("/v1/events", (some) => some.some(isEnd), snapshot?.id, "ab")
      assert.deepStrictEqual([...new Set(pieces.map(({ data }) => data.rootSessionId))], ["ab.s"])
    })
  )

  live("makes forks and sessions without a name the tenant's", () =>
    Effect.gen(function* () {
      const { requestOf, served } = yield* started()
      yield* as(served, "a", `/v1/requests/${requestOf("a")}/answer`, { answer: "y" })
      yield* Served.until(as(served, "a", "/v1/sessions/s/turns"), ({ body }) => body.turns[0]?.ended !== undefined)
      const fork = yield* as(served, "a", "/v1/sessions/s/fork", {})
      assert.match(fork.body.sessionId, /^a\.ses_/)
      const begun = yield* as(served, "a", "/v1/sessions", {})
      assert.match(begun.body.sessionId, /^a\.ses_/)
      assert.strictEqual((yield* as(served, "ab", `/v1/sessions/${fork.body.sessionId}`)).status, 404)
    })
  )

  live("permits the verbs of a key, and no other one", () =>
    Effect.gen(function* () {
      const verbs = ["send", "answer", "cancel", "read", "permissions"] as const
      const people = {
        ...everybody,
        ...Object.fromEntries(verbs.map((verb) => [verb, { name: verb, tenant: "a", may: [verb] }]))
      }
      const { requestOf, served } = yield* started(people)
      const paths: ReadonlyArray<readonly [path: string, body: unknown, verb: string, method?: string]> = [
        ["/v1/sessions", { id: "s" }, "send"],
        ["/v1/sessions", undefined, "read"],
        ["/v1/sessions/s", undefined, "read"],
        ["/v1/sessions/s/turns", undefined, "read"],
        ["/v1/sessions/s/models", undefined, "read"],
        ["/v1/sessions/s/audit", undefined, "read"],
        ["/v1/requests", undefined, "read"],
        ["/v1/sessions/s/take-back", {}, "cancel"],
        ["/v1/sessions/s/permissions", { command: "" }, "permissions"],
        ["/v1/sessions/s/mode", { mode: "ask" }, "permissions"],
        ["/v1/sessions/s/compact", {}, "send"],
        ["/v1/sessions/s/messages", { text: "and" }, "send"],
        [`/v1/requests/${requestOf("a")}/answer`, { answer: "y" }, "answer"],
        ["/v1/sessions/s/interrupt", {}, "cancel"],
        ["/v1/sessions/s", undefined, "permissions", "DELETE"]
      ]
      for (const [path, body, needed, method] of paths)
        for (const verb of [...verbs.filter((one) => one !== needed), needed]) {
          const { body: said, status } = yield* as(served, verb, path, body, method)
          const isForbidden = status === 403
          assert.strictEqual(isForbidden, verb !== needed, `${verb} ${method ?? ""} ${path}: ${status}`)
          if (isForbidden) assert.include(said.message, `"${needed}"`)
        }
      for (const path of ["/v1/events", "/v1/sessions/s/events"])
        assert.strictEqual((yield* as(served, "answer", path)).status, 403)
    })
  )

  live("lets a key answer the kinds that it names, through each door", () =>
    Effect.gen(function* () {
      const may = (...permits: ReadonlyArray<Api.Permit>) => ({
        tenant: "a",
        may: ["send", "read", ...permits] as const
      })
      const people = {
        ...everybody,
        approver: { name: "approver", ...may("answer:Approve") },
        adviser: { name: "adviser", ...may("answer:Ask", "answer:Clarify") },
        other: { name: "other", tenant: "ab", may: ["answer:Ask"] as const },
        whole: { name: "whole", may: ["answer:Ask"] as const },
        everyone: { name: "everyone", ...may("answer:Ask", "answer") }
      }
      const { requestOf, served } = yield* started(people, ({ script }) =>
        script(
          { tools: [{ name: "run_command", params: { command: "true" } }] },
          { tools: [{ name: "ask_user", params: { prompt: "Which?" } }] },
          { text: "done" },
          { tools: [{ name: "run_command", params: { command: "true" } }] },
          { text: "done" }
        )
      )
      const request = requestOf("a")
      const agui = (requestId: string, payload: unknown, status = "resolved") => ({
        threadId: "t",
        runId: "r",
        messages: [{ id: "m", role: "user", content: "go" }],
        resume: [{ interruptId: requestId, status, payload }]
      })
      const chat = (id: string) => ({
        id: "t",
        messages: [
          { id: "m", role: "assistant", parts: [{ state: "approval-responded", approval: { id, approved: true } }] }
        ]
      })
      const doors = (id: string, payload: unknown): ReadonlyArray<readonly [path: string, body: unknown]> => [
        [`/v1/requests/${id}/answer`, { answer: "y" }],
        ["/v1/agui/s", agui(id, payload)],
        ["/v1/agui/a.s", agui(id, undefined, "cancelled")],
        ["/v1/ai/s", chat(id)]
      ]
      const refused = (who: string, id: string, kind: string, payload: unknown) =>
        Effect.forEach(doors(id, payload), ([path, body]) =>
          Effect.map(as(served, who, path, body), ({ body, status }) => {
            assert.strictEqual(status, 403, `${who} ${path}`)
            assert.include(body.message, `"answer" for a request of the kind ${kind},`)
          })
        )
      yield* refused("adviser", request, "Approve", { approved: true })
      assert.strictEqual((yield* as(served, "whole", doors(request, {})[0]?.[0] ?? "", { answer: "y" })).status, 403)
      // Of another tenant, and of nobody: the kind is not said.
      assert.strictEqual((yield* as(served, "other", `/v1/requests/${request}/answer`, { answer: "y" })).status, 404)
      for (const who of ["adviser", "whole"])
        assert.strictEqual((yield* as(served, who, "/v1/requests/req_none/answer", { answer: "y" })).status, 404)
      assert.deepStrictEqual((yield* as(served, "a", "/v1/sessions/s")).body.open, [request])
      assert.strictEqual((yield* as(served, "approver", "/v1/ai/s", chat(request))).status, 200)
      const { body } = yield* Served.until(
        as(served, "a", "/v1/sessions/s"),
        ({ body }) => body.open.length > 0 && body.open[0] !== request
      )
      yield* refused("approver", body.open[0], "Ask", { answer: "x" })
      assert.strictEqual((yield* as(served, "adviser", "/v1/agui/s", agui(body.open[0], { answer: "x" }))).status, 200)
      yield* Served.until(as(served, "a", "/v1/sessions/s/turns"), ({ body }) => body.turns[0]?.ended !== undefined)
      // Who may answer all kinds may name some as well.
      yield* as(served, "a", "/v1/sessions/s/messages", { text: "again" })
      const asked = yield* Served.until(as(served, "a", "/v1/sessions/s"), ({ body }) => body.open.length > 0)
      const answer = yield* as(served, "everyone", `/v1/requests/${asked.body.open[0]}/answer`, { answer: "y" })
      assert.strictEqual(answer.status, 200)
    })
  )

  live("lets a key that only answers decide about this call, and about nothing else", () =>
    Effect.gen(function* () {
      const people: Readonly<Record<string, Api.Person>> = {
        ...everybody,
        reviewer: { name: "reviewer", tenant: "a", may: ["read", "answer:Approve"] },
        answerer: { name: "answerer", tenant: "a", may: ["read", "send", "answer"] },
        owner: { name: "owner", tenant: "a", may: ["read", "answer", "permissions"] }
      }
      const step = { tools: [{ name: "run_command", params: { command: "true" } }] }
      const { requestOf, served } = yield* started(people, (place) =>
        place.script(...Array.from({ length: 12 }, () => step), { text: "done" })
      )
      let request = requestOf("a")
      const interrupt = (payload: unknown) => ({
        threadId: "t",
        runId: "r",
        messages: [],
        resume: [{ interruptId: request, status: "resolved", payload }]
      })
      const wide: ReadonlyArray<object> = [
        { answer: "all" },
        { answer: "always" },
        { answer: "never" },
        { answer: " ALL " },
        { answer: { decision: "allow", scope: "session" } },
        { answer: { decision: "allow", scope: "all" } },
        { answer: { decision: "deny", scope: "session" } },
        { answer: { decision: "edit", editedArguments: { command: "touch other" } } },
        { form: { command: "touch other" } },
        { form: { decision: "all" } }
      ]
      for (const who of ["reviewer", "answerer"])
        for (const answer of wide) {
          const refused = yield* as(served, who, `/v1/requests/${request}/answer`, answer)
          assert.strictEqual(
            refused.status,
            "form" in answer ? Math.min(refused.status, 422) : 403,
            JSON.stringify(answer)
          )
          assert.include([403, 422], refused.status)
          if (refused.status === 403) assert.include(refused.body.message, '"permissions"')
        }
      for (const payload of [
        { decision: "allow", scope: "all" },
        { decision: "edit", editedArguments: { command: "x" } }
      ]) {
        const run = yield* as(served, "answerer", "/v1/agui/s", interrupt(payload))
        assert.isTrue(run.status === 403 || run.body.includes("RUN_ERROR"), JSON.stringify(run))
      }
      // Nothing of it counted.
      assert.deepStrictEqual((yield* as(served, "a", "/v1/sessions/s")).body.open, [request])
      const next = () =>
        Effect.map(
          Served.until(
            as(served, "a", "/v1/sessions/s"),
            ({ body }) => body.open.length > 0 && body.open[0] !== request
          ),
          ({ body }) => {
            request = String(body.open[0])
          }
        )
      for (const answer of [
        { answer: "y" },
        { answer: "n" },
        { answer: "c: not so" },
        { form: { decision: "once" } }
      ]) {
        const { body, status } = yield* as(served, "reviewer", `/v1/requests/${request}/answer`, answer)
        if ("form" in answer && status === 422) continue
        assert.strictEqual(status, 200, JSON.stringify(body))
        yield* next()
      }
      assert.strictEqual((yield* as(served, "owner", `/v1/requests/${request}/answer`, { answer: "all" })).status, 200)
      yield* Served.until(as(served, "a", "/v1/sessions/s/turns"), ({ body }) => body.turns[0]?.ended !== undefined)
    })
  )

  live("counts the streams of each caller, so that each has some", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const people: Readonly<Record<string, Api.Person>> = {
        monitor: { name: "monitor", tenant: "b", may: ["read"] },
        "monitor-2": { name: "monitor", tenant: "b", may: ["read"] },
        ann: { name: "ann", tenant: "a" },
        namesake: { name: "monitor", tenant: "a" },
        owner: { name: "owner" }
      }
      const served = yield* Served.serve(place, place.script({ text: "done" }), { people, streams: 3 })
      const opened = (by: string) => Effect.forkScoped(served.events("/v1/events", () => false, undefined, by))
      for (const by of ["monitor", "monitor", "monitor-2"]) yield* opened(by)
      yield* as(served, "ann", "/v1/sessions", { id: "s" })
      const full = yield* Served.until(as(served, "monitor", "/v1/events?x"), ({ status }) => status === 429)
      assert.match(full.headers.get("retry-after") ?? "", /^\d+$/)
      assert.strictEqual((yield* as(served, "monitor-2", "/v1/events")).status, 429)
      for (const by of ["ann", "namesake", "owner"]) {
        const [first] = yield* served.events("/v1/events", (all) => all.length > 0, undefined, by)
        assert.strictEqual(first?.event, "snapshot")
      }
      const run = { threadId: "t", runId: "r", messages: [{ id: "m1", role: "user", content: "hi" }] }
      assert.strictEqual((yield* as(served, "ann", "/v1/agui/s", run)).status, 200)
    })
  )

  live("gives the metrics to a key that operates, of any tenant, and to no other one", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const people: Readonly<Record<string, Api.Person>> = {
        operator: { name: "operator" },
        ops: { name: "ops", tenant: "a", may: ["operate"] },
        every: { name: "every", tenant: "a", may: Api.Verb.literals },
        reader: { name: "reader", tenant: "a", may: ["read", "send", "answer", "cancel", "permissions"] },
        nothing: { name: "nothing", may: [] }
      }
      const served = yield* Served.serve(place, place.script({ text: "done" }), { people })
      for (const [who, status] of [
        ["operator", 200],
        ["ops", 200],
        ["every", 200],
        ["reader", 403],
        ["nothing", 403]
      ] as const)
        assert.strictEqual((yield* as(served, who, "/metrics")).status, status, who)
      assert.strictEqual((yield* as(served, "ops", "/v1/sessions")).status, 403)
    })
  )

  it("reads what a key may do, and writes it down the same way", () => {
    const kinds = Object.keys(Interaction.kinds)
    const known = [...Api.Verb.literals, ...kinds.map((kind) => `answer:${kind}`)]
    const word = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...known) },
      fc.constantFrom("", "answer:", "answer:approve", "answer:Approve:", "send:Approve", "Approve", "toString"),
      fc.string({ maxLength: 12 }).map((text) => text.replaceAll(",", ""))
    )
    const blank = fc.constantFrom("", " ")
    fc.assert(
      fc.property(fc.array(fc.tuple(blank, word, blank), { minLength: 1, maxLength: 6 }), (words) => {
        const text = words.map((parts) => parts.join("")).join(",")
        const found = Tenancy.permitsIn(text)
        const named = words.map(([, word]) => word.trim())
        const stranger = named.find((one) => !known.includes(one))
        if (stranger !== undefined) {
          const says = Either.isLeft(found) ? found.left : assert.fail(text)
          return assert.include(says, JSON.stringify(stranger.replace(/^answer:/, "")))
        }
        const permits = Either.isRight(found) ? found.right : assert.fail(found.left)
        assert.deepStrictEqual([...new Set(permits)], permits)
        for (const one of known) {
          const isNamed = named.includes(one) && !(one.startsWith("answer:") && named.includes("answer"))
          assert.strictEqual(
            permits.some((permit) => permit === one),
            isNamed,
            `${one} in ${text}`
          )
        }
        assert.deepStrictEqual(Tenancy.permitsIn(permits.join(",")), found)
      }),
      { numRuns: Runs.of(16_000) }
    )
    assert.deepStrictEqual(Tenancy.permitsIn(undefined), Either.right(Api.Verb.literals))
  })

  live("says which limit is reached, and when to come again", () =>
    Effect.gen(function* () {
      const people = {
        ...everybody,
        few: { name: "few", tenant: "a", limits: { sessions: 1 } },
        idle: { name: "idle", tenant: "a", limits: { turns: 0 } },
        slow: { name: "slow", tenant: "ab", limits: { requests: 2 } },
        spent: { name: "spent", tenant: "a", limits: { tokens: 0, turns: 9 } },
        rich: { name: "rich", tenant: "a", limits: { tokens: 1 } }
      }
      const { requestOf, served } = yield* started(people)
      const refused = (answer: Served.Answer, says: RegExp) => {
        assert.deepStrictEqual([answer.status, answer.body._tag], [429, "TooManyRequests"])
        assert.match(answer.body.message, says)
        assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/)
      }
      refused(yield* as(served, "few", "/v1/sessions", {}), /tenant a may have 1 session\./)
      assert.strictEqual((yield* as(served, "few", "/v1/sessions", { id: "s" })).status, 200)
      // Its turn waits for a person: words into it begin none.
      assert.strictEqual((yield* as(served, "idle", "/v1/sessions/s/messages", { text: "x" })).status, 200)
      yield* as(served, "idle", "/v1/sessions", { id: "t" })
      refused(yield* as(served, "idle", "/v1/sessions/t/messages", { text: "x" }), /may have 0 turns at work/)
      // No new words, also into a turn that runs; the rest goes on.
      const user = { id: "m", role: "user", content: "x" }
      const agui = (messages: ReadonlyArray<object>) => ({ threadId: "t", runId: "r", messages })
      for (const [path, body] of [
        ["/v1/sessions/s/messages", { text: "x" }],
        ["/v1/sessions/t/messages", { text: "x" }],
        ["/v1/sessions/t/compact", {}],
        ["/v1/agui/s", agui([user])],
        ["/v1/ai/t", { id: "c", messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "x" }] }] }]
      ] as const) {
        const answer = yield* as(served, "spent", path, body)
        refused(answer, /tenant a may use 0 tokens a day\. Try again after midnight in UTC/)
        const after = Number(answer.headers.get("retry-after"))
        const rest = 86_400 - (((yield* Clock.currentTimeMillis) / 1_000) % 86_400)
        assert.closeTo(after, rest, 10)
      }
      const resume = [{ interruptId: requestOf("a"), status: "cancelled" }]
      const answered = agui([user, { id: "n", role: "assistant", content: "y" }])
      for (const [path, body] of [
        ["/v1/sessions", {}],
        ["/v1/sessions/t/permissions", { command: "" }],
        ["/v1/agui/s", { ...answered, resume }]
      ] as const)
        assert.strictEqual((yield* as(served, "spent", path, body)).status, 200, path)
      assert.strictEqual((yield* as(served, "rich", "/v1/sessions/t/messages", { text: "x" })).status, 200)
      const answers = yield* Effect.all(
        Array.from({ length: 4 }, () => as(served, "slow", "/v1/sessions/s")),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 200, 429, 429])
      refused(
        answers.find(({ status }) => status === 429) ?? assert.fail("none"),
        /tenant ab may send 2 requests a second/
      )
      assert.strictEqual((yield* as(served, "ab", "/v1/sessions/s")).status, 200)
    })
  )

  live("shows nothing of another tenant, and changes nothing there, whatever is asked", () =>
    Effect.gen(function* () {
      const { requestOf, served } = yield* started()
      const others = (tenant: string) => tenants.filter((one) => one !== tenant)
      const ids = fc.oneof(
        fc.constantFrom(
          "s",
          ...tenants.flatMap((one) => [`${one}.s`, `${one}%2Es`, `${one}/s`, `${one}%2Fs`, `../${one}.s`])
        ),
        fc.constantFrom(".s", "s.", "..", "%2e%2e", "a.ab.s", "a.a.s", "*", "%", "%00", "a.%73", "A.s", " a.s", "a.s "),
        fc.string({ maxLength: 8 }).map(encodeURIComponent)
      )
      const request = fc.constantFrom("none", ...tenants.map(requestOf))
      const asked = fc.oneof(
        fc
          .tuple(ids, fc.constantFrom("", "/turns", "/models", "/audit"))
          .map(([id, rest]) => [`/v1/sessions/${id}${rest}`] as const),
        ids.map((id) => [`/v1/requests?session=${id}`] as const),
        fc.constantFrom(["/v1/sessions"] as const, ["/v1/requests"] as const, ["/v1/sessions?limit=1"] as const),
        fc
          .tuple(
            ids,
            fc.constantFrom<readonly [string, object]>(
              ["/messages", { text: "hello" }],
              ["/interrupt", {}],
              ["/take-back", {}],
              ["/compact", {}],
              ["/permissions", { command: "yolo" }],
              ["/mode", { mode: "allow" }],
              ["/fork", {}]
            )
          )
          .map(([id, [rest, body]]) => [`/v1/sessions/${id}${rest}`, body] as const),
        ids.map((id) => ["/v1/sessions", { id: decoded(id) }] as const),
        ids.map(
          (id) =>
            [
              `/v1/agui/${id}`,
              { threadId: "t", runId: "r", messages: [{ id: "m", role: "user", content: "x" }] }
            ] as const
        ),
        ids.map((id) => [`/v1/sessions/${id}`, undefined, "DELETE"] as const),
        fc
          .tuple(request, fc.constantFrom("answer", "cancel"))
          .map(([id, what]) => [`/v1/requests/${id}/${what}`, what === "answer" ? { answer: "y" } : {}] as const)
      )
      // It changes its own sessions at will, and this one only asks.
      const caller = "a"
      const before = yield* Effect.forEach(others(caller), (one) => as(served, "operator", `/v1/sessions/${one}.s`))
      const look = (path: string, body: unknown, method: string | undefined) =>
        Effect.runPromise(as(served, caller, path, body, method))
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(asked, async ([path, body, method]) => {
            const answer = await look(path, body, method)
            const text = JSON.stringify(answer.body)
            for (const one of others(caller)) assert.notInclude(text, marker(one), path)
            for (const one of others(caller))
              if (path.includes(requestOf(one)) || path.startsWith(`/v1/sessions/${one}.`))
                assert.strictEqual(answer.status, 404, `${path}: ${text}`)
          }),
          { numRuns: Runs.of(4_800) }
        )
      )
      const after = yield* Effect.forEach(others(caller), (one) => as(served, "operator", `/v1/sessions/${one}.s`))
      assert.deepStrictEqual(
        after.map(({ body }) => body),
        before.map(({ body }) => body)
      )
      const { body } = yield* as(served, "operator", "/v1/sessions?limit=1000")
      const roots = body.sessions.map(({ sessionId }: { sessionId: string }) => sessionId)
      assert.deepStrictEqual(
        roots.filter((id: string) => !id.startsWith("a.")),
        ["a-b.s", "ab.s"].sort((x, y) => roots.indexOf(x) - roots.indexOf(y))
      )
    })
  )
})

const decoded = (text: string) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
