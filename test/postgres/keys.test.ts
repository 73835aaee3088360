/** Keys of tenants: made at a command line, known by every node, and revoked at all of them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as fs from "node:fs"
import * as Cluster from "../kit/Cluster.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Postgres from "../kit/Postgres.js"
import * as PostgresConnection from "../../src/store/PostgresConnection.js"
import * as Program from "../kit/Program.js"
import { anthropic } from "../kit/Wire.js"

const live = (name: string, effect: () => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.scopedLive(name, effect, 240_000)

/** The program at an empty database, as a process or called in this one. */
const empty = (how: "call" | "run") =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const url = Postgres.url(yield* Postgres.schema)
    const env = { ASSENT_DATABASE_URL: Redacted.value(url) }
    const keys = (...words: ReadonlyArray<string>) => place[how](["keys", ...words], { env })
    const added = (...words: ReadonlyArray<string>) =>
      Effect.map(keys("add", ...words), ({ code, stderr, stdout }) => {
        assert.strictEqual(code, 0, stderr)
        const id = /key_\w+/.exec(stderr)?.[0] ?? assert.fail(stderr)
        return { id, text: stdout.trim(), stderr }
      })
    const model = yield* place.script(
      { tools: [{ name: "run_command", params: { command: "true" } }] },
      { text: "done" }
    )
    const provider = yield* ModelServer.make
    fs.mkdirSync(place.path("keys/acme"), { recursive: true })
    fs.writeFileSync(place.path("keys/acme/ANTHROPIC_API_KEY"), "sk-of-acme\n")
    const node = Effect.gen(function* () {
      const address = `127.0.0.1:${yield* Cluster.freePort}`
      const directories = ["--workspace", place.path("workspace"), "--model-keys", place.path("keys")]
      const args = ["serve", "--cluster", "--port", "0", ...directories, "--model", model]
      const program = yield* place.start(args, {
        env: {
          ...env,
          ASSENT_NODE_ADDRESS: address,
          ANTHROPIC_API_KEY: "sk-of-the-server",
          ANTHROPIC_BASE_URL: provider.url
        }
      })
      const [base = "", token = ""] = (yield* program.line((text) => text.startsWith("http://"))).split("/#token=")
      const by = (key: string) => Cluster.callerOf(base, key)
      yield* Cluster.until(by(token)("/readyz"), ({ status }) => status === 200)
      /** A stream of all events, and what came of it. */
      const stream = (key: string) =>
        Effect.promise(async () => {
          const answer = await fetch(`${base}/v1/events`, { headers: { authorization: `Bearer ${key}` } })
          const seen = { text: "", isOver: false }
          const write = (text: string) => void (seen.text += text)
          const close = () => void (seen.isOver = true)
          void answer.body?.pipeThrough(new TextDecoderStream()).pipeTo(new WritableStream({ write, close }))
          return seen
        })
      return { by, token, stream }
    })
    return { place, url, keys, added, node, provider }
  })

describe.runIf(Postgres.isThere)("assent keys", () => {
  live("makes keys, keeps their SHA-256 alone, lists and revokes them", () =>
    Effect.gen(function* () {
      const { added, keys, url } = yield* empty("call")
      const none = yield* keys()
      assert.deepStrictEqual([none.code, none.stdout], [0, ""])
      assert.match(none.stderr, /no key yet/)
      const one = yield* added("acme", "--subject", "acme")
      const two = yield* added("acme", "--subject", "ann", "--role", "ops", "--role", "sre", "--may", "read,answer")
      assert.match(one.text, /^assent_[\w-]{32}$/)
      assert.match(two.stderr, /of acme for ann/)
      const listed = yield* keys("list")
      assert.notInclude(listed.stdout, one.text)
      const [first, second] = listed.stdout.trim().split("\n")
      assert.match(first ?? "", new RegExp(`^${one.id}  counts   acme  acme  no roles  may do everything  \\d{4}-`))
      assert.match(second ?? "", new RegExp(`^${two.id}  counts   acme  ann  roles ops,sre  may read,answer  \\d{4}-`))
      assert.strictEqual((yield* keys("limit", "acme", "turns=4")).stderr, "")
      assert.match(
        (yield* keys("limit", "amce", "turns=4")).stderr,
        /no key of amce counts, so nobody has its limits\./
      )
      const revoked = yield* keys("revoke", two.id)
      assert.strictEqual(revoked.code, 0)
      assert.match((yield* keys()).stdout, new RegExp(`${two.id}  revoked`))
      assert.deepStrictEqual([(yield* keys("revoke", two.id)).code, (yield* keys("revoke", "key_x")).code], [2, 2])
      const sql = yield* PostgresConnection.open({ url, maxConnections: 1 })
      const [row] = yield* sql<{ readonly text: string }>`SELECT string_agg(k::text, ' ') AS text FROM assent_key k`
      assert.notInclude(row?.text ?? "", one.text.slice("assent_".length))
    })
  )

  live("refuses what is no tenant, no verb and no limit, with code 2 and a sentence", () =>
    Effect.gen(function* () {
      const { keys, place } = yield* empty("call")
      const refused: ReadonlyArray<readonly [words: ReadonlyArray<string>, says: RegExp]> = [
        [["add", "A"], /cannot name a tenant/],
        [["add", "a.b"], /cannot name a tenant/],
        [["add", "../a"], /cannot name a tenant/],
        [["add", ""], /cannot name a tenant/],
        [["add"], /takes: /],
        [["add", "a", "b"], /takes: /],
        [["add", "a"], /--subject/],
        [["add", "a", "--subject", ""], /--subject/],
        [["add", "a", "--subject", " "], /--subject/],
        [["add", "a", "--may", "read"], /--subject/],
        [["add", "a", "--subject", "b", "--may", "read,everything"], /not "everything"/],
        [
          ["add", "a", "--subject", "b", "--may", "read,answer:approve"],
          /no kind of request "approve"\. .*, Clarify, /
        ],
        [["limit", "a", "turns"], /"turns" is no limit/],
        [["limit", "a", "tokens=3m"], /"tokens=3m" is no limit/],
        [["limit", "a", "turns=-1"], /"turns=-1" is no limit/],
        [["ad"], /Did you mean add\?/],
        [["list", "a"], /takes: /]
      ]
      for (const [words, says] of refused) {
        const { code, stderr } = yield* keys(...words)
        assert.strictEqual(code, 2, words.join(" "))
        assert.match(stderr, says)
      }
      const nowhere = yield* place.call(["keys"])
      assert.strictEqual(nowhere.code, 2)
      assert.match(nowhere.stderr, /ASSENT_DATABASE_URL/)
    })
  )

  live("separates tenants at two nodes, and a revoked key counts at neither", () =>
    Effect.gen(function* () {
      const { added, keys, node, provider, url } = yield* empty("run")
      const [one, two] = yield* Effect.all([node, node], { concurrency: "unbounded" })
      // Without a key in the database the token counts.
      assert.strictEqual((yield* one.by(one.token)("/v1/sessions")).status, 200)
      const acme = yield* added("acme", "--subject", "ann")
      const beta = yield* added("beta", "--subject", "bo")
      const adviser = yield* added("acme", "--subject", "adviser", "--may", "read,answer:Ask,answer:Clarify")
      yield* Cluster.until(one.by(one.token)("/v1/sessions"), ({ status }) => status === 401)
      yield* Cluster.begin({ call: one.by(acme.text) }, "s")
      const request = yield* Cluster.asked({ call: two.by(acme.text) } as Cluster.Node, "s", 60_000)
      for (const { by } of [one, two]) {
        const foreign = by(beta.text)
        for (const path of ["/v1/sessions/s", "/v1/sessions/acme.s", "/v1/sessions/acme.s/events"])
          assert.strictEqual((yield* foreign(path)).status, 404, path)
        assert.strictEqual((yield* foreign(`/v1/requests/${request}/answer`, { answer: "y" })).status, 404)
        assert.deepStrictEqual((yield* foreign("/v1/requests")).body.requests, [])
        assert.deepStrictEqual((yield* foreign("/v1/sessions")).body.sessions, [])
        for (const text of ["", "assent_x", `${acme.text}x`])
          assert.strictEqual((yield* by(text)("/v1/sessions")).status, 401)
      }
      for (const { by } of [one, two]) {
        const refused = yield* by(adviser.text)(`/v1/requests/${request}/answer`, { answer: "y" })
        assert.strictEqual(refused.status, 403)
        assert.match(refused.body.message, /"answer" for a request of the kind Approve, but for Ask, Clarify/)
      }
      // Each tenant pays for its own model calls.
      const model = "anthropic/claude-haiku-4-5"
      const text = ["sk-of-acme and sk-of-the-server"]
      const nap = { id: "call", name: "run_command", args: JSON.stringify({ command: "sleep 0.3" }) }
      const paid = (tenant: { readonly text: string }, key: string, replies: ReadonlyArray<object>) =>
        Effect.gen(function* () {
          yield* provider.play(...replies.map((more) => ModelServer.eventStream(anthropic.events({ text, ...more }))))
          const begun = yield* Cluster.asking(two.by(tenant.text)("/v1/sessions", { id: "paid", model }))
          assert.strictEqual(begun.status, 200, JSON.stringify(begun.body))
          yield* Cluster.asking(two.by(tenant.text)("/v1/sessions/paid/mode", { mode: "allow" }))
          yield* Cluster.asking(one.by(tenant.text)("/v1/sessions/paid/messages", { text: "go" }))
          assert.strictEqual((yield* provider.received).headers["x-api-key"], key)
        })
      yield* paid(beta, "sk-of-the-server", [{}])
      yield* paid(
        acme,
        "sk-of-acme",
        Array.from({ length: 60 }, () => ({ calls: [nap] }))
      )
      // A limit counts at once at a node that does not know the key yet, and elsewhere after 10 seconds.
      const fresh = yield* added("acme", "--subject", "fred")
      assert.strictEqual(
        (yield* keys("limit", "acme", "sessions=1", "turns=9", "tokens=15")).stdout,
        "sessions  1\nturns     9\ntokens    15\nrequests  none\n"
      )
      const full = yield* two.by(fresh.text)("/v1/sessions", {})
      assert.strictEqual(full.status, 429)
      assert.match(full.body.message, /acme may have 1 session\./)
      // The turn that runs ends, and nothing of it is lost.
      const sql = yield* PostgresConnection.open({ url, maxConnections: 1 })
      const journal = Effect.map(
        sql<{ readonly text: string }>`SELECT string_agg(body, ' ' ORDER BY seq) AS text FROM assent_entry
          WHERE root = 'acme.paid'`,
        ([row]) => row?.text ?? ""
      )
      const ended = yield* Cluster.until(journal, (text) => text.includes('"TurnEnded"'))
      assert.match(ended, /"error":"The tenant acme may use 15 tokens a day\. Try again after midnight in UTC\."/)
      assert.include(ended, "and sk-of-the-server")
      assert.notInclude(ended, "sk-of-acme")
      // Both nodes know what was used, and go on to know it when its session is gone.
      const spent = yield* two.by(fresh.text)("/v1/sessions/s/messages", { text: "more" })
      assert.strictEqual(spent.status, 429)
      assert.match(spent.body.message, /acme may use 15 tokens a day/)
      const gone = yield* Cluster.asking(one.by(acme.text)("/v1/sessions/paid", undefined, undefined, "DELETE"))
      assert.strictEqual(gone.status, 200, JSON.stringify(gone.body))
      assert.strictEqual((yield* two.by(fresh.text)("/v1/sessions/s/messages", { text: "more" })).status, 429)
      const answer = yield* Cluster.asking(two.by(acme.text)(`/v1/requests/${request}/answer`, { answer: "y" }))
      assert.strictEqual(answer.body.status, "answered")
      const { body } = yield* Cluster.until(one.by(acme.text)("/v1/sessions/s/audit"), ({ body }) =>
        body.records?.some((record: { by?: string }) => record.by === "ann")
      )
      assert.strictEqual(body.verified, "whole")
      const cut = yield* Effect.forEach([one, two], ({ stream }) => stream(acme.text))
      const kept = yield* Effect.forEach([one, two], ({ stream }) => stream(beta.text))
      yield* keys("revoke", acme.id)
      yield* Cluster.until(
        Effect.sync(() => cut),
        (all) => all.every(({ isOver }) => isOver),
        30_000
      )
      for (const { text } of cut) assert.match(text, /event: unauthorized\ndata: .*This key was revoked/)
      for (const { isOver } of kept) assert.isFalse(isOver)
      for (const { by } of [one, two]) {
        const gone = yield* Cluster.until(by(acme.text)("/v1/sessions"), ({ status }) => status === 401, 30_000)
        assert.match(gone.body.message, /revoked/)
        assert.strictEqual((yield* by(beta.text)("/v1/sessions")).status, 200)
      }
    })
  )
})
